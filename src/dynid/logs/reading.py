"""Find the files of a run, and read them to a `Recording`: by a channel map, to SI units on the joint side."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path

import numpy as np
from msgspec import structs

from dynid.errors import ArgumentError, DataError, LogReadError
from dynid.logs.channel_map import ChannelMap, ChannelMapSource, read_channel_map
from dynid.logs.conversion import convert
from dynid.logs.lerobot import is_lerobot
from dynid.logs.readers import ColumnTable, Options, read_pieces, read_table
from dynid.logs.readers.ros import bag_files
from dynid.logs.recording import Recording, seal
from dynid.robot.model import Robot
from dynid.safe_files import file_digest

Paths = str | Path | Sequence[str | Path]
Progress = Callable[[float, str], None]
"""Called with the finished share (0 to 1) and a short description of the current step."""
ROWS = 122_880
"""Rows of a piece (convention: many against the length of any filter, few against the memory of a machine)."""


def read_recording(
    path: Paths,
    robot: Robot | None = None,
    *,
    channel_map: ChannelMapSource | None = None,
    progress: Progress | None = None,
) -> Recording:
    """Read the log of one run.

    Args:
        path: The file, the folder of a ROS 2 bag, the files that together hold one run, or their folder where the map
            names them.
        robot: Joints are matched by its names and counted against it.
        channel_map: What the columns mean, or the name of a built-in map; not needed for bags of ROS messages, which
            say so themselves.
        progress: Called with the finished share (0 to 1) and a short description of the current step.

    Returns:
        The log in SI units on the joint side. `Recording.findings` lists what was lost of a damaged
        file, `Recording.notes` what was left out.

    Raises:
        LogReadError: If a file cannot be read.
        DataError: If the map does not fit the file, or leaves a unit undeclared.

    Example:
        >>> dynid.read_recording(folder / "run1.csv", channel_map=folder / "map.toml").time.size
        601
    """
    report = progress or (lambda share, note: None)
    report(0.0, "reading")
    chosen, files = _find(path, robot, channel_map)
    recording = next(_pieces(files, chosen, robot, 0))
    report(0.9, "making a digest")
    recording = replace(recording, sha256=_digest([part for log in files.values() for part in parts_of(log)]))
    report(1.0, "read")
    return recording


def read_stream(
    path: Paths,
    robot: Robot | None = None,
    *,
    channel_map: ChannelMapSource | None = None,
    rows: int = ROWS,
    progress: Progress | None = None,
) -> Iterator[Recording]:
    """Read the log of one run piece by piece, for `process_stream`.

    Text, npy, Parquet and Arrow files are read in bounded memory. Other formats are read whole and returned in pieces.
    No digest is made of the source.

    Args:
        path: As in `read_recording`.
        robot: As in `read_recording`.
        channel_map: As in `read_recording`.
        rows: Rows of a piece.
        progress: Called with the share of the file that was returned (0 to 1), and the number of rows.

    Raises:
        LogReadError: If a file cannot be read.
        DataError: If the map does not fit the file, or leaves a unit undeclared.
    """
    chosen, files = _find(path, robot, channel_map)
    total_bytes = sum(file.stat().st_size for log in files.values() for file in parts_of(log))
    done = 0
    for recording in _pieces(files, chosen, robot, rows):
        yield recording
        if progress is not None:
            done += recording.time.size
            numbers = sum(
                x.size for x in (recording.time, recording.q, recording.dq, recording.effort) if x is not None
            )
            # an estimate: every number took about eight bytes of the file
            row_bytes = 8.0 * numbers / recording.time.size
            progress(min(row_bytes * done / max(total_bytes, 1), 1.0), f"{done} rows")


def _find(
    path: Paths, robot: Robot | None, channel_map: ChannelMapSource | None
) -> tuple[ChannelMap | None, dict[str, Path]]:
    """The channel map, if one is given, and the files of the run by their keys in it (or by their names)."""
    if robot is not None and not isinstance(robot, Robot):
        raise ArgumentError(
            f"robot is {robot!r:.80}", remedy="Give a Robot or None; a channel map belongs under channel_map=."
        )
    chosen = None if channel_map is None else read_channel_map(channel_map)
    return chosen, _find_files(path, chosen)


def _pieces(
    files: Mapping[str, Path], chosen: ChannelMap | None, robot: Robot | None, rows: int
) -> Iterator[Recording]:
    """Read a run piece by piece, each to a recording; one piece for 0 rows. Errors name the files."""
    options = Options(**(structs.asdict(chosen.reader) if chosen else {}))
    source = ", ".join(str(file) for file in files.values())
    first_row = 0
    for pieces in zip_longest(*(read_pieces(file, options, rows=rows) for file in files.values())):
        if any(piece is None for piece in pieces):  # one file ended before another
            raise DataError("the files of the run have different numbers of rows", path=source)
        tables = dict(zip(files, pieces, strict=True))
        # without a map only logs are read whose format says what is time: ROS messages
        if chosen is None and not all(table.clocks for table in tables.values()):
            name = next(iter(files.values()))
            raise DataError(
                "the log does not say what its columns are and in which units",
                path=name,
                remedy=f"Run `dynid inspect {name.name}`, which proposes a channel map to check and pass on.",
            )
        chosen = chosen or read_channel_map("joint_state")
        try:
            fields = convert(chosen, tables, robot, first_row)
            for array in fields.values():
                if isinstance(array, np.ndarray):
                    seal(array)  # made read-only, as nothing else refers to it; so it is not copied
            recording = Recording(**fields, source=source)
        except DataError as error:
            place = f"{error.place} of {chosen.source}" if error.place else None  # a place in the channel map
            raise type(error)(error.reason, path=error.path or source, place=place, remedy=error.remedy) from error
        yield recording if first_row == 0 else replace(recording, notes=())  # notes hold for all pieces
        first_row += recording.time.size


def read_tables(files: Mapping[str, Path], progress: Progress | None = None) -> dict[str, ColumnTable]:
    """Read the table of each file of a run, without a channel map."""
    tables = {}
    for number, (key, file) in enumerate(files.items()):
        if progress is not None:
            progress(number / len(files), file.name)
        tables[key] = read_table(file)
    return tables


def _find_files(path: Paths, chosen: ChannelMap | None) -> dict[str, Path]:
    """The files of the run by the keys of [files] in the map, or by their names where the map has no [files]."""
    given = [Path(path)] if isinstance(path, str | Path) else [Path(item) for item in path]
    patterns = dict(chosen.files) if chosen else {}
    if len(given) == 1 and given[0].is_dir() and patterns:
        given = [given[0] / name for name in _names_in(given[0])]
    if not given:
        raise LogReadError("no file was given", remedy="Name the log, or the files that together hold it.")
    if not patterns:
        return {file.name: file for file in given}
    found = {}
    for key, pattern in patterns.items():
        matches = [file for file in given if fnmatchcase(file.name, pattern)]
        if len(matches) != 1:
            names = ", ".join(file.name for file in matches or given)
            raise LogReadError(
                f"{len(matches)} files match '{pattern}' ({key})",
                path=path if isinstance(path, str | Path) else None,
                remedy=f"Give exactly one such file, or change [files] in the channel map. Candidates: {names}.",
            )
        found[key] = matches[0]
    return found


_NO_LOG = (".md", ".json", ".toml", ".yaml", ".yml", ".png", ".svg", ".html", ".urdf", ".xml", ".py")
"""Endings of files that are no logs, but often lie in the same folder."""


def folder_contents(folder: Path) -> tuple[list[Path], list[Path]]:
    """The logs and the subfolders of a folder, without hidden ones and files whose ending says that they are no logs.

    JSON files count as logs where there is nothing else.
    """
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    files = [entry for entry in entries if entry.is_file()]
    logs = [entry for entry in files if entry.suffix.lower() not in _NO_LOG]
    folders = [entry for entry in entries if entry.is_dir()]
    if not logs and not folders:  # a folder of JSON files alone: beside other logs they are results or settings
        logs = [entry for entry in files if entry.suffix.lower() == ".json"]
    return logs, folders


def runs_in(path: str | Path, channel_map: ChannelMapSource | None = None) -> list[Path]:
    """The runs that a path stands for: itself, or those in a folder of runs.

    A folder is one run if it is a ROS 2 bag or a LeRobot data set, or if it holds logs and the map names the files of a
    run. Otherwise each of its logs is a run, or each of its subfolders where it has no logs.

    Args:
        path: A log, the folder of a run, or a folder of runs.
        channel_map: The map of all runs.
    """
    folder = Path(path)
    chosen = None if channel_map is None else read_channel_map(channel_map)
    if not folder.is_dir() or bag_files(folder) or is_lerobot(folder):
        return [folder]
    logs, folders = folder_contents(folder)
    if logs:
        return [folder] if chosen is not None and chosen.files else logs
    return folders or [folder]


def _names_in(folder: Path) -> list[str]:
    """The names of the files in a folder, sorted."""
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    except OSError as error:
        raise LogReadError(f"it cannot be opened ({error.strerror})", path=folder) from error


def parts_of(log: Path) -> list[Path]:
    """The files of a log: those of a ROS 2 bag's folder, or the log itself."""
    return (bag_files(log) or [log]) if log.is_dir() else [log]


def log_digest(path: str | Path) -> str:
    """The digest that a recording of the log carries; for a folder whose files a map names, that of the folder."""
    return _digest(parts_of(Path(path)))


def _digest(files: Sequence[Path]) -> str:
    """SHA-256 of the file's bytes; for several files, of their digests in order."""
    digests = [file_digest(file) for file in files]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
