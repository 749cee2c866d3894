"""Errors on left-out blocks of time, for any set of terms and any weight of the prior, without a second pass.

The fits are regularised by the prior but have no physical constraints, so that each fit is one linear solve. They only
rank models and weights, and constraints hardly change that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.decompositions import eigh, lapack
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
CLEARLY = 10.0
"""Factor above `SINGULAR_SYSTEM` from which on a system is regular whatever its rounding errors (convention)."""
SINGULAR_SYSTEM = 1e-10
"""Relative eigenvalue below which a direction of a small system is left out (convention)."""


class Folds:
    """Cross products of all columns, per fold, and the fits that leave one fold out."""

    def __init__(
        self,
        equations: Factors,
        weights: Floats,
        counts: Sequence[int] = (FOLDS,),
        *,
        runs: bool = False,
        terms: Sequence[Term] | None = None,
    ) -> None:
        """Group the blocks of the equations into folds.

        Args:
            equations: The equations.
            weights: (n,) weight of each joint's squared residuals in the fits.
            counts: Numbers of folds; several partitions make the result depend less on where the cuts happen to lie.
            runs: Whether the runs themselves are a further partition, if there are several.
            terms: Those of the equations' terms that a model may have; all by default.
        """
        information = equations.information
        segments = [s for s, row in zip(information.segments, information.samples, strict=True) if row.any()]
        if len(segments) < 2:
            raise ArgumentError("cross-validation needs two blocks of time or more", remedy="Use a longer experiment.")
        self.equations, self.weights = equations, weights
        self._best: dict[tuple[tuple[Term, ...], tuple[int, ...]], float] = {}
        self._fits: dict[tuple[float, tuple[int, ...]], _Fits] = {}
        self._terms = equations.terms if terms is None else tuple(terms)
        self._places = {term: place for place, term in enumerate(self._terms)}
        partitions = [_groups(equations, segments, count) for count in counts]
        whole_runs = _runs(equations, segments)
        self.across_runs = runs and 1 < len(whole_runs) < RUNS_AS_FOLDS
        """Whether the last partition leaves whole runs out, and the others do not."""
        partitions += [whole_runs] if self.across_runs else []
        groups = [group for partition in partitions for group in partition]
        self._partition = np.repeat(np.arange(len(partitions)), [len(partition) for partition in partitions])
        self._weighted, self._torque = self._products(groups, (weights, np.ones_like(weights)))
        whole = self._weighted.sum(axis=0) / len(partitions)
        rank, rigid = equations.base.grouping.shape
        length = np.sqrt(np.diagonal(whole))[rank:-1]
        self.coordinates = PriorCoordinates.of(equations.robot, np.where(length > 0.0, length, np.inf))
        self.to_base = equations.base.grouping @ self.coordinates.from_scaled[:rigid, :rigid]
        """(b, p) base parameters = to_base @ scaled standard parameters."""
        self.sizes = np.diagonal(self.coordinates.from_scaled)[rigid:]
        """(k,) parameter of each term = size * its scaled unknown."""
        rest = whole - self._weighted
        scale = np.append(self.sizes, 1.0)
        self.standard = self.to_base.T @ rest[:, :rank, :rank] @ self.to_base
        """(folds, p, p) cross products of the scaled standard parameters without each fold."""
        self.mixed = (rest[:, rank:, :rank] * scale[:, None]) @ self.to_base
        """(folds, k + 1, p) those of the scaled terms and the torque with the scaled standard parameters."""
        self.further = rest[:, rank:, rank:] * np.outer(scale, scale)
        """(folds, k + 1, k + 1) those of the scaled terms and the torque."""

    def __len__(self) -> int:
        return len(self._weighted)

    def partition(self, number: int | None = None) -> Ints:
        """Places of the folds of one partition; of all by default."""
        return np.flatnonzero((self._partition == number) | (number is None))

    def partitions(self, places: Ints) -> int:
        """Number of partitions that folds at these places are of."""
        return int(np.unique(self._partition[places]).size)

    def _products(self, groups: Sequence[Ints], weights: Sequence[Floats]) -> Floats:
        """(weights, groups, p, p) cross products of all columns and the torque over groups of segments."""
        information, rank = self.equations.information, self.equations.base.rank
        columns = {column: column for column in range(rank)}
        columns |= {rank + place: rank + k for k, place in enumerate(self.equations.term_places(self._terms))}
        size = len(columns) + 1
        numbers = np.unique(np.concatenate(groups))
        order = np.searchsorted(numbers, np.concatenate(groups))
        starts = np.cumsum([0, *(group.size for group in groups[:-1])])
        total = np.zeros((len(weights), len(groups), size, size))
        for joint, support in enumerate(information.supports):
            picked = [place for place, column in enumerate(support) if column in columns]
            factors = [information.factor(joint, int(number)) for number in numbers]
            if len(picked) < len(support):
                factors = [R.take([*picked, -1], axis=1) for R in factors]
            squares = np.array([R.T @ R for R in factors])
            by_group = np.add.reduceat(squares[order], starts, axis=0)
            places = np.array([*(columns[support[place]] for place in picked), size - 1])
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
        kept = self._columns(present)
        groups = [self._columns(group) for group in candidates]
        wanted = np.arange(len(self)) if places is None else places
        fits = self._without(prior_weight)
        fits.include(np.concatenate([kept, *groups]))
        old = self._squares(self._torque, wanted, kept, *fits.solve(wanted, kept))[:, 0]
        new = np.empty((len(groups), len(wanted)))
        for size in sorted({group.size for group in groups}):  # groups of one size are treated at once
            alike = [place for place, group in enumerate(groups) if group.size == size]
            columns = np.array([groups[place] for place in alike])
            found = fits.extend(wanted, kept, columns)
            new[alike] = self._squares(self._torque, wanted, kept, *found[:2], columns, found[2]).T
        return old, new

    def _without(self, prior_weight: float, absent: Sequence[int] = ()) -> _Fits:
        """The fits at one weight of the prior, without some standard parameters."""
        key = (prior_weight, tuple(absent))
        if key not in self._fits:
            standard = np.array([k for k in range(len(self.equations.base.layout)) if k not in absent])
            self._fits[key] = _Fits(self, standard, prior_weight)
        return self._fits[key]

    def _squares(
        self,
        products: Floats,
        wanted: Ints,
        kept: Ints,
        base: Floats,
        unknowns: Floats,
        groups: Ints | None = None,
        further: Floats | None = None,
    ) -> Floats:
        """(folds, m) squared errors of m fits to each wanted fold by cross products.

        Args:
            products: (all folds, ...) cross products of all columns and the torque.
            wanted: Places of the folds.
            kept: (k,) terms of all fits.
            base: (folds, m, b) base parameters of each fit.
            unknowns: (folds, m, k) scaled unknowns of the terms.
            groups: (m, s) further terms of each fit.
            further: (folds, m, s) their scaled unknowns.
        """
        rank = base.shape[2]
        used = np.append(rank + kept, products.shape[1] - 1)
        torque = np.concatenate([unknowns * self.sizes[kept], np.full((*base.shape[:2], 1), -1.0)], axis=2)
        rows = products[wanted[:, None], used]
        squares = np.sum(base * (base @ products[wanted, :rank, :rank] + 2.0 * (torque @ rows[:, :, :rank])), axis=2)
        squares += np.sum(torque * (torque @ rows[:, :, used]), axis=2)
        length = np.sqrt(np.maximum(np.diagonal(products, axis1=1, axis2=2)[wanted], 0.0))
        sizes = (np.abs(base) @ length[:, :rank, None] + np.abs(torque) @ length[:, used, None])[:, :, 0]
        if groups is not None and further is not None:
            parts, places = further * self.sizes[groups], rank + groups
            rows = products[wanted[:, None], places.ravel()].reshape(len(wanted), *places.shape, -1)
            cross = rows[..., :rank] @ base[..., None] + rows[..., used] @ torque[..., None]
            own = rows[:, np.arange(len(groups))[:, None, None], np.arange(groups.shape[1])[:, None], places[:, None]]
            squares += np.sum(parts * (2.0 * cross[..., 0] + (own @ parts[..., None])[..., 0]), axis=2)
            sizes += np.sum(length[:, places] * np.abs(parts), axis=2)
        # differences below this are rounding and may be negative: without noise, all fits count as equal
        return np.asarray(np.maximum(squares, ROUNDING * sizes**2))

    def _columns(self, terms: Sequence[Term]) -> Ints:
        return np.array([self._places[term] for term in terms], dtype=np.int64)

    def best_weight(self, terms: Sequence[Term], absent: Sequence[int] = ()) -> float:
        """The strongest prior whose weighted error on left-out folds is within 1 % of the best.

        Args:
            terms: Terms of the model.
            absent: Places of standard parameters that are zero.
        """
        if (key := (tuple(terms), tuple(absent))) in self._best:
            return self._best[key]
        kept, everything = self._columns(terms), np.arange(len(self))
        if len(kept) == len(self._terms):
            base, unknowns = self._fit_whole(kept, absent, WEIGHTS)
        else:  # other models will come, which share what is eliminated
            found = [self._without(weight, absent).solve(everything, kept) for weight in WEIGHTS]
            base, unknowns = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
        errors = self._squares(self._weighted, everything, kept, base, unknowns).sum(axis=0)
        self._best[key] = max(w for w, error in zip(WEIGHTS, errors, strict=True) if error <= NEAR_BEST * errors.min())
        return self._best[key]

    def _fit_whole(self, kept: Ints, absent: Sequence[int], weights: Sequence[float]) -> tuple[Floats, Floats]:
        """Base parameters (folds, weights, b) and scaled unknowns of the terms (folds, weights, k), fit by fit.

        It is what `_Fits.solve` gives, for one model alone: all unknowns are solved for at once.

        Args:
            kept: (k,) terms of the model.
            absent: Places of standard parameters that are zero.
            weights: Weights of the prior.
        """
        rigid = len(self.equations.base.layout)
        standard = np.array([k for k in range(rigid) if k not in absent])
        size, used = standard.size, np.concatenate([standard, rigid + kept])
        matrices = np.empty((len(self), used.size, used.size))
        matrices[:, :size, :size] = self.standard[:, standard[:, None], standard]
        matrices[:, size:, :size] = self.mixed[:, kept[:, None], standard]
        matrices[:, :size, size:] = matrices[:, size:, :size].swapaxes(1, 2)
        matrices[:, size:, size:] = self.further[:, kept[:, None], kept]
        torque = np.concatenate([self.mixed[:, -1, standard], self.further[:, kept, -1]], axis=1)
        pull, centre, solve = self.coordinates.pull[used], self.coordinates.centre[used], lapack().dpotrs
        found = np.array(
            [
                [solve(_root(matrix, weight * pull), right + weight * pull * centre, lower=1)[0] for weight in weights]
                for matrix, right in zip(matrices, torque, strict=True)
            ]
        )
        return found[:, :, :size] @ self.to_base[:, standard].T, found[:, :, size:]


class _Fits:
    """The fits that leave one fold out each, at one weight of the prior, for any set of terms.

    The standard parameters are in every model: they are eliminated once, as the first columns of a Cholesky
    factorisation are, and what remains are small systems in the terms alone. A term is eliminated from the standard
    parameters when a model first has it.
    """

    def __init__(self, folds: Folds, standard: Ints, prior_weight: float) -> None:
        """Factorise the equations of the standard parameters.

        Args:
            folds: The cross products.
            standard: Places of the standard parameters that are not zero.
            prior_weight: Weight of the prior.
        """
        rigid = len(folds.equations.base.layout)
        pull = prior_weight * folds.coordinates.pull
        drawn = pull * folds.coordinates.centre
        self._folds, self._standard = folds, standard
        self._pull, self._drawn = pull[rigid:], drawn[rigid:]
        everywhere = standard.size == rigid
        inner = folds.standard if everywhere else folds.standard[:, standard[:, None], standard]
        self._roots = [_root(matrix, pull[standard]) for matrix in inner]
        torque = folds.mixed[:, -1:, standard] + drawn[standard]
        to_base = folds.to_base[:, standard]
        solved = self._forward([np.vstack([to_base, row]) for row in torque])
        self._to_base, self._torque = solved[:, :-1], solved[:, -1]
        self._base = (self._to_base @ self._torque[..., None])[..., 0]  # (folds, b) without terms
        self._terms: Ints = np.zeros(0, dtype=np.int64)
        self._halves = np.zeros((len(folds), 0, standard.size))
        self._moves = np.zeros((len(folds), 0, len(to_base)))
        self._system = np.zeros((len(folds), 0, 0))
        self._sides = np.zeros((len(folds), 0))

    def _forward(self, rows: Iterable[Floats]) -> Floats:
        """(folds, c, p) the transpose of ``inv(L) @ rows.T`` for rows (c, p) of each fold."""
        solve = lapack().dtrtrs
        return np.array(
            [solve(L, right.T, lower=1, overwrite_b=1)[0].T for L, right in zip(self._roots, rows, strict=True)]
        )

    def include(self, terms: Ints) -> None:
        """Eliminate the standard parameters from the equations of further terms."""
        known = set(self._terms.tolist())
        new = np.array([term for term in dict.fromkeys(terms.tolist()) if term not in known])
        if not new.size:
            return
        folds, old = self._folds, self._terms.size
        halves = self._forward(_pick(mixed, new, self._standard) for mixed in folds.mixed)
        self._halves = np.concatenate([self._halves, halves], axis=1)
        self._moves = np.concatenate([self._moves, halves @ self._to_base.swapaxes(1, 2)], axis=1)
        self._terms = np.concatenate([self._terms, new])
        system = np.empty((len(folds), len(self._terms), len(self._terms)))
        system[:, :old, :old] = self._system
        system[:, old:] = folds.further[:, new[:, None], self._terms] - halves @ self._halves.swapaxes(1, 2)
        system[:, :old, old:] = system[:, old:, :old].swapaxes(1, 2)
        places = np.arange(old, len(self._terms))
        system[:, places, places] += self._pull[new]
        sides = folds.further[:, new, -1] + self._drawn[new] - (halves @ self._torque[..., None])[..., 0]
        self._system, self._sides = system, np.concatenate([self._sides, sides], axis=1)

    def _found(self, terms: Ints) -> Ints:
        """Places of terms among those that were included."""
        order = np.argsort(self._terms)
        return np.asarray(order[np.searchsorted(self._terms[order], terms)])

    def solve(self, wanted: Ints, kept: Ints) -> tuple[Floats, Floats]:
        """Base parameters (folds, 1, b) and scaled unknowns of the terms (folds, 1, k) of the fit to the other folds.

        Args:
            wanted: Places of the folds that are left out in turn.
            kept: (k,) the terms.
        """
        self.include(kept)
        places = self._found(kept)
        right = self._sides[wanted[:, None], places][..., None]
        systems = self._system[wanted[:, None, None], places[:, None], places]
        unknowns = _solve_definite(systems, right).swapaxes(1, 2)
        return self._base[wanted, None] - unknowns @ self._moves[wanted[:, None], places], unknowns

    def extend(self, wanted: Ints, kept: Ints, groups: Ints) -> tuple[Floats, Floats, Floats]:
        """The same for fits with one of m groups of terms each: (folds, m, b), (folds, m, k) and (folds, m, s).

        Each extension is a block elimination: the kept terms are factorised once.

        Args:
            wanted: Places of the folds that are left out in turn.
            kept: (k,) terms of all fits.
            groups: (m, s) further terms of each fit.
        """
        places, added = self._found(kept), self._found(groups)
        rows = self._system[wanted[:, None], places]
        side = rows[:, :, added.ravel()]
        right = np.concatenate([self._sides[wanted[:, None], places][..., None], side], axis=2)
        solved = _solve_definite(rows[:, :, places], right)
        shape = (len(wanted), len(kept), *groups.shape)
        across = side.reshape(shape).transpose(0, 2, 3, 1)
        inner = solved[:, :, 1:].reshape(shape).transpose(0, 2, 1, 3)
        own = self._system[wanted[:, None, None, None], added[:, :, None], added[:, None]] - across @ inner
        first = solved[:, None, :, :1]
        further = self._solve(own, self._sides[wanted[:, None, None], added] - (across @ first)[..., 0])
        unknowns = (first - inner @ further[..., None])[..., 0]
        base = self._base[wanted, None] - unknowns @ self._moves[wanted[:, None], places]
        own_moves = self._moves[wanted[:, None, None], added]
        return base - (further[:, :, None] @ own_moves)[:, :, 0], unknowns, further

    def _solve(self, systems: Floats, right: Floats) -> Floats:
        """Solve small semidefinite systems (folds, m, s, s) and (folds, m, s); the shortest solution of singular ones.

        The smallest eigenvalue of a Schur complement is at least the smallest pull, and the largest one at most the
        trace. Where their ratio lies far above `SINGULAR_SYSTEM`, no direction would be left out.
        """
        largest = np.trace(systems, axis1=2, axis2=3).max(initial=0.0)
        if self._pull.min(initial=np.inf) > CLEARLY * SINGULAR_SYSTEM * largest:
            return np.asarray(np.linalg.solve(systems, right[..., None])[..., 0])
        return _solve_semidefinite(systems, right)


def _solve_definite(systems: Floats, right: Floats) -> Floats:
    """Solve symmetric systems (folds, k, k) and (folds, k, c), which the pull makes definite, by Cholesky's rule.

    It takes half the operations of `numpy.linalg.solve`, which takes over where rounding has made one indefinite.
    """
    solve, found = lapack().dposv, np.empty_like(right)
    if not right.size:
        return found
    for system, side, answer in zip(systems, right, found, strict=True):
        _, answer[...], failed = solve(np.ascontiguousarray(system).T, side, lower=1)  # transposed: LAPACK's order
        if failed:
            return np.asarray(np.linalg.solve(systems, right))
    return found


def _solve_semidefinite(S: Floats, right: Floats) -> Floats:
    """Solve small semidefinite systems (..., s, s) and (..., s); the shortest solution of singular ones."""
    values, vectors = eigh(S)
    smallest = SINGULAR_SYSTEM * np.maximum(np.abs(values).max(axis=-1, keepdims=True), 1e-300)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=np.abs(values) > smallest)
    return np.asarray(np.einsum("...ij,...j,...kj,...k->...i", vectors, inverse, vectors, right, optimize=True))


def _pick(matrix: Floats, rows: Ints, columns: Ints) -> Floats:
    """Some rows and columns of a matrix."""
    return np.asarray(matrix.take(rows, axis=0).take(columns, axis=1))


def _root(matrix: Floats, pull: Floats) -> Floats:
    """Lower Cholesky factor of a semidefinite matrix plus the diagonal matrix of the pull; above it stands anything."""
    for damping in (0.0, SINGULAR):
        A = matrix.copy()
        diagonal = A.ravel()[:: len(A) + 1]
        diagonal += pull
        diagonal += damping * diagonal.max(initial=0.0)
        L, failed = lapack().dpotrf(A.T, lower=1, overwrite_a=1, clean=0)  # transposed, it is in LAPACK's order
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
        message = "the log is too short to find out how far the values of the robot file help: they count with weight 1"
        return 1.0, (Finding(code="prior-weight", severity="note", where="prior", message=message),)
    folds = Folds(equations, weights)
    weight = folds.best_weight(equations.terms)
    message = (
        "where the data say little about a parameter, the value of the robot file counts more; the weight of these "
        f"values is {weight:g}, because the fit then predicts best the parts of the data that were left out of it "
        f"({len(folds)} parts in turn)"
    )
    return weight, (Finding(code="prior-weight", severity="note", where="prior", message=message),)
