"""dynid excite: design the motion that reveals the parameters best."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid.cli.options import (
    FORCE,
    JSON,
    OUT,
    POSITIVE,
    FiniteRange,
    command,
    read_recipe,
    recipe_options,
    robot_argument,
    run_request,
)
from dynid.cli.screen import print_json, progress, show_finding

if TYPE_CHECKING:
    from dynid.robot.model import Robot

__all__ = ["excite"]


@command(
    "dynid excite ur10 --out plan",
    "dynid excite arm.urdf --scale 0.5 --period 20 --time-limit 60 --out plan",
    "dynid excite arm.urdf --floor 0.05 --set clearance=0.02 --out plan",
)
@robot_argument
@click.option("--period", "period_s", type=POSITIVE, metavar="SECONDS",
              help="Period of the motion [s]; 10 by default.")  # fmt: skip
@click.option("--scale", type=FiniteRange(0.0, 1.0, min_open=True), metavar="SHARE",
              help="Share of the robot's limits that may be used; 0.8 by default.")  # fmt: skip
@click.option("--acceleration", metavar="NUMBER[,NUMBER...]",
              help="Acceleration limit of all joints, or of each joint [rad/s^2 or m/s^2]; URDF "
              "files have none.")  # fmt: skip
@click.option("--floor", type=FiniteRange(), metavar="Z",
              help="Smallest height of every body: z in the base frame [m].")  # fmt: skip
@click.option("--time-limit", "time_limit_s", type=POSITIVE, metavar="SECONDS",
              help="Duration of the search [s]; 30 by default. Ctrl-C keeps the best motion.")  # fmt: skip
@recipe_options("harmonics=7, tool_speed=1 or velocity=2")
@OUT
@FORCE
@JSON
def excite(
    robot: Robot,
    period_s: float | None,
    scale: float | None,
    acceleration: str | None,
    floor: float | None,
    time_limit_s: float | None,
    out: Path,
    force: bool,
    as_json: bool,
    **recipe_words: Any,
) -> None:
    """Design the motion that reveals the parameters best.

    The motion keeps the robot's limits. The screen and the report name the limits that are unknown and not checked.
    """
    from dynid.excitation.plan_files import plan_contents
    from dynid.runs.plan_run import PlanRecipe, run_design

    recipe = read_recipe(
        PlanRecipe, period_s=period_s, scale=scale, acceleration=acceleration, floor=floor, time_limit_s=time_limit_s
    )
    request = run_request(out, force, recipe)
    assert request is not None
    with progress("searching") as advance:
        plan, files = run_design(robot, recipe, out=request, progress=advance, notice=show_finding)
    if plan.interrupted:
        click.echo("interrupted: this is the best motion so far", err=True)
    if as_json:
        print_json(plan_contents(plan))
    else:
        click.echo(plan.summary())
        click.echo(f"written: {', '.join(map(str, files))}")
