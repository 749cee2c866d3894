"""Errors on left-out blocks of time, for any set of terms and any weight of the prior, without a second pass.

The fits are regularised by the prior but have no physical constraints, so that each fit is one linear solve. They only
rank models and weights, and constraints hardly change that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtrs

from dynid.decompositions import eigh
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
MOST_RECENT = 3
"""Number of picked columns of all folds that are kept (convention: those of one model)."""
SINGULAR_SYSTEM = 1e-10
"""Relative eigenvalue below which a direction of a small system is left out (convention)."""


class Folds:
    """Cross products of all columns, per fold, and the fits that leave one fold out."""

    def __init__(
        self, equations: Factors, weights: Floats, counts: Sequence[int] = (FOLDS,), *, runs: bool = False
    ) -> None:
        """Group the blocks of the equations into folds.

        Args:
            equations: The equations.
            weights: (n,) weight of each joint's squared residuals in the fits.
            counts: Numbers of folds; several partitions make the result depend less on where the cuts happen to lie.
            runs: Whether the runs themselves are a further partition, if there are several.
        """
        information = equations.information
        segments = [s for s, row in zip(information.segments, information.samples, strict=True) if row.any()]
        if len(segments) < 2:
            raise ArgumentError("cross-validation needs two blocks of time or more", remedy="Use a longer experiment.")
        self.equations, self.weights = equations, weights
        self._recent: dict[tuple[int, bytes], list[Floats]] = {}
        self._best: dict[tuple[tuple[Term, ...], tuple[int, ...]], float] = {}
        self._places = {term: self._rigid + place for place, term in enumerate(equations.terms)}
        partitions = [_groups(equations, segments, count) for count in counts]
        whole_runs = _runs(equations, segments)
        self.across_runs = runs and 1 < len(whole_runs) < RUNS_AS_FOLDS
        """Whether the last partition leaves whole runs out, and the others do not."""
        partitions += [whole_runs] if self.across_runs else []
        groups = [group for partition in partitions for group in partition]
        self._partition = np.repeat(np.arange(len(partitions)), [len(partition) for partition in partitions])
        weighted, self._torque = self._products(groups, (weights, np.ones_like(weights)))
        self._weighted = weighted
        whole = weighted.sum(axis=0) / len(partitions)
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

    def _products(self, groups: Sequence[Ints], weights: Sequence[Floats]) -> Floats:
        """(weights, groups, p, p) cross products of all columns and the torque over groups of segments."""
        information = self.equations.information
        size = len(information.columns) + 1
        numbers = np.unique(np.concatenate(groups))
        order = np.searchsorted(numbers, np.concatenate(groups))
        starts = np.cumsum([0, *(group.size for group in groups[:-1])])
        total = np.zeros((len(weights), len(groups), size, size))
        for joint, support in enumerate(information.supports):
            squares = np.array([R.T @ R for R in (information.factor(joint, int(number)) for number in numbers)])
            by_group = np.add.reduceat(squares[order], starts, axis=0)
            places = np.array([*support, size - 1])
            for part, weight in zip(total, weights, strict=True):
                part[:, places[:, None], places] += weight[joint] * by_group
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
        groups = [np.array(self._columns(group), dtype=np.int64) for group in candidates]
        wanted = np.arange(len(self)) if places is None else places
        fits = _Fits(self, wanted, kept, prior_weight)
        old = self._squares(self._torque, wanted, kept, fits.solutions[:, None])[:, 0]
        new = np.empty((len(groups), len(wanted)))
        for size in sorted({group.size for group in groups}):  # groups of one size are treated at once
            alike = [place for place, group in enumerate(groups) if group.size == size]
            columns = np.array([groups[place] for place in alike])
            solutions, values = fits.extend(columns)
            new[alike] = self._squares(self._torque, wanted, kept, solutions, columns, values).T
        return old, new

    def _picked(self, matrices: Floats, columns: Ints) -> list[Floats]:
        """Some columns and the same rows of matrices (folds, p, p); kept for the latest columns."""
        key = (id(matrices), columns.tobytes())
        if key not in self._recent:
            self._recent[key] = [_pick(matrix, columns, columns) for matrix in matrices]
            if len(self._recent) > MOST_RECENT:
                self._recent.pop(next(iter(self._recent)))
        return self._recent[key]

    def _squares(
        self,
        products: Floats,
        wanted: Ints,
        kept: Ints,
        solutions: Floats,
        groups: Ints | None = None,
        values: Floats | None = None,
    ) -> Floats:
        """(folds, m) squared errors of m fits to each wanted fold by cross products.

        Args:
            products: (all folds, p, p) cross products of all columns and the torque.
            wanted: Places of the folds.
            kept: Columns of the kept part.
            solutions: (folds, m, columns) the kept part of each solution.
            groups: (m, s) further columns of each fit.
            values: (folds, m, s) their parameters.
        """
        rank, last = self.equations.base.rank, products.shape[1] - 1
        used = np.array([*range(rank), *(rank + kept[self._rigid :] - self._rigid)])
        base = solutions @ self._to_base[used[:, None], kept].T
        U = np.concatenate([base, np.full((*base.shape[:2], 1), -1.0)], axis=2)
        used = np.append(used, last)
        inner = self._picked(products, used)
        length = np.sqrt(np.maximum(np.diagonal(products, axis1=1, axis2=2)[wanted], 0.0))
        squares = np.array([np.sum(u * (u @ inner[fold]), axis=1) for u, fold in zip(U, wanted.tolist(), strict=True)])
        sizes = (np.abs(U) @ length[:, used, None])[:, :, 0]
        if groups is not None and values is not None:
            rows = rank + groups - self._rigid
            torque = np.einsum("mij,fmj->fmi", self._to_base[rows[:, :, None], groups[:, None]], values)
            flat = np.array([_pick(products[fold], rows.ravel(), used) for fold in wanted.tolist()])
            cross = (flat.reshape(len(flat), *rows.shape, -1) @ U[..., None])[..., 0]
            own = np.array([products[fold][rows[:, :, None], rows[:, None]] for fold in wanted.tolist()])
            squares += np.sum(torque * (2.0 * cross + (own @ torque[..., None])[..., 0]), axis=2)
            sizes += np.sum(length[:, rows] * np.abs(torque), axis=2)
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
        everything = np.arange(len(self))
        fits = [_Fits(self, everything, kept, weight).solutions for weight in WEIGHTS]
        errors = self._squares(self._weighted, everything, kept, np.stack(fits, axis=1)).sum(axis=0)
        self._best[key] = max(w for w, error in zip(WEIGHTS, errors, strict=True) if error <= NEAR_BEST * errors.min())
        return self._best[key]


class _Fits:
    """The fits that leave one fold out each, and their extensions by further columns."""

    def __init__(self, folds: Folds, wanted: Ints, kept: Ints, prior_weight: float) -> None:
        self._folds, self._wanted, self._kept = folds, wanted.tolist(), kept
        self._pull = prior_weight * folds.coordinates.pull
        self._sides = folds._sides[wanted] + self._pull * folds.coordinates.centre
        inner = folds._picked(folds._matrices, kept)
        self._roots = [_cholesky(inner[fold], self._pull[kept]) for fold in self._wanted]
        right = self._sides[:, kept]
        self._halves = np.array([dtrtrs(L, y, lower=1)[0] for L, y in zip(self._roots, right, strict=True)])
        halves = zip(self._roots, self._halves, strict=True)
        self.solutions = np.array([dtrtrs(L, z, lower=1, trans=1)[0] for L, z in halves])
        """(folds, kept) the parameters of each fit."""

    def extend(self, groups: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The kept part (folds, m, kept) and the further parameters (folds, m, s) of fits with one of m groups each.

        Each extension is a block elimination: the kept columns are factorised once.

        Args:
            groups: (m, s) columns of each group.
        """
        matrices = [self._folds._matrices[fold] for fold in self._wanted]
        sides = [_pick(matrix, groups.ravel(), self._kept) for matrix in matrices]  # transposed, in LAPACK's order
        Z = np.array([dtrtrs(L, y.T, lower=1, overwrite_b=1)[0].T for L, y in zip(self._roots, sides, strict=True)])
        Z = Z.reshape(len(Z), *groups.shape, -1)
        S = np.array([matrix[groups[:, :, None], groups[:, None, :]] for matrix in matrices]) - Z @ Z.swapaxes(2, 3)
        S[:, :, range(groups.shape[1]), range(groups.shape[1])] += self._pull[groups]
        values = _solve_semidefinite(S, self._sides[:, groups] - (Z @ self._halves[:, None, :, None])[..., 0])
        halves = self._halves[:, None] - (values[:, :, None] @ Z)[:, :, 0]
        pairs = zip(self._roots, halves, strict=True)
        return np.array([dtrtrs(L, z.T, lower=1, trans=1, overwrite_b=1)[0].T for L, z in pairs]), values


