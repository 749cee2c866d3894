"""The row space of a regressor, and the choice of independent columns that represent it.

Torques are ``tau = Y @ theta`` with p parameters theta. Over all motions, the rows of the regressor Y span a space of
dimension b <= p, and only the components of theta in this space act on the torques. The methods of this package find
this space in different ways: from sampled regressors (`numeric`), or from the energy without samples (`structural`).

`row_space` takes rows that span it. `successive_columns` then chooses base parameters: columns are kept one after
another in a given order, each if it is independent of those kept before ([Izaguirre1992] section 6.1, eqs. (27)-(29));
all other columns are combinations of the kept ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.array_types import Floats
from dynid.decompositions import svd
from dynid.spatial import EXACT, SAME, TINY

LEAST_REST_SHARES = (1e-3, 1e-7)
"""Share of a column that must lie outside the span of the kept columns for it to count as independent, in the first
round and in the second. The first round prefers clearly independent columns (convention)."""
SHORTEST = 1e-6
"""Length of a column of the orthonormal basis below which the share refers to this length instead (convention): such
short columns are mostly rounding."""
HALF = 1e-10
"""Largest distance of a coefficient from a multiple of one half that counts as rounding (convention)."""


@dataclass(frozen=True, slots=True, eq=False)
class RowSpace:
    """The row space of a matrix Y (m, p): the combinations of p parameters theta on which Y @ theta depends."""

    basis: Floats
    """(b, p) orthonormal rows that span the row space of the scaled matrix: columns are divided by `scale`, so that
    units do not decide what is small."""
    scale: Floats
    """(p,) norm of every column of the matrix; 1 for a column of zeros."""
    singular_values: Floats
    """(p,) singular values of the scaled matrix, descending."""

    @property
    def rank(self) -> int:
        """Dimension b: the number of base parameters."""
        return len(self.basis)

    @property
    def gap(self) -> float:
        """Ratio of the b-th singular value, the last that counts, to the next; infinite if that is zero or missing."""
        values = self.singular_values
        if not 0 < self.rank < len(values) or values[self.rank] == 0.0:
            return float("inf")
        return float(values[self.rank - 1] / values[self.rank])

    @property
    def rows(self) -> Floats:
        """(b, p) rows that span the row space of the matrix before scaling."""
        return self.basis * self.scale


def row_space(matrix: Floats, rounding: float = 0.0) -> RowSpace:
    """The row space of a matrix (m, p), found after scaling its columns to equal length.

    Args:
        matrix: The matrix.
        rounding: Columns whose norm is at most this are taken for zero, like those far shorter than the longest.
    """
    norms = np.linalg.norm(matrix, axis=0)
    is_zero = norms <= max(EXACT * float(norms.max(initial=0.0)), rounding, TINY)
    scale = np.where(is_zero, 1.0, norms)
    scaled = np.where(is_zero, 0.0, matrix / scale)
    if len(scaled) > scaled.shape[1]:  # QR first: the same row space and singular values, and a smaller matrix
        scaled = np.asarray(np.linalg.qr(scaled, mode="r"))
    _, values, Vt = svd(scaled, full_matrices=False)
    rank = int(np.count_nonzero(values > SAME * max(float(values.max(initial=0.0)), TINY)))
    padded = np.zeros(matrix.shape[1])
    padded[: len(values)] = values
    return RowSpace(basis=Vt[:rank], scale=scale, singular_values=padded)


def successive_columns(space: RowSpace, order: Sequence[int]) -> tuple[tuple[int, ...], Floats]:
    """Choose b independent columns: in the given order, each that is independent of those kept before.

    Args:
        space: The row space.
        order: All column numbers, the most wanted first.

    Returns:
        The kept columns (ascending), and the grouping matrix G (b, p): for every matrix Y with this row space
        ``Y == Y[:, columns] @ G``. ``G[:, columns]`` is the identity.
    """
    columns = tuple(sorted(_find_independent(space.basis, order, space.rank)))
    kept = list(columns)
    # every other column as a combination of the kept ones: [Izaguirre1992] eqs. (27)-(29)
    grouping = np.linalg.solve(space.basis[:, kept], space.basis) if kept else np.zeros((0, space.basis.shape[1]))
    # columns have norm one here, so coefficients are of order one, and what is far below is rounding
    grouping[np.abs(grouping) < SAME * max(1.0, float(np.abs(grouping).max(initial=0.0)))] = 0.0
    grouping = grouping * space.scale / space.scale[kept, None]  # for the unscaled columns
    grouping[:, kept] = np.eye(len(kept))
    return columns, _round_halves(grouping)


def _find_independent(basis: Floats, order: Sequence[int], rank: int) -> list[int]:
    """The first ``rank`` independent columns of the basis (b, p) in this order, by Gram-Schmidt.

    Nearly dependent columns wait for the second round.
    """
    kept: list[int] = []
    directions: list[Floats] = []  # orthonormal, spanning the kept columns
    for least_share in LEAST_REST_SHARES:
        for column in order:
            if column in kept or len(kept) == rank:
                continue
            rest = _remove_components(basis[:, column], directions)
            length = float(np.linalg.norm(rest))
            if length > least_share * max(float(np.linalg.norm(basis[:, column])), SHORTEST):
                kept.append(column)
                directions.append(rest / length)
    return kept


def _remove_components(vector: Floats, directions: list[Floats]) -> Floats:
    """The vector (b,) minus its components along orthonormal directions (b,)."""
    if directions:
        Q = np.array(directions)
        for _ in range(2):  # twice is enough: the second round removes the rounding of the first
            vector = vector - Q.T @ (Q @ vector)
    return vector


def _round_halves(grouping: Floats) -> Floats:
    """Round coefficients that are within `HALF` of a multiple of one half to it."""
    halves = np.round(2.0 * grouping) / 2.0
    return np.where(np.abs(grouping - halves) <= HALF, halves, grouping)
