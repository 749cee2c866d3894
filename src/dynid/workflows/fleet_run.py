"""Identify a fleet and write a run folder: what ``dynid fleet`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dynid.export.robot_files import write_robot_files
from dynid.fleet.fleet import Fleet, FleetData, identify_fleet
from dynid.identification.recipe import Recipe
from dynid.logs.channel_map import ChannelMapSource
from dynid.report.page import Chapter, Page
from dynid.report.sections.fleet_sections import fleet_page
from dynid.robot.model import Robot
from dynid.workflows.protocol import RunContext, Task
from dynid.workflows.run_folder import RunFolder


@dataclass(frozen=True, slots=True, eq=False)
class IdentifyFleet(Task[Fleet]):
    """Identify many arms of one type as `dynid.fleet.identify_fleet` does."""

    verb = "fleet"
    files = ("fleet.json", "summary.txt")
    reads = ("channel_map",)

    robot: Robot
    """The type of all arms."""
    logs: FleetData
    """Patterns such as "logs/{arm}/*.parquet", or for each arm its logs."""
    recipe: Recipe = field(default_factory=Recipe)
    """Settings of processing and identification."""
    channel_map: ChannelMapSource | None = None
    """Channel map of the logs, its file, or the name of a built-in one."""
    store: str | Path | None = None
    """Folder in which reduced logs are kept."""
    window_days: float = 30.0
    """Length of the windows of time [days]."""
    engine: str = "local"
    """Where logs are reduced, as for `dynid.fleet.identify_fleet`."""

    def compute(self, context: RunContext) -> Fleet:
        return identify_fleet(
            self.robot, self.logs, self.recipe, channel_map=self.channel_map, store=self.store,
            window_days=self.window_days, progress=context.progress, engine=self.engine,
        )  # fmt: skip

    def write(self, folder: RunFolder, result: Fleet) -> Fleet:
        write_robot_files(result.typical, folder.path, (), force=True)
        folder.write("summary.txt", result.summary() + "\n")
        return result

    def page(self, result: Fleet, settings: Sequence[Chapter]) -> Page:
        return fleet_page(result, settings)
