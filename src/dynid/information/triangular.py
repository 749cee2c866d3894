"""Triangular factors: stacking them, and finding them from cross products or through a preconditioner.

Throughout, ``R`` is upper triangular with a non-negative diagonal, and ``R.T @ R == W.T @ W`` for the rows W that it
stands for.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import lapack

NOISE = 1e-12
"""Part of a column's length below which the rest that the columns before it leave is rounding noise (convention)."""

RESOLVED = 1e-4
"""Smallest part of a preconditioned column's square that may remain after the columns before it are removed.

Derivation: cross products then lose at most four of the sixteen digits."""

PANEL = 8
"""Columns whose reflections LAPACK gathers before it updates the others (convention)."""

REFLECTED = 256
"""Rows that are reflected at a time: they stay in the cache, and no BLAS starts threads for them (convention)."""

_SEMIDEFINITE = 1e-13
"""A pivot below this part of its diagonal entry is zero to working precision."""


def append_rows(R: Floats, rows: Floats) -> Floats:
    """R (w, w) of a triangle (w, w) and rows (m, w) below it, by Householder reflections."""
    return _reflected(R, rows, 0)


def append_many_rows(R: Floats, rows: Floats) -> Floats:
    """Append any number of rows (m, w) to a triangle (w, w), a batch at a time."""
    for start in range(0, len(rows), REFLECTED):
        R = append_rows(R, rows[start : start + REFLECTED])
    return R


def triangle_of(rows: Floats) -> Floats:
    """R (w, w) of any number of rows (m, w); of fewer rows than columns, its last rows are zero."""
    count, width = rows.shape
    if count > 2 * width:  # a panel at a time is faster than one column after the other
        return append_many_rows(np.zeros((width, width)), rows)
    R = np.zeros((width, width))
    if rows.size:
        packed = lapack().dgeqrf(rows)[0][:width]
        R[:count] = np.triu(packed)
        np.negative(R, out=R, where=R.diagonal()[:, None] < 0.0)
    return R


def join_triangles(R: Floats, below: Floats) -> Floats:
    """R (w, w) of two triangles (w, w)."""
    return _reflected(R, below, len(below))


def _reflected(R: Floats, rows: Floats, triangular: int) -> Floats:
    if not len(rows):
        return R
    triangle, _, _, failure = lapack().dtpqrt(triangular, min(len(R), PANEL), R, rows)
    assert failure == 0, "LAPACK refused the shapes"
    result: Floats = triangle.copy(order="C")
    return np.negative(result, out=result, where=result.diagonal()[:, None] < 0.0)


def told_rows(R: Floats, samples: int) -> Floats:
    """The rows (m, w) of a triangle (w, w) without those that are zero: ``W.T @ W`` of few samples needs few of them.

    Of a triangle of many samples all rows are returned.
    """
    return R if 2 * samples > len(R) else np.asarray(R[R.any(axis=1)])


def gram_factor(G: Floats) -> Floats:
    """R with ``R.T @ R == G`` for a positive semidefinite G; a dependent column has a zero row."""
    scale = np.sqrt(np.maximum(np.diagonal(G), 0.0))
    divisor = np.where(scale > 0.0, scale, 1.0)
    correlation = G / np.outer(divisor, divisor)
    empty = np.flatnonzero(scale == 0.0)
    correlation[empty, empty] = 1.0
    R, failure = lapack().dpotrf(correlation)
    if failure or np.min(np.diagonal(R), initial=1.0) ** 2 < _SEMIDEFINITE:
        R = _semidefinite(correlation)
    R[empty] = 0.0
    return np.asarray(R * scale, order="C")


def _semidefinite(correlation: Floats) -> Floats:
    """Cholesky factor of a matrix of unit diagonal that skips the columns that depend on those before them."""
    rest, R = correlation.copy(), np.zeros_like(correlation)
    for k in range(len(rest)):
        if rest[k, k] > _SEMIDEFINITE:
            R[k, k:] = rest[k, k:] / np.sqrt(rest[k, k])
            rest[k:, k:] -= np.outer(R[k, k:], R[k, k:])
    return R


def echelon(R: Floats, tolerance: float) -> Floats:
    """The factor whose row k is zero where column k depends on those before it.

    Args:
        R: (w, w) any matrix, of which only ``R.T @ R`` matters.
        tolerance: Part of a column's length that must remain after those before it are removed.
    """
    rest, result = R.copy(), np.zeros_like(R)
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
    """A preconditioner from the R of some representative samples: as if of one sample, and never singular.

    A column that depends on those before it keeps its own length as scale, and does not act on those behind it.
    """
    return made_regular(echelon(R / np.sqrt(max(samples, 1)), NOISE))


def made_regular(R: Floats) -> Floats:
    """A triangle (w, w) in which a column that depends on those before it has its own length, and acts on no other.

    The triangle that cross products give roughly becomes a preconditioner for the same rows by this: the factor of the
    rows that it preconditions is near to the identity, as in Cholesky QR with a second pass.
    """
    length = np.linalg.norm(R, axis=0)
    dependent = np.flatnonzero(np.diagonal(R) <= NOISE * length)
    safe = R.copy()
    safe[dependent] = 0.0
    safe[dependent, dependent] = np.where(length[dependent] > 0.0, length[dependent], 1.0)
    return safe


def precondition_rows(rows: Floats, R0: Floats) -> Floats:
    """The transpose (w, m) of ``Z = rows @ inv(R0)``, by substitution."""
    return np.asarray(lapack().dtrtrs(R0.T, rows.T, lower=1)[0])


def factor_from_preconditioned(C: Floats, R0: Floats) -> Floats:
    """R of the rows ``Z @ R0`` from ``C = Z.T @ Z``."""
    return gram_factor(C) @ R0


def is_well_resolved(C: Floats, R: Floats, R0: Floats) -> bool:
    """Whether cross products of preconditioned columns tell them apart as well as reflections would.

    Args:
        C: (w, w) cross products ``Z.T @ Z``.
        R: (w, w) the factor found from them.
        R0: (w, w) the preconditioner.
    """
    remaining = np.sqrt(np.maximum(np.diagonal(C), 0.0)) * np.diagonal(R0)
    matters = remaining > NOISE * np.linalg.norm(R, axis=0)
    return bool(np.all(np.diagonal(R)[matters] ** 2 >= RESOLVED * remaining[matters] ** 2))
