"""dynid watch and dynid compare-runs: what pushed against the arm, and which parameters moved over time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynid import errors
from dynid.cli.options import EXISTING, FORCE, JSON, MAP, POSITIVE, command, run_request
from dynid.cli.screen import print_json, print_verdict, print_written, progress, show_finding

if TYPE_CHECKING:
    from dynid.runs.run_folder import RunRequest

__all__ = ["compare_runs", "watch"]


@command(
    "dynid watch result/ run9.csv --map map.toml",
    "dynid watch result/ run9.csv --map map.toml --per-hour 60 --out watched",
    "robot_program | dynid watch result/ --live --clean run1.csv --map map.toml",
)
@click.argument("result", type=EXISTING)
@click.argument("logs", nargs=-1, type=EXISTING)
@MAP
@click.option("--per-hour", type=POSITIVE, default=1.0, show_default=True, metavar="RATE",
              help="Rate of false alarms of the whole arm [1/h].")  # fmt: skip
@click.option("--clean", multiple=True, type=EXISTING, metavar="LOG",
              help="Log in which nothing touched the robot, for the calibration; repeatable. By default the logs of "
              "the result are read again, and parts of them left out in turn.")  # fmt: skip
@click.option("--live", is_flag=True, help="Read samples from standard input, one CSV or JSON line each: time, q1 ..., "
              "dq1 ..., tau1 ...; print alarms at once.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the alarms and a report.")
@FORCE
@JSON
def watch(
    result: str,
    logs: tuple[str, ...],
    channel_map: str | None,
    per_hour: float,
    clean: tuple[str, ...],
    live: bool,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Tell what pushed against the arm, when, and against which joint.

    RESULT is a folder that dynid identify wrote. While nothing pushes, alarms come at the stated rate. The exit code is
    1 if there is an alarm.
    """
    from dynid.runs.watch_run import watch as run_watch

    if live:
        if logs or out is not None:
            raise errors.ArgumentError("--live reads samples, not logs", remedy="Omit the logs and --out.")
        sys.exit(_watch_live(result, clean, channel_map, per_hour, as_json))
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


def _watch_live(result: str, clean: tuple[str, ...], channel_map: str | None, per_hour: float, as_json: bool) -> int:
    """Watch standard input; the exit code is 1 if there was an alarm."""
    from dynid.export.result_file import read_result
    from dynid.monitor.live_lines import read_samples
    from dynid.monitor.live_watch import LiveWatch
    from dynid.runs.watch_run import live_calibration

    fit = read_result(result).identification()
    guard = LiveWatch(fit, live_calibration(Path(result), fit, clean, channel_map), per_hour=per_hour)
    count = 0
    for sample in read_samples(sys.stdin, fit.robot.dof):
        for alarm in guard.step(*sample):
            count += 1
            if as_json:
                print_json({"time_s": alarm.time_s, "joint": alarm.joint, "kind": alarm.kind, "torque": alarm.torque})
            else:
                click.echo(f"{alarm.time_s:.3f} s: {alarm.kind} at {alarm.joint}, {alarm.torque:.3g} N m or N")
    return 1 if count else 0


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
