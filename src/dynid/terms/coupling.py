"""Motors that turn with several joints at once, as in the geared wrists of the TX40 and the PUMA.

The motor's speed, referred to the joint side, is ``v = sum(r_k dq_k)``; by virtual work a torque T on the motor is a
torque ``r_k T`` on joint k. `Coupling` describes such a motor in a robot. `CoupledInertia`, `CoupledViscous` and
`CoupledCoulomb` are its terms, which are part of the robot's compiled equations. `MotorFriction` is for further kinds
of friction, with memory or another shape, which estimators add; it is not compiled.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.terms.base import (
    Dependence,
    JointTerm,
    LinkTorques,
    Motion,
    PresentMotion,
    RecordableTerm,
    SteadyMotion,
    Surface,
    Term,
)


@dataclass(frozen=True)
class CoupledTerm(RecordableTerm, ABC):
    """One term of a motor that turns with several joints; a `Coupling` makes three of them.

    A subclass with a velocity or an acceleration as its column only says which by `dependence`.
    """

    ratios: Mapping[str, float] = field(kw_only=True)
    """Joint name -> motor speed per joint speed."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the arguments it was made from, because a mapping proxy cannot be pickled."""
        return partial(type(self), self.value, ratios=dict(self.ratios)), ()

    @property
    def name(self) -> str:
        return f"{self.symbol}@{'+'.join(self.ratios)}"

    def acts_on(self, joint_names: Sequence[str]) -> tuple[int, ...]:
        return tuple(joint_names.index(name) for name in self.ratios)

    def column(self, links: LinkTorques, motion: Motion) -> dict[int, Floats]:
        return self.rows(self.acts_on(links.joint_names), motion.q.T, motion.dq.T, motion.ddq.T)

    @property
    def speeds(self) -> tuple[float, ...]:
        return tuple(self.ratios.values())

    def rows(self, joints: Sequence[int], q: Any, dq: Any, ddq: Any) -> dict[int, Any]:
        rates = ddq if self.dependence is Dependence.ACCELERATION else dq  # inertia or viscous friction
        # row j: the sum over the other joints k of r_j r_k times the rate of joint k
        return {j: sum(r * rates[k] for (i, k), r in self.pairs(joints).items() if i == j) for j in joints}

    def pairs(self, joints: Sequence[int]) -> dict[tuple[int, int], float]:
        """Indices (j, k) of two different joints -> the product ``r_j r_k`` of their ratios."""
        ratios = dict(zip(joints, self.ratios.values(), strict=True))
        return {(j, k): r * s for j, r in ratios.items() for k, s in ratios.items() if j != k}


@dataclass(frozen=True)
class CoupledInertia(CoupledTerm):
    """Rotor inertia of the motor, between different joints: row j has ``IAM r_j sum(r_k ddq_k)``, k other than j."""

    symbol: ClassVar[str] = "IAM"
    base_unit: ClassVar[str] = "kg m^2"
    is_non_negative: ClassVar[bool] = True
    dependence: ClassVar[Dependence] = Dependence.ACCELERATION


@dataclass(frozen=True)
class CoupledViscous(CoupledTerm):
    """Viscous friction of the motor, between different joints: row j has ``FVM r_j sum(r_k dq_k)``, k other than j."""

    symbol: ClassVar[str] = "FVM"
    base_unit: ClassVar[str] = "N m s/rad"
    is_non_negative: ClassVar[bool] = True
    dependence: ClassVar[Dependence] = Dependence.VELOCITY


@dataclass(frozen=True)
class CoupledCoulomb(CoupledTerm):
    """Dry friction of the motor: row j has ``FCM r_j sign(v)``, where v is the motor's speed."""

    symbol: ClassVar[str] = "FCM"
    is_non_negative: ClassVar[bool] = True
    dependence: ClassVar[Dependence] = Dependence.DIRECTION

    def rows(self, joints: Sequence[int], q: Any, dq: Any, ddq: Any) -> dict[int, Any]:
        ratios = dict(zip(joints, self.ratios.values(), strict=True))
        direction = np.sign(sum(r * dq[j] for j, r in ratios.items()))
        return {j: r * direction for j, r in ratios.items()}

    def surface(self, joint_names: Sequence[str]) -> Surface | None:
        return tuple(sorted(zip(self.acts_on(joint_names), self.ratios.values(), strict=True)))

    def steady_torque(self, steady: SteadyMotion) -> Floats:
        return np.sign(steady.speed)


