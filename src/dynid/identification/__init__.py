"""Identification: from logs to a robot with known parameters, and its validation on held-out data."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "identify": ["Identification"],
    "recipe": ["Recipe"],
    "rich.joint_friction": ["joint_friction"],
    "significance": ["significant_parameters"],
    "validation": ["Validation", "validate"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
