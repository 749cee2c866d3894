"""Errors on left-out blocks of time, for any set of terms and any weight of the prior, without a second pass.

The fits are regularised by the prior but have no physical constraints, so that each fit is one linear solve. They only
rank models and weights, and constraints hardly change that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from dynid.decompositions import lstsq
from dynid.errors import ArgumentError, EstimationError
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate
from dynid.estimation.linear.least_squares import least_squares_estimate, refined_weights
from dynid.estimation.physical.prior import PriorCoordinates
from dynid.findings import Finding
from dynid.information import Factor
from dynid.terms.base import Term

__all__ = ["Folds", "Weighing", "weigh_prior"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
WEIGHTS = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
"""Prior weights that cross-validation tries, in units of the torque noise (convention: one per decade)."""
ROUNDING = 4.0 * float(np.finfo(float).eps)
"""Relative rounding error of a squared error that is a difference of sums: some units of machine precision."""
SINGULAR = 1e-12
"""Share of the largest diagonal element that is added to a singular matrix before it is factorised (convention)."""
NEAR_BEST = 1.01
"""Ratio to the smallest error up to which an error counts as equally small (convention: 1 %)."""
FOLDS = 12
"""Number of folds by default (convention)."""
RUNS_AS_FOLDS = 5
"""Number of runs from which on a fold is a whole run (convention: four fifths of the data are then left to fit). Fewer
runs are cut into stretches of time: a fit of one of two runs says little about a fit of both."""
SMALL_PIVOT = 1e-5
"""Ratio of the smallest to the largest Cholesky pivot below which a small system counts as singular (convention)."""
SINGULAR_SYSTEM = 1e-10
"""Relative eigenvalue below which a direction of a small system is left out; the square of `SMALL_PIVOT`."""


class Folds:
    """Cross products of all columns, per fold, and the fits that leave one fold out."""

    def __init__(self, equations: Factors, weights: Floats, counts: Sequence[int] = (FOLDS,)) -> None:
        """Group the blocks of the equations into folds.

        Args:
            equations: The equations.
            weights: (n,) weight of each joint's squared residuals in the fits.
            counts: Numbers of folds; several partitions make the result depend less on where the cuts happen to lie.
        """
        information = equations.information
        segments = [s for s, row in zip(information.segments, information.samples, strict=True) if row.any()]
        if len(segments) < 2:
            raise ArgumentError("cross-validation needs two blocks of time or more", remedy="Use a longer experiment.")
        self.equations, self.weights = equations, weights
        self._best: dict[tuple[tuple[Term, ...], tuple[int, ...]], float] = {}
        self._places = {term: self._rigid + place for place, term in enumerate(equations.terms)}
        partitions = [_groups(equations, segments, count) for count in counts]
        groups = [group for partition in partitions for group in partition]
        self._partition = np.repeat(np.arange(len(partitions)), [len(partition) for partition in partitions])
        weighted = np.array([self._products(group, weights) for group in groups])
        self._torque = np.array([self._products(group, np.ones_like(weights)) for group in groups])
        self._weighted = weighted
        whole = weighted.sum(axis=0) / len(counts)
        rest = whole - weighted
        length = np.sqrt(np.diagonal(whole))[equations.base.rank : -1]
        self.coordinates = PriorCoordinates.of(equations.robot, np.where(length > 0.0, length, np.inf))
        self._to_base = equations.grouping @ self.coordinates.from_scaled
        self._matrices = self._to_base.T @ rest[:, :-1, :-1] @ self._to_base
        self._sides = rest[:, -1, :-1] @ self._to_base

    def __len__(self) -> int:
        return len(self._weighted)

    def partition(self, number: int | None = None) -> Ints:
        """Places of the folds of one partition; of all by default."""
        return np.flatnonzero((self._partition == number) | (number is None))

    def _products(self, segments: NDArray[np.int64], weights: Floats) -> Floats:
        """Cross products of all columns and the torque over some segments."""
        information = self.equations.information
        size = len(information.columns) + 1
        total = np.zeros((size, size))
        for joint, support in enumerate(information.supports):
            places = [*support, size - 1]
            factors = [information.factor(joint, int(segment)) for segment in segments]
            total[np.ix_(places, places)] += weights[joint] * sum(R.T @ R for R in factors)
        return total

    def errors(
        self,
        present: Sequence[Term],
        candidates: Sequence[Sequence[Term]],
        prior_weight: float,
        places: Ints | None = None,
    ) -> tuple[Floats, Floats]:
        """Squared torque errors of all joints together on left-out folds [(N m)^2], as a validation measures them.

        Args:
            present: Terms of the model.
            candidates: Groups of terms that could be added.
            prior_weight: Weight of the prior.
            places: Places of the folds that are wanted; all by default.

        Returns:
            (folds,) with the present terms, and (candidates, folds) with each group added.
        """
        kept = np.array([*range(self._rigid), *self._columns(present)])
        groups = [np.array(self._columns(group)) for group in candidates]
        wanted = range(len(self)) if places is None else places.tolist()
        every = np.array([self._fold_errors(fold, kept, groups, prior_weight) for fold in wanted])
        return every[:, 0], every[:, 1:].T

    def _fold_errors(self, fold: int, kept: Ints, groups: list[Ints], prior_weight: float) -> Floats:
        """(1 + groups,) squared errors on a fold of the fit without it, and of its extension by each group of columns.

        Each extension is a block elimination: the kept columns are factorised once.
        """
        extra = np.concatenate([*groups, np.zeros(0, dtype=np.int64)])
        matrix, pull = self._matrices[fold], prior_weight * self.coordinates.pull
        side = self._sides[fold] + pull * self.coordinates.centre
        L = _cholesky(matrix[kept[:, None], kept], pull[kept])
        Z = dtrtrs(L, np.column_stack([side[kept], matrix[kept[:, None], extra]]), lower=1)[0]
        half, values, start = np.tile(Z[:, 0], (1 + len(groups), 1)), [], 1
        for place, group in enumerate(groups, start=1):
            mine = Z[:, start : start + group.size]
            S = matrix[group[:, None], group] + np.diag(pull[group]) - mine.T @ mine
            values.append(_solve_semidefinite(S, side[group] - mine.T @ Z[:, 0]))
            half[place] -= mine @ values[-1]
            start += group.size
        return self._squares(self._torque[fold], kept, dtrtrs(L, half.T, lower=1, trans=1)[0], groups, values)

    def _squares(
        self, products: Floats, kept: Ints, solutions: Floats, groups: list[Ints], values: list[Floats]
    ) -> Floats:
        """(1 + groups,) squared errors by cross products.

        Args:
            products: Cross products of all columns and the torque.
            kept: Columns of the kept part.
            solutions: (columns, 1 + groups) the kept part of each solution.
            groups: Columns of each group.
            values: Parameters of each group.
        """
        rank, last = self.equations.base.rank, len(products) - 1
        used = np.array([*range(rank), *(rank + kept[self._rigid :] - self._rigid)])
        U = np.vstack([self._to_base[used[:, None], kept] @ solutions, -np.ones(solutions.shape[1])])
        used = np.append(used, last)
        length = np.sqrt(np.maximum(np.diagonal(products), 0.0))
        squares = (U * (products[used[:, None], used] @ U)).sum(axis=0)
        sizes = length[used] @ np.abs(U)
        for place, (group, value) in enumerate(zip(groups, values, strict=True), start=1):
            rows = rank + group - self._rigid
            torque = self._to_base[rows[:, None], group] @ value
            cross = products[rows[:, None], used] @ U[:, place]
            squares[place] += torque @ (2.0 * cross + products[rows[:, None], rows] @ torque)
            sizes[place] += length[rows] @ np.abs(torque)
        # differences below this are rounding and may be negative: without noise, all fits count as equal
        return np.asarray(np.maximum(squares, ROUNDING * sizes**2))

    @property
    def _rigid(self) -> int:
        return len(self.equations.base.layout)

    def _columns(self, terms: Sequence[Term]) -> list[int]:
        return [self._places[term] for term in terms]

    def best_weight(self, terms: Sequence[Term], absent: Sequence[int] = ()) -> float:
        """The strongest prior whose weighted error on left-out folds is within 1 % of the best.

        Args:
            terms: Terms of the model.
            absent: Places of standard parameters that are zero.
        """
        if (key := (tuple(terms), tuple(absent))) in self._best:
            return self._best[key]
        kept = np.array([*(k for k in range(self._rigid) if k not in absent), *self._columns(terms)])
        pull, centre = self.coordinates.pull[kept], self.coordinates.centre[kept]
        errors = np.zeros(len(WEIGHTS))
        for fold, products in enumerate(self._weighted):
            matrix, side = self._matrices[fold][kept[:, None], kept], self._sides[fold][kept]
            fits = np.empty((kept.size, len(WEIGHTS)))
            for place, weight in enumerate(WEIGHTS):
                L = _cholesky(matrix, weight * pull)
                fits[:, place] = dpotrs(L, side + weight * pull * centre, lower=1)[0]
            errors += self._squares(products, kept, fits, [], [])
        self._best[key] = max(w for w, error in zip(WEIGHTS, errors, strict=True) if error <= NEAR_BEST * errors.min())
        return self._best[key]


def _solve_semidefinite(S: Floats, right: Floats) -> Floats:
    """Solve a small semidefinite system; the solution of the smallest norm where it is singular."""
    L, failed = dpotrf(S, lower=1)
    if not failed and L.diagonal().min() > SMALL_PIVOT * L.diagonal().max():
        return np.asarray(dpotrs(L, right, lower=1)[0])
    return np.asarray(lstsq(S, right, rcond=SINGULAR_SYSTEM))


def _cholesky(matrix: Floats, pull: Floats) -> Floats:
    """Lower Cholesky factor of a semidefinite matrix plus the diagonal matrix of the pull."""
    A = matrix.copy()
    diagonal = A.ravel()[:: len(A) + 1]
    diagonal += pull
    L, failed = dpotrf(A, lower=1)
    if failed:
        diagonal += SINGULAR * diagonal.max()
        L, failed = dpotrf(A, lower=1)
    if failed:
        raise EstimationError(
            "the equations of a fold cannot be solved", remedy="Check the torques of the log: dynid check."
        )
    return np.asarray(L)


def _groups(equations: Factors, segments: Sequence[int], count: int) -> list[NDArray[np.int64]]:
    """Segments of each fold: the runs themselves where there are many, else stretches of the runs."""
    runs = [np.array([s for s in block if s in segments], dtype=np.int64) for block in equations.blocks]
    runs = [run for run in runs if run.size]
    if len(runs) >= RUNS_AS_FOLDS:
        return runs
    parts = -(-count // len(runs))
    return [part for run in runs for part in np.array_split(run, min(parts, run.size))]


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """The estimate from the data alone, and the weights of data and prior in an estimate from both."""

    plain: Estimate
    """Weighted least squares without prior."""
    weights: Floats
    """(n,) weight of each joint's squared residuals: the inverse of their variance."""
    factor: Factor
    """All equations, weighted such that samples correlated in time do not outweigh the prior."""
    prior_weight: float
    """Weight of the prior against data in units of their noise."""
    findings: tuple[Finding, ...]
    """How the prior's weight was chosen; empty if the caller chose it."""


