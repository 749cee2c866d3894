"""What differs between runs, as a part of the covariance.

Offsets move with temperature, friction with time. With few runs, blocks of time within them do not show that. Each
parameter c has in run r its own deviation of variance ``q_c``; the solution moves by ``sum_r H_r d_r`` with the runs'
shares ``H_r = A^-1 A_r``, so its covariance grows by ``sum_r H_r diag(q) H_r'``. The scores of whole runs show q: what
they are larger than blocks within runs let expect (least squares over all parameters, no q negative). Parameters of one
kind (offsets, viscous friction, links, ...) are taken to vary alike, as their torques compare with the noise, because
two or three runs say little about a single one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import pinv
from dynid.estimation.intervals.waves import student_factor


class RunSums:
    """Sums over the blocks of each run."""

    def __init__(self, root: Floats, runs: NDArray[np.int64]) -> None:
        """Nothing is seen yet; arguments as for `dynid.estimation.intervals.score_sums.ScoreSums`."""
        names, self._places = np.unique(runs, return_inverse=True)
        r = root.shape[1]
        self._root, self._scores = root, np.zeros((names.size, r))
        self._bread, self._filling = np.zeros((names.size, r, r)), np.zeros((names.size, r, r))

    def add(self, place: int, bread: Floats, filling: Floats, score: Floats) -> None:
        """Add a block; arguments as for `ScoreSums.add`."""
        run = self._places[place]
        self._bread[run] += bread
        self._filling[run] += filling
        self._scores[run] += score

    def covariance(self, kinds: tuple[str, ...], within: Floats, plain: Floats) -> Floats:
        """(b, b) the part of the covariance that comes from differences between runs, with the factor of Student's t.

        Args:
            kinds: (b,) kind of each parameter.
            within: (b, b) covariance by blocks within runs.
            plain: (b, b) covariance if residuals were independent in time.
        """
        from scipy.optimize import nnls  # heavy, and needed for several runs only

        L, A, B = self._root, self._bread, self._filling
        variance, independent = np.diagonal(within), np.diagonal(plain)
        known = (variance > 0.0) & (independent > 0.0)
        safe = np.where(known, variance, 1.0)
        found = np.sum((self._scores @ L.T) ** 2, axis=0)
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
        effect = self._effect(shares) @ (unit[:, None] * marks)
        size = nnls(effect[known] / safe[known, None], ((found - expected) / safe)[known])[0]
        # few deviations show the size of a kind, so it may be larger
        size *= student_factor((len(A) - 1) * marks.sum(axis=0)) ** 2
        return np.asarray(np.einsum("rcd,d,red->ce", shares, marks @ size * unit, shares, optimize=True))

    def _effect(self, shares: Floats) -> Floats:
        """(b, b) squares of the runs' scores in each parameter per variance of another one's deviations."""
        total = np.zeros(shares.shape[1:])
        for r, mine in enumerate(shares):
            for q, other in enumerate(shares):
                total += (mine * (r == q) - mine @ other) ** 2
        return total
