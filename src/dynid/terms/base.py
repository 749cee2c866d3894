"""Base classes of all terms: contributions to the joint torques that the links do not make, each with one parameter.

The torques of a robot are those of its links plus ``value * column(q, dq, ddq)`` for every term: friction, rotor
inertia, spring, offset and so on. So a term's column is one column of the regressor, and its value one entry of the
parameter vector. Everything about a kind of term is declared in its class: symbol, unit, sign, memory of past motion,
and the column. Estimators, regressor, simulation and generated C read it from there.

A term that depends on the present state alone is recordable: `dynid.tape` can record its formula as a program (a tape),
by running it on symbolic numbers, the *recorded scalars*; then compiled regressors and generated C contain it.

The classes go from the general to the special: `Term`; `RecordableTerm` (depends on the present state alone);
`JointTerm` (acts on one joint and depends on that joint's motion); `StateTerm` (both; most terms are one); `ScaledTerm`
(its shape has a width). docs/extending.md shows how to add a term. Joints are numbered from 0; N is a number of
samples.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from dynid.array_types import Floats
from dynid.errors import ArgumentError

Surface = tuple[tuple[int, float], ...]
"""A surface that slides with friction, as pairs (index of a joint, speed of the surface per speed of this joint).

That of the third joint alone is ``((2, 1.0),)``; that of a motor that turns with several joints has several pairs."""


class Dependence(Enum):
    """What a term's column depends on. The closed-form rules for base parameters hold for the first four kinds."""

    ACCELERATION = "acceleration"
    """The acceleration itself: the parameter is an inertia."""
    VELOCITY = "velocity"
    """The velocity itself: viscous friction."""
    DIRECTION = "direction"
    """The sign of the velocity: dry friction."""
    CONSTANT = "constant"
    """One: an offset."""
    OTHER = "other"
    """Another function of the motion."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Motion:
    """A gap-free, uniformly sampled stretch of motion."""

    q: Floats
    """(N, n) positions [rad or m]."""
    dq: Floats
    """(N, n) velocities [rad/s or m/s]."""
    ddq: Floats
    """(N, n) accelerations [rad/s^2 or m/s^2]."""
    rate_hz: float
    """Sampling rate [Hz]."""


@dataclass(frozen=True, slots=True, eq=False)
class SteadyMotion:
    """States of one friction surface that has slid at constant speed for so long that its friction is steady."""

    q: Floats
    """(N,) positions of the surface [rad or m]."""
    speed: Floats
    """(N,) velocities of the surface, not zero [rad/s or m/s]."""
    load: Floats
    """(N,) magnitudes of the torque that the surface transmits [N m or N]."""


@dataclass(frozen=True, eq=False)
class Reference:
    """Parameters of a robot that give approximate torques: those of the prior robot, or of an earlier fit."""

    theta: Floats
    """(p,) in the order of `Robot.parameter_vector`."""

    def of_links(self, joints: int) -> Reference:
        """The same parameters with those of all terms set to zero; ``joints`` is the number of moving joints.

        The links' parameters come first, ten per joint.
        """
        theta = self.theta.copy()
        theta[10 * joints :] = 0.0
        return Reference(theta)


class LinkTorques(Protocol):
    """What `Term.column` needs to know of a robot: names of its joints, gravity, and its torques along a motion."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints, in the order of q."""

    @property
    def gravity(self) -> Floats:
        """(3,) gravity [m/s^2] in the root link's frame."""

    def torque(self, reference: Reference, motion: Motion) -> Floats:
        """(N, n) torque of the whole robot with the reference's parameters [N m or N]."""

    def gravity_torque(self, reference: Reference, motion: Motion, gravity: Floats) -> Floats:
        """(N, n) torque that holds the links' weights under a gravity (3,) [N m or N]."""


