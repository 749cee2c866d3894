"""`Tape`: a recorded program without branches, as arrays of numbers.

`dynid.tape.record` makes tapes, such as that of a robot's inverse dynamics; other modules count, differentiate and
compile them. A tape computes one sample: arrays of inputs go in, arrays of outputs come out.

Values are numbered: first the input elements (input after input, row-major), then one value per step, the result of its
operation. An *operand* is what a step reads: a value's number, or ``~k = -1 - k`` (negative) for the constant
``constants[k]``. An output element is such an operand too, so that outputs that are always zero, or always another
constant, are known without running anything.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dynid.array_types import Floats
from dynid.tape.operations import is_binary

Integers = npt.NDArray[np.int32]
"""Operand numbers."""


@dataclass(frozen=True, slots=True)
class Input:
    """One named input array."""

    name: str
    """The name of the recorded function's argument."""

    shape: tuple[int, ...]
    """Shape for one sample."""

    @property
    def size(self) -> int:
        """Number of elements for one sample."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """One named output array."""

    name: str
    """The name the recorded function gave it; ``"output"`` where it returned a bare array."""

    elements: Integers
    """One operand per element, in the output's own shape (read-only)."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape for one sample."""
        return self.elements.shape

    @property
    def size(self) -> int:
        """Number of elements for one sample."""
        return self.elements.size


@dataclass(frozen=True, slots=True, eq=False)
class Tape:
    """A recorded program: every value is computed once, and none that no output needs.

    Get one from :func:`dynid.tape.record`; run it with :func:`dynid.tape.compile_tape`.
    """

    opcodes: npt.NDArray[np.uint8]
    """(m,) one :class:`~dynid.tape.operations.Operation` per step (read-only)."""

    operands: Integers
    """(m, 2) operands of each step; the second is 0 for functions of one operand (read-only)."""

    constants: Floats
    """(k,) the constants (read-only)."""

    inputs: tuple[Input, ...]
    """The inputs, in the order in which a compiled program takes them."""

    outputs: tuple[Output, ...]
    """The outputs, in the order in which the recorded function gave them."""

    @property
    def input_size(self) -> int:
        """Number of input elements for one sample: the number of the first operation's value."""
        return sum(entry.size for entry in self.inputs)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything in the tape, in hexadecimal; the same in every process and on every machine."""
        digest = hashlib.sha256(b"dynid tape 1\n")
        for entry in self.inputs:
            digest.update(f"input {entry.name!r} {entry.shape}\n".encode())
        for output in self.outputs:
            digest.update(f"output {output.name!r} {output.shape}\n".encode())
            digest.update(output.elements.astype("<i4").tobytes())
        digest.update(f"steps {len(self.opcodes)}\n".encode())
        digest.update(self.opcodes.tobytes())
        digest.update(self.operands.astype("<i4").tobytes())
        digest.update(self.constants.astype("<f8").tobytes())
        return digest.hexdigest()

    def output(self, name: str) -> Output:
        """The output of that name.

        Raises:
            KeyError: if there is none; the message lists the names there are.
        """
        for output in self.outputs:
            if output.name == name:
                return output
        raise KeyError(f"no output {name!r}; this tape has {[output.name for output in self.outputs]}")

    def sparsity(self, name: str) -> npt.NDArray[np.bool_]:
        """Where an output is not structurally zero.

        Returns:
            Boolean array in the output's shape: False where the element is the constant 0 whatever the inputs are.
        """
        elements = self.output(name).elements
        zeros = ~np.flatnonzero(self.constants == 0.0)
        return ~np.isin(elements, zeros)

    def select(self, indices: Mapping[str, Any]) -> Tape:
        """Tape of some elements of some outputs, without the steps that only the other elements need.

        Args:
            indices: for each output to keep, a NumPy index into it (``...`` keeps it whole, ``np.s_[:, columns]`` some
                of its columns, a boolean mask the marked elements as a vector). Outputs not named are dropped.
        """
        outputs = {name: np.array(self.output(name).elements[index], dtype=np.int32) for name, index in indices.items()}
        return drop_unused(self.opcodes, self.operands, self.constants, self.inputs, outputs)

    def steps(self) -> Iterator[tuple[int, int, int, int]]:
        """The operations in order as ``(value, opcode, left, right)``, in plain integers."""
        pairs: list[list[int]] = self.operands.tolist()
        codes: list[int] = self.opcodes.tolist()
        first = self.input_size
        for position, (code, (left, right)) in enumerate(zip(codes, pairs, strict=True)):
            yield first + position, code, left, right

    def input_labels(self) -> list[str]:
        """One readable label per input element: ``q[0]``, ``pose[1,2]``, or the bare name of a scalar."""
        labels = []
        for entry in self.inputs:
            for index in np.ndindex(entry.shape):
                labels.append(f"{entry.name}[{','.join(map(str, index))}]" if index else entry.name)
        return labels


def drop_unused(
    opcodes: npt.NDArray[np.uint8],
    operands: Integers,
    constants: Floats,
    inputs: tuple[Input, ...],
    outputs: Mapping[str, Integers],
) -> Tape:
    """Tape of the given outputs with only the operations and constants they need, in their original order."""
    first = sum(entry.size for entry in inputs)
    pairs = operands.tolist()
    codes = opcodes.tolist()
    needed = [False] * (first + len(codes))  # value -> whether an output needs it
    for elements in outputs.values():
        for element in elements.ravel().tolist():
            if element >= 0:
                needed[element] = True
    for position in range(len(codes) - 1, -1, -1):  # backwards: what a needed step reads is needed
        if needed[first + position]:
            for operand in pairs[position][: 1 + is_binary(codes[position])]:
                if operand >= 0:
                    needed[operand] = True
    kept = [first + position for position in range(len(codes)) if needed[first + position]]
    return _renumber(kept, codes, pairs, constants, inputs, outputs)


def _renumber(
    kept: list[int],
    codes: list[int],
    pairs: list[list[int]],
    constants: Floats,
    inputs: tuple[Input, ...],
    outputs: Mapping[str, Integers],
) -> Tape:
    """Make a tape of the steps of the kept values, which get new numbers without gaps.

    Args:
        kept: Old numbers of the values of the steps to keep, ascending.
        codes: Operation of every old step.
        pairs: Operands (left, right) of every old step.
        constants: The old constants; the new ones are in the order of their first use.
        inputs: The inputs, which stay as they are.
        outputs: Name of an output -> its elements, as old operands.
    """
    first = sum(entry.size for entry in inputs)
    numbers = dict(zip(range(first), range(first), strict=True))  # old operand -> new one; inputs keep theirs
    new_constants: list[float] = []

    def number(operand: int) -> int:
        if operand not in numbers:  # a constant met for the first time
            numbers[operand] = ~len(new_constants)
            new_constants.append(float(constants[~operand]))
        return numbers[operand]

    new_pairs = np.zeros((len(kept), 2), dtype=np.int32)
    for position, value in enumerate(kept):
        code = codes[value - first]
        left, right = pairs[value - first]
        new_pairs[position] = number(left), number(right) if is_binary(code) else 0
        numbers[value] = first + position
    new_outputs = tuple(
        Output(
            name, _freeze(np.array([number(e) for e in elements.ravel().tolist()], np.int32).reshape(elements.shape))
        )
        for name, elements in outputs.items()
    )
    new_codes = _freeze(np.array([codes[value - first] for value in kept], dtype=np.uint8))
    return Tape(new_codes, _freeze(new_pairs), _freeze(np.array(new_constants, dtype=np.float64)), inputs, new_outputs)


def _freeze(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, made read-only."""
    array.setflags(write=False)
    return array
