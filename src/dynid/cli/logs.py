"""Verbs about logs: inspect, validate."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynid import errors
from dynid.cli.common import (
    DELAY,
    EXISTING,
    FORCE,
    JSON,
    MAP,
    POSITIVE,
    PROFILE,
    FiniteRange,
    logs_argument,
    print_json,
    say_verdict,
    verb,
)
from dynid.cli.progress import progress, size_of
from dynid.cli.reading import LogSource, Seconds, digest_of, read_experiments
from dynid.cli.run_folder import open_run

if TYPE_CHECKING:
    pass

__all__ = ["inspect", "refuse_copies", "validate"]

LIMIT = click.option("--limit", type=POSITIVE, default=15.0, show_default=True,
                      help="Largest relative held-out error that passes [%].")  # fmt: skip
CUTOFF = click.option("--cutoff", type=POSITIVE, help="Low-pass [Hz]; chosen from the data by default.")
BAND = click.option("--band", type=POSITIVE, metavar="HZ",
                    help="Explain and compare torques below this frequency only; all of it by default.")  # fmt: skip
TRIM = click.option("--trim", type=FiniteRange(min=0.0), metavar="SECONDS",
                    help="Left out at the ends of what is compared in a band; 1.5 periods by default.")  # fmt: skip
DEAD_BAND = click.option("--dead-band", type=FiniteRange(min=0.0), default=0.0, metavar="SPEED",
                         help="Leave out a joint's rows slower than this [rad/s or m/s].")  # fmt: skip
MAX_GAP = click.option("--max-gap", type=POSITIVE, metavar="SECONDS",
                       help="Longest step of the clock that is no gap; three sampling periods by default.")  # fmt: skip
JUDGE_REST = click.option("--judge-rest", is_flag=True,
                          help="Compare standstill too, where dry friction can be anything.")  # fmt: skip
CHECK = click.option("--check/--no-check", default=True, show_default=True,
                      help="Refuse logs in which dynid check finds an error.")  # fmt: skip


@verb("dynid inspect run1.csv > map.toml", "dynid inspect run1.mcap --json")
@logs_argument
@JSON
def inspect(logs: tuple[str, ...], as_json: bool) -> None:
    """Look into a log and propose a channel map for it, with the reasons of every guess."""
    from dynid.logs.inspect import inspect_log

    size = sum(size_of(log) for log in logs)
    with progress("inspecting", size, "MB") as advance:
        proposal = inspect_log(list(logs), progress=lambda share, note: advance(size * share, note))
    if as_json:
        print_json(dataclasses.asdict(proposal))
        return
    click.echo(f"{proposal.explanation}\n", err=True)
    click.echo(proposal.toml)


def refuse_copies(logs: Sequence[str]) -> None:
    """The same samples twice look like twice the knowledge: intervals would shrink, and none of it would be true."""
    seen: dict[str, str] = {}
    for log in logs:
        digest = digest_of(log)
        if (twin := seen.get(digest)) is not None:
            what = "is given twice" if twin == log else f"has the same content as {twin}"
            raise errors.ArgumentError(f"{log} {what}", remedy="Give each log once: a copy tells nothing new.")
        seen[digest] = log


@verb(
    "dynid validate result/ run9.csv --map map.toml",
    "dynid validate result/ run9.csv --map map.toml --limit 5 --out proof",
)
@click.argument("result", type=EXISTING)
@logs_argument
@MAP
@PROFILE
@BAND
@TRIM
@DEAD_BAND
@LIMIT
@CUTOFF
@DELAY
@MAX_GAP
@JUDGE_REST
@CHECK
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the verdict and a report.")
@FORCE
@JSON
def validate(
    result: str,
    logs: tuple[str, ...],
    channel_map: str | None,
    profile: str | None,
    band: float | None,
    trim: float | None,
    dead_band: float,
    limit: float,
    cutoff: float | None,
    delay: Seconds,
    max_gap: float | None,
    judge_rest: bool,
    check: bool,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Judge a saved result on logs that it has not seen.

    RESULT is a folder that dynid identify wrote, or its result.json. Exit code 1 when the verdict failed.
    """
    from dynid.export.result_file import read_result
    from dynid.links.validation import validate as judge
    from dynid.report.report import identification_page

    refuse_copies(logs)
    saved = read_result(result)
    fit = saved.identification()
    used = {facts["sha256"]: facts["source"] for facts in saved.content["data"] if facts["sha256"]}
    for log in logs:
        if (digest := digest_of(log)) in used:
            raise errors.ArgumentError(
                f"{log} was used for the identification, as {used[digest]}", remedy="Give a log that it has not seen."
            )
    run = None if out is None else open_run(out, ["validation.json"], force=force)
    band = fit.equations.band_hz if band is None else band
    source = LogSource(fit.robot, channel_map, profile, cutoff, gate=check, delay=delay, band=band,
                       dead_band=dead_band, max_gap=max_gap, judge_rest=judge_rest)  # fmt: skip
    runs = read_experiments(logs, source, run, fitted=0)
    verdict = judge(fit, runs, limit=limit, band_hz=band, trim_s=trim)
    code = 0 if verdict.passed else 1
    if run is not None:
        run.write("validation.json", json.dumps(verdict.to_json(), indent=1) + "\n")
        run.write_page(identification_page(fit, verdict, runs, [run.settings()], saved.content["data"]))
        run.finish("validation.json", code)
    if as_json:
        print_json(verdict.to_json())
    else:
        say_verdict(verdict.summary(), good=verdict.passed)
        if out is not None:
            click.echo(f"written: {out}, with {out / 'report.html'} to open in a browser")
    sys.exit(code)
