"""The clocks of a log: faults of its time stamps, resampling to a uniform clock, and the robot's clock behind a relay.

`make_uniform` (uniform.py) calls these functions with the time stamps and channels of a `Recording`. `read_clock` sorts
the stamps and cuts the log at gaps into *stretches*. Nothing is ever interpolated, filtered or differentiated across
the border of two stretches. `uniform_grid` and `resample` bring a stretch to a uniform clock by cubic splines.

The second half of the file is for logs that a relay has recorded, such as a node that publishes the newest sample of
the robot at times of its own clock. The relay repeats a row when no new sample came, and skips one when two came. By
the relay's stamps the motion then seems to halt and leap, and differences of positions show accelerations that never
were. `source_clock` estimates the clock of the robot, the *source*, from the motion: from row to row the positions
advance by the path of 0, 1, 2, ... periods of the source, and counting the periods gives the time of each row.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.interpolate import CubicSpline

from dynid.array_types import Floats
from dynid.errors import DataError
from dynid.logs.recording import Recording, all_finite

GAP_PERIODS = 3.01
"""Number of sampling periods above which a step is a gap (convention: rounded stamps three periods apart are none)."""
SMALLEST_STEP_PERIODS = 0.05
"""Number of sampling periods below which two stamps count as one (convention)."""
LARGEST_BACKWARD_SHARE = 0.01
"""Share of time steps that run backwards, above which a clock is refused (convention)."""

CLOCK_FAULTS = {
    "not-finite": "time stamps that are no finite numbers",
    "repeated-samples": "repeated time stamps",
    "stamp-order": "time stamps out of order",
    "backward-time": "jumps back in time",
    "gap": "gaps in the time stamps",
}
"""Code of a fault of time stamps, a key of `dynid.findings.CODES` -> its name in notes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clock:
    """The usable time stamps of one channel."""

    time: Floats
    """(M,) stamps [s], increasing within each stretch."""
    rows: NDArray[np.int64]
    """(M,) row of the log each stamp belongs to."""
    stretches: tuple[slice, ...]
    """Stretches without a gap, as slices into `time`."""
    period_s: float
    """Sampling period [s]."""
    gap_s: float
    """Longest step within a stretch [s]."""
    jitter_s: float
    """Standard deviation of the steps within stretches [s]."""
    faults: dict[str, int] = field(default_factory=dict)
    """Code of a fault, a key of `CLOCK_FAULTS` -> number of times it occurs."""

    @property
    def rate_hz(self) -> float:
        """Sampling rate [Hz]."""
        return 1.0 / self.period_s

    @property
    def monotone(self) -> bool:
        """Whether time increases from stretch to stretch."""
        return bool(np.all(np.diff(self.time) > 0.0))


