"""Logs to `Information`, chunk after chunk, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.information.chunks import Chunk, Piece, Run, cut, piece
from dynid.information.extension import TABLE_GRAM, Extension, extend, table_chunks
from dynid.information.information import Information, Kind, combination
from dynid.information.joint_equations import RowShape, equations
from dynid.information.methods import REPRESENTATIVE, Method, Reducer, tape_gram
from dynid.information.partial_results import Forest
from dynid.robot.model import Robot
from dynid.tape.program import Backend, check_threads

Item = TypeVar("Item")
Result = TypeVar("Result")


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
    method: Method = "preconditioned",
    threads: int = 1,
    backend: Backend = "auto",
) -> Information:
    """Reduce samples in memory to one factor per joint and segment.

    Args:
        robot: The robot; its parameter values do not matter.
        q: (N, n) joint positions [rad or m].
        dq: (N, n) velocities.
        ddq: (N, n) accelerations.
        tau: (N, n) joint torques [N m or N].
        columns: Columns of the regressor, indices into `Robot.parameter_vector`; all by default.
        segments: (N,) number of the gap-free stretch each sample belongs to; one stretch by default.
        valid: (N, n) or (N,) which equations count; what does not count may be NaN. All by default.
        method: ``preconditioned``: as accurate as QR at nearly the speed of cross products; ``gram``: cross products,
            the fastest, loses half of the digits; ``qr``: Householder reflections, the reference.
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
    reducer = Reducer(method, tape_gram(setup, backend))
    if len(whole.segment):
        reducer.prepare(lambda: _spread(whole))
    return _reduce_chunks(robot, setup, method, reducer, cut([whole]), threads)


def reduce_stream(
    robot: Robot,
    chunks: Iterable[Run | tuple[ArrayLike, ...]],
    *,
    columns: Sequence[int] | None = None,
    method: Method = "preconditioned",
    threads: int = 1,
    backend: Backend = "auto",
) -> Information:
    """Reduce samples that come in pieces, of any size, and need not fit into memory together.

    Args:
        robot: The robot; its parameter values do not matter.
        chunks: Either consecutive pieces of one log, tuples ``(q, dq, ddq, tau)`` that may be followed by segment
            numbers and by masks (see `reduce_samples`; None leaves one out); or whole runs such as `dynid.Experiment`,
            whose segments are numbered on from one run to the next. Where a log is cut into pieces makes no difference.
        columns: Columns of the regressor; all by default.
        method: See `reduce_samples`. The preconditioner is made from the first samples.
        threads: How many threads share the chunks; the result does not depend on it.
        backend: See `reduce_samples`.

    Raises:
        DataError: if a number that counts is NaN or infinite, or a shape is wrong.

    Example:
        >>> dynid.information.reduce_stream(robot, [(run.q, run.dq, run.ddq, run.effort)]).robot
        'ddarm'
    """
    setup = equations(robot, columns)
    reducer = Reducer(method, tape_gram(setup, backend))
    check_threads(threads)
    rest = cut(_pieces(robot.dof, chunks, copy=threads > 1))
    first = list(islice(rest, 1))
    if first:
        reducer.prepare(lambda: first[0])
    return _reduce_chunks(robot, setup, method, reducer, chain(first, rest), threads)


def reduce_extended(
    robot: Robot,
    run: Run,
    extension: Extension,
    *,
    columns: Sequence[int] | None = None,
    segments: ArrayLike | None = None,
    method: Method = "qr",
    threads: int = 1,
    backend: Backend = "auto",
) -> Information:
    """Reduce a run whose equations have further columns, or go through a filter.

    Args:
        robot: The robot; its parameter values do not matter.
        run: Samples in memory; its `segment` numbers the gap-free stretches that the filter runs along.
        extension: Further columns and filter. Further column k has the number ``p + k`` in the result, p parameters of
            the robot.
        columns: Columns of the regressor; all by default.
        segments: (N,) number of the block of time of each sample; the run's `segment` by default.
        method: See `reduce_samples`; rows that are in memory anyway are reflected as fast as the others reduce them.
        threads: How many threads share the chunks; the result does not depend on it.
        backend: See `reduce_samples`.

    Raises:
        DataError: if a number that counts is NaN or infinite, or a shape is wrong.
    """
    setup = equations(robot, columns)
    shape = extend(setup, extension, robot.parameter_vector.size)
    numbers = run.segment if segments is None else segments
    whole = piece(robot.dof, (run.q, run.dq, run.ddq, run.effort), run.valid, numbers)
    gram = tape_gram(setup, backend)
    chunks = table_chunks(whole, run.segment, extension, lambda chunk: gram(chunk).rows(chunk.inputs()))
    reducer = Reducer(method, lambda _: TABLE_GRAM)
    first = list(islice(chunks, 1))
    if first:
        reducer.prepare(lambda: first[0])
    return _reduce_chunks(robot, shape, method, reducer, chain(first, chunks), threads)


def _pieces(dof: int, chunks: Iterable[Run | tuple[ArrayLike, ...]], copy: bool) -> Iterator[Piece]:
    """The pieces of a stream, copied where one is asked for before the last is reduced: arrays may be used again."""
    following = 0
    for chunk in chunks:
        if isinstance(chunk, tuple):
            if not 4 <= len(chunk) <= 6:
                raise DataError(
                    f"a piece of {len(chunk)} arrays", remedy="Give (q, dq, ddq, tau[, segments[, valid]])."
                )
            arrays = [np.array(array) if copy and array is not None else array for array in chunk]
            segment, valid = (*arrays[4:], None, None)[:2]
            yield piece(dof, arrays[:4], valid, segment)
        elif not hasattr(chunk, "segment"):
            raise DataError(
                f"a piece is {type(chunk).__name__}",
                remedy="Give tuples (q, dq, ddq, tau) or experiments: dynid.process(recording).",
            )
        else:
            places, count = _numbered(chunk.segment)
            states = (chunk.q, chunk.dq, chunk.ddq, chunk.effort)
            yield piece(dof, states, chunk.valid, following + places)
            following += count


def _numbered(segment: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Segments (N,) numbered from zero in the order of their own numbers, and how many there are."""
    if len(segment) and segment.min() == segment.max():  # nearly all pieces of a long log
        return np.zeros(len(segment), dtype=np.int64), 1
    numbers, places = np.unique(segment, return_inverse=True)
    return places.reshape(-1), len(numbers)


def _spread(whole: Piece) -> Chunk:
    """Some samples spread over a log, those with strange numbers left out (the reduction itself will name them)."""
    rows = np.arange(0, len(whole.segment), max(1, len(whole.segment) // REPRESENTATIVE))
    arrays = tuple(np.asarray(array[rows], dtype=np.float64) for array in whole.arrays)
    moving = np.isfinite(np.hstack(arrays[:3])).all(axis=1, keepdims=True)
    good = moving & np.isfinite(arrays[3])
    counts: NDArray[np.bool_] = good if whole.valid is None else good & whole.valid[rows]
    return Chunk(0, 0, 0, arrays, counts)


def _reduce_chunks(
    robot: Robot, setup: RowShape, method: Method, reducer: Reducer, chunks: Iterable[Chunk], threads: int
) -> Information:
    check_threads(threads)
    kind: Kind = "gram" if method == "gram" else "factor"
    forest = Forest(combination(kind))
    for part in _in_order(reducer.part, chunks, threads):
        forest.add(part)
    return Information(
        robot=robot.name,
        fingerprint=setup.fingerprint,
        columns=setup.columns,
        supports=setup.supports,
        kind=kind,
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
