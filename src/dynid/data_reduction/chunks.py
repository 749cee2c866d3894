"""The samples of a log (q, dq, ddq, tau), checked, and cut into chunks for the reduction.

`reduction` calls `check_samples` with the user's arrays, and `cut` with the result. A segment is a numbered stretch of
the log; chunks have at most `CHUNK` samples, and the first chunk of a segment begins at its start. Some equations (one
joint at one sample) may be marked as not valid: they do not count, and their numbers may be NaN.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.array_types import Floats
from dynid.errors import DataError
from dynid.tape.program import real_array

Masks = NDArray[np.bool_]
"""(N, n) whether the equation of a joint at a sample counts."""

CHUNK = 61440
"""Samples per chunk: so many that combining chunks costs next to nothing, so few that several fit into memory.

It is a multiple of the 120 samples that the compiled reduction computes at a time, so that none of its blocks is
partly empty."""
PORTION = 4096
"""Samples whose rows are formed at a time, and of which a preconditioner is made (convention: many times the number of
columns, and some megabytes)."""

CHANNELS = ("q", "dq", "ddq", "tau")
"""Names of the arrays of a log, in the order in which they are kept."""


class Run(Protocol):
    """A processed log, such as `dynid.Experiment`, which describes these arrays."""

    @property
    def q(self) -> Floats: ...
    @property
    def dq(self) -> Floats: ...
    @property
    def ddq(self) -> Floats: ...
    @property
    def effort(self) -> Floats: ...
    @property
    def valid(self) -> Masks: ...
    @property
    def segment(self) -> NDArray[np.int64]: ...


@dataclass(frozen=True, slots=True, eq=False)
class LogArrays:
    """The samples of one log, in the caller's arrays; their shapes have been checked, their numbers not."""

    arrays: tuple[NDArray[np.generic], ...]
    """q, dq, ddq, tau, each (N, n)."""
    valid: Masks | None
    """(N, n) which equations count; None where all do."""
    segment: NDArray[np.int64]
    """(N,) number of the segment of each sample."""


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """At most `CHUNK` consecutive samples of one segment. `check` makes a copy that is finite and can be reduced."""

    segment: int
    """Number of the segment."""
    number: int
    """Number of the chunk within its segment."""
    first: int
    """Index of its first sample in the log."""
    arrays: tuple[NDArray[np.generic], ...]
    """q, dq, ddq, tau, each (N, n)."""
    valid: Masks | None
    """(N, n) which equations count; None where all do."""

    @property
    def length(self) -> int:
        """Number of samples."""
        return len(self.arrays[0])

    @property
    def samples(self) -> tuple[int, ...]:
        """(n,) number of equations of each joint that count."""
        if self.valid is None:
            joints: int = self.arrays[0].shape[1]
            return (self.length,) * joints
        return tuple(int(count) for count in np.count_nonzero(self.valid, axis=0))

    def check(self) -> Chunk:
        """The chunk as float64 arrays of finite numbers.

        Torques that do not count become zero, and so does the motion at samples where no joint counts.

        Raises:
            DataError: if a number that counts is NaN or infinite; names the channel, the joint and the sample.
        """
        arrays = [np.ascontiguousarray(array, dtype=np.float64) for array in self.arrays]
        valid = None if self.valid is None or bool(self.valid.all()) else self.valid
        if valid is not None:
            any_joint = valid.any(axis=1, keepdims=True)  # the motion of all joints enters the equation of each
            masks = (any_joint, any_joint, any_joint, valid)
            arrays = [np.where(mask, array, 0.0) for mask, array in zip(masks, arrays, strict=True)]
        with np.errstate(all="ignore"):  # sums of squares, as a quick test: NaN or infinity anywhere shows in them
            squares = [np.dot(array.reshape(-1), array.reshape(-1)) for array in arrays]
        for name, array, square in zip(CHANNELS, arrays, squares, strict=True):
            if not np.isfinite(square):  # also for finite numbers whose squares overflow; `overflow` reports these
                self._refuse_not_finite(name, array)
        return replace(self, arrays=tuple(arrays), valid=valid)

    def _refuse_not_finite(self, name: str, array: Floats) -> None:
        """Raise an error for the first number of an array that is not finite, if there is one."""
        places = np.argwhere(~np.isfinite(array))
        if len(places):
            row, joint = (int(place) for place in places[0])
            what = "NaN" if np.isnan(array[row, joint]) else "infinite"
            raise DataError(
                f"{name} of joint {joint + 1} is {what} at sample {self.first + row}",
                remedy="Mark the samples that cannot be used in `valid`, or cut them out.",
            )

    def overflow(self) -> DataError:
        """The error for finite numbers that are too large to be squared; it names the largest number of the chunk."""
        sizes = [np.abs(np.asarray(array, dtype=np.float64)) for array in self.arrays]
        channel = int(np.argmax([np.max(size, initial=0.0) for size in sizes]))
        row, joint = np.unravel_index(int(np.argmax(sizes[channel])), sizes[channel].shape)
        return DataError(
            f"{CHANNELS[channel]} of joint {joint + 1} is {sizes[channel][row, joint]:.3g} in magnitude at sample "
            f"{self.first + row}: the squares of the equations overflow",
            remedy="Check its unit; mark samples that cannot be used in `valid`, or cut them out.",
        )

    def select(self, rows: slice | NDArray[np.intp]) -> Chunk:
        """A chunk of some of the samples."""
        valid = None if self.valid is None else self.valid[rows]
        return replace(self, arrays=tuple(array[rows] for array in self.arrays), valid=valid)

    def inputs(self, rows: slice = slice(None)) -> list[Floats]:
        """Inputs of the recorded programs of `joint_equations` for some samples of a checked chunk.

        Returns:
            q, dq, ddq, tau, each (N, n), and ``counts`` with 1 where an equation counts, else 0: (N, n), or (N, 1)
            where all count.
        """
        arrays = [np.ascontiguousarray(array[rows], dtype=np.float64) for array in self.arrays]
        counts = np.ones((len(arrays[0]), 1)) if self.valid is None else self.valid[rows].astype(np.float64, order="C")
        return [*arrays, counts]


