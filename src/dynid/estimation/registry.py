"""Estimators by name. What an estimator can do is declared on its class (`dynid.estimation.estimate.Estimator`)."""

from __future__ import annotations

from importlib import import_module

from dynid.errors import ArgumentError
from dynid.estimation.estimate import Estimator

ESTIMATORS: dict[str, str] = {
    "feasible": "dynid.estimation.physical.feasible:FeasibleWLS",
    "wls": "dynid.estimation.linear.least_squares:WLS",
    "ols": "dynid.estimation.linear.least_squares:OLS",
    "huber": "dynid.estimation.linear.robust:Huber",
    "ridge": "dynid.estimation.linear.minimum_norm:Ridge",
    "svd": "dynid.estimation.linear.minimum_norm:TruncatedSVD",
    "reduced-set": "dynid.estimation.linear.reduced_set:ReducedSet",
    "link-by-link": "dynid.estimation.linear.link_by_link:LinkByLink",
    "energy": "dynid.estimation.linear.energy_differences:Energy",
    "iv": "dynid.estimation.closed_loop.loop_estimator:InstrumentalVariables",
    "didim": "dynid.estimation.closed_loop.loop_estimator:DIDIM",
}
"""Name -> "module:class". To add an estimator, add a line. A module is imported only when its estimator is used."""


def estimator_class(name: str) -> type[Estimator]:
    """Import the class of an estimator.

    Raises:
        ArgumentError: There is no estimator of that name.
    """
    if name not in ESTIMATORS:
        raise ArgumentError(f"there is no estimator '{name}'", remedy=f"Choose one of {', '.join(ESTIMATORS)}.")
    module, _, kind = ESTIMATORS[name].partition(":")
    found: type[Estimator] = getattr(import_module(module), kind)
    return found


def estimators() -> tuple[type[Estimator], ...]:
    """Import the classes of all estimators, in the order of `ESTIMATORS`; each declares name, use and references.

    Example:
        >>> dynid.estimation.estimators()[0].name
        'feasible'
    """
    return tuple(estimator_class(name) for name in ESTIMATORS)
