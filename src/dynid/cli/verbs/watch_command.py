"""dynid watch and dynid compare-runs: what pushed against the arm, and which parameters moved over time."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid import errors
from dynid.cli.execute import execute
from dynid.cli.options import EXISTING, GATE, MAP, FiniteRange, command, output_options
from dynid.cli.screen import Screen, show_finding

if TYPE_CHECKING:
    from dynid.runs.drift_run import Drift
    from dynid.runs.watch_run import WatchRun

MOST_LINES = 12
"""Most parameters that moved on a screen; --verbose shows all (convention)."""


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
@output_options("the alarms and a report")
def watch(
    result: str,
    logs: tuple[str, ...],
    channel_map: str | None,
    per_hour: float,
    clean: tuple[str, ...],
    live: bool,
    learn: float,
    out: Path | None,
    as_json: bool,
    **_: Any,  # read from click's context
) -> None:
    """Tell what pushed against the arm, when, and where.

    RESULT is a folder that dynid identify wrote. While nothing pushes, alarms come at the stated rate. The exit code is
    1 if there is an alarm.
    """
    from dynid.cli.live_stream import watch_stream
    from dynid.export.result_file import read_result
    from dynid.runs.live_calibration import calibrate_live
    from dynid.runs.validation_run import common_cutoff
    from dynid.runs.watch_run import WatchLogs

    if live:
        if logs or out is not None:
            raise errors.ArgumentError("--live reads samples, not logs", remedy="Omit the logs and --out.")
        saved = read_result(result)
        fit = saved.identification()
        known = partial(
            calibrate_live, Path(result), fit, clean=clean, channel_map=channel_map, notice=show_finding
        )  # fmt: skip
        cutoff = common_cutoff(saved)
        sys.exit(watch_stream(fit, known, learn=learn, per_hour=per_hour, as_json=as_json, cutoff_hz=cutoff))
    if learn:
        raise errors.ArgumentError("--learn needs --live", remedy="Give --clean for logs.")
    if not logs:
        raise errors.ArgumentError("there is no log to watch", remedy="Give a log, or --live.")
    execute(WatchLogs(result, logs, clean, per_hour, channel_map), "watching", show_watch)


def show_watch(run: WatchRun) -> Screen:
    """The verdict and the alarms of every log."""
    return Screen(
        verdict="\n".join([*(f"{found.source}: {found.verdict}" for found in run.watches), run.sight.sentence]),
        good=not run.alarms,
        tables=[found.table() for found in run.watches if found.alarms],
    )


@command(
    "dynid compare-runs result/ run9.csv --map map.toml",
    "dynid compare-runs january/ june/ december/ --out wear",
)
@click.argument("stored", type=EXISTING)
@click.argument("later", nargs=-1, required=True, type=EXISTING)
@MAP
@GATE
@output_options("the comparison and its page")
def compare_runs(
    stored: str,
    later: tuple[str, ...],
    channel_map: str | None,
    gate: bool | None,
    **_: Any,  # read from click's context
) -> None:
    """Tell which parameters have drifted or worn since a result, and which of two runs predicts better.

    STORED is a folder that dynid identify wrote; LATER are such folders, or logs, which are identified again with the
    model of STORED. Two runs are judged on identical samples: those that either was judged on. The exit code is 1 if a
    parameter moved.
    """
    from dynid.runs.drift_run import CompareRuns

    execute(CompareRuns(stored, later, channel_map, gate is not False), "comparing", show_drift)


def show_drift(drift: Drift) -> Screen:
    """The verdict, what moved, and which run predicts better."""
    moved = [(one.date, one.name, part.sentence) for one in drift.later for part in one.moved]
    lines = [f"{date} {name}: {sentence}" for date, name, sentence in moved]
    return Screen(
        verdict="\n".join([drift.verdict, *lines[:MOST_LINES], *(contest.sentence for contest in drift.contests)]),
        good=not drift.has_moved,
        details="\n".join(lines),
    )
