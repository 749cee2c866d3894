"""What every reader takes and returns: options, a table of named columns, and bounds on what is unpacked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.array_types import Floats
from dynid.errors import LogReadError

MAX_COLUMNS = 20_000
"""Largest number of columns taken from one file (convention)."""
MAX_DEPTH = 16
"""Deepest nesting of names that is followed (convention)."""
BASE_MEMORY = 750 * 2**20
"""Address space that reading a small file may take, libraries included, in addition to what the process has already
[bytes] (convention: together below 1 GB)."""
MEMORY_PER_BYTE = 16
"""Further address space per byte of the file (convention)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to read text files, which do not say it themselves."""

    delimiter: str | None = None
    """Text only: what separates fields: "," ";" "|", a tab, or " " for any blank; None lets the reader find out."""
    decimal: str | None = None
    """Text only: "." or ","; None lets the reader find out."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnTable:
    """The numbers of one file, or of one piece of it, not yet converted."""

    columns: Mapping[str, Floats]
    """Name -> (N,) or (N, k); lengths may differ between columns."""
    clocks: Mapping[str, str] = field(default_factory=dict)
    """Column -> the column that holds its time, where the format says so."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Column -> unit, where the format itself declares it."""
    epoch_ns: int = 0
    """Instant from which the clock columns count [ns since 1970]; a double could not hold both to the nanosecond."""
    constants: Mapping[str, float] = field(default_factory=dict)
    """Numbers that hold for the whole file, such as the gain of a servo; a map may name them as columns."""
    notes: tuple[str, ...] = ()
    """Remarks of the reader for the user."""
    salvaged: tuple[str, ...] = ()
    """What was lost of a damaged file, one clause for each loss; empty for an undamaged file."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in file order."""
        return tuple(self.columns)

    def column(self, name: str) -> Floats | None:
        """The column of that name; None if there is none.

        ``name[k]`` is also column k of the two-dimensional column `name`. A constant of the file is repeated to the
        length of the first column.
        """
        if name in self.columns:
            return self.columns[name]
        if name in self.constants and self.columns:
            return np.full(len(next(iter(self.columns.values()))), self.constants[name])
        stem, bracket, index = name.removesuffix("]").rpartition("[")
        wide = self.columns.get(stem)
        if not bracket or not index.isdecimal() or wide is None or wide.ndim != 2 or int(index) >= wide.shape[1]:
            return None
        return np.asarray(wide[:, int(index)])

    def pieces(self, rows: int) -> Iterator[ColumnTable]:
        """Cut the table into pieces of so many rows; it stays whole for 0 rows, and where lengths of columns differ."""
        lengths = {len(column) for column in self.columns.values()}
        if not rows or len(lengths) != 1 or max(lengths) <= rows:
            yield self
            return
        for first in range(0, lengths.pop(), rows):
            yield replace(self, columns={name: x[first : first + rows] for name, x in self.columns.items()})


def as_column(values: ArrayLike) -> Floats:
    """Convert numbers to doubles (N,) or (N, k); vectors stored as one row or one column become (N,)."""
    array = np.asarray(values)
    array = array.reshape(array.shape[0], -1) if array.ndim > 2 else array
    array = array.reshape(-1) if array.ndim == 0 or 1 in array.shape else array
    return np.ascontiguousarray(array, dtype=np.float64)


def flatten_array(name: str, array: NDArray[Any]) -> dict[str, Floats]:
    """The columns of an array of numbers, or of records of numbers (one per field); anything else is refused."""
    if array.dtype.names:
        prefix = f"{name}." if name else ""
        return {
            key: column
            for part in array.dtype.names
            for key, column in flatten_array(prefix + part, array[part]).items()
        }
    if array.dtype.kind not in "fiub":
        raise LogReadError(
            f"array '{name}' holds {array.dtype} instead of real numbers",
            remedy="Save plain numeric arrays; objects are never unpickled.",
        )
    return {name: as_column(array)}


def note_left_out(kind: str, names: list[str]) -> tuple[str, ...]:
    """A remark about parts of a file that hold no numbers."""
    return (f"{kind} without numbers were left out: {', '.join(names[:12])}",) if names else ()


def refuse_bomb(what: str, unpacked: int, stored: int) -> None:
    """Refuse a file that declares to unpack to more bytes than its stored bytes may plausibly hold."""
    if unpacked > BASE_MEMORY + MEMORY_PER_BYTE * stored:
        raise LogReadError(
            f"{what} declares {unpacked} bytes out of {stored} stored",
            remedy="This looks like a decompression bomb. Save the log uncompressed if it is genuine.",
        )
