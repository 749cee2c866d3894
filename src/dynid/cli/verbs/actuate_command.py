"""dynid actuate: identify servos from commands and encoders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dynid.cli.execute import execute
from dynid.cli.options import EXISTING, LogPath, MapPath, command, logs_argument, output_options, robot_argument
from dynid.cli.screen import Screen

if TYPE_CHECKING:
    from dynid.robot.model import Robot
    from dynid.runs.actuator_run import ActuatorRun


class LogOrShare(LogPath):
    """The path of a log, or a share of all logs such as ``30%``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if str(value).endswith("%") else super().convert(value, param, ctx)


@command(
    "dynid actuate pendulum.urdf kp100.json kp200.json --law servo.toml --map xl330 --held-out kp800.json",
    "dynid actuate go2.xml log.npz --hold base_joint1 --law go2_law.toml --map map.toml --held-out 30% --out legs",
)
@robot_argument
@logs_argument
@click.option("--law", required=True, type=EXISTING, metavar="FILE",
              help="TOML file with the law of the drives and the parameters to find; docs/servos.md shows "
              "examples.")  # fmt: skip
@click.option("--map", "channel_map", type=MapPath(), metavar="FILE|NAME",
              help="Channel map: says which columns of the logs are time, positions, commands, gains. A TOML file, "
              "which dynid inspect LOG --robot ROBOT proposes, or a built-in one: xl330, emps, "
              "lerobot_rad, lerobot_deg.")  # fmt: skip
@click.option("--held-out", multiple=True, type=LogOrShare(), metavar="LOG|SHARE",
              help="Log that the result is tried on, repeatable; or a share such as 30%: the end of "
              "every log.")  # fmt: skip
@output_options("the servos, files for simulators, and a report")
def actuate(
    robot: Robot,
    logs: tuple[str, ...],
    law: str,
    channel_map: str | None,
    held_out: tuple[str, ...],
    **_: Any,  # read from click's context
) -> None:
    """Identify servos from commands and encoders, without torque.

    The logs say where the joints were sent and where they went. The command prints armature, friction, gains, delay and
    the like with their standard deviations, and what the motions do not tell. Terms of the drives are taken up where
    they predict parts of the logs better (candidates in the law's file names others). With alike = true the same joint
    of several legs has one value of each parameter. dynid excite --commands designs motions for such logs. The exit
    code is 1 if the model is of no use: motions that it was not fitted to are off by more than half of what the
    commands are off by.
    """
    from dynid.runs.actuator_run import IdentifyServos

    execute(IdentifyServos(robot, logs, law, held_out, channel_map), "identifying servos", show_servos)


def show_servos(run: ActuatorRun) -> Screen:
    """The verdict and the parameters of the drives."""
    from dynid.report.sections.servo_sections import open_sentences, servo_table
    from dynid.tables import Table

    rows = servo_table(run.found)
    return Screen(
        verdict="\n".join([run.verdict, *(f"Open: {line}" for line in open_sentences(run.found.open_directions)[:3])]),
        good=run.is_usable,
        tables=[Table.of(rows.header, rows.rows)],
        findings=run.findings,
        details=run.text,
    )
