"""Friction of a joint that depends on its present state: viscous, dry, and the shapes between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from dynid.terms.base import Dependence, ScaledTerm, StateTerm, Term, TermSizes
from dynid.terms.coupling import joints_and_motors, scaled_terms
from dynid.terms.smoothing import gradual_sign

SPEEDS = (0.02, 0.1)
"""Widths of smooth signs that selection tries, as parts of a joint's high speed (convention)."""
STRIBECK_SPEED = 0.1
"""Stribeck velocity that selection tries, as a part of a joint's high speed (convention)."""
STRIBECK_STEP = 10.0
"""Stribeck velocity over the width of the step through rest (convention: the step is narrow beside the peak)."""


@dataclass(frozen=True)
class Viscous(StateTerm):
    """Viscous friction: ``FV * dq``."""

    symbol: ClassVar[str] = "FV"
    base_unit: ClassVar[str] = "N m s/rad"
    is_non_negative: ClassVar[bool] = True
    dependence: ClassVar[Dependence] = Dependence.VELOCITY
    urdf_attribute: ClassVar[str | None] = "damping"
    mjcf_attribute: ClassVar[str | None] = "damping"

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return dq  # [Izaguirre1992] eq. (1)


@dataclass(frozen=True)
class QuadraticViscous(StateTerm):
    """Friction that grows with the square of the speed: ``FVQ * dq |dq|``.

    With `CubicViscous` it makes the polynomial of MuJoCo's damping, which takes over other shapes of friction there.
    """

    symbol: ClassVar[str] = "FVQ"
    base_unit: ClassVar[str] = "N m (s/rad)^2"
    mjcf_attribute: ClassVar[str | None] = "damping"
    mjcf_place: ClassVar[int] = 1

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return dq * np.abs(dq)


@dataclass(frozen=True)
class CubicViscous(StateTerm):
    """Friction that grows with the cube of the speed: ``FVC * dq^3``; see `QuadraticViscous`."""

    symbol: ClassVar[str] = "FVC"
    base_unit: ClassVar[str] = "N m (s/rad)^3"
    is_non_negative: ClassVar[bool] = True
    mjcf_attribute: ClassVar[str | None] = "damping"
    mjcf_place: ClassVar[int] = 2

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return dq * dq * dq


@dataclass(frozen=True)
class Coulomb(StateTerm):
    """Dry friction: ``FC * sign(dq)``, zero at rest."""

    step_width: float = field(default=0.0, kw_only=True)
    """Velocity over which the step is smoothed [rad/s or m/s]; zero for the sign itself. See `Term.smoothed`."""
    symbol: ClassVar[str] = "FC"
    is_non_negative: ClassVar[bool] = True
    dependence: ClassVar[Dependence] = Dependence.DIRECTION
    urdf_attribute: ClassVar[str | None] = "friction"
    mjcf_attribute: ClassVar[str | None] = "frictionloss"

    def smoothed(self, speed: float) -> Self:
        return replace(self, step_width=speed)

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return gradual_sign(dq, self.step_width) if self.step_width else np.sign(dq)  # [Izaguirre1992] eq. (1)


@dataclass(frozen=True)
class SmoothSign(StateTerm, ScaledTerm):
    """Dry friction that grows smoothly through zero velocity: ``tanh(dq / scale)``."""

    symbol: ClassVar[str] = "FT"

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return gradual_sign(dq, self.scale)

    @classmethod
    def candidates(cls, sizes: TermSizes) -> Mapping[str, Sequence[Term]]:
        return {f"smooth sign {part:g}": scaled_terms(sizes, cls, part * sizes.speed) for part in SPEEDS}


@dataclass(frozen=True)
class Stribeck(StateTerm, ScaledTerm):
    """Dry friction that is larger at creep speed: ``tanh(10 dq / scale) exp(-(dq / scale)^2)``."""

    symbol: ClassVar[str] = "FS"

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return gradual_sign(STRIBECK_STEP * dq, self.scale) * np.exp(-((dq / self.scale) ** 2))

    @classmethod
    def candidates(cls, sizes: TermSizes) -> Mapping[str, Sequence[Term]]:
        return {"Stribeck": scaled_terms(sizes, cls, STRIBECK_SPEED * sizes.speed)}


@dataclass(frozen=True)
class SaturatingViscous(StateTerm):
    """Friction that grows ever less with speed: ``sign(dq) sqrt(|dq|)``."""

    symbol: ClassVar[str] = "FR"
    base_unit: ClassVar[str] = "N m (s/rad)^0.5"

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return np.sign(dq) * np.sqrt(np.abs(dq))

    @classmethod
    def candidates(cls, sizes: TermSizes) -> Mapping[str, Sequence[Term]]:
        return {"saturating viscous": joints_and_motors(sizes, lambda j: cls(joint=j))}


@dataclass(frozen=True)
class AsymmetricViscous(StateTerm):
    """Viscous friction that differs between the two directions: ``|dq|``."""

    symbol: ClassVar[str] = "FVA"
    base_unit: ClassVar[str] = "N m s/rad"

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return np.abs(dq)

    @classmethod
    def candidates(cls, sizes: TermSizes) -> Mapping[str, Sequence[Term]]:
        return {"asymmetric viscous": tuple(cls(joint=j) for j in sizes.joints)}


@dataclass(frozen=True)
class AngleFriction(StateTerm, ScaledTerm):
    """Dry friction that changes once a turn, as where an eccentric gear or a cable bundle is tight.

    The column is ``tanh(dq / scale)`` times the cosine or sine of q.
    """

    sine: bool = field(default=False, kw_only=True)
    """Whether the friction follows the sine of the position instead of its cosine."""
    symbol: ClassVar[str] = "FA"

    @property
    def name(self) -> str:
        return f"FA{'S' if self.sine else 'C'}{self.number}({self.scale:.3g})"

    @property
    def prefix(self) -> str:
        return super().prefix.replace("FA", "FAS" if self.sine else "FAC")

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return gradual_sign(dq, self.scale) * (np.sin if self.sine else np.cos)(q)

    @classmethod
    def candidates(cls, sizes: TermSizes) -> Mapping[str, Sequence[Term]]:
        scales = SPEEDS[0] * sizes.speed
        both = (cls(joint=j, scale=float(scales[j]), sine=sine) for j in sizes.turning for sine in (False, True))
        return {"angle friction": tuple(both)}
