"""The estimators that can be compared, by short names.

All get the same log. A name ending in ``+f`` works on positions low-passed where their spectrum suggests; the others on
positions as measured. Total least squares, likelihood and Kalman filters are told the noise levels of the sensors, and
the methods of the loop are told the control law, as a user would who knows his machine.
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
"""Ending of the names of methods that work on low-passed positions."""
LEAST_POSITION_STD = 1e-6
"""What Kalman filters take for the positions' noise where there is none: the sampled model is no better [rad or m]."""
DEFAULT = ("ols", "wls", "wls+f", "tls", "ml", "iv", "didim", "cloe", "clie", "ekf")
"""What is compared unless something else is asked for."""


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


def _imported(module: str, name: str, **options: Any) -> Callable[[Trial], Estimator]:
    """An estimator of the loop, loaded when it is asked for."""

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
    "iv": ("instrumental variables from the simulated loop", _imported("instrumental", "InstrumentalVariables")),
    "didim": ("torque error of the simulated loop", _imported("output_error", "DIDIM")),
    "cloe": ("position error of the simulated loop", _imported("output_error", "CLOE")),
    "clie": ("torque input error of the simulated loop", _imported("output_error", "CLIE")),
    "pc-didim": ("torque error over possible robots", _imported("output_error", "DIDIM", consistent=True)),
    "pc-cloe": ("position error over possible robots", _imported("output_error", "CLOE", consistent=True)),
    "ekf": ("extended Kalman filter", _kalman("extended", square_root=False)),
    "ukf": ("unscented Kalman filter", _kalman("unscented", square_root=False)),
    "srekf": ("square-root extended Kalman filter", _kalman("extended", square_root=True)),
    "srukf": ("square-root unscented Kalman filter", _kalman("unscented", square_root=True)),
}


@dataclass(frozen=True, slots=True)
class Method:
    """A named way from a trial to an estimate."""

    name: str
    title: str
    filtered: bool
    """Whether it works on low-passed positions."""

    def data(self, trial: Trial) -> Experiment:
        """The form of the log that it works on."""
        return trial.filtered if self.filtered else trial.raw

    def solve(self, trial: Trial) -> Estimate:
        """Reduce the log and estimate."""
        _, make = _MAKERS[self.name.removesuffix(FILTERED)]
        return make(trial).solve(build_equations(trial.robot, self.data(trial), base=trial.base))


def method(name: str) -> Method:
    """The method of a short name.

    Raises:
        ArgumentError: There is none; the error lists them.
    """
    plain = name.removesuffix(FILTERED)
    if plain not in _MAKERS:
        raise ArgumentError(f"there is no method '{name}'", remedy=f"Choose among {', '.join(names())}, each also +f.")
    title = _MAKERS[plain][0] + (", positions low-passed" if name != plain else "")
    return Method(name, title, name != plain)


def names() -> tuple[str, ...]:
    """All short names, without their low-passed forms."""
    return tuple(_MAKERS)
