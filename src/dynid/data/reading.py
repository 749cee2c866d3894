"""From log files to a `Recording`: a channel map picks the columns, converts them and brings them to the joint side."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from dynid.data.channel_map import ChannelMap, profile_names, read_channel_map, read_profile
from dynid.data.conversion import Converter
from dynid.data.readers import Options, Table, read_table
from dynid.data.recording import Recording
from dynid.errors import ArgumentError, DataError, LogReadError
from dynid.robot.model import Robot

__all__ = ["matching_profiles", "read_recording", "read_tables"]

Paths = str | Path | Sequence[str | Path]


def read_recording(
    path: Paths,
    robot: Robot | None = None,
    *,
    channel_map: ChannelMap | Mapping[str, Any] | str | Path | None = None,
    profile: str | None = None,
    strict: bool = False,
) -> Recording:
    """Read the log of one run.

    Args:
        path: The file, the files that together hold one run, or their folder where the map names them.
        robot: Joints are matched by its names and counted against it.
        channel_map: What the columns mean; not needed for bags of ROS messages, which say so themselves.
        profile: Name of a ready map instead (`profile_names`).
        strict: Refuse a damaged file instead of keeping what can be verified.

    Returns:
        The log in SI units on the joint side. `Recording.notes` says what was salvaged, converted and left out.

    Raises:
        LogReadError: If a file cannot be read.
        DataError: If the map does not fit the file, or leaves a unit undeclared.
    """
    if channel_map is not None and profile is not None:
        raise ArgumentError("give a channel map or a profile, not both", remedy='Put profile = "..." into the map.')
    chosen = read_profile(profile) if profile else None if channel_map is None else read_channel_map(channel_map)
    files = _find_files(path, chosen)
    options = replace(chosen.options if chosen else Options(), strict=strict)
    tables = read_tables(files, options)
    if chosen is None:
        chosen = _self_describing(tables, files)
    source = ", ".join(str(file) for file in files.values())
    try:
        return Recording(**Converter(chosen, tables, robot).fields(), source=source, sha256=_digest(files))
    except DataError as error:
        raise type(error)(error.reason, path=error.path or source, place=error.place, remedy=error.remedy) from error
    except OSError as error:
        raise LogReadError(f"it cannot be opened ({error.strerror})", path=source) from error


def read_tables(files: Mapping[str, Path], options: Options) -> dict[str, Table]:
    """Read each file of a run."""
    return {key: read_table(file, options) for key, file in files.items()}


def matching_profiles(tables: Mapping[str, Table]) -> tuple[str, ...]:
    """The profiles whose every required column is there."""
    return tuple(name for name in profile_names() if Converter(read_profile(name), tables, None).fits())


def _find_files(path: Paths, chosen: ChannelMap | None) -> dict[str, Path]:
    """The files of the run by the map's keys; by their own names where the map has none."""
    given = [Path(path)] if isinstance(path, str | Path) else [Path(item) for item in path]
    patterns = dict(chosen.files) if chosen else {}
    if len(given) == 1 and given[0].is_dir() and patterns:
        given = [given[0] / name for name in _names_in(given[0])]
    if not given:
        raise LogReadError("no file was given")
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


def _names_in(folder: Path) -> list[str]:
    """The names of a folder's files."""
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    except OSError as error:
        raise LogReadError(f"it cannot be opened ({error.strerror})", path=folder) from error


def _self_describing(tables: Mapping[str, Table], files: Mapping[str, Path]) -> ChannelMap:
    """The map for a log that needs none; otherwise the error that says how to make one."""
    if all(table.clocks for table in tables.values()):
        return read_profile("joint_state")
    name = next(iter(files.values()))
    fitting = [f"profile='{profile}'" for profile in matching_profiles(tables)]
    hint = f"Its columns fit {' or '.join(fitting)}. Otherwise run" if fitting else "Run"
    raise DataError(
        "the log does not say what its columns are and in which units",
        path=name,
        remedy=f"{hint} `dynid inspect {name.name}`, which proposes a channel map to check and pass on.",
    )


def _digest(files: Mapping[str, Path]) -> str:
    """SHA-256 of the file's bytes; for several files, of their digests in order."""
    digests = []
    for file in files.values():
        with file.open("rb") as stream:
            digests.append(hashlib.file_digest(stream, "sha256").hexdigest())
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
