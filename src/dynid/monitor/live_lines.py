"""Samples as lines of text, one a sample: CSV with a header, or JSON objects, as a robot's own program can write them.

The columns, or keys, are ``time`` [s], then ``q1 ... qn`` [rad or m], ``dq1 ... dqn`` and ``tau1 ... taun`` [N m or N];
JSON may also have lists under ``q``, ``dq`` and ``tau``, and their order under ``names``; without it that of the robot.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dynid.arrays import Floats
from dynid.checks import LARGEST_SIGNAL
from dynid.errors import DataError

CHANNELS = ("q", "dq", "tau")
SEPARATORS = (",", ";", "\t")
"""What may stand between the cells of CSV (convention)."""
LONGEST = 100_000
"""Most characters of a line (convention: far beyond that of any arm)."""
SET_CLOCK_S = 1.0
"""Step of the time, ahead or back, beyond which the clock was set, or a stamp was wrong [s] (convention: samples come
less late)."""


class _HeaderError(DataError):
    """A header without a column that every sample needs: no line after it can be read."""


@dataclass(slots=True)
class _Header:
    """The columns of CSV, as the first line names and separates them."""

    names: list[str] = field(default_factory=list)
    separator: str = ","


class Sample(NamedTuple):
    """One sample."""

    time_s: float
    q: Floats
    """(n,) joint positions [rad or m]."""
    dq: Floats
    """(n,) joint velocities."""
    torque: Floats
    """(n,) torques [N m or N]."""


def is_clock_set(before_s: float, now_s: float) -> bool:
    """Whether the clock was set between two samples, ahead or back; late samples and short gaps do not look so."""
    return bool(np.isfinite(now_s) and abs(now_s - before_s) > SET_CLOCK_S)


def read_samples(
    lines: Iterable[str], joint_names: Sequence[str], refused: Callable[[DataError], None] | None = None
) -> Iterator[Sample]:
    """Read samples from lines.

    Args:
        lines: CSV with a header, or one JSON object a line.
        joint_names: Names of the joints, in the robot's order.
        refused: Called with the error of a line that is no sample, which is then left out; an error ends all if None,
            and always where the header lacks columns.

    Raises:
        DataError: A line is no sample; its number is named.
    """
    header = _Header()
    for number, line in enumerate(lines, start=1):
        words = line.strip().removeprefix("\ufeff")
        if not words:
            continue
        try:
            sample = _from_line(words, number, joint_names, header)
        except DataError as error:
            if refused is None or isinstance(error, _HeaderError):
                raise
            refused(error)
            continue
        if sample is not None:
            yield sample


def _from_line(words: str, number: int, joint_names: Sequence[str], header: _Header) -> Sample | None:
    """The sample of a line; None for the header, which is filled."""
    if len(words) > LONGEST:
        raise DataError(f"line {number} has {len(words)} characters", remedy="Write one sample a line.")
    if words.startswith("{"):
        return _from_mapping(_json(words, number), joint_names, number)
    if not header.names:
        for separator in SEPARATORS:
            cells = [cell.strip() for cell in words.split(separator)]
            if "time" in cells:
                break
        else:
            raise DataError(
                f"line {number} is no header: there is no column named time",
                remedy=ask_for_lines(len(joint_names)),
            )
        missing = [f"{name}{j + 1}" for name in CHANNELS for j in range(len(joint_names))]
        missing = [name for name in missing if name not in cells]
        if missing:
            raise _HeaderError(
                f"line {number}: the header has no {', '.join(missing)}",
                remedy=ask_for_lines(len(joint_names)),
            )
        header.names, header.separator = cells, separator
        return None
    cells = words.split(header.separator)
    if header.separator == ";":
        cells = [cell.replace(",", ".") for cell in cells]  # who separates by semicolons may write decimal commas
    if len(cells) != len(header.names):
        raise DataError(
            f"line {number} has {len(cells)} cells, the header {len(header.names)}", remedy="Write one sample a line."
        )
    return _from_mapping(dict(zip(header.names, cells, strict=True)), joint_names, number)


def ask_for_lines(joints: int) -> str:
    """What to write, as a sentence with the header of CSV."""
    names = ",".join(["time", *(f"{name}{j + 1}" for name in CHANNELS for j in range(joints))])
    return f"Begin CSV with this header: {names}; or write one JSON object a line with these keys."


def _wanted(joints: int) -> str:
    return ", ".join(["time", *(f"{name}1 to {name}{joints}" for name in CHANNELS)])


def _json(text: str, number: int) -> Mapping[str, Any]:
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"line {number} is no JSON object: {error}", remedy="Write one object a line.") from error


def _from_mapping(values: Mapping[str, Any], joint_names: Sequence[str], number: int) -> Sample:
    joints = len(joint_names)
    try:
        channels = [
            np.array(values[name] if name in values else [values[f"{name}{j + 1}"] for j in range(joints)], dtype=float)
            for name in CHANNELS
        ]
        time_s = float(values["time"])
    except KeyError as error:
        raise DataError(f"line {number} has no {error}", remedy=f"Give {_wanted(joints)}.") from error
    except (TypeError, ValueError) as error:
        raise DataError(f"line {number} holds something that is no number: {error}", remedy="Write numbers.") from error
    if any(channel.shape != (joints,) for channel in channels):
        raise DataError(f"line {number} has other numbers of joints than {joints}", remedy="Give one number per joint.")
    if not (np.isfinite(time_s) and all(np.isfinite(channel).all() for channel in channels)):
        raise DataError(f"line {number} holds NaN or infinity", remedy="Leave such samples out.")
    if max(abs(time_s), *(float(np.abs(channel).max()) for channel in channels)) > LARGEST_SIGNAL:
        raise DataError(f"line {number} holds numbers that no robot reaches", remedy="Check units and their source.")
    if "names" in values:
        order = _order(values["names"], joint_names, number)
        channels = [channel[order] for channel in channels]
    return Sample(time_s, *channels)


def _order(given: Any, joint_names: Sequence[str], number: int) -> list[int]:
    """Places of the robot's joints in a line that names its own order."""
    if not isinstance(given, list) or sorted(map(str, given)) != sorted(joint_names):
        raise DataError(
            f"line {number} names other joints than the robot has", remedy=f"The joints are {', '.join(joint_names)}."
        )
    return [given.index(name) for name in joint_names]
