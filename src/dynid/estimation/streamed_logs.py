"""Equations of logs larger than memory: reduced piece by piece; only factors and the beginnings of the logs are kept.

Estimators that work on factors find the same numbers as from the whole log in memory, because the blocks of time are
the same. For that, each log is streamed twice: once to count its samples, once to reduce them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError, DataError
from dynid.estimation.equations import TIME_BLOCKS, StreamedLog, StreamedLogs, merge_information, next_segment
from dynid.information import Information, reduce_stream
from dynid.parameters.base import BaseParameters, choose_base
from dynid.parameters.base_set import require_kept_columns
from dynid.processing.experiment import Experiment
from dynid.public_calls import public
from dynid.robot.model import Robot

__all__ = ["stream_equations"]

DRAWN = 20_000
"""Samples of a log's beginning that are kept, for reports to draw."""


@public
def stream_equations(
    robot: Robot,
    logs: Sequence[StreamedLog],
    *,
    base: BaseParameters | None = None,
    blocks: int = TIME_BLOCKS,
    threads: int = 1,
) -> StreamedLogs:
    """Reduce streams to equations.

    Args:
        robot: Geometry and terms; its parameter values serve as the prior.
        logs: For every log a function that starts its stream of processed pieces.
        base: The base parameters; of every motion by default.
        blocks: Into how many blocks of time each log is cut.
        threads: How many threads reduce.

    Raises:
        ArgumentError: There is no log, or it has other joints than the robot.
        DataError: A log has no sample.
        IdentifiabilityError: No valid sample is left.

    Example:
        >>> dynid.estimation.stream_equations(robot, [lambda: [run]])
        StreamedLogs('ddarm', 21 parameters, 1 logs)
    """
    if not logs:
        raise ArgumentError("no log is given", remedy="Give one or more.")
    for number, start in enumerate(logs):
        if not callable(start):
            raise ArgumentError(
                f"logs[{number}] is a {type(start).__name__}, which can be gone through only once",
                remedy="Give a function that starts the stream: lambda: dynid.process_stream(...).",
            )
    logs = [partial(_matched, robot, start) for start in logs]
    chosen = require_kept_columns(choose_base(robot, base))
    parts: list[Information] = []
    beginnings = []
    for start in logs:
        counted = _counted(robot, start())
        pieces = _numbered(start(), counted, blocks)
        part = reduce_stream(robot, pieces, columns=chosen.columns, threads=threads)
        parts.append(part.renumber(next_segment(parts)))
        beginnings.append(counted.beginning)
    return StreamedLogs(
        robot=robot,
        base=chosen,
        excerpts=tuple(beginnings),
        information=merge_information(parts),
        blocks=tuple(part.segments for part in parts),
        logs=tuple(logs),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Count:
    """What the first pass finds out."""

    samples: int
    gaps: int
    beginning: Experiment


def _matched(robot: Robot, start: StreamedLog) -> Iterator[Experiment]:
    """The pieces of a log with their columns in the robot's order."""
    return (piece.matched(robot) for piece in start())


def _counted(robot: Robot, pieces: Iterable[Experiment]) -> _Count:
    """Go through a stream once."""
    samples = gaps = 0
    beginning: Experiment | None = None
    dropped: Counter[str] = Counter()
    last_s = -np.inf
    for piece in pieces:
        if piece.q.shape[1] != robot.dof:
            raise ArgumentError(
                f"robot '{robot.name}' has {robot.dof} moving joints, the log has {piece.q.shape[1]}",
                remedy="Hold joints that are not in the log, or read more of its columns.",
            )
        beginning = beginning or piece.rows(slice(0, DRAWN))
        gaps += int(np.count_nonzero(_gaps(piece, last_s))) - (samples == 0)
        samples, last_s = samples + piece.samples, float(piece.time[-1])
        dropped.update(piece.dropped)
    if beginning is None:
        raise DataError("the log has no sample that can be used", remedy="See dynid check.")
    steps = (
        *beginning.processing_steps,
        f"streamed: {samples} samples in all, of which the first {beginning.samples} are kept",
    )
    return _Count(samples, gaps, replace(beginning, processing_steps=steps, dropped=dict(dropped)))


def _gaps(piece: Experiment, last_s: float) -> NDArray[np.bool_]:
    """(N,) whether a gap-free stretch begins at a sample; the piece before ended at `last_s`."""
    begins = np.zeros(piece.samples, dtype=bool)
    begins[0] = piece.time[0] - last_s > 1.5 / piece.rate_hz
    begins[1:] = np.diff(piece.segment) != 0
    return begins


def _numbered(pieces: Iterable[Experiment], counted: _Count, blocks: int) -> Iterator[tuple[Any, ...]]:
    """The pieces with the number of each sample's block of time, as `cut_blocks` numbers a whole log."""
    length = max(1, -(-counted.samples // max(1, blocks)))
    done, number, last_s = 0, -1, -np.inf
    for piece in pieces:
        coarse = np.arange(done, done + piece.samples) // length
        if counted.gaps <= blocks:
            change = _gaps(piece, last_s)
            change |= np.arange(done, done + piece.samples) % length == 0
            coarse = number + np.cumsum(change)
            number = int(coarse[-1])
        yield piece.q, piece.dq, piece.ddq, piece.effort, coarse, piece.valid
        done, last_s = done + piece.samples, float(piece.time[-1])
