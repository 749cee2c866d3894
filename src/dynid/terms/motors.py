"""Terms of a motor that drives one joint: rotor inertia, and a constant torque (offset of the torque measurement).

`formula` gives the joint torque per unit of the term's parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dynid.terms.base import Dependence, StateTerm


@dataclass(frozen=True)
class RotorInertia(StateTerm):
    """Inertia of the motor's rotor, as felt at the joint: ``IA * ddq``.

    The value IA is the inertia of the rotor times the square of the gear ratio [kg m^2].
    """

    symbol: ClassVar[str] = "IA"
    base_unit: ClassVar[str] = "kg m^2"
    is_non_negative: ClassVar[bool] = True
    dependence: ClassVar[Dependence] = Dependence.ACCELERATION
    mjcf_attribute: ClassVar[str | None] = "armature"

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return ddq  # [Izaguirre1992] eq. (1)


@dataclass(frozen=True)
class Offset(StateTerm):
    """Constant torque: the offset of a sensor or a current, or the asymmetry of dry friction [N m]."""

    symbol: ClassVar[str] = "OFF"
    dependence: ClassVar[Dependence] = Dependence.CONSTANT

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return 1.0
