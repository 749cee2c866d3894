"""A control loop: the law, the commanded motion that it follows, and where it starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynid.array_types import Floats
from dynid.checks import as_number, as_row, as_whole
from dynid.control_loop.laws import ControlLaw, check_law
from dynid.errors import ArgumentError
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.robot.model import Robot
from dynid.spatial import EXACT

TimeFunction = Callable[[Floats], tuple[Floats, Floats, Floats]]
"""Positions, velocities and accelerations (N, n) as a function of N times [s]."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferenceMotion:
    """The commanded motion at the M control instants."""

    q: Floats
    """(M, n) positions [rad or m]."""
    dq: Floats
    """(M, n) velocities [rad/s or m/s]."""
    ddq: Floats
    """(M, n) accelerations [rad/s^2 or m/s^2]."""
    rate_hz: float
    """Control rate [Hz]."""

    def __post_init__(self) -> None:
        """Check shapes and freeze the arrays."""
        shape = np.shape(self.q)
        for name in ("q", "dq", "ddq"):
            value = np.array(getattr(self, name), dtype=float)
            if value.ndim != 2 or value.shape != shape or not np.isfinite(value).all():
                raise ArgumentError(f"{name} of the reference is no finite (M, n) array", remedy="Give one row each.")
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        as_number("rate_hz of the reference", self.rate_hz, above=0.0)
        if not self.q.size:
            raise ArgumentError("a reference needs one row or more")

    @property
    def samples(self) -> Floats:
        """(M, 4 n) what a law reads at each instant: position, velocity, acceleration, and no noise of positions."""
        return np.hstack([self.q, self.dq, self.ddq, np.zeros_like(self.q)])

    @classmethod
    def of(
        cls, motion: Trajectory | TimeFunction, *, rate_hz: float, duration_s: float | None = None
    ) -> ReferenceMotion:
        """Sample a motion at the control instants.

        Args:
            motion: The commanded motion: a trajectory, or a function of N times that returns (q, dq, ddq), each (N, n).
            rate_hz: Control rate [Hz].
            duration_s: Length of the motion [s]; needed with a function, by default the trajectory's own.
        """
        if duration_s is None:
            if not isinstance(motion, Trajectory):
                raise ArgumentError("a motion given as a function has no end", remedy="Give duration_s.")
            duration_s = motion.duration
        as_number("rate_hz", rate_hz, above=0.0)
        as_number("duration_s", duration_s, above=0.0)
        time = np.arange(int(np.floor(duration_s * rate_hz * (1 + EXACT))) + 1) / rate_hz
        states = motion.evaluate(time) if isinstance(motion, Trajectory) else motion(time)
        if not isinstance(states, tuple) or len(states) != 3:
            raise ArgumentError(
                "the motion does not return (q, dq, ddq)", remedy="Return three arrays (N, n) for N instants."
            )
        q, dq, ddq = states
        return cls(q=q, dq=dq, ddq=ddq, rate_hz=rate_hz)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loop:
    """A law, the motion that it follows, the initial state, and how finely the simulation steps."""

    law: ControlLaw
    """The control law."""
    reference: ReferenceMotion
    """The commanded motion."""
    q0: Floats | None = None
    """(n,) positions at the first instant [rad or m]; the reference's by default."""
    dq0: Floats | None = None
    """(n,) velocities at the first instant [rad/s or m/s]; the reference's by default."""
    memory0: Floats | None = None
    """(m,) memory of the law at the first instant, such as the integral of PID; zero by default."""
    start_s: float = 0.0
    """Time of the first instant on the log's clock [s]."""
    friction_speed: float | tuple[float, ...] | None = None
    """Speed at which smoothed dry friction reaches its full level [rad/s or m/s]: one for all joints, or (n + 1,), one
    per joint and one for motors that turn with several joints; None for the smallest that a few steps can follow."""
    substeps: int | None = None
    """Runge-Kutta steps between two instants; None for one, and more where a joint with dry friction reverses."""

    def __post_init__(self) -> None:
        """Check the types of all fields, and their lengths against the reference."""
        check_law(self.law)
        if not isinstance(self.reference, ReferenceMotion):
            raise ArgumentError(
                f"the reference of a loop is a {type(self.reference).__name__}",
                remedy="Build it with ReferenceMotion.of(motion, rate_hz=...).",
            )
        as_number("start_s", self.start_s)
        for name, size in {"q0": self.dof, "dq0": self.dof, "memory0": self.law.memory_size(self.dof)}.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_row(name, getattr(self, name), size))
        if self.friction_speed is not None:
            each = "one per joint, and one for motors that turn with several joints"
            as_row("friction_speed", self.friction_speed, self.dof + 1, same=True, above=0.0, each=each)
        if self.substeps is not None:
            as_whole("substeps", self.substeps, least=1)

    def check_joints(self, robot: Robot) -> None:
        """Refuse a robot with more or fewer joints than the reference.

        Raises:
            ArgumentError: Their numbers of joints differ.
        """
        if self.dof != robot.dof:
            raise ArgumentError(
                f"robot '{robot.name}' has {robot.dof} moving joints, the reference has {self.dof}",
                remedy="Hold the joints that do not move, or give a reference for every joint.",
            )

    @property
    def dof(self) -> int:
        """Number of joints."""
        return int(self.reference.q.shape[1])

    @property
    def period_s(self) -> float:
        """Time between two control instants [s]."""
        return 1.0 / self.reference.rate_hz

    @property
    def start(self) -> Floats:
        """(2 n + 1,) state at the first instant: positions, velocities, no work done."""
        q0 = self.reference.q[0] if self.q0 is None else self.q0
        dq0 = self.reference.dq[0] if self.dq0 is None else self.dq0
        return np.concatenate([q0, dq0, [0.0]])

    @property
    def friction_speeds(self) -> tuple[float, ...]:
        """(n + 1,) `friction_speed` of each joint, then of motors that turn with several joints [rad/s or m/s].

        Raises:
            ArgumentError: It is not chosen yet; `dynid.control_loop.pace.choose_friction_speed` does that.
        """
        if self.friction_speed is None:
            raise ArgumentError("friction_speed is None", remedy="Give a speed [rad/s or m/s].")
        return tuple(np.broadcast_to(self.friction_speed, self.dof + 1).tolist())

    @property
    def start_memory(self) -> Floats:
        """(m,) the law's memory at the first instant."""
        return np.zeros(self.law.memory_size(self.dof)) if self.memory0 is None else self.memory0
