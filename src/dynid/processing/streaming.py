"""Logs larger than memory: process them chunk by chunk, with so much overlap that the borders do not show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from queue import Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.logs.recording import Recording, sealed
from dynid.processing.experiment import Experiment
from dynid.processing.process import (
    Processing,
    assemble,
    resolve_cutoff,
    resolve_delay,
    rest_thresholds,
    uniform_recording,
)

if TYPE_CHECKING:
    from dynid.gate.stream_check import StreamCheck

__all__ = ["process_stream"]

Floats = NDArray[np.float64]

MEMORY = 8.0
"""Periods of the cutoff after which a sample has no influence left (below 1e-8 for a Butterworth filter of order 4)."""


def process_stream(
    chunks: Iterable[Recording],
    options: Processing | None = None,
    *,
    overlap_s: float | None = None,
    check: StreamCheck | None = None,
    ahead: int = 0,
) -> Iterator[Experiment]:
    """Turn consecutive chunks of one log into consecutive experiments.

    Cutoff, sampling period and rest thresholds come from the first chunk and hold for all. Away from its two ends, the
    log gives the same samples as `process` on the whole of it.

    Args:
        chunks: Consecutive parts of a log, all channels on the clock of the positions; see `read_stream`.
        options: As for `process`; the same defaults.
        overlap_s: Time on both sides of a border that is filtered twice [s]; eight periods of the cutoff by default.
        check: Quality gate that looks at everything on the way.
        ahead: So many experiments are made ahead, in a thread of their own, while the caller works on the last.
    """
    stream = _processed(chunks, options or Processing(), overlap_s, check)
    return stream if ahead < 1 else _made_ahead(stream, ahead)


def _processed(
    chunks: Iterable[Recording], options: Processing, overlap_s: float | None, check: StreamCheck | None
) -> Iterator[Experiment]:
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
            state = _Stream.start(held, options, overlap_s, check)
        ready = held.duration > 4.0 * state.overlap_s
        if ready:
            yield from state.emit(held, last=False)
            held = state.tail(held)
        if check is not None:
            check.raw(chunk, state.period_s, suspect=state.suspect or not ready)
    if held is not None and state is not None:
        yield from state.emit(held, last=True)


def _made_ahead(stream: Iterator[Experiment], count: int) -> Iterator[Experiment]:
    """The items of a stream, up to `count` of them made ahead in another thread; an error comes in its turn."""
    ready: Queue[Experiment | BaseException | None] = Queue(count)
    stopped = Event()

    def put(item: Experiment | BaseException | None) -> None:
        while not stopped.is_set():
            try:
                return ready.put(item, timeout=0.1)
            except Full:
                continue

    def work() -> None:
        try:
            for item in stream:
                put(item)
                if stopped.is_set():
                    return
            put(None)
        except BaseException as error:
            put(error)

    worker = Thread(target=work, name="dynid process_stream", daemon=True)
    worker.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        worker.join()


class _Stream:
    """What stays fixed along a stream, and how far it has come."""

    def __init__(self, options: Processing, reason: str, period_s: float, origin_s: float, thresholds: Floats | None):
        self.options, self.reason, self.period_s, self.origin_s = options, reason, period_s, origin_s
        self.thresholds = thresholds
        self.check: StreamCheck | None = None
        self.suspect = False
        self.overlap_s = 0.0
        self.done_s = -np.inf

    @classmethod
    def start(
        cls, first: Recording, options: Processing, overlap_s: float | None, check: StreamCheck | None
    ) -> _Stream:
        options, delay = resolve_delay(first, options)
        uniform = uniform_recording(first, options)
        resolved, reason = resolve_cutoff(uniform, options)
        reason = f"{delay}; {reason}" if delay else reason
        whole = assemble(first, uniform, replace(resolved, rest=None), reason)
        thresholds = rest_thresholds(resolved.rest, uniform, whole.dq) if resolved.rest else None
        stream = cls(
            resolved, f"{reason} (from the first chunk)", 1.0 / uniform.rate_hz, float(first.time[0]), thresholds
        )
        memory = 0.0 if resolved.cutoff_hz is None else MEMORY / float(resolved.cutoff_hz)
        rest = 0.0 if resolved.rest is None else resolved.rest.min_s
        stream.overlap_s = max(memory, rest, 20.0 / uniform.rate_hz) if overlap_s is None else overlap_s
        stream.check = check
        return stream

    def emit(self, held: Recording, *, last: bool) -> Iterator[Experiment]:
        """The samples of what is held that no border touches and that were not given before."""
        uniform = uniform_recording(held, self.options, period_s=self.period_s, origin_s=self.origin_s)
        self.suspect = any(uniform.dropped.get(kind) for kind in _SUSPECT)
        if self.options.rest and self.thresholds is not None and np.isinf(self.thresholds).any():
            whole = assemble(held, uniform, replace(self.options, rest=None), self.reason)
            now = rest_thresholds(self.options.rest, uniform, whole.dq)  # some joint may move for the first time
            self.thresholds = np.where(np.isinf(self.thresholds), now, self.thresholds)
        experiment = assemble(held, uniform, self.options, self.reason, self.thresholds)
        end = np.inf if last else float(held.time[-1]) - self.overlap_s
        rows = (experiment.time > self.done_s + 0.5 * self.period_s) & (experiment.time <= end)
        if rows.any():
            chosen = np.flatnonzero(rows)
            self.done_s = float(experiment.time[chosen[-1]])
            whole = chosen[-1] - chosen[0] == chosen.size - 1
            part = experiment.rows(slice(int(chosen[0]), int(chosen[-1]) + 1) if whole else chosen)
            if self.check is not None:
                cutoff = self.options.cutoff_hz
                self.check.processed(part, cutoff if isinstance(cutoff, (int, float)) else None)
            yield part

    def tail(self, held: Recording) -> Recording:
        """The end of what is held, needed again with the next chunk."""
        late = np.flatnonzero(held.time > float(held.time[-1]) - 2.0 * self.overlap_s)
        return held.rows(slice(int(late[0]), None))


_SUSPECT = ("position spike", "torque spike", "torque saturated")
_CHANNELS = ("time", "q", "dq", "effort", "current", "wrench")


def _join(first: Recording, second: Recording) -> Recording:
    joined: dict[str, Any] = {}
    for name in _CHANNELS:
        a, b = getattr(first, name), getattr(second, name)
        joined[name] = None if a is None or b is None else sealed(np.concatenate([a, b]))
    return replace(second, **joined)