def read_clock(time: Floats, *, max_gap_s: float | None = None, period_s: float | None = None) -> Clock:
    """Sort the stamps, drop repeated ones and cut at gaps and at jumps backwards.

    First the stamps are cut where a step is longer than a gap, forwards or backwards. Within each stretch they are then
    sorted (single rows may have been written in the wrong order), and equal ones are dropped.

    Args:
        time: (N,) time stamps [s] as logged.
        max_gap_s: Longest step within a stretch [s]; three sampling periods by default.
        period_s: Sampling period [s] where it is known; otherwise taken from the stamps.

    Raises:
        DataError: The stamps show no sampling period, or too many run backwards.
    """
    rows = np.flatnonzero(np.isfinite(time))
    stamps = np.asarray(time, dtype=float)[rows]
    steps = np.diff(stamps)
    if not steps.size:
        raise DataError("the log has one row", remedy="Record a motion: hundreds of rows in which the joints move.")
    if not np.any(steps > 0.0):
        raise DataError("the time stamps never increase", remedy="Check which column holds time.")
    backward = int(np.count_nonzero(steps < 0.0))
    if backward > LARGEST_BACKWARD_SHARE * steps.size:
        reason = f"{backward} of {steps.size} time steps run backwards"
        raise DataError(reason, remedy="Check which column is time, or sort the rows by it.")
    rough = float(np.median(steps[steps > 0.0])) if period_s is None else period_s  # rough period [s]
    gap = GAP_PERIODS * rough if max_gap_s is None else max_gap_s
    jumps = np.flatnonzero((steps > gap) | (steps < -gap)) + 1
    stretches = []  # of each the indices of its stamps, in the order of time
    repeated = 0
    unordered = 0
    for stretch in np.split(np.arange(stamps.size), jumps):
        order = stretch[np.argsort(stamps[stretch], kind="stable")]
        unordered += int(np.count_nonzero(order != stretch))
        distinct = np.r_[True, np.diff(stamps[order]) > SMALLEST_STEP_PERIODS * rough]
        repeated += int(np.count_nonzero(~distinct))
        stretches.append(order[distinct])
    count = len(stretches)
    # sorting may have opened gaps within a stretch: cut there, too
    stretches = [x for found in stretches for x in np.split(found, np.flatnonzero(np.diff(stamps[found]) > gap) + 1)]
    faults = {
        "not-finite": int(len(time) - rows.size),
        "repeated-samples": repeated,
        "stamp-order": unordered,
        "backward-time": int(np.count_nonzero(steps < -gap)),
        "gap": int(np.count_nonzero(steps > gap)) + len(stretches) - count,
    }
    chosen = np.concatenate(stretches)
    # the period is the mean of the ordinary steps: those over lost samples, of two periods or more, do not lengthen it
    ordinary = np.concatenate([np.diff(stamps[x]) for x in stretches])
    ordinary = ordinary[np.abs(ordinary - rough) < 0.5 * rough]
    ordinary = ordinary if ordinary.size else np.array([rough])
    period = float(ordinary.mean()) if period_s is None else period_s
    ends = np.cumsum([x.size for x in stretches])
    return Clock(
        time=stamps[chosen],
        rows=rows[chosen],
        stretches=tuple(slice(int(end - x.size), int(end)) for end, x in zip(ends, stretches, strict=True)),
        period_s=period,
        gap_s=GAP_PERIODS * period if max_gap_s is None else max_gap_s,
        jitter_s=float(ordinary.std()),
        faults={name: count for name, count in faults.items() if count},
    )


def uniform_grid(stamps: Floats, period_s: float, origin_s: float | None = None) -> Floats:
    """Compute the time stamps of a uniform clock within a stretch.

    Args:
        stamps: (M,) stamps of the stretch [s].
        period_s: Period of the clock [s].
        origin_s: A time stamp of the clock [s]; None for the first stamp.

    Returns:
        (N,) stamps [s].
    """
    start = stamps[0] if origin_s is None else origin_s
    # a stamp of the clock may be outside the stretch by a thousandth of a period, which rounding explains
    first = int(np.ceil((stamps[0] - start) / period_s - 1e-3))
    last = int(np.floor((stamps[-1] - start) / period_s + 1e-3))
    return np.asarray(start + period_s * np.arange(first, last + 1))


