"""The clocks of a log: order, repetitions, gaps and jitter of its stamps; a uniform clock; the clock of the robot.

A *stretch* is a gap-free piece. Nothing is ever interpolated, filtered or differentiated across the border of
two stretches.

`source_clock` reads the clock of the robot off the motion where a relay passed the samples on. A relay that publishes
the newest sample of a robot with a clock of its own repeats a row when no new sample came, and skips one when two did.
Stamped by the relay, the motion then seems to halt and leap, and differences of positions show accelerations that never
were. The motion betrays the true clock: from row to row it advances by whole steps (0, 1, 2, ...) of the source.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.interpolate import CubicSpline

from dynid.arrays import Floats
from dynid.errors import DataError
from dynid.logs.recording import Recording, all_finite

GAP_PERIODS = 3.0
"""Number of sampling periods above which a step is a gap (convention)."""
REPEATED = 0.05
"""Share of a sampling period below which two stamps count as one (convention)."""
UNORDERED_SHARE = 0.01
"""Share of backward steps above which a clock is refused (convention)."""

CLOCK_FAULTS = {
    "not-finite": "time stamps that are no finite numbers",
    "repeated-samples": "repeated time stamps",
    "stamp-order": "time stamps out of order",
    "backward-time": "jumps back in time",
    "gap": "gaps in the time stamps",
}
"""Codes of the faults of time stamps, with their names for people."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clock:
    """The usable time stamps of one channel."""

    time: Floats
    """(M,) stamps [s], increasing within each stretch."""
    rows: NDArray[np.int64]
    """(M,) row of the log each stamp belongs to."""
    stretches: tuple[slice, ...]
    """Gap-free pieces, as slices into `time`."""
    period_s: float
    """Sampling period [s]."""
    gap_s: float
    """Longest step within a stretch [s]."""
    jitter_s: float
    """Standard deviation of the steps within stretches [s]."""
    faults: dict[str, int] = field(default_factory=dict)
    """Code of a fault, a key of `CLOCK_FAULTS` and of `dynid.findings.CODES` -> number of times it occurs."""

    @property
    def rate_hz(self) -> float:
        """Sampling rate [Hz]."""
        return 1.0 / self.period_s

    @property
    def monotone(self) -> bool:
        """Whether time increases from stretch to stretch."""
        return bool(np.all(np.diff(self.time) > 0.0))


def read_clock(time: Floats, *, max_gap_s: float | None = None, period_s: float | None = None) -> Clock:
    """Order the stamps, drop repeated ones and cut at gaps and jumps.

    Args:
        time: (N,) time stamps [s] as logged.
        max_gap_s: Longest step within a stretch [s]; three sampling periods by default.
        period_s: Sampling period [s] where it is known; otherwise taken from the stamps.

    Raises:
        DataError: The stamps show no sampling period, or too many run backwards.
    """
    whole = np.asarray(time, dtype=float)
    rows = np.flatnonzero(np.isfinite(time))
    stamps = whole[rows]
    steps = np.diff(stamps)
    if not steps.size:
        raise DataError("the log has one row", remedy="Record a motion: hundreds of rows in which the joints move.")
    if not np.any(steps > 0.0):
        raise DataError("the time stamps never increase", remedy="Check which column holds time.")
    backward = int(np.count_nonzero(steps < 0.0))
    if backward > UNORDERED_SHARE * steps.size:
        reason = f"{backward} of {steps.size} time steps run backwards"
        raise DataError(reason, remedy="Check which column is time, or sort the rows by it.")
    rough = float(np.median(steps[steps > 0.0])) if period_s is None else period_s
    gap = GAP_PERIODS * rough * (1 + 1e-9) if max_gap_s is None else max_gap_s
    jumps = np.flatnonzero((steps > gap) | (steps < -gap)) + 1
    pieces, repeated, unordered = [], 0, 0
    for piece in np.split(np.arange(stamps.size), jumps):
        order = piece[np.argsort(stamps[piece], kind="stable")]
        unordered += int(np.count_nonzero(order != piece))
        distinct = np.r_[True, np.diff(stamps[order]) > REPEATED * rough]
        repeated += int(np.count_nonzero(~distinct))
        pieces.append(order[distinct])
    count = len(pieces)  # sorting may have opened gaps
    pieces = [part for piece in pieces for part in np.split(piece, np.flatnonzero(np.diff(stamps[piece]) > gap) + 1)]
    faults = {
        "not-finite": int(len(time) - rows.size),
        "repeated-samples": repeated,
        "stamp-order": unordered,
        "backward-time": int(np.count_nonzero(steps < -gap)),
        "gap": int(np.count_nonzero(steps > gap)) + len(pieces) - count,
    }
    chosen = np.concatenate(pieces)
    ordinary = np.concatenate([np.diff(stamps[p]) for p in pieces])
    ordinary = ordinary[np.abs(ordinary - rough) < 0.5 * rough]  # lost samples do not lengthen the period
    ordinary = ordinary if ordinary.size else np.array([rough])
    period = float(ordinary.mean()) if period_s is None else period_s
    ends = np.cumsum([p.size for p in pieces])
    return Clock(
        time=stamps[chosen],
        rows=rows[chosen],
        stretches=tuple(slice(int(e - p.size), int(e)) for e, p in zip(ends, pieces, strict=True)),
        period_s=period,
        gap_s=GAP_PERIODS * period if max_gap_s is None else max_gap_s,
        jitter_s=float(ordinary.std()),
        faults={name: count for name, count in faults.items() if count},
    )


