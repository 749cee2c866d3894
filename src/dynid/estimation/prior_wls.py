"""Weighted least squares drawn towards the prior, without physical constraints: one linear solve.

What the data determine, they decide; what they leave open stays at the prior instead of wandering off, which predicts
better than plain least squares. `FeasibleWLS` is the same with every body possible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.estimation.cross_validation import cross_validated_weight
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.least_squares import least_squares_estimate, refined_weights
from dynid.estimation.prior import PriorCoordinates
from dynid.estimation.problem import Problem

__all__ = ["PriorWLS"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorWLS(Estimator):
    """Weighted least squares with a Gaussian prior around the robot's own parameters."""

    prior_weight: float | None = None
    """As in `FeasibleWLS`; None chooses by cross-validation."""
    rounds: int = 3
    """How often the joints' weights are refined."""

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        if self.prior_weight is not None and not self.prior_weight > 0.0:
            raise ArgumentError(f"the prior's weight must be positive, not {self.prior_weight}")

    def solve(self, problem: Problem) -> Estimate:
        """Estimate all standard parameters, possible or not; the base parameters are their combinations."""
        weights = refined_weights(problem, self.rounds)
        plain = least_squares_estimate(problem, weights, "weighted least squares with a prior")
        scaled = weights / plain.inflation  # so that correlated samples do not outweigh the prior
        weight, notes = self.prior_weight, tuple[str, ...]()
        if weight is None:
            weight, notes = cross_validated_weight(problem, scaled)
        factor = problem.information.weight(scaled)
        coordinates = PriorCoordinates.of(problem.robot, factor.scale[problem.base.rank :])
        pull = np.sqrt(weight * coordinates.pull)
        rows = np.vstack([factor.R @ problem.grouping @ coordinates.from_scaled, np.diag(pull)])
        y = np.linalg.lstsq(rows, np.concatenate([factor.z, pull * coordinates.centre]), rcond=None)[0]
        theta = coordinates.from_scaled @ y
        return replace(
            plain,
            values=problem.grouping @ theta,
            notes=(*plain.notes, *coordinates.notes, *notes),
            extras={"prior_weight": weight},
        )
