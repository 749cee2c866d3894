"""Cross products of a tape's outputs, fused with the tape: rows never leave the cache.

Each output of the tape is a panel: some columns [column][B] of the block that the compiled tape fills. The machine code
of :mod:`~dynid.tape.llvm.tiles` knows nothing of the tape and is the same for all of them: it calls the tape for a
block, optionally solves ``Z @ R0 = W`` for each panel W, and adds all products of two columns to running sums.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from dynid.errors import ArgumentError
from dynid.tape.llvm.backend import REDUCE_BLOCK, BlockKernel, address, pointer_table
from dynid.tape.llvm.engine import Code, host, load_code
from dynid.tape.llvm.tiles import TilePrinter
from dynid.tape.tape import Tape

__all__ = ["LlvmGram"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class LlvmGram:
    """Reduces the outputs of one tape, vectors that are the rows of as many matrices."""

    def __init__(self, tape: Tape) -> None:
        kernel = BlockKernel(tape, REDUCE_BLOCK)
        column = {value: place for place, value in enumerate(kernel.columns)}
        panels = [output.elements.ravel().tolist() for output in tape.outputs]
        if any(element not in column for panel in panels for element in panel):
            raise ArgumentError("an output that is constant has no column in a block")
        self._kernel = kernel
        self._columns = [[column[element] for element in panel] for panel in panels]
        self._widths: Integers = np.array([len(panel) for panel in panels], dtype=np.int64)
        self._offsets: Integers = np.array([8 * kernel.block * c for cs in self._columns for c in cs], dtype=np.int64)
        self._straight: Integers = 8 * kernel.block * np.arange(self._widths.max(initial=0), dtype=np.int64)
        self._places = _places(self._widths.tolist(), _tile())
        self._code = _code()  # lives as long as what it is called from
        self._reduce = _entry(self._code)

    def rows(self, inputs: Sequence[Floats]) -> list[Floats]:
        """For each output the matrix (N, w) of its values.

        Args:
            inputs: One C-contiguous (N, size) array per input of the tape.
        """
        samples, kernel = len(inputs[0]), self._kernel
        values = np.empty((len(kernel.columns), samples))
        with kernel.memory() as (work, block):
            for start in range(0, samples, kernel.block):
                stop = min(start + kernel.block, samples)
                kernel.run(inputs, start, stop, work, block)
                values[:, start:stop] = block[:, : stop - start]
        return [values[columns].T for columns in self._columns]

    def grams(self, inputs: Sequence[Floats], preconditioners: Sequence[Floats] | None = None) -> list[Floats]:
        """For each output ``W.T @ W`` (w, w) of its rows W; other threads may run meanwhile.

        Args:
            inputs: One C-contiguous (N, size) array per input of the tape.
            preconditioners: For each output an upper triangular R0; the result is then that of ``W @ inv(R0)``.
        """
        solvers = None if preconditioners is None else np.concatenate([_solver(R0) for R0 in preconditioners])
        lanes = host().lanes
        sums = np.zeros(lanes * int(np.sum(self._widths * (self._widths + 1) // 2)))
        plan = (len(self._widths), address(self._widths), address(self._offsets))
        scratch = np.empty(self._straight.size * self._kernel.block)
        solver = None if solvers is None else address(solvers)
        reduction = (solver, address(scratch), address(self._straight), address(sums))
        with self._kernel.memory() as areas:
            work, block = map(address, areas)
            table = pointer_table(inputs)
            self._reduce(self._kernel.address, table, 0, len(inputs[0]), work, block, *plan, *reduction)
        total = sums[::lanes].copy()
        for lane in range(1, lanes):
            total += sums[lane::lanes]
        flat = total[self._places]
        widths = self._widths.tolist()
        ends = list(itertools.accumulate(width * width for width in widths))
        return [flat[e - w * w : e].reshape(w, w) for w, e in zip(widths, ends, strict=True)]


def _places(widths: Sequence[int], tile: int) -> Integers:
    """For each element of all panels' products, row-major, the number of the sum that tiles of columns leave it in."""
    result, first = [np.zeros(0, dtype=np.int64)], 0
    for width in widths:
        rows, columns = _tile_order(width, tile)
        square = np.zeros((width, width), dtype=np.int64)
        square[rows, columns] = square[columns, rows] = first + np.arange(len(rows))
        result.append(square.ravel())
        first += len(rows)
    return np.concatenate(result)


def _solver(R0: Floats) -> Floats:
    """What substitution multiplies with: minus the triangle, and the inverse of its diagonal."""
    table = -R0
    np.fill_diagonal(table, 1.0 / np.diagonal(R0))
    return table.ravel()


@functools.lru_cache(maxsize=256)
def _tile_order(width: int, tile: int) -> tuple[Integers, Integers]:
    """Row and column of each sum, tile after tile."""
    pairs = []
    for top in range(0, width, tile):
        rows = range(top, min(top + tile, width))
        pairs += [(row, column) for row in rows for column in rows if column >= row]
        for left in range(top + tile, width, tile):
            pairs += [(row, column) for row in rows for column in range(left, min(left + tile, width))]
    order = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return order[:, 0], order[:, 1]


def _tile() -> int:
    """Columns per tile: T * T sums and 2 T columns must fit into the vector registers."""
    return 3 if host().registers < 32 else 4


@functools.cache
def _code() -> Code:
    lanes, tile = host().lanes, _tile()
    key = f"gram|lanes {lanes}|tile {tile}|block {REDUCE_BLOCK}"
    return load_code(key, lambda: (TilePrinter(lanes, tile, REDUCE_BLOCK, host().fused).text(), 2))


def _entry(code: Code) -> Callable[..., None]:
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    kinds = [pointer, pointer, integer, integer, pointer, pointer, integer, *[pointer] * 6]
    entry: Callable[..., None] = ctypes.CFUNCTYPE(None, *kinds)(code.address("reduce"))
    return entry
