"""Control laws as formulas: the torque that a drive computes at every control instant, recorded once and compiled.

A law is written in plain NumPy and recorded with symbols in place of numbers, so it must not branch on values;
`np.tanh` serves for saturation. Between two control instants the torque is constant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_number
from dynid.dynamics.inverse_dynamics import rigid_body_torque, term_torque
from dynid.errors import ArgumentError
from dynid.kernels import inertia_matrix
from dynid.robot.model import Robot
from dynid.spatial import Array

_POSES = 64
"""Random positions over which `assumed_law` averages the inertia. Convention."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """Measured and commanded motion at a control instant; every field (n,)."""

    q: Array
    """Measured positions [rad or m]."""
    dq: Array
    """Measured velocities [rad/s or m/s]."""
    q_wanted: Array
    """Commanded positions [rad or m]."""
    dq_wanted: Array
    """Commanded velocities [rad/s or m/s]."""
    ddq_wanted: Array
    """Commanded accelerations [rad/s^2 or m/s^2]."""


class ControlLaw(ABC):
    """A formula for the torque, with a memory of m numbers that pass from one control instant to the next."""

    def memory_size(self, dof: int) -> int:
        """Number m of remembered numbers; they start at zero."""
        return 0

    @abstractmethod
    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        """Torque (n,) [N m or N] and the new memory (m,); ``period`` is the time between instants [s]."""

    def stiffness(self, dof: int) -> Floats:
        """(n,) torque per position error [N m/rad or N/m]; NaN where it depends on the state."""
        return np.full(dof, np.nan)

    def check_joints(self, joint_names: Sequence[str]) -> None:  # noqa: B027 (most laws control every joint)
        """Refuse joints that the law does not control.

        Raises:
            ArgumentError: All gains of some joint are zero; the joints are named.
        """


def check_law(law: object) -> None:
    """Refuse an object that is no control law.

    Raises:
        ArgumentError: It is none; a bare function has to be wrapped.
    """
    if not isinstance(law, ControlLaw):
        remedy = "Wrap your function: UserLaw(function)." if callable(law) else "Give PD(kp, kd), for example."
        raise ArgumentError(f"the law of a loop is {law!r}", remedy=remedy)


def check_gains(joint_names: Sequence[str], **gains: ArrayLike) -> None:
    """Refuse gains that are all zero for some joint: nothing makes it follow."""
    dof = len(joint_names)
    total = sum(np.broadcast_to(as_gains(values, name, dof), (dof,)) for name, values in gains.items())
    idle = np.asarray(total) == 0.0
    if idle.any():
        named = ", ".join(np.array(joint_names)[idle].tolist())
        raise ArgumentError(f"all gains of {named} are zero", remedy="Give the gains by which it is controlled.")


def as_gains(values: ArrayLike, name: str, dof: int | None = None) -> Floats:
    """Gains from zero on, one for all joints or one per joint."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"the gain {name} is {values!r}", remedy="Give numbers.") from error
    if array.ndim > 1 or array.size == 0 or (dof is not None and array.size not in (1, dof)):
        raise ArgumentError(
            f"gains {name} have shape {array.shape}", remedy="Give one number, or one per moving joint, in order."
        )
    if not (np.isfinite(array).all() and (array >= 0.0).all()):
        raise ArgumentError(
            f"a gain of {name} is negative or not finite: {array.tolist()}",
            remedy="Give numbers from zero on; they act on wanted minus measured.",
        )
    return array


