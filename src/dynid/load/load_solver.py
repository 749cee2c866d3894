"""Weighted least squares for the equations of a load: one small triangle per channel, then everything from those."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from dynid.errors import IdentifiabilityError
from dynid.information.triangular import from_preconditioned, guarded, preconditioned
from dynid.load.coloured_noise import coloured, coloured_gram, student

__all__ = ["LinearSolution", "implausible_inertia", "resolved", "weighted_solution"]

Floats = NDArray[np.float64]
RESOLUTION = 1e-7
"""Smallest singular value of the scaled equations that counts as seen."""
ROUNDS = 4
PLAUSIBLE_RADIUS = 0.15
"""Moments of inertia less certain than those of the mass on this radius [m] are as good as unknown."""
SHARED = 10.0
"""Samples' worth of the mean variance of its kind that a channel's own variance is drawn to."""
REPRESENTATIVE = 500
"""Samples that the preconditioner is made from."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearSolution:
    """What a linear least-squares problem says of its k unknowns."""

    values: Floats
    """(k,) of the smallest norm where the data leave directions open"""
    covariance: Floats
    """(k, k) within what the data determine; 1.96 standard deviations hold 95 %, few samples or many"""
    undetermined: NDArray[np.bool_]
    """(k,)"""
    noise_std: Floats
    """(c,) standard deviation of the residual of each channel"""
    inflation: float
    """Samples per independent sample."""


def weighted_solution(W: Floats, y: Floats, noise_std: Floats | None = None) -> LinearSolution:
    """Solve ``W x = y`` with every channel weighted by its own residual.

    Args:
        W: (N, c, k) equations of c channels.
        y: (N, c) measurements.
        noise_std: (c,) standard deviations of the channels where they are known; from the residuals otherwise, of which
            channels of a kind (forces, moments) share what few samples cannot tell apart.

    Raises:
        IdentifiabilityError: The noise is not known, and as many unknowns as equations leave nothing to judge it by.
    """
    count, channels, _ = W.shape
    triangles = [_triangle(np.column_stack([W[:, c], y[:, c]])) for c in range(channels)]
    smallest = 1e-12 * max(float(np.abs(y).max()), 1e-150)
    std = np.ones(channels) if noise_std is None else np.maximum(noise_std, smallest)
    spare = np.full(channels, np.inf)
    for _ in range(ROUNDS if noise_std is None else 1):  # weights from the residuals of the round before
        rows = np.concatenate([triangle / s for triangle, s in zip(triangles, std, strict=True)])
        values, covariance, undetermined = resolved(rows[:, :-1], rows[:, -1])
        if noise_std is None:
            squares = np.array([np.sum((triangle @ np.append(values, -1.0)) ** 2) for triangle in triangles])
            used = [np.sum((t[:, :-1] @ covariance) * t[:, :-1]) / s**2 for t, s in zip(triangles, std, strict=True)]
            variance, spare = _shared(squares, count - np.array(used))
            std = np.maximum(np.sqrt(variance), smallest)
    residual = y - W @ values
    grown, inflation = coloured(covariance, coloured_gram(W / std[:, None], residual / std, covariance))
    return LinearSolution(
        values=values,
        covariance=grown * student(float(spare.min()) / inflation) ** 2,
        undetermined=undetermined,
        noise_std=std,
        inflation=inflation,
    )


def _shared(squares: Floats, spare: Floats) -> tuple[Floats, Floats]:
    """Variance (c,) of each channel and degrees of freedom of its kind: three channels that share `SHARED` samples."""
    kind = np.arange(len(squares)) // 3
    total, freedom = (np.asarray(np.bincount(kind, x)[kind], dtype=float) for x in (squares, spare))
    if freedom.min() < 0.5:
        raise IdentifiabilityError(
            "there are no more equations than unknowns: nothing is left to judge the noise by",
            remedy="Give more poses or samples, or noise_std.",
        )
    return (squares + SHARED * total / freedom) / (np.maximum(spare, 0.0) + SHARED), freedom


def _triangle(rows: Floats) -> Floats:
    """(w, w) R with ``R^T R == rows^T rows``: reflections for few rows, preconditioned cross products for many."""
    if len(rows) <= 2 * REPRESENTATIVE:
        return np.asarray(np.linalg.qr(rows, mode="r"))
    some = rows[:: len(rows) // REPRESENTATIVE]
    R0 = guarded(np.asarray(np.linalg.qr(some, mode="r")), len(some))
    Z = preconditioned(rows, R0)
    return from_preconditioned(Z @ Z.T, R0)


def resolved(W: Floats, y: Floats, resolution: float = RESOLUTION) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Solution (k,) of the smallest norm, its covariance for unit noise, and which unknowns are left open."""
    length = np.linalg.norm(W, axis=0)
    seen = length > 1e-12 * length.max(initial=0.0)
    scale = np.where(seen, length, 1.0)
    triangle = np.asarray(np.linalg.qr(np.column_stack([W / scale, y]), mode="r"))
    R, z = triangle[: len(scale), :-1], triangle[: len(scale), -1]
    root = _inverse(R, resolution)
    if root is not None:
        root = root / scale[:, None]
        return root @ z, root @ root.T, np.zeros(len(scale), dtype=bool)
    U, s, Vt = np.linalg.svd(R)  # all of Vt: fewer equations than unknowns leave directions open too
    s = np.append(s, np.zeros(len(Vt) - len(s)))
    good = s > resolution * s[0]
    undetermined = np.any(np.abs(Vt[~good]) > 1e-5, axis=0) | ~seen
    root = Vt[good].T / s[good] / scale[:, None]
    return root @ (U[:, good[: len(U)]].T @ z), root @ root.T, undetermined


def _inverse(R: Floats, resolution: float) -> Floats | None:
    """Inverse of a triangle that is far from singular, which saves the singular values; None otherwise."""
    k = R.shape[1]
    if len(R) < k or np.min(np.abs(np.diagonal(R)), initial=1.0) < resolution:
        return None
    inverse = np.asarray(solve_triangular(R, np.eye(k)))
    return inverse if np.abs(inverse).sum(axis=0).max(initial=0.0) * 10.0 * k * resolution < 1.0 else None


def implausible_inertia(vector: Floats, covariance: Floats) -> NDArray[np.bool_]:
    """(6,) which of XX XY XZ YY YZ ZZ are less certain than any plausible value of them.

    Args:
        vector: (10,) a load's parameters.
        covariance: (10, 10)
    """
    mass = max(abs(float(vector[9])), 1e-300)
    reach = min(max(PLAUSIBLE_RADIUS, float(np.linalg.norm(vector[6:9])) / mass), 1.0)
    return np.asarray(np.sqrt(np.maximum(np.diag(covariance)[:6], 0.0)) > mass * reach**2)
