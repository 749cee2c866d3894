"""The part of a log that is used, some rows or a range of time, and parts of it that are held out for the proof.

A user with a single log still needs a proof. A held-out part at one end of the log is cut off. A held-out part in the
middle keeps its positions on both sides, so that the motion continues without a gap, but its torques are visible to one
side only: the fit never sees the torques that judge it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.checks import LARGEST_SIGNAL
from dynid.errors import ArgumentError, DataError
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment

Mask = NDArray[np.bool_]
FORMS = "40% for the last 40 %, 12:16 for seconds 12 to 16, every:3:0.75 for every third block of 0.75 s"
"""The three ways to write a rule, for remedies."""


@dataclass(frozen=True, slots=True)
class HoldOut:
    """A rule that selects the held-out samples of a log."""

    kind: Literal["last", "range", "every"]
    first: float
    """Share of the log [%], start of the range since the start of the log [s], or number of blocks."""
    second: float = 0.0
    """End of the range [s], or duration of a block [s]."""

    @property
    def leaves_both_sides(self) -> bool:
        """Whether there can be data on both sides."""
        if self.kind == "range":
            return self.first < self.second
        return 0.0 < self.first < 100.0 if self.kind == "last" else self.first >= 2 and self.second > 0.0

    def select(self, since_start: Floats, duration_s: float) -> Mask:
        """(N,) whether the samples at these times since the start of the log [s] are held out."""
        if self.kind == "last":
            return np.asarray(since_start >= (1.0 - self.first / 100.0) * duration_s)
        if self.kind == "range":
            return np.asarray((since_start >= self.first) & (since_start < self.second))
        return np.asarray(since_start // self.second % self.first == self.first - 1)


NUMBER = r"(\d{1,15}\.?\d{0,15}|\.\d{1,15})"
"""A number without a sign."""
WRITTEN: dict[Literal["last", "range", "every"], str] = {
    "last": f"{NUMBER} ?%", "range": f"{NUMBER}:{NUMBER}", "every": rf"every:(\d{{1,9}}):{NUMBER}",
}  # fmt: skip
"""How each kind is written."""


def read_hold_out(text: str) -> HoldOut:
    """Read a rule from text.

    Args:
        text: ``40%`` for the last 40 %, ``12:16`` for seconds 12 to 16, ``every:3:0.75`` for every third block of
            0.75 s.

    Raises:
        ArgumentError: The text is none of these.
    """
    for kind, pattern in WRITTEN.items():
        if found := re.fullmatch(pattern, str(text)):
            rule = HoldOut(kind, *map(float, found.groups()))
            if rule.leaves_both_sides:
                return rule
            reason = f"a hold-out of '{text}' leaves nothing to identify from, or nothing to validate with"
            raise ArgumentError(reason, remedy=f"Write {FORMS}.")
    raise ArgumentError(f"hold_out is {text!r}, which is not a part of a log", remedy=f"Write {FORMS}.")


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


def read_part(text: str, what: Literal["rows", "time"]) -> tuple[float, float]:
    """Read a range of rows such as ``100:5000``, or of time such as ``2.5:30`` [s]: its beginning and its end.

    Raises:
        ArgumentError: The text is no range, or the range is empty.
    """
    first, colon, stop = text.partition(":")
    number, form = (int, ROWS) if what == "rows" else (float, TIMES)
    try:
        start, end = number(first or "0"), number(stop) if stop.strip() else math.inf
    except ValueError:
        start = end = 0
    if not (colon and 0 <= start < end):
        raise ArgumentError(f"'{text}' is no range of {what}", place=what, remedy=f"Write {form}.")
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
        first, last = read_part(rows, "rows")
        kept[: int(first)] = False
        kept &= np.arange(kept.size) < last
    if time is not None:
        if recording.isolated:
            raise ArgumentError("isolated rows have no time", place="time", remedy="Give rows instead of time.")
        start, end = read_part(time, "time")
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
        ArgumentError: The text does not hold three numbers of a size that signals have.
    """
    try:
        gravity = tuple(float(word) for word in text.split(","))
    except ValueError:
        gravity = ()
    if len(gravity) != 3 or not np.all(np.abs(gravity) < LARGEST_SIGNAL):
        remedy = "Give x,y,z in the frame of the root link, such as 0,0,-9.81."
        raise ArgumentError(f"gravity is {list(gravity)}", remedy=remedy)
    return gravity


def check_part(rows: str | None, time: str | None) -> None:
    """Check the settings that say which part of a log is used.

    Raises:
        ArgumentError: A text is no range.
    """
    if rows is not None:
        read_part(rows, "rows")
    if time is not None:
        read_part(time, "time")
