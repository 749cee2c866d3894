"""How uncertain the solution of estimating equations is when residuals are correlated in time and between joints.

The solution of ``sum_t s_t(theta) = 0`` with scores ``s_t = Z_t' W e_t`` has covariance ``A^-1 B A^-T``: A is the slope
of the sum and B its covariance, the sum of the scores' autocovariances. How many lags count is read off the residuals'
autocorrelations, and the sum is tapered beyond (Politis' flat-top kernel): residuals of differentiated positions are
correlated over a few samples, some of them negatively, which a kernel that falls at once would overrate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.errors import IdentifiabilityError

__all__ = ["correlation_lags", "resolvable", "scaled_solution", "score_covariance", "solution_covariance"]

Floats = NDArray[np.float64]
QUIET = 5
"""So many autocorrelations in a row must be insignificant."""
SINGULAR = 1e-13
"""Smallest reciprocal condition number of scaled equations that are solved."""
SMALLEST_SHARE = 0.25
"""Of the residuals' freedom that is taken to be left, however many parameters were fitted."""
LONGEST = 0.1
"""Share of a run's samples beyond which no lag is looked at."""


def correlation_lags(residuals: Sequence[Floats]) -> int:
    """Number of lags at which the residuals (N, n) of the runs are correlated."""
    longest = max(residuals, key=len)
    N = len(longest)
    most = max(1, int(LONGEST * N))
    centred = longest - longest.mean(axis=0)
    size = 2 ** int(np.ceil(np.log2(2 * N)))
    power = np.abs(np.fft.rfft(centred, size, axis=0)) ** 2
    autocovariance = np.fft.irfft(power, size, axis=0)[: most + QUIET + 1]
    scale = np.where(autocovariance[0] > 0.0, autocovariance[0], 1.0)
    level = 2.0 * np.sqrt(np.log10(max(N, 10)) / max(N, 10))
    significant = (np.abs(autocovariance[1:] / scale) > level).any(axis=1)
    for lag in range(most):
        if not significant[lag : lag + QUIET].any():
            return lag
    return most


def score_covariance(scores: Sequence[Floats], lags: int) -> Floats:
    """(b, b) covariance B of the sum of all runs' scores (N, b), correlated over so many lags."""
    b = scores[0].shape[1]
    total = np.zeros((b, b))
    for s in scores:
        total += s.T @ s
        for lag in range(1, min(2 * lags, len(s) - 1) + 1):
            weight = 1.0 if lag <= lags else 2.0 - lag / lags
            product = s[:-lag].T @ s[lag:]
            total += weight * (product + product.T)
    if np.linalg.eigvalsh(total)[0] < 0.0:  # a flat-top kernel may end below zero: then one that cannot
        return _bartlett(scores, 2 * lags)
    return total


def _bartlett(scores: Sequence[Floats], lags: int) -> Floats:
    b = scores[0].shape[1]
    total = np.zeros((b, b))
    for s in scores:
        total += s.T @ s
        for lag in range(1, min(lags, len(s) - 1) + 1):
            product = s[:-lag].T @ s[lag:]
            total += (1.0 - lag / (lags + 1.0)) * (product + product.T)
    return total


def solution_covariance(
    slope: Floats, scores: Sequence[Floats], residuals: Sequence[Floats], dof: int | None = None
) -> tuple[Floats, int]:
    """(b, b) covariance of the solution, and the lags that counted.

    The fit takes its share of the noise out of the residuals, and takes it from the band of the regressor. A kernel
    over L lags sees bands of which ``N / (1 + 8/3 L)`` are independent; so many residuals are there to be fitted.

    Args:
        slope: (b, b) matrix A.
        scores: (N, b) of every run.
        residuals: (N, m) of every run, whose autocorrelations tell how many lags count.
        dof: Number of outputs that were fitted, m by default.
    """
    lags = correlation_lags(residuals)
    B = score_covariance(scores, lags)
    count = sum(len(residual) for residual in residuals) * (dof or residuals[0].shape[1])
    share = 1.0 - slope.shape[0] * (1.0 + 8.0 / 3.0 * lags) / count
    inverse = np.linalg.inv(slope)
    return inverse @ B @ inverse.T / max(share, SMALLEST_SHARE), lags


def scaled_solution(matrix: Floats, right: Floats) -> tuple[Floats, float]:
    """The solution of square equations whose unknowns differ much in size, and the scaled condition number.

    Raises:
        IdentifiabilityError: The equations do not determine all unknowns.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diagonal(matrix)), 1e-300))
    scaled = matrix * np.outer(scale, scale)
    condition = float(np.linalg.cond(scaled)) if np.isfinite(scaled).all() else np.inf
    if not condition < 1.0 / SINGULAR:
        raise IdentifiabilityError(
            "the simulated motion does not determine all base parameters",
            remedy="Move every joint, or identify a reduced set first (dynid.ReducedSet).",
        )
    return scale * np.linalg.solve(scaled, scale * right), condition


def resolvable(normal: Floats, squares: float) -> Floats:
    """(b,) changes of single parameters that change the outputs, of which these are the weighted squares, by 1e-9."""
    return np.asarray(1e-9 * np.sqrt(squares / np.maximum(np.abs(np.diagonal(normal)), 1e-300)))
