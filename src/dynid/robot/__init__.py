"""What a robot is: model, terms, readers and writers, built-in robots."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "check": ["check_robot"],
    "formats": ["read_robot"],
    "formats.dh": ["DH", "StandardDH", "from_dh"],
    "formats.mjcf.read": ["read_mjcf"],
    "formats.mjcf.write": ["write_mjcf"],
    "formats.modified_dh": ["modified_dh"],
    "formats.simulator_models": ["from_mujoco", "from_pinocchio", "to_mujoco", "to_pinocchio"],
    "formats.urdf": ["read_urdf", "snapped_joints", "write_urdf"],
    "inertia": ["Inertia"],
    "model": ["Robot"],
    "parts": ["Joint", "JointLimits", "Link"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
