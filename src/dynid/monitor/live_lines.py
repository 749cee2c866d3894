"""Samples as lines of text, one a sample: CSV with a header, or JSON objects, as a robot's own program can write them.

The columns, or keys, are ``time`` [s], then ``q1 ... qn`` [rad or m], ``dq1 ... dqn`` and ``tau1 ... taun`` [N m or N];
JSON may also have lists under ``q``, ``dq`` and ``tau``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError

__all__ = ["Sample", "read_samples"]

Floats = NDArray[np.float64]
CHANNELS = ("q", "dq", "tau")
LONGEST = 100_000
"""Most characters of a line (convention: far beyond that of any arm)."""


class Sample(NamedTuple):
    """One sample."""

    time_s: float
    q: Floats
    """(n,) joint positions [rad or m]."""
    dq: Floats
    """(n,) joint velocities."""
    torque: Floats
    """(n,) torques [N m or N]."""


def read_samples(lines: Iterable[str], joints: int) -> Iterator[Sample]:
    """Read samples from lines.

    Args:
        lines: CSV with a header, or one JSON object a line.
        joints: Number of joints.

    Raises:
        DataError: A line is no sample; its number is named.
    """
    header: list[str] | None = None
    for number, line in enumerate(lines, start=1):
        words = line.strip()
        if not words:
            continue
        if len(words) > LONGEST:
            raise DataError(f"line {number} has {len(words)} characters", remedy="Write one sample a line.")
        if words.startswith("{"):
            yield _from_mapping(_json(words, number), joints, number)
        elif header is None:
            header = [name.strip() for name in words.split(",")]
        else:
            cells = words.split(",")
            if len(cells) != len(header):
                raise DataError(
                    f"line {number} has {len(cells)} cells, the header {len(header)}", remedy="Write one sample a line."
                )
            yield _from_mapping(dict(zip(header, cells, strict=True)), joints, number)


def _json(text: str, number: int) -> Mapping[str, Any]:
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"line {number} is no JSON object: {error}", remedy="Write one object a line.") from error


def _from_mapping(values: Mapping[str, Any], joints: int, number: int) -> Sample:
    try:
        channels = [
            np.array(values[name] if name in values else [values[f"{name}{j + 1}"] for j in range(joints)], dtype=float)
            for name in CHANNELS
        ]
        time_s = float(values["time"])
    except KeyError as error:
        names = ", ".join(f"{name}1 to {name}{joints}" for name in CHANNELS)
        raise DataError(f"line {number} has no {error}", remedy=f"Give time, {names}.") from error
    except (TypeError, ValueError) as error:
        raise DataError(f"line {number} holds something that is no number: {error}", remedy="Write numbers.") from error
    if any(channel.shape != (joints,) for channel in channels):
        raise DataError(f"line {number} has other numbers of joints than {joints}", remedy="Give one number per joint.")
    return Sample(time_s, *channels)
