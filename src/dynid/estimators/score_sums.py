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

The waves are slow cosines over the blocks of time, which a constant does not pass: errors that are correlated in time
for less than the shortest wave raise all these sums as much as the plain one.

What differs between runs is a part of the covariance: offsets move with temperature, friction with time. With few runs,
blocks of time within them do not show that. Each parameter c has in run r its own deviation of variance ``q_c``; the
solution moves by ``sum_r H_r d_r`` with the runs' shares ``H_r = A^-1 A_r``, so its covariance grows by
``sum_r H_r diag(q) H_r'``. The scores of whole runs show q: what they are larger than blocks within runs let expect
(least squares over all parameters, no q negative). Parameters of one kind (offsets, viscous friction, links, ...) are
taken to vary alike, as their torques compare with the noise, because two or three runs say little about a single one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from dynid.arrays import Floats
from dynid.decompositions import eigh, pinv

BORROWED = 0.01
"""Share of the covariance that is the average over all directions (experiment: with more, groups of
parameters under ripple and autoregressive noise were covered by 100 % in the campaign of interval conditions). It keeps
the covariance of full rank, where waves are fewer than parameters."""
LEAST = 0.05
"""Share of the waves that the fit must leave to a direction; of those it leaves less, the average is taken (convention:
beyond, rounding and model errors are raised 20 times). Also the smallest average ratio of scores to those of
independent residuals: less is rounding, not noise."""
CAUTIOUS = 0.1
"""Share of the parameters whose variance may have fewer degrees of freedom than all together are given (convention; a
quarter gives intervals 4 % narrower, with which the halves of the shortest real logs agree less often)."""
FEWEST, WAVES = 3, 8
"""Smallest and largest number of waves. Fewer see longer correlations, more give narrower intervals: with eight, an
interval is 14 % wider on average than if the covariance were known (Student's t), and errors may be correlated for an
eighth of a log. Four, six and eight were compared on the halves of the real logs before eight was chosen."""


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
        names, slow, r = np.unique(runs), make_waves(counts, runs, waves), root.shape[1]
        m, few = len(slow), names if 1 < names.size <= waves else names[:0]
        # the weights of each block in the sums: the waves, then each of a few runs by itself
        self._root, self._m, self._weights = root, m, np.vstack([slow, few[:, None] == runs])
        self._scores, self._whole = np.zeros((len(self._weights), r)), np.zeros((r, r))
        self._bread, self._filling = np.zeros((2, len(self._weights), r, r))
        self._crossed = np.zeros((m, m, r, r))  # sums of fillings by pairs of waves

    def add(self, place: int, rows: Floats, residual: Floats, noise: Floats) -> None:
        """Add a block.

        Args:
            place: Which of the S blocks it is.
            rows: (m, r) weighted rows of its equations, ``w^(1/2) W_s L``.
            residual: (m,) weighted residuals of the solution, ``w^(1/2) e_s``.
            noise: (m,) variance of each, if they were independent in time.
        """
        bread, filling, score = rows.T @ rows, rows.T @ (noise[:, None] * rows), rows.T @ residual
        weight = self._weights[:, place]
        self._scores += np.outer(weight, score)
        self._whole += filling
        self._bread += np.multiply.outer(weight, bread)
        self._filling += np.multiply.outer(weight, filling)
        self._crossed += np.multiply.outer(np.outer(weight[: self._m], weight[: self._m]), filling)

    def covariance(self, kinds: tuple[str, ...]) -> Floats:
        """(b, b) covariance, such that 1.96 standard deviations are half of a 95 % interval of each parameter.

        Errors of a friction that acts all the time are seen by all waves, those of an inertia by a few that are large
        while it accelerates: each parameter has its own degrees of freedom.

        Args:
            kinds: (b,) kind of each parameter: those of one kind are taken to vary alike from run to run.
        """
        L = self._root
        plain = np.asarray(L @ self._whole @ L.T)
        if not self._m or not self._whole.any():
            return plain
        rescaling, whitening, lost = self._rescaling(self._expected())
        z = self._scores[: self._m] @ rescaling.T
        average = max(float(np.sum((z @ whitening.T) ** 2)) / max(L.shape[1], 1), LEAST)
        freedom = self._freedom(L @ rescaling)
        found = L @ z.T
        unseen = (L @ lost) @ (L @ lost).T
        covariance = BORROWED * average * plain + (1.0 - BORROWED) * (found @ found.T + average * unseen)
        common = np.nanquantile(freedom, CAUTIOUS) if np.isfinite(freedom).any() else 0.0
        own = student_factor(np.where(np.isnan(freedom), common, freedom))
        between = self._between_runs(kinds, covariance, plain) if self._m < len(self._weights) else 0.0
        return np.asarray(np.outer(own, own) * covariance + between)

    def _expected(self) -> Floats:
        """(r, r) the sum N of the covariances C_kk of the sums if residuals were independent in time."""
        A, B = self._bread[: self._m], self._filling[: self._m]
        left = np.tensordot(A, B, axes=([0, 2], [0, 1]))  # sum_k A_k B_k
        inner = np.tensordot(A @ self._whole, A, axes=([0, 2], [0, 1]))
        return np.asarray(np.einsum("kkij->ij", self._crossed) - left - left.T + inner)

    def _rescaling(self, N: Floats) -> tuple[Floats, Floats, Floats]:
        """Rescale from the covariance N of the sums to B.

        Returns:
            (r, r) F with ``F N F' = B`` as far as the fit left something, (r, r) W with ``W B W' = 1``, and a root
            (r, l) of the part of B of which the fit left too little.
        """
        values, vectors = eigh(self._whole)
        values = np.maximum(values, 1e-12 * values[-1])
        G, whitening = vectors * np.sqrt(values), (vectors / np.sqrt(values)).T
        left, directions = eigh(whitening @ N @ whitening.T)
        least = LEAST * max(float(np.max(left)), 1e-300)
        kept = np.where(left > least, 1.0 / np.sqrt(np.maximum(left, least)), 0.0)
        rescaling = G @ (directions * kept) @ directions.T @ whitening
        return rescaling, whitening, G @ directions[:, left <= least]

    def _freedom(self, rows: Floats) -> Floats:
        """(b,) degrees of freedom of the variances of parameters (rows, r); NaN where no wave shows one.

        Only ``rows C_kl rows'`` is needed, row by row, so the covariances C_kl themselves are never formed.
        """
        by_bread = rows @ self._bread[: self._m]  # (m, b, r)
        left = np.einsum("kci,lci->ckl", by_bread, rows @ self._filling[: self._m], optimize=True)
        inner = np.einsum("kci,lci->ckl", by_bread @ self._whole, by_bread, optimize=True)
        crossed = np.einsum("klci,ci->ckl", rows @ self._crossed, rows)
        table = crossed + inner - left - left.swapaxes(1, 2)
        trace = np.einsum("ckk->c", table)
        known = trace > 0.0
        shares = table[known] / trace[known, None, None]  # squares of the table itself may be too small for a number
        freedom = np.full(len(rows), np.nan)
        freedom[known] = 1.0 / np.sum(shares**2, axis=(1, 2))
        return freedom

    def _between_runs(self, kinds: tuple[str, ...], within: Floats, plain: Floats) -> Floats:
        """(b, b) the part of the covariance that comes from differences between runs, with the factor of Student's t.

        Args:
            kinds: (b,) kind of each parameter.
            within: (b, b) covariance by blocks within runs.
            plain: (b, b) covariance if residuals were independent in time.
        """
        from scipy.optimize import nnls  # heavy, and needed for several runs only

        L, A, B = self._root, self._bread[self._m :], self._filling[self._m :]
        variance, independent = np.diagonal(within), np.diagonal(plain)
        known = (variance > 0.0) & (independent > 0.0)
        safe = np.where(known, variance, 1.0)
        found = np.sum((self._scores[self._m :] @ L.T) ** 2, axis=0)
        whole = B.sum(axis=0)
        spread = sum(b - a @ b - b @ a + a @ whole @ a for a, b in zip(A, B, strict=True))
        expected = np.einsum("ci,ij,cj->c", L, spread, L) * safe / np.where(known, independent, 1.0)
        length = np.linalg.norm(L, axis=1)
        told = length > 0.0  # not what the equations leave open
        length = np.where(told, length, 1.0)
        back = pinv(L / length[:, None]) / length * told  # a left inverse of L that units do not spoil
        shares = np.einsum("ci,rij,jd->rcd", L, A, back, optimize=True)  # H_r
        kind_names = sorted(set(kinds))
        marks = np.array([[other == kind for kind in kind_names] for other in kinds], dtype=float) * known[:, None]
        unit = told / np.where(told, np.sum(back**2, axis=0), 1.0)  # squared change that is as large as the noise
        effect = _effect(shares) @ (unit[:, None] * marks)
        size = nnls(effect[known] / safe[known, None], ((found - expected) / safe)[known])[0]
        # few deviations show the size of a kind, so it may be larger
        size *= student_factor((len(A) - 1) * marks.sum(axis=0)) ** 2
        return np.asarray(np.einsum("rcd,d,red->ce", shares, marks @ size * unit, shares, optimize=True))