class PresentMotion(Protocol):
    """What `Term.advance` needs: one sample of a robot's motion, as numbers or (for generated C) recorded scalars."""

    @property
    def q(self) -> Any:
        """(n,) joint positions [rad or m]."""

    @property
    def dq(self) -> Any:
        """(n,) joint velocities [rad/s or m/s]."""

    @property
    def ddq(self) -> Any:
        """(n,) joint accelerations [rad/s^2 or m/s^2]."""

    @property
    def period_s(self) -> Any:
        """Time since the sample before [s]."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints, in the order of q."""

    @property
    def gravity(self) -> Floats:
        """(3,) gravity [m/s^2] in the root link's frame."""

    def torque(self, reference: Reference) -> Any:
        """(n,) torque of the whole robot with the reference's parameters [N m or N]."""

    def gravity_torque(self, reference: Reference, gravity: Floats) -> Any:
        """(n,) torque that holds the links' weights under a gravity (3,) [N m or N]."""


@dataclass(frozen=True)
class Term(ABC):
    """A contribution to the joint torques: one parameter, and the torque per unit of it.

    Subclasses, frozen dataclasses too, define `name`, `acts_on`, `column` and `advance`; friction also `surface` and
    `steady_torque`, and terms with memory `memory_size` and `begin`.
    """

    value: float = 0.0
    """The parameter, in the term's unit; zero in terms whose parameter is to be estimated."""
    symbol: ClassVar[str]
    """Short name of the parameter; the joint's number follows it: ``FV`` gives ``FV2``."""
    base_unit: ClassVar[str] = "N m"
    """Unit of the parameter on a revolute joint; see `unit_for`."""
    is_non_negative: ClassVar[bool] = False
    """Whether the parameter of a possible robot is never negative."""
    dependence: ClassVar[Dependence] = Dependence.OTHER
    """What the column depends on; a subclass with a `formula` of its own must declare it, otherwise it is OTHER."""
    urdf_attribute: ClassVar[str | None] = None
    """Attribute of URDF's ``<dynamics>`` that holds the parameter, if any."""
    mjcf_attribute: ClassVar[str | None] = None
    """Attribute of MJCF's ``<joint>`` that holds the parameter, if any."""

    def __init_subclass__(cls) -> None:
        """Set the dependence of a subclass that computes another column and does not declare it to OTHER."""
        super().__init_subclass__()
        if "formula" in vars(cls) and "dependence" not in vars(cls):
            cls.dependence = Dependence.OTHER

    def __post_init__(self) -> None:
        """Refuse a parameter value that is not a finite number."""
        if isinstance(self.value, str) or not np.isscalar(self.value) or not np.isfinite(self.value):
            raise ArgumentError(f"{type(self).__name__} needs a finite number, not {self.value!r}")

    @property
    def prefix(self) -> str:
        """The parameter's name without the joint's number: letters, digits and underscores, for C and the layout."""
        return self.symbol

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the parameter, with the joint's number."""

    @property
    def kind(self) -> str:
        """Name of the class for messages: ``RotorInertia`` gives ``rotor inertia``."""
        return re.sub(r"(?<!^)(?=[A-Z])", " ", type(self).__name__).lower()

    @property
    def has_memory(self) -> bool:
        """Whether the column depends on past motion; such a term cannot be computed for isolated samples."""
        return self.memory_size > 0

    @property
    def unit(self) -> str:
        """Unit of the parameter on a revolute joint."""
        return self.unit_for(prismatic=False)

    def unit_for(self, *, prismatic: bool) -> str:
        """Unit of the parameter; a prismatic joint has N for N m, m for rad and kg for kg m^2."""
        if not prismatic:
            return self.base_unit
        return self.base_unit.replace("N m", "N").replace("rad", "m").replace("kg m^2", "kg")

    def with_value(self, value: float) -> Self:
        """The same term with another parameter value."""
        return replace(self, value=float(value))

    def smoothed(self, speed: float) -> Self:
        """The same term without jumps of its column, for gradients; ``speed`` is the width of the step [rad/s or m/s].

        Simulations need no such method: they replace every sign on the tape, see `dynid.terms.smoothing`.
        """
        return self

    @abstractmethod
    def acts_on(self, joint_names: Sequence[str]) -> tuple[int, ...]:
        """Indices of the joints the term acts on, of a robot with these moving joints."""

    @abstractmethod
    def column(self, links: LinkTorques, motion: Motion) -> dict[int, Floats]:
        """Torque per unit of the parameter along a motion: joint index -> (N,), for the joints the term acts on."""

    def surface(self, joint_names: Sequence[str]) -> Surface | None:
        """The surface whose speed the term's friction depends on, in a robot with these moving joints.

        None for terms that are no friction, such as inertias, offsets, springs and errors of a sensor.
        """
        return None

    def steady_torque(self, steady: SteadyMotion) -> Floats:
        """(N,) torque on `surface` per unit of the parameter in steady sliding [N m or N per unit]; by default none."""
        return np.zeros_like(steady.speed)

    @property
    def memory_size(self) -> int:
        """How many numbers the term remembers from sample to sample."""
        return 0

    def begin(self, state: PresentMotion) -> list[Any]:
        """The remembered numbers at the first sample, as numbers or recorded scalars."""
        return []

    @abstractmethod
    def advance(self, state: PresentMotion, memory: Sequence[Any]) -> tuple[dict[int, Any], list[Any]]:
        """Torque per unit of the parameter on each joint at one sample, and the numbers to remember.

        Along a stretch of motion this gives the `column`, sample after sample, with operations that the tape records.

        Args:
            state: The sample.
            memory: The remembered numbers of the sample before; those of `begin` at the first sample.
        """


