"""dynid identify: identify a robot from its logs, and write a run folder with the result and its validation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dynid.cli.execute import execute, read_recipe
from dynid.cli.options import (
    ENGINE,
    EXISTING,
    GATE,
    GRAVITY,
    MAP,
    ROWS,
    TIME,
    TRIM,
    command,
    logs_argument,
    output_options,
    place_robot,
    recipe_options,
    robot_argument,
)
from dynid.cli.screen import Screen

if TYPE_CHECKING:
    from dynid.parameters.base import Method
    from dynid.robot.model import Robot
    from dynid.runs.identification_run import IdentificationRun

    TextType = click.ParamType[str]
else:
    TextType = click.ParamType  # a type with a parameter for type checkers only: older versions of click have none


UNPROVEN = "No data were held out (--validate, --hold-out), so the result is not validated."


class EstimatorName(TextType):
    """The name of an estimator."""

    name = "name"
    """What click's messages call the type."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from dynid.estimation.registry import estimators

        known = [entry.name for entry in estimators() if entry.on_command_line]
        if value not in known:
            self.fail(f"{value!r} is not one of {', '.join(map(repr, known))}.", param, ctx)
        return value


class EstimatorOption(click.Option):
    """The option whose help lists the registered estimators; they are imported only when this help is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The option and its help."""
        from dynid.estimation.registry import estimators
        from dynid.links.recipe import Recipe

        offered = [entry for entry in estimators() if entry.on_command_line]
        simulating = ", ".join(entry.name for entry in offered if entry.simulates_loop)
        others = ", ".join(entry.name for entry in offered if not entry.simulates_loop)
        self.help = (
            f"Estimator, {Recipe().estimator} by default: {others}; these simulate the control loop, for noisy "
            f"positions: {simulating}. docs/choosing-an-estimator.md says when to use which."
        )
        return super().get_help_record(ctx)


@command(  # the examples at the end of the help
    "dynid identify arm.urdf run1.csv --map map.toml --hold-out 30% --out out",
    "dynid identify arm.urdf run1.csv --map map.toml --validate run2.csv --out res",
    "dynid identify arm.urdf run1.csv --map map.toml --recipe r.toml --out out",
    "dynid identify arm.urdf run1.csv --map map.toml --set law=law.toml --out out",
    "dynid identify arm.urdf run*.csv --significant 1% --hold-out 30% --out out",
)
@robot_argument
@logs_argument
@MAP
# EstimatorOption replaces this help by the list of estimators when help is shown
@click.option("--estimator", cls=EstimatorOption, type=EstimatorName(), metavar="NAME", help="Estimator.")
@click.option("--validate", "held_out", multiple=True, type=EXISTING, metavar="LOG",
              help="Log to validate on; not used for the fit; repeatable.")  # fmt: skip
@click.option("--hold-out", metavar="PART",
              help="Held-out part of every log: 40% (the last 40 %), 12:16 (seconds), or every:3:0.75 "
              "(every third block of 0.75 s).")  # fmt: skip
@click.option("--friction", type=click.Choice(["rich", "plain"]),
              help="Friction that is fitted together with the links: rich (default; with memory, load, another viscous "
              "law, a tilted base, where it predicts better), or plain alone.")  # fmt: skip
@click.option("--significant", metavar="PERCENT",
              help="Also fit a short model without the parameters that contribute less than this part of a joint's "
              "largest torque, such as 1%, and print what it costs.")  # fmt: skip
@click.option("--base", type=click.Choice(["closed-form", "lin", "minimal-combinations", "numeric", "structural"]),
              help="Set of base parameters in which the result is stated; lin is minimal-combinations.")  # fmt: skip
@ROWS
@TIME
@TRIM
@GRAVITY
@ENGINE
@recipe_options(example="band_hz=30, delay_s=auto or springs=joint2", page="docs/recipes.md")
@GATE
@output_options("the result, the identified model and a report", required=True)
def identify(
    robot: Robot,
    logs: tuple[str, ...],
    channel_map: str | None,
    estimator: str | None,
    held_out: tuple[str, ...],  # logs to validate on; run folders store them by this name
    hold_out: str | None,  # rule that holds out a part of every log
    friction: str | None,
    significant: str | None,
    base: Method | Literal["lin"] | None,
    rows: str | None,
    time: str | None,
    trim_s: float | None,
    gravity: str | None,
    engine: str | None,
    gate: bool | None,
    **_: Any,  # read from click's context
) -> None:
    """Identify a robot from logs.

    The run folder gets the result, the identified model, the recipe and a report. The exit code is 1 if the result
    fails on the held-out data. dynid rerun repeats a finished run.
    """
    from dynid.links.recipe import Recipe
    from dynid.runs.identification_run import Identify

    base = "minimal-combinations" if base == "lin" else base
    recipe = read_recipe(Recipe, estimator=estimator, friction=friction, hold_out=hold_out, gate=gate)
    placed = place_robot(robot, gravity)
    task = Identify(
        placed, logs, recipe, held_out, channel_map, rows, time, significant, engine or "auto", base, trim_s
    )
    execute(task, "identifying", show_identification)


def _next_commands(out: Path, *, passed: bool) -> list[str]:
    """What to do with a result, or about it."""
    given = click.get_current_context().params
    chart = f" --map {given['channel_map']}" if given["channel_map"] else ""
    if not passed:
        return [f"dynid check {given['logs'][0]}{chart} --robot {given['robot']}"]
    return [f"dynid validate {out} NEW_LOG{chart}", f"dynid codegen {out} --out {out}_c"]


def show_identification(run: IdentificationRun) -> Screen:
    """The verdict, the friction of every joint, and the files with their errors."""
    from dynid.links.rich.joint_friction import friction_table, joint_friction

    out, check = click.get_current_context().params["out"], run.validation
    friction = joint_friction(run.fit)
    details = [run.fit.summary(), str(run.cost or ""), "" if check is None else check.summary()]
    return Screen(
        verdict=UNPROVEN if check is None else "\n".join(filter(None, (check.verdict, check.joints_above_limit))),
        good=None if check is None else check.passed,
        tables=[friction_table(friction, stated=(0.5,))] if friction else [],
        findings=[*(() if check is None else check.causes), *run.fit.estimate.findings],
        files=run.note.splitlines(),
        commands=_next_commands(out, passed=check is None or check.passed),
        details="\n\n".join(filter(None, details)),
    )
