"""Process logs larger than memory, chunk by chunk: `process_stream` is `process` for consecutive parts of one log.

A filter needs samples on both sides of an instant. So consecutive chunks are joined, and the joined recording is
processed; the samples near its end are held back until the next chunk has come. The recording that is still needed is
called *pending*: its last part has not been given to the caller, and an *overlap* before that is filtered again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from dynid.errors import ArgumentError
from dynid.logs.recording import Recording, seal
from dynid.processing.experiment import Experiment
from dynid.processing.process import PreparedLog, Processing

FILTER_PERIODS = 8.0
"""Number of periods of the cutoff after which a sample no longer matters: its influence is below 1e-8 (derivation:
impulse response of a Butterworth filter of order 4)."""

OVERLAPS_PER_CHUNK = 4.0
"""Number of overlaps that the pending recording must be longer than to be processed (convention: two of them are kept,
so that at most half of the work is done twice)."""


class StreamObserver(Protocol):
    """An object to which every raw and every processed piece is passed, such as the checks of a log for faults.

    `dynid.diagnosis.log_check.StreamCheck` is one.
    """

    def observe_raw(self, piece: Recording, period_s: float) -> None:
        """Take the next raw piece and its sampling period [s]."""

    def observe_processed(self, experiment: Experiment) -> None:
        """Take the next processed piece."""


def process_stream(
    chunks: Iterable[Recording],
    options: Processing | None = None,
    *,
    overlap_s: float | None = None,
    check: StreamObserver | None = None,
) -> Iterator[Experiment]:
    """Turn consecutive chunks of one log into consecutive experiments.

    Cutoff, sampling period and rest thresholds (speeds below which a joint rests) come from the first chunk and hold
    for all. Except near both ends of the log, the samples are those of `process` with these numbers on the whole log.

    Args:
        chunks: Consecutive parts of a log, all channels on the clock of the positions; see `read_stream`.
        options: As for `process`, with the same defaults.
        overlap_s: Time on both sides of a border that is filtered twice [s]; eight periods of the cutoff by default.
        check: Gets every raw and every processed piece.

    Yields:
        Consecutive parts of the processed log.
    """
    options = options or Processing()
    state: _Stream | None = None
    pending: Recording | None = None
    for chunk in chunks:
        if chunk.effort_time is not None or chunk.wrench_time is not None:
            raise ArgumentError(
                "a stream needs all channels on one clock",
                remedy="Resample the slower channels first, or use process().",
            )
        pending = chunk if pending is None else _join(pending, chunk)
        if state is None:
            state = _Stream(PreparedLog.start(pending, options), overlap_s, check)
        if pending.duration > OVERLAPS_PER_CHUNK * state.overlap_s:
            yield from state.process(pending, last=False)
            pending = state.tail(pending)
        if check is not None:
            check.observe_raw(chunk, state.period_s)
    if pending is not None and state is not None:
        yield from state.process(pending, last=True)


class _Stream:
    """The numbers that the first chunk fixes for the whole stream, and the time up to which samples were given."""

    def __init__(self, first: PreparedLog, overlap_s: float | None, check: StreamObserver | None) -> None:
        """Take sampling period, thresholds and overlap from the first chunk.

        Args:
            first: Processing of the first chunk.
            overlap_s: The overlap the user asked for [s].
            check: Gets every processed piece.
        """
        self.options = first.options
        self.check = check
        self.period_s = 1.0 / first.uniform.rate_hz
        self.origin_s = float(first.recording.time[0])
        self.notes = tuple(f"{note} (from the first chunk)" for note in first.notes)
        self.thresholds = first.rest_thresholds()  # below them a joint rests; infinite where it has not moved yet
        self.done_s = -np.inf  # time stamp of the last sample given to the caller
        cutoff = self.options.cutoff_hz
        filter_s = FILTER_PERIODS / cutoff if isinstance(cutoff, (int, float)) else 0.0
        stencils_s = 2 * (self.options.differentiation.margin() + 1) * self.period_s
        longest = max(filter_s, self.options.rest or 0.0, stencils_s)
        self.overlap_s = longest if overlap_s is None else overlap_s

    def process(self, pending: Recording, *, last: bool) -> Iterator[Experiment]:
        """Process the pending recording; yield its samples after those given before, up to an overlap before its end.

        Args:
            pending: The recording.
            last: Whether the log ends with it, so that samples up to its end are given.
        """
        prepared = PreparedLog.start(pending, self.options, period_s=self.period_s, origin_s=self.origin_s)
        prepared = replace(prepared, notes=self.notes)
        if self.thresholds is not None and np.isinf(self.thresholds).any():
            now = prepared.rest_thresholds()  # some joint may move for the first time
            self.thresholds = np.where(np.isinf(self.thresholds), np.inf if now is None else now, self.thresholds)
        experiment = prepared.experiment(thresholds=self.thresholds)
        end = np.inf if last else float(pending.time[-1]) - self.overlap_s
        rows = (experiment.time > self.done_s + 0.5 * self.period_s) & (experiment.time <= end)
        if rows.any():
            chosen = np.flatnonzero(rows)
            self.done_s = float(experiment.time[chosen[-1]])
            are_adjacent = chosen[-1] - chosen[0] == chosen.size - 1  # then a slice, which does not copy
            part = experiment.rows(slice(int(chosen[0]), int(chosen[-1]) + 1) if are_adjacent else chosen)
            if self.check is not None:
                self.check.observe_processed(part)
            yield part

    def tail(self, pending: Recording) -> Recording:
        """Keep the last two overlaps of a recording: the samples not given yet, and those that their filter needs."""
        late = np.flatnonzero(pending.time > float(pending.time[-1]) - 2.0 * self.overlap_s)
        return pending.rows(slice(int(late[0]), None))


_CHANNELS = ("time", "q", "dq", "effort", "current", "wrench")
"""Fields of a recording with one row per sample."""


def _join(first: Recording, second: Recording) -> Recording:
    """Join two consecutive recordings; a channel that one of them lacks is left out."""
    joined: dict[str, Any] = {}
    for name in _CHANNELS:
        before = getattr(first, name)
        after = getattr(second, name)
        joined[name] = None if before is None or after is None else seal(np.concatenate([before, after]))
    temperature = first.temperature
    if temperature is not None:
        joined["temperature"] = temperature.followed_by(second.temperature, float(first.time[0]))
    return replace(second, **joined)
