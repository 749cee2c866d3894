"""dynid watch and dynid compare-runs: what pushed against the arm, and which parameters moved over time."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynid import errors
from dynid.cli.options import EXISTING, FORCE, GATE, JSON, MAP, FiniteRange, NewFolder, command, run_request
from dynid.cli.screen import print_json, print_verdict, print_written, progress, show_finding

if TYPE_CHECKING:
    from dynid.runs.run_folder import RunRequest


@command(
    "dynid watch result/ run9.csv --map map.toml",
    "dynid watch result/ run9.csv --map map.toml --per-hour 60 --out watched",
    "robot_program | dynid watch result/ --live --learn 60",
    "(echo time,q1,q2,dq1,dq2,tau1,tau2; robot_program) | dynid watch result/ --live",
)
@click.argument("result", type=EXISTING)
@click.argument("logs", nargs=-1, type=EXISTING)
@MAP
@click.option("--per-hour", type=FiniteRange(min=0.0, min_open=True, max=3600.0), default=1.0, show_default=True,
              metavar="RATE", help="Rate of false alarms of the whole arm [1/h].")  # fmt: skip
@click.option("--clean", multiple=True, type=EXISTING, metavar="LOG",
              help="Log in which nothing touched the robot, for the calibration; repeatable. By default the logs of "
              "the result are read again, and parts of them left out in turn.")  # fmt: skip
@click.option("--live", is_flag=True, help="Read samples from standard input, one a line, and print alarms at once. "
              "CSV must begin with a header: time [s], then q1 ... [rad or m], dq1 ... [rad/s or m/s] and tau1 ... "
              "[N m or N] of every joint, in the robot's order, as in time,q1,q2,dq1,dq2,tau1,tau2 for two joints. "
              "JSON lines have the same names, or lists: {\"time\": 0.01, \"q\": [...], \"dq\": [...], \"tau\": "
              "[...]}.")  # fmt: skip
@click.option("--learn", type=FiniteRange(min=0.0), default=0.0, metavar="SECONDS",
              help="With --live: calibrate from the first seconds of the stream, in which nothing may touch the "
              "robot, instead of from logs.")  # fmt: skip
@click.option("--out", type=NewFolder(path_type=Path), help="Folder for the alarms and a report.")
@FORCE
@JSON
def watch(
    result: str,
    logs: tuple[str, ...],
    channel_map: str | None,
    per_hour: float,
    clean: tuple[str, ...],
    live: bool,
    learn: float,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Tell what pushed against the arm, when, and where.

    RESULT is a folder that dynid identify wrote. While nothing pushes, alarms come at the stated rate. The exit code is
    1 if there is an alarm.
    """
    from dynid.cli.live_stream import watch_stream
    from dynid.export.result_file import read_result
    from dynid.runs.live_calibration import calibrate_live
    from dynid.runs.watch_run import watch as run_watch

    if live:
        if logs or out is not None:
            raise errors.ArgumentError("--live reads samples, not logs", remedy="Omit the logs and --out.")
        fit = read_result(result).identification()
        known = partial(
            calibrate_live, Path(result), fit, clean=clean, channel_map=channel_map, notice=show_finding
        )  # fmt: skip
        sys.exit(watch_stream(fit, known, learn=learn, per_hour=per_hour, as_json=as_json))
    if learn:
        raise errors.ArgumentError("--learn needs --live", remedy="Give --clean for logs.")
    if not logs:
        raise errors.ArgumentError("there is no log to watch", remedy="Give a log, or --live.")
    with progress("watching") as advance:
        found = run_watch(
            result, logs, clean=clean, per_hour=per_hour, channel_map=channel_map,
            out=_request(out, force), progress=advance, notice=show_finding,
        )  # fmt: skip
    if as_json:
        print_json(found.to_json())
    else:
        click.echo(found.summary())
        if out is not None:
            print_written(out)
    sys.exit(1 if found.alarms else 0)


def _request(out: Path | None, force: bool) -> RunRequest | None:
    """The folder of the run; a watch has no recipe of its own."""
    from dynid.links.recipe import Recipe

    return run_request(out, force, Recipe.bare())


@command(
    "dynid compare-runs result/ run9.csv --map map.toml",
    "dynid compare-runs january/ june/ december/ --out wear",
)
@click.argument("stored", type=EXISTING)
@click.argument("later", nargs=-1, required=True, type=EXISTING)
@MAP
@GATE
@click.option("--out", type=NewFolder(path_type=Path), help="Folder for the comparison and its page.")
@FORCE
@JSON
def compare_runs(
    stored: str,
    later: tuple[str, ...],
    channel_map: str | None,
    gate: bool | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Tell which parameters have drifted or worn since a result.

    STORED is a folder that dynid identify wrote; LATER are such folders, or logs, which are identified again with the
    model of STORED. The exit code is 1 if a parameter moved.
    """
    from dynid.links.recipe import Recipe
    from dynid.runs.drift_run import compare_runs as compare

    drift = compare(
        stored, later, channel_map=channel_map, gate=gate is not False, out=run_request(out, force, Recipe.bare()),
        notice=show_finding,
    )  # fmt: skip
    if as_json:
        print_json(drift.to_json())
    else:
        print_verdict(drift.verdict, good=not drift.has_moved)
        for occasion in drift.later:
            for one in drift.moved(occasion):
                click.echo(f"{occasion.date} {occasion.name}: {one.sentence}")
        if out is not None:
            print_written(out)
    sys.exit(1 if drift.has_moved else 0)
