"""Equations beyond the tape: further columns from precomputed arrays, and a linear filter on both sides.

The tape gives the rows of every joint; here they get further columns, go through the filter and are reflected. When
both sides of ``tau = Y theta`` go through the same linear
filter, theta stays the same while the noise above the band goes ("parallel filtering", Gautier). An equation that does
not count is set to zero on both sides before the filter, so that it cannot act on its neighbours.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import DataError
from dynid.information.chunks import Chunk, Piece
from dynid.information.joint_equations import Equations, RowShape
from dynid.information.partial_results import Part
from dynid.information.triangular import are_moderate, triangle_of

Masks = NDArray[np.bool_]
Rows = Callable[[Chunk], list[Floats]]
"""From a checked chunk to the rows (N, w) of each joint."""

TABLE_SAMPLES = 8192
"""Samples whose rows are formed at a time where no filter needs a whole stretch (convention: some megabytes)."""
AT_ONCE = 16
"""Number of columns that are filtered at a time: the block size of the compiled filter."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Extension:
    """What the equations of a run have besides the tape's columns."""

    key: str
    """Identifies columns and filter: information with different keys cannot be merged."""
    further: tuple[Mapping[int, Floats], ...] = ()
    """For each further column: joint index -> (N,) torque per unit of its parameter; the other joints have zeros."""
    low_pass: Callable[[Floats], Floats] | None = None
    """A linear filter (N, k) -> (N, k) for the rows of a gap-free stretch; None for no filter."""
    step: int = 1
    """Every step-th filtered row is kept."""


def extend(equations: Equations, extension: Extension, parameters: int) -> RowShape:
    """Columns and supports of the tape's columns followed by the further ones.

    Args:
        equations: The tape's.
        extension: The further columns; the k-th gets the number ``parameters + k``.
        parameters: Number of all parameters of the robot.
    """
    count = len(extension.further)
    supports = tuple(
        (*support, *(len(equations.columns) + k for k in _acting(extension, joint)))
        for joint, support in enumerate(equations.supports)
    )
    digest = hashlib.sha256(f"{equations.fingerprint}|{extension.key}".encode()).hexdigest()
    return RowShape(digest, (*equations.columns, *(parameters + k for k in range(count))), supports)


def _acting(extension: Extension, joint: int) -> list[int]:
    """The further columns that act on a joint."""
    return [k for k, column in enumerate(extension.further) if joint in column]


def reduce_tables(whole: Piece, stretch: NDArray[np.int64], extension: Extension, rows: Rows) -> Iterator[Part]:
    """The extended equations of a run, block of time after block of time, by Householder reflections.

    Args:
        whole: All samples of the run, with the number of each one's block.
        stretch: (N,) number of the gap-free stretch of each sample; the filter never runs across a gap.
        extension: Further columns and filter.
        rows: Forms the tape's rows.

    Raises:
        DataError: if a number that counts is NaN, infinite or so large that squares overflow; names the sample.
    """
    numbers: Counter[int] = Counter()
    for span in _spans(stretch, filtered=extension.low_pass is not None):
        valid = np.ones((span.stop - span.start, whole.arrays[0].shape[1]), dtype=bool)
        if whole.valid is not None:
            valid = whole.valid[span]
        tables = _tables(whole, span, valid, extension, rows)
        valid, blocks = valid[:: extension.step], whole.segment[span][:: extension.step]
        edges = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(blocks)]
        for start, stop in pairwise(edges):
            with np.errstate(all="ignore"):
                factors = tuple(triangle_of(table[start:stop]) for table in tables)
            if not are_moderate(factors):
                raise DataError(
                    f"the squares of the equations from sample {span.start + start * extension.step} on overflow",
                    remedy="Check units; mark samples that cannot be used in `valid`, or cut them out.",
                )
            segment, counts = int(blocks[start]), np.count_nonzero(valid[start:stop], axis=0)
            yield Part(segment, 0, numbers[segment], factors, tuple(counts.tolist()))
            numbers[segment] += 1


def _spans(stretch: NDArray[np.int64], *, filtered: bool) -> Iterator[slice]:
    """What is formed at a time: whole stretches for a filter, else some thousand samples."""
    edges = [
        0,
        *(
            (np.flatnonzero(np.diff(stretch)) + 1).tolist()
            if filtered
            else range(TABLE_SAMPLES, len(stretch), TABLE_SAMPLES)
        ),
    ]
    for start, stop in zip(edges, [*edges[1:], len(stretch)], strict=True):
        if stop > start:
            yield slice(start, stop)


def _tables(whole: Piece, span: slice, valid: Masks, extension: Extension, rows: Rows) -> list[Floats]:
    """For each joint the table of a span: the tape's columns, the further ones, the torque; filtered."""
    pieces, result = [], []
    for start in range(span.start, span.stop, TABLE_SAMPLES):
        part = slice(start, min(start + TABLE_SAMPLES, span.stop))
        mask = None if whole.valid is None else whole.valid[part]
        pieces.append(rows(Chunk(0, 0, start, tuple(array[part] for array in whole.arrays), mask).check()))
    for joint, parts in enumerate(zip(*pieces, strict=True)):
        acting, counts = _acting(extension, joint), valid[:, joint]
        own, further = np.concatenate(parts), np.zeros((len(acting), span.stop - span.start))
        for k, column in zip(acting, further, strict=True):
            column[counts] = extension.further[k][joint][span][counts]
            _check_finite(column, k, joint, span.start)
        both = [own, further.T]
        if (low_pass := extension.low_pass) is not None:
            both = [_filtered(table, counts, low_pass, extension.step) for table in both if table.size]
        result.append(np.column_stack([both[0][:, :-1], *both[1:], both[0][:, -1]]))
    return result


def _check_finite(column: Floats, number: int, joint: int, first: int) -> None:
    if np.isfinite(column.sum()):  # quicker than to look at every number; a sum that overflows says nothing
        return
    strange = np.flatnonzero(~np.isfinite(column))
    if len(strange):
        raise DataError(
            f"further column {number + 1} of joint {joint + 1} is not finite at sample {first + int(strange[0])}",
            remedy="Mark the samples that cannot be used in `valid`, or cut them out.",
        )


def _filtered(table: Floats, valid: Masks, low_pass: Callable[[Floats], Floats], step: int) -> Floats:
    """The kept rows of a filtered table; zero where the equation does not count."""
    parts = [table[:, first : first + AT_ONCE] for first in range(0, table.shape[1], AT_ONCE)]
    return np.where(valid[::step, None], np.concatenate([low_pass(part)[::step] for part in parts], axis=1), 0.0)
