"""Trajectories: joint positions as smooth functions of time, with exact derivatives."""

from __future__ import annotations

import csv
import io
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import ArgumentError, ExportError
from dynid.files import write_atomically


def _csv_line(words: list[str]) -> str:
    """Words as one CSV row, quoted where a name has a comma, a quote or a line break."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow(words)
    return stream.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """A motion at uniform times, from rest to rest where the trajectory is."""

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

    def __post_init__(self) -> None:
        """Check the shapes and freeze the arrays."""
        shape = (len(self.time), len(self.joint_names))
        for name in ("time", "q", "dq", "ddq"):
            array = np.array(getattr(self, name), dtype=float)
            if array.shape != (shape if name != "time" else shape[:1]):
                raise ArgumentError(f"{name} has shape {array.shape}, expected {shape}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.time)

    @property
    def rate_hz(self) -> float:
        """Samples per second."""
        return (len(self) - 1) / float(self.time[-1]) if len(self) > 1 else 0.0

    def to_csv(self, path: str | os.PathLike[str], *, force: bool = True) -> None:
        """Write time, positions, velocities and accelerations, one row per sample, with a header of names."""
        header = ["time", *(f"{kind}_{name}" for kind in ("q", "dq", "ddq") for name in self.joint_names)]
        rows = np.column_stack([self.time, self.q, self.dq, self.ddq])
        lines = [_csv_line(header), *(",".join(map(repr, row)) for row in rows.tolist())]
        write_atomically(path, "\n".join(lines) + "\n", force=force)

    def ros_message(self) -> dict[str, Any]:
        """A ``trajectory_msgs/JointTrajectory`` as plain dictionaries and lists."""
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
        return {"joint_names": list(self.joint_names), "points": points}

    def ros_yaml(self) -> str:
        """The same message as ``ros2 topic pub`` takes it: YAML in the notation of JSON."""
        return json.dumps(self.ros_message(), indent=1) + "\n"

    def urscript(self, *, name: str = "excitation", lookahead_s: float = 0.1, gain: int = 300) -> str:
        """A URScript program that moves to the first position and then streams the positions by ``servoj``.

        Args:
            name: Name of the program.
            lookahead_s: Smoothing horizon of ``servoj``, 0.03 to 0.2 s.
            gain: Proportional gain of ``servoj``, 100 to 2000.
        """
        if self.q.shape[1] != 6:
            raise ExportError(
                f"URScript moves six joints, not {self.q.shape[1]}", remedy="Write CSV, JSON or ROS instead."
            )
        if not name.isidentifier():
            raise ArgumentError(f"'{name}' is not a name URScript can use", remedy="Use letters, digits and _.")
        step = f"t={1.0 / self.rate_hz:.9g}, lookahead_time={lookahead_s:g}, gain={gain}"
        targets = ["[" + ", ".join(f"{value:.9g}" for value in row) + "]" for row in self.q.tolist()]
        moves = [f"  servoj({target}, {step})" for target in targets]
        return "\n".join([f"def {name}():", f"  movej({targets[0]})", *moves, "  stopj(2.0)", "end", f"{name}()", ""])


ROUNDING = 1e-9
"""Share of a duration, of a limit or of a matrix that counts as rounding. Convention."""


class Motion(NamedTuple):
    """Joint positions and their first three derivatives at N times."""

    q: Floats
    """(N, n) [rad or m]"""
    dq: Floats
    """(N, n) [rad/s or m/s]"""
    ddq: Floats
    """(N, n) [rad/s^2 or m/s^2]"""
    jerk: Floats
    """(N, n) [rad/s^3 or m/s^3]"""


class Trajectory(ABC):
    """A motion of n joints over the times 0 ... `duration`."""

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
        """Derivative of order 0 (position) to 3 (jerk) at times t (N,) within the duration: (N, n)."""

    def evaluate(self, t: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Positions, velocities and accelerations, each (N, n) for times (N,) or (n,) for one time [s]."""
        q, dq, ddq = (self._at(t, order) for order in range(3))
        return q, dq, ddq

    def jerk(self, t: ArrayLike) -> Floats:
        """Third derivative of the positions, (N, n) or (n,)."""
        return self._at(t, 3)

    def motion(self, t: ArrayLike) -> Motion:
        """Positions to jerks at times (N,)."""
        return Motion(*(self._at(np.atleast_1d(t), order) for order in range(4)))

    def _at(self, t: ArrayLike, order: int) -> Floats:
        times = np.asarray(t, dtype=float)
        slack = ROUNDING * self.duration
        if not np.all((times >= -slack) & (times <= self.duration + slack)):
            raise ArgumentError(
                f"a time lies outside the trajectory's 0 to {self.duration:g} s", remedy="Ask within its duration."
            )
        flat = np.clip(times.ravel(), 0.0, self.duration)
        return self.derivative(flat, order).reshape(*times.shape, self.dof)

    def times(self, rate_hz: float) -> Floats:
        """Uniform times (N,) from zero to the end; the last may lie up to one step beyond it."""
        if not rate_hz > 0.0:
            raise ArgumentError(f"the rate must be positive, not {rate_hz}", remedy="Give samples per second.")
        steps = int(np.ceil(self.duration * rate_hz * (1.0 - ROUNDING)))
        return np.arange(steps + 1) / rate_hz

    def sample(self, rate_hz: float, joint_names: Sequence[str] | None = None) -> Samples:
        """The motion at a uniform rate, its end included.

        Args:
            rate_hz: Samples per second.
            joint_names: Names of the joints; ``joint1``, ``joint2``, ... by default.
        """
        time = self.times(rate_hz)
        names = tuple(joint_names) if joint_names is not None else tuple(f"joint{j + 1}" for j in range(self.dof))
        q, dq, ddq = self.evaluate(np.minimum(time, self.duration))
        return Samples(time=time, q=q, dq=dq, ddq=ddq, joint_names=names)

    def peak(self, order: int, samples: int = 2001) -> Floats:
        """Largest absolute derivative of each joint (n,), over a number of samples."""
        return np.asarray(np.abs(self.derivative(np.linspace(0.0, self.duration, samples), order)).max(axis=0))
