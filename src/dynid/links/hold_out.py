"""Which part of a log is kept aside to prove the result, and the cut between the two.

Whoever has one log only still needs a proof. What is kept aside at an end of the log is cut off. What lies in between
keeps its positions on both sides of the cut, so that the motion goes on without a gap, but its torques are known to one
side only: nothing that is judged was seen before.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError, DataError
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment

__all__ = ["EveryBlock", "HoldOut", "LastPart", "TimeRange", "hold_out", "kept_aside", "split_recording"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
FORMS = "40% for the last 40 %, 12:16 for seconds 12 to 16, every:3:0.75 for every third block of 0.75 s"


class HoldOut(ABC):
    """A rule that tells the samples that are kept aside."""

    @abstractmethod
    def held(self, since_start: Floats, duration_s: float) -> Mask:
        """(N,) whether samples at these times [s] since the log's start are kept aside."""


@dataclass(frozen=True, slots=True)
class LastPart(HoldOut):
    """The last part of the log."""

    share: float
    """Of its duration; between 0 and 1."""

    def __post_init__(self) -> None:
        """Refuse shares that leave nothing to one side."""
        if not 0.0 < self.share < 1.0:
            raise ArgumentError(f"a hold-out of {100 * self.share:g} %", remedy=f"Write {FORMS}.")

    def held(self, since_start: Floats, duration_s: float) -> Mask:
        return np.asarray(since_start >= (1.0 - self.share) * duration_s)


@dataclass(frozen=True, slots=True)
class TimeRange(HoldOut):
    """A range of time."""

    start_s: float
    """Since the log's start [s]."""
    stop_s: float

    def __post_init__(self) -> None:
        """Refuse empty ranges."""
        if not 0.0 <= self.start_s < self.stop_s:
            raise ArgumentError(f"a hold-out from {self.start_s:g} to {self.stop_s:g} s", remedy=f"Write {FORMS}.")

    def held(self, since_start: Floats, duration_s: float) -> Mask:
        return np.asarray((since_start >= self.start_s) & (since_start < self.stop_s))


@dataclass(frozen=True, slots=True)
class EveryBlock(HoldOut):
    """Every n-th block of time."""

    of: int
    length_s: float
    """Of a block [s]."""

    def __post_init__(self) -> None:
        """Refuse blocks that leave nothing to one side."""
        if self.of < 2 or not 0.0 < self.length_s < np.inf:
            raise ArgumentError(f"every {self.of}th block of {self.length_s:g} s", remedy=f"Write {FORMS}.")

    def held(self, since_start: Floats, duration_s: float) -> Mask:
        return np.asarray(since_start // self.length_s % self.of == self.of - 1)


def hold_out(text: str) -> HoldOut:
    """The rule that a text stands for.

    Args:
        text: ``40%`` for the last 40 %, ``12:16`` for seconds 12 to 16, ``every:3:0.75`` for every third block of
            0.75 s.

    Raises:
        ArgumentError: It is none of these.
    """
    number = r"(\d+\.?\d*|\.\d+)"
    if found := re.fullmatch(rf"{number} ?%", text):
        return LastPart(float(found[1]) / 100.0)
    if found := re.fullmatch(rf"{number}:{number}", text):
        return TimeRange(float(found[1]), float(found[2]))
    if found := re.fullmatch(rf"every:(\d+):{number}", text):
        return EveryBlock(int(found[1]), float(found[2]))
    raise ArgumentError(f"'{text}' tells no part of a log", remedy=f"Write {FORMS}.")


def split_recording(recording: Recording, rule: HoldOut) -> tuple[Recording, Recording]:
    """The part of a log to identify from, without the torques in between, and the part that holds what is kept aside.

    Args:
        recording: The log.
        rule: What is kept aside.

    Raises:
        DataError: One of the parts would be empty.
    """
    held = rule.held(recording.time - recording.time[0], recording.duration)
    if held.all() or not held.any():
        what = "all of" if held.all() else "none of"
        raise DataError(f"{what} the log's {recording.duration:.4g} s would be kept aside", remedy=f"Write {FORMS}.")
    if np.count_nonzero(np.diff(held)) == 1:
        return _between(recording, ~held), _between(recording, held)
    channels: dict[str, Any] = {}
    clocks = {"effort": recording.effort_time, "current": recording.effort_time, "wrench": recording.wrench_time}
    for name, own in clocks.items():
        if (values := getattr(recording, name)) is not None:
            stamps = recording.time if own is None else own
            taken = rule.held(stamps - recording.time[0], recording.duration)
            channels[name] = np.where(taken[:, None], np.nan, values)
    return replace(recording, **channels), recording


def kept_aside(run: Experiment, recording: Recording, rule: HoldOut) -> Experiment:
    """An experiment of the part that holds what is kept aside, everything else masked."""
    held = rule.held(run.time - recording.time[0], recording.duration)[:, None]
    return replace(run, effort=np.where(held, run.effort, np.nan), valid=run.valid & held)


def _between(recording: Recording, rows: Mask) -> Recording:
    """The log without what lies before and after the rows."""
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
