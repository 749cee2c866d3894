"""Identify a fleet and write a run folder: what ``dynid fleet`` does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynid.export.robot_files import write_robot_files
from dynid.findings import Finding
from dynid.fleet.fleet import MONTH_DAYS, Fleet, FleetData, identify_fleet
from dynid.fleet.history import Window
from dynid.links.recipe import Recipe
from dynid.logs.channel_map import ChannelMapSource
from dynid.report.page import Chapter, Page
from dynid.report.sections.fleet_sections import fleet_page
from dynid.robot.model import Robot
from dynid.runs.protocol import Desk, Task
from dynid.runs.run_folder import RunFolder

SCHEMA = 1
"""Version of ``fleet.json``."""


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

    robot: Robot
    """The type of all arms."""
    data: FleetData
    """Patterns such as "logs/{arm}/*.parquet", or for each arm its logs."""
    recipe: Recipe = field(default_factory=Recipe)
    channel_map: ChannelMapSource | None = None
    store: str | Path | None = None
    """Folder in which reduced logs are kept."""
    window_days: float = MONTH_DAYS
    """Length of the windows of time [days]."""
    engine: str = "local"
    """Where logs are reduced, as for `dynid.fleet.identify_fleet`."""

    def inputs(self) -> Sequence[object]:
        return [self.channel_map]

    def options(self) -> Mapping[str, Any]:
        logs = [self.data] if isinstance(self.data, str) else list(self.data)
        return {"logs": list(map(str, logs)), "window_days": self.window_days}

    def compute(self, desk: Desk) -> FleetRun:
        return FleetRun(identify_fleet(
            self.robot, self.data, self.recipe, channel_map=self.channel_map, store=self.store,
            window_days=self.window_days, progress=desk.progress, engine=self.engine,
        ))  # fmt: skip

    def write(self, folder: RunFolder, result: FleetRun) -> FleetRun:
        write_robot_files(result.fleet.typical, folder.path, (), force=True)
        folder.write("summary.txt", result.fleet.summary() + "\n")
        return result

    def page(self, result: FleetRun, findings: Sequence[Finding], settings: Sequence[Chapter]) -> Page:
        return fleet_page(result.fleet, settings)


def fleet_content(fleet: Fleet) -> dict[str, Any]:
    """A fleet as plain data; None stands for a standard deviation that is not known."""
    return {
        "schema": SCHEMA,
        "robot": fleet.typical.robot.name,
        "shared": _entries(fleet.shared_names, fleet.shared_units, fleet.pool.shared.tolist(), fleet.pool.std.tolist()),
        "arms": {
            arm.name: {
                "logs": arm.logs,
                "samples": arm.samples,
                "own": _entries(fleet.own_names, fleet.own_units, arm.own.values.tolist(), arm.own.std.tolist()),
                "differences": [
                    {"what": d.what, "kind": d.kind, "standard_deviations": d.deviations, "sentence": d.sentence}
                    for d in arm.differences
                ],
                "windows": [
                    {
                        "time_s": window.time_s,
                        "logs": window.logs,
                        **_temperature(window),
                        "values": _finite(window.own.values.tolist()),
                        "std": _finite(window.own.std.tolist()),
                    }
                    for window in arm.history.windows
                ],
            }
            for arm in fleet.arms
        },
        "temperature": [
            {
                "name": e.name,
                "unit": f"{e.unit}/K",
                "per_kelvin": e.per_kelvin,
                "std": e.std,
                "value": e.value,
                "arms": e.arms,
            }
            for e in fleet.warmth
        ],
        "arms_without_logs": list(fleet.arms_without_logs),
        "cutoff_hz": fleet.cutoff_hz,
        "cutoff_origin": fleet.cutoff_origin,
        "left_out": [{"arm": log.arm, "path": log.path, "reason": log.reason} for log in fleet.failed],
        "logs_read": fleet.read,
    }


def _temperature(window: Window) -> dict[str, Any]:
    return {} if window.temperature is None else {"temperature_degC": _finite(window.temperature.tolist())}


def _entries(
    names: Sequence[str], units: Sequence[str], values: Sequence[float], std: Sequence[float]
) -> list[dict[str, Any]]:
    return [
        {"name": name, "unit": unit, "value": value, "std": deviation if math.isfinite(deviation) else None}
        for name, unit, value, deviation in zip(names, units, values, std, strict=True)
    ]


def _finite(values: Sequence[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]
