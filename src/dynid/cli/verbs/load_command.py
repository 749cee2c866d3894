"""dynid load: identify the load of a robot."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from dynid.cli.execute import execute, read_recipe
from dynid.cli.options import (
    EXISTING,
    GRAVITY,
    JSON,
    MAP,
    TIME,
    command,
    logs_argument,
    output_options,
    recipe_options,
    robot_argument,
)
from dynid.cli.screen import Screen, echo, print_json, show_finding

if TYPE_CHECKING:
    from dynid.robot.model import Robot
    from dynid.runs.load_run import LoadRun


@command(
    "dynid load arm.urdf held.csv --map map.toml --sensor tool0",
    "dynid load arm.urdf held.csv --unloaded empty.csv --map map.toml --out load",
    "dynid load arm.urdf held.csv --map map.toml --arm 0.1,0.01",
    "dynid load arm.urdf held.csv --map map.toml --sensor tool0 --set find=drift",
)
@robot_argument
@logs_argument
@MAP
@click.option("--sensor", metavar="LINK",
              help="Link that carries a force and torque sensor; without it, joint torques are used.")  # fmt: skip
@click.option("--unloaded", multiple=True, type=EXISTING, metavar="LOG",
              help="Log of the robot without the load; only for joint torques; repeatable.")  # fmt: skip
@click.option("--arm", metavar="known|MASS,COM",
              help="How well the arm's model is known, if no --unloaded log is given: known (default), or the "
              "standard deviations of each link's mass (relative) and centre of mass [m].")  # fmt: skip
@click.option("--tare", type=EXISTING, metavar="FILE",
              help="The load.json of the gripper alone; it is subtracted, with its uncertainty.")  # fmt: skip
@TIME
@GRAVITY
@recipe_options("link=tool, sign=-1, delay_s=auto or gate=false")
@output_options("the load, the URDF of the robot with the load, and a report")
def load(
    robot: Robot,
    logs: tuple[str, ...],
    channel_map: str | None,
    sensor: str | None,
    unloaded: tuple[str, ...],
    arm: str | None,
    tare: str | None,
    time: str | None,
    gravity: str | None,
    **_: Any,  # read from click's context
) -> None:
    """Identify the load of a robot.

    The data come from a wrist sensor or from joint torques. The command prints the values to enter in the robot
    controller's payload dialog. The exit code is 1 if the result is doubtful.
    """
    from dynid.runs.load_run import IdentifyLoad, LoadRecipe

    recipe = read_recipe(LoadRecipe, sensor=sensor, arm=arm, tare=tare, time=time, gravity=gravity)
    execute(IdentifyLoad(robot, logs, recipe, unloaded, channel_map), "identifying the load", show_load)


def show_load(run: LoadRun) -> Screen:
    """The verdict, the load, and the values for payload dialogs."""
    study, out = run.study, click.get_current_context().params["out"]
    findings = [*study.problems, *study.advice, *study.notes]
    return Screen(
        verdict=f"{study.verdict_in_words}\n\n{study.load.table()}",
        good=study.verdict != "doubtful",
        findings=findings,
        files=run.dialogs[:3],
        commands=[f"dynid export {out} --to urscript --out payload"] if out else [],
        details=run.text,
    )


@command(
    "dynid drives arm.urdf held.csv --unloaded empty.csv --map map.toml --mass 2.805",
    "dynid drives arm.urdf held.csv --unloaded empty.csv --map map.toml --mass 2.805 --com 0,0,0.1 --json",
)
@robot_argument
@logs_argument
@MAP
@click.option("--unloaded", multiple=True, required=True, type=EXISTING, metavar="LOG",
              help="Log of the robot without the load; repeatable.")  # fmt: skip
@click.option("--mass", "mass_kg", required=True, type=float, metavar="KG", help="Mass of the load, weighed.")
@click.option("--com", metavar="X,Y,Z",
              help="Its centre of mass in the frame of the link that carries it [m]; estimated otherwise.")  # fmt: skip
@click.option("--link", metavar="LINK", help="Link that carries the load; by default the last one.")
@JSON
def drives(
    robot: Robot,
    logs: tuple[str, ...],
    channel_map: str | None,
    unloaded: tuple[str, ...],
    mass_kg: float,
    com: str | None,
    link: str | None,
    as_json: bool,
) -> None:
    """Calibrate the gains of a robot's drives with a weighed load.

    The logs hold motor currents. Gains that the channel map states with an uncertainty count together with the logs.
    The command prints the gains with their standard deviations and the line for the channel map.
    """
    from dynid.errors import ArgumentError
    from dynid.runs.drives_run import calibrate_drives

    point = None
    if com is not None:
        try:
            x, y, z = (float(part) for part in com.split(","))
        except ValueError:
            raise ArgumentError(f"--com: '{com}' is not X,Y,Z", remedy="Write three numbers [m]: 0,0,0.1.") from None
        point = (x, y, z)
    found = calibrate_drives(robot, logs, unloaded, mass_kg=mass_kg, com=point, link=link, channel_map=channel_map)
    for finding in found.findings:
        show_finding(finding)
    if as_json:
        known = [math.isfinite(value) for value in found.gain.tolist()]
        gains = [value if seen else None for value, seen in zip(found.gain.tolist(), known, strict=True)]
        stderr = [value if seen else None for value, seen in zip(found.stderr.tolist(), known, strict=True)]
        print_json({"joints": list(found.joint_names), "gain": gains, "stderr": stderr, "map": found.map_line,
                    "findings": [finding.to_dict() for finding in found.findings]})  # fmt: skip
        return
    echo(str(found))
    section = "[effort]" if found.unit == "1" else "[current]"
    echo(f"\nFor {section} in the channel map:\n{found.map_line}")