@dataclass(frozen=True)
class RecordableTerm(Term, ABC):
    """A term that depends on the present state alone.

    The tape can record it, so that the regressor, simulations and generated C have it, and a robot can carry it.
    """

    @property
    @abstractmethod
    def speeds(self) -> tuple[float, ...]:
        """Speed of the friction surface or rotor per speed of each joint, in the order of `acts_on`."""

    @abstractmethod
    def rows(self, joints: Sequence[int], q: Any, dq: Any, ddq: Any) -> dict[int, Any]:
        """Torque per unit of the parameter on each joint; arrays of numbers or of recorded scalars (n,) alike.

        Args:
            joints: Indices of the joints the term acts on.
            q: Joint positions [rad or m].
            dq: Joint velocities [rad/s or m/s].
            ddq: Joint accelerations [rad/s^2 or m/s^2].
        """

    def advance(self, state: PresentMotion, memory: Sequence[Any]) -> tuple[dict[int, Any], list[Any]]:
        # the second result is empty: nothing is remembered
        return self.rows(self.acts_on(state.joint_names), state.q, state.dq, state.ddq), []

    @abstractmethod
    def pairs(self, joints: Sequence[int]) -> dict[tuple[int, int], float]:
        """Indices (j, k) of joints -> torque on joint j per unit of the parameter and of the speed of joint k.

        Of an inertia: per unit of the acceleration of joint k. Other kinds of terms do not use it.
        """

    def inertia(self, joints: Sequence[int]) -> dict[tuple[int, int], float]:
        """Entries (j, k) of the inertia matrix per unit of the parameter; none unless the column is an acceleration."""
        return self.pairs(joints) if self.dependence is Dependence.ACCELERATION else {}

    def viscosity(self, joints: Sequence[int]) -> dict[tuple[int, int], float]:
        """Entries (j, k) of the matrix of viscous friction per unit; none unless the column is a velocity."""
        return self.pairs(joints) if self.dependence is Dependence.VELOCITY else {}


