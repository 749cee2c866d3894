"""dynid fleet: identify many arms of one type together, and find those that differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid.cli.execute import execute, read_recipe
from dynid.cli.options import (
    ENGINE,
    GRAVITY,
    MAP,
    POSITIVE,
    command,
    output_options,
    place_robot,
    recipe_options,
    robot_argument,
)
from dynid.cli.screen import Screen

if TYPE_CHECKING:
    from dynid.robot.model import Robot
    from dynid.runs.fleet_run import FleetRun

MOST_LINES = 8
"""Most differences on a screen; --verbose shows all (convention)."""


def _check_patterns(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse patterns of this machine that find nothing, before a missing --out is told; stores are asked later."""
    from dynid.fleet.fleet_logs import find_logs

    local = [pattern for pattern in given if "://" not in pattern]
    if local and not ctx.resilient_parsing:
        find_logs(local)
    return given


@command(
    "dynid fleet arm.urdf 'logs/{arm}/*.parquet' --map map.toml --out fleet",
    "dynid fleet arm.urdf 'logs/{arm}/{date}.csv' --map map.toml --store factors --out fleet",
    "dynid fleet arm.urdf 's3://b/{arm}/*.mcap' --engine tcp://h:8786 --out f",
)
@robot_argument
@click.argument("patterns", nargs=-1, required=True, metavar="PATTERN...", callback=_check_patterns)
@MAP
@click.option("--store", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="Keep reduced logs in this folder; the next run reads only new or changed logs.")  # fmt: skip
@click.option("--window", type=POSITIVE, default=30.0, show_default=True, metavar="DAYS",
              help="Length of the windows of time in which friction is followed [days].")  # fmt: skip
@GRAVITY
@ENGINE
@recipe_options(example="cutoff_hz=10 or gate=false", page="docs/recipes.md")
@output_options("the numbers, the typical robot and a report", required=True)
def fleet(
    robot: Robot,
    patterns: tuple[str, ...],
    channel_map: str | None,
    store: Path | None,
    window: float,
    gravity: str | None,
    engine: str | None,
    **_: Any,  # read from click's context
) -> None:
    """Identify many arms of one type from all their logs.

    A PATTERN is a path or URL in which {arm} stands for the arm's name and {date}, if it is there, for a date such as
    2026-03-01, with wildcards; quote it. A folder stands for its logs. Inertial parameters are shared, friction and
    offsets are every arm's own. The exit code is 1 if an arm differs from the others, changed, or has a log that could
    not be used.
    """
    from dynid.links.recipe import Recipe
    from dynid.runs.fleet_run import IdentifyFleet

    recipe = read_recipe(Recipe)
    placed = place_robot(robot, gravity)
    task = IdentifyFleet(placed, list(patterns), recipe, channel_map, store, window, engine or "local")
    execute(task, "reducing logs", show_fleet)


def show_fleet(run: FleetRun) -> Screen:
    """The verdict, what differs, and the logs that were left out."""
    fleet = run.fleet
    lines = [f"{arm.name}: {difference.sentence}" for arm in fleet.outliers for difference in arm.differences]
    lines += [f"{effect.sentence}." for effect in fleet.warmth if effect.is_sure]
    lines += [f"Left out: {log.path} ({log.arm}): {log.reason}" for log in fleet.failed]
    if len(fleet.arms) == 1:
        lines.append("There is one arm: nothing to compare it with. Does {arm} stand for the right part of the path?")
    shown = [*lines[:MOST_LINES], *([f"{len(lines) - MOST_LINES} more: --verbose."] if len(lines) > MOST_LINES else [])]
    return Screen(
        verdict="\n".join([f"{fleet.title}: {fleet.verdict}", *shown]),
        good=run.exit_code == 0,
        findings=fleet.findings,
        details=fleet.summary(),
    )
