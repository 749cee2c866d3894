"""Design of motions that reveal the parameters: criteria, limits, search; trajectories and collision geometry."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "hulls": ["Hull", "skeleton_hulls", "urdf_hulls"],
    "command_motion": ["design_commands"],
    "criteria": ["Criterion"],
    "design": ["design_excitation"],
    "design_settings": ["DesignGoal", "SearchSettings"],
    "excitation": ["Excitation"],
    "limits": ["HalfSpace", "MotionLimits", "Workspace"],
    "measured": ["Measured"],
    "plan_files": ["write_plan"],
    "energy_points": ["EnergyPoints", "PointSequence", "optimise_points"],
    "point_design": ["design_energy_points"],
    "trajectories.quintic": ["QuinticTrajectory", "minimum_jerk"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
