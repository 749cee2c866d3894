"""What a robot is: model, terms, readers and writers, built-in robots. Most of its names are in `dynid` itself."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "formats": ["read_robot"],
    "formats.dh": ["StandardDH"],
    "formats.modified_dh": ["modified_dh"],
    "formats.simulator_models": ["to_mujoco", "to_pinocchio"],
    "parts": ["JointLimits"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
