"""Cross products ``W.T @ W`` of a program's outputs over many samples, and their gradient.

A *tape* is a recorded program of scalar operations, such as a robot's regressor. Each of its outputs is a vector (w,);
over N samples it gives the rows of a matrix W (N, w). `CrossProducts` serves the design of exciting motions: the
information that a motion gives is a function of the matrices ``W.T @ W``, and its gradient with respect to the motion
goes back through them. W is formed some thousand samples at a time, never as a whole.

`NumpyGram` ("gram" is the matrix of cross products) and `NumpyPullback` (the gradient, by reverse differentiation) run
without a compiler and are the reference for the compiled classes of `dynid.tape.llvm`. The reduction of logs uses
`NumpyGram` too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.data_reduction.chunks import PORTION
from dynid.data_reduction.triangular import precondition_rows
from dynid.errors import ArgumentError
from dynid.lazy import cached_property
from dynid.tape.adjoint import vjp
from dynid.tape.program import Backend, compile_tape, compiles
from dynid.tape.record import Recorder, replay
from dynid.tape.tape import Tape


class NumpyGram:
    """Forms rows and cross products of the outputs of one tape, whose outputs are vectors (w,)."""

    def __init__(self, tape: Tape) -> None:
        """Prepare the tape for NumPy."""
        self._program = compile_tape(tape, "numpy")
        self._outputs = [(output.name, output.size) for output in tape.outputs]

    def rows(self, inputs: Sequence[Floats]) -> list[Floats]:
        """For each output the matrix (N, w) of its values; one (N, size) array per input of the tape."""
        results = self._program(*inputs)
        return [results[name] for name, _ in self._outputs] if isinstance(results, dict) else [results]

    def grams(self, inputs: Sequence[Floats], preconditioners: Sequence[Floats] | None = None) -> list[Floats]:
        """For each output the cross products ``W.T @ W`` (w, w) of its rows W.

        Args:
            inputs: One (N, size) array per input of the tape.
            preconditioners: For each output an upper triangular R0 (w, w); the cross products are then those of
                ``W @ inv(R0)``.
        """
        totals = [np.zeros((size, size)) for _, size in self._outputs]
        for start in range(0, len(inputs[0]), PORTION):
            rows = self.rows([array[start : start + PORTION] for array in inputs])
            for place, (total, W) in enumerate(zip(totals, rows, strict=True)):
                # Z (w, samples): the transpose of W or of W @ inv(R0)
                Z = W.T if preconditioners is None else precondition_rows(W, preconditioners[place])
                total += Z @ Z.T
        return totals


class NumpyPullback:
    """Gradient of a weighted sum of all cross products of one tape, with respect to its inputs."""

    def __init__(self, tape: Tape, wrt: Sequence[str]) -> None:
        """Record the gradient.

        Args:
            tape: The program.
            wrt: Names of the inputs with respect to which to differentiate.
        """
        self._rows = NumpyGram(tape)
        self._backwards = [compile_tape(vjp(tape, output.name, wrt), "numpy") for output in tape.outputs]
        self._wrt = tuple(wrt)

    def run(self, inputs: Sequence[Floats], matrices: Sequence[Floats], gradients: Sequence[Floats]) -> None:
        """Fill the gradients.

        Args:
            inputs: One (N, size) array per input of the tape.
            matrices: For each output a matrix M (w, w), such that the derivative of the scalar by W is ``W @ M``.
            gradients: One (N, size) array per differentiated input, overwritten with the gradient.
        """
        for start in range(0, len(inputs[0]), PORTION):
            part = slice(start, start + PORTION)
            states = [array[part] for array in inputs]
            rows = self._rows.rows(states)
            for gradient in gradients:
                gradient[part] = 0.0
            for W, M, backward in zip(rows, matrices, self._backwards, strict=True):
                found = backward(*states, W @ M)
                for gradient, name in zip(gradients, self._wrt, strict=True):
                    gradient[part] += found[name] if isinstance(found, dict) else found


class CrossProducts:
    """Cross products ``W.T @ W`` of each output of a tape, and the gradient of a weighted sum of these."""

    def __init__(self, tape: Tape, backend: Backend = "auto") -> None:
        """Compile the products; the gradient is compiled when first asked for.

        Args:
            tape: Its outputs are vectors (w,), whose elements may be constant but not structurally zero.
            backend: ``llvm``, ``numpy``, or ``auto`` for the first that works.
        """
        if not all(tape.sparsity(output.name).all() for output in tape.outputs):
            raise ArgumentError(
                "an element of an output is structurally zero", remedy="Leave it out: see Tape.sparsity"
            )
        self.inputs = tuple(entry.name for entry in tape.inputs)
        self._tape = _without_constants(tape)
        self._sizes = [entry.size for entry in tape.inputs]
        self._compiled = compiles(backend)
        self._ones: Floats = np.ones((0, 1))

    @cached_property
    def _products(self) -> Any:
        """A `NumpyGram` or its compiled counterpart."""
        if not self._compiled:
            return NumpyGram(self._tape)
        from dynid.tape.llvm.gram import LlvmGram

        return LlvmGram(self._tape)

    @cached_property
    def _gradient(self) -> Any:
        """A `NumpyPullback` or its compiled counterpart."""
        if not self._compiled:
            return NumpyPullback(self._tape, self.inputs)
        from dynid.tape.llvm.pullback import LlvmPullback

        return LlvmPullback(self._tape, self.inputs)

    def __call__(self, *inputs: Floats) -> list[Floats]:
        """For each output ``W.T @ W`` (w, w) over the samples; one (N, size) array per input of the tape."""
        products: list[Floats] = self._products.grams(self._prepare(inputs))
        return products

    def pullback(self, weights: Sequence[Floats], *inputs: Floats) -> dict[str, Floats]:
        """Gradient of the scalar ``sum over outputs k of np.sum(weights[k] * (W_k.T @ W_k))`` by the inputs.

        Args:
            weights: For each output a matrix (w, w).
            *inputs: One (N, size) array per input of the tape.

        Returns:
            For each input, by name, an array (N, size).
        """
        prepared = self._prepare(inputs)
        gradients = [np.empty_like(array) for array in prepared[: len(self.inputs)]]
        # the derivative by W of sum(C * (W.T @ W)) is W @ (C + C.T)
        self._gradient.run(prepared, [weight + weight.T for weight in weights], gradients)
        return dict(zip(self.inputs, gradients, strict=True))

    def _prepare(self, inputs: Sequence[Floats]) -> list[Floats]:
        """The inputs as C-contiguous (N, size) arrays, and the last input of `_without_constants`, a column of ones."""
        samples = len(inputs[0])
        if len(self._ones) < samples:
            self._ones = np.ones((samples, 1))
        shaped = [
            np.asarray(array, float).reshape(samples, size) for array, size in zip(inputs, self._sizes, strict=True)
        ]
        return [*map(np.ascontiguousarray, shaped), self._ones[:samples]]


def _without_constants(tape: Tape) -> Tape:
    """The same program with a last input (1,), one for every sample, that its constant elements are multiplied by.

    Compiled code computes samples in blocks and fills the inputs of a block that is not full with zeros; with this
    input all outputs are zero there too, and add nothing to the cross products.
    """
    recorder = Recorder()
    states = [np.ravel(recorder.input(entry.name, entry.shape)) for entry in tape.inputs]
    one = recorder.input("one for a sample", (1,))[0]
    value = replay(tape, np.concatenate(states))
    outputs: dict[str, Any] = {}
    for output in tape.outputs:
        elements = [value(element) for element in output.elements.ravel().tolist()]
        outputs[output.name] = np.array([e * one if isinstance(e, float) else e for e in elements], dtype=object)
    return recorder.tape(outputs)