def _effect(shares: Floats) -> Floats:
    """(b, b) squares of the runs' scores in each parameter per variance of another one's deviations."""
    total = np.zeros(shares.shape[1:])
    for r, mine in enumerate(shares):
        for q, other in enumerate(shares):
            total += (mine * (r == q) - mine @ other) ** 2
    return total


def wave_number(independent: float) -> int:
    """Number of waves for scores of some independent values: ``0.4 * independent^(2/3)``, rounded, from 3 to 8.

    So Lazarus, Lewis, Stock and Watson (2018) advise. 89 values and more have all eight waves; in a shorter log errors
    last for a larger part of it.
    """
    return int(np.clip(np.rint(0.4 * max(independent, 0.0) ** (2.0 / 3.0)), FEWEST, WAVES))


def student_factor(freedom: ArrayLike) -> Floats:
    """Width of 95 % intervals by Student's t over that by the normal distribution, for some degrees of freedom.

    Fewer than one count as one.
    """
    return np.asarray(student.ppf(0.975, np.maximum(freedom, 1.0)) / student.ppf(0.975, np.inf))


def make_waves(counts: Floats, runs: NDArray[np.int64], waves: int = WAVES) -> Floats:
    """(m, S) weights of the scores of S blocks in m sums.

    Over one run they are the slowest cosines of time. Over a few runs each has its own ones, as many together. Over
    many runs they go from run to run, so that what differs between runs counts as noise.

    Args:
        counts: (S,) number of equations of each block, in the order of time.
        runs: (S,) number of each block's run.
        waves: Number of waves m, about.
    """
    names = np.unique(runs)
    if names.size > waves:  # enough for the waves to go from run to run
        sums = np.array([counts[runs == name].sum() for name in names])
        return _cosines(sums, waves)[:, np.searchsorted(names, runs)]
    rows = []
    for name in names:
        mine = runs == name
        table = np.zeros((min(-(-waves // names.size), int(mine.sum()) - 1), runs.size))
        table[:, mine] = _cosines(counts[mine], len(table))
        rows.append(table)
    return np.vstack([np.zeros((0, runs.size)), *rows])


def _cosines(counts: Floats, most: int) -> Floats:
    """(most, S) the slowest cosines at the middles of blocks with these numbers of equations."""
    ends = np.cumsum(counts)
    middles = (ends - 0.5 * counts) / max(float(ends[-1]), 1e-300)
    return np.asarray(np.cos(np.pi * np.outer(np.arange(1, most + 1), middles)))
