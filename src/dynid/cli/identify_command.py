"""dynid identify: from a robot and its logs to a run folder with the result and the proof."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid.cli.options import (
    CHECK,
    EXISTING,
    FORCE,
    JSON,
    MAP,
    OUT,
    command,
    logs_argument,
    read_recipe,
    recipe_options,
    robot_argument,
    run_request,
)
from dynid.cli.screen import print_json, print_verdict, print_written, progress, show_finding

if TYPE_CHECKING:
    from dynid.robot.model import Robot

__all__ = ["identify"]

UNPROVEN = "No data were held out (--validate, --hold-out), so nothing is proven."


class EstimatorName(click.ParamType[str]):
    """The name of an estimator in the registry."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from dynid.estimation.registry import estimators

        known = [entry.name for entry in estimators() if entry.on_command_line]
        if value not in known:
            self.fail(f"{value!r} is not one of {', '.join(map(repr, known))}.", param, ctx)
        return value


@command(
    "dynid identify arm.urdf run1.csv --map map.toml --hold-out 30% --out result",
    "dynid identify arm.urdf run1.csv run2.csv --map map.toml --validate run3.csv --set band_hz=10 --out result",
    "dynid identify arm.urdf run1.csv --map map.toml --recipe result/recipe.toml --out again",
    "dynid identify arm.urdf run1.csv --map map.toml --estimator iv --set law=law.toml --out result",
)
@robot_argument
@logs_argument
@MAP
@click.option("--estimator", type=EstimatorName(), metavar="NAME",
              help="Estimator: feasible (default), wls, ols; huber, cauchy (outliers); ridge, svd; tls, ml (noise in "
              "the columns, coloured noise); link-by-link, energy, power, momentum; iv, didim, cloe, clie (simulate "
              "the control loop).")  # fmt: skip
@click.option("--validate", "held_out", multiple=True, type=EXISTING, metavar="LOG",
              help="Log for the proof, which is not identified from; repeatable.")  # fmt: skip
@click.option("--hold-out", metavar="PART",
              help="Part of every log for the proof: 40% (the last), 12:16 [s], or every:3:0.75 (each third block of "
              "0.75 s).")  # fmt: skip
@recipe_options("band_hz=30, delay_s=auto or selection=false")
@CHECK
@OUT
@FORCE
@JSON
def identify(
    robot: Robot,
    logs: tuple[str, ...],
    channel_map: str | None,
    estimator: str | None,
    held_out: tuple[str, ...],
    hold_out: str | None,
    gate: bool | None,
    out: Path,
    force: bool,
    as_json: bool,
    **recipe_words: Any,
) -> None:
    """Identify a robot from logs; write a run folder with the result, the identified model and a report.

    Exit code 1 if held-out data were given and the verdict failed. An interrupted run continues where it stopped when
    the same command is given again; dynid rerun repeats a finished one.
    """
    from dynid.export.result_file import result_json
    from dynid.links.recipe import Recipe
    from dynid.runs.identification_run import run_identification

    recipe = read_recipe(Recipe, estimator=estimator, hold_out=hold_out, gate=gate)
    with progress("identifying") as advance:
        run = run_identification(
            robot, logs, recipe, held_out=held_out, channel_map=channel_map, out=run_request(out, force, recipe),
            progress=advance, notice=show_finding,
        )  # fmt: skip
    if as_json:
        print_json(result_json(run.fit, run.validation))
    else:
        click.echo(run.fit.summary() + "\n")
        verdict = UNPROVEN if run.validation is None else run.validation.summary()
        print_verdict(verdict, good=run.validation is not None and run.validation.passed)
        print_written(out)
        click.echo(run.note, nl=bool(run.note))
    sys.exit(run.exit_code)
