"""dynid inspect: propose a channel map for a log."""

from __future__ import annotations

import dataclasses

import click

from dynid.cli.options import JSON, command, logs_argument
from dynid.cli.screen import print_json, progress

__all__ = ["inspect"]


@command("dynid inspect run1.csv > map.toml", "dynid inspect run1.mcap --json")
@logs_argument
@JSON
def inspect(logs: tuple[str, ...], as_json: bool) -> None:
    """Propose a channel map, with the reason for every proposal.

    The map goes to the standard output, the reasons to the error stream.
    """
    from dynid.logs.inspect import inspect_log

    with progress("inspecting") as advance:
        proposal = inspect_log(list(logs), progress=advance)
    if as_json:
        print_json(dataclasses.asdict(proposal))
        return
    click.echo(f"{proposal.explanation}\n", err=True)
    click.echo(proposal.toml)
