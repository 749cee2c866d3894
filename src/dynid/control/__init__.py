"""Control with a model of the robot: controllers, simulated robots, tracking errors, and computation at two rates."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "bang_coast_bang": ["BangCoastBang"],
    "control_simulation": ["Imperfections", "Simulation", "simulate"],
    "controllers": ["ComputedTorque", "FeedForward", "GravityCompensation", "OpenLoopTorque"],
    "experiments": ["Tracking", "hold_still", "robustness", "track", "tracking_table", "with_wrong_parameters"],
    "hand_guiding": ["Guiding", "Hand", "HandGuiding", "guide_by_hand"],
    "mujoco_plant": ["MujocoPlant"],
    "plant": ["AdaptivePlant", "RungeKuttaPlant"],
    "two_rate": ["Bandwidths", "TwoRateStudy", "bandwidths", "two_rate_study"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
