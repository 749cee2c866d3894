"""The triangle of all estimators on line, into which rows are rotated as they come ([GautierKhalil1992] section 2).

Of the rows ``[W, y]`` so far only a triangle ``[R, z]`` is stored: ``|R x - z|^2`` is the sum of all squared residuals
(the square-root information form that the paper recommends after Bierman). A new row is appended by Householder
reflections, one per column. No inverse is propagated, so nothing has to be known at the start, and rounding cannot
destroy positive definiteness. `dynid.export` prints the same reflections in C.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.lapack import dtpqrt

from dynid.array_types import Bools, Floats, Ints
from dynid.data_reduction.factor import Factor
from dynid.data_reduction.triangular import PANEL, REFLECTED
from dynid.decompositions import solve_upper
from dynid.estimators.equations import TIME_BLOCKS


class RowTriangle:
    """The triangle of all rows so far, changed in place. Rows have w columns; the last one is the right side."""

    __slots__ = ("_packed",)

    def __init__(self, width: int) -> None:
        """Start without rows, for rows of w columns."""
        self._packed = np.zeros((width, width), order="F")

    @property
    def R(self) -> Floats:
        """(w, w) upper triangle with a non-negative diagonal."""
        R = self._packed.copy(order="C")
        return np.negative(R, out=R, where=R.diagonal()[:, None] < 0.0)

    def scale(self, factor: float) -> None:
        """Multiply all equations so far by a factor."""
        self._packed *= factor

    def update(self, rows: Floats) -> None:
        """Append rows (m, w)."""
        # LAPACK's dtpqrt makes one triangle of a triangle and rows below it, in place; REFLECTED rows at a time
        for start in range(0, len(rows), REFLECTED):
            part = np.array(rows[start : start + REFLECTED], order="F")
            _, _, _, failure = dtpqrt(
                0, min(len(self._packed), PANEL), self._packed, part, overwrite_a=1, overwrite_b=1
            )
            assert failure == 0, "LAPACK refused the shapes"

    def forget(self, shrink: Floats) -> None:
        """Enlarge the uncertainty of the solution without changing it.

        Args:
            shrink: (w - 1,) factors by which the information on each unknown shrinks; its standard deviation grows by
                their inverses. The triangle must be regular.
        """
        R, right = self._packed[:-1, :-1], self._packed[:-1, -1]
        values = solve_upper(R, right)
        R *= shrink
        right[:] = R @ values

    def factor(self, columns: Sequence[int], rows: int) -> Factor:
        """Make a `dynid.data_reduction.Factor` of the equations so far, which have so many rows."""
        return Factor.of(columns, self.R, rows)


class GrowingBlocks:
    """Triangles per block of time for several groups of equations (joints, say), in bounded memory.

    Blocks of time show how errors are correlated (`dynid.estimators.noise`). The length of a log is not known on line,
    so blocks begin with one sample each; when there are twice as many as a log in memory has, neighbours are joined and
    the next ones are twice as long.
    """

    __slots__ = ("_counts", "_filled", "_length", "_triangles")

    def __init__(self, widths: Sequence[int]) -> None:
        """Start with one empty block; ``widths`` are the numbers of columns of the groups, the right side included."""
        self._triangles = [[RowTriangle(width) for width in widths]]  # by block, then by group
        self._counts = [np.zeros(len(widths), dtype=np.int64)]
        self._length = 1  # instants per block
        self._filled = 0  # instants in the last block

    @property
    def triangles(self) -> tuple[tuple[Floats, ...], ...]:
        """Triangle (w, w) of each block and group."""
        return tuple(tuple(triangle.R for triangle in block) for block in self._triangles)

    @property
    def counts(self) -> Ints:
        """(blocks, groups) number of valid equations."""
        return np.array(self._counts)

    def total(self, group: int) -> RowTriangle:
        """Join the triangles of all blocks of a group."""
        total = RowTriangle(len(self._triangles[0][group].R))
        for block in self._triangles:
            total.update(block[group].R)
        return total

    def append(self, rows: Sequence[Floats], valid: Bools | None = None) -> None:
        """Add the equations of consecutive instants.

        Args:
            rows: For each group (m, w), one row per instant, zero where it does not count.
            valid: (m, groups) whether the group's equation of the instant counts; all by default.
        """
        valid = np.ones((len(rows[0]), len(rows)), dtype=bool) if valid is None else valid
        start = 0
        while start < len(valid):
            if self._filled == self._length:
                self._begin_block()
            stop = min(len(valid), start + self._length - self._filled)
            for triangle, mine in zip(self._triangles[-1], rows, strict=True):
                triangle.update(mine[start:stop])
            self._counts[-1] = self._counts[-1] + valid[start:stop].sum(axis=0)
            self._filled += stop - start
            start = stop

    def scale(self, factor: float) -> None:
        """Multiply all equations by a factor."""
        for block in self._triangles:
            for triangle in block:
                triangle.scale(factor)

    def _begin_block(self) -> None:
        """Begin a new block; join neighbours before if there are too many."""
        if len(self._triangles) == 2 * TIME_BLOCKS:
            for first, second in zip(self._triangles[::2], self._triangles[1::2], strict=True):
                for a, b in zip(first, second, strict=True):
                    a.update(b.R)
            self._counts = [a + b for a, b in zip(self._counts[::2], self._counts[1::2], strict=True)]
            self._triangles = self._triangles[::2]
            self._length *= 2
        self._triangles.append([RowTriangle(len(triangle.R)) for triangle in self._triangles[-1]])
        self._counts.append(np.zeros_like(self._counts[-1]))
        self._filled = 0
