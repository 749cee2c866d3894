"""dynid actuate: identify servos from commands and encoders."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dynid.cli.options import (
    EXISTING,
    FORCE,
    JSON,
    MAP,
    POSITIVE,
    LogPath,
    command,
    logs_argument,
    robot_argument,
    run_request,
)
from dynid.cli.screen import echo, print_json, print_written

if TYPE_CHECKING:
    from dynid.robot.model import Robot

__all__ = ["actuate"]


class LogOrShare(LogPath):
    """The path of a log, or a share of all logs such as ``30%``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if str(value).endswith("%") else super().convert(value, param, ctx)


@command(
    "dynid actuate pendulum.urdf kp100.json kp200.json --law servo.toml --map xl330.toml --held-out kp800.json",
    "dynid actuate pendulum.urdf --law servo.toml --design 20 --out commands",
    "dynid actuate go2.xml log.pt --hold base_joint1 --law go2_law.toml --map go2.toml --held-out 30% --out legs",
)
@robot_argument
@partial(logs_argument, required=False)
@click.option("--law", required=True, type=EXISTING, metavar="FILE",
              help="TOML file with the law of the drives and the parameters to find.")  # fmt: skip
@MAP
@click.option("--held-out", multiple=True, type=LogOrShare(), metavar="LOG|SHARE",
              help="Log that the result is tried on, repeatable; or a share such as 30%: the end of "
              "every log.")  # fmt: skip
@click.option("--correlation", default="0", metavar="NUMBER|estimated",
              help="Correlation of the position errors from sample to sample that is filtered out.")  # fmt: skip
@click.option("--starts", default=1, type=click.IntRange(1, 100), help="Number of first guesses; 1 by default.")
@click.option("--design", "design_s", type=POSITIVE, metavar="SECONDS",
              help="Instead of reading logs, write commands of this length that reveal most.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path),
              help="Folder for the servos, files for simulators, and a report.")  # fmt: skip
@FORCE
@JSON
def actuate(
    robot: Robot,
    logs: tuple[str, ...],
    law: str,
    channel_map: str | None,
    held_out: tuple[str, ...],
    correlation: str,
    starts: int,
    design_s: float | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Identify servos from commands and encoders, without torque.

    The logs say where the joints were sent and where they went. The command prints armature, friction, gains, delay and
    the like with their standard deviations, and what the motions do not tell. With alike = true in the law's file,
    tests decide which parameters the joints of several legs share.
    """
    from dynid.errors import ArgumentError
    from dynid.runs.actuator_run import run_actuators, run_command_design

    request = run_request(out, force, None)
    if (design_s is None) == (not logs):
        raise ArgumentError("either logs or --design is needed", remedy="Give logs to explain, or --design SECONDS.")
    if design_s is not None:
        if request is None:
            raise ArgumentError("--design writes commands and needs --out", remedy="Give a folder: --out commands.")
        echo(run_command_design(robot, law, design_s, out=request))
        echo(f"written: {request.path / 'commands.csv'}")
        return

    run = run_actuators(
        robot, logs, law, held_out=held_out, channel_map=channel_map, correlation=_correlation(correlation),
        starts=starts, out=request,
    )  # fmt: skip
    if as_json:
        print_json(run.content)
        return
    echo(run.text)
    if out is not None:
        print_written(out)


def _correlation(word: str) -> float | Literal["estimated"]:
    from dynid.errors import ArgumentError

    if word == "estimated":
        return "estimated"
    try:
        value = float(word)
    except ValueError:
        value = float("nan")
    if not 0.0 <= value < 1.0:
        raise ArgumentError(f"--correlation: '{word}' is no correlation", remedy="Write 0.95, or estimated.")
    return value
