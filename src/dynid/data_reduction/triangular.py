"""Triangular factors of rows: by Householder reflections, or from cross products of preconditioned rows.

Throughout, the triangle ``R`` (w, w) of rows W (m, w) is upper triangular with a non-negative diagonal, and
``R.T @ R == W.T @ W``. Reflections are accurate and slow. Cross products ``W.T @ W`` are fast and lose half of the
digits, unless the columns are nearly orthonormal: so rows are first multiplied by ``inv(R0)`` of a preconditioner R0,
the triangle of some representative samples, and the result is multiplied by R0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.array_types import Floats
from dynid.decompositions import lapack

NOISE = 1e-12
"""Share of a column's length: what the columns before it leave unexplained is rounding noise below it (convention)."""

LEAST_REST_SHARE = 1e-4
"""Smallest share of a preconditioned column's squared length that may remain after the columns before it are removed.

Derivation: cross products then lose at most four of the sixteen digits."""

PANEL = 8
"""Columns whose reflections LAPACK gathers before it updates the others (convention)."""

LARGEST_SUM = 1e300
"""Largest sum of squares of a chunk: it leaves room to add up many chunks (float64 ends at 1.8e308)."""

REFLECTED = 256
"""Rows that are reflected at a time: they stay in the cache, and no BLAS starts threads for them (convention)."""


def append_rows(R: Floats, rows: Floats) -> Floats:
    """The triangle (w, w) of a triangle R (w, w) and rows (m, w) below it, by Householder reflections."""
    return _reflect(R, rows, 0)


def append_many_rows(R: Floats, rows: Floats) -> Floats:
    """The same for any number of rows (m, w), a batch at a time."""
    for start in range(0, len(rows), REFLECTED):
        R = append_rows(R, rows[start : start + REFLECTED])
    return R


def triangle_of(rows: Floats) -> Floats:
    """The triangle (w, w) of any number of rows (m, w); of fewer rows than columns, its last rows are zero."""
    count, width = rows.shape
    if count > 2 * width:  # a panel at a time is faster than one column after the other
        return append_many_rows(np.zeros((width, width)), rows)
    R = np.zeros((width, width))
    if rows.size:
        packed = lapack().dgeqrf(rows)[0][:width]  # R above the diagonal, the reflections below it
        R[:count] = np.triu(packed)
        np.negative(R, out=R, where=R.diagonal()[:, None] < 0.0)
    return R


def join_triangles(R: Floats, below: Floats) -> Floats:
    """The triangle (w, w) of two triangles (w, w)."""
    return _reflect(R, below, len(below))


def _reflect(R: Floats, rows: Floats, triangular: int) -> Floats:
    """The triangle of R and rows below it, of which the last ``triangular`` form an upper triangle."""
    if not len(rows):
        return R
    triangle, _, _, failure = lapack().dtpqrt(triangular, min(len(R), PANEL), R, rows)
    assert failure == 0, "LAPACK refused the shapes"
    result: Floats = triangle.copy(order="C")
    return np.negative(result, out=result, where=result.diagonal()[:, None] < 0.0)


def nonzero_rows(R: Floats, samples: int) -> Floats:
    """The rows (m, w) of a triangle (w, w) that are not zero, which have the same cross products.

    Args:
        R: The triangle.
        samples: Number of samples it is made of. Where these are many, no row is zero and R is returned.
    """
    return R if 2 * samples > len(R) else np.asarray(R[R.any(axis=1)])


def echelon(R: Floats, tolerance: float) -> Floats:
    """The triangle whose row k is zero where column k depends on those before it, by Gram-Schmidt.

    Args:
        R: (w, w) any matrix, of which only ``R.T @ R`` matters.
        tolerance: Share of a column's length that must remain after those before it are removed.
    """
    rest = R.copy()
    result = np.zeros_like(R)
    length = np.linalg.norm(R, axis=0)
    for k in range(R.shape[1]):
        size = np.linalg.norm(rest[:, k])
        if size > tolerance * length[k]:
            direction = rest[:, k] / size
            result[k, k:] = direction @ rest[:, k:]
            rest[:, k:] -= np.outer(direction, result[k, k:])
            correction = direction @ rest[:, k:]  # once more, so that what remains is orthogonal to working precision
            rest[:, k:] -= np.outer(direction, correction)
            result[k, k:] += correction
    return result


def make_preconditioner(R: Floats, samples: int) -> Floats:
    """Make a regular triangle R0 (w, w) such that the columns of ``W @ inv(R0)`` are nearly orthonormal.

    A column that depends on those before it is only scaled.

    Args:
        R: Triangle (w, w) of some representative samples.
        samples: Number of these samples.
    """
    safe = echelon(R / np.sqrt(max(samples, 1)), NOISE)
    length = np.linalg.norm(safe, axis=0)
    dependent = np.flatnonzero(np.diagonal(safe) <= NOISE * length)
    safe[dependent] = 0.0
    safe[dependent, dependent] = np.where(length[dependent] > 0.0, length[dependent], 1.0)
    return safe


def precondition_rows(rows: Floats, R0: Floats) -> Floats:
    """The transpose (w, m) of ``rows @ inv(R0)``, by substitution."""
    return np.asarray(lapack().dtrtrs(R0.T, rows.T, lower=1)[0])


def factor_from_preconditioned(C: Floats, R0: Floats) -> Floats | None:
    """The triangle (w, w) of rows W from the cross products of their preconditioned rows; None where digits are lost.

    Digits are lost where less than 1 % of a preconditioned column's length remains after the columns before it are
    removed, unless that column is rounding noise in W.

    Args:
        C: (w, w) cross products of ``W @ inv(R0)``.
        R0: (w, w) the preconditioner.
    """
    scale = np.sqrt(np.maximum(np.diagonal(C), 0.0))
    divisor = np.where(scale > 0.0, scale, 1.0)
    correlation = C / np.outer(divisor, divisor)
    empty = np.flatnonzero(scale == 0.0)
    correlation[empty, empty] = 1.0  # so that Cholesky's factor exists
    root, failure = lapack().dpotrf(correlation)
    root[empty] = 0.0
    R = (root * scale) @ R0
    remaining = scale * np.diagonal(R0)
    matters = remaining > NOISE * np.linalg.norm(R, axis=0)
    is_resolved = np.diagonal(root)[matters] ** 2 >= LEAST_REST_SHARE
    return R if not failure and np.isfinite(R).all() and is_resolved.all() else None


def are_moderate(factors: Sequence[Floats]) -> bool:
    """Whether triangles are finite and their sums of squares far from overflow."""
    with np.errstate(all="ignore"):
        return all(np.vdot(R, R) <= LARGEST_SUM for R in factors)  # false for NaN
