"""Equations ``tau = Y theta`` with further columns from precomputed arrays, and a linear filter on both sides.

`reduction.reduce_extended` calls this for a processed log. The robot's regressor gives the rows (columns, torque) of
every joint, from a recorded program (tape). Further columns belong to effects that the program cannot record, such as
friction with a memory. Here the rows get these columns, go through the filter, and are reduced by Householder
reflections to triangles R (w, w) with ``R.T @ R == W.T @ W``.

When both sides of ``tau = Y theta`` go through the same linear filter, theta stays the same while the noise above the
pass band disappears ("parallel filtering", Gautier). An equation that is marked as not valid is set to zero on both
sides before the filter, so that it cannot act on its neighbours.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.data_reduction.chunks import PORTION, Chunk, LogArrays, Masks
from dynid.data_reduction.joint_equations import Equations, RowShape
from dynid.data_reduction.partial_results import Part
from dynid.data_reduction.triangular import are_moderate, triangle_of
from dynid.errors import DataError

Rows = Callable[[Chunk], list[Floats]]
"""Function from a checked chunk of N samples to the rows (N, w) of each joint: w - 1 columns, then the torque."""

FILTERED_COLUMNS = 16
"""Number of columns that are filtered at a time: the block size of the compiled filter."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Extension:
    """Further columns of the equations of a run, and a filter for all columns."""

    key: str
    """Text that identifies columns and filter: reduced logs with different keys cannot be merged."""
    further: tuple[Mapping[int, Floats], ...] = ()
    """For each further column: joint index -> (N,) torque on this joint per unit of the column's parameter; joints that
    are not in the mapping have zeros."""
    low_pass: Callable[[Floats], Floats] | None = None
    """A linear filter (N, k) -> (N, k) for the rows of a gap-free stretch; None for no filter."""
    step: int = 1
    """Every step-th filtered row is kept."""


def extend(equations: Equations, extension: Extension, parameters: int) -> RowShape:
    """Describe the rows that consist of the robot's columns and, behind them, the further columns.

    Args:
        equations: The robot's equations.
        extension: The further columns; the k-th gets the number ``parameters + k``.
        parameters: Number of all parameters of the robot.

    Returns:
        A hash that identifies the equations, the numbers of all columns, and for each joint the positions of the
        columns that act on it.
    """
    count = len(extension.further)
    supports = tuple(
        (*support, *(len(equations.columns) + k for k in _acting(extension, joint)))
        for joint, support in enumerate(equations.supports)
    )
    digest = hashlib.sha256(f"{equations.fingerprint}|{extension.key}".encode()).hexdigest()
    return RowShape(digest, (*equations.columns, *(parameters + k for k in range(count))), supports)


def _acting(extension: Extension, joint: int) -> list[int]:
    """Indices of the further columns that act on a joint."""
    return [k for k, column in enumerate(extension.further) if joint in column]


def reduce_tables(log: LogArrays, stretch: NDArray[np.int64], extension: Extension, rows: Rows) -> Iterator[Part]:
    """Reduce the extended equations of a run by Householder reflections, segment after segment.

    Args:
        log: All samples of the run, with the number of the segment that each belongs to.
        stretch: (N,) number of the gap-free stretch of each sample; the filter never runs across a gap. Stretches and
            segments may differ: segments are what the caller wants separate results for.
        extension: Further columns and filter.
        rows: Forms the robot's rows for a checked chunk.

    Yields:
        Triangles of all joints for some consecutive samples of one segment.

    Raises:
        DataError: if a number that counts is NaN, infinite or so large that squares overflow; names the sample.
    """
    numbers: Counter[int] = Counter()  # segment -> number of its next part
    for span in _spans(stretch, filtered=extension.low_pass is not None):
        valid = np.ones((span.stop - span.start, log.arrays[0].shape[1]), dtype=bool)
        if log.valid is not None:
            valid = log.valid[span]
        tables = _tables(log, span, valid, extension, rows)  # for each joint the filtered rows, every step-th
        valid = valid[:: extension.step]
        segments = log.segment[span][:: extension.step]
        edges = [0, *(np.flatnonzero(np.diff(segments)) + 1).tolist(), len(segments)]
        for start, stop in pairwise(edges):
            with np.errstate(all="ignore"):  # an overflow is reported below
                factors = tuple(triangle_of(table[start:stop]) for table in tables)
            if not are_moderate(factors):
                raise DataError(
                    f"the squares of the equations from sample {span.start + start * extension.step} on overflow",
                    remedy="Check units; mark samples that cannot be used in `valid`, or cut them out.",
                )
            segment = int(segments[start])
            counts = np.count_nonzero(valid[start:stop], axis=0)
            yield Part(segment, 0, numbers[segment], factors, tuple(counts.tolist()))
            numbers[segment] += 1


