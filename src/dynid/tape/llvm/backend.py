"""Tapes (recorded programs) compiled by LLVM: `BlockKernel`, and `LlvmExecutor`, which runs a tape on many samples.

A *block* is a group of B samples that are computed together; in memory it is an array [column][B], with one column per
computed number. A *lane* is the place of one sample in a block or in a vector register.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.tape.llvm.blocks import BlockLayout, BlockPrinter
from dynid.tape.llvm.engine import host, load_code
from dynid.tape.tape import Tape

STORE_BLOCK = 16
"""Samples per block when the results are written as rows: block and most rows stay in the first-level cache
(experiment)."""

REDUCE_BLOCK = 120
"""Samples per block when other machine code sums over the block: many, so that its overhead per block does not matter.

An odd multiple of a cache line, so that columns do not share cache sets (experiment)."""


class BlockKernel:
    """A compiled tape that works block by block.

    A block is an array [column][B] of the computed output elements; ``columns`` says which. In the last block, which
    may not be full, the lanes without a sample are zero.

    Attributes:
        tape: the program.
        block_samples: samples per block (B).
        columns: the computed value, an operand of the tape, in each column of a block.
        work_size: numbers in the work area.
        block_size: numbers in a block.
        address: address of ``void run(void **table, int64_t start, int64_t stop, double *work, double *block)``, for
            machine code that calls it; ``table`` holds the pointers to the row-major inputs.
    """

    def __init__(
        self,
        tape: Tape,
        block_samples: int = REDUCE_BLOCK,
        dense: bool = False,
        tiled: Sequence[str] = (),
    ) -> None:
        """Compile, or load from the cache.

        Args:
            tape: the program.
            block_samples: samples per block, a multiple of 8; an odd multiple avoids conflicts in the cache.
            dense: True: write the outputs as (N, size) arrays; False: the caller reads each computed block.
            tiled: names of the inputs that are stored in blocks, (N / B, size, B), instead of rows; the lanes of the
                last block without a sample may hold anything.
        """
        if block_samples % 8:
            raise ArgumentError(f"a block of {block_samples} samples is not a multiple of 8")
        layout = BlockLayout(tape, tiled)
        self.tape = tape
        self.block_samples = block_samples
        self.columns = tuple(layout.outputs)
        self.work_size = layout.work_columns * block_samples
        block_columns = len(layout.outputs) + (len(layout.constants) if dense else 0)
        self.block_size = block_columns * block_samples
        # load_code adds the processor, the versions of LLVM and the sources of the printers to the key (_object)
        key = f"{tape.fingerprint}|block {block_samples}|dense {dense}|tiled {tuple(tiled)}"

        self._code = load_code(key, lambda: BlockPrinter(layout, block_samples, host()).text(dense))
        self.address = self._code.address("run")
        self._entry = self._code.entry("run", 5)
        self._idle: list[tuple[Floats, Floats]] = []  # memory of earlier calls, for `memory`

    def new_work(self) -> Floats:
        """A work area for one thread."""
        return _aligned_zeros(self.work_size)

    def new_block(self) -> Floats:
        """(columns, B) array for one block."""
        return _aligned_zeros(self.block_size).reshape(-1, self.block_samples)

    @contextmanager
    def memory(self) -> Iterator[tuple[Floats, Floats]]:
        """A work area and a block for one call.

        Reuses the memory of an earlier call, because first touching new pages is slow.
        """
        try:
            areas = self._idle.pop()
        except IndexError:
            areas = self.new_work(), self.new_block()
        try:
            yield areas
        finally:
            self._idle.append(areas)

    def run(self, arrays: Sequence[Floats], start: int, stop: int, work: Floats, block: Floats) -> None:
        """Compute samples start to stop; other Python threads may run meanwhile.

        Args:
            arrays: C-contiguous (N, size) inputs, or (N / B, size, B) where they are tiled; a dense kernel's outputs
                follow them.
            start: first sample, the first of a block where an input is tiled.
            stop: the sample behind the last.
            work: from :meth:`new_work`.
            block: from :meth:`new_block`; afterwards it holds the last B (or fewer) samples. A caller who needs all
                of them calls `run` once per block.
        """
        self._entry(pointer_table(arrays), start, stop, address(work), address(block))


class LlvmExecutor:
    """Runs one tape on batches of samples."""

    def __init__(self, tape: Tape) -> None:
        self._kernel = BlockKernel(tape, STORE_BLOCK, dense=True)

    def run(self, inputs: Sequence[Floats], outputs: Sequence[Floats]) -> None:
        """Fill the outputs; see :class:`dynid.tape.program.Executor`."""
        with self._kernel.memory() as (work, block):
            self._kernel.run([*inputs, *outputs], 0, outputs[0].shape[0] if outputs else 0, work, block)


def pointer_table(arrays: Sequence[Floats]) -> Any:
    """A C array of the arrays' addresses, as machine code takes it."""
    return (ctypes.c_void_p * len(arrays))(*map(address, arrays))


def address(array: Any) -> int:
    """Address of an array's first number. ``array.ctypes.data`` takes microseconds, so it is the second choice.

    Raises:
        ArgumentError: The array is not C-contiguous: machine code would read other numbers than its own.
    """
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError):  # read-only, empty, or not C-contiguous
        if not array.flags.c_contiguous:
            raise ArgumentError(
                f"an array of shape {array.shape} is not C-contiguous", remedy="Pass numpy.ascontiguousarray(array)."
            ) from None
        return int(array.ctypes.data)


def _aligned_zeros(size: int) -> Floats:
    """Zeros (size,) that begin on a cache-line boundary: 64 bytes, eight doubles."""
    memory = np.zeros(size + 8)
    shift = -(memory.ctypes.data // 8) % 8  # doubles up to the next boundary
    return memory[shift : shift + size]