def uniform_grid(stamps: Floats, period_s: float, origin_s: float | None = None) -> Floats:
    """Instants [s] with the given period within the stretch, counted from its first stamp or from an origin."""
    start = stamps[0] if origin_s is None else origin_s
    first = int(np.ceil((stamps[0] - start) / period_s - 1e-3))
    last = int(np.floor((stamps[-1] - start) / period_s + 1e-3))
    return np.asarray(start + period_s * np.arange(first, last + 1))


def resample(time: Floats, values: Floats, grid: Floats, *, max_gap_s: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Bring a channel to a uniform grid by cubic interpolation between its finite samples.

    Args:
        time: (M,) increasing stamps of the samples [s].
        values: (M, k) samples; NaN where missing.
        grid: (N,) instants wanted [s].
        max_gap_s: Longest step that is interpolated across [s].

    Returns:
        (N, k) values and (N, k) whether each is supported by samples no further apart than the longest step; where
        it is not, values are continued linearly, or constantly beyond the ends, so that a filter can pass over. Values
        that are on the grid already are returned unchanged.
    """
    # within 1 % of a period the samples are the grid already: interpolation could only blur them
    same = time.size == grid.size > 1 and bool(np.abs(time - grid).max() <= 0.01 * (grid[1] - grid[0]))
    if same and all_finite(values):
        return values, np.ones(values.shape, dtype=bool)
    finite = np.isfinite(values)
    if finite.all():
        return _interpolate(time, values, grid, max_gap_s)
    columns = [_interpolate(time[ok], values[ok, k : k + 1], grid, max_gap_s) for k, ok in enumerate(finite.T)]
    return np.hstack([c[0] for c in columns]), np.hstack([c[1] for c in columns])


def _interpolate(time: Floats, values: Floats, grid: Floats, max_gap_s: float) -> tuple[Floats, NDArray[np.bool_]]:
    shape = (grid.size, values.shape[1])
    if time.size < 2:
        return np.zeros(shape), np.zeros(shape, dtype=bool)
    tolerance = 1e-3 * max_gap_s
    after = np.clip(np.searchsorted(time, grid, side="left"), 1, time.size - 1)
    supported = (time[after] - time[after - 1] <= max_gap_s * (1 + 1e-9)) & (grid >= time[0] - tolerance)
    supported &= grid <= time[-1] + tolerance
    result, left = np.empty(shape), np.ones(grid.size, dtype=bool)
    edges = [0, *(np.flatnonzero(np.diff(time) > max_gap_s) + 1).tolist(), time.size]
    for start, stop in pairwise(edges):
        piece = slice(start, stop)
        # the grid increases: what lies within a piece is one range of it
        low = int(np.searchsorted(grid, time[start] - tolerance, side="left"))
        high = int(np.searchsorted(grid, time[stop - 1] + tolerance, side="right"))
        if stop - start >= 4 and high > low:
            inside = np.clip(grid[low:high], time[start], time[stop - 1])
            result[low:high] = CubicSpline(time[piece], values[piece])(inside)
            left[low:high] = False
    if left.any():
        result[left] = np.column_stack([np.interp(grid[left], time, column) for column in values.T])
    return result, np.repeat(supported[:, None], values.shape[1], axis=1)


WINDOW = 9
"""Number of steps whose median is the ordinary step of the motion; with more rows from one new row to the next the
robot counts as standing (convention)."""
MOVING = 0.05
"""Share of the long steps below which a step is not used for the clock (convention)."""
WHOLE = 0.15
"""Largest distance of an advance from a whole number (convention)."""
SHARE = 0.95
"""Smallest share of the advances that must be whole numbers (convention)."""
FEWEST = 3
"""Number of rows repeated during motion below which a log counts as not relayed (convention)."""
DELAY_SPREAD = 2.0
"""Largest spread of the relay's delay, in periods of the source, beyond the longest time without news: one for waiting,
one for jitter. Where it comes out larger, samples were miscounted."""


@dataclass(frozen=True, slots=True, eq=False)
class SourceClock:
    """The clock of the robot behind a relay."""

    time: Floats
    """(N,) time of every row [s]; the same for rows that repeat one another."""
    fresh: NDArray[np.bool_]
    """(N,) whether the row is not a repetition of the row before."""
    period_s: float
    """Sampling period of the source [s]."""


def source_clock(time: Floats, q: Floats) -> SourceClock | None:
    """Read the source's clock off the motion; None where the log shows no sign of a relay.

    Args:
        time: (N,) time stamps of the log [s].
        q: (N, n) positions, as logged [rad or m].
    """
    intervals, new = np.diff(time), np.concatenate([[True], (q[1:] != q[:-1]).any(axis=1)])
    if new.all() or not np.all(intervals > 0.0) or not all_finite(q):
        return None
    rows = np.flatnonzero(new)  # rows that repeat others belong to the step after them
    if rows.size < 2 * WINDOW:
        return None
    waits = np.diff(rows)
    standing = waits > WINDOW  # rather than a relay without news
    advance, period = _counted_advances(np.diff(q[rows], axis=0), np.diff(time[rows]), standing)
    is_known = np.isfinite(advance)
    whole = np.abs(advance[is_known] - np.round(advance[is_known])) < WHOLE
    repeated = ~new
    repeated[1:] &= np.append(np.repeat(is_known, waits), np.zeros(len(q) - 1 - rows[-1], dtype=bool))
    if np.count_nonzero(repeated) < FEWEST or whole.mean() < SHARE:
        return None
    index = np.concatenate([[0.0], np.cumsum(_counts(advance, intervals / period, rows, repeated))])
    slope, start = np.polyfit(index, time, 1)
    found = start + slope * index
    outage = int(waits[is_known].max()) - 1
    if slope <= 0.0 or np.ptp(time - found) > (DELAY_SPREAD + outage) * slope:
        return None
    return SourceClock(found, ~repeated, float(slope))


def _counts(advance: Floats, periods: Floats, rows: NDArray[np.int64], repeated: NDArray[np.bool_]) -> Floats:
    """(N - 1,) source periods from row to row.

    Args:
        advance: (k,) those from one new row to the next by the motion; NaN where the robot hardly moves.
        periods: (N - 1,) those from row to row by the stamps.
        rows: (k + 1,) the new rows.
        repeated: (N,) whether a row repeats the one before.
    """
    count = np.where(repeated[1:], 0.0, periods)
    known = np.isfinite(advance)
    count[rows[1:][known] - 1] = np.maximum(np.round(advance[known]), 1.0)
    return count


def _counted_advances(steps: Floats, intervals: Floats, standing: NDArray[np.bool_]) -> tuple[Floats, float]:
    """Source periods from one new row to the next by the motion, and the period [s].

    The ordinary step nearby may itself be several periods long, where the relay was slow for a while: its speed by the
    stamps tells how many.

    Args:
        steps: (k, n) steps of the positions.
        intervals: (k,) their durations by the stamps [s].
        standing: (k,) whether the robot stood still before a step, so that its duration tells nothing.

    Returns:
        (k,) advances, NaN where the robot hardly moves; period [s].
    """
    ordinary = ndimage.median_filter(steps, size=(WINDOW, 1), mode="reflect")
    square = (ordinary**2).sum(axis=1)
    length = np.sqrt(square)
    moving = (length > MOVING * np.percentile(length, 90.0)) & ~standing
    advance = np.full(len(steps), np.nan)
    advance[moving] = (steps * ordinary).sum(axis=1)[moving] / square[moving]
    usual = float(np.median(intervals))
    if not moving.any():
        return advance, usual
    period = float(intervals[moving].sum() / np.maximum(np.round(advance[moving]), 1.0).sum())
    window = np.ones(WINDOW)
    path = np.convolve(np.sqrt((steps**2).sum(axis=1)), window, mode="same")
    passed = np.convolve(np.where(standing, usual, intervals), window, mode="same") / period
    with np.errstate(divide="ignore", invalid="ignore"):
        several = np.round(passed * length / path)
    advance[moving] *= np.clip(several[moving], 1.0, None)
    counted = np.maximum(np.round(advance[moving]), 1.0)
    return advance, float(intervals[moving].sum() / counted.sum())


def on_source_clock(recording: Recording) -> tuple[Recording, str]:
    """The recording without repeated rows on the robot's own clock, and a note; unchanged if it was not relayed."""
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
