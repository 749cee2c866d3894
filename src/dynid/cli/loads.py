"""The verb about loads: load."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid.cli.common import FORCE, JSON, MAP, PROFILE, make_folder, print_json, robot_argument, with_usual_joint_models

if TYPE_CHECKING:
    from dynid.robot.model import Robot

__all__ = ["load"]


@click.command()
@robot_argument
@click.argument("logs", nargs=-1, required=True, type=click.Path(exists=True))
@MAP
@PROFILE
@click.option("--sensor", help="Link that carries a force/torque sensor; without it joint torques are used.")
@click.option("--unloaded", multiple=True, type=click.Path(exists=True), help="Log without the load; repeatable.")
@click.option("--find-orientation", is_flag=True, help="Estimate how the sensor is turned against its link.")
@click.option("--sign", type=click.Choice(["1", "-1"]), default="1", show_default=True,
              help="-1 where the sensor reports the wrench on the robot.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder for load.txt and the URDF with the load.")
@FORCE
@JSON
def load(
    robot: Robot,
    logs: tuple[str, ...],
    channel_map: str | None,
    profile: str | None,
    sensor: str | None,
    unloaded: tuple[str, ...],
    find_orientation: bool,
    sign: str,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Identify what the robot holds, by a wrist sensor or by joint torques; print payload dialogs to type in.

    Exit code 1 when the result is doubtful.

    Examples: dynid load arm.urdf held.csv --map map.toml --sensor tool0;
    dynid load arm.urdf held.csv --unloaded empty.csv --map map.toml
    """
    from dynid.data.processing import process
    from dynid.data.reading import read_recording
    from dynid.export.payload_dialogs import payload_dialogs
    from dynid.identification.load_study import study_load, study_payload
    from dynid.identification.wrist import Sensing

    model = with_usual_joint_models(robot)

    def experiment(path: str) -> Any:
        return process(read_recording(path, model, channel_map=channel_map, profile=profile))

    runs = [experiment(path) for path in logs]
    if sensor is None:
        study = study_payload(model, loaded=runs, unloaded=[experiment(path) for path in unloaded] or None)
    else:
        sensing = Sensing(sign=int(sign), find_orientation=find_orientation)
        study = study_load(robot, runs, sensor_frame=sensor, sensing=sensing)
    text = study.summary()
    if study.verdict != "doubtful":
        text += "\n\n" + "\n".join(str(dialog) for dialog in payload_dialogs(study.load))
    if out is not None:
        _write(study, text, out, force)
    if as_json:
        print_json(study.to_dict())
    else:
        click.echo(text)
    sys.exit(1 if study.verdict == "doubtful" else 0)


def _write(study: Any, text: str, out: Path, force: bool) -> None:
    from dynid.files import write_atomically
    from dynid.robot.urdf_writer import write_urdf

    make_folder(out)
    write_atomically(out / "load.txt", text + "\n", force=force)
    write_urdf(study.robot_with_load, out / f"{study.robot.name}_with_load.urdf", force=force)
