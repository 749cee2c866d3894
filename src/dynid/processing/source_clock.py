"""The clock of the robot behind a log that passed samples on: repeated rows dropped, time read off the motion itself.

A relay that publishes the newest sample of a robot with a clock of its own repeats a row when no new sample came, and
skips one when two did. Stamped by the relay, the motion then seems to halt and leap, and differences of positions show
accelerations that never were. The motion betrays the true clock: from row to row it advances by whole steps (0, 1,
2, ...) of the source.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.logs.recording import Recording

__all__ = ["SourceClock", "on_source_clock", "source_clock"]

Floats = NDArray[np.float64]
WINDOW = 9
"""Steps over which the ordinary step of the motion is taken, as their median."""
MOVING = 0.05
"""Steps shorter than this part of the long ones say nothing about the clock."""
WHOLE = 0.15
"""Largest distance of an advance from a whole number."""
SHARE = 0.95
"""Smallest share of the advances that must be whole numbers."""
FEWEST = 3
"""Rows repeated in motion below which a log counts as not relayed."""
MOST_LOST = 100.0
"""Periods of the source to a row, on average, above which positions are absurd."""
DELAY_SPREAD = 2.0
"""Largest spread of the relay's delay, in periods of the source: one for waiting, one for jitter. Where it comes out
larger, samples were miscounted."""


@dataclass(frozen=True, slots=True, eq=False)
class SourceClock:
    """When the robot was where the rows of a log say."""

    time: Floats
    """(N,) of every row [s]; the same for rows that repeat one another"""
    fresh: NDArray[np.bool_]
    """(N,) whether the row is not a repetition of the one before"""
    period_s: float
    """Sampling period of the source [s]."""


def source_clock(time: Floats, q: Floats) -> SourceClock | None:
    """Read the source's clock off the motion; None where the log shows no sign of a relay.

    Args:
        time: (N,) time stamps of the log [s].
        q: (N, n) positions, as logged [rad or m].
    """
    intervals = np.diff(time)
    if len(q) < 2 * WINDOW or len(_repetitions(q)) < FEWEST or not np.all(intervals > 0.0) or not np.isfinite(q).all():
        return None
    steps = np.diff(q, axis=0)
    advance = _advances(steps)
    told = np.isfinite(advance)
    repeated = told & ~steps.any(axis=1)
    whole = np.abs(advance[told] - np.round(advance[told])) < WHOLE
    if np.count_nonzero(repeated) < FEWEST or whole.mean() < SHARE:
        return None
    count = np.where(repeated, 0.0, np.maximum(np.round(advance), 1.0))  # NaN where the motion does not tell
    period = float(intervals[told].sum() / count[told].sum())
    index = np.concatenate([[0.0], np.cumsum(np.where(told, count, intervals / period))])
    if index[-1] > MOST_LOST * len(q):
        return None  # absurd positions count absurdly many periods
    slope, start = np.polyfit(index, time, 1)
    found = start + slope * index
    if slope <= 0.0 or np.ptp(time - found) > DELAY_SPREAD * slope:
        return None
    return SourceClock(found, np.concatenate([[True], ~repeated]), float(slope))


def _repetitions(q: Floats) -> NDArray[np.int64]:
    """Rows whose next row is the same; one joint after the other, as most logs show none."""
    rows = np.flatnonzero(q[1:, 0] == q[:-1, 0]) if q.size else np.zeros(0, dtype=np.int64)
    for column in q.T[1:]:
        rows = rows[column[rows + 1] == column[rows]]
    return rows


def _advances(steps: Floats) -> Floats:
    """(N - 1,) steps (N - 1, n) as multiples of the ordinary step nearby; NaN where the robot hardly moves."""
    from scipy.ndimage import median_filter

    ordinary = median_filter(steps, size=(WINDOW, 1), mode="reflect")
    square = (ordinary**2).sum(axis=1)
    length = np.sqrt(square)
    moving = length > MOVING * np.percentile(length, 90.0)
    advance = np.full(len(steps), np.nan)
    advance[moving] = (steps * ordinary).sum(axis=1)[moving] / square[moving]
    return advance


def on_source_clock(recording: Recording) -> tuple[Recording, str]:
    """The recording with fresh rows only, stamped by the robot's own clock, and a note; itself where not relayed."""
    if recording.effort_time is not None or recording.wrench_time is not None or recording.isolated:
        return recording, ""
    clock = source_clock(recording.time, recording.q)
    if clock is None:
        return recording, ""
    channels: dict[str, Any] = {name: getattr(recording, name) for name in ("q", "dq", "effort", "current", "wrench")}
    rows: dict[str, Any] = {name: None if values is None else values[clock.fresh] for name, values in channels.items()}
    repeated = int(np.count_nonzero(~clock.fresh))
    note = (
        f"{repeated} of {clock.fresh.size} rows repeat the one before: a relay's stamps, "
        f"replaced by the robot's own clock of {1.0 / clock.period_s:.6g} Hz"
    )
    return replace(recording, time=clock.time[clock.fresh], **rows), note
