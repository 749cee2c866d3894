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
    command,
    read_recipe,
    recipe_options,
    robot_argument,
    run_request,
)
from dynid.cli.screen import echo, print_json, progress, show_finding

if TYPE_CHECKING:
    from dynid.robot.model import Robot


@command(
    "dynid excite ur10 --out plan",
    "dynid excite arm.urdf --set scale=0.5 --period 20 --time-limit 60 --out plan",
    "dynid excite arm.urdf --set floor=0.05 --set clearance=0.02 --out plan",
    "dynid excite arm.urdf --method energy-points --set points=30 --acceleration 5 --out plan",
    "dynid excite arm.urdf --commands --set band_hz=0.3,8 --out commands",
    "dynid excite arm.urdf --commands --set law=servo.toml --set duration_s=20 --out commands",
)
@robot_argument
@click.option("--method", type=click.Choice(["fourier", "energy-points"]),
              help="A Fourier series (default), or points whose energies reveal the parameters best, joined by "
              "fifth-order segments in minimal time.")  # fmt: skip
@click.option("--commands", is_flag=True,
              help="Commands for logs without torque: rests, levels, ramps and fast motion, with what each "
              "shows.")  # fmt: skip
@click.option("--period", "period_s", type=POSITIVE, metavar="SECONDS",
              help="Period of a Fourier series [s]; 10 by default.")  # fmt: skip
@click.option("--acceleration", metavar="NUMBER[,NUMBER...]",
              help="Acceleration limit of all joints, or of each joint [rad/s^2 or m/s^2]; URDF "
              "files have none.")  # fmt: skip
@click.option("--time-limit", "time_limit_s", type=POSITIVE, metavar="SECONDS",
              help="Duration of the search for a Fourier series [s]; 30 by default. Ctrl-C keeps the best "
              "motion.")  # fmt: skip
@recipe_options("scale=0.5, floor=0, tool_speed=1 or velocity=2")
@OUT
@FORCE
@JSON
def excite(
    robot: Robot,
    method: str | None,
    commands: bool,
    period_s: float | None,
    acceleration: str | None,
    time_limit_s: float | None,
    out: Path,
    force: bool,
    as_json: bool,
    **recipe_words: Any,
) -> None:
    """Design the motion that reveals the parameters best.

    The motion keeps the robot's limits, reduced to 80 % (--set scale=0.8). The screen and the report name the limits
    that are unknown and not checked.
    """
    from dynid.excitation.plan_files import plan_contents
    from dynid.runs.plan_run import PlanRecipe, run_command_design, run_design

    if commands and method is not None:
        raise click.UsageError("--commands is a method of its own: leave --method out")
    recipe = read_recipe(
        PlanRecipe,
        method="commands" if commands else method,
        period_s=period_s,
        acceleration=acceleration,
        time_limit_s=time_limit_s,
    )
    request = run_request(out, force, recipe)
    assert request is not None
    if recipe.method == "commands":
        designed, written = run_command_design(robot, recipe, out=request, notice=show_finding)
        if as_json:
            print_json(designed.contents())
        else:
            echo(designed.summary())
            echo(f"written: {', '.join(map(str, written))}")
        return
    with progress("searching") as advance:
        plan, files = run_design(robot, recipe, out=request, progress=advance, notice=show_finding)
    if plan.interrupted:
        echo("interrupted: this is the best motion so far", err=True)
    if as_json:
        print_json(plan_contents(plan))
    else:
        echo(plan.summary())
        echo(f"written: {', '.join(map(str, files))}")
