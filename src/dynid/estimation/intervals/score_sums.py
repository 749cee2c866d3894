"""Covariance of a solution from the scores of blocks of time, direction by direction.

The solution of ``sum_s W_s' w e_s = 0`` over blocks s has the covariance ``A^-1 B A^-1`` with ``A = sum_s A_s``,
``A_s = W_s' w W_s``, and B the covariance of the sum of scores. If residuals were independent in time, B would be the
*filling* ``sum_s B_s``, ``B_s = W_s' w^2 v W_s``. What it is in truth is read from other sums of the same scores, with
waves ``k_s`` as weights (`waves`). All is in coordinates in which A is the identity:

    z_k  = sum_s k_s (g_s - A_s h) = sum_s (k_s - A_k) g_s,     A_k = sum_s k_s A_s,   h = sum_s g_s
    C_kl = E[z_k z_l'] = sum_s k_s l_s B_s - A_k B_l - B_k A_l + A_k B A_l             if residuals were independent

so the bias by what the fit took out of the residuals is known: ``N = sum_k C_kk``, and ``sum_k z_k z_k'`` with z
rescaled from N to B is B, without bias if residuals are independent, and direction by direction if they are not. Few
waves leave few degrees of freedom, ``d = tr(C)^2 / |C|^2`` for each parameter (Satterthwaite; Bell and McCaffrey 2002
for blocks), hence Student's t (Lazarus, Lewis, Stock and Watson 2018 for cosines).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import eigh
from dynid.estimation.intervals.between_runs import RunSums
from dynid.estimation.intervals.waves import WAVES, has_many_runs, make_waves, student_factor

BORROWED = 0.01
"""Share of the covariance that is the average over all directions (experiment: with more, groups of
parameters under ripple and autoregressive noise were covered by 100 % in the campaign of interval conditions). It keeps
the covariance of full rank, where waves are fewer than parameters."""
LEAST_FREEDOM = 0.05
"""Share of the waves that the fit must leave to a direction; of those it leaves less, the average is taken (convention:
beyond, rounding and model errors are raised 20 times)."""
QUIETEST = 0.05
"""Smallest average ratio of scores to those of independent residuals (convention): less is rounding, not noise."""
CAUTIOUS = 0.1
"""Share of the parameters whose variance may have fewer degrees of freedom than all together are given (convention; a
quarter gives intervals 4 % narrower, with which the halves of the shortest real logs agree less often)."""

ALIKE = 1e-12
"""Distance of the sum of fillings from the unit matrix that is rounding (convention): products with it are left out."""
TOGETHER = 32
"""Blocks of time that are added at once (convention: some megabytes)."""


class ScoreSums:
    """Sums over blocks of time; every block is shown once, and no more than some are kept."""

    def __init__(self, root: Floats, counts: Floats, runs: NDArray[np.int64], waves: int = WAVES) -> None:
        """Nothing is seen yet.

        Args:
            root: (b, r) matrix L with ``L' A L = 1``: parameters = L @ coordinates, without what is undetermined.
            counts: (S,) number of equations of each block, in the order of time.
            runs: (S,) number of each block's run.
            waves: Number of waves.
        """
        self._root, self._waves = root, make_waves(counts, runs, waves)
        m, r = len(self._waves), root.shape[1]
        self._bread = self._filling = np.zeros((m, r, r))  # the same as long as those of all blocks are
        self._pairs = np.triu_indices(m)  # C_lk is the transpose of C_kl, so k <= l is enough
        # sums of fillings by pairs of waves: (pairs, n) shares of (n, r, r) matrices, of the blocks while these are few
        self._shares, self._crossed = np.zeros((len(self._pairs[0]), 0)), np.zeros((0, r, r))
        self._scores, self._whole = np.zeros((m, r)), np.zeros((r, r))
        self._waiting: list[tuple[int, Floats, Floats]] = []
        few = np.unique(runs).size > 1 and not has_many_runs(runs, waves)
        self._runs = RunSums(root, runs) if few else None

    def add(self, place: int, bread: Floats, filling: Floats, score: Floats) -> None:
        """Add a block.

        Args:
            place: Which of the S blocks it is.
            bread: (r, r) ``L' A_s L``
            filling: (r, r) ``L' B_s L``
            score: (r,) ``L' g_s`` with the residuals of the solution.
        """
        self._scores += np.outer(self._waves[:, place], score)
        self._whole += filling
        self._waiting.append((place, bread, filling))
        if len(self._waiting) == TOGETHER:
            self._add_waiting()
        if self._runs is not None:
            self._runs.add(place, bread, filling, score)

    def _add_waiting(self) -> None:
        """Add several blocks by one product of matrices."""
        waves = self._waves[:, [place for place, _, _ in self._waiting]]
        filling = np.array([block[2] for block in self._waiting])
        summed = np.tensordot(waves, filling, axes=1)
        if all(block[1] is block[2] for block in self._waiting):
            added = summed
        else:
            added = np.tensordot(waves, np.array([block[1] for block in self._waiting]), axes=1)
        if self._bread is self._filling and added is summed:
            self._bread = self._filling = self._filling + summed
        else:
            self._bread, self._filling = self._bread + added, self._filling + summed
        first, second = self._pairs
        self._shares = np.concatenate([self._shares, waves[first] * waves[second]], axis=1)
        self._crossed = np.concatenate([self._crossed, filling])
        if len(self._crossed) > len(first):
            self._crossed, self._shares = np.tensordot(self._shares, self._crossed, axes=1), np.eye(len(first))
        self._waiting = []

    def covariance(self, kinds: tuple[str, ...]) -> Floats:
        """(b, b) covariance, such that 1.96 standard deviations are half of a 95 % interval of each parameter.

        Errors of a friction that acts all the time are seen by all waves, those of an inertia by a few that are large
        while it accelerates: each parameter has its own degrees of freedom.

        Args:
            kinds: (b,) kind of each parameter: those of one kind are taken to vary alike from run to run.
        """
        L = self._root
        if self._waiting:
            self._add_waiting()
        plain = np.asarray(self._by_whole(L) @ L.T)
        if not self._waves.size or not self._whole.any():
            return plain
        rescaling, whitening, lost = self._rescaling(self._expected())
        z = self._scores @ rescaling.T  # (m, r)
        average = max(float(np.sum((z @ whitening.T) ** 2)) / max(L.shape[1], 1), QUIETEST)
        freedom = self._freedom(L @ rescaling)
        found = L @ z.T
        unseen = (L @ lost) @ (L @ lost).T
        covariance = BORROWED * average * plain + (1.0 - BORROWED) * (found @ found.T + average * unseen)
        common = np.nanquantile(freedom, CAUTIOUS) if np.isfinite(freedom).any() else 0.0
        own = student_factor(np.where(np.isnan(freedom), common, freedom))
        between = self._runs.covariance(kinds, covariance, plain) if self._runs is not None else 0.0
        return np.asarray(np.outer(own, own) * covariance + between)

    @property
    def _is_unit(self) -> bool:
        """Whether the sum of fillings is the unit matrix, as it is by weights that are inverse variances."""
        return bool(np.abs(self._whole - np.eye(len(self._whole))).max(initial=0.0) <= ALIKE)

    def _by_whole(self, matrices: Floats) -> Floats:
        """Matrices (..., r) times the sum of fillings."""
        return matrices if self._is_unit else np.asarray(matrices @ self._whole)

    def _expected(self) -> Floats:
        """(r, r) the sum N of the covariances C_kk of the sums if residuals were independent in time."""
        A, B = self._bread, self._filling
        first, second = self._pairs
        left = np.tensordot(A, B, axes=([0, 2], [0, 1]))  # sum_k A_k B_k
        if self._is_unit:
            inner = left if A is B else np.tensordot(A, A, axes=([0, 2], [0, 1]))
        else:
            inner = np.tensordot(A @ self._whole, A, axes=([0, 2], [0, 1]))
        crossed = np.tensordot(self._shares[first == second].sum(axis=0), self._crossed, axes=1)
        return np.asarray(crossed - left - left.T + inner)

    def _rescaling(self, N: Floats) -> tuple[Floats, Floats, Floats]:
        """Rescale from the covariance N of the sums to B.

        Returns:
            (r, r) F with ``F N F' = B`` as far as the fit left something, (r, r) W with ``W B W' = 1``, and a root
            (r, l) of the part of B of which the fit left too little.
        """
        if self._is_unit:
            G = whitening = np.eye(len(N))
            left, directions = eigh(N)
        else:
            values, vectors = eigh(self._whole)
            values = np.maximum(values, 1e-12 * values[-1])
            G, whitening = vectors * np.sqrt(values), (vectors / np.sqrt(values)).T
            left, directions = eigh(whitening @ N @ whitening.T)
        least = LEAST_FREEDOM * max(float(np.max(left)), 1e-300)
        kept = np.where(left > least, 1.0 / np.sqrt(np.maximum(left, least)), 0.0)
        rescaling = (directions * kept) @ directions.T
        if not self._is_unit:
            rescaling = G @ rescaling @ whitening
        return rescaling, whitening, G @ directions[:, left <= least]

    def _freedom(self, rows: Floats) -> Floats:
        """(b,) degrees of freedom of the variances of parameters (rows, r); NaN where no wave shows one.

        Only ``rows C_kl rows'`` is needed, row by row, so the covariances C_kl themselves are never formed.
        """
        first, second = self._pairs
        by_bread = rows @ self._bread  # (m, b, r)
        by_filling = by_bread if self._filling is self._bread else rows @ self._filling
        left = np.einsum("kci,lci->ckl", by_bread, by_filling, optimize=True)
        inner = np.einsum("kci,lci->ckl", self._by_whole(by_bread), by_bread, optimize=True)
        table = inner - left - left.swapaxes(1, 2)
        seen = np.einsum("nci,ci->nc", rows @ self._crossed, rows)
        crossed = np.zeros_like(table)
        crossed[:, first, second] = crossed[:, second, first] = (self._shares @ seen).T
        table += crossed
        trace = np.einsum("ckk->c", table)
        known = trace > 0.0
        shares = table[known] / trace[known, None, None]  # squares of the table itself may be too small for a number
        freedom = np.full(len(rows), np.nan)
        freedom[known] = 1.0 / np.sum(shares**2, axis=(1, 2))
        return freedom
