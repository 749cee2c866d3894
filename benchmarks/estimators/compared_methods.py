"""The estimators that can be compared, by short names.

All of them get the same log. A name that ends in ``+f`` uses positions that are low-pass filtered at the cutoff that
their spectrum suggests; the others use positions as measured. Closed-loop
methods get the control law, like users who know their machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.estimators.trial import Trial
from dynid.errors import ArgumentError
from dynid.estimation.equations import build_equations
from dynid.estimation.estimate import Estimate
from dynid.estimation.registry import estimator_class
from dynid.processing.experiment import Experiment

FILTERED = "+f"
"""Suffix of methods that use low-pass filtered positions."""
DEFAULT = ("ols", "wls", "wls+f", "iv", "didim")
"""Methods that are compared by default."""


Settings = dict[str, Any]


def _no_settings(trial: Trial) -> Settings:
    return {}


def _possible_robots(trial: Trial) -> Settings:
    return {"consistent": True}


_VARIANTS: dict[str, tuple[str, str, Callable[[Trial], Settings]]] = {
    "pc-didim": ("didim", "over possible robots", _possible_robots),
}
"""Method -> the estimator's name in `dynid.estimation.registry`, what its title adds, and its settings in a trial."""
_NAMES = ("ols", "wls", "huber", "feasible", "iv", "didim", *_VARIANTS)
"""All methods; those without a variant are estimators of the registry with their default settings."""


def _variant(name: str) -> tuple[str, str, Callable[[Trial], Settings]]:
    return _VARIANTS.get(name, (name, "", _no_settings))


@dataclass(frozen=True, slots=True)
class Method:
    """A named method that makes an estimate from a trial."""

    name: str
    title: str
    filtered: bool
    """Whether it uses low-pass filtered positions."""

    def data(self, trial: Trial) -> Experiment:
        """The form of the log that it uses."""
        return trial.filtered if self.filtered else trial.raw

    def solve(self, trial: Trial) -> Estimate:
        """Build the equations and solve them."""
        estimator, _, settings = _variant(self.name.removesuffix(FILTERED))
        return estimator_class(estimator)(**settings(trial)).solve(
            build_equations(trial.robot, self.data(trial), base=trial.base)
        )


def method(name: str) -> Method:
    """Find the method with a short name.

    Raises:
        ArgumentError: The name is unknown; the error lists all names.
    """
    plain = name.removesuffix(FILTERED)
    if plain not in _NAMES:
        raise ArgumentError(
            f"there is no method '{name}'",
            remedy=f"Choose one of {', '.join(names())}; append +f for filtered positions.",
        )
    estimator, addition, _ = _variant(plain)
    parts = [estimator_class(estimator).title, addition, "positions low-pass filtered" if name != plain else ""]
    return Method(name, ", ".join(part for part in parts if part), name != plain)


def names() -> tuple[str, ...]:
    """All short names, without the filtered forms."""
    return _NAMES
