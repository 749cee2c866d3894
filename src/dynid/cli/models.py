"""Verbs about robots: robots, check, base."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid import errors
from dynid.cli.common import (
    DELAY,
    EXISTING,
    HOLD,
    JSON,
    MAP,
    PROFILE,
    held_joints,
    is_robot,
    load_robot,
    print_json,
    robot_argument,
    verb,
    with_usual_terms,
)
from dynid.cli.progress import progress, size_of, within
from dynid.cli.reading import Seconds, undelayed

if TYPE_CHECKING:
    from dynid.robot.model import Robot

__all__ = ["base", "check", "robots"]


@verb("dynid robots --json")
@JSON
def robots(as_json: bool) -> None:
    """List the built-in robots."""
    from dynid.robot import zoo

    if as_json:
        print_json(list(zoo.names()))
        return
    for name in zoo.names():
        click.echo(f"{name:22s} {zoo.get(name)!r}")


@verb("dynid check arm.urdf", "dynid check run1.csv --map map.toml --robot arm.urdf")
@click.argument("what")
@HOLD
@click.option("--robot", "recorded", help="Of a log: the robot that was recorded, a file or a built-in one.")
@MAP
@PROFILE
@DELAY
@JSON
def check(
    what: str,
    hold: tuple[str, ...],
    recorded: str | None,
    channel_map: str | None,
    profile: str | None,
    delay: Seconds,
    as_json: bool,
) -> None:
    """List what is wrong or suspicious in a robot model or in a log, with the remedy.

    Exit code 1 when something is wrong, 0 when there are at most warnings.
    """
    from dynid.gate.quality import check_recording
    from dynid.logs.reading import read_recording
    from dynid.robot.check import check_robot

    result: Any
    notes: tuple[str, ...] = ()
    if is_robot(what):
        result = check_robot(load_robot(what, held_joints(hold)))
    else:
        path = EXISTING.convert(what, None, None)
        robot = None if recorded is None else with_usual_terms(load_robot(recorded, held_joints(hold)))
        size = size_of(path)
        with progress("log", 2.0 * size, "MB") as advance:
            reading = within(advance, f"reading {Path(path).name}", 0.0, size)
            recording = read_recording(path, robot, channel_map=channel_map, profile=profile, progress=reading)
            checking = within(advance, f"checking {Path(path).name}", size, size)
            result = check_recording(undelayed(recording, delay, robot), robot, progress=checking)
            notes = recording.notes
    if as_json:
        print_json([finding.to_dict() for finding in result.findings])
    else:
        click.echo(str(result))
        for note in notes:
            click.echo(f"  read: {note}")
    sys.exit(0 if result.ok else 1)


@verb("dynid base puma560 --format markdown", "dynid base arm.urdf --usual-terms --json")
@robot_argument
@click.option("--method", type=click.Choice(["auto", "closed-form", "minimal-combinations", "numeric", "structural"]),
              default="auto", show_default=True, help="How the base parameters are found.")  # fmt: skip
@click.option("--format", "style", type=click.Choice(["text", "markdown", "latex", "json"]), default="text")
@JSON
@click.option("--locked", multiple=True, metavar="JOINT", help="Joint that does not move; repeatable.")
@click.option("--static", is_flag=True, help="The robot only stands still.")
@click.option(
    "--usual-terms", is_flag=True, help="Give every joint rotor inertia, viscous and Coulomb friction and an offset."
)
@click.option("--counts", is_flag=True, help="Also print what inverse dynamics costs in base parameters.")
def base(
    robot: Robot,
    method: str,
    style: str,
    as_json: bool,
    locked: tuple[str, ...],
    static: bool,
    usual_terms: bool,
    counts: bool,
) -> None:
    """Show which parameters can be known, and in which combinations."""
    from dynid.parameters.base import base_parameters
    from dynid.parameters.minimal_dynamics import count_inverse_dynamics, counts_table

    style = "json" if as_json else style
    if counts and style != "text":
        raise errors.ArgumentError("--counts is for people", remedy="Use it with --format text.")
    model = with_usual_terms(robot) if usual_terms else robot
    chosen: Any = None if method == "auto" else method
    result = base_parameters(model, method=chosen, locked=locked, static=static)
    render = {"text": result.to_text, "markdown": result.to_markdown, "latex": result.to_latex, "json": result.to_json}
    click.echo(render[style]())
    if counts:
        click.echo(f"\nInverse dynamics of this robot's links: {count_inverse_dynamics(robot)}\n\n{counts_table()}")