def weigh_prior(equations: Factors, prior_weight: float | None, rounds: int, method: str) -> Weighing:
    """Choose the weights of data and prior.

    Args:
        equations: The equations.
        prior_weight: Weight of the prior; None chooses it by cross-validation.
        rounds: Number of times that the joints' weights are refined.
        method: Name of the estimator.
    """
    weights = refined_weights(equations, rounds)
    plain = least_squares_estimate(equations, weights, method)
    scaled = weights / plain.inflation
    chosen, findings = (prior_weight, ()) if prior_weight is not None else _cross_validated_weight(equations, scaled)
    return Weighing(plain, weights, equations.information.weight(scaled), chosen, findings)


def _cross_validated_weight(equations: Factors, weights: Floats) -> tuple[float, tuple[Finding, ...]]:
    """The prior's weight by cross-validation over blocks of time, and a finding that says so."""
    if np.count_nonzero(equations.information.samples.any(axis=1)) < 3:
        message = "there are too few blocks of time to choose the prior's weight by cross-validation: it is 1"
        return 1.0, (Finding(code="prior-weight", severity="note", where="prior", message=message),)
    folds = Folds(equations, weights)
    weight = folds.best_weight(equations.terms)
    message = f"the prior has the weight {weight:g}, by cross-validation over {len(folds)} blocks"
    return weight, (Finding(code="prior-weight", severity="note", where="prior", message=message),)
