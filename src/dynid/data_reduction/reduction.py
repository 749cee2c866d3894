"""Reduce the equations ``tau = Y theta`` of a log to small triangular matrices (`Information`), chunk after chunk.

For each joint, the rows W = (columns of the regressor, torque) of many samples are replaced by an upper triangular R
with ``R.T @ R == W.T @ W``. Least squares on R gives the same parameters as on W. `triangular` describes the two ways
used here: cross products of preconditioned rows (fast), or Householder reflections (where cross products lose digits).

Identification calls `reduce_extended` with a processed log: its equations may have further columns, which do not come
from the robot's regressor, and may go through a low-pass filter. `reduce_samples` is for plain arrays of samples.

The rows come from a *tape*: the torque regressor recorded once as a program of scalar operations, which NumPy
interprets or LLVM compiles. A *chunk* is at most 61440 consecutive samples; a *part* is what a chunk is reduced to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.array_types import Floats
from dynid.data_reduction.chunks import PORTION, Chunk, LogArrays, Run, check_samples, cut
from dynid.data_reduction.cross_products import NumpyGram
from dynid.data_reduction.extension import Extension, extend, reduce_tables
from dynid.data_reduction.information import Information
from dynid.data_reduction.joint_equations import Equations, RowShape, equations
from dynid.data_reduction.partial_results import Forest, Part
from dynid.data_reduction.triangular import (
    append_many_rows,
    are_moderate,
    factor_from_preconditioned,
    make_preconditioner,
    triangle_of,
)
from dynid.robot.model import Robot
from dynid.tape.program import Backend, compiles
from dynid.tape.tape import Tape


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
    backend: Backend = "auto",
) -> Information:
    """Reduce samples to one triangular matrix per joint and segment, as accurately as Householder reflections would.

    A segment is a numbered stretch of the log. Reduce a log that does not fit into memory in several calls, and merge
    the results with `Information.merge`.

    Args:
        robot: The robot; its parameter values do not matter.
        q: (N, n) joint positions [rad or m].
        dq: (N, n) velocities [rad/s or m/s].
        ddq: (N, n) accelerations [rad/s^2 or m/s^2].
        tau: (N, n) joint torques [N m or N].
        columns: Columns of the regressor, indices into `Robot.parameter_vector`; all by default.
        segments: (N,) number of the gap-free stretch each sample belongs to; one stretch by default.
        valid: (N, n) or (N,) which equations count; what does not count may be NaN. All by default.
        backend: ``llvm``, ``numpy``, or ``auto`` for the first that works.

    Raises:
        DataError: if a number that counts is NaN or infinite, or a shape is wrong.

    Example:
        >>> dynid.data_reduction.reduce_samples(robot, run.q, run.dq, run.ddq, run.effort).robot
        'ddarm'
    """
    rows = equations(robot, columns)  # the tapes that form the rows of each joint
    log = check_samples(robot.dof, (q, dq, ddq, tau), valid, segments)
    reducer = _Reducer(_tape_gram(rows, backend), _spread(log))
    return _collect(robot, rows, map(reducer.part, cut(log)))


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
        run: Samples in memory; its `segment` numbers the gap-free stretches. The filter never runs across a gap.
        extension: Further columns and filter. If the robot has p parameters, further column k gets the number
            ``p + k`` in `Information.columns`.
        columns: Columns of the regressor; all by default.
        segments: (N,) number of the segment of the result to which each sample belongs; the run's `segment` by default.

    Raises:
        DataError: if a number that counts is NaN or infinite, or a shape is wrong.
    """
    rows = equations(robot, columns)
    shape = extend(rows, extension, robot.parameter_vector.size)  # numbers of all columns, and which act on which joint
    numbers = run.segment if segments is None else segments
    log = check_samples(robot.dof, (run.q, run.dq, run.ddq, run.effort), run.valid, numbers)
    gram = _tape_gram(rows, "auto")
    parts = reduce_tables(log, run.segment, extension, lambda chunk: gram(chunk).rows(chunk.inputs()))
    return _collect(robot, shape, parts)


