"""dynid validate: validate a saved result on held-out logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dynid import errors
from dynid.cli.execute import execute, read_recipe
from dynid.cli.options import (
    EXISTING,
    GATE,
    MAP,
    POSITIVE,
    ROWS,
    TIME,
    TRIM,
    command,
    logs_argument,
    output_options,
    recipe_options,
)
from dynid.cli.screen import Screen
from dynid.settings import split_word

if TYPE_CHECKING:
    from dynid.runs.validation_run import ValidationRun


@command(
    "dynid validate result/ run9.csv --map map.toml",
    "dynid validate result/ run9.csv --map map.toml --limit 5 --out proof",
    "dynid validate result/ run9.csv --map map.toml --recipe recipe.toml",
)
@click.argument("result", type=EXISTING)
@logs_argument
@MAP
@click.option("--limit", "limit_percent", type=POSITIVE, metavar="PERCENT",
              help="Largest relative torque error that passes [%]; 15 by default.")  # fmt: skip
@ROWS
@TIME
@TRIM
@recipe_options("cutoff_hz=10 or delay_s=0.004")
@GATE
@output_options("the verdict and a report")
def validate(
    result: str,
    logs: tuple[str, ...],
    channel_map: str | None,
    limit_percent: float | None,
    rows: str | None,
    time: str | None,
    trim_s: float | None,
    gate: bool | None,
    **recipe_words: Any,
) -> None:
    """Validate a saved result on held-out logs.

    RESULT is a folder that dynid identify wrote, or its result.json. The exit code is 1 if the validation fails.
    """
    from dynid.links.recipe import Recipe
    from dynid.runs.validation_run import Validate

    _refuse_unused(recipe_words["settings"])
    recipe = read_recipe(Recipe, limit_percent=limit_percent, gate=gate)
    execute(Validate(result, logs, recipe, channel_map, rows, time, trim_s), "validating", show_validation)


def show_validation(run: ValidationRun) -> Screen:
    """The verdict and the errors of every joint."""
    verdict = run.verdict
    logs = [verdict.log_table()] if len(verdict.by_log) > 1 else []
    return Screen(
        verdict="\n".join(filter(None, (verdict.verdict, verdict.joints_above_limit))),
        good=verdict.passed,
        tables=[verdict.table(), *logs],
        findings=verdict.causes,
    )


def _refuse_unused(settings: tuple[str, ...]) -> None:
    """Refuse settings that belong to the identification: the result is finished."""
    from dynid.links.recipe import Recipe
    from dynid.runs.validation_run import USED_SETTINGS

    known = Recipe.__dataclass_fields__
    keys = [split_word(setting)[0] for setting in settings]
    if unused := [key for key in keys if key in known and key not in USED_SETTINGS]:
        raise errors.ArgumentError(
            f"{unused[0]} has no effect on a finished result",
            remedy=f"Identify again with it, or leave it out. Settings of a validation: {', '.join(USED_SETTINGS)}.",
        )
