"""dynid load: identify the load of a robot."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid.cli.options import (
    EXISTING,
    FORCE,
    JSON,
    MAP,
    command,
    logs_argument,
    read_recipe,
    recipe_options,
    robot_argument,
    run_request,
)
from dynid.cli.screen import print_json, print_written, progress, show_finding

if TYPE_CHECKING:
    from dynid.robot.model import Robot

__all__ = ["load"]


@command(
    "dynid load arm.urdf held.csv --map map.toml --sensor tool0",
    "dynid load arm.urdf held.csv --unloaded empty.csv --map map.toml --out load",
    "dynid load arm.urdf held.csv --map map.toml --arm 0.1,0.01",
    "dynid load arm.urdf held.csv --map map.toml --sensor tool0 --set drift=true",
)
@robot_argument
@logs_argument
@MAP
@click.option("--sensor", metavar="LINK",
              help="Link that carries a force and torque sensor; without it, joint torques are used.")  # fmt: skip
@click.option("--unloaded", multiple=True, type=EXISTING, metavar="LOG",
              help="Log of the robot without the load; only for joint torques; repeatable.")  # fmt: skip
@click.option("--arm", metavar="known|unknown|MASS,COM",
              help="How well the arm's model is known, if no --unloaded log is given: known (default), unknown, or the "
              "standard deviations of each link's mass (relative) and centre of mass [m].")  # fmt: skip
@click.option("--tare", type=EXISTING, metavar="FILE",
              help="The load.json of the gripper alone; it is subtracted, with its uncertainty.")  # fmt: skip
@recipe_options("link=tool, sign=-1, delay_s=auto or gate=false", of_logs=True)
@click.option("--out", type=click.Path(path_type=Path),
              help="Folder for the load, the URDF of the robot with the load, and a report.")  # fmt: skip
@FORCE
@JSON
def load(
    robot: Robot,
    logs: tuple[str, ...],
    channel_map: str | None,
    sensor: str | None,
    unloaded: tuple[str, ...],
    arm: str | None,
    tare: str | None,
    out: Path | None,
    force: bool,
    as_json: bool,
    **recipe_words: Any,
) -> None:
    """Identify the load of a robot.

    The data come from a wrist sensor or from joint torques. The command prints the values to enter in the robot
    controller's payload dialog. The exit code is 1 if the result is doubtful.
    """
    from dynid.runs.load_run import LoadRecipe, run_load

    recipe = read_recipe(LoadRecipe, sensor=sensor, arm=arm, tare=tare)
    with progress("identifying the load") as advance:
        run = run_load(
            robot, logs, recipe, unloaded=unloaded, channel_map=channel_map, out=run_request(out, force, recipe),
            progress=advance, notice=show_finding,
        )  # fmt: skip
    if as_json:
        print_json(run.content)
    else:
        click.echo(run.text)
        if out is not None:
            print_written(out)
    sys.exit(run.exit_code)