def check_samples(
    dof: int, arrays: Sequence[ArrayLike], valid: ArrayLike | None, segment: ArrayLike | None
) -> LogArrays:
    """Check the shapes of a log's arrays, and fill in defaults.

    Args:
        dof: Number of joints n.
        arrays: q, dq, ddq, tau, each (N, n).
        valid: (N, n) or (N,) which equations count; all by default.
        segment: (N,) number of the segment of each sample, or one number for all; 0 by default.

    Raises:
        DataError: if a shape is wrong.
    """
    channels = tuple(real_array(name, array) for name, array in zip(CHANNELS, arrays, strict=True))
    samples = len(channels[0]) if channels[0].ndim else 0
    for name, array in zip(CHANNELS, channels, strict=True):
        if array.shape != (samples, dof):
            raise DataError(f"{name} has shape {array.shape}, expected ({samples}, {dof})")
    mask = None if valid is None else np.asarray(valid, dtype=bool)
    if mask is not None:
        mask = mask[:, None] if mask.ndim == 1 else mask
        if mask.shape not in ((samples, dof), (samples, 1)):
            raise DataError(f"valid has shape {mask.shape}, expected ({samples}, {dof}) or ({samples},)")
        mask = np.broadcast_to(mask, (samples, dof))
    numbers = np.asarray(0 if segment is None else segment, dtype=np.int64)
    if numbers.shape not in ((), (samples,)):
        raise DataError(f"segments have shape {numbers.shape}, expected ({samples},)")
    return LogArrays(channels, mask, np.broadcast_to(numbers, (samples,)))


def cut(log: LogArrays) -> Iterator[Chunk]:
    """Cut a log into chunks of one segment each; a segment may come again later, its chunks are numbered on."""
    numbers: Counter[int] = Counter()  # segment -> number of its next chunk
    borders = (np.flatnonzero(np.diff(log.segment)) + 1).tolist()
    for start, stop in pairwise([0, *borders, len(log.segment)]):
        for first in range(start, stop, CHUNK):
            rows = slice(first, min(first + CHUNK, stop))
            segment = int(log.segment[first])
            valid = None if log.valid is None else log.valid[rows]
            yield Chunk(segment, numbers[segment], first, tuple(array[rows] for array in log.arrays), valid)
            numbers[segment] += 1
