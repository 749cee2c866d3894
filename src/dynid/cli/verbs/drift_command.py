"""dynid compare-runs: which parameters moved since a stored identification."""

from __future__ import annotations

from pathlib import Path

import click

from dynid.cli.options import EXISTING, FORCE, JSON, MAP, command, run_request
from dynid.cli.screen import print_json, print_verdict, print_written

__all__ = ["compare_runs"]


@command(
    "dynid compare-runs result/ run9.csv --map map.toml",
    "dynid compare-runs january/ june/ december/ --out wear",
)
@click.argument("stored", type=EXISTING)
@click.argument("later", nargs=-1, required=True, type=EXISTING)
@MAP
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the comparison and its page.")
@FORCE
@JSON
def compare_runs(
    stored: str, later: tuple[str, ...], channel_map: str | None, out: Path | None, force: bool, as_json: bool
) -> None:
    """Tell which parameters moved since a stored identification: drift and wear.

    STORED is a folder that dynid identify wrote; LATER are such folders, or logs, which are identified again with the
    model of STORED.
    """
    from dynid.links.recipe import Recipe
    from dynid.runs.drift_run import compare_runs as compare

    drift = compare(stored, later, channel_map=channel_map, out=run_request(out, force, Recipe.bare()))
    if as_json:
        print_json(drift.to_json())
        return
    print_verdict(drift.verdict, good=not drift.has_moved)
    for occasion in drift.later:
        for one in drift.moved(occasion):
            click.echo(f"{occasion.date} {occasion.name}: {one.joint} {one.name} {one.before:.4g} -> {one.after:.4g} "
                       f"{one.unit} ({one.sigmas:.1f} standard deviations)")  # fmt: skip
    if out is not None:
        print_written(out)
