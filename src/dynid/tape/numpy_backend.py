"""Run a tape (a recorded program) with NumPy, where LLVM is missing: slow, but right on every machine.

Every operation of the tape is one NumPy call on a block of samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.array_types import Floats
from dynid.tape.record import replay
from dynid.tape.tape import Tape

BLOCK = 1024
"""Samples that are computed at a time (convention: many, because every NumPy call takes a microsecond; few, because
every intermediate value of all of them is in memory)."""


class NumpyExecutor:
    """Runs one tape by `replay`, a block of samples at a time; an `Executor` of `dynid.tape.program`."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def run(self, inputs: Sequence[Floats], outputs: Sequence[Floats]) -> None:
        """Fill the outputs; see :class:`dynid.tape.program.Executor`."""
        with np.errstate(all="ignore"):  # like the compiled back ends: infinities and NaN are values, not warnings
            for start in range(0, len(outputs[0]) if outputs else 0, BLOCK):
                part = slice(start, start + BLOCK)
                # one array (samples of the block,) per input element
                columns = [column for array in inputs for column in np.ascontiguousarray(array[part].T)]
                value = replay(self._tape, columns)  # function of an operand's number; gives its column, or a constant
                for array, output in zip(outputs, self._tape.outputs, strict=True):
                    for column, element in enumerate(output.elements.ravel().tolist()):
                        array[part, column] = value(element)
