"""Every friction, drive, spring, coupling and memory contribution to the joint torques: one class per term."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "base": ["StateTerm"],
    "catalogue": ["TERMS"],
    "coupling": ["Coupling", "MotorFriction"],
    "friction": ["AsymmetricViscous", "SaturatingViscous", "SmoothSign", "Stribeck"],
    "load_dependent": ["CrossTalk", "DriveGain"],
    "memory": ["Hysteresis", "LaggedSign"],
    "springs": ["AngleHarmonic"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
