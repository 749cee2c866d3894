"""The list of all classes of terms, contributions to the joint torques, and the usual terms of a joint."""

from __future__ import annotations

from dynid.terms.base import Term
from dynid.terms.coupling import CoupledCoulomb, CoupledInertia, CoupledViscous, MotorFriction
from dynid.terms.friction import (
    AsymmetricViscous,
    Coulomb,
    SaturatingViscous,
    SmoothSign,
    Stribeck,
    Viscous,
)
from dynid.terms.load_dependent import BaseTilt, CrossTalk, DriveGain, LoadFriction
from dynid.terms.memory import Hysteresis, LaggedSign
from dynid.terms.motors import Offset, RotorInertia
from dynid.terms.springs import AngleHarmonic

TERMS: list[type[Term]] = [
    RotorInertia,
    Viscous,
    Coulomb,
    Offset,
    CoupledInertia,
    CoupledViscous,
    CoupledCoulomb,
    SmoothSign,
    Hysteresis,
    LaggedSign,
    SaturatingViscous,
    AsymmetricViscous,
    Stribeck,
    LoadFriction,
    DriveGain,
    CrossTalk,
    AngleHarmonic,
    BaseTilt,
    MotorFriction,
]
"""Every class of terms. Readers of result and robot files accept the classes listed here and no other."""


def usual_terms() -> tuple[RotorInertia, Viscous, Coulomb, Offset]:
    """The usual terms of a joint, with zero values: rotor inertia, viscous and dry friction, offset.

    Example:
        >>> [type(term).__name__ for term in dynid.terms.usual_terms()]
        ['RotorInertia', 'Viscous', 'Coulomb', 'Offset']
    """
    return RotorInertia(), Viscous(), Coulomb(), Offset()
