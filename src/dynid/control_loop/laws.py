"""Control laws: formulas for the torque that a drive computes at every control instant, recorded once and compiled.

A law is written in plain NumPy and recorded with symbols in place of numbers, so it must not branch on values;
`np.tanh` serves for saturation. Between two control instants the torque is constant.

The laws are `PD`, `PID`, `Cascade`, `ComputedTorqueLaw` and a user's own function (`UserLaw`). `assumed_law` makes one
for a robot whose law is unknown; `read_law` reads one from a TOML file, such as ``kind = "pd"`` and its gains.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.checks import as_number, as_whole
from dynid.compiled import inertia_matrix
from dynid.dynamics.inverse_dynamics import rigid_body_torque, term_torque
from dynid.errors import ArgumentError
from dynid.robot.model import Robot
from dynid.safe_files.small_files import read_toml
from dynid.spatial import Array

_POSE_COUNT = 64
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
    """Base class of the laws: a formula for the torque, with m numbers kept from one control instant to the next."""

    gain_names: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that hold gains: not negative, one for all joints or one per joint."""

    def __post_init__(self) -> None:
        """Refuse gains that are not numbers, or negative."""
        for name in self.gain_names:
            as_gains(getattr(self, name), name)

    def memory_size(self, dof: int) -> int:
        """Count the numbers m that the law keeps; they start at zero. By default none, for any number of joints."""
        return 0

    @abstractmethod
    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        """Compute the torque (n,) [N m or N] and the new memory (m,); ``period`` is the time between instants [s].

        A law need not use all arguments.
        """

    def gains(self, dof: int) -> list[Floats]:
        """List the gains in the order of `gain_names`, each (n,)."""
        return [as_gains(getattr(self, name), name, dof) for name in self.gain_names]

    def check_joints(self, joint_names: Sequence[str]) -> None:
        """Refuse joints that the law does not control.

        Raises:
            ArgumentError: All gains of some joint are zero; the joints are named.
        """
        if not self.gain_names:
            return
        idle = np.sum(self.gains(len(joint_names)), axis=0) == 0.0
        if idle.any():
            named = ", ".join(np.array(joint_names)[idle].tolist())
            raise ArgumentError(f"all gains of {named} are zero", remedy="Give the gains by which it is controlled.")


def check_law(law: object) -> None:
    """Refuse an object that is not a `ControlLaw`.

    Raises:
        ArgumentError: It is none; a bare function must be wrapped in a `UserLaw`.
    """
    if not isinstance(law, ControlLaw):
        remedy = "Wrap your function: UserLaw(function)." if callable(law) else "Give PD(kp, kd), for example."
        raise ArgumentError(f"the law of a loop is {law!r}", remedy=remedy)


def as_gains(values: ArrayLike, name: str, dof: int | None = None) -> Floats:
    """Check gains, one for all joints or one per joint, and return them as an array; (n,) where ``dof`` is given.

    Raises:
        ArgumentError: They are not numbers, negative, or not one per joint.
    """
    try:
        given = np.asarray(values)
    except ValueError:
        given = np.asarray("uneven")  # rows of different lengths: refused below, as text is
    if given.dtype.kind not in "iuf":
        raise ArgumentError(f"the gain {name} is {values!r}", remedy="Give numbers.")
    array = given.astype(float)
    if array.ndim > 1 or array.size == 0 or (dof is not None and array.size not in (1, dof)):
        raise ArgumentError(
            f"gains {name} have shape {array.shape}", remedy="Give one number, or one per moving joint, in order."
        )
    if not (np.isfinite(array).all() and (array >= 0.0).all()):
        raise ArgumentError(
            f"a gain of {name} is negative or not finite: {array.tolist()}",
            remedy="Give numbers from zero on; they act on wanted minus measured.",
        )
    return array if dof is None else np.array(np.broadcast_to(array, (dof,)))


