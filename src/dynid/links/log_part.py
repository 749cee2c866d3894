"""The part of a log that is used: some rows, or a range of time."""

from __future__ import annotations

import math

import numpy as np

from dynid.errors import ArgumentError, DataError
from dynid.links.hold_out import cut_between
from dynid.logs.recording import Recording

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
