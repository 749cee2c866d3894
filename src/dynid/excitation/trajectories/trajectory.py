"""The base class of trajectories (joint positions as smooth functions of time), and samples of them in file formats."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.errors import ArgumentError, ExportError
from dynid.safe_files import write_atomically
from dynid.spatial import SAME


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledTrajectory:
    """A trajectory sampled at uniform times, for files and robots."""

    time: Floats
    """(N,) times [s], starting at zero."""
    q: Floats
    """(N, n) joint positions [rad or m]."""
    dq: Floats
    """(N, n) joint velocities [rad/s or m/s]."""
    ddq: Floats
    """(N, n) joint accelerations [rad/s^2 or m/s^2]."""
    joint_names: tuple[str, ...]
    """n names, in the order of the columns."""

    def to_csv(self, path: str | os.PathLike[str], *, force: bool = True) -> None:
        """Write a CSV file with a header: time, positions, velocities and accelerations, one row per sample."""
        from pandas import DataFrame

        names = ["time", *(f"{kind}_{name}" for kind in ("q", "dq", "ddq") for name in self.joint_names)]
        table = DataFrame(np.column_stack([self.time, self.q, self.dq, self.ddq]), columns=names)
        write_atomically(path, table.to_csv(index=False, lineterminator="\n"), force=force)

    def ros_yaml(self) -> str:
        """Write a ``trajectory_msgs/JointTrajectory`` for ``ros2 topic pub``: JSON, which is valid YAML."""
        nanoseconds = np.rint(self.time * 1e9).astype(np.int64).tolist()
        points = [
            {
                "positions": q,
                "velocities": dq,
                "accelerations": ddq,
                "time_from_start": {"sec": ns // 10**9, "nanosec": ns % 10**9},
            }
            for q, dq, ddq, ns in zip(self.q.tolist(), self.dq.tolist(), self.ddq.tolist(), nanoseconds, strict=True)
        ]
        return json.dumps({"joint_names": list(self.joint_names), "points": points}, indent=1) + "\n"

    def urscript(self) -> str:
        """Write a URScript program that moves to the first position and then streams the positions by ``servoj``."""
        if self.q.shape[1] != 6:
            raise ExportError(
                f"URScript moves six joints, not {self.q.shape[1]}", remedy="Write CSV, JSON or ROS instead."
            )
        step_s = self.time[-1] / (len(self.time) - 1)
        targets = ["[" + ", ".join(f"{value:.9g}" for value in row) + "]" for row in self.q.tolist()]
        moves = [f"  servoj({target}, t={step_s:.9g}, lookahead_time=0.1, gain=300)" for target in targets]
        program = ["def excitation():", f"  movej({targets[0]})", *moves, "  stopj(2.0)", "end", "excitation()", ""]
        return "\n".join(program)


class PlannedMotion(NamedTuple):
    """Joint positions and their first three derivatives at N times."""

    q: Floats
    """(N, n) positions [rad or m]."""
    dq: Floats
    """(N, n) velocities [rad/s or m/s]."""
    ddq: Floats
    """(N, n) accelerations [rad/s^2 or m/s^2]."""
    jerk: Floats
    """(N, n) jerks [rad/s^3 or m/s^3]."""

    @classmethod
    def at(cls, q: Floats, velocity: Floats | float = 0.0) -> PlannedMotion:
        """Make a motion of single states: positions q (N, n), velocities (N, n) or one for all, no acceleration."""
        zero = np.zeros_like(q)
        return cls(q, zero + velocity, zero, zero)


class Trajectory(ABC):
    """A motion of n joints over the times from 0 to `duration`."""

    @property
    @abstractmethod
    def duration(self) -> float:
        """Length of the motion [s]."""

    @property
    @abstractmethod
    def dof(self) -> int:
        """Number of joints n."""

    @property
    def recorded(self) -> tuple[float, float]:
        """Start and end [s] of the part that is recorded: only its samples give information."""
        return 0.0, self.duration

    @property
    @abstractmethod
    def lowest_rate_hz(self) -> float:
        """Rate below which samples do not show the motion [Hz]."""

    @abstractmethod
    def derivative(self, t: Floats, order: int) -> Floats:
        """Compute the derivative (N, n) of order 0 (position) to 3 (jerk) at times t (N,) within the duration [s]."""

    def evaluate(self, t: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Compute positions, velocities and accelerations, each (N, n) for times (N,), or (n,) for one time [s]."""
        q, dq, ddq = (self._at(t, order) for order in range(3))
        return q, dq, ddq

    def motion(self, t: ArrayLike) -> PlannedMotion:
        """Compute positions, velocities, accelerations and jerks at times (N,) [s]."""
        return PlannedMotion(*(self._at(np.atleast_1d(t), order) for order in range(4)))

    def _at(self, t: ArrayLike, order: int) -> Floats:
        """Compute a derivative at times of any shape; refuse times outside the motion."""
        times = np.asarray(t, dtype=float)
        slack = SAME * self.duration
        if not np.all((times >= -slack) & (times <= self.duration + slack)):
            raise ArgumentError(
                f"a time lies outside the trajectory's 0 to {self.duration:g} s", remedy="Ask within its duration."
            )
        flat = np.clip(times.ravel(), 0.0, self.duration)
        return self.derivative(flat, order).reshape(*times.shape, self.dof)

    def times(self, rate_hz: float) -> Floats:
        """Make uniform times (N,) from zero to the end [s]; the last may lie up to one step beyond it."""
        if not rate_hz > 0.0:
            raise ArgumentError(f"the rate must be positive, not {rate_hz}", remedy="Give samples per second.")
        steps = int(np.ceil(self.duration * rate_hz * (1.0 - SAME)))
        return np.arange(steps + 1) / rate_hz

    def sample(self, rate_hz: float, joint_names: Sequence[str] | None = None) -> SampledTrajectory:
        """Sample the motion at a uniform rate, its end included.

        Args:
            rate_hz: Samples per second.
            joint_names: Names of the joints; ``joint1``, ``joint2``, ... by default.
        """
        time = self.times(rate_hz)
        names = tuple(joint_names) if joint_names is not None else tuple(f"joint{j + 1}" for j in range(self.dof))
        q, dq, ddq = self.evaluate(np.minimum(time, self.duration))
        return SampledTrajectory(time=time, q=q, dq=dq, ddq=ddq, joint_names=names)