@dataclass(frozen=True)
class PD(ControlLaw):
    """Proportional and derivative: ``kp (q_r - q) + kd (dq_r - dq)``."""

    gain_names: ClassVar[tuple[str, ...]] = ("kp", "kd")
    kp: ArrayLike
    """Gains of the position error, one number or (n,) [N m/rad or N/m]."""
    kd: ArrayLike
    """Gains of the velocity error, one number or (n,) [N m s/rad or N s/m]."""

    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        kp, kd = self.gains(len(seen.q))
        return kp * (seen.q_wanted - seen.q) + kd * (seen.dq_wanted - seen.dq), memory


@dataclass(frozen=True)
class PID(ControlLaw):
    """Proportional, integral, derivative: ``kp e + ki sum(e) period + kd de`` with the error ``e = q_r - q``.

    The sum includes the present error.
    """

    gain_names: ClassVar[tuple[str, ...]] = ("kp", "ki", "kd")
    kp: ArrayLike
    """Gains of the position error, one number or (n,) [N m/rad or N/m]."""
    ki: ArrayLike
    """Gains of the integral of the position error, one number or (n,) [N m/(rad s) or N/(m s)]."""
    kd: ArrayLike
    """Gains of the velocity error, one number or (n,) [N m s/rad or N s/m]."""

    def memory_size(self, dof: int) -> int:
        return dof

    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        kp, ki, kd = self.gains(len(seen.q))
        error = seen.q_wanted - seen.q
        total = memory + error * period
        return kp * error + ki * total + kd * (seen.dq_wanted - seen.dq), total


@dataclass(frozen=True)
class Cascade(ControlLaw):
    """Velocity loop inside a position loop: ``gain clip(kv (kp (q_r - q) - dq), limit)``.

    The clipped part is the drive's command, for example a current; ``gain`` is the torque per unit of it.
    """

    gain_names: ClassVar[tuple[str, ...]] = ("kp", "kv", "gain")
    kp: ArrayLike
    """Gains of the position loop, one number or (n,) [1/s]."""
    kv: ArrayLike
    """Gains of the velocity loop, one number or (n,) [command per rad/s or m/s]."""
    gain: ArrayLike = 1.0
    """Torque or force per unit of the command, one number or (n,) [N m or N per unit]."""
    limit: ArrayLike | None = None
    """Largest absolute command, one number or (n,), in its unit; None for no limit."""
    velocity_late: int = 0
    """Delay of the velocity that the drive uses, in control periods: 1 for differences over two periods,
    (q(k) - q(k - 2)) / (2 period)."""

    def __post_init__(self) -> None:
        """Refuse negative gains, a limit that is not above zero, and a delay that is not a whole number."""
        ControlLaw.__post_init__(self)
        if self.limit is not None and not (as_gains(self.limit, "limit") > 0.0).all():
            raise ArgumentError("the limit of the command is zero", remedy="Give a number above zero, or none.")
        as_whole("velocity_late", self.velocity_late, least=0)

    def memory_size(self, dof: int) -> int:
        return dof * self.velocity_late

    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        dof = len(seen.q)
        kp, kv, gain = self.gains(dof)
        # the memory is a queue of the last velocities, the oldest first
        dq = memory[:dof] if self.velocity_late else seen.dq
        new_memory = np.concatenate([memory[dof:], seen.dq]) if self.velocity_late else memory
        command = kv * (kp * (seen.q_wanted - seen.q) - dq)
        if self.limit is not None:
            largest = as_gains(self.limit, "limit", dof)
            command = (np.abs(command + largest) - np.abs(command - largest)) / 2.0  # clip without branches
        return gain * command, new_memory

    def check_joints(self, joint_names: Sequence[str]) -> None:
        # the command is a product: without kv or gain a joint gets no torque, whatever kp is
        _, kv, gain = self.gains(len(joint_names))
        PD(0.0, kv * gain).check_joints(joint_names)


