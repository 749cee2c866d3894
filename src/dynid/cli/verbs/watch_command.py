"""dynid watch and dynid compare-runs: what pushed against the arm, and which parameters moved over time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid import errors
from dynid.cli.options import EXISTING, FORCE, GATE, JSON, MAP, FiniteRange, NewFolder, command, run_request
from dynid.cli.screen import print_json, print_verdict, print_written, progress, show_finding

if TYPE_CHECKING:
    from dynid.monitor.live_lines import Sample
    from dynid.runs.run_folder import RunRequest

__all__ = ["compare_runs", "watch"]

SAID = 3
"""Broken lines of a live watch that are said one by one (convention)."""


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
@click.option("--learn", type=click.FloatRange(min=0.0), default=0.0, metavar="SECONDS",
              help="With --live: calibrate from the first seconds of the stream, in which nothing may touch the "
              "robot.")  # fmt: skip
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
    from dynid.runs.watch_run import live_calibration
    from dynid.runs.watch_run import watch as run_watch

    if live:
        if logs or out is not None:
            raise errors.ArgumentError("--live reads samples, not logs", remedy="Omit the logs and --out.")
        sys.exit(
            _watch_live(
                result, partial(live_calibration, clean=clean, channel_map=channel_map), learn, per_hour, as_json
            )
        )
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


def _watch_live(result: str, calibrated: Callable[..., Any], learn: float, per_hour: float, as_json: bool) -> int:
    """Watch standard input; the exit code is 1 if there was an alarm."""
    from dynid.export.result_file import read_result
    from dynid.monitor.live_checks import LiveChecks
    from dynid.monitor.live_lines import ask_for_lines, read_samples
    from dynid.monitor.live_watch import LiveWatch
    from dynid.runs.watch_run import calibrate_samples

    fit = read_result(result).identification()
    samples = _in_order(read_samples(sys.stdin, fit.robot.joint_names, refused=_refuser()))
    if learn > 0.0:
        click.echo(f"learning from {learn:g} s, in which nothing may touch the robot", err=True)
        known = calibrate_samples(fit, list(_first_seconds(samples, learn)))
    else:
        known = calibrated(Path(result), fit)
    guard = LiveWatch(fit, known, per_hour=per_hour)
    checks, count, last = LiveChecks(known), 0, None
    click.echo(guard.sentence, err=True)
    for finding in guard.sight.findings:
        show_finding(finding)
    for sample in samples:
        last = sample
        for doubt in checks.step(sample):
            click.echo(f"warning: {doubt}", err=True)
        for alarm in guard.step(*sample):
            count += 1
            if as_json:
                print_json({"time_s": alarm.time_s, "joint": alarm.joint, "joints": list(alarm.joints),
                            "kind": alarm.kind, "torque": alarm.torque})  # fmt: skip
            else:
                click.echo(f"{alarm.time_s:.3f} s: {alarm.kind} at {alarm.joint}, {alarm.torque:.3g} N m or N")
    if last is None:
        raise errors.DataError("no sample came to watch", remedy=ask_for_lines(fit.robot.dof))
    return 1 if count else 0


def _in_order(samples: Iterator[Sample]) -> Iterator[Sample]:
    """The samples whose time grows or was set; where it was set is said, and what is left out."""
    from dynid.monitor.live_lines import is_clock_set

    last: float | None = None
    refuse, say = _refuser(), _refuser("warning")
    for sample in samples:
        if last is not None and is_clock_set(last, sample.time_s):
            way = "ahead" if sample.time_s > last else "back"
            say(errors.DataError(f"the time jumps {way} from {last} s to {sample.time_s} s; the watch begins anew"))
        elif last is not None and sample.time_s <= last:
            refuse(errors.DataError(f"the time {sample.time_s} s does not follow {last} s", remedy="Let it grow."))
            continue
        last = sample.time_s
        yield sample


def _first_seconds(samples: Iterator[Sample], seconds: float) -> Iterator[Sample]:
    """The samples of some seconds, in which the clock may be set."""
    from dynid.monitor.live_lines import is_clock_set

    elapsed, last = 0.0, None
    for sample in samples:
        if last is not None and not is_clock_set(last, sample.time_s):
            elapsed += sample.time_s - last
        if elapsed >= seconds:
            return
        last = sample.time_s
        yield sample


def _refuser(word: str = "left out") -> Callable[[errors.DataError], None]:
    """What is called with broken lines or times: says the first ones, and then each power of ten."""
    count = 0

    def refuse(error: errors.DataError) -> None:
        nonlocal count
        count += 1
        if count <= SAID or count in (10, 100, 1000, 10_000, 100_000, 1_000_000):
            click.echo(f"{word}: {error}" + (f" ({count} lines so far)" if count > SAID else ""), err=True)

    return refuse


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
