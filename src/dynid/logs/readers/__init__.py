"""Read log files, whole or piece by piece; there is one module per format, and `formats` lists them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dynid.errors import LogReadError
from dynid.logs.readers.base import ColumnTable, Options
from dynid.logs.readers.formats import detect_format, log_read_error, read_here
from dynid.logs.readers.guarded import read_guarded

__all__ = ["ColumnTable", "Options", "read_pieces", "read_table"]


def read_table(path: str | Path, options: Options | None = None) -> ColumnTable:
    """Read one log file, or the folder of a ROS 2 bag, into named columns.

    Raises:
        LogReadError: For any file that cannot be read, with place, reason and remedy.
    """
    (table,) = read_pieces(path, options)  # without a number of rows there is one piece
    return table


def read_pieces(path: str | Path, options: Options | None = None, *, rows: int = 0) -> Iterator[ColumnTable]:
    """Read one log piece by piece: text, npy, Parquet and Arrow in bounded memory, other formats whole, then cut.

    Args:
        path: The file, or the folder of a ROS 2 bag; nothing else is opened.
        options: How to read it.
        rows: Rows of a piece; 0 for the whole log in one piece.

    Raises:
        LogReadError: As soon as something cannot be read.
    """
    file = Path(path)
    name = "text"  # for an error before the format is known
    try:
        found = detect_format(file)
        name = found.name
        if found.guarded:
            tables = read_guarded(name, file, options or Options(), rows)
        else:
            tables = read_here(name, file, options or Options(), rows)
        for table in tables:
            yield from table.pieces(rows)
    except (OSError, ValueError, LogReadError) as error:
        raise log_read_error(error, name, file) from error
