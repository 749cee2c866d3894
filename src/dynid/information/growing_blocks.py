"""Triangles of equations that arrive one by one, in few blocks of time however many arrive.

Blocks of time tell how errors are correlated (`dynid.estimation.noise`). The length of a log is not known on line, so
blocks begin with one sample each; when there are `MOST_BLOCKS`, neighbours are joined and the next ones are twice as
long. Joining is the one that the reduction of logs uses, so the total is the same as if all came at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.information.triangular import append_many_rows, join_triangles

MOST_BLOCKS = 20
"""Number of blocks at which neighbours are joined (derivation: ten are left, as many as a log in memory has)."""


class GrowingBlocks:
    """For each of some groups of equations, a triangle per block of time."""

    __slots__ = ("_counts", "_filled", "_length", "_triangles")

    def __init__(self, widths: Sequence[int]) -> None:
        """Start with one block without equations.

        Args:
            widths: For each group the number of its columns, the right side among them.
        """
        self._triangles = [[np.zeros((width, width)) for width in widths]]
        self._counts = [np.zeros(len(widths), dtype=np.int64)]
        self._length, self._filled = 1, 0

    @property
    def triangles(self) -> tuple[tuple[Floats, ...], ...]:
        """For each block and group the triangle (w, w)."""
        return tuple(tuple(block) for block in self._triangles)

    @property
    def counts(self) -> NDArray[np.int64]:
        """(blocks, groups) number of equations."""
        return np.array(self._counts)

    def append(self, rows: Sequence[Floats], valid: NDArray[np.bool_]) -> None:
        """Add the equations of consecutive instants.

        Args:
            rows: For each group (m, w), one row per instant, zero where it does not count.
            valid: (m, groups) whether the group's equation of the instant counts.
        """
        start = 0
        while start < len(valid):
            if self._filled == self._length:
                self._begin_block()
            stop = min(len(valid), start + self._length - self._filled)
            last = self._triangles[-1]
            for group, mine in enumerate(rows):
                last[group] = append_many_rows(last[group], mine[start:stop])
            self._counts[-1] = self._counts[-1] + valid[start:stop].sum(axis=0)
            self._filled += stop - start
            start = stop

    def _begin_block(self) -> None:
        if len(self._triangles) == MOST_BLOCKS:
            pairs = range(0, MOST_BLOCKS, 2)
            self._triangles = [
                [join_triangles(a, b) for a, b in zip(self._triangles[k], self._triangles[k + 1], strict=True)]
                for k in pairs
            ]
            self._counts = [self._counts[k] + self._counts[k + 1] for k in pairs]
            self._length *= 2
        self._triangles.append([np.zeros_like(triangle) for triangle in self._triangles[-1]])
        self._counts.append(np.zeros_like(self._counts[-1]))
        self._filled = 0
