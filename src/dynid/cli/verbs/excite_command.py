"""dynid excite: design the motion that reveals the parameters best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dynid.cli.execute import execute, read_recipe
from dynid.cli.options import POSITIVE, command, output_options, recipe_options, robot_argument
from dynid.cli.screen import Screen

if TYPE_CHECKING:
    from dynid.robot.model import Robot
    from dynid.runs.plan_run import DesignRun


@command(
    "dynid excite ur10 --out plan",
    "dynid excite arm.urdf --set scale=0.5 --period 20 --time-limit 60 --out plan",
    "dynid excite arm.urdf --set floor=0.05 --set clearance=0.02 --out plan",
    "dynid excite arm.urdf --method energy-points --set points=30 --acceleration 5 --out plan",
    "dynid excite arm.urdf --commands --set law=servo.toml --period 20 --out commands",
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
@output_options("the motion and a report", required=True)
def excite(
    robot: Robot,
    method: str | None,
    commands: bool,
    period_s: float | None,
    acceleration: str | None,
    time_limit_s: float | None,
    **_: Any,  # read from click's context
) -> None:
    """Design the motion that reveals the parameters best.

    The motion keeps the robot's limits, reduced to 80 % (--set scale=0.8). The screen and the report name the limits
    that are unknown and not checked.
    """
    from dynid.runs.plan_run import DesignMotion, PlanRecipe

    if commands and method is not None:
        raise click.UsageError("--commands is a method of its own: leave --method out")
    recipe = read_recipe(
        PlanRecipe,
        method="commands" if commands else method,
        period_s=period_s,
        acceleration=acceleration,
        time_limit_s=time_limit_s,
    )
    execute(DesignMotion(robot, recipe), "searching", show_plan)


def show_plan(run: DesignRun) -> Screen:
    """What the motion reveals, how near it comes to the limits, and its files."""
    from dynid.excitation.excitation import Excitation

    plan, out = run.plan, click.get_current_context().params["out"]
    if not isinstance(plan, Excitation):
        return Screen(verdict=plan.summary(), good=None, files=[f"commands: {out / 'commands.csv'}"])
    state = "interrupted: this is the best motion so far; " if plan.interrupted else ""
    return Screen(
        verdict=f"{state}condition number {plan.condition_number:.3g}, {plan.trajectory.duration:g} s; speed reached: "
        f"{plan.speed_text}",
        good=not plan.interrupted,
        findings=plan.cautions,
        files=[plan.checks_summary, f"motion: {out / 'trajectory.csv'}"],
        commands=["dynid identify ROBOT LOG --map MAP --out result"],
        details=plan.summary(),
    )
