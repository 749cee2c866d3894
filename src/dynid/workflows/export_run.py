"""Write a saved result for other programs: what ``dynid export`` does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dynid.errors import ArgumentError, ExportError
from dynid.export.controller_files import ControllerFile, ros2_gravity_compensation, ur_payload_script
from dynid.export.data_tables import parameter_table, result_tables, write_tables
from dynid.export.result_file import read_result
from dynid.identification.log_reader import LogReader, Notice, log_finding
from dynid.identification.recipe import Recipe
from dynid.logs.channel_map import ChannelMapSource
from dynid.payload.load import Load
from dynid.safe_files import make_folder
from dynid.workflows.validation_run import saved_cutoff

TABLES = ("tables", "parquet", "csv")
"""Kinds of exports that are tables."""
LOAD_FILES: Mapping[str, tuple[str, Callable[[Load], ControllerFile]]] = {
    "urscript": ("payload", ur_payload_script),
    "ros2": ("gravity_compensation", ros2_gravity_compensation),
}
"""Kind of an export that is a controller's file -> name of the file, and the function that makes it from a load."""


def run_export(
    run: str | Path,
    kind: str,
    out: str | Path,
    logs: Sequence[str | Path] = (),
    *,
    channel_map: ChannelMapSource | None = None,
    notice: Notice = log_finding,
    force: bool = False,
) -> tuple[Path, ...]:
    """Write a saved result for other programs.

    Args:
        run: A folder that `Identify` wrote, or its ``result.json``; for tables, ``urscript`` and ``ros2`` a
            folder that `IdentifyLoad` wrote, or its ``load.json``, as well.
        kind: ``tables`` (Parquet where pyarrow is installed, CSV elsewhere), ``parquet``, ``csv``; of a load
            ``urscript`` (payload of a Universal Robots arm) or ``ros2`` (gravity compensation of ``control_filters``).
        out: Folder for the files.
        logs: Logs whose torques are predicted; they may be logs of the identification.
        channel_map: Channel map of the logs, its file, or the name of a built-in one.
        notice: Called with every finding that a person should see at once.
        force: Whether existing files may be replaced.

    Returns:
        The paths of the files.

    Raises:
        ArgumentError: There is no such kind, or it has no use for logs.
        DataError: The result or a log cannot be read.
        ExportError: A file exists or cannot be written.
    """
    kinds = (*TABLES, *LOAD_FILES)
    if kind not in kinds:
        raise ArgumentError(f"there is no export '{kind}'", remedy=f"Choose from {', '.join(kinds)}.")
    load = Path(run) / "load.json" if Path(run).is_dir() else Path(run)
    is_load = kind in LOAD_FILES or (load.name == "load.json" and load.exists())
    if logs and is_load:
        raise ArgumentError(f"an export of a load to {kind} has no use for logs", remedy="Leave them out.")
    if kind in LOAD_FILES:
        return (_write_load(load, kind, out, notice, force=force),)
    if is_load:
        return write_tables({"load": parameter_table(Load.read(load))}, out, kind=kind, force=force)
    saved = read_result(run)
    fit = saved.identification()
    reader = LogReader(robot=fit.robot, recipe=Recipe(gate=False), channel_map=channel_map, notice=notice)
    runs = reader.experiments(logs, for_validation=True, cutoff_hz=saved_cutoff(saved)) if logs else []
    return write_tables(result_tables(fit, runs), out, kind=kind, force=force)


def _write_load(path: Path, kind: str, folder: str | Path, notice: Notice, *, force: bool) -> Path:
    """Write a saved load as a controller's file; a doubtful load is refused."""
    name, make = LOAD_FILES[kind]
    file = make(Load.read(path))
    if json.loads(path.read_text(encoding="utf-8")).get("verdict") == "doubtful":
        raise ExportError("the load is doubtful", path=path, remedy="Read its report, and identify the load again.")
    for finding in file.findings:
        notice(finding)
    return file.write(make_folder(folder) / f"{name}{file.ending}", force=force)
