"""Write a saved result for other programs: what ``dynid export`` does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dynid.errors import ArgumentError, DynidError, ExportError
from dynid.export.controller_files import ControllerFile, ros2_gravity_compensation, ur_payload_script
from dynid.export.data_tables import load_table, table_ending, write_table, write_tables
from dynid.export.result_file import SavedResult, read_result
from dynid.files import make_folder
from dynid.links.log_reader import LogReader, Notice, log_finding
from dynid.links.recipe import Recipe
from dynid.load.load import Load
from dynid.load.load_files import read_load
from dynid.logs.channel_map import ChannelMapSource
from dynid.processing.experiment import Experiment
from dynid.runs.validation_run import common_cutoff


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What one export works on."""

    run: Path
    out: Path
    logs: Sequence[str | Path]
    channel_map: ChannelMapSource | None
    notice: Notice
    force: bool

    def experiments(self, saved: SavedResult) -> list[Experiment]:
        """The logs, processed like those of the result."""
        fit = saved.identification()
        reader = LogReader(robot=fit.robot, recipe=Recipe(gate=False), channel_map=self.channel_map, notice=self.notice)
        return reader.experiments(self.logs, for_validation=True, cutoff_hz=common_cutoff(saved.content["data"]))


def _tables(order: _Order, ending: str) -> tuple[Path, ...]:
    path = order.run / "load.json" if order.run.is_dir() else order.run
    if path.name == "load.json" and path.exists():
        if order.logs:
            raise ArgumentError("the tables of a load hold no predictions", remedy="Leave the logs out.")
        return (
            write_table(load_table(read_load(path)), order.out / f"load.{table_ending(ending)}", force=order.force),
        )
    saved = read_result(order.run)
    runs = order.experiments(saved) if order.logs else []
    return write_tables(saved.identification(), order.out, runs, ending=ending, force=order.force)  # type: ignore[arg-type]


def _load_file(order: _Order, make: Callable[[Load], ControllerFile], name: str) -> tuple[Path, ...]:
    path = order.run / "load.json" if order.run.is_dir() else order.run
    file = make(read_load(path))
    if json.loads(path.read_text(encoding="utf-8")).get("verdict") == "doubtful":
        raise ExportError("the load is doubtful", path=path, remedy="Read its report, and identify the load again.")
    for finding in file.findings:
        order.notice(finding)
    return (file.write(order.out / f"{name}{file.ending}", force=order.force),)


def _ros2(order: _Order) -> tuple[Path, ...]:
    return _load_file(order, ros2_gravity_compensation, "gravity_compensation")


KINDS: Mapping[str, Callable[[_Order], tuple[Path, ...]]] = {
    "tables": lambda order: _tables(order, "auto"),
    "parquet": lambda order: _tables(order, "parquet"),
    "csv": lambda order: _tables(order, "csv"),
    "urscript": lambda order: _load_file(order, ur_payload_script, "payload"),
    "ros2": _ros2,
}
"""What can be written -> the function that writes it."""
WITH_LOGS = ("tables", "parquet", "csv")
"""The kinds that have a use for logs."""


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
    if kind not in KINDS:
        raise ArgumentError(f"there is no export '{kind}'", remedy=f"Choose from {', '.join(KINDS)}.")
    if logs and kind not in WITH_LOGS:
        raise ArgumentError(f"an export to {kind} has no use for logs", remedy="Leave them out.")
    is_new = not Path(out).exists()
    order = _Order(run=Path(run), out=make_folder(out), logs=logs, channel_map=channel_map, notice=notice, force=force)
    try:
        return KINDS[kind](order)
    except DynidError:
        if is_new:
            with suppress(OSError):  # not empty: what was written stays
                order.out.rmdir()
        raise