@dataclass(frozen=True)
class PD(ControlLaw):
    """Proportional and derivative: ``kp (q_r - q) + kd (dq_r - dq)``."""

    kp: ArrayLike
    """Gains of the position error, one number or (n,) [N m/rad or N/m]."""
    kd: ArrayLike
    """Gains of the velocity error, one number or (n,) [N m s/rad or N s/m]."""

    def __post_init__(self) -> None:
        """Refuse gains that are no numbers from zero on."""
        as_gains(self.kp, "kp")
        as_gains(self.kd, "kd")

    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        dof = len(seen.q)
        kp, kd = as_gains(self.kp, "kp", dof), as_gains(self.kd, "kd", dof)
        return kp * (seen.q_wanted - seen.q) + kd * (seen.dq_wanted - seen.dq), memory

    def stiffness(self, dof: int) -> Floats:
        return np.array(np.broadcast_to(as_gains(self.kp, "kp", dof), (dof,)))

    def check_joints(self, joint_names: Sequence[str]) -> None:
        check_gains(joint_names, kp=self.kp, kd=self.kd)


@dataclass(frozen=True)
class PID(ControlLaw):
    """Proportional, integral, derivative: ``kp e + ki sum(e) period + kd de``; the sum includes the present error."""

    kp: ArrayLike
    """Gains of the position error, one number or (n,) [N m/rad or N/m]."""
    ki: ArrayLike
    """Gains of the integral of the position error, one number or (n,) [N m/(rad s) or N/(m s)]."""
    kd: ArrayLike
    """Gains of the velocity error, one number or (n,) [N m s/rad or N s/m]."""

    def __post_init__(self) -> None:
        """Refuse gains that are no numbers from zero on."""
        as_gains(self.kp, "kp")
        as_gains(self.ki, "ki")
        as_gains(self.kd, "kd")

    def memory_size(self, dof: int) -> int:
        return dof

    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        dof = len(seen.q)
        kp, ki, kd = (as_gains(getattr(self, name), name, dof) for name in ("kp", "ki", "kd"))
        error = seen.q_wanted - seen.q
        total = memory + error * period
        return kp * error + ki * total + kd * (seen.dq_wanted - seen.dq), total

    def stiffness(self, dof: int) -> Floats:
        return np.array(np.broadcast_to(as_gains(self.kp, "kp", dof), (dof,)))

    def check_joints(self, joint_names: Sequence[str]) -> None:
        check_gains(joint_names, kp=self.kp, ki=self.ki, kd=self.kd)


@dataclass(frozen=True)
class ComputedTorqueLaw(ControlLaw):
    """``M(q) (ddq_r + kd de + kp e) + velocity(q, dq) + gravity(q) + friction(dq_r)``, by the controller's model."""

    model: Robot
    """The controller's own model of the robot."""
    kp: ArrayLike = 400.0
    """Gains of the position error, one number or (n,) [1/s^2]. Default: convention, 20 rad/s critically damped."""
    kd: ArrayLike = 40.0
    """Gains of the velocity error, one number or (n,) [1/s]."""

    def __post_init__(self) -> None:
        """Refuse a model that is no robot, and gains that are no numbers from zero on."""
        if not isinstance(self.model, Robot):
            raise ArgumentError(f"the controller's model is {self.model!r}", remedy="Give a dynid.Robot.")
        as_gains(self.kp, "kp")
        as_gains(self.kd, "kd")

    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        model, theta, dof = self.model, self.model.parameter_vector, len(seen.q)
        if model.dof != dof:
            raise ArgumentError(
                f"the controller's model '{model.name}' has {model.dof} moving joints, the robot has {dof}",
                remedy="Give ComputedTorqueLaw the model of this robot.",
            )
        error, rate = seen.q_wanted - seen.q, seen.dq_wanted - seen.dq
        wanted = seen.ddq_wanted + as_gains(self.kd, "kd", dof) * rate + as_gains(self.kp, "kp", dof) * error
        links = rigid_body_torque(model, theta, seen.q, seen.dq, wanted)
        return links + term_torque(model, theta, seen.q, seen.dq_wanted, wanted), memory


_FORM = (
    "Write f(q, dq, q_r, dq_r, ddq_r, memory, period) in plain NumPy on arrays, without branches on values and without "
    "float(), clip, where, minimum or round; np.tanh saturates."
)