def _spread(log: LogArrays) -> Chunk:
    """About `PORTION` samples spread evenly over a log, for the preconditioner.

    Samples that are not finite do not count here; the reduction of the whole log refuses and names them.
    """
    rows = np.arange(0, len(log.segment), max(1, len(log.segment) // PORTION))
    q, dq, ddq, tau = arrays = tuple(np.asarray(array[rows], dtype=np.float64) for array in log.arrays)
    is_finite = np.isfinite(np.hstack((q, dq, ddq))).all(axis=1, keepdims=True) & np.isfinite(tau)
    counts: NDArray[np.bool_] = is_finite if log.valid is None else is_finite & log.valid[rows]
    return Chunk(segment=0, number=0, first=0, arrays=arrays, valid=counts)


def _collect(robot: Robot, shape: RowShape, parts: Iterable[Part]) -> Information:
    """Combine the reduced chunks to an `Information`."""
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


class _Gram(Protocol):
    """Forms the rows W (N, w) of all joints, or their cross products ``W.T @ W`` (w, w), from the inputs of a tape.

    `NumpyGram` describes the methods.
    """

    def rows(self, inputs: Sequence[Floats]) -> list[Floats]: ...
    def grams(self, inputs: Sequence[Floats], preconditioners: Sequence[Floats] | None = None) -> list[Floats]: ...


class _Reducer:
    """Reduces chunks of one log: cross products of preconditioned rows, reflections where those lose digits."""

    def __init__(self, gram: Callable[[Chunk], _Gram], sample: Chunk) -> None:
        """Make for each joint a preconditioner that gives the log nearly orthonormal columns.

        Args:
            gram: Gives the `_Gram` for a checked chunk, see `_tape_gram`.
            sample: Representative samples of the log.
        """
        self._gram = gram
        checked = sample.check()
        with np.errstate(all="ignore"):  # the numbers of the log may overflow; `part` reports it
            factors = zip(self._reflect(checked), checked.samples, strict=True)
            self._preconditioners = tuple(make_preconditioner(R, samples) for R, samples in factors)

    def part(self, raw: Chunk) -> Part:
        """Reduce a chunk to one triangle per joint.

        Raises:
            DataError: if a number is NaN, infinite, or so large that squares overflow; names the sample.
        """
        chunk = raw.check()
        with np.errstate(all="ignore"):
            grams = self._gram(chunk).grams(chunk.inputs(), self._preconditioners)
            found = list(map(factor_from_preconditioned, grams, self._preconditioners))
            if any(R is None for R in found):  # cross products of these joints lost digits: use reflections
                found = [S if R is None else R for R, S in zip(found, self._reflect(chunk), strict=True)]
            factors = tuple(R for R in found if R is not None)  # all of them; this tells the type checker so
        if not are_moderate(factors):
            raise chunk.overflow()
        return Part(chunk.segment, level=0, position=chunk.number, matrices=factors, samples=chunk.samples)

    def _reflect(self, chunk: Chunk) -> list[Floats]:
        """For each joint the triangle (w, w) of its rows, by Householder reflections."""
        factors: list[Floats] = []
        for start in range(0, max(chunk.length, 1), PORTION):
            rows = self._gram(chunk).rows(chunk.inputs(slice(start, start + PORTION)))
            if start == 0:
                factors = [triangle_of(W) for W in rows]
            else:
                factors = [append_many_rows(R, W) for R, W in zip(factors, rows, strict=True)]
        return factors


def _tape_gram(equations: Equations, backend: Backend) -> Callable[[Chunk], _Gram]:
    """The function from a chunk to what forms its rows; a chunk whose equations all count has a cheaper tape."""
    chosen: Literal["llvm", "numpy"] = "llvm" if compiles(backend) else "numpy"
    return lambda chunk: _gram(equations.plain if chunk.valid is None else equations.masked, chosen)


@lru_cache(maxsize=64)
def _gram(tape: Tape, backend: Literal["llvm", "numpy"]) -> _Gram:
    """What forms the rows of a tape, compiled once."""
    if backend == "numpy":
        return NumpyGram(tape)
    from dynid.tape.llvm.gram import LlvmGram

    return LlvmGram(tape)
