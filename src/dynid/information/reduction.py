"""Logs to `Information`, chunk after chunk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.arrays import Floats
from dynid.checks import as_whole
from dynid.information.chunks import Chunk, Piece, Run, cut, piece
from dynid.information.cross_products import NumpyGram
from dynid.information.extension import Extension, extend, reduce_tables
from dynid.information.information import Information
from dynid.information.joint_equations import Equations, RowShape, equations
from dynid.information.partial_results import Forest, Part
from dynid.information.triangular import (
    append_many_rows,
    are_moderate,
    factor_from_preconditioned,
    make_preconditioner,
    triangle_of,
)
from dynid.robot.model import Robot
from dynid.tape.program import Backend, compiles
from dynid.tape.tape import Tape

Item = TypeVar("Item")
Result = TypeVar("Result")

REPRESENTATIVE = 2048
"""Number of samples that a preconditioner is made of (convention: many times the number of columns)."""


def reduce_samples(
    robot: Robot,
    q: ArrayLike,
    dq: ArrayLike,
    ddq: ArrayLike,
    tau: ArrayLike,
    *,
    columns: Sequence[int] | None = None,
    segments: ArrayLike | None = None,
    valid: ArrayLike | None = None,
    threads: int = 1,
    backend: Backend = "auto",
) -> Information:
    """Reduce samples to one factor per joint and segment, as accurately as Householder reflections would.

    Logs that do not fit into memory are reduced piece by piece and merged; see `Information.merge`.

    Args:
        robot: The robot; its parameter values do not matter.
        q: (N, n) joint positions [rad or m].
        dq: (N, n) velocities.
        ddq: (N, n) accelerations.
        tau: (N, n) joint torques [N m or N].
        columns: Columns of the regressor, indices into `Robot.parameter_vector`; all by default.
        segments: (N,) number of the gap-free stretch each sample belongs to; one stretch by default.
        valid: (N, n) or (N,) which equations count; what does not count may be NaN. All by default.
        threads: How many threads share the chunks; the result is the same, bit for bit, for any number.
        backend: ``llvm``, ``numpy``, or ``auto`` for the first that works.

    Raises:
        DataError: if a number that counts is NaN or infinite, or a shape is wrong.

    Example:
        >>> dynid.information.reduce_samples(robot, run.q, run.dq, run.ddq, run.effort).robot
        'ddarm'
    """
    setup = equations(robot, columns)
    whole = piece(robot.dof, (q, dq, ddq, tau), valid, segments)
    as_whole("threads", threads, least=1)
    reducer = _Reducer(_tape_gram(setup, backend), _spread(whole))
    return _collect(robot, setup, _in_order(reducer.part, cut(whole), threads))


def reduce_extended(
    robot: Robot,
    run: Run,
    extension: Extension,
    *,
    columns: Sequence[int] | None = None,
    segments: ArrayLike | None = None,
) -> Information:
    """Reduce a run whose equations have further columns, or go through a filter.

    Args:
        robot: The robot; its parameter values do not matter.
        run: Samples in memory; its `segment` numbers the gap-free stretches that the filter runs along.
        extension: Further columns and filter. Further column k has the number ``p + k`` in the result, p parameters of
            the robot.
        columns: Columns of the regressor; all by default.
        segments: (N,) number of the block of time of each sample; the run's `segment` by default.

    Raises:
        DataError: if a number that counts is NaN or infinite, or a shape is wrong.
    """
    setup = equations(robot, columns)
    shape = extend(setup, extension, robot.parameter_vector.size)
    numbers = run.segment if segments is None else segments
    whole = piece(robot.dof, (run.q, run.dq, run.ddq, run.effort), run.valid, numbers)
    gram = _tape_gram(setup, "auto")
    parts = reduce_tables(whole, run.segment, extension, lambda chunk: gram(chunk).rows(chunk.inputs()))
    return _collect(robot, shape, parts)


def _spread(whole: Piece) -> Chunk:
    """Some samples spread over a log, those with strange numbers left out (the reduction itself will name them)."""
    rows = np.arange(0, len(whole.segment), max(1, len(whole.segment) // REPRESENTATIVE))
    arrays = tuple(np.asarray(array[rows], dtype=np.float64) for array in whole.arrays)
    moving = np.isfinite(np.hstack(arrays[:3])).all(axis=1, keepdims=True)
    good = moving & np.isfinite(arrays[3])
    counts: NDArray[np.bool_] = good if whole.valid is None else good & whole.valid[rows]
    return Chunk(0, 0, 0, arrays, counts)


def _collect(robot: Robot, shape: RowShape, parts: Iterable[Part]) -> Information:
    forest = Forest()
    for part in parts:
        forest.add(part)
    return Information(
        robot=robot.name,
        fingerprint=shape.fingerprint,
        columns=shape.columns,
        supports=shape.supports,
        parts=forest.parts(),
    )


def _in_order(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """The results in the order of the items, of which one more than there are threads is taken at a time.

    The one more is what a thread goes on with when it is done: none ever waits for the slowest of the others.
    """
    if threads <= 1:
        yield from map(function, items)
        return
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


class _Gram(Protocol):
    """What reduces the outputs of a tape; see `NumpyGram`."""

    def rows(self, inputs: Sequence[Floats]) -> list[Floats]: ...
    def grams(self, inputs: Sequence[Floats], preconditioners: Sequence[Floats] | None = None) -> list[Floats]: ...


class _Reducer:
    """Reduces chunks of one log: cross products of preconditioned rows, reflections where those lose digits."""

    def __init__(self, gram: Callable[[Chunk], _Gram], sample: Chunk) -> None:
        """Make for each joint a triangle that gives the log nearly orthonormal columns.

        Args:
            gram: What forms rows and cross products from the inputs of a checked chunk.
            sample: Representative samples of the log.
        """
        self._gram, few = gram, sample.check()
        with np.errstate(all="ignore"):
            factors = zip(self._reflected(few), few.samples, strict=True)
            self._preconditioners = tuple(make_preconditioner(R, samples) for R, samples in factors)

    def part(self, raw: Chunk) -> Part:
        """What a chunk says.

        Raises:
            DataError: if a number is NaN, infinite, or so large that squares overflow; names the sample.
        """
        chunk = raw.check()
        with np.errstate(all="ignore"):
            grams = self._gram(chunk).grams(chunk.inputs(), self._preconditioners)
            found = list(map(factor_from_preconditioned, grams, self._preconditioners))
            if any(R is None for R in found):
                found = [S if R is None else R for R, S in zip(found, self._reflected(chunk), strict=True)]
            factors = tuple(R for R in found if R is not None)
        if not are_moderate(factors):
            raise chunk.overflow()
        return Part(chunk.segment, 0, chunk.number, factors, chunk.samples)

    def _reflected(self, chunk: Chunk) -> list[Floats]:
        """For each joint R by Householder reflections."""
        factors: list[Floats] = []
        for start in range(0, max(chunk.length, 1), REPRESENTATIVE):
            rows = self._gram(chunk).rows(chunk.inputs(slice(start, start + REPRESENTATIVE)))
            if not start:
                factors = [triangle_of(W) for W in rows]
            else:
                factors = [append_many_rows(R, W) for R, W in zip(factors, rows, strict=True)]
        return factors


def _tape_gram(equations: Equations, backend: Backend) -> Callable[[Chunk], _Gram]:
    """Rows and cross products from a robot's tapes."""
    chosen: Literal["llvm", "numpy"] = "llvm" if compiles(backend) else "numpy"
    return lambda chunk: _gram(equations.plain if chunk.valid is None else equations.masked, chosen)


@lru_cache(maxsize=64)
def _gram(tape: Tape, backend: Literal["llvm", "numpy"]) -> _Gram:
    if backend == "numpy":
        return NumpyGram(tape)
    from dynid.tape.llvm.gram import LlvmGram

    return LlvmGram(tape)
