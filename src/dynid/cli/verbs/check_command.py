"""dynid check: list the faults of a robot model or of a log."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dynid import errors
from dynid.cli.options import (
    DELAY,
    EXISTING,
    GRAVITY,
    HOLD,
    JSON,
    MAP_OF_LOG,
    ROWS,
    TIME,
    command,
    held_joints,
    is_robot,
    read_robot,
    refuse_robot,
)
from dynid.cli.screen import echo, print_json, progress, wrap_lines

if TYPE_CHECKING:
    from dynid.findings import Finding, QualityReport
    from dynid.robot.model import Robot


@command(
    "dynid check arm.urdf",
    "dynid check run1.csv --map map.toml --robot arm.urdf",
    "dynid check run1.csv --map map.toml --robot arm.urdf --time 2:30 --hold 'finger*'",
)
@click.argument("what", metavar="ROBOT|LOG")
@HOLD
@click.option("--robot", "recorded", metavar="ROBOT",
              help="Robot that was recorded: a file or a built-in robot; only for a log.")  # fmt: skip
@MAP_OF_LOG
@DELAY
@GRAVITY
@ROWS
@TIME
@JSON
def check(
    what: str,
    hold: tuple[str, ...],
    recorded: str | None,
    channel_map: str | None,
    delay: float | Literal["auto"],
    as_json: bool,
    **part: str | None,
) -> None:
    """List the faults of a robot model or of a log.

    Every finding comes with a remedy. The exit code is 1 if there is an error, and 0 if there are at most warnings.
    """
    from dynid.links.log_part import check_part, read_gravity
    from dynid.robot.check import check_robot
    from dynid.robot.term_names import add_terms

    notes: tuple[str, ...] = ()
    check_part(part["rows"], part["time"], None)
    robot = read_robot(what, held_joints(hold), tell=False, judge=False) if is_robot(what) else None
    if robot is None and recorded is not None:
        robot = add_terms(read_robot(recorded, held_joints(hold)))
    if robot is not None and part["gravity"] is not None:
        robot = robot.with_gravity(read_gravity(part["gravity"]))
    if is_robot(what):
        _refuse_log_options(recorded, channel_map, delay, part)
    if is_robot(what) and robot is not None:
        result: Any = check_robot(robot)
    else:
        result, notes = _check_log(what, robot, channel_map, delay, part)
    if as_json:
        print_json([finding.to_dict() for finding in result.findings])
    else:
        shown = replace(result, findings=tuple(map(_shorten, result.findings)))
        echo(wrap_lines("\n".join([str(shown), *(f"  read: {note}" for note in notes)]), tables=False))
    sys.exit(0 if result.ok else 1)


def _shorten(finding: Finding) -> Finding:
    """A finding for the screen: counts in place of a long list."""
    return replace(finding, message=f"{finding.brief}; --json lists them", evidence={}) if finding.brief else finding


def _refuse_log_options(
    recorded: str | None, channel_map: str | None, delay: float | Literal["auto"], part: Mapping[str, str | None]
) -> None:
    """Refuse options that mean nothing for a robot."""
    given = {"--robot": recorded, "--map": channel_map, "--delay": delay or None, "--rows": part["rows"]}
    unused = [name for name, value in {**given, "--time": part["time"]}.items() if value is not None]
    if unused:
        raise errors.ArgumentError(
            f"{unused[0]} belongs to the check of a log, and this is a robot",
            remedy="Leave it out, or give a log: dynid check run1.csv --map map.toml --robot arm.urdf.",
        )


def _check_log(
    what: str,
    robot: Robot | None,
    channel_map: str | None,
    delay: float | Literal["auto"],
    part: Mapping[str, str | None],
) -> tuple[QualityReport, tuple[str, ...]]:
    """Check a log; return the findings and the notes of its reader."""
    from dynid.diagnosis.log_check import check_and_process
    from dynid.diagnosis.torque_delay import resolve_delay
    from dynid.links.log_part import cut_recording
    from dynid.logs.reading import read_recording
    from dynid.processing.process import Processing

    path = EXISTING.convert(what, None, None)
    refuse_robot(what)
    with progress(Path(path).name) as advance:
        recording = read_recording(
            path, robot, channel_map=channel_map, progress=lambda share, note: advance(0.5 * share, "reading")
        )
        recording = cut_recording(recording, rows=part["rows"], time=part["time"])
        options, delay_note = resolve_delay(recording, Processing(effort_delay_s=delay), robot)
        result, _ = check_and_process(
            recording, options, robot, progress=lambda share, note: advance(0.5 + 0.5 * share, "checking")
        )
    return result, (*recording.notes, *filter(None, [delay_note]))
