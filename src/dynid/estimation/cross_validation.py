"""Errors on left-out blocks of time, for any set of features and any weight of the prior, without a second pass.

The fits are regularised by the prior but not constrained by it, so that each is one linear solve: what is compared are
models and weights, and constraints that hold in the end hardly change the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.estimation.estimate import Estimate
from dynid.estimation.features import Feature
from dynid.estimation.least_squares import least_squares_estimate, refined_weights
from dynid.estimation.prior import PriorCoordinates
from dynid.estimation.problem import Problem
from dynid.information import Factor

__all__ = ["Folds", "Weighing", "weighed"]

Floats = NDArray[np.float64]
WEIGHTS = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
"""Prior weights that cross-validation tries, in units of the torque's noise."""
ROUNDING = 4.0 * float(np.finfo(float).eps)
"""Part of the summed terms that a squared error cannot be told from zero by."""


class Folds:
    """Cross products of all columns, per fold, and the fits that leave one fold out."""

    def __init__(self, problem: Problem, weights: Floats, counts: Sequence[int] = (12,)) -> None:
        """Cut a problem's blocks into folds.

        Args:
            problem: The problem.
            weights: (n,) weight of each joint's squared residuals in the fits.
            counts: Numbers of folds; several partitions make the result depend less on where the cuts happen to lie.
        """
        information = problem.information
        segments = [s for s, row in zip(information.segments, information.samples, strict=True) if row.any()]
        if len(segments) < 2:
            raise ArgumentError("cross-validation needs two blocks of time or more", remedy="Use a longer experiment.")
        self.problem, self.weights = problem, weights
        groups = [group for count in counts for group in _groups(problem, segments, count)]
        weighted = np.array([self._products(group, weights) for group in groups])
        self._torque = np.array([self._products(group, np.ones_like(weights)) for group in groups])
        self._weighted = weighted
        whole = weighted.sum(axis=0) / len(counts)
        rest = whole - weighted
        length = np.sqrt(np.diagonal(whole))[problem.base.rank : -1]
        self.coordinates = PriorCoordinates.of(problem.robot, np.where(length > 0.0, length, np.inf))
        self._to_base = problem.grouping @ self.coordinates.from_scaled
        self._matrices = self._to_base.T @ rest[:, :-1, :-1] @ self._to_base
        self._sides = rest[:, -1, :-1] @ self._to_base

    def __len__(self) -> int:
        return len(self._weighted)

    def _products(self, segments: NDArray[np.int64], weights: Floats) -> Floats:
        """Cross products of all columns and the torque over some segments."""
        information = self.problem.information
        size = len(information.columns) + 1
        total = np.zeros((size, size))
        for joint, support in enumerate(information.supports):
            places = [*support, size - 1]
            factors = [information.factor(joint, int(segment)) for segment in segments]
            total[np.ix_(places, places)] += weights[joint] * sum(R.T @ R for R in factors)
        return total

    def errors(
        self, present: Sequence[Feature], candidates: Sequence[Sequence[Feature]], prior_weight: float
    ) -> tuple[Floats, Floats]:
        """Squared torque errors of left-out folds [(N m)^2], all joints together: what a validation will measure.

        Args:
            present: Features of the model.
            candidates: Groups of features that could be added.
            prior_weight: Weight of the prior.

        Returns:
            (folds,) with the present features, and (candidates, folds) with each group added.
        """
        kept = [*range(self._rigid), *self._columns(present)]
        groups = [self._columns(group) for group in candidates]
        before, after = np.zeros(len(self)), np.zeros((len(groups), len(self)))
        for fold in range(len(self)):
            solution, added = self._fits(fold, kept, groups, prior_weight)
            before[fold] = self._error(self._torque[fold], kept, solution)
            for place, (group, extended) in enumerate(zip(groups, added, strict=True)):
                after[place, fold] = self._error(self._torque[fold], [*kept, *group], extended)
        return before, after

    def _fits(
        self, fold: int, kept: list[int], groups: list[list[int]], prior_weight: float
    ) -> tuple[Floats, list[Floats]]:
        """The fit without a fold, and its extension by each group of columns (block elimination)."""
        extra = [column for group in groups for column in group]
        everything = [*kept, *extra]
        pull = prior_weight * self.coordinates.pull[everything]
        A = self._matrices[fold][np.ix_(everything, everything)] + np.diag(pull)
        side = self._sides[fold][everything] + pull * self.coordinates.centre[everything]
        k = len(kept)
        solved = _solved(A[:k, :k], np.column_stack([side[:k], A[:k, k:]]))
        solution, through = solved[:, 0], solved[:, 1:]
        added, start = [], 0
        for group in groups:
            here = slice(start, start + len(group))
            B = A[:k, k + here.start : k + here.stop]
            S = A[k + here.start : k + here.stop, k + here.start : k + here.stop] - B.T @ through[:, here]
            values = np.linalg.lstsq(S, side[k + here.start : k + here.stop] - B.T @ solution, rcond=1e-10)[0]
            added.append(np.concatenate([solution - through[:, here] @ values, values]))
            start = here.stop
        return solution, added

    def _error(self, products: Floats, columns: list[int], solution: Floats) -> float:
        vector = np.append(self._to_base[:, columns] @ solution, -1.0)
        size = np.abs(vector)
        # below this, which can be negative, is rounding: fits without noise are all alike
        rounding = ROUNDING * float(size @ np.abs(products) @ size)
        return max(float(vector @ products @ vector), rounding)

    @property
    def _rigid(self) -> int:
        return len(self.problem.base.layout)

    def _columns(self, features: Sequence[Feature]) -> list[int]:
        return [self._rigid + self.problem.features.index(feature) for feature in features]

    def best_weight(self, features: Sequence[Feature]) -> float:
        """The strongest prior whose weighted error on left-out folds is within 1 % of the best."""
        kept = [*range(self._rigid), *self._columns(features)]
        errors = []
        for weight in WEIGHTS:
            fits = [self._fits(fold, kept, [], weight)[0] for fold in range(len(self))]
            errors.append(sum(self._error(G, kept, fit) for G, fit in zip(self._weighted, fits, strict=True)))
        return max(w for w, error in zip(WEIGHTS, errors, strict=True) if error <= 1.01 * min(errors))


