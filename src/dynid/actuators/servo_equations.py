"""Measured minus simulated motion as equations for the parameters of servos.

Residuals of a simulated motion are strongly correlated in time, mostly because no model of friction is perfect. Their
correlation r from sample to sample can be filtered out (``e[k] - r e[k-1]``: least squares under first-order
noise); whatever is left enters the covariance (`dynid.actuators.judgement.servo_covariance`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.motion import CommandedMotion
from dynid.actuators.servo_model import ServoModel
from dynid.actuators.servo_search import Normal
from dynid.actuators.servo_simulator import differentiate_servos, simulate_servos
from dynid.errors import ArgumentError, EstimationError

__all__ = ["ServoEquations", "filtered", "lag_correlation"]

Floats = NDArray[np.float64]
MOST_CORRELATION = 0.99
"""Largest correlation that is filtered out: beyond it the filter is a difference, and the level is lost. Convention."""


def filtered(values: Floats, correlation: float) -> Floats:
    """(N, ...) samples minus the correlation times the sample before, the first one kept at its own variance."""
    result = np.array(values, dtype=float)
    result[1:] -= correlation * values[:-1]
    result[0] *= np.sqrt(1.0 - correlation**2)
    return result


def lag_correlation(residuals: Sequence[Floats]) -> float:
    """Correlation of residuals (N, n) with those one sample later, over all motions and joints."""
    later = sum(float(np.sum(e[1:] * e[:-1])) for e in residuals)
    total = sum(float(np.sum(e**2)) for e in residuals)
    return float(np.clip(later / total, 0.0, MOST_CORRELATION)) if total > 0.0 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ServoEquations:
    """The motions that a model has to explain."""

    model: ServoModel
    motions: tuple[CommandedMotion, ...]
    correlation: float = 0.0
    """Correlation of residuals from sample to sample that is filtered out."""
    variance: float = 0.0
    """Variance of a filtered residual, by which priors weigh; zero leaves priors out."""

    def __post_init__(self) -> None:
        """Refuse a model of which nothing is to be found."""
        if not self.model.entries:
            raise ArgumentError("nothing of the model is free", remedy="Name the parameters that are to be found.")

    def cost(self, values: Floats) -> float:
        """Sum of squared residuals; infinite where a motion runs away."""
        try:
            return sum(float(np.sum(e**2)) for e in self.residuals(values)) + self._prior(values)[0]
        except EstimationError:
            return float("inf")

    def residuals(self, values: Floats) -> list[Floats]:
        """(N, n) filtered residuals of every motion."""
        return [
            filtered(motion.position - simulate_servos(self.model, values, motion), self.correlation)
            for motion in self.motions
        ]

    def normal(self, values: Floats) -> Normal:
        """The normal equations."""
        P = len(self.model.entries)
        cost, information, score = 0.0, np.zeros((P, P)), np.zeros(P)
        for error, slopes in self.pieces(values):
            J, e = slopes.reshape(-1, P), error.ravel()
            with np.errstate(over="ignore", invalid="ignore"):  # an unstable motion: the search goes another way
                cost, information, score = cost + float(e @ e), information + J.T @ J, score + J.T @ e
        extra, weight, way = self._prior(values)
        return Normal(cost + extra, information + np.diag(weight), score + way)

    @property
    def prior_weights(self) -> Floats:
        """(P,) weights of priors in ``J' J``."""
        return self._prior(self.model.start)[1]

    def _prior(self, values: Floats) -> tuple[float, Floats, Floats]:
        """Cost, weights (P,) and way back (P,) of what is known before."""
        known = [entry.prior for entry in self.model.entries]
        weight = np.array([0.0 if prior is None else self.variance / prior[1] ** 2 for prior in known])
        back = np.array([0.0 if prior is None else prior[0] for prior in known]) - values
        return float(np.sum(weight * back**2)), weight, weight * back

    def pieces(self, values: Floats) -> list[tuple[Floats, Floats]]:
        """(N, n) filtered residuals of every motion, and the (N, n, P) derivatives of what is simulated."""
        pieces = []
        for motion in self.motions:
            found = differentiate_servos(self.model, values, motion)
            error = filtered(motion.position - found.position, self.correlation)
            pieces.append((error, filtered(found.slopes, self.correlation)))
        return pieces
