"""dynid validate: validate a saved result on held-out logs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dynid import errors
from dynid.cli.options import (
    EXISTING,
    FORCE,
    GATE,
    JSON,
    MAP,
    POSITIVE,
    NewFolder,
    command,
    logs_argument,
    read_recipe,
    recipe_options,
    run_request,
)
from dynid.cli.screen import print_json, print_verdict, print_written, progress, show_finding


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
@recipe_options("cutoff_hz=10 or delay_s=0.004", of_logs=True)
@GATE
@click.option("--out", type=NewFolder(path_type=Path), help="Folder for the verdict and a report.")
@FORCE
@JSON
def validate(
    result: str,
    logs: tuple[str, ...],
    channel_map: str | None,
    limit_percent: float | None,
    gate: bool | None,
    out: Path | None,
    force: bool,
    as_json: bool,
    **recipe_words: Any,
) -> None:
    """Validate a saved result on held-out logs.

    RESULT is a folder that dynid identify wrote, or its result.json. The exit code is 1 if the validation fails.
    """
    from dynid.links.recipe import Recipe
    from dynid.runs.validation_run import run_validation

    _refuse_unused(recipe_words["settings"])
    recipe = read_recipe(Recipe, limit_percent=limit_percent, gate=gate)
    with progress("validating") as advance:
        verdict = run_validation(
            result, logs, recipe, channel_map=channel_map, out=run_request(out, force, recipe), progress=advance,
            notice=show_finding,
        )  # fmt: skip
    if as_json:
        print_json(verdict.to_json())
    else:
        print_verdict(verdict.summary(), good=verdict.passed)
        if out is not None:
            print_written(out)
    sys.exit(0 if verdict.passed else 1)


def _refuse_unused(settings: tuple[str, ...]) -> None:
    """Refuse settings that belong to the identification: the result is finished."""
    from dynid.links.recipe import Recipe
    from dynid.runs.validation_run import USED_SETTINGS

    known = [key for key in Recipe.__dataclass_fields__ if key != "gravity"]  # a message of its own
    keys = [setting.partition("=")[0].strip().partition(".")[0] for setting in settings]
    if unused := [key for key in keys if key in known and key not in USED_SETTINGS]:
        raise errors.ArgumentError(
            f"{unused[0]} has no effect on a finished result",
            remedy=f"Identify again with it, or leave it out. Settings of a validation: {', '.join(USED_SETTINGS)}.",
        )
