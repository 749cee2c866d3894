"""Reading one file: the right adapter, here or in the safe child."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dynid.errors import LogReadError
from dynid.logs.readers.bag_folder import bag_files, join_tables
from dynid.logs.readers.base import Options, Table
from dynid.logs.readers.registry import Format, detect_format, log_read_error, pieces_in_process
from dynid.logs.readers.safe_child import SafeChild

__all__ = ["read_pieces", "read_table"]


def read_table(path: str | Path, options: Options | None = None) -> Table:
    """Read one log file, or the folder of a ROS 2 bag, into named columns.

    Args:
        path: The file; nothing else is opened. Of a folder, the files that make up the bag.
        options: How to read it.

    Raises:
        LogReadError: For any file that cannot be read, with place, reason and remedy.
    """
    file, chosen = Path(path), options or Options()
    if file.is_dir():
        files = bag_files(file)
        tables = [read_table(part, _within(chosen, k, len(files))) for k, part in enumerate(files)]
        return join_tables(file, files, tables)
    return next(iter([*_tables(file, chosen, 0)]))


def _within(options: Options, number: int, count: int) -> Options:
    """The same options for one of several files: it tells its share of all."""
    tell = options.progress
    return options if tell is None else replace(options, progress=lambda share: tell((number + share) / count))


def read_pieces(path: str | Path, options: Options | None = None, *, rows: int) -> Iterator[Table]:
    """Read one log file, so many rows at a time; in bounded memory where the format allows it (npy, Parquet, Arrow).

    Args:
        path: The file; nothing else is opened.
        options: How to read it.
        rows: Rows of a piece.

    Raises:
        LogReadError: As soon as something cannot be read.
    """
    file, chosen = Path(path), options or Options()
    if not file.is_dir() and _format(file).streams:
        yield from _tables(file, chosen, rows)
        return
    table = read_table(file, chosen)
    lengths = {len(column) for column in table.columns.values()}
    if len(lengths) != 1:  # channels with clocks of their own cannot be cut at the same row
        yield table
        return
    for first in range(0, lengths.pop(), rows):
        columns = {name: column[first : first + rows] for name, column in table.columns.items()}
        yield replace(table, columns=columns)


def _tables(file: Path, options: Options, rows: int) -> Iterator[Table]:
    """The file in pieces of so many rows, or whole for 0 rows."""
    found = _format(file)
    if not found.isolated:
        yield from pieces_in_process(found.name, file, options, rows)
        return
    try:
        with SafeChild() as child:
            yield from child.pieces(found.name, file, options, rows)
    except OSError as error:
        raise log_read_error(error, found.name, file) from error


def _format(file: Path) -> Format:
    try:
        return detect_format(file)
    except (OSError, ValueError, LogReadError) as error:
        raise log_read_error(error, "text", file) from error
