"""Estimators by name. What an estimator can do is declared on its class (`dynid.estimators.estimate.Estimator`)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dynid.errors import ArgumentError

if TYPE_CHECKING:
    from dynid.estimators.estimate import Estimator

ESTIMATORS: dict[str, str] = {
    "feasible": "dynid.estimators.physical.feasible:FeasibleWLS",
    "wls": "dynid.estimators.linear.least_squares:WLS",
    "ols": "dynid.estimators.linear.least_squares:OLS",
    "huber": "dynid.estimators.linear.robust:Huber",
    "ridge": "dynid.estimators.linear.minimum_norm:Ridge",
    "svd": "dynid.estimators.linear.minimum_norm:TruncatedSVD",
    "reduced-set": "dynid.estimators.linear.reduced_set:ReducedSet",
    "link-by-link": "dynid.estimators.linear.link_by_link:LinkByLink",
    "energy": "dynid.estimators.linear.energy_differences:Energy",
    "iv": "dynid.estimators.closed_loop.loop_estimator:InstrumentalVariables",
    "didim": "dynid.estimators.closed_loop.loop_estimator:DIDIM",
}
"""Name -> "module:class", a public name of `dynid.estimators`. To add an estimator, add a line.

A module is imported only when its estimator is used.
"""


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
        >>> dynid.estimators.estimators()[0].name
        'feasible'
    """
    return tuple(estimator_class(name) for name in ESTIMATORS)
