"""The part of a log that is used, some rows or a range of time, and parts of it that are held out for the proof.

A user with a single log still needs a proof. A held-out part at one end of the log is cut off. A held-out part in the
middle keeps its positions on both sides, so that the motion continues without a gap, but its torques are visible to one
side only: the fit never sees the torques that judge it.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import ArgumentError, DataError
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment

Mask = NDArray[np.bool_]
FORMS = "40% for the last 40 %, 12:16 for seconds 12 to 16, every:3:0.75 for every third block of 0.75 s"
"""The three ways to write a rule, for remedies."""


class HoldOut(ABC):
    """A rule that selects the held-out samples of a log."""

    @abstractmethod
    def select(self, since_start: Floats, duration_s: float) -> Mask:
        """(N,) whether the samples at these times since the start of the log [s] are held out."""


@dataclass(frozen=True, slots=True)
class LastPart(HoldOut):
    """The last part of the log."""

    share: float
    """Share of the duration of the log, between 0 and 1."""

    def __post_init__(self) -> None:
        """Refuse shares that leave one side empty."""
        if not 0.0 < self.share < 1.0:
            lacking = "to validate with" if self.share <= 0.0 else "to identify from"
            raise ArgumentError(
                f"a hold-out of {100 * self.share:g} % leaves no data {lacking}", remedy=f"Write {FORMS}."
            )

    def select(self, since_start: Floats, duration_s: float) -> Mask:
        return np.asarray(since_start >= (1.0 - self.share) * duration_s)


@dataclass(frozen=True, slots=True)
class TimeRange(HoldOut):
    """A range of time."""

    start_s: float
    """Start of the range since the start of the log [s]."""
    stop_s: float
    """End of the range since the start of the log [s]."""

    def __post_init__(self) -> None:
        """Refuse empty ranges."""
        if not 0.0 <= self.start_s < self.stop_s:
            raise ArgumentError(f"a hold-out from {self.start_s:g} to {self.stop_s:g} s", remedy=f"Write {FORMS}.")

    def select(self, since_start: Floats, duration_s: float) -> Mask:
        return np.asarray((since_start >= self.start_s) & (since_start < self.stop_s))


@dataclass(frozen=True, slots=True)
class EveryBlock(HoldOut):
    """Every n-th block of time."""

    of: int
    """Number of blocks of which the last one is held out."""
    length_s: float
    """Duration of a block [s]."""

    def __post_init__(self) -> None:
        """Refuse blocks that leave one side empty."""
        if self.of < 2 or not 0.0 < self.length_s < np.inf:
            reason = f"every:{self.of}:{self.length_s:g} leaves nothing to identify from, or holds nothing out"
            raise ArgumentError(reason, remedy=f"Write {FORMS}.")

    def select(self, since_start: Floats, duration_s: float) -> Mask:
        return np.asarray(since_start // self.length_s % self.of == self.of - 1)


def read_hold_out(text: str) -> HoldOut:
    """Read a rule from text.

    Args:
        text: ``40%`` for the last 40 %, ``12:16`` for seconds 12 to 16, ``every:3:0.75`` for every third block of
            0.75 s.

    Raises:
        ArgumentError: The text is none of these.
    """
    if not isinstance(text, str):
        share = isinstance(text, int | float) and not isinstance(text, bool) and 0.0 < float(text) < 100.0
        percent = 100.0 * float(text) if share and float(text) < 1.0 else text
        likely = f'hold_out="{percent:g}%", or ' if share else ""
        raise ArgumentError(f"hold_out is {text!r}", remedy=f"Write it as a text: {likely}{FORMS}.")
    number = r"(\d{1,15}\.?\d{0,15}|\.\d{1,15})"
    if found := re.fullmatch(rf"{number} ?%", text):
        return LastPart(float(found[1]) / 100.0)
    if found := re.fullmatch(rf"{number}:{number}", text):
        return TimeRange(float(found[1]), float(found[2]))
    if found := re.fullmatch(rf"every:(\d{{1,9}}):{number}", text):
        return EveryBlock(int(found[1]), float(found[2]))
    raise ArgumentError(f"'{text}' is not a part of a log", remedy=f"Write {FORMS}.")


def split_recording(recording: Recording, rule: HoldOut) -> tuple[Recording, Recording]:
    """Split a log into the training part, without the held-out torques, and the part that contains the held-out data.

    Args:
        recording: The log.
        rule: Selects the held-out samples.

    Raises:
        DataError: One of the parts would be empty.
    """
    held = rule.select(recording.time - recording.time[0], recording.duration)
    if held.all() or not held.any():
        what = "all of" if held.all() else "none of"
        raise DataError(f"{what} the log's {recording.duration:.4g} s would be held out", remedy=f"Write {FORMS}.")
    if np.count_nonzero(np.diff(held)) == 1:
        return cut_between(recording, ~held), cut_between(recording, held)
    channels: dict[str, Any] = {}
    clocks = {"effort": recording.effort_time, "current": recording.effort_time, "wrench": recording.wrench_time}
    for name, own in clocks.items():
        if (values := getattr(recording, name)) is not None:
            stamps = recording.time if own is None else own
            taken = rule.select(stamps - recording.time[0], recording.duration)
            channels[name] = np.where(taken[:, None], np.nan, values)
    return replace(recording, **channels), recording


def mask_training(run: Experiment, recording: Recording, rule: HoldOut) -> Experiment:
    """Mask everything in an experiment that is not held out.

    Args:
        run: The experiment of the second part that `split_recording` gave.
        recording: The whole log.
        rule: Selects the held-out samples.
    """
    held = rule.select(run.time - recording.time[0], recording.duration)[:, None]
    return replace(run, effort=np.where(held, run.effort, np.nan), valid=run.valid & held)


def cut_between(recording: Recording, rows: Mask) -> Recording:
    """Cut off what lies before the first and after the last of the rows."""
    inside = np.flatnonzero(rows)
    window = slice(int(inside[0]), int(inside[-1]) + 1)
    start, stop = recording.time[window][[0, -1]]
    cut: dict[str, Any] = {}
    clocks = {"effort": "effort_time", "current": "effort_time", "wrench": "wrench_time"}
    for name in ("time", "q", "dq", "effort", "current", "wrench"):
        values, own = getattr(recording, name), getattr(recording, clocks.get(name, ""), None)
        mine = window if own is None else (own >= start) & (own <= stop)
        cut[name] = None if values is None else values[mine]
        if own is not None:
            cut[clocks[name]] = own[mine]
    return replace(recording, **cut)


ROWS = "a:b for rows a to b - 1, counted from 0, a: for all from a on, :b for the first b"
"""How a range of rows is written, for remedies."""
TIMES = "a:b for the time from a to b since the start of the log [s], a: for all from a on, :b for the first b seconds"
"""How a range of time is written, for remedies."""

STRONGEST_GRAVITY = 1e6
"""Strongest gravity of a setting [m/s^2] (convention: far above that of every place with robots)."""


def read_rows(text: str) -> slice:
    """Read a range of rows such as ``100:5000``.

    Raises:
        ArgumentError: The text is no range, or the range is empty.
    """
    first, colon, stop = text.partition(":")
    try:
        rows = slice(int(first or 0), int(stop) if stop.strip() else None)
    except ValueError:
        rows = slice(0, 0)
    if not colon or rows.start < 0 or (rows.stop is not None and rows.stop <= rows.start):
        raise ArgumentError(f"'{text}' is no range of rows", place="rows", remedy=f"Write {ROWS}.")
    return rows


def read_time(text: str) -> tuple[float, float]:
    """Read a range of time such as ``2.5:30`` [s].

    Raises:
        ArgumentError: The text is no range, or the range is empty.
    """
    first, colon, stop = text.partition(":")
    try:
        start, end = float(first or 0.0), float(stop) if stop.strip() else math.inf
    except ValueError:
        start, end = 0.0, 0.0
    if not (colon and 0.0 <= start < end):
        raise ArgumentError(f"'{text}' is no range of time", place="time", remedy=f"Write {TIMES}.")
    return start, end


def cut_recording(recording: Recording, *, rows: str | None = None, time: str | None = None) -> Recording:
    """Keep a part of a log.

    Args:
        recording: The log.
        rows: Rows that are kept, such as ``100:5000``; all if None.
        time: Time that is kept since the start of the log [s], such as ``2.5:30``; all if None.

    Raises:
        ArgumentError: A text is no range, or time is asked of isolated rows.
        DataError: Nothing is left of the log.
    """
    if rows is None and time is None:
        return recording
    kept = np.ones(recording.time.size, dtype=bool)
    if rows is not None:
        kept &= np.isin(np.arange(kept.size), np.arange(kept.size)[read_rows(rows)])
    if time is not None:
        if recording.isolated:
            raise ArgumentError("isolated rows have no time", place="time", remedy="Give rows instead of time.")
        start, end = read_time(time)
        since = recording.time - np.nanmin(recording.time)
        kept &= (since >= start) & (since < end)
    if not kept.any():
        size = f"{kept.size} rows" if time is None else f"{recording.duration:.4g} s"
        remedy = f"Write {ROWS if time is None else TIMES}."
        raise DataError(f"nothing is left: the log has {size}", path=recording.source, remedy=remedy)
    return cut_between(recording, kept)


def read_gravity(text: str) -> tuple[float, ...]:
    """Read gravity such as ``0,0,-9.81`` [m/s^2].

    Raises:
        ArgumentError: The text does not hold three finite numbers.
    """
    try:
        gravity = tuple(float(word) for word in text.split(","))
    except ValueError:
        gravity = ()
    if len(gravity) != len("xyz") or not all(abs(g) <= STRONGEST_GRAVITY for g in gravity):
        remedy = "Give x,y,z in the frame of the root link, such as 0,0,-9.81."
        raise ArgumentError(f"gravity is {list(gravity)}", remedy=remedy)
    return gravity


def check_part(rows: str | None, time: str | None) -> None:
    """Check the settings that say which part of a log is used.

    Raises:
        ArgumentError: A text is no range.
    """
    if rows is not None:
        read_rows(rows)
    if time is not None:
        read_time(time)
