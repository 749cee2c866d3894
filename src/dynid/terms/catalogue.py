"""The list of all terms, and the terms of a usual joint."""

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
"""Every term; result files and description files read the list."""


def usual_terms() -> tuple[RotorInertia, Viscous, Coulomb, Offset]:
    """The terms of a usual joint, values zero: rotor inertia, viscous and dry friction, offset.

    Example:
        >>> [type(term).__name__ for term in dynid.terms.usual_terms()]
        ['RotorInertia', 'Viscous', 'Coulomb', 'Offset']
    """
    return RotorInertia(), Viscous(), Coulomb(), Offset()
