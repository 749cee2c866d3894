"""Servos and legs: armature, friction, gains, delay and limits of drives, from commands and encoders without torque."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "motion": ["CommandedMotion"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
