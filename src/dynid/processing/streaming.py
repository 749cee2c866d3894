"""Logs larger than memory: they are processed chunk by chunk, with enough overlap that the borders leave no trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from dynid.errors import ArgumentError
from dynid.logs.recording import Recording, seal
from dynid.processing.experiment import Dropped, Experiment
from dynid.processing.process import Chain, Processing

MEMORY = 8.0
"""Periods of the cutoff after which a sample has no influence left: below 1e-8 for a Butterworth filter of order 4, by
its impulse response."""

OVERLAPS_PER_CHUNK = 4.0
"""Length of what is held before it is processed, in overlaps; convention: at most half of the work is done twice."""


class StreamObserver(Protocol):
    """Sees every piece of a stream on its way; `dynid.diagnosis.log_check.StreamCheck` is one."""

    def observe_raw(self, piece: Recording, period_s: float, suspect: bool) -> None:
        """See the next raw piece, its sampling period [s], and whether cleaning found spikes or clipped torques."""

    def observe_processed(self, experiment: Experiment, cutoff_hz: float | None) -> None:
        """See the next processed piece, and the cutoff of its low-pass [Hz]."""


def process_stream(
    chunks: Iterable[Recording],
    options: Processing | None = None,
    *,
    overlap_s: float | None = None,
    check: StreamObserver | None = None,
) -> Iterator[Experiment]:
    """Turn consecutive chunks of one log into consecutive experiments.

    Cutoff, sampling period and rest thresholds come from the first chunk and hold for all. Away from its two ends, the
    log gives the same samples as `process` on the whole of it.

    Args:
        chunks: Consecutive parts of a log, all channels on the clock of the positions; see `read_stream`.
        options: As for `process`, with the same defaults.
        overlap_s: Time on both sides of a border that is filtered twice [s]; eight periods of the cutoff by default.
        check: Sees every raw and every processed piece, as the quality gate for streams does.
    """
    options = options or Processing()
    state: _Stream | None = None
    held: Recording | None = None
    for chunk in chunks:
        if chunk.effort_time is not None or chunk.wrench_time is not None:
            raise ArgumentError(
                "a stream needs all channels on one clock",
                remedy="Resample the slower channels first, or use process().",
            )
        held = chunk if held is None else _join(held, chunk)
        if state is None:
            state = _Stream(Chain.start(held, options), overlap_s, check)
        ready = held.duration > OVERLAPS_PER_CHUNK * state.overlap_s
        if ready:
            yield from state.emit(held, last=False)
            held = state.tail(held)
        if check is not None:
            check.observe_raw(chunk, state.period_s, suspect=state.suspect or not ready)
    if held is not None and state is not None:
        yield from state.emit(held, last=True)


class _Stream:
    """Constants of a stream, and the time up to which it is processed."""

    def __init__(self, first: Chain, overlap_s: float | None, check: StreamObserver | None) -> None:
        self.options, self.check = first.options, check
        self.period_s, self.origin_s = 1.0 / first.uniform.rate_hz, float(first.recording.time[0])
        self.notes = tuple(f"{note} (from the first chunk)" for note in first.notes)
        self.thresholds = first.rest_thresholds()
        self.suspect = False
        self.done_s = -np.inf
        cutoff = self.options.cutoff_hz
        memory = MEMORY / cutoff if isinstance(cutoff, (int, float)) else 0.0
        reach = 2 * (self.options.differentiation.margin() + 1) * self.period_s
        longest = max(memory, self.options.rest or 0.0, reach)
        self.overlap_s = longest if overlap_s is None else overlap_s

    def emit(self, held: Recording, *, last: bool) -> Iterator[Experiment]:
        """The samples of what is held that no border touches and that were not given before."""
        chain = Chain.start(held, self.options, period_s=self.period_s, origin_s=self.origin_s)
        chain = replace(chain, notes=self.notes)
        self.suspect = any(chain.uniform.dropped.get(kind) for kind in _SUSPECT)
        if self.thresholds is not None and np.isinf(self.thresholds).any():
            now = chain.rest_thresholds()  # some joint may move for the first time
            self.thresholds = np.where(np.isinf(self.thresholds), np.inf if now is None else now, self.thresholds)
        experiment = chain.experiment(thresholds=self.thresholds)
        end = np.inf if last else float(held.time[-1]) - self.overlap_s
        rows = (experiment.time > self.done_s + 0.5 * self.period_s) & (experiment.time <= end)
        if rows.any():
            chosen = np.flatnonzero(rows)
            self.done_s = float(experiment.time[chosen[-1]])
            adjacent = chosen[-1] - chosen[0] == chosen.size - 1
            part = experiment.rows(slice(int(chosen[0]), int(chosen[-1]) + 1) if adjacent else chosen)
            if self.check is not None:
                cutoff = self.options.cutoff_hz
                self.check.observe_processed(part, cutoff if isinstance(cutoff, (int, float)) else None)
            yield part

    def tail(self, held: Recording) -> Recording:
        """The end of what is held, needed again with the next chunk."""
        late = np.flatnonzero(held.time > float(held.time[-1]) - 2.0 * self.overlap_s)
        return held.rows(slice(int(late[0]), None))


_SUSPECT = (Dropped.POSITION_SPIKE, Dropped.TORQUE_SPIKE, Dropped.SATURATED)
"""Reasons for dropped samples that make the raw piece worth a closer look."""
_CHANNELS = ("time", "q", "dq", "effort", "current", "wrench")


def _join(first: Recording, second: Recording) -> Recording:
    joined: dict[str, Any] = {}
    for name in _CHANNELS:
        a, b = getattr(first, name), getattr(second, name)
        joined[name] = None if a is None or b is None else seal(np.concatenate([a, b]))
    warmth = first.temperature
    if warmth is not None:
        joined["temperature"] = warmth.followed_by(second.temperature, float(first.time[0]))
    return replace(second, **joined)
