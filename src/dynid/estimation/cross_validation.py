"""Errors on left-out blocks of time, for any set of features and any weight of the prior, without a second pass.

The fits are regularised by the prior but not constrained by it, so that each is one linear solve: what is compared are
models and weights, and constraints that hold in the end hardly change the order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.estimation.features import Feature
from dynid.estimation.prior import PriorCoordinates
from dynid.estimation.problem import Problem

__all__ = ["Folds", "cross_validated_weight"]

Floats = NDArray[np.float64]
WEIGHTS = (0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
"""Prior weights that cross-validation tries, in units of the torque's noise."""


class Folds:
    """Cross products of all columns, per fold, and the fits that leave one fold out."""

    def __init__(self, problem: Problem, weights: Floats, count: int = 20) -> None:
        """Cut a problem's blocks into folds.

        Args:
            problem: The problem.
            weights: (n,) weight of each joint's squared residuals.
            count: Most folds.
        """
        information = problem.information
        segments = [s for s, row in zip(information.segments, information.samples, strict=True) if row.any()]
        if len(segments) < 2:
            raise ArgumentError("cross-validation needs two blocks of time or more", remedy="Use a longer experiment.")
        self.problem, self.weights = problem, weights
        groups = np.array_split(np.array(segments), min(count, len(segments)))
        self._factors = [[_stacked(information.factor(j, int(s)) for s in g) for j in range(problem.robot.dof)] for g in groups]
        self._places = [[*support, len(information.columns)] for support in information.supports]
        self._prepare()

    def __len__(self) -> int:
        return len(self._factors)

    def _prepare(self) -> None:
        """Cross products in the prior's units, of everything but each fold."""
        size = len(self.problem.information.columns) + 1
        folds = np.zeros((len(self), size, size))
        for total, row in zip(folds, self._factors, strict=True):
            for weight, R, places in zip(self.weights, row, self._places, strict=True):
                total[np.ix_(places, places)] += weight * (R.T @ R)
        rest = folds.sum(axis=0) - folds
        length = np.sqrt(np.diagonal(folds.sum(axis=0)))[self.problem.base.rank : -1]
        self.coordinates = PriorCoordinates.of(self.problem.robot, np.where(length > 0.0, length, np.inf))
        self._to_base = self.problem.grouping @ self.coordinates.from_scaled
        self._products = self._to_base.T @ rest[:, :-1, :-1] @ self._to_base
        self._sides = rest[:, -1, :-1] @ self._to_base

    def reweighted(self, weights: Floats) -> Folds:
        """The same folds with other weights of the joints."""
        other = object.__new__(Folds)
        other.problem, other.weights = self.problem, weights
        other._factors, other._places = self._factors, self._places
        other._prepare()
        return other

    def errors(self, features: Sequence[Feature], prior_weight: float) -> Floats:
        """(folds, n) squared residuals of each left-out fold and joint, fitted without that fold."""
        rigid = len(self.problem.base.layout)
        columns = [*range(rigid), *(rigid + self.problem.features.index(feature) for feature in features)]
        pull = prior_weight * self.coordinates.pull[columns]
        matrices = self._products[:, columns][:, :, columns] + np.diag(pull)
        sides = self._sides[:, columns] + pull * self.coordinates.centre[columns]
        solutions = np.linalg.solve(matrices, sides[..., None])[..., 0]
        values = solutions @ self._to_base[:, columns].T
        return self._residuals(np.hstack([values, -np.ones((len(self), 1))]))

    def _residuals(self, vectors: Floats) -> Floats:
        return np.array(
            [
                [float(np.sum((R @ vector[places]) ** 2)) for R, places in zip(row, self._places, strict=True)]
                for row, vector in zip(self._factors, vectors, strict=True)
            ]
        )

    def best_weight(self, features: Sequence[Feature]) -> float:
        """The strongest prior whose weighted error is within 1 % of the best."""
        errors = [float((self.errors(features, weight) * self.weights).sum()) for weight in WEIGHTS]
        return max(w for w, error in zip(WEIGHTS, errors, strict=True) if error <= 1.01 * min(errors))


def _stacked(factors: Sequence[Floats] | object) -> Floats:
    return np.vstack(list(factors))  # type: ignore[call-overload]


def cross_validated_weight(problem: Problem, weights: Floats) -> tuple[float, tuple[str, ...]]:
    """The prior's weight by cross-validation over blocks of time, and a note that says so."""
    if np.count_nonzero(problem.information.samples.any(axis=1)) < 3:
        return 1.0, ("too few blocks of time to choose the prior's weight by cross-validation: 1 was taken",)
    folds = Folds(problem, weights)
    weight = folds.best_weight(problem.features)
    return weight, (f"prior weight {weight:g} by cross-validation over {len(folds)} blocks",)
