"""Reading one log: the right adapter for a file, in this process or in the safe child; all files of a bag's folder.

The folder of a ROS 2 bag holds one file, or several consecutive ones that metadata.yaml names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynid.arrays import Floats
from dynid.errors import LogReadError
from dynid.files.small_files import read_small
from dynid.logs.readers.base import Options, Table
from dynid.logs.readers.log_formats import Format, detect_format, log_read_error, pieces_in_process

if TYPE_CHECKING:  # most logs need no other process
    from dynid.logs.readers.safe_child import SafeChild


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
        from dynid.logs.readers.safe_child import SafeChild

        files = bag_files(file)
        with SafeChild() as child:  # starts at the first file that needs it, and reads the others, too
            parts = [[*_tables(part, _within(chosen, k, len(files)), 0, child)] for k, part in enumerate(files)]
        return join_tables(file, files, [part[0] for part in parts])
    return next(iter([*_tables(file, chosen, 0)]))


def _within(options: Options, number: int, count: int) -> Options:
    """The same options for one of several files, which reports its share of all."""
    tell = options.progress
    return options if tell is None else replace(options, progress=lambda share: tell((number + share) / count))


def read_pieces(path: str | Path, options: Options | None = None, *, rows: int) -> Iterator[Table]:
    """Read one log file piece by piece; in bounded memory where the format allows it (npy, Parquet, Arrow).

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


def _tables(file: Path, options: Options, rows: int, child: SafeChild | None = None) -> Iterator[Table]:
    """The file in pieces of a given number of rows, or whole for 0 rows; by a given child, or by one of its own."""
    found = _format(file)
    if not found.isolated:
        yield from pieces_in_process(found.name, file, options, rows)
        return
    from dynid.logs.readers.safe_child import SafeChild  # with what it takes to start another process

    try:
        with SafeChild() if child is None else nullcontext(child) as reader:
            yield from reader.pieces(found.name, file, options, rows)
    except OSError as error:
        raise log_read_error(error, found.name, file) from error


def _format(file: Path) -> Format:
    try:
        return detect_format(file)
    except (OSError, ValueError, LogReadError) as error:
        raise log_read_error(error, "text", file) from error


MAX_METADATA = 2**24
"""Largest metadata.yaml [bytes]."""
_SUFFIXES, _PACKED = (".db3", ".mcap"), (".zstd", ".zst")
_LIST = re.compile(r"^[ \t]*relative_file_paths:[ \t]*\n((?:[ \t]*-[ \t]*\S.*\n?)+)", re.MULTILINE)


def bag_files(folder: Path) -> list[Path]:
    """The files of the bag in a folder, in the order of recording.

    Raises:
        LogReadError: If there are none, if the metadata name others than are there, or nothing tells their order.
    """
    try:
        present = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
        listed = _listed(folder / "metadata.yaml") if "metadata.yaml" in present else []
    except OSError as error:
        raise LogReadError(f"it cannot be opened ({error.strerror})", path=folder) from error
    names = [name for name in present if name.endswith(_SUFFIXES)]
    if listed and (reason := _wrong_list(listed, present)):
        remedy = f"Run `ros2 bag reindex`, or read its files one by one: {', '.join(names) or 'none is there'}."
        raise LogReadError(reason, path=folder, remedy=remedy)
    if not listed and not names:
        raise LogReadError(
            "it is a folder without a log that dynid recognises",
            path=folder,
            remedy="Name the log itself, or give a channel map whose [files] name the files of the run.",
        )
    if not listed and len(names) > 1:
        raise LogReadError(
            f"it is a folder with {len(names)} files of a bag, and no metadata.yaml that names them in order",
            path=folder,
            remedy=f"Run `ros2 bag reindex`, or read its files one by one: {', '.join(names)}.",
        )
    return [folder / name for name in listed or names]


def is_bag(folder: Path) -> bool:
    """Whether a folder is that of a ROS 2 bag: it has metadata or a file of a bag."""
    return any(entry.name == "metadata.yaml" or entry.name.endswith(_SUFFIXES) for entry in folder.iterdir())


def is_lerobot(path: str | Path) -> bool:
    """Whether a path is the folder of a LeRobot data set."""
    return (Path(path) / "meta" / "info.json").exists()


def _wrong_list(listed: list[str], present: list[str]) -> str:
    """Describe the fault of the files that the metadata name; empty without a fault."""
    there = set(present)
    for name in listed:
        if name not in there:
            return f"metadata.yaml names {name}, which is not in the folder"
        if not name.endswith((*_SUFFIXES, *_PACKED)):
            return f"metadata.yaml names {name}, which is no file of a bag"
    return "metadata.yaml names a file twice" if len(set(listed)) < len(listed) else ""


def _listed(metadata: Path) -> list[str]:
    """The files that the metadata name; older versions write the folder's name before theirs."""
    text = read_small(metadata, most=MAX_METADATA, error=LogReadError, remedy="Run `ros2 bag reindex`.")
    found = _LIST.search(text.decode("utf-8", errors="replace"))
    lines = found[1].splitlines() if found else []
    return [Path(line.strip().removeprefix("-").strip().strip("\"'")).name for line in lines]


def join_tables(folder: Path, files: Sequence[Path], tables: Sequence[Table]) -> Table:
    """One table of the tables of a folder's consecutive files, whose every column has a clock.

    Files of a bag beside them are left alone, and a note says so.

    Raises:
        LogReadError: If joints share messages in one file and do not in another.
    """
    others = sorted(path.name for path in folder.iterdir() if path.name.endswith(_SUFFIXES) and path not in files)
    beside = (f"not read, for metadata.yaml does not name them: {', '.join(others)}",) if others else ()
    if len(tables) == 1:
        return replace(tables[0], notes=(*tables[0].notes, *beside))
    owners: dict[str, str] = {}
    for table in tables:
        for column, clock in table.clocks.items():
            if owners.setdefault(column, clock) != clock:
                reason = f"{column} comes in other messages in some of its files than in others"
                raise LogReadError(reason, path=folder, remedy="Read its files one by one.")
    epoch = min(table.epoch_ns for table in tables)
    columns: dict[str, Floats] = {}
    for clock in dict.fromkeys(owners.values()):
        holding = [table for table in tables if clock in table.columns]
        columns[clock] = np.concatenate([t.columns[clock] + (t.epoch_ns - epoch) * 1e-9 for t in holding])
        for column in (name for name, owner in owners.items() if owner == clock):
            gaps = (np.full(len(t.columns[clock]), np.nan) for t in holding)
            columns[column] = np.concatenate([t.columns.get(column, gap) for t, gap in zip(holding, gaps, strict=True)])
    units = {column: unit for table in tables for column, unit in table.units.items()}
    notes = tuple(f"file {k + 1}: {note}" for k, table in enumerate(tables) for note in table.notes)
    lost = tuple(f"file {k + 1}: {loss}" for k, table in enumerate(tables) for loss in table.salvaged)
    return Table(columns=columns, clocks=owners, units=units, epoch_ns=epoch, notes=(*notes, *beside), salvaged=lost)