def resample(time: Floats, values: Floats, grid: Floats, *, max_gap_s: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Bring a channel to a uniform grid by cubic interpolation between its finite samples.

    Args:
        time: (M,) increasing stamps of the samples [s].
        values: (M, k) samples; NaN where missing.
        grid: (N,) time stamps of the result [s].
        max_gap_s: Longest step that is interpolated across [s].

    Returns:
        (N, k) values, and (N, k) whether each lies between samples that are no further apart than the longest step.
        Elsewhere values are interpolated linearly, or constant beyond the ends, so that a filter has numbers there.
        Values that are on the grid already are returned unchanged.
    """
    # within 1 % of a period the samples are on the grid already: interpolation could only blur them
    is_on_grid = time.size == grid.size > 1 and bool(np.abs(time - grid).max() <= 0.01 * (grid[1] - grid[0]))
    if is_on_grid and all_finite(values):
        return values, np.ones(values.shape, dtype=bool)
    finite = np.isfinite(values)
    if finite.all():
        return _interpolate(time, values, grid, max_gap_s)
    # each column from its own finite samples: (values, known), (N, 1) each
    columns = [_interpolate(time[ok], values[ok, k : k + 1], grid, max_gap_s) for k, ok in enumerate(finite.T)]
    return np.hstack([c[0] for c in columns]), np.hstack([c[1] for c in columns])


def _interpolate(time: Floats, values: Floats, grid: Floats, max_gap_s: float) -> tuple[Floats, NDArray[np.bool_]]:
    """`resample` for values without NaN: a cubic spline through each gap-free piece of at least four samples."""
    shape = (grid.size, values.shape[1])
    if time.size < 2:
        return np.zeros(shape), np.zeros(shape, dtype=bool)
    tolerance = 1e-3 * max_gap_s  # of comparisons with the first and last sample, against rounding
    # an instant of the grid is known if it is between the first and last sample, and the samples before and after it
    # are near each other
    after = np.clip(np.searchsorted(time, grid, side="left"), 1, time.size - 1)
    known = (time[after] - time[after - 1] <= max_gap_s) & (grid >= time[0] - tolerance)
    known &= grid <= time[-1] + tolerance
    result = np.empty(shape)
    is_open = np.ones(grid.size, dtype=bool)  # instants of the grid without a spline
    edges = [0, *(np.flatnonzero(np.diff(time) > max_gap_s) + 1).tolist(), time.size]
    for start, stop in pairwise(edges):
        piece = slice(start, stop)
        # the grid increases: what lies within a piece is one range of it
        low = int(np.searchsorted(grid, time[start] - tolerance, side="left"))
        high = int(np.searchsorted(grid, time[stop - 1] + tolerance, side="right"))
        if stop - start >= 4 and high > low:
            inside = np.clip(grid[low:high], time[start], time[stop - 1])
            result[low:high] = CubicSpline(time[piece], values[piece])(inside)
            is_open[low:high] = False
    if is_open.any():
        result[is_open] = np.column_stack([np.interp(grid[is_open], time, column) for column in values.T])
    return result, np.repeat(known[:, None], values.shape[1], axis=1)


# --- the robot's clock behind a relay
# -----------------------------------------------------------------------------------

MEDIAN_STEPS = 9
"""Number of steps whose median is the ordinary step of the motion. If more rows than these repeat one another, the
robot counts as standing still, and not as waiting for the relay (convention)."""
SMALLEST_MOVING_STEP = 0.05
"""Length of an ordinary step, as a share of the 90th percentile of all, below which the motion is too slow to count
periods by it (convention)."""
WHOLE_TOLERANCE = 0.15
"""Largest distance of an advance, which is counted in periods, from a whole number (convention)."""
LEAST_WHOLE_SHARE = 0.95
"""Share of the advances that must be whole numbers, so that a log counts as relayed (convention)."""
FEWEST_REPEATED_ROWS = 3
"""Number of rows repeated during motion below which a log counts as not relayed (convention)."""
DELAY_SPREAD_PERIODS = 2.0
"""Largest spread of the relay's delay, in periods of the source, in addition to the longest time without a new sample:
one period for waiting, one for jitter (convention). If it is larger, periods were miscounted."""


@dataclass(frozen=True, slots=True, eq=False)
class SourceClock:
    """The clock of the robot behind a relay."""

    time: Floats
    """(N,) time of every row [s]; equal for rows that repeat one another."""
    fresh: NDArray[np.bool_]
    """(N,) whether the row is not a repetition of the row before."""
    period_s: float
    """Sampling period of the source [s]."""


def source_clock(time: Floats, q: Floats) -> SourceClock | None:
    """Estimate the clock of the source from the motion; None if the log shows no sign of a relay.

    Signs are rows that repeat the row before while the robot moves, and advances of the motion by whole numbers of
    periods. With the number of periods from the first row to each row, a straight line through the relay's stamps gives
    start and period of the source.

    Args:
        time: (N,) time stamps of the log [s].
        q: (N, n) positions, as logged [rad or m].
    """
    intervals = np.diff(time)
    new = np.concatenate([[True], (q[1:] != q[:-1]).any(axis=1)])  # rows that differ from the row before
    if new.all() or not np.all(intervals > 0.0) or not all_finite(q):
        return None
    rows = np.flatnonzero(new)
    if rows.size < 2 * MEDIAN_STEPS:
        return None
    # each of the k steps goes from one new row to the next; rows in between repeat the first
    waits = np.diff(rows)  # (k,) number of rows from one new row to the next
    standing = waits > MEDIAN_STEPS
    advance, period = _counted_advances(np.diff(q[rows], axis=0), np.diff(time[rows]), standing)
    is_known = np.isfinite(advance)  # where the robot moves fast enough
    is_whole = np.abs(advance[is_known] - np.round(advance[is_known])) < WHOLE_TOLERANCE
    # rows that repeat others while the robot moves; at rest equal rows are no repetitions
    repeated = ~new
    repeated[1:] &= np.append(np.repeat(is_known, waits), np.zeros(len(q) - 1 - rows[-1], dtype=bool))
    if np.count_nonzero(repeated) < FEWEST_REPEATED_ROWS or is_whole.mean() < LEAST_WHOLE_SHARE:
        return None
    # (N,) number of periods from the first row; the line through the stamps has the period as its slope
    index = np.concatenate([[0.0], np.cumsum(_count_periods(advance, intervals / period, rows, repeated))])
    slope, start = np.polyfit(index, time, 1)
    found = start + slope * index
    outage = int(waits[is_known].max()) - 1  # most rows in succession without a new sample
    # the relay's delay is the distance of its stamps from the line
    if slope <= 0.0 or np.ptp(time - found) > (DELAY_SPREAD_PERIODS + outage) * slope:
        return None
    return SourceClock(found, ~repeated, float(slope))


def _count_periods(advance: Floats, periods: Floats, rows: NDArray[np.int64], repeated: NDArray[np.bool_]) -> Floats:
    """Count the source periods from row to row (N - 1,): by the motion, or by the stamps where the robot hardly moves.

    Args:
        advance: (k,) periods from one new row to the next by the motion; NaN where the robot hardly moves.
        periods: (N - 1,) periods from row to row by the stamps.
        rows: (k + 1,) indices of the new rows.
        repeated: (N,) whether a row repeats the one before.
    """
    count = np.where(repeated[1:], 0.0, periods)
    known = np.isfinite(advance)
    count[rows[1:][known] - 1] = np.maximum(np.round(advance[known]), 1.0)
    return count


def _counted_advances(steps: Floats, intervals: Floats, standing: NDArray[np.bool_]) -> tuple[Floats, float]:
    """Count the source periods from one new row to the next by the motion, and estimate the period.

    The advance is the length of a step over that of the ordinary step, the median of the steps nearby. Where the relay
    was slow for a while the ordinary step itself is several periods long: how many is its length over the path that
    the joints travel per period, taken from path and time of the steps nearby.

    Args:
        steps: (k, n) steps of the positions from one new row to the next [rad or m].
        intervals: (k,) their durations by the stamps [s].
        standing: (k,) whether the robot stood still before a step, so that its duration is not that of the step.

    Returns:
        (k,) advances in periods, NaN where the robot hardly moves; period [s].
    """
    ordinary = ndimage.median_filter(steps, size=(MEDIAN_STEPS, 1), mode="reflect")
    square = (ordinary**2).sum(axis=1)
    length = np.sqrt(square)  # (k,) of the ordinary steps
    moving = (length > SMALLEST_MOVING_STEP * np.percentile(length, 90.0)) & ~standing
    # projection of each step on the ordinary one, in lengths of the ordinary one
    advance = np.full(len(steps), np.nan)
    advance[moving] = (steps * ordinary).sum(axis=1)[moving] / square[moving]
    usual = float(np.median(intervals))
    if not moving.any():
        return advance, usual
    period = float(intervals[moving].sum() / np.maximum(np.round(advance[moving]), 1.0).sum())
    # (k,) path, and number of periods, of the steps nearby: their ratio is the path per period
    window = np.ones(MEDIAN_STEPS)
    path = np.convolve(np.sqrt((steps**2).sum(axis=1)), window, mode="same")
    passed = np.convolve(np.where(standing, usual, intervals), window, mode="same") / period
    with np.errstate(divide="ignore", invalid="ignore"):
        several = np.round(passed * length / path)  # periods per ordinary step
    advance[moving] *= np.clip(several[moving], 1.0, None)
    counted = np.maximum(np.round(advance[moving]), 1.0)
    return advance, float(intervals[moving].sum() / counted.sum())


def on_source_clock(recording: Recording) -> tuple[Recording, str]:
    """Remove the rows that a relay repeated, and replace its stamps by the robot's clock.

    A log with several clocks, or with single samples that no motion connects, is not judged.

    Returns:
        The recording and a note; the same recording and an empty note if it was not relayed.
    """
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