@dataclass(frozen=True)
class ComputedTorqueLaw(ControlLaw):
    """Computed torque: ``M(q) (ddq_r + kd de + kp e) + velocity(q, dq) + gravity(q) + friction(dq_r)``.

    M, the velocity torque, gravity and friction are those of the controller's model; ``e = q_r - q``.
    """

    gain_names: ClassVar[tuple[str, ...]] = ("kp", "kd")
    model: Robot
    """The controller's own model of the robot."""
    kp: ArrayLike = 400.0
    """Gains of the position error, one number or (n,) [1/s^2]. Default: convention, 20 rad/s critically damped."""
    kd: ArrayLike = 40.0
    """Gains of the velocity error, one number or (n,) [1/s]."""

    def __post_init__(self) -> None:
        """Refuse a model that is not a robot, and negative gains."""
        if not isinstance(self.model, Robot):
            raise ArgumentError(f"the controller's model is {self.model!r}", remedy="Give a dynid.Robot.")
        ControlLaw.__post_init__(self)

    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        model = self.model
        theta = model.parameter_vector
        dof = len(seen.q)
        if model.dof != dof:
            raise ArgumentError(
                f"the controller's model '{model.name}' has {model.dof} moving joints, the robot has {dof}",
                remedy="Give ComputedTorqueLaw the model of this robot.",
            )
        kp, kd = self.gains(dof)
        wanted = seen.ddq_wanted + kd * (seen.dq_wanted - seen.dq) + kp * (seen.q_wanted - seen.q)
        links = rigid_body_torque(model, theta, seen.q, seen.dq, wanted)
        return links + term_torque(model, theta, seen.q, seen.dq_wanted, wanted), memory

    def check_joints(self, joint_names: Sequence[str]) -> None:
        """Accept all joints: the model moves each of them, even with gains of zero."""


_FUNCTION_REMEDY = (
    "Write f(q, dq, q_r, dq_r, ddq_r, memory, period) in plain NumPy on arrays, without branches on values and without "
    "float(), clip, where, minimum or round; np.tanh saturates."
)
"""How a user's function must be written: the remedy of its errors."""


@dataclass(frozen=True)
class UserLaw(ControlLaw):
    """A user's own function as a control law."""

    function: Callable[..., Any]
    """``f(q, dq, q_r, dq_r, ddq_r, memory, period)`` -> torque (n,), or (torque, new memory) where it has memory."""
    memory: int = 0
    """Number of remembered numbers."""

    def __post_init__(self) -> None:
        """Refuse an object that cannot be called, and a memory that is not a whole number from 0 on."""
        if not callable(self.function):
            raise ArgumentError(f"the law {self.function!r} is no function", remedy=_FUNCTION_REMEDY)
        as_whole("memory", self.memory, least=0)

    def memory_size(self, dof: int) -> int:
        return self.memory

    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        wanted = (seen.q_wanted, seen.dq_wanted, seen.ddq_wanted)
        name = getattr(self.function, "__name__", "law")
        try:
            result = self.function(seen.q, seen.dq, *wanted, memory, period)
        except Exception as error:  # whatever a user's function raises
            reason = error.reason if isinstance(error, ArgumentError) else f"{type(error).__name__}: {error}"
            raise ArgumentError(f"the law '{name}' cannot be recorded: {reason}", remedy=_FUNCTION_REMEDY) from error
        torque, new_memory = result if isinstance(result, tuple) else (result, memory)
        if np.shape(torque) != np.shape(seen.q) or np.shape(new_memory) != np.shape(memory):
            raise ArgumentError(
                f"the law '{name}' returns torques {np.shape(torque)} and memory {np.shape(new_memory)}",
                remedy=f"Return {np.shape(seen.q)} torques, and {np.shape(memory)} numbers to remember.",
            )
        return torque, new_memory


def assumed_law(robot: Robot, bandwidth_hz: float = 5.0) -> PD:
    """A stiff, critically damped PD law for a loop whose law is unknown.

    Below the bandwidth the arm's motion hardly depends on the law; above it the simulated motion is not reliable.

    Args:
        robot: The robot with prior values of its parameters, which scale the gains.
        bandwidth_hz: Bandwidth of each joint's position loop [Hz].

    Example:
        >>> type(dynid.control_loop.assumed_law(robot)).__name__
        'PD'
    """
    # critically damped: M ddq + 2 M w dq + M w^2 q = 0, with w the bandwidth [rad/s]
    w = 2.0 * np.pi * as_number("bandwidth_hz", bandwidth_hz, above=0.0)
    poses = np.random.default_rng(0).uniform(-np.pi, np.pi, (_POSE_COUNT, robot.dof))
    inertia = np.diagonal(inertia_matrix(robot, poses), axis1=1, axis2=2).mean(axis=0)
    if not (inertia > 0.0).all():
        raise ArgumentError(
            f"the prior of robot '{robot.name}' has no inertia about some joint", remedy="Give prior values, or gains."
        )
    return PD(kp=inertia * w**2, kd=inertia * 2.0 * w)


