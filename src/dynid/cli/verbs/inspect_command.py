"""dynid inspect: propose a channel map for a log."""

from __future__ import annotations

import dataclasses

import click

from dynid.cli.options import HOLD, JSON, command, held_joints, logs_argument, read_robot
from dynid.cli.screen import echo, print_json, progress


@command(
    "dynid inspect run1.csv --robot arm.urdf > map.toml",
    "dynid inspect runs/ --robot arm.urdf > map.toml",
    "dynid inspect run1.mcap --json",
)
@logs_argument
@click.option(
    "--robot",
    metavar="ROBOT",
    help="Match columns to the joints of this robot by their names, and say if joints are missing.",
)
@HOLD
@JSON
def inspect(logs: tuple[str, ...], robot: str | None, hold: tuple[str, ...], as_json: bool) -> None:
    """Propose a channel map, with the reason for every proposal.

    LOGS is one log, the files of one run or their folder, or several runs with the same columns, which share one map.
    The map goes to the standard output, the reasons to the error stream.
    """
    from dynid.logs.inspect import inspect_log

    known = None if robot is None else read_robot(robot, held_joints(hold))
    with progress("inspecting") as advance:
        proposal = inspect_log(list(logs), known, progress=advance)
    if as_json:
        print_json(dataclasses.asdict(proposal))
        return
    echo(f"{proposal.explanation}\n", err=True)
    echo(proposal.toml)
