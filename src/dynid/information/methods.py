"""From a chunk of samples to one matrix per joint, by cross products, preconditioned ones, or reflections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.information.chunks import Chunk
from dynid.information.cross_products import NumpyGram
from dynid.information.joint_equations import Equations
from dynid.information.partial_results import Part
from dynid.information.triangular import (
    append_many_rows,
    factor_from_preconditioned,
    is_well_resolved,
    made_regular,
    make_preconditioner,
    triangle_of,
)
from dynid.tape.program import Backend, compiles
from dynid.tape.tape import Tape

Method = Literal["preconditioned", "gram", "qr"]
METHODS: tuple[Method, ...] = ("preconditioned", "gram", "qr")

REPRESENTATIVE = 2048
"""Number of samples that a preconditioner is made of (convention: many times the number of columns)."""

LARGEST = 1e300
"""Largest sum of squares of a chunk: it leaves room to add up many chunks (float64 ends at 1.8e308)."""


class Gram(Protocol):
    """What reduces the outputs of a tape; see `NumpyGram`."""

    def rows(self, inputs: Sequence[Floats]) -> list[Floats]: ...
    def grams(self, inputs: Sequence[Floats], preconditioners: Sequence[Floats] | None = None) -> list[Floats]: ...


class Reducer:
    """Reduces chunks of equations."""

    def __init__(
        self,
        method: Method,
        gram: Callable[[Chunk], Gram],
    ) -> None:
        """Check the arguments.

        Args:
            method: One of `METHODS`.
            gram: What forms rows and cross products from the inputs of a checked chunk.
        """
        if method not in METHODS:
            raise ArgumentError(f"there is no method '{method}'", remedy=f"Choose one of {', '.join(METHODS)}.")
        self._method, self._gram = method, gram
        self._preconditioners: tuple[Floats, ...] | None = None

    def prepare(self, sample: Callable[[], Chunk]) -> None:
        """Make the preconditioners from representative samples, unless they are not needed."""
        if self._method == "preconditioned":
            self._preconditioners = self._precondition(sample().check())

    def _precondition(self, chunk: Chunk) -> tuple[Floats, ...]:
        """For each joint a triangle, from samples of a chunk, that makes its columns nearly orthonormal."""
        rows = np.arange(0, chunk.length, max(1, chunk.length // REPRESENTATIVE))
        few = chunk.select(rows)
        factors = zip(self._reflected(few), few.samples, strict=True)
        with np.errstate(all="ignore"):
            return tuple(make_preconditioner(R, samples) for R, samples in factors)

    def part(self, raw: Chunk) -> Part:
        """What a chunk says.

        Raises:
            DataError: if a number is NaN, infinite, or so large that squares overflow; names the sample.
        """
        chunk = raw.check()
        with np.errstate(all="ignore"):
            matrices = tuple(self._matrices(chunk))
            if not all(self._is_moderate(matrix) for matrix in matrices):
                raise chunk.overflow()
        return Part(chunk.segment, 0, chunk.number, matrices, chunk.samples)

    def _is_moderate(self, matrix: Floats) -> bool:
        """Whether a reduced matrix is finite, and so are the sums of squares it stands for."""
        size = np.max(np.abs(matrix)) if self._method == "gram" else np.vdot(matrix, matrix)
        return bool(size <= LARGEST)  # false for NaN

    def _matrices(self, chunk: Chunk) -> list[Floats]:
        if self._method == "gram":
            return self._gram(chunk).grams(chunk.inputs())
        if self._method == "qr":
            return self._reflected(chunk)
        assert self._preconditioners is not None, "prepare comes first"
        found, rough = self._through(self._preconditioners, chunk)
        if any(R is None for R in found) and chunk.length > REPRESENTATIVE:
            # The log as a whole says little about this stretch of it; what was found roughly says more.
            found, _ = self._through(tuple(map(made_regular, rough)), chunk)
        if any(R is None for R in found) and chunk.length > REPRESENTATIVE:
            found, _ = self._through(self._precondition(chunk), chunk)
        if any(R is None for R in found):
            found = [S if R is None else R for R, S in zip(found, self._reflected(chunk), strict=True)]
        return [R for R in found if R is not None]

    def _through(self, preconditioners: Sequence[Floats], chunk: Chunk) -> tuple[list[Floats | None], list[Floats]]:
        """For each joint R from preconditioned cross products, or None where they do not resolve it; and R anyway."""
        grams = self._gram(chunk).grams(chunk.inputs(), preconditioners)
        rough = [factor_from_preconditioned(C, R0) for C, R0 in zip(grams, preconditioners, strict=True)]
        found = [
            R if np.isfinite(R).all() and is_well_resolved(C, R, R0) else None
            for C, R, R0 in zip(grams, rough, preconditioners, strict=True)
        ]
        return found, rough

    def _reflected(self, chunk: Chunk) -> list[Floats]:
        """For each joint R by Householder reflections."""
        rows = self._gram(chunk).rows(chunk.inputs(slice(0, REPRESENTATIVE)))
        factors = [triangle_of(W) for W in rows]
        for start in range(REPRESENTATIVE, chunk.length, REPRESENTATIVE):
            rows = self._gram(chunk).rows(chunk.inputs(slice(start, start + REPRESENTATIVE)))
            factors = [append_many_rows(R, W) for R, W in zip(factors, rows, strict=True)]
        return factors


def tape_gram(equations: Equations, backend: Backend) -> Callable[[Chunk], Gram]:
    """Rows and cross products from a robot's tapes."""
    chosen: Literal["llvm", "numpy"] = "llvm" if compiles(backend) else "numpy"
    return lambda chunk: _gram(equations.plain if chunk.valid is None else equations.masked, chosen)


@lru_cache(maxsize=64)
def _gram(tape: Tape, backend: Literal["llvm", "numpy"]) -> Gram:
    if backend == "numpy":
        return NumpyGram(tape)
    from dynid.tape.llvm.gram import LlvmGram

    return LlvmGram(tape)
