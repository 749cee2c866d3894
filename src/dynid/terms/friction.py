"""Terms of friction that depends on the joint's present velocity only: viscous, dry, and shapes between them.

A term's torque is ``value * formula(q, dq, ddq)``. A term with a ``scale`` has this as its width [rad/s or m/s].
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from dynid.terms.base import Dependence, ScaledTerm, StateTerm
from dynid.terms.smoothing import hold_within

STRIBECK_STEP = 10.0
"""Ratio of a Stribeck term's scale to the width of its step at rest (convention: the step is narrow compared with the
peak of friction at creep speed)."""


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
        return np.tanh(dq / self.step_width) if self.step_width else np.sign(dq)  # [Izaguirre1992] eq. (1)


@dataclass(frozen=True)
class SmoothSign(StateTerm, ScaledTerm):
    """Dry friction that grows smoothly through zero velocity: ``tanh(dq / scale)``."""

    symbol: ClassVar[str] = "FT"
    is_non_negative: ClassVar[bool] = True

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return np.tanh(dq / self.scale)


@dataclass(frozen=True)
class Stribeck(StateTerm, ScaledTerm):
    """Dry friction that is larger at creep speed: ``tanh(10 dq / scale) exp(-(dq / scale)^2)``."""

    symbol: ClassVar[str] = "FS"
    is_non_negative: ClassVar[bool] = True

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return np.tanh(STRIBECK_STEP * dq / self.scale) * np.exp(-((dq / self.scale) ** 2))


@dataclass(frozen=True)
class SaturatingViscous(StateTerm):
    """Friction that grows ever less with speed: ``sign(dq) sqrt(|dq|)``."""

    limit: float = field(default=np.inf, kw_only=True)
    """Speed above which the friction no longer grows [rad/s or m/s]: the highest speed in the data."""
    symbol: ClassVar[str] = "FR"
    base_unit: ClassVar[str] = "N m (s/rad)^0.5"
    is_non_negative: ClassVar[bool] = True

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return np.sign(dq) * np.sqrt(np.abs(hold_within(dq, self.limit)))


@dataclass(frozen=True)
class AsymmetricViscous(StateTerm):
    """Viscous friction that differs between the two directions: ``|dq|``."""

    limit: float = field(default=np.inf, kw_only=True)
    """Speed above which the difference no longer grows [rad/s or m/s]: the highest speed in the data."""
    symbol: ClassVar[str] = "FVA"
    base_unit: ClassVar[str] = "N m s/rad"

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return np.abs(hold_within(dq, self.limit))
