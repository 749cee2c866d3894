"""Design of motions that reveal the parameters: criteria, limits, search; trajectories and collision geometry."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "collision.capsules": ["Capsule", "skeleton_capsules"],
    "collision.geometry": ["urdf_hulls"],
    "collision.hulls": ["Hull", "hull_capsules"],
    "command_motion": ["CommandSettings", "design_commands"],
    "criteria": [
        "AOptimality",
        "ColumnScaled",
        "ConditionNumber",
        "DOptimality",
        "EOptimality",
        "Equilibrium",
        "FrobeniusCondition",
        "GeometricCost",
        "PredictedDeviation",
        "QRCondition",
        "WeightedCost",
    ],
    "design": ["design_excitation"],
    "design_settings": ["DesignGoal", "SearchSettings"],
    "excitation": ["Excitation"],
    "limits": ["Cell", "HalfSpace", "MotionLimits", "Workspace"],
    "measured": ["JointTorques", "LoadTorques", "LoadWrench"],
    "plan_files": ["write_plan"],
    "points.energy_points": ["EnergyPoints", "PointSequence", "optimise_points"],
    "points.point_excitation": ["design_energy_points"],
    "points.point_trajectory": [
        "PointDesign",
        "PointSettings",
        "PointStep",
        "balanced_cost",
        "design_point_trajectory",
    ],
    "trajectories.fourier": ["FourierTrajectory"],
    "trajectories.quintic": ["QuinticTrajectory", "minimum_jerk"],
    "trajectories.spline": ["SplineTrajectory"],
    "trajectories.time_scaling": ["scale_to_limits"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
