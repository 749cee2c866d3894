"""Equations whose motion comes from noisy positions: their covariance, and the motion they make likely.

About a motion q the torque is ``tau = Y beta + J (q_true - q) + e`` with the derivative J of the inverse dynamic model
through the differentiation operator, ``J = dtau/dq D0 + dtau/ddq D1 + M D2``. Measured positions ``q_true + n`` then
make ``tau - J (q_measured - q) = Y beta - J n + e``, of covariance ``s^2 J J^T + diag``: banded, because positions act
on torques a few samples away only.

A controller that sees the noise answers to it. Where it is much faster than the log, a sampled torque holds the answer
``-K n`` to its own sample's noise, of which the motion between samples shows nothing: then ``-(J + K) n + e``. It also
holds each torque for a control period: what acts on a motion was logged half a period before, on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve_banded, cholesky_banded

from dynid.arrays import Floats
from dynid.errors import EstimationError
from dynid.estimation.noisy.autoregression import Autoregression
from dynid.estimation.noisy.linearisation import Linearisation
from dynid.estimation.noisy.motion_noise import cubic_weights, impulse_responses
from dynid.processing.differentiation import Differentiation
from dynid.processing.filters import Butterworth, Smoothing

BESIDE = 2
"""Samples on either side that a cubic between samples sees."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What one stretch says about the parameters, and about its motion and noise once they are chosen."""

    information: Floats
    """(b, b) Fisher information"""
    score: Floats
    """(b,)"""
    solved: Floats
    """(m n, b + 1) columns and target, divided by their covariance"""
    trace: Floats
    """(n,) of the inverse covariance, each joint's part"""
    J: Floats
    """(m, n, W n)"""
    position_std: float

    def _rest(self, beta: Floats) -> Floats:
        """(m, n) ``S^-1 (t - Y beta)``."""
        return (self.solved[:, -1] - self.solved[:, :-1] @ beta).reshape(self.J.shape[:2])

    def shift(self, beta: Floats, samples: int) -> Floats:
        """(N, n) by how much the motion is likely to differ from the measured positions, ``s^2 J^T S^-1 u``."""
        n = self.J.shape[1]
        back = np.einsum("ka,kaw->kw", self._rest(beta), self.J)
        total = np.zeros((samples, n))
        for place in range(self.J.shape[2] // n):
            total[place : place + len(back)] += back[:, place * n : (place + 1) * n]
        return self.position_std**2 * total

    def squares(self, beta: Floats) -> Floats:
        """(n,) to be held against `spare`: equal where each joint's torque variance is at the likelihood's peak."""
        return np.asarray((self._rest(beta) ** 2).sum(axis=0))

    def misfit(self, rest: Floats, beta: Floats) -> float:
        """``u^T S^-1 u`` of the residuals u (m, n) at the parameters (b,)."""
        return float(np.sum(rest * self._rest(beta)))

    def spare(self, covariance: Floats) -> Floats:
        """(n,) `trace` less what the parameters, of covariance (b, b), have adapted to (restricted likelihood)."""
        Y = self.solved[:, :-1]
        used = np.einsum("ia,ab,ib->i", Y, covariance, Y, optimize=True).reshape(self.J.shape[:2]).sum(axis=0)
        return np.asarray(np.maximum(self.trace - used, 0.05 * self.trace))


@dataclass(frozen=True, slots=True, eq=False)
class NoisyStretch:
    """A gap-free stretch with measured positions."""

    q: Floats
    """(N, n) measured positions [rad or m]"""
    effort: Floats
    """(N, n) measured torques, zero where they do not count [N m or N]"""
    valid: NDArray[np.bool_]
    """(N, n)"""
    rate_hz: float
    differentiation: Differentiation
    fed_back: Floats | None = None
    """(n,) torque that the law takes off per unit of the positions' noise, at the instant of a sample only [N m/rad]"""
    lead: float = 0.0
    """Samples by which torques are earlier than the motion that they act on"""

    @property
    def reach(self) -> int:
        """Samples at each end that have no equations, and distance of positions that act on one."""
        return self.differentiation.margin() + (BESIDE if self.lead else 0)

    def motion(self, q: Floats, reach: int | None = None) -> tuple[Floats, Floats, Floats]:
        """(N - 2 reach, n) positions, velocities and accelerations, where there are equations by default."""
        smoothing = Smoothing(rate_hz=self.rate_hz, cutoff_hz=None, low_pass=Butterworth())
        ends = self.reach if reach is None else reach
        inner = slice(ends, len(q) - ends)
        moved = self.differentiation.motion(q, None, smoothing)
        q, dq, ddq = (np.ascontiguousarray(x[inner]) for x in moved)
        return q, dq, ddq

    def equations(self, model: Linearisation, q: Floats, beta: Floats) -> tuple[Floats, Floats, Floats]:
        """Target (m, n), columns (m, n, b) and J (m, n, (2 reach + 1) n), position after position, about a motion q."""
        n, inner = q.shape[1], slice(self.reach, len(q) - self.reach)
        margin = self.differentiation.margin()
        at = model.many(*self.motion(q, margin), beta)
        taps = impulse_responses(self.differentiation, self.rate_hz, margin)
        derivatives, Y = at[:, :, : 3 * n].reshape(len(at), n, 3, n), at[:, :, 3 * n :]
        J = np.einsum("kade,dw->kawe", derivatives, taps).reshape(len(at), n, -1)
        if self.lead:
            J, Y = _delay(J, Y, self.lead)
        valid = self.valid[inner][..., None]
        change = np.lib.stride_tricks.sliding_window_view(self.q - q, 2 * self.reach + 1, axis=0)
        windows = np.swapaxes(change, 1, 2).reshape(len(J), -1)
        target = self.effort[inner] - np.einsum("kaw,kw->ka", J, windows)
        if self.fed_back is not None:  # u = -(J + K) n + e: the sampled torque answers to the noise of its own sample
            centre = self.reach * n + np.arange(n)
            J[:, np.arange(n), centre] += self.fed_back
        return target * valid[..., 0], Y * valid, J * valid

    def solve(
        self,
        equations: tuple[Floats, Floats, Floats],
        position_std: float,
        noise: Sequence[Autoregression],
    ) -> Solution:
        """Information and score of the parameters.

        Args:
            equations: See `equations`.
            position_std: Of the positions [rad or m].
            noise: Of each joint's torque.
        """
        target, Y, J = equations
        n, b = target.shape[1], Y.shape[2]
        order = max(model.order for model in noise)
        target, Y = (_whiten(x, noise, order) for x in (target, Y))
        wide = _widen(J, noise, order, n)
        bands = position_std**2 * _bands(wide, n)
        bands.reshape(len(bands), -1, n)[0] += np.array([model.variance for model in noise])
        try:
            factor = cholesky_banded(bands, lower=True, overwrite_ab=True, check_finite=False)
        except np.linalg.LinAlgError:
            raise EstimationError(
                "the likelihood's covariance is not positive definite",
                remedy="Check that positions and torques are finite and of honest noise levels.",
            ) from None
        counts = np.any(wide != 0.0, axis=2)  # rows that do not count are zero, and say nothing of the variance
        diagonal = _inverse_diagonal(factor).reshape(target.shape) * counts
        right = np.column_stack([Y.reshape(-1, b), target.reshape(-1)])
        solved = cho_solve_banded((factor, True), right, check_finite=False)
        return Solution(
            information=right[:, :b].T @ solved[:, :b],
            score=right[:, :b].T @ solved[:, b],
            solved=solved,
            trace=np.maximum(diagonal.sum(axis=0), 1e-300),
            J=wide,
            position_std=position_std,
        )


def _delay(J: Floats, Y: Floats, lead: float) -> tuple[Floats, Floats]:
    """J (m, n, W n) and columns (m, n, b) a part of a sample later, by cubics; BESIDE rows less at either end."""
    rows, n, width = len(J) - 2 * BESIDE, J.shape[1], J.shape[2]
    wide, columns = np.zeros((rows, n, width + 2 * BESIDE * n)), np.zeros((rows, *Y.shape[1:]))
    for first, weight in enumerate(cubic_weights(np.array([lead]))[0].tolist(), start=BESIDE - 1):
        wide[:, :, first * n : first * n + width] += weight * J[first : first + rows]
        columns += weight * Y[first : first + rows]
    return wide, columns


def _inverse_diagonal(factor: Floats) -> Floats:
    """(N,) diagonal of the inverse of a banded matrix, from its Cholesky factor's lower bands (w, N).

    In blocks of w rows the factor has A_i on its diagonal and B_i below, and the inverse has on its diagonal
    ``D_i = A_i^-T A_i^-1 + G_i^T D_(i+1) G_i`` with ``G_i = B_i A_i^-1``.
    """
    w, size = factor.shape
    blocks = -(-size // w)
    padded = np.zeros((w, blocks * w))
    padded[0], padded[:, :size] = 1.0, factor
    r, c = np.indices((w, w))
    table = padded.reshape(w, blocks, w).transpose(1, 0, 2)  # [block, band, column]
    A = np.where(r >= c, table[:, (r - c) % w, c], 0.0)
    B = np.where(r < c, table[:, (r - c) % w, c], 0.0)
    inverses, D, found = np.linalg.inv(A), np.zeros((w, w)), np.empty((blocks, w))
    for i in reversed(range(blocks)):
        G = B[i] @ inverses[i]
        D = inverses[i].T @ inverses[i] + G.T @ D @ G
        found[i] = np.diagonal(D)
    return found.reshape(-1)[:size]


def _whiten(x: Floats, noise: Sequence[Autoregression], order: int) -> Floats:
    """Rows (m - order, n, ...) through each joint's own filter."""
    return np.stack([model.whiten(x[:, j])[order - model.order :] for j, model in enumerate(noise)], axis=1)


def _widen(J: Floats, noise: Sequence[Autoregression], order: int, n: int) -> Floats:
    """(m - order, n, (2 reach + 1 + order) n) J after the filters: row k reaches further back in time."""
    rows, width = len(J) - order, J.shape[2]
    wide = np.zeros((rows, n, width + order * n))
    for joint, model in enumerate(noise):
        for lag, tap in enumerate(model.taps):
            first = (order - lag) * n
            wide[:, joint, first : first + width] += tap * J[order - lag : order - lag + rows, joint]
    return wide


def _bands(J: Floats, n: int) -> Floats:
    """Lower bands (width, m n) of ``J J^T``; row k of J (m, n, W n) acts on positions k to k + W - 1."""
    rows, width = len(J), J.shape[2] // n
    bands = np.zeros((width * n, rows * n))
    view = bands.reshape(width * n, rows, n)
    for lag in range(min(width, rows)):
        later, earlier = J[lag:, :, : (width - lag) * n], J[: rows - lag, :, lag * n :]
        block = later @ earlier.transpose(0, 2, 1)
        for a in range(n):
            for b in range(n):
                if lag or a >= b:
                    view[lag * n + a - b, : rows - lag, b] = block[:, a, b]
    return bands
