"""The verb about loads: load."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dynid import errors
from dynid.cli.common import (
    EXISTING,
    FORCE,
    JSON,
    MAP,
    PROFILE,
    logs_argument,
    print_json,
    robot_argument,
    verb,
    with_usual_joint_models,
)
from dynid.cli.reading import LogSource, read_experiments
from dynid.cli.run_folder import RunFolder, open_run

if TYPE_CHECKING:
    from dynid.robot.model import Robot

__all__ = ["load"]


@verb(
    "dynid load arm.urdf held.csv --map map.toml --sensor tool0",
    "dynid load arm.urdf held.csv --unloaded empty.csv --map map.toml --out load",
)
@robot_argument
@logs_argument
@MAP
@PROFILE
@click.option("--sensor", help="Link that carries a force/torque sensor; without it joint torques are used.")
@click.option("--link", help="Link that carries the load, for joint torques; the last one by default.")
@click.option("--unloaded", multiple=True, type=EXISTING, help="Log without the load; repeatable.")
@click.option("--find-orientation", is_flag=True, help="Estimate how the sensor is turned against its link.")
@click.option("--sign", type=click.Choice(["1", "-1"]), default="1", show_default=True,
              help="-1 where the sensor reports the wrench on the robot.")  # fmt: skip
@click.option("--find-gravity", is_flag=True, help="Estimate which way gravity points.")
@click.option("--drift", is_flag=True, help="Estimate a linear drift of the sensor's bias.")
@click.option("--axes", type=click.Choice(["sensor", "base"]), default="sensor", show_default=True,
              help="In whose axes the wrench was recorded.")  # fmt: skip
@click.option("--form", type=click.Choice(["differential", "integral", "static"]),
              help="With accelerations, by intervals without them, or gravity only; else the data decide.")  # fmt: skip
@click.option("--tare", type=EXISTING, help="load.json of the gripper alone, subtracted with its uncertainty.")
@click.option("--library", type=EXISTING, help="Known objects (TOML) to recognise the load among.")
@click.option("--flange", help="Link whose frame the controllers mean; the frame of the load by default.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the load, the URDF with it and a report.")
@FORCE
@JSON
def load(
    robot: Robot,
    logs: tuple[str, ...],
    channel_map: str | None,
    profile: str | None,
    sensor: str | None,
    link: str | None,
    unloaded: tuple[str, ...],
    find_orientation: bool,
    sign: str,
    find_gravity: bool,
    drift: bool,
    axes: Literal["sensor", "base"],
    form: Literal["differential", "integral", "static"] | None,
    tare: str | None,
    library: str | None,
    flange: str | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Identify what the robot holds, by a wrist sensor or by joint torques; print payload dialogs to type in.

    Exit code 1 when the result is doubtful.
    """
    from dynid.export.payload_dialogs import payload_dialogs
    from dynid.identification.load_files import read_library, read_load
    from dynid.identification.load_study import study_load, study_payload
    from dynid.identification.wrist import Sensing
    from dynid.report.load import flange_pose, frame_hint

    sensing = Sensing(
        sign=int(sign), axes=axes, drift=drift, find_orientation=find_orientation, find_gravity=find_gravity
    )
    if sensor is not None and link is not None:
        raise errors.ArgumentError("--link is for joint torques; a sensor's link is --sensor", remedy="Leave one out.")
    _refuse_contradictions(sensor, unloaded, sensing != Sensing() or form is not None)
    gripper = None if tare is None else read_load(tare)
    objects = () if library is None else read_library(library)
    run = None if out is None else open_run(out, ["load.json", "load.txt"], force=force)
    model = with_usual_joint_models(robot)
    source = LogSource(model, channel_map, profile, torques=sensor is None)
    everything = read_experiments((*logs, *unloaded), source, run)
    held, empty = everything[: len(logs)], everything[len(logs) :]
    if sensor is None:
        study = study_payload(model, loaded=held, unloaded=empty or None, link=link, tare=gripper, library=objects)
    else:
        study = study_load(robot, held, sensor_frame=sensor, sensing=sensing, form=form, tare=gripper, library=objects)
    text = study.summary()
    if study.verdict != "doubtful":
        pose = None if flange is None else flange_pose(robot, study.load.frame, flange)
        dialogs = payload_dialogs(study.load, T_flange_frame=pose)
        text += "\n\n" + "\n".join([frame_hint(study, flange), *(str(dialog) for dialog in dialogs)])
    code = 1 if study.verdict == "doubtful" else 0
    if run is not None:
        _write(run, study, held[0], text, flange)
        run.finish("load.json", code)
    if as_json:
        print_json(study.to_dict())
    else:
        click.echo(text)
        if out is not None:
            click.echo(f"written: {out}, with {out / 'report.html'} to open in a browser")
    sys.exit(code)


def _refuse_contradictions(sensor: str | None, unloaded: tuple[str, ...], about_sensor: bool) -> None:
    """No option that another option ignores."""
    if sensor is None and about_sensor:
        raise errors.ArgumentError(
            "--find-orientation, --find-gravity, --drift, --axes, --form and --sign are about a wrist sensor",
            remedy="Name its link with --sensor.",
        )
    if sensor is not None and unloaded:
        raise errors.ArgumentError(
            "--unloaded is for loads from joint torques; a sensor feels the load alone",
            remedy="Leave --unloaded out, or leave --sensor out.",
        )


def _write(run: RunFolder, study: Any, held: Any, text: str, flange: str | None) -> None:
    from dynid.report.report import load_page
    from dynid.robot.urdf_writer import write_urdf

    run.write("load.txt", text + "\n")
    run.write("load.json", json.dumps(study.to_dict(), indent=1) + "\n")
    write_urdf(study.robot_with_load, run.path / f"{study.robot.name}_with_load.urdf", force=run.overwrite)
    run.write_page(load_page(study, held, [run.settings()], flange))
