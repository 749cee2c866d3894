"""What a joint adds to the rigid-body torque: friction, offset, rotor inertia, geared coupling.

A joint model is linear in its parameters: ``torque = sum(columns(q, dq, ddq) * values)``. Its columns join the
regressor after those of the links, joint after joint. The expressions are scalar-agnostic, so they are recorded on the
tape like the rest. To add one, subclass `JointModel` (see docs/extending.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from dynid.errors import ArgumentError

__all__ = ["Coulomb", "Coupling", "JointModel", "Offset", "RotorInertia", "Viscous"]


@dataclass(frozen=True)
class JointModel(ABC):
    """A term of the torque of one joint, linear in its parameters."""

    symbols: ClassVar[tuple[str, ...]]
    """One prefix per parameter; the joint number follows it: ``FV`` gives ``FV2``."""
    units: ClassVar[tuple[str, ...]]
    """Unit of each parameter for a revolute joint; see `units_for`."""
    physical: ClassVar[tuple[bool, ...]]
    """Whether each parameter must be non-negative."""

    @property
    @abstractmethod
    def values(self) -> tuple[float, ...]:
        """Value of each parameter, in the unit of `units`."""

    @abstractmethod
    def with_values(self, values: Sequence[float]) -> Self:
        """The same model with other parameter values."""

    @abstractmethod
    def columns(self, q: Any, dq: Any, ddq: Any) -> tuple[Any, ...]:
        """Torque [N m or N] per unit of each parameter.

        Args:
            q: Joint position [rad or m].
            dq: Joint velocity [rad/s or m/s].
            ddq: Joint acceleration [rad/s^2 or m/s^2].
        """

    def units_for(self, *, prismatic: bool) -> tuple[str, ...]:
        """Unit of each parameter; a prismatic joint has N for N m, m for rad and kg for kg m^2."""
        if not prismatic:
            return self.units
        return tuple(u.replace("N m", "N").replace("rad", "m").replace("kg m^2", "kg") for u in self.units)


@dataclass(frozen=True)
class _SingleParameter(JointModel, ABC):
    """A joint model whose one parameter is its first field."""

    def __post_init__(self) -> None:
        """Refuse a parameter that is not a number."""
        value = self.values[0]
        if isinstance(value, str) or not np.isscalar(value) or not np.isfinite(value):
            raise ArgumentError(f"{type(self).__name__} needs a finite number, not {value!r}")

    @property
    def values(self) -> tuple[float, ...]:
        return (getattr(self, fields(self)[0].name),)

    def with_values(self, values: Sequence[float]) -> Self:
        return replace(self, **{fields(self)[0].name: float(values[0])})


@dataclass(frozen=True)
class RotorInertia(_SingleParameter):
    """Inertia of the motor's rotor, as felt at the joint: ``IA * ddq``."""

    reflected: float = 0.0
    """Rotor inertia times the square of the gear ratio [kg m^2]."""
    gear_ratio: float | None = None
    """Motor turns per joint turn, where known."""
    symbols: ClassVar[tuple[str, ...]] = ("IA",)
    units: ClassVar[tuple[str, ...]] = ("kg m^2",)
    physical: ClassVar[tuple[bool, ...]] = (True,)

    @classmethod
    def from_motor(cls, inertia: float, gear_ratio: float) -> RotorInertia:
        """Build from the motor-side inertia [kg m^2] and the gear ratio (motor turns per joint turn)."""
        return cls(reflected=inertia * gear_ratio**2, gear_ratio=gear_ratio)

    @property
    def motor_side(self) -> float | None:
        """Inertia of the rotor itself [kg m^2], or None when the gear ratio is unknown."""
        return None if self.gear_ratio is None else self.reflected / self.gear_ratio**2

    def columns(self, q: Any, dq: Any, ddq: Any) -> tuple[Any, ...]:
        return (ddq,)


