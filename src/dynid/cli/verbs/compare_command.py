"""dynid compare: compare estimators on simulated logs of a robot with known parameters."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid.cli.options import FORCE, JSON, NewFolder, command, read_recipe, robot_argument
from dynid.cli.options import RECIPE as RECIPE_OPTION
from dynid.cli.screen import echo, finite_values, print_json, progress
from dynid.files import make_folder

if TYPE_CHECKING:
    from dynid.robot.model import Robot


LIST = "NUMBER[,NUMBER...]"


@command(
    "dynid compare puma560 --noise 1e-5,1e-4,1e-3 --rate 100 --runs 20",
    "dynid compare tx40 --methods ols,wls+f,iv --gains 0,0.3 --jobs 2 --out out",
)
@robot_argument
@click.option("--noise", metavar=LIST, help="Standard deviations of the noise of the positions [rad or m]; 1e-4 by "
              "default.")  # fmt: skip
@click.option("--rate", metavar=LIST, help="Sampling rates of the log [Hz]; 100 by default.")
@click.option("--gains", metavar=LIST, help="Relative errors of the controller gains that the estimators assume; 0 by "
              "default.")  # fmt: skip
@click.option("--methods", metavar="NAME[,NAME...]",
              help="Short names of estimators; with the ending +f, as in wls+f, positions are "
              "low-pass filtered.")  # fmt: skip
@click.option("--runs", type=click.IntRange(min=1), help="Number of logs per condition; 20 by default.")
@click.option("--jobs", type=click.IntRange(min=1), help="Number of processes that share the work; 1 by default.")
@RECIPE_OPTION
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
              help="Change another setting: torque_noise, quantisation, start, duration_s, amplitude, seed; "
              "repeatable.")  # fmt: skip
@click.option("--out", type=NewFolder(path_type=Path),
              help="Folder for compare.html, .md and .json, and for .svg if there are several conditions.")  # fmt: skip
@FORCE
@JSON
def compare(robot: Robot, out: Path | None, force: bool, as_json: bool, **recipe_words: Any) -> None:
    """Compare estimators on simulated logs of a known robot.

    Many noisy logs are simulated in a control loop. Joints without rotor inertia, friction and offset get them.
    """
    from dynid.studies.compare.compare_page import comparison_table, study_page, study_pictures
    from dynid.studies.compare.compare_recipe import CompareRecipe
    from dynid.studies.compare.study import run_study
    from dynid.studies.compare.trial import Setting, planted_robot

    named = {key: recipe_words[key] for key in ("noise", "rate", "gains", "methods", "runs", "jobs")}
    recipe = read_recipe(CompareRecipe, **named)
    chosen = recipe.conditions()
    setting = Setting(robot=planted_robot(robot), duration_s=recipe.duration_s, amplitude=recipe.amplitude)
    if out is not None:
        _refuse_overwriting(out, force)
    total = max(len(chosen) * recipe.runs, 1)
    with _report_interrupt(), progress("comparing") as advance:
        study = run_study(
            setting, chosen, recipe.methods, runs=recipe.runs, seed=recipe.seed, jobs=recipe.jobs,
            scheduler=recipe.scheduler,
            tell=lambda done, _, note: advance(done / total, note),
        )  # fmt: skip
    table = comparison_table(study)
    if as_json:
        print_json(study.to_json())
    else:
        echo(table.to_text())
    if out is not None:
        make_folder(out)
        _write(out, study_page(study).to_html(), table.to_markdown(), study.to_json(), study_pictures(study))
        echo(f"written: {out}", err=True)


@contextlib.contextmanager
def _report_interrupt() -> Iterator[None]:
    """Report at an interrupt that a comparison cannot be continued."""
    try:
        yield
    except KeyboardInterrupt:
        echo("dynid: interrupted. Nothing was kept; the same command starts again.", err=True)
        raise click.exceptions.Exit(130) from None


NAMES = ("compare.html", "compare.md", "compare.json", "compare.svg")


def _refuse_overwriting(out: Path, force: bool) -> None:
    from dynid.errors import ExportError

    existing = next(place for place in (out, *out.absolute().parents) if place.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise ExportError("no folder can be created there", path=out, remedy="Choose another --out.")
    present = [name for name in NAMES if (out / name).exists()]
    if present and not force:
        raise ExportError("the file exists already", path=out / present[0], remedy="Choose another --out, or --force.")


def _write(out: Path, page: str, markdown: str, data: dict[str, object], picture: str) -> None:
    import json

    from dynid.files import write_atomically

    texts = (page, markdown + "\n", json.dumps(finite_values(data), indent=1, allow_nan=False) + "\n", picture)
    for name, text in zip(NAMES, texts, strict=True):
        if text:
            write_atomically(out / name, text, force=True)
