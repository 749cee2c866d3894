"""The row space of a regressor, and the choice of columns that represent it.

A set of parameters acts on the torques only through the row space of the regressor. Every method of this package ends
in such a space; what differs is how it is found. From the space, columns are kept one after another in a given order,
each if it is independent of those kept before ([Izaguirre1992] section 6.1, eqs. (27)-(29)); all other columns are
combinations of the kept ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.array_types import Floats
from dynid.decompositions import svd
from dynid.spatial import EXACT, SAME, TINY

LEAST_REST_SHARES = (1e-3, 1e-7)
"""Share of a column that must remain outside the kept columns for it to count as independent, in the first and in the
second round: clearly independent columns are preferred (convention)."""
SHORTEST = 1e-6
"""Smallest length of a column of the orthonormal basis that this share refers to (convention): shorter columns are
mostly rounding."""
HALF = 1e-10
"""Largest distance of a coefficient from a multiple of one half that counts as rounding (convention)."""


@dataclass(frozen=True, slots=True, eq=False)
class RowSpace:
    """The row space of a matrix (m, p): the combinations of p parameters that its products with them depend on."""

    basis: Floats
    """(b, p) orthonormal rows that span the space of the matrix with columns divided by their scale."""
    scale: Floats
    """(p,) norm of every column of the matrix; 1 for a column of zeros."""
    singular_values: Floats
    """(p,) of the scaled matrix, descending."""

    @property
    def rank(self) -> int:
        """Dimension b: the number of base parameters."""
        return len(self.basis)

    @property
    def gap(self) -> float:
        """Ratio of the smallest singular value of the space to the largest outside it; infinite without the latter."""
        values = self.singular_values
        if not 0 < self.rank < len(values) or values[self.rank] == 0.0:
            return float("inf")
        return float(values[self.rank - 1] / values[self.rank])

    @property
    def rows(self) -> Floats:
        """(b, p) rows that span the space of the matrix as it was given."""
        return self.basis * self.scale


def row_space(matrix: Floats, rounding: float = 0.0) -> RowSpace:
    """The row space of a matrix (m, p), found after scaling its columns to equal length.

    Args:
        matrix: The matrix.
        rounding: Columns no longer than this are taken for zero, like those far shorter than the longest.
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
    """Keep columns in the given order while they are independent of those kept before.

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
    # scaled coefficients are of order one, so what is far below is rounding
    grouping[np.abs(grouping) < SAME * max(1.0, float(np.abs(grouping).max(initial=0.0)))] = 0.0
    grouping = grouping * space.scale / space.scale[kept, None]
    grouping[:, kept] = np.eye(len(kept))
    return columns, _round_halves(grouping)


def _find_independent(basis: Floats, order: Sequence[int], rank: int) -> list[int]:
    """The first ``rank`` columns in this order that are independent; nearly dependent ones wait for a second round."""
    kept: list[int] = []
    directions: list[Floats] = []  # orthonormal, spanning the kept columns
    for least_share in LEAST_REST_SHARES:
        for column in order:
            if column in kept or len(kept) == rank:
                continue
            rest = _reject(basis[:, column], directions)
            length = float(np.linalg.norm(rest))
            if length > least_share * max(float(np.linalg.norm(basis[:, column])), SHORTEST):
                kept.append(column)
                directions.append(rest / length)
    return kept


def _reject(vector: Floats, directions: list[Floats]) -> Floats:
    """What remains of a vector after its parts along orthonormal directions are removed."""
    if directions:
        Q = np.array(directions)
        for _ in range(2):  # twice is enough: the second round removes the rounding of the first
            vector = vector - Q.T @ (Q @ vector)
    return vector


def _round_halves(grouping: Floats) -> Floats:
    """Round coefficients that are within `HALF` of a multiple of one half to it."""
    halves = np.round(2.0 * grouping) / 2.0
    return np.where(np.abs(grouping - halves) <= HALF, halves, grouping)
