"""Estimators of robot parameters; all have the method ``solve(equations) -> Estimate``."""

from __future__ import annotations

from dynid.estimators.registry import ESTIMATORS
from dynid.lazy import lazy_names

NAMES = {
    "equations": ["Samples", "build_equations"],
    "estimate": ["Estimate", "Estimator"],
    "online.online_energy": ["OnlineEnergy"],
    "online.online_least_squares": ["OnlineLeastSquares"],
    "online.online_links": ["OnlineLinkByLink", "excitation_table"],
    "perturbation": ["estimate_bounds", "perturbation_bounds"],
    "physical.bounds": ["Bounds"],
    "registry": ["estimators"],
}
"""Module -> its public names, loaded at first use; those of the estimators in the registry are added below."""
for _place in ESTIMATORS.values():
    _module, _, _name = _place.removeprefix("dynid.estimators.").partition(":")
    NAMES.setdefault(_module, []).append(_name)

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