@dataclass(frozen=True)
class JointTerm(Term, ABC):
    """A term that acts on one joint and depends on that joint's motion only, the past included.

    A subclass defines `along`, the column of a whole motion; `memory_size`, `begin_at` and `advance_at`, by which
    generated code computes the same one sample after the other; and `steady_torque`.
    """

    joint: int | None = field(default=None, kw_only=True)
    """Index of the joint, from 0; None for a term that is not placed yet, or that a robot's `Joint.terms` place."""

    @property
    def name(self) -> str:
        return f"{self.symbol}{self.number}"

    @property
    def number(self) -> str:
        """Number of the joint from 1, as text; empty where `joint` is None."""
        return "" if self.joint is None else str(self.joint + 1)

    def at(self, joint: int | None) -> Self:
        """The same term on another joint."""
        return self if self.joint == joint else replace(self, joint=joint)

    def acts_on(self, joint_names: Sequence[str]) -> tuple[int, ...]:
        if self.joint is None:
            raise ArgumentError(
                f"{self!r} names no joint", remedy=f"Give its index, such as {type(self).__name__}(joint=0)."
            )
        return (self.joint,)

    def surface(self, joint_names: Sequence[str]) -> Surface | None:
        return tuple((j, 1.0) for j in self.acts_on(joint_names))

    @abstractmethod
    def steady_torque(self, steady: SteadyMotion) -> Floats: ...

    def column(self, links: LinkTorques, motion: Motion) -> dict[int, Floats]:
        (j,) = self.acts_on(links.joint_names)
        return {j: self.along(motion.q[:, j], motion.dq[:, j], motion.ddq[:, j], motion.rate_hz)}

    @abstractmethod
    def along(self, q: Floats, dq: Floats, ddq: Floats, rate_hz: float) -> Floats:
        """The column (N,) along a gap-free motion of the joint; sample k depends on samples 0 ... k only."""

    def begin_at(self, q: Any, dq: Any) -> list[Any]:
        """`begin` for the motion of one joint: its position and velocity."""
        return []

    @abstractmethod
    def advance_at(self, q: Any, dq: Any, ddq: Any, period_s: Any, memory: Sequence[Any]) -> tuple[Any, list[Any]]:
        """`advance` for the motion of one joint; the first result is the sample of `along`."""

    def begin(self, state: PresentMotion) -> list[Any]:
        (j,) = self.acts_on(state.joint_names)
        return self.begin_at(state.q[j], state.dq[j])

    def advance(self, state: PresentMotion, memory: Sequence[Any]) -> tuple[dict[int, Any], list[Any]]:
        (j,) = self.acts_on(state.joint_names)
        value, remembered = self.advance_at(state.q[j], state.dq[j], state.ddq[j], state.period_s, memory)
        return {j: value}, remembered


@dataclass(frozen=True)
class StateTerm(JointTerm, RecordableTerm, ABC):
    """A term of one joint's present state: a subclass defines `formula`, and everything else follows from it."""

    @abstractmethod
    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        """Torque per unit of the parameter; use NumPy functions only, so that the tape can record it.

        Args:
            q: Position of the joint [rad or m].
            dq: Its velocity [rad/s or m/s].
            ddq: Its acceleration [rad/s^2 or m/s^2]; only for terms whose dependence is ACCELERATION.
        """

    def along(self, q: Floats, dq: Floats, ddq: Floats, rate_hz: float) -> Floats:
        return np.broadcast_to(np.asarray(self.formula(q, dq, ddq), dtype=np.float64), q.shape)

    def steady_torque(self, steady: SteadyMotion) -> Floats:
        """Torque at a speed less that at zero speed; the difference is zero for an inertia, an offset or a spring."""
        zero = np.zeros_like(steady.speed)
        # the sampling rate, here infinite, does not matter to a term without memory
        return self.along(steady.q, steady.speed, zero, np.inf) - self.along(steady.q, zero, zero, np.inf)

    def advance_at(self, q: Any, dq: Any, ddq: Any, period_s: Any, memory: Sequence[Any]) -> tuple[Any, list[Any]]:
        return self.formula(q, dq, ddq), []

    @property
    def speeds(self) -> tuple[float, ...]:
        return (1.0,)

    def rows(self, joints: Sequence[int], q: Any, dq: Any, ddq: Any) -> dict[int, Any]:
        return {j: self.formula(q[j], dq[j], ddq[j]) for j in joints}

    def pairs(self, joints: Sequence[int]) -> dict[tuple[int, int], float]:
        return {(j, j): 1.0 for j in joints}


@dataclass(frozen=True)
class ScaledTerm(JointTerm, ABC):
    """A term whose shape has a scale, which is chosen, not estimated: a width, a travel or a time."""

    scale: float = field(kw_only=True)
    """Velocity [rad/s or m/s], travel [rad or m] or time [s]; positive."""

    def __post_init__(self) -> None:
        """Refuse scales that are not finite or not positive."""
        super().__post_init__()
        if not (np.isfinite(self.scale) and self.scale > 0.0):
            raise ArgumentError(f"{type(self).__name__} needs a positive scale, not {self.scale}")

    @property
    def name(self) -> str:
        return f"{super().name}({self.scale:.3g})"

    @property
    def prefix(self) -> str:
        return f"{self.symbol}_{self.scale:.6f}_".replace(".", "p")
