"""The estimators that can be compared, by short names.

All of them get the same log. A name that ends in ``+f`` uses positions that are low-pass filtered at the cutoff that
their spectrum suggests; the others use positions as measured. Total least squares, likelihood and Kalman filters get
the noise levels of the sensors, and closed-loop methods get the control law, like users who know their machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from dynid.errors import ArgumentError
from dynid.estimation.equations import build_equations
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.least_squares import OLS, WLS
from dynid.estimation.linear.robust import Huber
from dynid.estimation.noisy.kalman import Kalman
from dynid.estimation.noisy.likelihood import ML
from dynid.estimation.noisy.total_least_squares import TLS
from dynid.estimation.physical.feasible import FeasibleWLS
from dynid.processing.experiment import Experiment
from dynid.studies.compare.trial import Trial

__all__ = ["DEFAULT", "Method", "method", "names"]

FILTERED = "+f"
"""Suffix of methods that use low-pass filtered positions."""
LEAST_POSITION_STD = 1e-6
"""Smallest position noise that Kalman filters assume [rad or m]; a convention, about the error of the sampled model."""
DEFAULT = ("ols", "wls", "wls+f", "tls", "ml", "iv", "didim", "cloe", "clie", "ekf")
"""Methods that are compared by default."""


def _kalman(kind: str, *, square_root: bool) -> Callable[[Trial], Estimator]:
    def make(trial: Trial) -> Estimator:
        return Kalman(
            kind=kind,  # type: ignore[arg-type]
            square_root=square_root,
            position_std=max(trial.condition.known_position_std, LEAST_POSITION_STD),
            torque_std=tuple(max(std, 1e-6) for std in trial.torque_std),
            start_std=max(2.0 * trial.condition.start_error, 0.05),
        )

    return make


def _tls(trial: Trial) -> Estimator:
    std = trial.condition.known_position_std
    return TLS(position_std=std if std > 0.0 else None)


def _ml(trial: Trial) -> Estimator:
    return ML(position_std=trial.condition.known_position_std)


def _make_lazily(module: str, name: str, **options: Any) -> Callable[[Trial], Estimator]:
    """Make a closed-loop estimator; its module is imported when it is needed."""

    def make(trial: Trial) -> Estimator:
        estimator: Estimator = getattr(import_module(f"dynid.estimation.closed_loop.{module}"), name)(**options)
        return estimator

    return make


_MAKERS: dict[str, tuple[str, Callable[[Trial], Estimator]]] = {
    "ols": ("ordinary least squares", lambda trial: OLS()),
    "wls": ("weighted least squares", lambda trial: WLS()),
    "huber": ("robust least squares", lambda trial: Huber()),
    "feasible": ("physically consistent weighted least squares", lambda trial: FeasibleWLS()),
    "tls": ("total least squares, errors of known size", _tls),
    "ml": ("maximum likelihood, motion unknown", _ml),
    "iv": ("instrumental variables from the simulated loop", _make_lazily("instrumental", "InstrumentalVariables")),
    "didim": ("torque error of the simulated loop", _make_lazily("output_error", "DIDIM")),
    "cloe": ("position error of the simulated loop", _make_lazily("output_error", "CLOE")),
    "clie": ("torque input error of the simulated loop", _make_lazily("output_error", "CLIE")),
    "pc-didim": ("torque error over possible robots", _make_lazily("output_error", "DIDIM", consistent=True)),
    "pc-cloe": ("position error over possible robots", _make_lazily("output_error", "CLOE", consistent=True)),
    "ekf": ("extended Kalman filter", _kalman("extended", square_root=False)),
    "ukf": ("unscented Kalman filter", _kalman("unscented", square_root=False)),
    "srekf": ("square-root extended Kalman filter", _kalman("extended", square_root=True)),
    "srukf": ("square-root unscented Kalman filter", _kalman("unscented", square_root=True)),
}


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
        _, make = _MAKERS[self.name.removesuffix(FILTERED)]
        return make(trial).solve(build_equations(trial.robot, self.data(trial), base=trial.base))


def method(name: str) -> Method:
    """Find the method with a short name.

    Raises:
        ArgumentError: The name is unknown; the error lists all names.
    """
    plain = name.removesuffix(FILTERED)
    if plain not in _MAKERS:
        raise ArgumentError(
            f"there is no method '{name}'",
            remedy=f"Choose one of {', '.join(names())}; append +f for filtered positions.",
        )
    title = _MAKERS[plain][0] + (", positions low-pass filtered" if name != plain else "")
    return Method(name, title, name != plain)


def names() -> tuple[str, ...]:
    """All short names, without the filtered forms."""
    return tuple(_MAKERS)
