"""The loop that a log was recorded in: which law made the robot follow which motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.loop.laws import ControlLaw

__all__ = ["Loop", "ReferenceMotion", "counted", "refuse_no_law"]

Floats = NDArray[np.float64]
TimeFunction = Callable[[Floats], tuple[Floats, Floats, Floats]]
GENTLE = 0.1
"""Speed below which smoothed friction suits steps of a hundredth of a second [rad/s or m/s]."""


def counted(value: Any, name: str) -> int:
    """A whole number, one or more.

    Raises:
        ArgumentError: It is something else.
    """
    if not isinstance(value, int | np.integer) or value < 1:
        raise ArgumentError(f"{name} is {value!r}", remedy="Give a whole number, one or more.")
    return int(value)


def refuse_no_law(law: Any) -> None:
    """Refuse what is no control law.

    Raises:
        ArgumentError: So it is.
    """
    if not isinstance(law, ControlLaw):
        remedy = "Wrap your function: UserLaw(function)." if callable(law) else "Give PD(kp, kd), for example."
        raise ArgumentError(f"the law of a loop is {law!r}", remedy=remedy)


def _positive(value: Any, name: str) -> None:
    if not 0.0 < value < np.inf:
        raise ArgumentError(f"{name} is {value!r}", remedy="Give a finite number above zero.")


def _finite_row(values: Any, size: int) -> bool:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        return False
    return array.shape == (size,) and bool(np.isfinite(array).all())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferenceMotion:
    """The commanded motion at the M control instants."""

    q: Floats
    """(M, n) [rad or m]"""
    dq: Floats
    """(M, n)"""
    ddq: Floats
    """(M, n)"""
    rate_hz: float
    """Control rate [Hz]"""

    def __post_init__(self) -> None:
        """Check shapes and freeze the arrays."""
        shape = np.shape(self.q)
        for name in ("q", "dq", "ddq"):
            value = np.array(getattr(self, name), dtype=float)
            if value.ndim != 2 or value.shape != shape or not np.isfinite(value).all():
                raise ArgumentError(f"{name} of the reference is no finite (M, n) array", remedy="Give one row each.")
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        _positive(self.rate_hz, "rate_hz of the reference")
        if not self.q.size:
            raise ArgumentError("a reference needs one row or more")

    @classmethod
    def of(
        cls, motion: Trajectory | TimeFunction, *, rate_hz: float, duration_s: float | None = None
    ) -> ReferenceMotion:
        """A trajectory, or a function of time (N,) that returns (q, dq, ddq), at the control instants.

        Args:
            motion: What is commanded.
            rate_hz: Control rate [Hz].
            duration_s: How long [s]; needed with a function, the trajectory's own otherwise.
        """
        if duration_s is None:
            if not isinstance(motion, Trajectory):
                raise ArgumentError("a motion given as a function has no end", remedy="Give duration_s.")
            duration_s = motion.duration
        _positive(rate_hz, "rate_hz")
        _positive(duration_s, "duration_s")
        time = np.arange(int(np.floor(duration_s * rate_hz * (1 + 1e-12))) + 1) / rate_hz
        states = motion.evaluate(time) if isinstance(motion, Trajectory) else motion(time)
        if not isinstance(states, tuple) or len(states) != 3:
            raise ArgumentError(
                "the motion does not return (q, dq, ddq)", remedy="Return three arrays (N, n) for N instants."
            )
        q, dq, ddq = states
        return cls(q=q, dq=dq, ddq=ddq, rate_hz=rate_hz)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loop:
    """A law, what it was to follow, and how closely the arm between the instants is computed."""

    law: ControlLaw
    reference: ReferenceMotion
    q0: Floats | None = None
    """(n,) positions at the first instant; the reference's by default"""
    dq0: Floats | None = None
    """(n,) velocities at the first instant; the reference's by default"""
    memory0: Floats | None = None
    """(m,) memory of the law at the first instant, roughly; zero by default"""
    start_known: bool = True
    """Whether all these are as good as exact; else DIDIM, CLOE and CLIE of logs in memory do not rely on them."""
    start_s: float = 0.0
    """Time of the first instant on the log's clock [s]"""
    friction_speed: float | tuple[float, ...] | None = None
    """Dry friction rises smoothly from rest to its level at this speed [rad/s or m/s]: of all joints, or (n + 1,) of
    each and of motors that turn with several; None takes the smallest that a few steps of the integrator follow."""
    substeps: int | None = None
    """Runge-Kutta steps between two instants; None takes one, and more where a joint with dry friction turns round."""

    def __post_init__(self) -> None:
        """Refuse what is no loop."""
        refuse_no_law(self.law)
        if not isinstance(self.reference, ReferenceMotion):
            raise ArgumentError(
                f"the reference of a loop is a {type(self.reference).__name__}",
                remedy="Build it with ReferenceMotion.of(motion, rate_hz=...).",
            )
        for name in ("q0", "dq0"):
            given = getattr(self, name)
            if given is not None and not _finite_row(given, self.dof):
                raise ArgumentError(
                    f"{name} is {given!r}",
                    remedy=f"Give {self.dof} finite numbers, as many as the reference has joints.",
                )
        size = self.law.memory_size(self.dof)
        if self.memory0 is not None and not _finite_row(self.memory0, size):
            raise ArgumentError(
                f"memory0 is {self.memory0!r}", remedy=f"Give {size} finite numbers, as many as the law remembers."
            )
        if not np.isfinite(self.start_s):
            raise ArgumentError(f"start_s is {self.start_s}", remedy="Give a finite time [s].")
        stated = self.friction_speed
        for speed in stated if isinstance(stated, tuple) else () if stated is None else (stated,):
            _positive(speed, "friction_speed")
        if isinstance(stated, tuple) and len(stated) != self.dof + 1:
            raise ArgumentError(
                f"friction_speed has {len(stated)} numbers",
                remedy=f"Give one, or {self.dof + 1}: of each joint, and of motors that turn with several.",
            )
        if self.substeps is not None:
            counted(self.substeps, "substeps")

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
        q0 = self.reference.q[0] if self.q0 is None else np.asarray(self.q0, dtype=float)
        dq0 = self.reference.dq[0] if self.dq0 is None else np.asarray(self.dq0, dtype=float)
        return np.concatenate([q0, dq0, [0.0]])

    @property
    def smooth_below(self) -> tuple[float, ...]:
        """(n + 1,) `friction_speed` of each joint and of motors that turn with several, once it is known."""
        if self.friction_speed is None:
            raise ArgumentError("friction_speed is None", remedy="Give a speed [rad/s or m/s].")
        stated = self.friction_speed
        return stated if isinstance(stated, tuple) else (stated,) * (self.dof + 1)

    @property
    def gentle_speed(self) -> float:
        """`friction_speed`, or that for methods whose steps are as long as samples are apart [rad/s or m/s]."""
        return self.friction_speed if isinstance(self.friction_speed, float | int) else GENTLE

    @property
    def start_memory(self) -> Floats:
        """(m,) the law's memory at the first instant."""
        given = self.memory0
        return np.zeros(self.law.memory_size(self.dof)) if given is None else np.asarray(given, dtype=float)


Reference = ReferenceMotion
"""Shorter, within the package."""