@dataclass(frozen=True)
class UserLaw(ControlLaw):
    """A user's own formula."""

    function: Callable[..., Any]
    """``f(q, dq, q_r, dq_r, ddq_r, memory, period)`` -> torque (n,), or (torque, new memory) where it has memory."""
    memory: int = 0
    """Number of remembered numbers."""

    def __post_init__(self) -> None:
        """Refuse what cannot be called, and memory that cannot be counted."""
        if not callable(self.function):
            raise ArgumentError(f"the law {self.function!r} is no function", remedy=_FORM)
        if not isinstance(self.memory, int) or self.memory < 0:
            raise ArgumentError(f"memory is {self.memory!r}", remedy="Give a whole number, zero or more.")

    def memory_size(self, dof: int) -> int:
        return self.memory

    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        wanted = (seen.q_wanted, seen.dq_wanted, seen.ddq_wanted)
        name = getattr(self.function, "__name__", "law")
        try:
            result = self.function(seen.q, seen.dq, *wanted, memory, period)
        except Exception as error:  # whatever a user's function raises
            reason = error.reason if isinstance(error, ArgumentError) else f"{type(error).__name__}: {error}"
            raise ArgumentError(f"the law '{name}' cannot be recorded: {reason}", remedy=_FORM) from error
        torque, later = result if isinstance(result, tuple) else (result, memory)
        if np.shape(torque) != np.shape(seen.q) or np.shape(later) != np.shape(memory):
            raise ArgumentError(
                f"the law '{name}' returns torques {np.shape(torque)} and memory {np.shape(later)}",
                remedy=f"Return {np.shape(seen.q)} torques, and {np.shape(memory)} numbers to remember.",
            )
        return torque, later


def assumed_law(robot: Robot, bandwidth_hz: float = 5.0, q: ArrayLike | None = None) -> PD:
    """A stiff, critically damped PD law for a loop whose law is unknown.

    Below the bandwidth the arm's motion hardly depends on the law; above it the simulated motion is not reliable. The
    test of `dynid.estimation.closed_loop.law_test` finds out when that matters.

    Args:
        robot: The robot with prior values of its parameters, which scale the gains.
        bandwidth_hz: Bandwidth of each joint's position loop [Hz].
        q: (N, n) positions over which the diagonal of the inertia matrix is averaged [rad or m]; random by default.

    Example:
        >>> type(dynid.loop.assumed_law(robot)).__name__
        'PD'
    """
    w = _angular(bandwidth_hz)
    where = np.random.default_rng(0).uniform(-np.pi, np.pi, (_POSES, robot.dof)) if q is None else np.asarray(q, float)
    inertia = np.diagonal(inertia_matrix(robot, np.atleast_2d(where)), axis1=1, axis2=2).mean(axis=0)
    if not (inertia > 0.0).all():
        raise ArgumentError(
            f"the prior of robot '{robot.name}' has no inertia about some joint", remedy="Give prior values, or gains."
        )
    return PD(kp=inertia * w**2, kd=inertia * 2.0 * w)


def following_law(model: Robot, bandwidth_hz: float = 5.0) -> ComputedTorqueLaw:
    """Computed torque, critically damped, for a loop whose law and commanded motion are both unknown.

    The measured motion then stands in for the commanded motion, so there is no tracking error from which a PD law could
    make torques: simulated, a PD law would lag behind the robot by torque over stiffness.

    Args:
        model: The robot with parameters that fit the data roughly.
        bandwidth_hz: Bandwidth of each joint's position loop [Hz].
    """
    w = _angular(bandwidth_hz)
    return ComputedTorqueLaw(model, kp=w**2, kd=2.0 * w)


def _angular(bandwidth_hz: float) -> float:
    """A bandwidth in rad/s."""
    return 2.0 * np.pi * as_number("bandwidth_hz", bandwidth_hz, above=0.0)