def _spans(stretch: NDArray[np.int64], *, filtered: bool) -> Iterator[slice]:
    """The samples whose rows are formed at a time: a whole stretch if a filter runs over it, else `PORTION`."""
    edges = [
        0,
        *((np.flatnonzero(np.diff(stretch)) + 1).tolist() if filtered else range(PORTION, len(stretch), PORTION)),
    ]
    for start, stop in zip(edges, [*edges[1:], len(stretch)], strict=True):
        if stop > start:
            yield slice(start, stop)


def _tables(log: LogArrays, span: slice, valid: Masks, extension: Extension, rows: Rows) -> list[Floats]:
    """Form the filtered rows of a span of samples.

    Args:
        log: All samples.
        span: Those to use, N of them.
        valid: (N, n) which equations count.
        extension: Further columns and filter.
        rows: Forms the robot's rows.

    Returns:
        For each joint (N / step, w): the robot's columns, the further columns that act on the joint, the torque.
    """
    pieces = []  # for each batch of samples the robot's rows of each joint
    for start in range(span.start, span.stop, PORTION):
        part = slice(start, min(start + PORTION, span.stop))
        mask = None if log.valid is None else log.valid[part]
        # segment and number of the chunk do not matter to its rows
        pieces.append(rows(Chunk(0, 0, start, tuple(array[part] for array in log.arrays), mask).check()))
    result = []
    for joint, batches in enumerate(zip(*pieces, strict=True)):
        acting = _acting(extension, joint)
        counts = valid[:, joint]
        further = np.zeros((len(acting), span.stop - span.start))
        for k, column in zip(acting, further, strict=True):
            column[counts] = extension.further[k][joint][span][counts]
            _check_finite(column, k, joint, span.start)
        tables = [np.concatenate(batches), further.T]  # the first has the torque as its last column
        if (low_pass := extension.low_pass) is not None:
            tables = [_filter(table, counts, low_pass, extension.step) for table in tables if table.size]
        result.append(np.column_stack([tables[0][:, :-1], *tables[1:], tables[0][:, -1]]))
    return result


def _check_finite(column: Floats, number: int, joint: int, first: int) -> None:
    """Raise an error for the first number of a further column that is not finite, if there is one."""
    if np.isfinite(column.sum()):  # quicker than to look at every number; it also fails for a sum that overflows
        return
    places = np.flatnonzero(~np.isfinite(column))
    if len(places):
        raise DataError(
            f"further column {number + 1} of joint {joint + 1} is not finite at sample {first + int(places[0])}",
            remedy="Mark the samples that cannot be used in `valid`, or cut them out.",
        )


def _filter(table: Floats, valid: Masks, low_pass: Callable[[Floats], Floats], step: int) -> Floats:
    """Filter a table (N, k) and keep every step-th row; zero where the equation is not valid (N,)."""
    parts = [table[:, first : first + FILTERED_COLUMNS] for first in range(0, table.shape[1], FILTERED_COLUMNS)]
    return np.where(valid[::step, None], np.concatenate([low_pass(part)[::step] for part in parts], axis=1), 0.0)