@dataclass(frozen=True)
class Coupling:
    """A motor that turns with several joints: three terms that share the joints and their ratios.

    The motor's speed, referred to the joint side, is ``v = sum(ratios[k] * dq[k])``: the row of the motor-to-joint
    matrix that couples the joints. Its rotor inertia and viscous friction act between *different* joints only, because
    the part that a joint's motion causes at the same joint cannot be told from that joint's `RotorInertia` and
    `Viscous`. Its dry friction acts on all of them. With ``a = dv/dt``, the torque of joint k is
    ``ratios[k] * (IAM * (a - ratios[k] ddq[k]) + FVM * (v - ratios[k] dq[k]) + FCM * sign(v))``.
    """

    ratios: Mapping[str, float]
    """Joint name -> motor speed per joint speed; two joints or more, all revolute."""
    rotor_inertia: float = 0.0
    """IAM [kg m^2]"""
    viscous: float = 0.0
    """FVM [N m s/rad]"""
    coulomb: float = 0.0
    """FCM [N m]"""

    def __post_init__(self) -> None:
        """Freeze the ratios; refuse a single joint, and ratios that are zero or not finite."""
        if len(self.ratios) < 2 or not all(np.isfinite(r) and r != 0 for r in self.ratios.values()):
            raise ArgumentError(
                f"a coupling needs two joints or more with finite, non-zero ratios, not {dict(self.ratios)}",
                remedy="Give e.g. Coupling({'joint5': 1.0, 'joint6': 1.0}).",
            )
        object.__setattr__(self, "ratios", MappingProxyType(dict(self.ratios)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the arguments it was made from, because a mapping proxy cannot be pickled."""
        return Coupling, (dict(self.ratios), self.rotor_inertia, self.viscous, self.coulomb)

    @property
    def terms(self) -> tuple[CoupledTerm, ...]:
        """Rotor inertia, viscous and dry friction of the motor."""
        return (
            CoupledInertia(self.rotor_inertia, ratios=self.ratios),
            CoupledViscous(self.viscous, ratios=self.ratios),
            CoupledCoulomb(self.coulomb, ratios=self.ratios),
        )

    def with_values(self, values: Sequence[float]) -> Coupling:
        """A copy of the coupling with other parameter values, in the order of `terms`."""
        rotor_inertia, viscous, coulomb = (float(value) for value in values)
        return replace(self, rotor_inertia=rotor_inertia, viscous=viscous, coulomb=coulomb)


@dataclass(frozen=True, kw_only=True)
class MotorFriction(Term):
    """Friction of a motor that turns with several joints, as a function of the motor's motion."""

    ratios: tuple[tuple[int, float], ...]
    """Index of each joint, and motor speed per joint speed; see `Coupling`."""
    friction: JointTerm
    """How the friction depends on the motor's motion; the index of its joint is only used in the name."""
    symbol: ClassVar[str] = "@"
    is_non_negative: ClassVar[bool] = True

    @property
    def name(self) -> str:
        joints = "_".join(str(joint + 1) for joint, _ in self.ratios)
        return f"{self.friction.name}@{joints}"

    def unit_for(self, *, prismatic: bool) -> str:
        return self.friction.unit_for(prismatic=prismatic)

    def acts_on(self, joint_names: Sequence[str]) -> tuple[int, ...]:
        return tuple(joint for joint, _ in self.ratios)

    def column(self, links: LinkTorques, motion: Motion) -> dict[int, Floats]:
        q, dq, ddq = (self._of_motor(rates.T) for rates in (motion.q, motion.dq, motion.ddq))  # (N,) each
        torque = self.friction.along(q, dq, ddq, motion.rate_hz)
        return {joint: ratio * torque for joint, ratio in self.ratios}

    def surface(self, joint_names: Sequence[str]) -> Surface | None:
        return tuple(sorted(self.ratios))

    def steady_torque(self, steady: SteadyMotion) -> Floats:
        return self.friction.steady_torque(steady)

    @property
    def memory_size(self) -> int:
        return self.friction.memory_size

    def begin(self, state: PresentMotion) -> list[Any]:
        return self.friction.begin_at(self._of_motor(state.q), self._of_motor(state.dq))

    def advance(self, state: PresentMotion, memory: Sequence[Any]) -> tuple[dict[int, Any], list[Any]]:
        q, dq, ddq = (self._of_motor(rates) for rates in (state.q, state.dq, state.ddq))
        torque, remembered = self.friction.advance_at(q, dq, ddq, state.period_s, memory)
        return {joint: ratio * torque for joint, ratio in self.ratios}, remembered

    def _of_motor(self, rates: Any) -> Any:
        """The motor's position, velocity or acceleration from those of the joints: (n,), or (n, N) for N samples."""
        return sum(ratio * rates[joint] for joint, ratio in self.ratios)
