"""Identify a fleet and write a run folder: what ``dynid fleet`` does."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynid.export.robot_files import write_robot_files
from dynid.fleet.fleet import MONTH_DAYS, Fleet, FleetData, identify_fleet
from dynid.fleet.history import Window
from dynid.links.log_reader import ChannelMapSource, Progress
from dynid.links.recipe import Recipe
from dynid.report.sections.fleet_sections import fleet_page
from dynid.robot.model import Robot
from dynid.runs.run_folder import Origin, RunFolder, RunRequest, open_run

SCHEMA = 1
"""Version of ``fleet.json``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FleetRun:
    """A fleet and what was written about it."""

    fleet: Fleet
    content: dict[str, Any]
    """Content of ``fleet.json``."""

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 where an arm is conspicuous or a log was left out, otherwise 0."""
        return 1 if self.fleet.outliers or self.fleet.failed else 0


def run_fleet(
    robot: Robot,
    data: FleetData,
    recipe: Recipe | None = None,
    *,
    channel_map: ChannelMapSource | None = None,
    store: str | Path | None = None,
    gain_spread: float = 0.0,
    window_days: float = MONTH_DAYS,
    out: RunRequest | str | Path | None = None,
    progress: Progress | None = None,
) -> FleetRun:
    """Identify a fleet as `dynid.fleet.identify_fleet` does, and write a run folder.

    Args:
        robot: The type of all arms.
        data: Patterns such as "logs/{arm}/*.parquet", or for each arm its logs.
        recipe: All settings, the engine among them.
        channel_map: Channel map of the logs.
        store: Folder in which reduced logs are kept.
        gain_spread: Standard deviation of the arms' torque gains about one; zero takes them as one.
        window_days: Length of the windows of time [days].
        out: Folder for the numbers, the typical robot as URDF and MJCF, and a report; None writes nothing.
        progress: Called with the finished share (0 to 1) and a short description of the current step.

    Example:
        >>> found = dynid.runs.run_fleet(robot, {"a1": [log], "a2": [log2]}, dynid.Recipe.bare())
        >>> sorted(found.content["arms"])
        ['a1', 'a2']
    """
    chosen = recipe or Recipe()
    patterns = [data] if isinstance(data, str) else list(data)
    options = {**chosen.to_dict(), "logs": [str(word) for word in patterns], "gain_spread": gain_spread,
               "window_days": window_days}  # fmt: skip
    origin = Origin.of_call("run_fleet", options, [channel_map])
    with nullcontext() if out is None else open_run(RunRequest.of(out), origin, ["fleet.json", "summary.txt"]) as run:
        fleet = identify_fleet(
            robot, data, chosen, channel_map=channel_map, store=store, gain_spread=gain_spread,
            window_days=window_days, progress=progress,
        )  # fmt: skip
        found = FleetRun(fleet=fleet, content=fleet_content(fleet))
        if run is not None:
            _write(run, found, chosen)
        return found


def _write(run: RunFolder, found: FleetRun, recipe: Recipe) -> None:
    write_robot_files(found.fleet.typical, run.path, (), force=True)
    run.write("fleet.json", json.dumps(found.content, indent=1, allow_nan=False) + "\n")
    run.write("recipe.toml", recipe.to_toml())
    run.write("summary.txt", found.fleet.summary() + "\n")
    run.write_page(fleet_page(found.fleet, [run.settings()]))
    run.finish("fleet.json", found.exit_code)


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
