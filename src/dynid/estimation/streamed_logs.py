"""Equations of logs larger than memory: reduced piece by piece; only factors and the beginnings of the logs are kept.

A log is streamed once and reduced in many short blocks of time, because nobody knows its length before its end; they
are then joined to about as many as a log in memory has. Their borders lie near those of a log in memory, a third of a
block aside at most, and a sixth from two million samples on. A log of fewer than `LONG` samples is streamed a second
time, and its blocks are exactly those of a log in memory: estimators that work on factors then find the same numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError, DataError
from dynid.estimation.equations import TIME_BLOCKS, Factors, StreamedLog, merge_information, next_segment
from dynid.information import Information, reduce_stream
from dynid.information.chunks import CHUNK
from dynid.parameters.base import choose_base
from dynid.parameters.base_set import BaseParameters, require_kept_columns
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

DRAWN = 20_000
"""Samples of a log's beginning that are kept, for reports to draw."""
LONG = 1_000_000
"""Samples from which on a log is streamed once (convention: a second time takes about a second below)."""
FEWEST_BLOCKS = 32
"""Short blocks that a log of two million samples or more has at least at any time (derivation: with ten blocks in the
end, their borders are off by less than 10 / 32 / 2 of a block). The first ones are as long as a chunk of the reduction,
later ones twice as long each: within much shorter ones the motion says too little for a fast reduction."""


def stream_equations(
    robot: Robot,
    logs: Sequence[StreamedLog],
    *,
    base: BaseParameters | None = None,
    blocks: int = TIME_BLOCKS,
    threads: int = 1,
) -> Factors:
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
        Factors('ddarm', 21 parameters, 1 logs)
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
        watched = _Watched(robot)
        part = reduce_stream(robot, watched.numbered(start()), columns=chosen.columns, threads=threads)
        beginnings.append(watched.excerpt())
        if watched.samples < LONG:
            pieces = _numbered(start(), watched, blocks)
            part = reduce_stream(robot, pieces, columns=chosen.columns, threads=threads)
        else:
            part = part.group(watched.blocks(blocks))
        parts.append(part.renumber(next_segment(parts)))
    return Factors(
        robot=robot,
        base=chosen,
        excerpts=tuple(beginnings),
        information=merge_information(parts),
        blocks=tuple(part.segments for part in parts),
    )


def _matched(robot: Robot, start: StreamedLog) -> Iterator[Experiment]:
    """The pieces of a log with their columns in the robot's order."""
    return (piece.matched(robot) for piece in start())


class _Watched:
    """What goes through a stream: its samples, gaps and short blocks of time."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self.samples = 0
        self.gaps = -1
        """Gaps between stretches; the first stretch begins without one."""
        self._beginning: Experiment | None = None
        self._dropped: Counter[str] = Counter()
        self._starts: list[int] = []
        self._stretches: list[int] = []
        self._next = 0

    def numbered(self, pieces: Iterable[Experiment]) -> Iterator[tuple[Any, ...]]:
        """The pieces with the number of each sample's short block of time."""
        last_s = -np.inf
        for piece in pieces:
            if piece.q.shape[1] != self._robot.dof:
                raise ArgumentError(
                    f"robot '{self._robot.name}' has {self._robot.dof} moving joints, the log has {piece.q.shape[1]}",
                    remedy="Hold joints that are not in the log, or read more of its columns.",
                )
            self._beginning = self._beginning or piece.rows(slice(0, DRAWN))
            self._dropped.update(piece.dropped)
            known = len(self._starts) - 1
            self._begin_blocks(np.flatnonzero(_gaps(piece, last_s)).tolist(), piece.samples)
            rows = np.arange(self.samples, self.samples + piece.samples)
            numbers = known + np.searchsorted(self._starts[known + 1 :], rows, side="right")
            self.samples, last_s = self.samples + piece.samples, float(piece.time[-1])
            yield piece.q, piece.dq, piece.ddq, piece.effort, numbers, piece.valid

    def _begin_blocks(self, gaps: Sequence[int], length: int) -> None:
        """Note the blocks that begin in a piece: at each of its gaps, and where the one before is long enough."""
        stop = self.samples + length
        for edge in (*(self.samples + gap for gap in gaps), stop):
            while self._next < edge:
                self._begin_block(self._next)
            if edge < stop:
                self.gaps += 1
                self._begin_block(edge)

    def _begin_block(self, at: int) -> None:
        self._starts.append(at)
        self._stretches.append(self.gaps)
        doublings = max(at // (FEWEST_BLOCKS * CHUNK), 1).bit_length() - 1
        self._next = at + (CHUNK << doublings)

    def blocks(self, count: int) -> dict[int, int]:
        """Short block -> the block that it becomes a part of, of about `count`; they end at gaps as in `cut_blocks`."""
        length = max(1, -(-self.samples // max(1, count)))
        edges = np.array([*self._starts, self.samples])
        coarse = (edges[1:] + edges[:-1]) // 2 // length
        change = np.diff(coarse, prepend=-1) != 0
        if self.gaps <= count:
            change |= np.diff(self._stretches, prepend=-1) != 0
        return dict(enumerate((np.cumsum(change) - 1).tolist()))

    def excerpt(self) -> Experiment:
        """The beginning of the log, with what was left out of all of it."""
        if self._beginning is None:
            raise DataError("the log has no sample that can be used", remedy="See dynid check.")
        kept = self._beginning
        note = f"streamed: {self.samples} samples in all, of which the first {kept.samples} are kept"
        return replace(kept, processing_steps=(*kept.processing_steps, note), dropped=dict(self._dropped))


def _gaps(piece: Experiment, last_s: float) -> NDArray[np.bool_]:
    """(N,) whether a gap-free stretch begins at a sample; the piece before ended at `last_s`."""
    begins = np.zeros(piece.samples, dtype=bool)
    begins[0] = piece.time[0] - last_s > 1.5 / piece.rate_hz
    begins[1:] = np.diff(piece.segment) != 0
    return begins


def _numbered(pieces: Iterable[Experiment], counted: _Watched, blocks: int) -> Iterator[tuple[Any, ...]]:
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