def _pick(matrix: Floats, rows: Ints, columns: Ints) -> Floats:
    """Some rows and columns of a matrix."""
    return np.asarray(matrix.take(rows, axis=0).take(columns, axis=1))


def _solve_semidefinite(S: Floats, right: Floats) -> Floats:
    """Solve small semidefinite systems (..., s, s) and (..., s); the shortest solution of singular ones."""
    values, vectors = eigh(S)
    smallest = SINGULAR_SYSTEM * np.maximum(np.abs(values).max(axis=-1, keepdims=True), 1e-300)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=np.abs(values) > smallest)
    return np.asarray(np.einsum("...ij,...j,...kj,...k->...i", vectors, inverse, vectors, right, optimize=True))


def _cholesky(matrix: Floats, pull: Floats) -> Floats:
    """Lower Cholesky factor of a semidefinite matrix plus the diagonal matrix of the pull; above it stands anything."""
    for damping in (0.0, SINGULAR):
        A = matrix.copy()
        diagonal = A.ravel()[:: len(A) + 1]
        diagonal += pull
        diagonal += damping * diagonal.max(initial=0.0)
        L, failed = dpotrf(A.T, lower=1, overwrite_a=1, clean=0)  # transposed, it is in LAPACK's order
        if not failed:
            return np.asarray(L)
    raise EstimationError(
        "the equations of a fold cannot be solved", remedy="Check the torques of the log: dynid check."
    )


def _groups(equations: Factors, segments: Sequence[int], count: int) -> list[NDArray[np.int64]]:
    """Segments of each fold: the runs themselves where there are many, else stretches of the runs."""
    runs = _runs(equations, segments)
    if len(runs) >= RUNS_AS_FOLDS:
        return runs
    parts = -(-count // len(runs))
    return [part for run in runs for part in np.array_split(run, min(parts, run.size))]


def _runs(equations: Factors, segments: Sequence[int]) -> list[NDArray[np.int64]]:
    """Segments of each run that has some."""
    runs = [np.array([s for s in block if s in segments], dtype=np.int64) for block in equations.blocks]
    return [run for run in runs if run.size]


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
    message = f"the values of the robot file count with the weight {weight:g}, chosen by cross-validation over "
    message += f"{len(folds)} blocks of the data"
    return weight, (Finding(code="prior-weight", severity="note", where="prior", message=message),)
