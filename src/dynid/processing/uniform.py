"""Bring a raw log to one uniform clock, with its faults removed and counted; nothing is filtered yet.

`dynid.processing.process` calls `make_uniform` with a `Recording`, a raw log in SI units. The result are *stretches*,
parts of the log without a gap, in which all channels are interpolated to the same instants. In this order:

1. rows that a relay repeated are removed (`on_source_clock` in timing.py),
2. angles are unwrapped, and rows with missing or absurd positions are left out,
3. the time stamps of the other rows are sorted, and cut at gaps (`read_clock` in timing.py),
4. absurd and clipped torques are replaced by NaN,
5. every channel is interpolated to a uniform grid of instants in each stretch.

Torques and wrenches may have a clock of their own, or a delay: then they are interpolated from their own stamps.
Every sample left out is counted with its reason (`Dropped`), as joint samples: one joint at one instant.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.checks import check_number
from dynid.errors import DataError
from dynid.logs.recording import Recording, all_finite
from dynid.processing.experiment import Dropped
from dynid.processing.outliers import absurd_samples, longest_spike, saturated_samples, unwrap_angles
from dynid.processing.timing import (
    CLOCK_FAULTS,
    on_source_clock,
    read_clock,
    resample,
    uniform_grid,
)

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """Which faults are removed from a recording, and when it is refused."""

    max_gap_s: float | None = None
    """Longest step within a stretch [s]; three sampling periods by default."""
    relayed: bool = True
    """Whether rows that a relay repeated are dropped, and the robot's own clock is estimated from the motion
    (`dynid.processing.timing.source_clock`)."""
    most_missing: float = 0.05
    """Largest share of a joint's samples that may be not finite (convention)."""
    most_saturated: float = 0.20
    """Largest share of a joint's torques that may be clipped (convention)."""

    def __post_init__(self) -> None:
        """Refuse a gap that is not a time above zero."""
        check_number("max_gap_s", self.max_gap_s, "a time above zero [s], or None")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretch:
    """One gap-free piece on the uniform clock."""

    time: Floats
    """(N,) time stamps [s]."""
    q: Floats
    """(N, n) positions [rad or m]."""
    dq: Floats | None
    """(N, n) measured velocities [rad/s or m/s]; None if the log has none."""
    effort: Floats
    """(N, n) torques or forces [N m or N]."""
    effort_known: Mask
    """(N, n) whether the torque lies between usable samples; other torques are numbers without meaning, or NaN."""
    wrench: Floats | None
    """(N, 6) forces [N] and moments [N m]; None if the log has none."""
    wrench_known: Mask | None
    """(N, 6) whether the wrench lies between usable samples."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UniformRecording:
    """The stretches of a log at one rate, with the faults that were removed."""

    stretches: tuple[Stretch, ...]
    """The stretches, in the order of the log."""
    rate_hz: float
    """Sampling rate of all stretches [Hz]."""
    dropped: dict[Dropped, int]
    """Reason -> joint samples left out."""
    notes: tuple[str, ...]
    """Lines for `Experiment.processing_steps`."""


def make_uniform(
    recording: Recording,
    cleaning: Cleaning,
    *,
    effort_delay_s: float = 0.0,
    with_velocity: bool = False,
    period_s: float | None = None,
    origin_s: float | None = None,
) -> UniformRecording:
    """Clean a recording and bring all its channels to the clock of the positions.

    Args:
        recording: The raw log.
        cleaning: Which faults to remove.
        effort_delay_s: Delay of the torques [s]; they are moved back by it.
        with_velocity: Whether measured velocities are needed, so that rows without them are left out.
        period_s: Sampling period [s] where known, as for later pieces of a log; None to take it from the stamps.
        origin_s: A time stamp of the uniform clock [s] where known, as for later pieces of a log; None for the first
            stamp of each stretch.

    Raises:
        DataError: The log is too faulty, its rate is not that of a robot's log, or no stretch is long enough.
    """
    dropped: Counter[Dropped] = Counter()
    notes: list[str] = []
    joints = recording.q.shape[1]
    if cleaning.relayed and period_s is None:
        rows_logged = recording.time.size
        recording, note = on_source_clock(recording)
        dropped[Dropped.REPEATED_ROW] += joints * (rows_logged - recording.time.size)
        notes += [note] if note else []
    q, is_usable = _usable_positions(recording, cleaning, with_velocity, dropped, notes)
    rows = np.flatnonzero(is_usable)
    clock = read_clock(recording.time[rows], max_gap_s=cleaning.max_gap_s, period_s=period_s)
    if not 5.0 <= clock.rate_hz <= 1e5:  # no logger of robots: the unit of time is wrong
        unit = "milliseconds or nanoseconds" if clock.rate_hz < 5.0 else "hours or minutes"
        reason = f"the time stamps give a sampling rate of {clock.rate_hz:.3g} Hz"
        raise DataError(reason, remedy=f"Is time in {unit}? Declare its unit.")
    faults = "".join(f"; {CLOCK_FAULTS[code]}: {count}" for code, count in clock.faults.items())
    notes.append(
        f"clock: {clock.rate_hz:.6g} Hz, step scatter {100 * clock.jitter_s / clock.period_s:.2g} % of a period, "
        f"{len(clock.stretches)} gap-free stretch{'es' if len(clock.stretches) > 1 else ''}{faults}"
    )
    dropped.update({reason: joints * clock.faults.get(code, 0) for code, reason in _DROPPED_STAMPS.items()})
    effort = _usable_effort(recording, cleaning, dropped)
    wrench = recording.wrench
    if wrench is not None and not all_finite(wrench):
        wrench = np.where(np.isfinite(wrench), wrench, np.nan)
    channels = {
        "effort": _Channel.read(recording, effort, recording.effort_time, effort_delay_s, cleaning),
        "wrench": _Channel.read(recording, wrench, recording.wrench_time, 0.0, cleaning),
    }
    if not clock.monotone and any(c is not None and c.foreign for c in channels.values()):
        raise DataError(
            "the clock of the positions jumps backwards, so a channel with a clock of its own cannot be matched to it",
            remedy="Cut the log at the jump and give both parts as recordings.",
        )
    stretches = []
    for piece in clock.stretches:
        stamps = clock.time[piece]
        chosen = rows[clock.rows[piece]]  # rows of the log; those of the clock are counted among the usable ones
        if stamps.size < 4:  # too few for a cubic spline
            dropped[Dropped.SHORT_STRETCH] += joints * stamps.size
            continue
        grid = uniform_grid(stamps, clock.period_s, origin_s)
        stretches.append(_stretch(recording, grid, stamps, chosen, q[chosen], channels, clock.gap_s))
    if not stretches:
        raise DataError("no gap-free stretch of four samples is left", remedy="Record longer, without gaps.")
    return UniformRecording(
        stretches=tuple(stretches),
        rate_hz=clock.rate_hz,
        dropped={k: n for k, n in dropped.items() if n},
        notes=tuple(notes),
    )


_DROPPED_STAMPS = {"not-finite": Dropped.NO_TIME, "repeated-samples": Dropped.REPEATED_STAMP}
"""Code of a fault of the clock -> the reason under which its rows are counted as left out."""


def _usable_positions(
    recording: Recording, cleaning: Cleaning, with_velocity: bool, dropped: Counter[Dropped], notes: list[str]
) -> tuple[Floats, Mask]:
    """Unwrap positions and find the rows whose motion can be used.

    Args:
        recording: The log.
        cleaning: Which faults to remove.
        with_velocity: Whether rows without measured velocities are left out.
        dropped: Reason -> joint samples left out; the faults found here are added.
        notes: Lines for `Experiment.processing_steps`; one about unwrapped angles is added.

    Returns:
        (N, n) positions, continuous where they were wrapped, and (N,) whether a row can be used.
    """
    q = recording.q
    joints = q.shape[1]
    _refuse_if_missing(recording, "position", q, cleaning.most_missing)
    finite = _finite_rows(q)
    dropped[Dropped.NO_POSITION] += joints * int(np.count_nonzero(~finite))
    if with_velocity and recording.dq is not None:
        known = _finite_rows(recording.dq)
        dropped[Dropped.NO_VELOCITY] += joints * int(np.count_nonzero(finite & ~known))
        finite &= known
    rows = slice(None) if finite.all() else np.flatnonzero(finite)  # a slice copies nothing
    used = q[rows]
    clean, jumps = unwrap_angles(used)  # continuous angles, and the number of jumps of each joint
    if jumps.any():
        named = ", ".join(f"{recording.joint_names[j]} {jumps[j]} times" for j in np.flatnonzero(jumps))
        notes.append(f"unwrapped angles: {named}")
    marked = absurd_samples(clean, longest_spike(recording.time))
    if marked.any():
        good = ~marked.any(axis=1)
        dropped[Dropped.POSITION_SPIKE] += joints * int(np.count_nonzero(~good))
        finite[rows] = good
        clean = clean.copy()
        clean[good] = unwrap_angles(used[good])[0]  # again: a spike can look like a jump by whole turns
    if isinstance(rows, slice):
        return clean, finite
    all_rows = q.copy()
    all_rows[rows] = clean
    return all_rows, finite


def _finite_rows(x: Floats) -> Mask:
    """Test for each row of x (N, k) whether all its numbers are finite, (N,)."""
    return np.ones(x.shape[0], dtype=bool) if all_finite(x) else np.asarray(np.isfinite(x).all(axis=1))


def _usable_effort(recording: Recording, cleaning: Cleaning, dropped: Counter[Dropped]) -> Floats | None:
    """Replace torques (M, n) that cannot be used by NaN, and count them; None if the log has no torques."""
    if recording.effort is None:
        return None
    effort = recording.effort
    _refuse_if_missing(recording, "torque", effort, cleaning.most_missing)
    if not all_finite(effort):
        effort = np.where(np.isfinite(effort), effort, np.nan)
        dropped[Dropped.NO_TORQUE] += int(np.count_nonzero(np.isnan(effort)))
    spikes = absurd_samples(
        effort, longest_spike(recording.time if recording.effort_time is None else recording.effort_time)
    )
    if spikes.any():
        dropped[Dropped.TORQUE_SPIKE] += int(np.count_nonzero(spikes))
        effort = np.where(spikes, np.nan, effort)
    if (clipped := saturated_samples(effort)).any():
        share = clipped.mean(axis=0)
        worst = int(np.argmax(share))
        if share[worst] > cleaning.most_saturated:
            raise DataError(
                f"the torque of {recording.joint_names[worst]} is clipped in {100 * share[worst]:.0f} % of the samples",
                remedy="Record a slower motion, or raise the torque or current limit of the drive.",
            )
        dropped[Dropped.SATURATED] += int(np.count_nonzero(clipped))
        effort = np.where(clipped, np.nan, effort)
    return effort


def _refuse_if_missing(recording: Recording, what: str, values: Floats, most: float) -> None:
    """Refuse a log without values, or with too many that are not finite.

    Args:
        recording: The log, for the names of its joints.
        what: Name of the quantity, for the error.
        values: (N, n) its values.
        most: Largest share of a joint's values that may be not finite.
    """
    if not values.size:
        raise DataError("the recording is empty", remedy="Check the log and its channel map.")
    if all_finite(values):
        return
    share = 1.0 - np.isfinite(values).mean(axis=0)
    worst = int(np.argmax(share))
    if share[worst] > most:
        raise DataError(
            f"{100 * share[worst]:.1f} % of the {what} samples of {recording.joint_names[worst]} are not finite",
            remedy=f"At most {100 * most:g} % may be missing; check the channel, or cut the log.",
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Channel:
    """Torques or wrenches with their clock: that of the positions, row by row, or another one."""

    values: Floats
    """(M, k) samples."""
    time: Floats
    """(M,) their time stamps [s]."""
    foreign: bool
    """Whether the clock is another one than that of the positions, as it also is after a shift by a delay."""
    gap_s: float
    """Longest step of a foreign clock [s]."""

    @classmethod
    def read(
        cls, recording: Recording, values: Floats | None, time: Floats | None, delay_s: float, cleaning: Cleaning
    ) -> _Channel | None:
        """Make the channel; None without values.

        Args:
            recording: The log.
            values: (M, k) samples.
            time: (M,) their time stamps [s]; None for those of the positions.
            delay_s: Delay of the samples [s]; they are moved back by it.
            cleaning: The longest step that is interpolated across.
        """
        if values is None:
            return None
        if time is None and delay_s == 0.0:
            return cls(values, recording.time, foreign=False, gap_s=0.0)
        clock = read_clock(recording.time if time is None else time, max_gap_s=cleaning.max_gap_s)
        if not clock.monotone:
            raise DataError("the clock of the torques or wrenches jumps backwards", remedy="Cut the log at the jump.")
        return cls(values[clock.rows], clock.time - delay_s, foreign=True, gap_s=clock.gap_s)

    def interpolate(self, grid: Floats) -> tuple[Floats, Mask]:
        """Interpolate a channel of a foreign clock at instants (N,) [s].

        Returns:
            (N, k) values, and (N, k) whether each is known.
        """
        # a spline at the ends of the grid needs a few samples beyond them
        first, last = np.searchsorted(self.time, grid[[0, -1]])
        near = slice(max(0, first - 12), last + 12)
        return resample(self.time[near], self.values[near], grid, max_gap_s=self.gap_s)


def _stretch(
    recording: Recording,
    grid: Floats,
    stamps: Floats,
    rows: NDArray[np.int64],
    q: Floats,
    channels: dict[str, _Channel | None],
    gap_s: float,
) -> Stretch:
    """Interpolate all channels of one stretch to its grid of instants.

    Args:
        recording: The log.
        grid: (N,) instants of the uniform clock [s].
        stamps: (M,) stamps of the samples [s].
        rows: (M,) their rows in the log.
        q: (M, n) their positions, cleaned.
        channels: "effort" and "wrench" -> the channel; None where the log has none.
        gap_s: Longest step that is interpolated across [s].
    """
    # channels on the clock of the positions, (M, k) each
    own = {"q": q} | ({} if recording.dq is None else {"dq": recording.dq[rows]})
    own |= {name: c.values[rows] for name, c in channels.items() if c is not None and not c.foreign}
    # name -> (N, k) values, and (N, k) whether each is known
    found = {name: resample(stamps, values, grid, max_gap_s=gap_s) for name, values in own.items()}
    found |= {name: c.interpolate(grid) for name, c in channels.items() if c is not None and c.foreign}
    positions = found["q"][0]
    velocity = found["dq"][0] if "dq" in found else None
    effort = found.get("effort") or (np.full(positions.shape, np.nan), np.zeros(positions.shape, dtype=bool))
    wrench = found.get("wrench") or (None, None)
    return Stretch(
        time=grid,
        q=positions,
        dq=velocity,
        effort=effort[0],
        effort_known=effort[1],
        wrench=wrench[0],
        wrench_known=wrench[1],
    )
