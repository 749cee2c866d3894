"""Identify a fleet and write a run folder: what ``dynid fleet`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dynid.arrays import Floats
from dynid.export.robot_files import write_robot_files
from dynid.fleet.fleet import Fleet, FleetData, identify_fleet
from dynid.identification.recipe import Recipe
from dynid.logs.channel_map import ChannelMapSource
from dynid.plain_data import json_values, pick
from dynid.report.page import Chapter, Page
from dynid.report.sections.fleet_sections import fleet_page
from dynid.robot.model import Robot
from dynid.runs.protocol import Desk, Task
from dynid.runs.run_folder import RunFolder


@dataclass(frozen=True, slots=True, eq=False)
class FleetRun:
    """A fleet and what was written about it."""

    fleet: Fleet

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 where an arm is conspicuous or a log was left out, otherwise 0."""
        return 1 if self.fleet.outliers or self.fleet.failed else 0

    def to_json(self) -> dict[str, Any]:
        """Contents of ``fleet.json``."""
        return fleet_content(self.fleet)


@dataclass(frozen=True, slots=True, eq=False)
class IdentifyFleet(Task[FleetRun]):
    """Identify many arms of one type as `dynid.fleet.identify_fleet` does."""

    verb = "fleet"
    files = ("fleet.json", "summary.txt")
    reads = ("channel_map",)

    robot: Robot
    """The type of all arms."""
    logs: FleetData
    """Patterns such as "logs/{arm}/*.parquet", or for each arm its logs."""
    recipe: Recipe = field(default_factory=Recipe)
    channel_map: ChannelMapSource | None = None
    store: str | Path | None = None
    """Folder in which reduced logs are kept."""
    window_days: float = 30.0
    """Length of the windows of time [days]."""
    engine: str = "local"
    """Where logs are reduced, as for `dynid.fleet.identify_fleet`."""

    def compute(self, desk: Desk) -> FleetRun:
        return FleetRun(identify_fleet(
            self.robot, self.logs, self.recipe, channel_map=self.channel_map, store=self.store,
            window_days=self.window_days, progress=desk.progress, engine=self.engine,
        ))  # fmt: skip

    def write(self, folder: RunFolder, result: FleetRun) -> FleetRun:
        write_robot_files(result.fleet.typical, folder.path, (), force=True)
        folder.write("summary.txt", result.fleet.summary() + "\n")
        return result

    def page(self, result: FleetRun, settings: Sequence[Chapter]) -> Page:
        return fleet_page(result.fleet, settings)


def fleet_content(fleet: Fleet) -> dict[str, Any]:
    """A fleet as plain data; None stands for a standard deviation that is not known."""
    own = partial(_entries, fleet.own_names, fleet.own_units)
    return {
        "schema": 1,
        "robot": fleet.typical.robot.name,
        "shared": _entries(fleet.shared_names, fleet.shared_units, fleet.pool.shared, fleet.pool.std),
        "arms": {
            arm.name: {
                **pick(arm, "logs", "samples"),
                "own": own(arm.own.values, arm.own.std),
                "differences": [
                    pick(d, "what", "kind", "sentence") | {"standard_deviations": d.deviations} for d in arm.differences
                ],
                "windows": [
                    pick(window, "time_s", "logs")
                    | ({} if window.temperature is None else {"temperature_degC": json_values(window.temperature)})
                    | pick(window.own, "values", "std")
                    for window in arm.history.windows
                ],
            }
            for arm in fleet.arms
        },
        "temperature": [
            pick(e, "name", "per_kelvin", "std", "value", "arms") | {"unit": f"{e.unit}/K"} for e in fleet.warmth
        ],
        **pick(fleet, "arms_without_logs", "cutoff_hz", "cutoff_origin"),
        "left_out": [{"arm": log.arm, "path": log.name, "reason": log.problem} for log in fleet.failed],
        "logs_read": fleet.read,
    }


def _entries(names: Sequence[str], units: Sequence[str], values: Floats, std: Floats) -> list[dict[str, Any]]:
    return [
        {"name": name, "unit": unit, "value": value, "std": json_values(deviation)}
        for name, unit, value, deviation in zip(names, units, values, std, strict=True)
    ]
