"""Measured minus simulated motion as equations for the parameters of servos.

Residuals of a simulated motion last, mostly because no model of friction is perfect. `dynid.actuators.error_filter`
takes out what it can; whatever is left enters the covariance (`dynid.actuators.judgement.servo_covariance`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.actuators.error_filter import ErrorFilter
from dynid.actuators.motion import CommandedMotion
from dynid.actuators.servo_model import ServoModel
from dynid.actuators.servo_search import Normal
from dynid.actuators.servo_simulator import differentiate_chains, differentiate_servos, simulate_servos
from dynid.arrays import Floats
from dynid.errors import ArgumentError, EstimationError

NO_FILTER = ErrorFilter()
"""Plain least squares."""


@dataclass(frozen=True, slots=True, eq=False)
class ServoEquations:
    """The motions that a model has to explain."""

    model: ServoModel
    motions: tuple[CommandedMotion, ...]
    error_filter: ErrorFilter = NO_FILTER
    """Takes out how errors last."""
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
            self.error_filter.apply(motion.position - simulate_servos(self.model, values, motion), motion)
            for motion in self.motions
        ]

    def normal(self, values: Floats) -> Normal:
        """The normal equations."""
        P = len(self.model.entries)
        cost, information, score = 0.0, np.zeros((P, P)), np.zeros(P)
        for motion in self.motions:
            for chain in differentiate_chains(self.model, values, motion):
                error = motion.position[:, chain.joints] - chain.position
                with np.errstate(over="ignore", invalid="ignore"):  # an unstable motion: the search goes another way
                    e = self.error_filter.apply(error, motion, chain.joints).ravel()
                    J = self.error_filter.apply(chain.slopes, motion, chain.joints).reshape(e.size, -1)
                    cost += float(e @ e)
                    information[np.ix_(chain.entries, chain.entries)] += J.T @ J
                    score[chain.entries] += J.T @ e
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
            error = self.error_filter.apply(motion.position - found.position, motion)
            pieces.append((error, self.error_filter.apply(found.slopes, motion)))
        return pieces
