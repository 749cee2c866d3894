"""Errors on left-out blocks of time, for any set of terms and any weight of the prior, without a second pass.

The fits are regularised by the prior but have no physical constraints, so that each fit is one linear solve. They only
rank models and weights, and constraints hardly change that order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats, Ints
from dynid.decompositions import eigh, lapack
from dynid.errors import ArgumentError, EstimationError
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate
from dynid.estimation.linear.least_squares import least_squares_estimate, refined_weights
from dynid.estimation.physical.prior import PriorCoordinates
from dynid.findings import Finding
from dynid.information import Factor
from dynid.terms.base import Term

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
        self._fits: dict[float, _Fits] = {}
        self._terms = equations.terms if terms is None else tuple(terms)
        self._places = {term: place for place, term in enumerate(self._terms)}
        partitions = [_groups(equations, segments, count) for count in counts]
        whole_runs = _runs(equations, segments)
        self.across_runs = runs and 1 < len(whole_runs) < RUNS_AS_FOLDS
        """Whether the last partition leaves whole runs out, and the others do not."""
        partitions += [whole_runs] if self.across_runs else []
        self._partition = np.repeat(np.arange(len(partitions)), [len(partition) for partition in partitions])
        within = np.array([np.isin(segments, group) for partition in partitions for group in partition], dtype=float)
        numbers: dict[bytes, int] = {}  # segments that no fold parts from one another count as one
        members = np.array([numbers.setdefault(column.tobytes(), len(numbers)) for column in within.T])
        within = within[:, np.unique(members, return_index=True)[1]]
        products = self._products(segments, members, (weights, np.ones_like(weights)))
        whole = products[0].sum(axis=0)
        rank, rigid = equations.base.grouping.shape
        length = np.sqrt(np.diagonal(whole))[rank:-1]
        self.coordinates = PriorCoordinates.of(equations.robot, np.where(length > 0.0, length, np.inf))
        self._to_base = equations.base.grouping @ self.coordinates.from_scaled[:rigid, :rigid]
        """(b, p) base parameters = to_base @ scaled standard parameters."""
        self.sizes = np.diagonal(self.coordinates.from_scaled)[rigid:]
        """(k,) parameter of each term = size * its scaled unknown."""
        scale = np.concatenate([np.ones(rank), self.sizes, [1.0]])
        products *= scale[:, None]
        products *= scale
        parts = [np.flatnonzero(row) for row in within]
        self._weighted, self._torque = (np.array([part[mine].sum(axis=0) for mine in parts]) for part in products)
        self._rest = products[0].sum(axis=0) - self._weighted
        """(folds, b + k + 1, b + k + 1) weighted cross products without each fold, of base parameters, scaled terms and
        torque; as those of each fold are."""

    def __len__(self) -> int:
        return len(self._weighted)

    def partition(self, number: int | None = None) -> Ints:
        """Places of the folds of one partition; of all by default."""
        return np.flatnonzero((self._partition == number) | (number is None))

    def partitions(self, places: Ints) -> int:
        """Number of partitions that folds at these places are of."""
        return int(np.unique(self._partition[places]).size)

    def _products(self, segments: Sequence[int], members: Ints, weights: Sequence[Floats]) -> Floats:
        """(weights, groups, p, p) cross products of all columns and the torque over each group of segments.

        Args:
            segments: The segments.
            members: (segments,) number of each one's group.
            weights: (n,) weights of the joints' squared residuals, one or more.
        """
        information, rank = self.equations.information, self.equations.base.rank
        columns = {column: column for column in range(rank)}
        columns |= {rank + place: rank + k for k, place in enumerate(self.equations.term_places(self._terms))}
        size = len(columns) + 1
        groups = np.equal.outer(np.arange(members.max() + 1), members).astype(float)
        total = np.zeros((len(weights), len(groups), size, size))
        for joint, support in enumerate(information.supports):
            picked = [place for place, column in enumerate(support) if column in columns]
            factors = [information.rows(joint, segment) for segment in segments]
            if len(picked) < len(support):
                factors = [rows.take([*picked, -1], axis=1) for rows in factors]
            squares = np.tensordot(groups, np.array([rows.T @ rows for rows in factors]), axes=1)
            places = np.array([*(columns[support[place]] for place in picked), size - 1])
            for part, weight in zip(total, weights, strict=True):
                part[:, places[:, None], places] += weight[joint] * squares
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
        return self._fits_at(prior_weight).errors(wanted, kept, groups)

    def _fits_at(self, prior_weight: float) -> _Fits:
        if prior_weight not in self._fits:
            self._fits[prior_weight] = _Fits(self, prior_weight)
        return self._fits[prior_weight]

    def _parameters(self, kept: Ints, weights: Sequence[float]) -> tuple[Floats, Floats]:
        """What `_fit` gives for all folds without absent parameters, from cross products that all models share."""
        base, unknowns = zip(*(self._fits_at(weight).parameters(kept) for weight in weights), strict=True)
        return np.stack(base, axis=1), np.stack(unknowns, axis=1)

    def _squares(self, wanted: Ints, kept: Ints, base: Floats, unknowns: Floats) -> Floats:
        """(folds, m) weighted squared errors of m fits to each wanted fold by cross products.

        Args:
            wanted: Places of the folds.
            kept: (k,) terms of all fits.
            base: (folds, m, b) base parameters of each fit.
            unknowns: (folds, m, k) scaled unknowns of the terms.
        """
        rank, places = base.shape[2], np.append(base.shape[2] + kept, self._weighted.shape[1] - 1)
        products = _of_folds(self._weighted, wanted)
        others = np.concatenate([unknowns, np.full((*base.shape[:2], 1), -1.0)], axis=2)  # terms and torque
        rows = products.take(places, axis=1)
        squares = np.sum(base * (base @ products[:, :rank, :rank] + 2.0 * (others @ rows[:, :, :rank])), axis=2)
        squares += np.sum(others * (others @ rows.take(places, axis=2)), axis=2)
        length = np.sqrt(np.maximum(np.diagonal(products, axis1=1, axis2=2), 0.0))[..., None]
        size = (np.abs(base) @ length[:, :rank] + np.abs(others) @ length[:, places])[..., 0]
        # differences below this are rounding and may be negative: without noise, all fits count as equal
        return np.asarray(np.maximum(squares, ROUNDING * size**2))

    def products(self, fold: int) -> tuple[Floats, Floats]:
        """(b + k + 1, b + k + 1) weighted cross products without a fold, and those of the fold without weights."""
        return self._rest[fold], self._torque[fold]

    def _columns(self, terms: Sequence[Term]) -> Ints:
        return np.array([self._places[term] for term in terms], dtype=np.int64)

    def best_weight(self, terms: Sequence[Term], absent: Sequence[int] = (), near: float | None = None) -> float:
        """The strongest prior whose weighted error on left-out folds is within 1 % of the best.

        Args:
            terms: Terms of the model.
            absent: Places of standard parameters that are zero.
            near: One of `WEIGHTS` that was best for a similar model: the search goes downhill from it, and looks no
                further than where the error rises. By default it tries all weights.
        """
        kept, everything = self._columns(terms), np.arange(len(self))

        def found(weights: Sequence[float]) -> list[float]:
            fits = self._parameters(kept, weights) if swept else self._fit(everything, kept, absent, weights)
            return [float(error) for error in self._squares(everything, kept, *fits).sum(axis=0)]

        swept = near is not None and not absent  # other models ask for the same weights, and share the elimination
        if near is None:
            errors = dict(zip(WEIGHTS, found(WEIGHTS), strict=True))
        else:
            errors = _downhill(found, WEIGHTS.index(near))
        return max(weight for weight, error in errors.items() if error <= NEAR_BEST * min(errors.values()))

    def _fit(self, wanted: Ints, kept: Ints, absent: Sequence[int], weights: Sequence[float]) -> tuple[Floats, Floats]:
        """Base parameters (folds, weights, b) and scaled unknowns of the terms (folds, weights, k), fit by fit.

        Args:
            wanted: Places of the folds that are left out in turn.
            kept: (k,) terms of the model.
            absent: Places of standard parameters that are zero.
            weights: Weights of the prior.
        """
        to_base, centre = self.drawn_base(absent)
        size, used = len(centre), len(self._to_base) + kept
        rest = _of_folds(self._rest, wanted)
        rows = rest.take(np.append(used, -1), axis=1)
        matrices = np.empty((len(wanted), size + kept.size, size + kept.size))
        matrices[:, :size, :size] = to_base.T @ rest[:, : len(to_base), : len(to_base)] @ to_base
        mixed = rows[:, :, : len(to_base)] @ to_base
        matrices[:, size:, :size] = mixed[:, :-1]
        matrices[:, :size, size:] = mixed[:, :-1].swapaxes(1, 2)
        matrices[:, size:, size:] = rows[:, :-1].take(used, axis=2)
        torque = np.concatenate([mixed[:, -1], rows[:, :-1, -1]], axis=1)
        pull, drawn = self.pulls(kept)
        pull, drawn = np.append(np.ones(size), pull), np.append(centre, drawn)
        solve = lapack().dpotrs
        found = np.array(
            [
                [solve(_root(matrix, weight * pull), right + weight * drawn, lower=1)[0] for weight in weights]
                for matrix, right in zip(matrices, torque, strict=True)
            ]
        )
        return found[:, :, :size] @ to_base.T, found[:, :, size:]

    def pulls(self, kept: Ints) -> tuple[Floats, Floats]:
        """(k,) pull of terms, and pull times the value to which it draws them, at weight one."""
        used = self._to_base.shape[1] + kept
        pull = self.coordinates.pull[used]
        return pull, pull * self.coordinates.centre[used]

    def drawn_base(self, absent: Sequence[int] = ()) -> tuple[Floats, Floats]:
        """Unknowns z (r,) that the prior of weight one draws with pull one: (b, r) base parameters over z, and centre.

        The prior draws the standard parameters, of which the data tell the base parameters alone. Of all standard
        parameters y with ``B y = beta`` the nearest to the centre c has the distance of beta from ``B c`` in the metric
        of ``inv(B inv(P) B^T)``; so b unknowns do the work of p.

        Args:
            absent: Places of standard parameters that are zero.
        """
        standard = np.array([k for k in range(self._to_base.shape[1]) if k not in set(absent)], dtype=np.int64)
        B, pull = self._to_base[:, standard], self.coordinates.pull[standard]
        spread = B / pull @ B.T
        size = np.sqrt(np.diagonal(spread))
        divisor = np.where(size > 0.0, size, 1.0)
        values, vectors = eigh(spread / np.outer(divisor, divisor))
        kept = values > SINGULAR
        root = np.sqrt(values[kept])
        back = vectors[:, kept].T / divisor / root[:, None]
        return size[:, None] * vectors[:, kept] * root, back @ (B @ self.coordinates.centre[standard])


class _Fits:
    """The fits that leave one fold out each, at one weight of the prior, for any set of terms.

    The base parameters are in every model: they are eliminated once from the cross products of the fit and, by the same
    step, from those of the left-out fold. What remains are small matrices of the terms and the torque, from which
    `_Swept` eliminates the terms that a model has.
    """

    def __init__(self, folds: Folds, prior_weight: float) -> None:
        self._folds, self._weight = folds, prior_weight
        to_base, centre = folds.drawn_base()
        inverse = np.linalg.inv(to_base)  # without absent parameters the base parameters are all free
        self._pull, self._drawn = inverse.T @ inverse, inverse.T @ centre
        size = len(folds.sizes) + 1
        self._known, self._reduced = np.zeros(len(folds), dtype=bool), np.zeros(len(folds), dtype=bool)
        self._halves, self._inverse = (np.empty((len(folds), len(centre), width)) for width in (size, len(centre)))
        self._S, self._T = (np.empty((len(folds), size, size)) for _ in range(2))
        self._least = np.empty(len(folds))
        self._latest: dict[bytes, _Swept] = {}

    def errors(self, wanted: Ints, kept: Ints, groups: Sequence[Ints]) -> tuple[Floats, Floats]:
        """(folds,) squared torque errors of the fit with the kept terms, (groups, folds) with a further group each.

        Args:
            wanted: Places of the folds that are left out in turn.
            kept: (k,) terms of all fits.
            groups: Further terms of each fit.
        """
        swept = self._swept(wanted, kept)
        torque = swept.blocks(np.array([[-1]]))[1][:, 0, 0, 0]
        new = np.empty((len(groups), len(wanted)))
        for size in sorted({group.size for group in groups}):  # groups of one size are treated at once
            alike = [place for place, group in enumerate(groups) if group.size == size]
            S, T = swept.blocks(np.array([np.append(groups[place], -1) for place in alike]))
            found = np.full((*S.shape[:2], size + 1), -1.0)
            found[..., :-1] = self._solve(S[..., :-1, :-1], S[..., :-1, -1])
            new[alike] = np.sum(found * (T @ found[..., None])[..., 0], axis=2).T
        # differences below this are rounding and may be negative: without noise, all fits count as equal
        least = self._least[wanted]
        return np.maximum(torque, least), np.maximum(new, least)

    def parameters(self, kept: Ints) -> tuple[Floats, Floats]:
        """Base parameters (folds, b) and scaled unknowns (folds, k) of the terms of all fits with the kept terms."""
        self._eliminate_base(np.arange(len(self._known)))
        width = self._S.shape[2]
        flat = (width * kept)[:, None] + np.append(kept, width - 1)
        rows = self._S.reshape(len(self._S), -1).take(flat, axis=1)
        unknowns = _solve_definite(rows[:, :, :-1], rows[:, :, -1:])
        everything = np.zeros((*self._S.shape[:2], 1))
        everything[:, kept] = -unknowns
        everything[:, -1] = 1.0
        return (self._inverse.swapaxes(1, 2) @ (self._halves @ everything))[..., 0], unknowns[..., 0]

    def _swept(self, wanted: Ints, kept: Ints) -> _Swept:
        """The cross products without the kept terms, from the latest ones of these folds that are on the way."""
        self._eliminate_base(wanted)
        self._reduce(wanted)
        nothing = _Swept.nothing(self._S, self._T, wanted)
        known = [swept.of(wanted) for swept in self._latest.values() if swept.leads_to(wanted, kept)]
        nearest = max(known, key=lambda swept: swept.kept.size, default=nothing)
        self._latest[wanted.tobytes()] = nearest.sweep(np.setdiff1d(kept, nearest.kept))
        return self._latest[wanted.tobytes()]

    def _eliminate_base(self, wanted: Ints) -> None:
        """Fit the base parameters to the terms and the torque, without each of some folds, and leave what they lack.

        The terms of the cross products (k + 1, k + 1) that are left are scaled, and the last row and column are the
        torque's.
        """
        rank, terms = len(self._pull), np.arange(len(self._folds.sizes))
        pull, drawn = self._folds.pulls(terms)
        for fold in wanted[~self._known[wanted]].tolist():
            rest, left_out = self._folds.products(fold)
            mixed = rest[:rank, rank:].copy()
            mixed[:, -1] += self._weight * self._drawn
            inverse, halves, S = self._inverse[fold], self._halves[fold], self._S[fold]
            inverse[:] = _inverse_root(rest[:rank, :rank] + self._weight * self._pull)
            np.matmul(inverse, mixed, out=halves)
            np.subtract(rest[rank:, rank:], halves.T @ halves, out=S)
            S[terms, terms] += self._weight * pull
            S[terms, -1] += self._weight * drawn
            S[-1, terms] += self._weight * drawn
            length = np.sqrt(np.maximum(np.diagonal(left_out), 0.0))
            fitted = halves[:, -1] @ inverse
            self._least[fold] = ROUNDING * float(np.abs(fitted) @ length[:rank] + length[-1]) ** 2
            self._known[fold] = True

    def _reduce(self, wanted: Ints) -> None:
        """Cross products (k + 1, k + 1) of some left-out folds without the fitted base parameters."""
        rank = len(self._pull)
        for fold in wanted[~self._reduced[wanted]].tolist():
            _, left_out = self._folds.products(fold)
            base, T = self._inverse[fold].T @ self._halves[fold], self._T[fold]
            half = base.T @ (0.5 * (left_out[:rank, :rank] @ base) - left_out[:rank, rank:])
            np.add(left_out[rank:, rank:], half, out=T)
            T += half.T
            self._reduced[fold] = True

    def _solve(self, systems: Floats, right: Floats) -> Floats:
        """Solve small semidefinite systems (folds, m, s, s) and (folds, m, s); the shortest solution of singular ones.

        The smallest eigenvalue of a Schur complement is at least the smallest pull, and the largest one at most the
        trace. Where their ratio lies far above `SINGULAR_SYSTEM`, no direction would be left out.
        """
        largest = np.trace(systems, axis1=2, axis2=3).max(initial=0.0)
        pull, _ = self._folds.pulls(np.arange(len(self._folds.sizes)))
        if self._weight * pull.min(initial=np.inf) > CLEARLY * SINGULAR_SYSTEM * largest:
            return np.asarray(np.linalg.solve(systems, right[..., None])[..., 0])
        return _solve_semidefinite(systems, right)


@dataclass(frozen=True, slots=True, eq=False)
class _Swept:
    """Cross products of terms and torque without some of the terms, of which only the wanted blocks are computed.

    Eliminating terms g changes the cross products S of the fit and T of the left-out fold by products of g rows:

        S - V^T V                with V = inv(L) S_g and L L^T = S_gg
        T - V^T H - H^T V        with H = inv(L) (T_g - T_gg X / 2) and X = inv(S_gg) S_g

    Further terms append rows to V and H, so that the model with one more group of terms starts from the one before, and
    a candidate needs its own few columns alone. Both are kept transposed, so that these lie together in memory.
    """

    S: Floats
    """(all folds, m + 1, m + 1) of the fit, with all terms; the torque's row and column are the last"""
    T: Floats
    """(all folds, m + 1, m + 1) of the left-out fold"""
    folds: Ints
    """(f,) places of the folds"""
    kept: Ints
    """(k,) terms that are eliminated"""
    V: Floats
    """(f, m + 1, k), transposed"""
    H: Floats
    """(f, m + 1, k), transposed"""

    @classmethod
    def nothing(cls, S: Floats, T: Floats, folds: Ints) -> _Swept:
        """All terms are still there."""
        none = np.zeros((len(folds), S.shape[2], 0))
        return cls(S, T, folds, np.zeros(0, dtype=np.int64), none, none)

    def leads_to(self, folds: Ints, kept: Ints) -> bool:
        """Whether more terms need only be eliminated, of all these folds."""
        return set(self.kept.tolist()).issubset(kept.tolist()) and set(folds.tolist()).issubset(self.folds.tolist())

    def of(self, folds: Ints) -> _Swept:
        """The same for some of the folds."""
        if np.array_equal(folds, self.folds):
            return self
        mine = [self.folds.tolist().index(fold) for fold in folds.tolist()]
        return replace(self, folds=folds, V=self.V[mine], H=self.H[mine])

    def blocks(self, columns: Ints) -> tuple[Floats, Floats]:
        """(f, m, s, s) what is left of S and T in each of some sets of columns (m, s)."""
        width = self.S.shape[2]
        rows = width * self.folds[:, None, None, None] + columns[:, :, None] % width  # the torque may be column -1
        flat = width * rows + columns[:, None] % width
        S, T = self.S.take(flat), self.T.take(flat)
        if self.kept.size:
            V, H = self.V.take(columns, axis=1), self.H.take(columns, axis=1)
            S -= V @ V.swapaxes(2, 3)
            half = V @ H.swapaxes(2, 3)
            T -= half
            T -= half.swapaxes(2, 3)
        return S, T

    def sweep(self, eliminated: Ints) -> _Swept:
        """Eliminate some terms, too."""
        if not eliminated.size:
            return self
        rows = (self.folds[:, None], eliminated)
        S, T = self.S[rows], self.T[rows]
        if self.kept.size:
            V, H = self.V.take(eliminated, axis=1), self.H.take(eliminated, axis=1)
            S -= V @ self.V.swapaxes(1, 2)
            T -= V @ self.H.swapaxes(1, 2)
            T -= H @ self.V.swapaxes(1, 2)
        roots = np.array([_inverse_root(system) for system in S.take(eliminated, axis=2)]).swapaxes(1, 2)
        V = S.swapaxes(1, 2) @ roots
        T -= (0.5 * T.take(eliminated, axis=2) @ roots) @ V.swapaxes(1, 2)
        V, H = (np.concatenate(pair, axis=2) for pair in ((self.V, V), (self.H, T.swapaxes(1, 2) @ roots)))
        return _Swept(self.S, self.T, self.folds, np.append(self.kept, eliminated), V, H)


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


