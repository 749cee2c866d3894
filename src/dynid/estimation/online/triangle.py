"""The one triangle of all estimators on line: rows are rotated into it as they come ([GautierKhalil1992] section 2).

What is known is a triangle R of the rows ``[W, y]`` so far, with ``|R x - z|^2`` the sum of all squared residuals: the
square-root information form that the paper recommends after Bierman. A new row is appended by Householder reflections,
one per column. No inverse is propagated, so nothing has to be known at the start, and rounding cannot destroy positive
definiteness. `dynid.export` prints the same reflections in C.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.lapack import dtpqrt

from dynid.arrays import Bools, Floats, Ints
from dynid.decompositions import solve_upper
from dynid.estimation.equations import TIME_BLOCKS
from dynid.information.factor import Factor
from dynid.information.triangular import PANEL, REFLECTED


class RowTriangle:
    """The triangle of all rows so far, changed in place."""

    __slots__ = ("_packed",)

    def __init__(self, width: int) -> None:
        """Start without rows of so many columns, the right side among them."""
        self._packed = np.zeros((width, width), order="F")

    @property
    def R(self) -> Floats:
        """(w, w) upper triangle with a diagonal from zero on; the last column is the right side."""
        R = self._packed.copy(order="C")
        return np.negative(R, out=R, where=R.diagonal()[:, None] < 0.0)

    def scale(self, factor: float) -> None:
        """Multiply all equations so far by a factor."""
        self._packed *= factor

    def update(self, rows: Floats) -> None:
        """Append rows (m, w)."""
        for start in range(0, len(rows), REFLECTED):
            part = np.array(rows[start : start + REFLECTED], order="F")
            _, _, _, failure = dtpqrt(
                0, min(len(self._packed), PANEL), self._packed, part, overwrite_a=1, overwrite_b=1
            )
            assert failure == 0, "LAPACK refused the shapes"

    def forget(self, shrink: Floats) -> None:
        """Let standard deviations (w - 1,) grow by one over ``shrink``; the solution of the regular triangle stays."""
        R, right = self._packed[:-1, :-1], self._packed[:-1, -1]
        values = solve_upper(R, right)
        R *= shrink
        right[:] = R @ values

    def factor(self, columns: Sequence[int], rows: int) -> Factor:
        """The equations so far, of so many rows, as a `dynid.information.Factor`."""
        return Factor.of(columns, self.R, rows)


class GrowingBlocks:
    """For each of some groups of equations, a triangle per block of time, few blocks however many rows arrive.

    Blocks of time tell how errors are correlated (`dynid.estimation.noise`). The length of a log is not known on line,
    so blocks begin with one sample each; when there are twice as many as a log in memory has, neighbours are joined and
    the next ones are twice as long.
    """

    __slots__ = ("_counts", "_filled", "_length", "_triangles")

    def __init__(self, widths: Sequence[int]) -> None:
        """Start with one block without equations; each group has so many columns, the right side among them."""
        self._triangles = [[RowTriangle(width) for width in widths]]
        self._counts = [np.zeros(len(widths), dtype=np.int64)]
        self._length, self._filled = 1, 0

    @property
    def triangles(self) -> tuple[tuple[Floats, ...], ...]:
        """For each block and group the triangle (w, w)."""
        return tuple(tuple(triangle.R for triangle in block) for block in self._triangles)

    @property
    def counts(self) -> Ints:
        """(blocks, groups) number of equations."""
        return np.array(self._counts)

    def total(self, group: int) -> RowTriangle:
        """The triangle of all blocks of a group."""
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
