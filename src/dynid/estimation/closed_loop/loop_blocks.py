"""Long experiments cut into blocks, so that regressors of few samples only are in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK", "Block", "Kept", "cut"]

Arrays = TypeVar("Arrays", bound=NDArray[Any] | tuple[NDArray[Any], ...])
BLOCK = 4096
"""Samples of a block."""
BESIDE = 64
"""Samples on either side of a block that differences at its ends see."""
MEMORY = 2**26
"""Bytes of arrays that are kept for the next time they are needed."""


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive samples of an experiment."""

    run: int
    """Number of the experiment"""
    rows: slice
    wide: slice
    """The same rows and those beside them"""

    @property
    def inner(self) -> slice:
        """Where the block's rows are among the wide ones."""
        return slice(self.rows.start - self.wide.start, self.rows.stop - self.wide.start)


def cut(samples: Sequence[int], size: int = BLOCK) -> tuple[Block, ...]:
    """Experiments with so many samples cut into equal blocks of at most this size."""
    blocks = []
    for run, count in enumerate(samples):
        edges = np.linspace(0, count, -(-count // size) + 1).astype(int).tolist()
        for start, stop in pairwise(edges):
            wide = slice(max(0, start - BESIDE), min(count, stop + BESIDE))
            blocks.append(Block(run, slice(start, stop), wide))
    return tuple(blocks)


class Kept(Generic[Arrays]):
    """Arrays by number, made whenever they are asked for; the first ones are kept, as far as memory allows."""

    def __init__(self, make: Callable[[int], Arrays], count: int, memory: int | None = None) -> None:
        """Nothing is made yet.

        Args:
            make: The arrays of a number.
            count: Of the numbers.
            memory: Bytes that may be kept; MEMORY by default.
        """
        self._make, self._count = make, count
        self._left = MEMORY if memory is None else memory
        self._kept: dict[int, Arrays] = {}

    def __len__(self) -> int:
        """How many numbers there are."""
        return self._count

    def __getitem__(self, number: int) -> Arrays:
        """The arrays of a number."""
        if number in self._kept:
            return self._kept[number]
        made = self._make(number)
        size = sum(array.nbytes for array in (made if isinstance(made, tuple) else (made,)))
        if size <= self._left:
            self._kept[number], self._left = made, self._left - size
        return made

    def __iter__(self) -> Iterator[Arrays]:
        """All of them in turn."""
        return (self[number] for number in range(self._count))
