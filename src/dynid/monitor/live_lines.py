"""Samples of a stream as lines of text: CSV with a header, or JSON objects, as the program of a robot can write them.

The live form of ``dynid watch`` reads them from its standard input with `read_samples`.

The columns are ``time`` [s], then ``q1 ... qn`` [rad or m], ``dq1 ... dqn`` and ``tau1 ... taun`` [N m or N]; JSON has
lists under ``q``, ``dq`` and ``tau``, in the order of the robot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from dynid.array_types import Floats
from dynid.checks import LARGEST_SIGNAL
from dynid.errors import DataError

SET_CLOCK_S = 1.0
"""Step of the time, ahead or back, beyond which the clock was set, or a stamp was wrong [s] (convention: no sample
comes so late)."""
_Number = Annotated[float, msgspec.Meta(ge=-LARGEST_SIGNAL, le=LARGEST_SIGNAL)]


class Sample(NamedTuple):
    """One sample."""

    time_s: float
    """Time [s]."""
    q: Floats
    """(n,) joint positions [rad or m]."""
    dq: Floats
    """(n,) joint velocities."""
    torque: Floats
    """(n,) torques [N m or N]."""


class _Line(msgspec.Struct):
    """The content of a line."""

    time: _Number
    q: list[_Number]
    dq: list[_Number]
    tau: list[_Number]

    def sample(self, joint_names: Sequence[str]) -> Sample:
        """Make the sample; ValueError where the numbers are not one per joint."""
        if not len(self.q) == len(self.dq) == len(self.tau) == len(joint_names):
            raise ValueError(f"the joints are not those of the robot: {', '.join(joint_names)}")
        return Sample(self.time, *map(np.array, (self.q, self.dq, self.tau)))


def is_clock_set(before_s: float, now_s: float) -> bool:
    """Whether the clock was set between two samples, ahead or back; late samples and short gaps are smaller steps."""
    return bool(np.isfinite(now_s) and abs(now_s - before_s) > SET_CLOCK_S)


def read_samples(
    lines: Iterable[str], joint_names: Sequence[str], refused: Callable[[DataError], None]
) -> Iterator[Sample]:
    """Read samples from lines.

    Args:
        lines: CSV with a header, or one JSON object a line.
        joint_names: Names of the joints, in the robot's order.
        refused: Called with the error of a line that is no sample, which is then left out.

    Raises:
        DataError: The header lacks columns, so that no line after it can be read.
    """
    n = len(joint_names)
    header: list[str] = []
    for number, line in enumerate(lines, start=1):
        words = line.strip().removeprefix("\ufeff")
        cells = [cell.strip() for cell in words.split(",")]
        if not header and "time" in cells:
            header = cells
            if missing := [name for name in _columns(n) if name not in cells]:
                raise DataError(f"line {number}: the header has no {', '.join(missing)}", remedy=ask_for_lines(n))
        elif words:
            try:
                yield _read_line(words, cells, header, n).sample(joint_names)
            except ValueError as error:  # those of msgspec are ValueErrors, too
                refused(DataError(f"line {number} is no sample: {error}", remedy=ask_for_lines(n)))


def _read_line(words: str, cells: list[str], header: list[str], n: int) -> _Line:
    """Read a line of JSON, or of CSV from its cells under a header; ValueError where it is neither."""
    if words.startswith("{"):
        return msgspec.json.decode(words, type=_Line)
    if len(cells) != len(header):
        raise ValueError(f"{len(cells)} cells, and the header has {len(header)}" if header else "there is no header")
    cell_of = dict(zip(header, cells, strict=True))
    time, *values = (cell_of[name] for name in _columns(n))
    content = {"time": time, "q": values[:n], "dq": values[n : 2 * n], "tau": values[2 * n :]}
    return msgspec.convert(content, _Line, strict=False)


def _columns(n: int) -> list[str]:
    """List the names of the columns for n joints."""
    return ["time", *(f"{name}{j + 1}" for name in ("q", "dq", "tau") for j in range(n))]


def ask_for_lines(n: int) -> str:
    """Write the remedy for wrong lines: the header of CSV, or the keys of JSON."""
    return f"Begin CSV with this header: {','.join(_columns(n))}; or write JSON objects with time, q, dq, tau."