def _root(matrix: Floats, pull: Floats | None = None, *, clean: bool = False) -> Floats:
    """Lower Cholesky factor of a semidefinite matrix plus the diagonal matrix of the pull, if there is any.

    Above it stands anything, unless it shall be clean.
    """
    for damping in (0.0, SINGULAR):
        A = matrix.copy()
        if pull is not None or damping:
            diagonal = A.ravel()[:: len(A) + 1]
            diagonal += 0.0 if pull is None else pull
            diagonal += damping * diagonal.max(initial=0.0)
        L, failed = lapack().dpotrf(A.T, lower=1, overwrite_a=1, clean=clean)  # transposed, it is in LAPACK's order
        if not failed:
            return np.asarray(L)
    raise EstimationError(
        "the equations of a fold cannot be solved", remedy="Check the torques of the log: dynid check."
    )


def _inverse_root(matrix: Floats) -> Floats:
    """Inverse of the lower Cholesky factor of a semidefinite matrix: products with it are quicker than solutions."""
    return np.asarray(lapack().dtrtri(_root(matrix, clean=True), lower=1, overwrite_c=1)[0])


def _downhill(found: Callable[[Sequence[float]], list[float]], start: int) -> dict[float, float]:
    """Errors of the weights from a start on: both ways until the error is clearly above the smallest.

    Args:
        found: Gives the errors of some weights.
        start: Place in `WEIGHTS`.
    """
    first = range(max(start - 1, 0), min(start + 2, len(WEIGHTS)))
    errors = dict(zip(first, found([WEIGHTS[place] for place in first]), strict=True))
    for step, edge in ((-1, min(first)), (1, max(first))):
        while errors[edge] <= NEAR_BEST * min(errors.values()) and 0 <= edge + step < len(WEIGHTS):
            edge += step
            errors[edge] = found([WEIGHTS[edge]])[0]
    return {WEIGHTS[place]: error for place, error in errors.items()}


def _of_folds(products: Floats, wanted: Ints) -> Floats:
    """The cross products of some folds; the array itself where all are wanted."""
    everything = np.array_equal(wanted, np.arange(len(products)))
    return products if everything else np.asarray(products[wanted])


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
