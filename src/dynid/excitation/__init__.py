"""Design of motions that reveal the parameters: criteria, limits, search; trajectories and collision geometry."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "collision_shapes": ["urdf_hulls"],
    "criteria": ["Criterion"],
    "design": ["design_excitation"],
    "excitation": ["Excitation"],
    "hulls": ["skeleton_hulls"],
    "limits": ["MotionLimits", "Workspace"],
    "measured": ["Measured"],
    "energy_points": ["EnergyPoints", "PointSequence", "optimise_points"],
    "point_design": ["design_energy_points"],
    "search": ["SearchSettings"],
    "trajectories.quintic": ["QuinticTrajectory", "minimum_jerk"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
