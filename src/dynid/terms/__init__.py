"""Every friction, drive, spring, coupling and memory contribution to the joint torques: one class per term."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "base": ["StateTerm"],
    "catalogue": ["TERMS"],
    "motors": [],
    "friction": ["AsymmetricViscous", "SaturatingViscous", "SmoothSign", "Stribeck"],
    "coupling": ["Coupling", "MotorFriction"],
    "memory": ["Hysteresis", "LaggedSign"],
    "load_dependent": ["CrossTalk", "DriveGain"],
    "springs": ["AngleHarmonic"],
}
"""Module -> its public names, loaded at first use; all classes of terms in these modules are in `TERMS`, in this order.
"""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
