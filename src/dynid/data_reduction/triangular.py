"""Triangular factors of the rows of least-squares equations, in two ways.

The *triangle* R (w, w) of rows W (m, w) is the factor R of a QR factorisation of W: upper triangular, here with a
non-negative diagonal, and ``R.T @ R == W.T @ W``. It replaces the rows in least squares. The reduction of logs and
`Information` call these functions with rows (columns of a regressor, torque), or with triangles to join or to extend.

Householder reflections are accurate and slow (`triangle_of`, `append_rows`, `join_triangles`). Cholesky's factor of the
cross products ``W.T @ W`` is fast, but loses half of the digits unless the columns are nearly orthonormal. So rows are
first multiplied by ``inv(R0)`` of a preconditioner R0, the triangle of some representative samples, and the factor is
multiplied by R0 afterwards (`make_preconditioner`, `factor_from_preconditioned`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.array_types import Floats
from dynid.decompositions import lapack
from dynid.spatial import EXACT, TINY

LEAST_REST_SHARE = 1e-4
"""Smallest share of a preconditioned column's squared length that must remain after projection off earlier columns.

Derivation: cross products then lose at most four of the sixteen digits."""

PANEL = 8
"""Block size of LAPACK's reflections, in columns (convention)."""


REFLECTED = 256
"""Rows that are reflected at a time: they stay in the cache, and no BLAS starts threads for them (convention)."""


def append_rows(R: Floats, rows: Floats) -> Floats:
    """The triangle (w, w) of a triangle R (w, w) and rows (m, w) below it, by Householder reflections."""
    return _reflect(R, rows, 0)


def append_many_rows(R: Floats, rows: Floats) -> Floats:
    """Like `append_rows`, in batches of rows: quicker for many rows."""
    for start in range(0, len(rows), REFLECTED):
        R = append_rows(R, rows[start : start + REFLECTED])
    return R


def triangle_of(rows: Floats) -> Floats:
    """The triangle (w, w) of any number of rows (m, w); if m < w, its last rows are zero."""
    count, width = rows.shape
    if count > 2 * width:  # blocked reflections are faster here than `dgeqrf` on all rows
        return append_many_rows(np.zeros((width, width)), rows)
    R = np.zeros((width, width))
    if rows.size:
        packed = lapack().dgeqrf(rows)[0][:width]  # R on and above the diagonal, the reflections below it
        R[:count] = np.triu(packed)
        np.negative(R, out=R, where=R.diagonal()[:, None] < 0.0)  # make the diagonal non-negative
    return R


def join_triangles(R: Floats, below: Floats) -> Floats:
    """The triangle (w, w) of the rows of two triangles (w, w)."""
    return _reflect(R, below, len(below))


def _reflect(R: Floats, rows: Floats, triangular: int) -> Floats:
    """The triangle of R (w, w) and rows (m, w) below it.

    Args:
        R: A triangle.
        rows: Further rows.
        triangular: How many of the last rows form an upper triangle, whose zeros save time: 0 for full rows.
    """
    if not len(rows):
        return R
    triangle, _, _, failure = lapack().dtpqrt(triangular, min(len(R), PANEL), R, rows)
    assert failure == 0, "LAPACK refused the shapes"
    result: Floats = triangle.copy(order="C")
    return np.negative(result, out=result, where=result.diagonal()[:, None] < 0.0)  # non-negative diagonal


def nonzero_rows(R: Floats, samples: int) -> Floats:
    """The rows (m, w) of a triangle (w, w) that are not zero, which have the same cross products.

    Args:
        R: The triangle.
        samples: Number of samples it was made from. Zero rows occur only where these are few; else R is returned.
    """
    return R if 2 * samples > len(R) else np.asarray(R[R.any(axis=1)])


def echelon(R: Floats, tolerance: float) -> Floats:
    """A triangle (w, w) of R by Gram-Schmidt, whose row k is zero if column k depends on the columns before it.

    Args:
        R: (w, w) any matrix, of which only ``R.T @ R`` matters.
        tolerance: Share of a column's length that must remain after projection off the columns before it, for the
            column to count as independent.
    """
    rest = R.copy()  # what remains of each column
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
    """Make an invertible triangle R0 (w, w) such that the columns of ``W @ inv(R0)`` are nearly orthonormal.

    A column of W that depends on the columns before it is only divided by its length.

    Args:
        R: Triangle (w, w) of some representative samples.
        samples: Number of these samples.
    """
    safe = echelon(R / np.sqrt(max(samples, 1)), EXACT)
    length = np.linalg.norm(safe, axis=0)
    dependent = np.flatnonzero(np.diagonal(safe) <= EXACT * length)
    safe[dependent] = 0.0
    safe[dependent, dependent] = np.where(length[dependent] > 0.0, length[dependent], 1.0)
    return safe


def precondition_rows(rows: Floats, R0: Floats) -> Floats:
    """The transpose (w, m) of ``rows @ inv(R0)``, by substitution."""
    return np.asarray(lapack().dtrtrs(R0.T, rows.T, lower=1)[0])


def factor_from_preconditioned(C: Floats, R0: Floats) -> Floats | None:
    """The triangle (w, w) of rows W from the cross products of their preconditioned rows; None where digits are lost.

    Digits are lost if less than 1 % of a preconditioned column's length remains after projection off the columns before
    it (`LEAST_REST_SHARE` of its square). This does not matter if the remainder is rounding noise in W as well.

    Args:
        C: (w, w) cross products of ``W @ inv(R0)``.
        R0: (w, w) the preconditioner.
    """
    scale = np.sqrt(np.maximum(np.diagonal(C), 0.0))
    divisor = np.where(scale > 0.0, scale, 1.0)
    correlation = C / np.outer(divisor, divisor)
    empty = np.flatnonzero(scale == 0.0)
    correlation[empty, empty] = 1.0  # so that Cholesky's factor exists
    root, failure = lapack().dpotrf(correlation)  # upper, with columns of length one
    root[empty] = 0.0
    R = (root * scale) @ R0  # C = (root * scale).T @ (root * scale)
    remaining = scale * np.diagonal(R0)  # upper bound of the diagonal of R
    matters = remaining > EXACT * np.linalg.norm(R, axis=0)
    is_resolved = np.diagonal(root)[matters] ** 2 >= LEAST_REST_SHARE
    return R if not failure and np.isfinite(R).all() and is_resolved.all() else None


def are_moderate(factors: Sequence[Floats]) -> bool:
    """Whether all triangles are finite, and their sums of squares far from overflow."""
    with np.errstate(all="ignore"):
        return all(np.vdot(R, R) <= 1.0 / TINY for R in factors)  # false for NaN
