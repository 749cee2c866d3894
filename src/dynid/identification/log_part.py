"""Parts of a log: the rows or the time that are used, and the samples that are held out for the validation.

`cut_recording` keeps a range of rows or time; `split_recording` splits off the held-out data. A held-out part at one
end of the log is cut off. Held-out parts in the middle keep their positions in both recordings, so that the motion
continues without a gap, but their torques are NaN in the training part: the fit never sees the torques that judge it.
The other recording still has all torques; `mask_training` removes those of the training after processing.

The texts of settings are read here, too: hold-out, rows, time, gravity.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.checks import LARGEST_SIGNAL
from dynid.errors import ArgumentError, DataError
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment

Mask = NDArray[np.bool_]
HOLD_OUT_FORMS = "40% for the last 40 %, 12:16 for seconds 12 to 16, every:3:0.75 for every third block of 0.75 s"
"""The three ways to write a hold-out rule, for remedies."""


@dataclass(frozen=True, slots=True)
class HoldOut:
    """A rule that selects the held-out samples of a log."""

    kind: Literal["last", "range", "every"]
    """The last share of the log, a range of time, or every k-th block of time."""
    first: float
    """By kind: share of the log [%]; start of the range since the start of the log [s]; k of every k-th block."""
    second: float = 0.0
    """By kind: not used; end of the range since the start of the log [s]; duration of a block [s]."""

    @property
    def leaves_both_sides(self) -> bool:
        """Whether the rule can leave data both to fit and to validate with."""
        if self.kind == "range":
            return self.first < self.second
        return 0.0 < self.first < 100.0 if self.kind == "last" else self.first >= 2 and self.second > 0.0

    def select(self, since_start: Floats, duration_s: float) -> Mask:
        """(N,) whether the samples at these times since the start of the log [s] are held out."""
        if self.kind == "last":
            return np.asarray(since_start >= (1.0 - self.first / 100.0) * duration_s)
        if self.kind == "range":
            return np.asarray((since_start >= self.first) & (since_start < self.second))
        block = since_start // self.second
        return np.asarray(block % self.first == self.first - 1)  # the last block of each k


NUMBER_PATTERN = r"(\d{1,15}\.?\d{0,15}|\.\d{1,15})"
"""Regular expression of a number without a sign."""
HOLD_OUT_PATTERNS: dict[Literal["last", "range", "every"], str] = {
    "last": f"{NUMBER_PATTERN} ?%",
    "range": f"{NUMBER_PATTERN}:{NUMBER_PATTERN}",
    "every": rf"every:(\d{{1,9}}):{NUMBER_PATTERN}",
}
"""Kind of a rule -> the regular expression of its text."""


def read_hold_out(text: str) -> HoldOut:
    """Read a rule from text.

    Args:
        text: ``40%`` for the last 40 %, ``12:16`` for seconds 12 to 16, ``every:3:0.75`` for every third block of
            0.75 s.

    Raises:
        ArgumentError: The text is none of these.
    """
    for kind, pattern in HOLD_OUT_PATTERNS.items():
        if found := re.fullmatch(pattern, str(text)):
            rule = HoldOut(kind, *map(float, found.groups()))
            if rule.leaves_both_sides:
                return rule
            reason = f"a hold-out of '{text}' leaves nothing to identify from, or nothing to validate with"
            raise ArgumentError(reason, remedy=f"Write {HOLD_OUT_FORMS}.")
    raise ArgumentError(f"hold_out is {text!r}, which is not a part of a log", remedy=f"Write {HOLD_OUT_FORMS}.")


def split_recording(recording: Recording, rule: HoldOut) -> tuple[Recording, Recording]:
    """Split a log into the training part, without held-out torques, and a recording that contains the held-out data.

    The second is the held-out part alone where that is one end of the log, and the whole log otherwise.

    Args:
        recording: The log.
        rule: Selects the held-out samples.

    Raises:
        DataError: One of the parts would be empty.
    """
    held = rule.select(recording.time - recording.time[0], recording.duration)
    if held.all() or not held.any():
        what = "all of" if held.all() else "none of"
        raise DataError(
            f"{what} the log's {recording.duration:.4g} s would be held out", remedy=f"Write {HOLD_OUT_FORMS}."
        )
    if np.count_nonzero(np.diff(held)) == 1:  # the held-out samples are one end of the log
        return cut_between(recording, ~held), cut_between(recording, held)
    channels: dict[str, Any] = {}
    # channels that may have a clock of their own; None: the clock of the positions
    clocks = {"effort": recording.effort_time, "current": recording.effort_time, "wrench": recording.wrench_time}
    for name, own_time in clocks.items():
        values = getattr(recording, name)
        if values is not None:
            stamps = recording.time if own_time is None else own_time
            is_held_out = rule.select(stamps - recording.time[0], recording.duration)
            channels[name] = np.where(is_held_out[:, None], np.nan, values)
    return replace(recording, **channels), recording


def mask_training(run: Experiment, recording: Recording, rule: HoldOut) -> Experiment:
    """Remove all torques from an experiment that are not held out.

    Args:
        run: The experiment of the second recording that `split_recording` gave.
        recording: The whole log.
        rule: Selects the held-out samples.
    """
    held = rule.select(run.time - recording.time[0], recording.duration)[:, None]
    return replace(run, effort=np.where(held, run.effort, np.nan), valid=run.valid & held)


def cut_between(recording: Recording, rows: Mask) -> Recording:
    """Cut off what lies before the first and after the last of the marked rows; rows between them stay.

    Channels with a clock of their own are cut at the same times.

    Args:
        recording: The log.
        rows: (N,) marks of the rows.
    """
    inside = np.flatnonzero(rows)
    window = slice(int(inside[0]), int(inside[-1]) + 1)
    start, stop = recording.time[window][[0, -1]]
    cut: dict[str, Any] = {}
    clock_names = {"effort": "effort_time", "current": "effort_time", "wrench": "wrench_time"}
    for name in ("time", "q", "dq", "effort", "current", "wrench"):
        values = getattr(recording, name)
        own_time = getattr(recording, clock_names.get(name, ""), None)  # None: the clock of the positions
        kept = window if own_time is None else (own_time >= start) & (own_time <= stop)
        cut[name] = None if values is None else values[kept]
        if own_time is not None:
            cut[clock_names[name]] = own_time[kept]
    return replace(recording, **cut)


ROWS = "a:b for rows a to b - 1, counted from 0, a: for all from a on, :b for the first b"
"""How a range of rows is written, for remedies."""
TIMES = "a:b for the time from a to b since the start of the log [s], a: for all from a on, :b for the first b seconds"
"""How a range of time is written, for remedies."""


def read_part(text: str, what: Literal["rows", "time"]) -> tuple[float, float]:
    """Read a range of rows such as ``100:5000``, or of time such as ``2.5:30`` [s], as its beginning and its end.

    A missing beginning is 0, a missing end is infinite.

    Raises:
        ArgumentError: The text is no range, or the range is empty.
    """
    first, colon, stop = text.partition(":")
    number, form = (int, ROWS) if what == "rows" else (float, TIMES)
    try:
        start = number(first or "0")
        end = number(stop) if stop.strip() else math.inf
    except ValueError:
        start = end = 0  # an empty range, which is refused below
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
    """Read gravity in the frame of the root link from text such as ``0,0,-9.81`` [m/s^2].

    Raises:
        ArgumentError: The text does not hold three numbers of a size that signals have.
    """
    try:
        gravity = tuple(float(word) for word in text.split(","))
    except ValueError:
        gravity = ()  # refused below
    if len(gravity) != 3 or not np.all(np.abs(gravity) < LARGEST_SIGNAL):
        remedy = "Give x,y,z in the frame of the root link, such as 0,0,-9.81."
        raise ArgumentError(f"gravity is '{text}'", remedy=remedy)
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