_LAW_KINDS: dict[str, Any] = {"pd": PD, "pid": PID, "cascade": Cascade, "computed_torque": ComputedTorqueLaw}
"""``kind`` of a file -> class of the law."""

LARGEST_RATE_HZ = 1e5
"""Highest rate of a control law [Hz] (convention: a drive's inner loop)."""


def read_law(path: str | Path, model: Robot | None = None) -> ControlLaw:
    r"""Read a law from a TOML file with its ``kind`` and its gains, ``kp = [...]`` etc.

    The kinds are "pd", "pid", "cascade" and "computed_torque". The file may state the rate of the law,
    too: ``rate_hz``, see `read_law_rate`.

    Args:
        path: The file.
        model: The controller's own model of the robot, for computed torque.

    Raises:
        ArgumentError: The file does not describe a law; the message states what is missing.

    Example:
        >>> written = (folder / "law.toml").write_text("kind = 'pd'\nkp = [900, 900, 200]\nkd = [60, 60, 10]\n")
        >>> type(dynid.control_loop.read_law(folder / "law.toml")).__name__
        'PD'
    """
    if not Path(path).exists():
        raise ArgumentError("there is no such file", path=path, remedy="Give the file of a control law.")
    remedy = "Write kp = [300.0, 60.0]: closed brackets, and a digit on both sides of every decimal point."
    table = read_toml(path, error=ArgumentError, remedy=remedy)
    kind = table.pop("kind", None)
    table.pop("rate_hz", None)  # `read_law_rate` reads it
    headings = [name for name, value in table.items() if isinstance(value, dict)]
    if headings:
        remedy = "Leave the heading out: kind and gains stand at the top."
        raise ArgumentError(f"the law stands under a heading, [{headings[0]}]", path=path, remedy=remedy)
    if not isinstance(kind, str) or kind not in _LAW_KINDS:
        reason = "it has no kind" if kind is None else f"kind is {kind!r}"
        raise ArgumentError(reason, path=path, remedy=f"Give kind, one of {', '.join(_LAW_KINDS)}.")
    known = {field.name: field for field in fields(_LAW_KINDS[kind]) if field.name != "model"}
    # the defaults of computed torque are for Python; a file states all gains
    needed = [name for name, field in known.items() if field.default is MISSING or kind == "computed_torque"]
    for name in table:
        if name not in known:
            remedy = f"Give {', '.join(known)}; other terms, such as feed-forward, need a UserLaw in Python."
            raise ArgumentError(f"a law of kind {kind!r} has no {name}", path=path, remedy=remedy)
    missing = [name for name in needed if name not in table]
    if missing:
        raise ArgumentError(f"{', '.join(missing)} is missing", path=path, remedy=f"Give {', '.join(needed)}.")
    if kind == "computed_torque":
        if model is None:
            remedy = "Call read_law(path, model=robot)."
            raise ArgumentError("computed torque needs the controller's model", path=path, remedy=remedy)
        table["model"] = model
    try:
        law: ControlLaw = _LAW_KINDS[kind](**table)
    except ArgumentError as error:
        raise ArgumentError(error.reason, path=path, remedy=error.remedy) from error
    return law


def read_law_rate(path: str | Path) -> float | None:
    """Read the rate of a law [Hz] from its file, such as ``rate_hz = 1000``; None where it states none.

    Raises:
        ArgumentError: It is not a number above zero and up to 100 kHz.
    """
    rate = read_toml(path, error=ArgumentError).get("rate_hz")
    if rate is not None and not (
        isinstance(rate, int | float) and not isinstance(rate, bool) and 0 < rate <= LARGEST_RATE_HZ
    ):
        raise ArgumentError(f"rate_hz is {rate!r}", path=path, remedy="Give the rate of the law [Hz], at most 1e5.")
    return None if rate is None else float(rate)
