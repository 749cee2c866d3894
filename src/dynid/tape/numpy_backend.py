"""The reference executor: a tape run by NumPy, block after block of samples. Needs no compiler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.tape.operations import Operation, is_binary
from dynid.tape.tape import Output, Tape

BLOCK = 4096
"""Samples per block: long enough to hide the interpreter, short enough that the working set stays in cache."""

_FUNCTIONS: dict[int, np.ufunc] = {
    Operation.ADD: np.add,
    Operation.SUB: np.subtract,
    Operation.MUL: np.multiply,
    Operation.DIV: np.divide,
    Operation.NEG: np.negative,
    Operation.SIN: np.sin,
    Operation.COS: np.cos,
    Operation.SQRT: np.sqrt,
    Operation.TANH: np.tanh,
    Operation.EXP: np.exp,
    Operation.ABS: np.absolute,
    Operation.SIGN: np.sign,
}
_BINARY = frozenset(code for code in _FUNCTIONS if is_binary(code))


class NumpyExecutor:
    """Runs one tape on batches of samples."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._destinations = _destinations(tape)
        self._constant_rows = [_constant_row(tape, output) for output in tape.outputs]
        self._rows, self._row_count = _assign_rows(tape)

    def run(self, inputs: Sequence[Floats], outputs: Sequence[Floats]) -> None:
        """Fill the outputs.

        Args:
            inputs: one (N, size) array per input of the tape.
            outputs: one (N, size) array per output of the tape, written in place.
        """
        samples = outputs[0].shape[0] if outputs else 0
        with np.errstate(all="ignore"):  # like the compiled back ends: infinities and NaN are values, not warnings
            for start in range(0, samples, BLOCK):
                block = slice(start, min(start + BLOCK, samples))
                self._run_block([array[block] for array in inputs], [array[block] for array in outputs])

    def _run_block(self, inputs: Sequence[Floats], outputs: Sequence[Floats]) -> None:
        columns = [column for array in inputs for column in np.ascontiguousarray(array.T)]
        samples = outputs[0].shape[0]
        memory = np.empty((self._row_count, samples + 8))  # padded: rows a power of two apart would share cache sets
        values: list[Any] = [*columns, *(memory[row, :samples] for row in self._rows)]
        # Python's negative indices are exactly the operand convention: values[~k] is constant k.
        values.extend(reversed(self._tape.constants.tolist()))
        for array, row in zip(outputs, self._constant_rows, strict=True):
            array[:] = row
        self._write(range(self._tape.input_size), values, outputs)
        wanted = self._destinations
        for value, code, left, right in self._tape.steps():
            if code in _BINARY:
                _FUNCTIONS[code](values[left], values[right], values[value])
            else:
                _FUNCTIONS[code](values[left], values[value])
            if value in wanted:
                self._write((value,), values, outputs)

    def _write(self, operands: Iterable[int], values: Sequence[Any], outputs: Sequence[Floats]) -> None:
        """Copy finished values to the output columns they belong to, before their rows are reused."""
        for operand in operands:
            for output, column in self._destinations.get(operand, ()):
                outputs[output][:, column] = values[operand]


def _destinations(tape: Tape) -> dict[int, list[tuple[int, int]]]:
    """The (output, flat element) pairs that each value fills."""
    found: dict[int, list[tuple[int, int]]] = {}
    for number, output in enumerate(tape.outputs):
        for position, element in enumerate(output.elements.ravel().tolist()):
            if element >= 0:
                found.setdefault(element, []).append((number, position))
    return found


def _constant_row(tape: Tape, output: Output) -> Floats:
    """The output's constants where it has some, zeros elsewhere."""
    elements = output.elements.ravel()
    row = np.zeros(output.size)
    row[elements < 0] = tape.constants[~elements[elements < 0]]
    return row


def _assign_rows(tape: Tape) -> tuple[list[int], int]:
    """A memory row for each operation's result, reused after its last reader, and the number of rows."""
    last: dict[int, int] = {}
    for value, code, left, right in tape.steps():
        last[value] = last[left] = value  # a value that is never read is done with when it is made
        if code in _BINARY:
            last[right] = value
    rows: dict[int, int] = {}
    free: list[int] = []
    total = 0
    for value, code, left, right in tape.steps():
        if not free:
            free.append(total)
            total += 1
        rows[value] = free.pop()
        read = {value, left, right} if code in _BINARY else {value, left}
        free += [rows[operand] for operand in sorted(read) if operand in rows and last[operand] == value]
    return list(rows.values()), total
