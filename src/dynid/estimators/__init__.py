"""Estimators of robot parameters; all have the method ``solve(equations) -> Estimate``."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "closed_loop.loop_estimator": ["DIDIM", "InstrumentalVariables"],
    "equations": ["Samples", "build_equations"],
    "estimate": ["Estimate", "Estimator"],
    "linear.energy_differences": ["Energy"],
    "linear.least_squares": ["OLS", "WLS"],
    "linear.link_by_link": ["LinkByLink"],
    "linear.minimum_norm": ["Ridge", "TruncatedSVD"],
    "linear.reduced_set": ["ReducedSet"],
    "linear.robust": ["Huber"],
    "online.online_energy": ["OnlineEnergy"],
    "online.online_least_squares": ["OnlineLeastSquares"],
    "online.online_links": ["OnlineLinkByLink", "excitation_table"],
    "perturbation": ["estimate_bounds", "perturbation_bounds"],
    "physical.bounds": ["Bounds"],
    "physical.feasible": ["FeasibleWLS"],
    "registry": ["estimators"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
