"""Control laws as formulas: what a drive computes at every control instant, recorded once and compiled.

A law is written in plain NumPy on numbers that are not known yet, so it must not branch on their values; `np.tanh`
serves for saturation. Between two instants its torque is held.
"""

from __future__ import annotations

import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.inverse_dynamics import rigid_body_torque, term_torque
from dynid.errors import ArgumentError
from dynid.kernels import inertia_matrix
from dynid.robot.model import Robot
from dynid.spatial import Array

__all__ = [
    "PD",
    "PID",
    "ComputedTorqueLaw",
    "ControlLaw",
    "Tracked",
    "UserLaw",
    "assumed_law",
    "following_law",
    "read_law",
    "refuse_idle",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tracked:
    """What a law sees at a control instant; every field (n,)."""

    q: Array
    """Measured positions [rad or m]"""
    dq: Array
    """Velocities [rad/s or m/s]"""
    q_wanted: Array
    dq_wanted: Array
    ddq_wanted: Array


class ControlLaw(ABC):
    """A formula for the torque."""

    def memory_size(self, dof: int) -> int:
        """Numbers that the law carries from one instant to the next; they start at zero."""
        return 0

    @abstractmethod
    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        """Torque (n,) [N m or N] and the new memory (m,); ``period`` is the time between instants [s]."""

    def stiffness(self, dof: int) -> Floats:
        """(n,) torque per position error [N m/rad or N/m]; NaN where it depends on the state."""
        return np.full(dof, np.nan)


def _gains(values: ArrayLike, name: str, dof: int | None = None) -> Floats:
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
    """``kp (q_r - q) + kd (dq_r - dq)``."""

    kp: ArrayLike
    """One number or (n,) [N m/rad or N/m]"""
    kd: ArrayLike
    """One number or (n,) [N m s/rad or N s/m]"""

    def __post_init__(self) -> None:
        """Refuse gains that are no numbers."""
        _gains(self.kp, "kp"), _gains(self.kd, "kd")

    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        dof = len(seen.q)
        kp, kd = _gains(self.kp, "kp", dof), _gains(self.kd, "kd", dof)
        return kp * (seen.q_wanted - seen.q) + kd * (seen.dq_wanted - seen.dq), memory

    def stiffness(self, dof: int) -> Floats:
        return np.array(np.broadcast_to(_gains(self.kp, "kp", dof), (dof,)))


@dataclass(frozen=True)
class PID(ControlLaw):
    """``kp e + ki sum(e) period + kd de``; the sum includes the present error."""

    kp: ArrayLike
    """One number or (n,) [N m/rad or N/m]"""
    ki: ArrayLike
    """One number or (n,) [N m/(rad s) or N/(m s)]"""
    kd: ArrayLike
    """One number or (n,) [N m s/rad or N s/m]"""

    def __post_init__(self) -> None:
        """Refuse gains that are no numbers."""
        _gains(self.kp, "kp"), _gains(self.ki, "ki"), _gains(self.kd, "kd")

    def memory_size(self, dof: int) -> int:
        return dof

    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        dof = len(seen.q)
        kp, ki, kd = (_gains(getattr(self, name), name, dof) for name in ("kp", "ki", "kd"))
        error = seen.q_wanted - seen.q
        total = memory + error * period
        return kp * error + ki * total + kd * (seen.dq_wanted - seen.dq), total

    def stiffness(self, dof: int) -> Floats:
        return np.array(np.broadcast_to(_gains(self.kp, "kp", dof), (dof,)))


@dataclass(frozen=True)
class ComputedTorqueLaw(ControlLaw):
    """``M(q) (ddq_r + kd de + kp e) + velocity(q, dq) + gravity(q) + friction(dq_r)``, by the controller's model."""

    model: Robot
    kp: ArrayLike = 400.0
    """One number or (n,) [1/s^2]"""
    kd: ArrayLike = 40.0
    """One number or (n,) [1/s]"""

    def __post_init__(self) -> None:
        """Refuse what is no robot, and gains that are no numbers."""
        if not isinstance(self.model, Robot):
            raise ArgumentError(f"the controller's model is {self.model!r}", remedy="Give a dynid.Robot.")
        _gains(self.kp, "kp"), _gains(self.kd, "kd")

    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        model, theta, dof = self.model, self.model.parameter_vector, len(seen.q)
        if model.dof != dof:
            raise ArgumentError(
                f"the controller's model '{model.name}' has {model.dof} moving joints, the robot has {dof}",
                remedy="Give ComputedTorqueLaw the model of this robot.",
            )
        error, rate = seen.q_wanted - seen.q, seen.dq_wanted - seen.dq
        wanted = seen.ddq_wanted + _gains(self.kd, "kd", dof) * rate + _gains(self.kp, "kp", dof) * error
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
    """Numbers it carries from one instant to the next."""

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
    """A stiff, critically damped PD law for a loop that is not known.

    What the arm does below the bandwidth hardly depends on the law; what it does above is not to be trusted, and the
    test of `dynid.estimation.closed_loop.law_test` says when that matters.

    Args:
        robot: With prior values of its parameters, which scale the gains.
        bandwidth_hz: Of each joint's position loop [Hz].
        q: (N, n) where the inertia is taken, the mean of its diagonal; random configurations by default.
    """
    w = _angular(bandwidth_hz)
    where = np.random.default_rng(0).uniform(-np.pi, np.pi, (64, robot.dof)) if q is None else np.asarray(q, float)
    inertia = np.diagonal(inertia_matrix(robot, np.atleast_2d(where)), axis1=1, axis2=2).mean(axis=0)
    if not (inertia > 0.0).all():
        raise ArgumentError(
            f"the prior of robot '{robot.name}' has no inertia about some joint", remedy="Give prior values, or gains."
        )
    return PD(kp=inertia * w**2, kd=inertia * 2.0 * w)


def following_law(model: Robot, bandwidth_hz: float = 5.0) -> ComputedTorqueLaw:
    """Computed torque, critically damped, for a loop of which neither law nor commanded motion is known.

    The measured motion then stands for the commanded one, so that there is no tracking error from which a PD law could
    make torques: simulated, it would lag by torque over stiffness behind what the robot did.

    Args:
        model: With values near the data.
        bandwidth_hz: Of each joint's position loop [Hz].
    """
    w = _angular(bandwidth_hz)
    return ComputedTorqueLaw(model, kp=w**2, kd=2.0 * w)


def _angular(bandwidth_hz: float) -> float:
    """A bandwidth in rad/s."""
    if not 0.0 < bandwidth_hz < np.inf:
        raise ArgumentError(f"bandwidth_hz is {bandwidth_hz}", remedy="Give a finite frequency [Hz] above zero.")
    return 2.0 * np.pi * bandwidth_hz


def refuse_idle(law: ControlLaw, joint_names: Sequence[str]) -> None:
    """Refuse gains of which some joint has none: nothing makes it follow.

    Raises:
        ArgumentError: The joints are named.
    """
    if not isinstance(law, PD | PID):
        return
    dof = len(joint_names)
    gains = [_gains(getattr(law, name), name, dof) for name in ("kp", "ki", "kd") if hasattr(law, name)]
    idle = np.array([np.broadcast_to(gain, (dof,)) for gain in gains]).sum(axis=0) == 0.0
    if idle.any():
        named = ", ".join(np.array(joint_names)[idle].tolist())
        raise ArgumentError(f"all gains of {named} are zero", remedy="Give the gains by which it is controlled.")


_KINDS: dict[str, tuple[Callable[..., ControlLaw], tuple[str, ...]]] = {
    "pd": (PD, ("kp", "kd")),
    "pid": (PID, ("kp", "ki", "kd")),
    "computed_torque": (ComputedTorqueLaw, ("kp", "kd")),
}


def read_law(path: str | Path, model: Robot | None = None) -> ControlLaw:
    """A law from a TOML file: ``kind`` ("pd", "pid" or "computed_torque") and its gains, ``kp = [...]`` and so on.

    Args:
        path: The file.
        model: The controller's own model of the robot, for computed torque.

    Raises:
        ArgumentError: The file is no such description; the message says what is missing.
    """
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"it cannot be read: {error}", path=path, remedy="Give a text file in UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise ArgumentError(
            f"it cannot be read as TOML: {error}",
            path=path,
            remedy="Write kp = [300.0, 60.0]: closed brackets, and a digit on both sides of every decimal point.",
        ) from error
    kind = table.pop("kind", None)
    headings = [name for name, value in table.items() if isinstance(value, dict)]
    if kind is None and headings:
        raise ArgumentError(
            f"the law stands under a heading, [{headings[0]}]",
            path=path,
            remedy="Leave the heading out: kind and gains stand at the top.",
        )
    if not isinstance(kind, str) or kind not in _KINDS:
        said = "it has no kind" if kind is None else f"kind is {kind!r}"
        raise ArgumentError(said, path=path, remedy=f"Give kind, one of {', '.join(_KINDS)}.")
    make, names = _KINDS[kind]
    unknown = [name for name in table if name not in names]
    if unknown:
        raise ArgumentError(
            f"a law of kind {kind!r} has no {', '.join(unknown)}",
            path=path,
            remedy=f"Give {', '.join(names)}; other terms, such as feed-forward, need a UserLaw in Python.",
        )
    if set(table) != set(names):
        raise ArgumentError(f"it has {', '.join(table) or 'no gains'}", path=path, remedy=f"Give {', '.join(names)}.")
    for name, value in table.items():
        numbers = value if isinstance(value, list) else [value]
        if not all(type(number) in (int, float) for number in numbers):
            raise ArgumentError(f"{name} is {value!r}", path=path, remedy="Give a number, or one per joint.")
    if kind == "computed_torque":
        if model is None:
            raise ArgumentError(
                "computed torque needs the controller's model", path=path, remedy="Call read_law(path, model=robot)."
            )
        table["model"] = model
    try:
        return make(**table)
    except ArgumentError as error:
        raise ArgumentError(error.reason, path=path, remedy=error.remedy) from error
