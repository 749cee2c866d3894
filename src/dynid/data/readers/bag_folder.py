"""The folder of a ROS 2 bag: one file, or several that go on where the one before ended, named by metadata.yaml."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynid.data.readers.base import Floats, Table
from dynid.errors import LogReadError

__all__ = ["bag_files", "join_tables"]

MAX_METADATA = 2**24
"""Largest metadata.yaml [bytes]."""
_LIST = re.compile(r"^\s*relative_file_paths:[ \t]*\n((?:[ \t]*-[ \t]*\S.*\n?)+)", re.MULTILINE)


def bag_files(folder: Path) -> list[Path]:
    """The files of the bag in a folder, in the order of recording.

    Raises:
        LogReadError: If there are none, if one is missing, or if nothing tells the order of several.
    """
    try:
        present = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
        listed = _listed(folder / "metadata.yaml") if "metadata.yaml" in present else []
    except OSError as error:
        raise LogReadError(f"it cannot be opened ({error.strerror})", path=folder) from error
    names = [name for name in present if name.endswith((".db3", ".mcap"))]
    if missing := [name for name in listed if name not in present]:
        raise LogReadError(
            f"metadata.yaml names {missing[0]}, which is not in the folder",
            path=folder,
            remedy=f"Copy the bag again, or read its files one by one: {', '.join(names) or 'none is there'}.",
        )
    if not listed and not names:
        raise LogReadError(
            "it is a folder with no file of a bag",
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


def _listed(metadata: Path) -> list[str]:
    """The files that the metadata name; older versions write the folder's name before theirs."""
    if metadata.stat().st_size > MAX_METADATA:
        raise LogReadError("it is too large", path=metadata, remedy="Run `ros2 bag reindex`.")
    found = _LIST.search(metadata.read_text(encoding="utf-8", errors="replace"))
    lines = found[1].splitlines() if found else []
    return [Path(line.strip().removeprefix("-").strip().strip("\"'")).name for line in lines]


def join_tables(folder: Path, tables: Sequence[Table]) -> Table:
    """One table of the tables of a folder's consecutive files, whose every column has a clock.

    Raises:
        LogReadError: If joints share messages in one file and do not in another.
    """
    if len(tables) == 1:
        return tables[0]
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
    return Table(columns=columns, clocks=owners, units=units, epoch_ns=epoch, notes=notes)
