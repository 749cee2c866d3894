"""Logs larger than memory: process them chunk by chunk, with so much overlap that the borders do not show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.data.processing import Processing, assemble, resolve_cutoff, rest_thresholds, uniform_recording
from dynid.data.recording import Experiment, Recording, sealed
from dynid.errors import ArgumentError

__all__ = ["process_stream"]

Floats = NDArray[np.float64]

MEMORY = 8.0
"""Periods of the cutoff after which a sample has no influence left (below 1e-8 for a Butterworth filter of order 4)."""


def process_stream(
    chunks: Iterable[Recording], options: Processing | None = None, *, overlap_s: float | None = None
) -> Iterator[Experiment]:
    """Turn consecutive chunks of one log into consecutive experiments.

    Cutoff, sampling period and rest thresholds come from the first chunk and hold for all. Away from its two ends, the
    log gives the same samples as `process` on the whole of it.

    Args:
        chunks: Consecutive parts of a log, all channels on the clock of the positions.
        options: As for `process`; the same defaults.
        overlap_s: Time on both sides of a border that is filtered twice [s]; eight periods of the cutoff by default.
    """
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
            state = _Stream.start(held, options or Processing(), overlap_s)
        if held.duration > 4.0 * state.overlap_s:
            yield from state.emit(held, last=False)
            held = state.tail(held)
    if held is not None and state is not None:
        yield from state.emit(held, last=True)


class _Stream:
    """What stays fixed along a stream, and how far it has come."""

    def __init__(self, options: Processing, reason: str, period_s: float, origin_s: float, thresholds: Floats | None):
        self.options, self.reason, self.period_s, self.origin_s = options, reason, period_s, origin_s
        self.thresholds = thresholds
        self.overlap_s = 0.0
        self.done_s = -np.inf

    @classmethod
    def start(cls, first: Recording, options: Processing, overlap_s: float | None) -> _Stream:
        uniform = uniform_recording(first, options)
        resolved, reason = resolve_cutoff(uniform, options)
        whole = assemble(first, uniform, replace(resolved, rest=None), reason)
        _, thresholds = rest_thresholds(resolved, [whole.dq])
        stream = cls(
            resolved, f"{reason} (from the first chunk)", 1.0 / uniform.rate_hz, float(first.time[0]), thresholds
        )
        memory = 0.0 if resolved.cutoff_hz is None else MEMORY / float(resolved.cutoff_hz)
        rest = 0.0 if resolved.rest is None else resolved.rest.min_s
        stream.overlap_s = max(memory, rest, 20.0 / uniform.rate_hz) if overlap_s is None else overlap_s
        return stream

    def emit(self, held: Recording, *, last: bool) -> Iterator[Experiment]:
        """The samples of what is held that no border touches and that were not given before."""
        uniform = uniform_recording(held, self.options, period_s=self.period_s, origin_s=self.origin_s)
        experiment = assemble(held, uniform, self.options, self.reason, self.thresholds)
        end = np.inf if last else float(held.time[-1]) - self.overlap_s
        rows = (experiment.time > self.done_s + 0.5 * self.period_s) & (experiment.time <= end)
        if rows.any():
            chosen = np.flatnonzero(rows)
            self.done_s = float(experiment.time[chosen[-1]])
            whole = chosen[-1] - chosen[0] == chosen.size - 1
            yield _rows(experiment, slice(int(chosen[0]), int(chosen[-1]) + 1) if whole else chosen)

    def tail(self, held: Recording) -> Recording:
        """The end of what is held, needed again with the next chunk."""
        late = np.flatnonzero(held.time > float(held.time[-1]) - 2.0 * self.overlap_s)
        return _slice(held, slice(int(late[0]), None))


_CHANNELS = ("time", "q", "dq", "effort", "current", "wrench")


def _slice(recording: Recording, rows: slice) -> Recording:
    parts: dict[str, Any] = {name: getattr(recording, name) for name in _CHANNELS}
    cut: dict[str, Any] = {name: None if x is None else x[rows] for name, x in parts.items()}
    return replace(recording, **cut)


def _join(first: Recording, second: Recording) -> Recording:
    joined: dict[str, Any] = {}
    for name in _CHANNELS:
        a, b = getattr(first, name), getattr(second, name)
        joined[name] = None if a is None or b is None else sealed(np.concatenate([a, b]))
    return replace(second, **joined)


def _rows(experiment: Experiment, rows: slice | NDArray[np.int64]) -> Experiment:
    names = ("time", "q", "dq", "ddq", "effort", "valid", "segment")
    wrench = None if experiment.wrench is None else experiment.wrench[rows]
    return replace(experiment, wrench=wrench, **{name: getattr(experiment, name)[rows] for name in names})
