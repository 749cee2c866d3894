"""Covariance of a least-squares solution whose errors are correlated in time, from the scores of blocks of time.

This is a sandwich estimator with cosine weights (Lazarus, Lewis, Stock and Watson 2018). `ScoreSums` takes the
equations block by block, and `ScoreSums.covariance` gives the result; `dynid.estimators.score_covariance` calls both.

A block s is a stretch of time with the regressor W_s, weights w and residuals e_s; its score is ``g_s = W_s' w e_s``.
The solution of ``sum_s g_s = 0`` has the covariance ``A^-1 B A^-1``. The *bread* is ``A = sum_s A_s`` with
``A_s = W_s' w W_s``, and B is the covariance of the sum of scores. If residuals were independent in time, B would be
the *filling* ``sum_s B_s``, ``B_s = W_s' w^2 v W_s``, with variances v of the residuals.

The sum of the scores itself is zero at the solution, so it shows nothing of B. Other sums of the same scores do, with
slow cosines k_s over time (*waves*, from `make_waves`) as weights. In coordinates in which A is the identity:

    z_k  = sum_s k_s (g_s - A_s h) = sum_s (k_s - A_k) g_s,     A_k = sum_s k_s A_s,   h = sum_s g_s
    C_kl = E[z_k z_l'] = sum_s k_s l_s B_s - A_k B_l - B_k A_l + A_k B A_l             if residuals were independent

The code takes ``z_k = sum_s k_s g_s``, since h is zero at the solution. The term with h matters in the expectation
alone: other residuals would give another solution.

The fit makes residuals smaller, and ``N = sum_k C_kk`` tells by how much. So the z_k are rescaled linearly from N to
the filling; the sum of ``z_k z_k'`` is then an estimate of B, without bias if residuals are independent. Errors that
are correlated for less than the shortest wave raise all sums alike, and are counted as well. Few waves leave few
degrees of freedom, ``d = tr(C)^2 / |C|^2`` for each parameter (Satterthwaite; Bell and McCaffrey 2002), hence
Student's t.

Differences between runs are a further part of the covariance: offsets move with temperature, friction with time. With
few runs, blocks of time within them do not show that. Let parameter c deviate in run r by d_r, with variance ``q_c``.
The solution moves by ``sum_r H_r d_r`` with the runs' shares ``H_r = A^-1 A_r``, and its covariance grows by
``sum_r H_r diag(q) H_r'``. q is estimated from the scores of whole runs, by how much larger these are than blocks
within runs let expect (non-negative least squares over all parameters). Two or three runs say little about one
parameter, so those of one kind (offsets, viscous friction, links, ...) share one q, in units of the noise.

Shapes: b parameters, r coordinates (determined directions), S blocks, m waves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls
from scipy.stats import t as student

from dynid.array_types import Floats
from dynid.decompositions import eigh, pinv
from dynid.spatial import EXACT, TINY

AVERAGE_SHARE = 0.01
"""Share of the covariance that is replaced by a multiple of the one for independent residuals, with the average size.
It keeps the covariance of full rank, where waves are fewer than parameters (experiment: with a larger share, intervals
of groups of parameters were too wide)."""
LEAST_LEFT_SHARE = 0.05
"""Smallest eigenvalue of N relative to the largest, in coordinates in which the filling is the identity; directions
with less get the average (convention: a smaller share would raise rounding and model errors more than 20 times). Also
the smallest average ratio of scores to those of independent residuals, as less is rounding, not noise."""
FREEDOM_QUANTILE = 0.1
"""A parameter that no wave shows gets this quantile of the degrees of freedom of all others (convention; a quarter
gives intervals 4 % narrower, with which the halves of the shortest real logs agree less often)."""
FEWEST_WAVES, WAVES = 3, 8
"""Smallest and largest number of waves. Fewer see longer correlations, more give narrower intervals: with eight, an
interval is 14 % wider on average than if the covariance were known (Student's t), and errors may be correlated for an
eighth of a log. Four, six and eight were compared on the halves of the real logs before eight was chosen."""


class ScoreSums:
    """Sums over blocks of time: every block is added once, then `covariance` gives the result; no block is stored."""

    def __init__(self, root: Floats, counts: Floats, runs: NDArray[np.int64], waves: int = WAVES) -> None:
        """Start with empty sums.

        Args:
            root: (b, r) matrix L with ``L' A L = 1``: parameters = L @ coordinates, without what is undetermined.
            counts: (S,) number of equations of each block, in the order of time.
            runs: (S,) number of each block's run.
            waves: Number of waves.
        """
        names = np.unique(runs)
        slow = make_waves(counts, runs, waves)
        # scores of whole runs are wanted for a few runs; with more, the waves compare runs
        single_runs = names if 1 < names.size <= waves else names[:0]
        m = len(slow)
        r = root.shape[1]
        self._root = root
        self._m = m
        # (sums, S) the weight of each block in each sum: m waves, then an indicator of each single run
        self._weights = np.vstack([slow, single_runs[:, None] == runs])
        self._scores = np.zeros((len(self._weights), r))
        self._whole = np.zeros((r, r))  # filling of all blocks
        self._bread, self._filling = np.zeros((2, len(self._weights), r, r))
        self._crossed = np.zeros((m, m, r, r))  # fillings weighted by products of two waves

    def add(self, place: int, rows: Floats, residual: Floats, noise: Floats) -> None:
        """Add a block.

        Args:
            place: Index of the block among the S blocks.
            rows: (rows, r) weighted rows of its equations, ``w^(1/2) W_s L``.
            residual: (rows,) weighted residuals of the solution, ``w^(1/2) e_s``.
            noise: (rows,) variance of each weighted residual, if they were independent in time.
        """
        bread = rows.T @ rows
        filling = rows.T @ (noise[:, None] * rows)
        score = rows.T @ residual
        weight = self._weights[:, place]
        self._scores += np.outer(weight, score)
        self._whole += filling
        self._bread += np.multiply.outer(weight, bread)
        self._filling += np.multiply.outer(weight, filling)
        self._crossed += np.multiply.outer(np.outer(weight[: self._m], weight[: self._m]), filling)

    def covariance(self, kinds: tuple[str, ...]) -> Floats:
        """(b, b) covariance, such that 1.96 standard deviations are half of a 95 % interval of each parameter.

        Each parameter has its own degrees of freedom: friction acts all the time, so that all waves show its errors; an
        inertia acts while it accelerates, so that only waves which are large at these times show them.

        Args:
            kinds: (b,) kind of each parameter: those of one kind are taken to vary alike from run to run.
        """
        L = self._root
        plain = np.asarray(L @ self._whole @ L.T)  # covariance if residuals were independent in time
        if not self._m or not self._whole.any():
            return plain
        rescaling, whitening, lost = self._rescaling(self._expected())
        z = self._scores[: self._m] @ rescaling.T  # (m, r) the rescaled sums
        # mean square of the sums over that of independent residuals
        average = max(float(np.sum((z @ whitening.T) ** 2)) / max(L.shape[1], 1), LEAST_LEFT_SHARE)
        freedom = self._freedom(L @ rescaling)
        shown = L @ z.T
        unseen = (L @ lost) @ (L @ lost).T
        covariance = AVERAGE_SHARE * average * plain + (1.0 - AVERAGE_SHARE) * (shown @ shown.T + average * unseen)
        # Student's t by each parameter's own degrees of freedom, or by a low quantile of all
        common = np.nanquantile(freedom, FREEDOM_QUANTILE) if np.isfinite(freedom).any() else 0.0
        factor = student_factor(np.where(np.isnan(freedom), common, freedom))
        between = self._between_runs(kinds, covariance, plain) if self._m < len(self._weights) else 0.0
        return np.asarray(np.outer(factor, factor) * covariance + between)

    def _expected(self) -> Floats:
        """(r, r) the matrix N of the module docstring: sum of the covariances C_kk if residuals were independent."""
        A, B = self._bread[: self._m], self._filling[: self._m]  # (m, r, r) A_k and B_k
        left = np.tensordot(A, B, axes=([0, 2], [0, 1]))  # sum_k A_k B_k
        inner = np.tensordot(A @ self._whole, A, axes=([0, 2], [0, 1]))
        return np.asarray(np.einsum("kkij->ij", self._crossed) - left - left.T + inner)

    def _rescaling(self, N: Floats) -> tuple[Floats, Floats, Floats]:
        """Find the linear map that rescales the sums from their covariance N to the filling B.

        Returns:
            The map F (r, r) with ``F N F' = B`` where the fit left enough, the whitening W (r, r) with ``W B W' = 1``,
            and a root (r, l) of the part of B in directions where the fit left too little.
        """
        values, vectors = eigh(self._whole)
        values = np.maximum(values, EXACT * values[-1])
        G = vectors * np.sqrt(values)  # B = G G'
        whitening = (vectors / np.sqrt(values)).T
        left, directions = eigh(whitening @ N @ whitening.T)
        least = LEAST_LEFT_SHARE * max(float(np.max(left)), TINY)
        kept = np.where(left > least, 1.0 / np.sqrt(np.maximum(left, least)), 0.0)
        rescaling = G @ (directions * kept) @ directions.T @ whitening
        return rescaling, whitening, G @ directions[:, left <= least]

    def _freedom(self, rows: Floats) -> Floats:
        """(b,) degrees of freedom of the variances of parameters with rows (b, r); NaN where no wave shows a parameter.

        Only ``rows C_kl rows'`` is needed, row by row, so the covariances C_kl themselves are never formed.
        """
        by_bread = rows @ self._bread[: self._m]  # (m, b, r)
        left = np.einsum("kci,lci->ckl", by_bread, rows @ self._filling[: self._m], optimize=True)
        inner = np.einsum("kci,lci->ckl", by_bread @ self._whole, by_bread, optimize=True)
        crossed = np.einsum("klci,ci->ckl", rows @ self._crossed, rows)
        table = crossed + inner - left - left.swapaxes(1, 2)
        trace = np.einsum("ckk->c", table)
        known = trace > 0.0
        shares = table[known] / trace[known, None, None]  # divided first, as squares of the table itself may underflow
        freedom = np.full(len(rows), np.nan)
        freedom[known] = 1.0 / np.sum(shares**2, axis=(1, 2))
        return freedom

    def _between_runs(self, kinds: tuple[str, ...], within: Floats, plain: Floats) -> Floats:
        """(b, b) the part of the covariance that comes from differences between runs, with the factor of Student's t.

        With the variances q_k of the kinds of parameters, in units of the noise, the squared scores of whole runs are
        ``found_c = expected_c + sum_k effect_ck q_k`` for each parameter c. This is solved for the q_k >= 0, with each
        equation over the parameter's variance.

        Args:
            kinds: (b,) kind of each parameter.
            within: (b, b) covariance by blocks within runs.
            plain: (b, b) covariance if residuals were independent in time.
        """
        L = self._root
        A = self._bread[self._m :]  # of each run
        B = self._filling[self._m :]
        variance = np.diagonal(within)
        independent = np.diagonal(plain)
        known = (variance > 0.0) & (independent > 0.0)
        if not known.any():
            return np.zeros_like(within)
        safe = np.where(known, variance, 1.0)
        found = np.sum((self._scores[self._m :] @ L.T) ** 2, axis=0)  # (b,) squares of the scores of whole runs
        whole = B.sum(axis=0)
        spread = sum(b - a @ b - b @ a + a @ whole @ a for a, b in zip(A, B, strict=True))
        # (b,) what blocks within runs let expect of these squares
        expected = np.einsum("ci,ij,cj->c", L, spread, L) * safe / np.where(known, independent, 1.0)
        length = np.linalg.norm(L, axis=1)
        is_determined = length > 0.0
        length = np.where(is_determined, length, 1.0)
        inverse = pinv(L / length[:, None]) / length * is_determined  # left inverse of L, computed from scaled rows
        shares = np.einsum("ci,rij,jd->rcd", L, A, inverse, optimize=True)  # H_r
        kind_names = sorted(set(kinds))
        of_kind = np.array([[other == kind for kind in kind_names] for other in kinds], dtype=float) * known[:, None]
        # (b,) square of the change of each parameter whose torques are as large as the noise: the unit of q
        unit = is_determined / np.where(is_determined, np.sum(inverse**2, axis=0), 1.0)
        effect = _effect(shares) @ (unit[:, None] * of_kind)  # (b, kinds)
        q = nnls(effect[known] / safe[known, None], ((found - expected) / safe)[known])[0]
        # few deviations show a variance, which may be larger: Student's t
        q *= student_factor((len(A) - 1) * of_kind.sum(axis=0)) ** 2
        return np.asarray(np.einsum("rcd,d,red->ce", shares, of_kind @ q * unit, shares, optimize=True))


def _effect(shares: Floats) -> Floats:
    """(b, b) expected squares of the runs' scores in each parameter, per variance of the deviations of another.

    Args:
        shares: (runs, b, b) the matrices H_r.
    """
    total = np.zeros(shares.shape[1:])
    for r, of_run in enumerate(shares):
        for s, of_other in enumerate(shares):
            direct = of_run if r == s else 0.0
            total += (direct - of_run @ of_other) ** 2  # a deviation of run s moves the solution, too
    return total


def wave_number(independent: float) -> int:
    """Number of waves for a number of independent values: ``0.4 * independent^(2/3)``, rounded, from 3 to 8.

    This is the rule of Lazarus, Lewis, Stock and Watson (2018). From 89 values on it is all eight; in a shorter log
    errors are correlated for a larger part of it.
    """
    return int(np.clip(np.rint(0.4 * max(independent, 0.0) ** (2.0 / 3.0)), FEWEST_WAVES, WAVES))


def student_factor(freedom: ArrayLike) -> Floats:
    """Width of 95 % intervals by Student's t over that by the normal distribution; fewer than one degree is one."""
    return np.asarray(student.ppf(0.975, np.maximum(freedom, 1.0)) / student.ppf(0.975, np.inf))


def make_waves(counts: Floats, runs: NDArray[np.int64], waves: int = WAVES) -> Floats:
    """(m, S) weights of the scores of S blocks in m sums.

    For one run they are the slowest cosines over its time. For a few runs each run has cosines of its own, about m
    together. For more runs than waves they are cosines over the sequence of runs, so that differences between runs
    count as noise.

    Args:
        counts: (S,) number of equations of each block, in the order of time.
        runs: (S,) number of each block's run.
        waves: Number of waves; m is about as large.
    """
    names = np.unique(runs)
    if names.size > waves:  # enough for the waves to go from run to run
        sums = np.array([counts[runs == name].sum() for name in names])
        return _cosines(sums, waves)[:, np.searchsorted(names, runs)]
    rows = []
    for name in names:
        is_of_run = runs == name
        # -(-a // b) rounds up; a run of S blocks has at most S - 1 cosines
        table = np.zeros((min(-(-waves // names.size), int(is_of_run.sum()) - 1), runs.size))
        table[:, is_of_run] = _cosines(counts[is_of_run], len(table))
        rows.append(table)
    return np.vstack([np.zeros((0, runs.size)), *rows])


def _cosines(counts: Floats, most: int) -> Floats:
    """(most, S) the slowest cosines at the middles of blocks with these numbers of equations."""
    ends = np.cumsum(counts)
    middles = (ends - 0.5 * counts) / max(float(ends[-1]), TINY)
    return np.asarray(np.cos(np.pi * np.outer(np.arange(1, most + 1), middles)))
