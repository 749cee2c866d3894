"""dynid check: list the faults of a robot model or of a log."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import click

from dynid.cli.options import DELAY, EXISTING, HOLD, JSON, MAP_OF_LOG, command, held_joints, is_robot, read_robot
from dynid.cli.screen import print_json, progress

__all__ = ["check"]


@command("dynid check arm.urdf", "dynid check run1.csv --map map.toml --robot arm.urdf")
@click.argument("what", metavar="ROBOT|LOG")
@HOLD
@click.option("--robot", "recorded", metavar="ROBOT",
              help="Robot that was recorded: a file or a built-in robot; only for a log.")  # fmt: skip
@MAP_OF_LOG
@DELAY
@JSON
def check(
    what: str,
    hold: tuple[str, ...],
    recorded: str | None,
    channel_map: str | None,
    delay: float | Literal["auto"],
    as_json: bool,
) -> None:
    """List the faults of a robot model or of a log.

    Every finding comes with a remedy. The exit code is 1 if there is an error, and 0 if there are at most warnings.
    """
    from dynid.robot.check import check_robot

    notes: tuple[str, ...] = ()
    if is_robot(what):
        result: Any = check_robot(read_robot(what, held_joints(hold), tell=False))
    else:
        result, notes = _check_log(what, recorded, held_joints(hold), channel_map, delay)
    if as_json:
        print_json([finding.to_dict() for finding in result.findings])
    else:
        click.echo(str(result))
        for note in notes:
            click.echo(f"  read: {note}")
    sys.exit(0 if result.ok else 1)


def _check_log(
    what: str, recorded: str | None, held: dict[str, float], channel_map: str | None, delay: float | Literal["auto"]
) -> tuple[Any, tuple[str, ...]]:
    """Check a log; return the findings and the notes of its reader."""
    from dynid.gate.model_delay import resolve_delay
    from dynid.gate.quality import check_and_process
    from dynid.logs.reading import read_recording
    from dynid.processing.process import Processing
    from dynid.robot.term_names import add_terms

    path = EXISTING.convert(what, None, None)
    robot = None if recorded is None else add_terms(read_robot(recorded, held))
    with progress(Path(path).name) as advance:
        recording = read_recording(
            path, robot, channel_map=channel_map, progress=lambda share, note: advance(0.5 * share, "reading")
        )
        options = resolve_delay(recording, Processing(effort_delay_s=delay), robot)[0]
        result, _ = check_and_process(
            recording, options, robot, progress=lambda share, note: advance(0.5 + 0.5 * share, "checking")
        )
    return result, recording.notes