def _solved(A: Floats, B: Floats) -> Floats:
    """Solution of a semidefinite system, of the smallest norm where it is singular."""
    try:
        return np.asarray(np.linalg.solve(A, B), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(A, B, rcond=None)[0])


def _groups(problem: Problem, segments: Sequence[int], count: int) -> list[NDArray[np.int64]]:
    """Segments of each fold: the runs themselves where there are several, else stretches of the one run."""
    runs = [np.array([s for s in block if s in segments], dtype=np.int64) for block in problem.blocks]
    runs = [run for run in runs if run.size]
    if len(runs) > 1:
        return runs
    return list(np.array_split(np.array(segments, dtype=np.int64), min(count, len(segments))))


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """Data and prior against each other: what the data alone say, and how much the prior counts beside them."""

    plain: Estimate
    """By weighted least squares, no prior."""
    weights: Floats
    """(n,) of the joints' squared residuals: the inverse of their variance."""
    factor: Factor
    """Of all equations, weighted so that samples correlated in time do not outweigh the prior."""
    prior_weight: float
    notes: tuple[str, ...]
    """How the prior's weight was chosen; empty where it was given."""


def weighed(problem: Problem, prior_weight: float | None, rounds: int, method: str) -> Weighing:
    """Weigh data and prior.

    Args:
        problem: The problem.
        prior_weight: Of the prior; None chooses it by cross-validation.
        rounds: How often the joints' weights are refined.
        method: Name of the estimator.
    """
    weights = refined_weights(problem, rounds)
    plain = least_squares_estimate(problem, weights, method)
    scaled = weights / plain.inflation
    chosen, notes = (prior_weight, ()) if prior_weight is not None else _cross_validated_weight(problem, scaled)
    return Weighing(plain, weights, problem.information.weight(scaled), chosen, notes)


def _cross_validated_weight(problem: Problem, weights: Floats) -> tuple[float, tuple[str, ...]]:
    """The prior's weight by cross-validation over blocks of time, and a note that says so."""
    if np.count_nonzero(problem.information.samples.any(axis=1)) < 3:
        return 1.0, ("too few blocks of time to choose the prior's weight by cross-validation: 1 was taken",)
    folds = Folds(problem, weights)
    weight = folds.best_weight(problem.features)
    return weight, (f"prior weight {weight:g} by cross-validation over {len(folds)} blocks",)
