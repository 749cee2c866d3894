"""From a chunk of samples to one matrix per joint, by cross products, preconditioned ones, or reflections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.information.chunks import Chunk
from dynid.information.cross_products import NumpyGram
from dynid.information.joint_equations import Equations, RowShape
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


@dataclass(frozen=True, slots=True, eq=False)
class Preconditioner:
    """For each joint a triangle that makes the columns of its equations nearly orthonormal.

    Give the same one to several reductions, and what they have in common they compute alike to the last bit.
    """

    matrices: tuple[Floats, ...]
    """For each joint (w + 1, w + 1), upper triangular and not singular."""
    fingerprint: str
    """`Robot.fingerprint` of the equations it was made for."""
    columns: tuple[int, ...]
    """(p,) columns of the regressor it was made for."""

    def check(self, equations: RowShape) -> None:
        """Refuse equations that it was not made for: compiled code trusts its shapes."""
        if (self.fingerprint, self.columns) != (equations.fingerprint, equations.columns):
            raise ArgumentError(
                "the preconditioner was made for another robot or other columns",
                remedy="Call dynid.information.precondition with this robot and these columns.",
            )
        if len(self.matrices) != len(equations.widths):
            raise ArgumentError(f"the preconditioner has {len(self.matrices)} matrices, expected one per joint")
        for joint, (matrix, width) in enumerate(zip(self.matrices, equations.widths, strict=True)):
            if not isinstance(matrix, np.ndarray) or matrix.dtype != np.float64 or matrix.shape != (width, width):
                raise ArgumentError(
                    f"the preconditioner's matrix of joint {joint + 1} is not ({width}, {width}) float64"
                )
            if not np.isfinite(matrix).all() or np.tril(matrix, -1).any() or not np.diagonal(matrix).all():
                raise ArgumentError(
                    f"the preconditioner's matrix of joint {joint + 1} is not a finite upper triangle, or is singular"
                )


class Gram(Protocol):
    """What reduces the outputs of a tape; see `NumpyGram`."""

    def rows(self, inputs: Sequence[Floats]) -> list[Floats]: ...
    def grams(self, inputs: Sequence[Floats], preconditioners: Sequence[Floats] | None = None) -> list[Floats]: ...


class Reducer:
    """Reduces chunks of equations."""

    def __init__(
        self,
        equations: RowShape,
        method: Method,
        preconditioner: Preconditioner | None,
        gram: Callable[[Chunk], Gram],
    ) -> None:
        """Check the arguments.

        Args:
            equations: Which columns the rows have.
            method: One of `METHODS`.
            preconditioner: See `prepare`.
            gram: What forms rows and cross products from the inputs of a checked chunk.
        """
        if method not in METHODS:
            raise ArgumentError(f"there is no method '{method}'", remedy=f"Choose one of {', '.join(METHODS)}.")
        if preconditioner is not None:
            preconditioner.check(equations)
        self._equations, self._method, self._preconditioner = equations, method, preconditioner
        self._gram = gram

    def prepare(self, sample: Callable[[], Chunk]) -> None:
        """Make the preconditioner from representative samples, unless it was given or is not needed."""
        if self._method == "preconditioned" and self._preconditioner is None:
            self._preconditioner = self.precondition(sample().check())

    def precondition(self, chunk: Chunk) -> Preconditioner:
        """A preconditioner from samples spread evenly over a chunk."""
        rows = np.arange(0, chunk.length, max(1, chunk.length // REPRESENTATIVE))
        few = chunk.select(rows)
        factors = zip(self._reflected(few), few.samples, strict=True)
        with np.errstate(all="ignore"):
            matrices = tuple(make_preconditioner(R, samples) for R, samples in factors)
        return Preconditioner(matrices, self._equations.fingerprint, self._equations.columns)

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
        assert self._preconditioner is not None, "prepare comes first"
        found, rough = self._through(self._preconditioner, chunk)
        if any(R is None for R in found) and chunk.length > REPRESENTATIVE:
            # The log as a whole says little about this stretch of it; what was found roughly says more.
            found, _ = self._through(replace(self._preconditioner, matrices=tuple(map(made_regular, rough))), chunk)
        if any(R is None for R in found) and chunk.length > REPRESENTATIVE:
            found, _ = self._through(self.precondition(chunk), chunk)
        if any(R is None for R in found):
            found = [S if R is None else R for R, S in zip(found, self._reflected(chunk), strict=True)]
        return [R for R in found if R is not None]

    def _through(self, preconditioner: Preconditioner, chunk: Chunk) -> tuple[list[Floats | None], list[Floats]]:
        """For each joint R from preconditioned cross products, or None where they do not resolve it; and R anyway."""
        grams = self._gram(chunk).grams(chunk.inputs(), preconditioner.matrices)
        rough = [factor_from_preconditioned(C, R0) for C, R0 in zip(grams, preconditioner.matrices, strict=True)]
        found = [
            R if np.isfinite(R).all() and is_well_resolved(C, R, R0) else None
            for C, R, R0 in zip(grams, rough, preconditioner.matrices, strict=True)
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
