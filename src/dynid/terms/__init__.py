"""Every friction, drive, spring, coupling and memory contribution to the joint torques: one class per term."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "base": ["Dependence", "JointTerm", "MemoryTerm", "Motion", "Reference", "ScaledTerm", "StateTerm", "Term"],
    "catalogue": ["TERMS", "usual_terms"],
    "coupling": ["CoupledCoulomb", "CoupledInertia", "CoupledViscous", "Coupling", "MotorFriction"],
    "friction": [
        "AsymmetricViscous",
        "Coulomb",
        "SaturatingViscous",
        "SmoothSign",
        "Stribeck",
        "Viscous",
    ],
    "load_dependent": ["BaseTilt", "CrossTalk", "DriveGain", "LoadFriction"],
    "memory": ["Hysteresis", "LaggedSign"],
    "motors": ["Offset", "RotorInertia"],
    "springs": ["AngleHarmonic"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
