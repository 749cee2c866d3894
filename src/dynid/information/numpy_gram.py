"""Cross products of a tape's outputs with NumPy: works everywhere, and is the reference for the compiled one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.information.triangular import preconditioned
from dynid.tape.adjoint import vjp
from dynid.tape.program import compile_tape
from dynid.tape.tape import Tape

__all__ = ["NumpyGram", "NumpyPullback"]

Floats = NDArray[np.float64]

BLOCK = 4096
"""Samples whose rows are in memory at a time."""


class NumpyGram:
    """Reduces the outputs of one tape, vectors that are the rows of as many matrices."""

    def __init__(self, tape: Tape) -> None:
        self._program = compile_tape(tape, "numpy")
        self._outputs = [(output.name, output.size) for output in tape.outputs]

    def rows(self, inputs: Sequence[Floats]) -> list[Floats]:
        """For each output the matrix (N, w) of its values."""
        results = self._program(*inputs)
        return [results[name] for name, _ in self._outputs] if isinstance(results, dict) else [results]

    def grams(self, inputs: Sequence[Floats], preconditioners: Sequence[Floats] | None = None) -> list[Floats]:
        """For each output ``W.T @ W`` (w, w) of its rows W.

        Args:
            inputs: One (N, size) array per input of the tape.
            preconditioners: For each output an upper triangular R0; the result is then that of ``W @ inv(R0)``.
        """
        totals = [np.zeros((size, size)) for _, size in self._outputs]
        for start in range(0, len(inputs[0]), BLOCK):
            rows = self.rows([array[start : start + BLOCK] for array in inputs])
            for place, (total, W) in enumerate(zip(totals, rows, strict=True)):
                Z = W.T if preconditioners is None else preconditioned(W, preconditioners[place])
                total += Z @ Z.T
        return totals


class NumpyPullback:
    """Gradients of the same products."""

    def __init__(self, tape: Tape, wrt: Sequence[str]) -> None:
        """Record them.

        Args:
            tape: The program.
            wrt: Names of the inputs to differentiate with respect to.
        """
        self._rows = NumpyGram(tape)
        self._backwards = [compile_tape(vjp(tape, output.name, wrt), "numpy") for output in tape.outputs]
        self._wrt = tuple(wrt)

    def run(self, inputs: Sequence[Floats], matrices: Sequence[Floats], gradients: Sequence[Floats]) -> None:
        """Fill the gradients.

        Args:
            inputs: One (N, size) array per input of the tape.
            matrices: For each output the matrix (w, w) that its rows are multiplied by to be its cotangents.
            gradients: One (N, size) array per differentiated input.
        """
        for start in range(0, len(inputs[0]), BLOCK):
            part = slice(start, start + BLOCK)
            states = [array[part] for array in inputs]
            rows = self._rows.rows(states)
            for gradient in gradients:
                gradient[part] = 0.0
            for W, M, backward in zip(rows, matrices, self._backwards, strict=True):
                found = backward(*states, W @ M)
                for gradient, name in zip(gradients, self._wrt, strict=True):
                    gradient[part] += found[name] if isinstance(found, dict) else found