@dataclass(frozen=True)
class Viscous(_SingleParameter):
    """Viscous friction: ``FV * dq``."""

    coefficient: float = 0.0
    """[N m s/rad]"""
    symbols: ClassVar[tuple[str, ...]] = ("FV",)
    units: ClassVar[tuple[str, ...]] = ("N m s/rad",)
    physical: ClassVar[tuple[bool, ...]] = (True,)

    def columns(self, q: Any, dq: Any, ddq: Any) -> tuple[Any, ...]:
        return (dq,)


@dataclass(frozen=True)
class Coulomb(_SingleParameter):
    """Dry friction: ``FC * sign(dq)``, zero at rest."""

    level: float = 0.0
    """[N m]"""
    symbols: ClassVar[tuple[str, ...]] = ("FC",)
    units: ClassVar[tuple[str, ...]] = ("N m",)
    physical: ClassVar[tuple[bool, ...]] = (True,)

    def columns(self, q: Any, dq: Any, ddq: Any) -> tuple[Any, ...]:
        return (np.sign(dq),)


@dataclass(frozen=True)
class Offset(_SingleParameter):
    """Constant torque: sensor or current offset, or asymmetry of the dry friction."""

    torque: float = 0.0
    """[N m]"""
    symbols: ClassVar[tuple[str, ...]] = ("OFF",)
    units: ClassVar[tuple[str, ...]] = ("N m",)
    physical: ClassVar[tuple[bool, ...]] = (False,)

    def columns(self, q: Any, dq: Any, ddq: Any) -> tuple[Any, ...]:
        return (1.0,)


@dataclass(frozen=True)
class Coupling:
    """A motor that turns with several joints at once, as in the geared wrists of the TX40 and the PUMA.

    The motor's speed, referred to the joint side, is ``v = sum(ratios[k] * dq[k])``: the row of the motor-to-joint
    matrix that couples the joints. Its rotor inertia and viscous friction act between *different* joints only, because
    the part that acts on a joint's own motion cannot be told from that joint's `RotorInertia` and `Viscous`; its dry
    friction acts on all of them. With ``a = dv/dt`` row k gets
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
    symbols: ClassVar[tuple[str, ...]] = ("IAM", "FVM", "FCM")
    units: ClassVar[tuple[str, ...]] = ("kg m^2", "N m s/rad", "N m")
    physical: ClassVar[tuple[bool, ...]] = (True, True, True)

    def __post_init__(self) -> None:
        """Freeze the ratios and refuse what couples nothing."""
        if len(self.ratios) < 2 or not all(np.isfinite(r) and r != 0 for r in self.ratios.values()):
            raise ArgumentError(
                f"a coupling needs two joints or more with finite, non-zero ratios, not {dict(self.ratios)}",
                remedy="Give e.g. Coupling({'joint5': 1.0, 'joint6': 1.0}).",
            )
        object.__setattr__(self, "ratios", MappingProxyType(dict(self.ratios)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process as the arguments it was built from: a mapping proxy cannot."""
        return Coupling, (dict(self.ratios), *self.values)

    @property
    def values(self) -> tuple[float, ...]:
        """IAM, FVM, FCM."""
        return (self.rotor_inertia, self.viscous, self.coulomb)

    def with_values(self, values: Sequence[float]) -> Coupling:
        """The same coupling with other parameter values."""
        rotor_inertia, viscous, coulomb = (float(v) for v in values)
        return replace(self, rotor_inertia=rotor_inertia, viscous=viscous, coulomb=coulomb)

    def columns(self, dq: Mapping[str, Any], ddq: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
        """Torque per unit of IAM, FVM, FCM on each coupled joint, by joint name.

        Args:
            dq: Velocity of each coupled joint [rad/s].
            ddq: Acceleration of each coupled joint [rad/s^2].
        """
        speed = sum(r * dq[name] for name, r in self.ratios.items())
        rows = {}
        for name, r in self.ratios.items():
            others = [(other, s) for other, s in self.ratios.items() if other != name]
            rows[name] = (
                r * sum(s * ddq[other] for other, s in others),
                r * sum(s * dq[other] for other, s in others),
                r * np.sign(speed),
            )
        return rows
