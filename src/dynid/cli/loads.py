"""The verb about loads: load."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
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
    Delay,
    logs_argument,
    print_json,
    robot_argument,
    verb,
    with_usual_terms,
)
from dynid.cli.logs import CUTOFF, DEAD_BAND, refuse_copies
from dynid.cli.reading import LogSource, Seconds, read_experiments
from dynid.cli.run_folder import RunFolder, open_run, sha256

if TYPE_CHECKING:
    from dynid.load.load_study import LoadStudy
    from dynid.load.payload import ArmUncertainty
    from dynid.load.sensor_checks import Proposal
    from dynid.load.wrench_equations import WrenchForm
    from dynid.load.wrist import Sensing
    from dynid.processing.experiment import Experiment
    from dynid.robot.model import Robot

    Arm = ArmUncertainty | Literal["known", "unknown"]

__all__ = ["load"]


def _stated(arm: str) -> Arm:
    """What is known of the arm: a word as it is, two numbers as an `ArmUncertainty`."""
    from dynid.load.payload import ArmUncertainty

    if arm == "known":
        return "known"
    if arm == "unknown":
        return "unknown"
    try:
        mass, com = (float(part) for part in arm.split(","))
    except ValueError:
        raise errors.ArgumentError(
            f"--arm {arm} is neither known, unknown nor MASS,COM",
            remedy="Two standard deviations are written like 0.1,0.01: ten percent and ten millimetres.",
        ) from None
    return ArmUncertainty(mass=mass, com=com)


@verb(
    "dynid load arm.urdf held.csv --map map.toml --sensor tool0",
    "dynid load arm.urdf held.csv --unloaded empty.csv --map map.toml --out load",
    "dynid load arm.urdf held.csv --map map.toml --arm 0.1,0.01",
)
@robot_argument
@logs_argument
@MAP
@PROFILE
@click.option("--sensor", help="Link that carries a force/torque sensor; without it joint torques are used.")
@click.option("--link", help="Link that carries the load, for joint torques; the last one by default.")
@click.option("--unloaded", multiple=True, type=EXISTING, help="Log without the load; repeatable.")
@click.option("--arm", default="known", show_default=True, metavar="known|unknown|MASS,COM",
              help="How well the arm's model is known, without --unloaded: wholly, not at all, or by standard "
                   "deviations of each link's mass (relative) and centre of mass [m].")  # fmt: skip
@click.option("--find-orientation", is_flag=True, help="Estimate how the sensor is turned against its link.")
@click.option("--sign", type=click.Choice(["1", "-1"]), default="1", show_default=True,
              help="-1 where the sensor reports the wrench on the robot.")  # fmt: skip
@click.option("--find-gravity", is_flag=True, help="Estimate which way gravity points.")
@click.option("--drift", is_flag=True, help="Estimate a linear drift of the sensor's bias.")
@click.option("--axes", type=click.Choice(["sensor", "base"]), default="sensor", show_default=True,
              help="In whose axes the wrench was recorded.")  # fmt: skip
@click.option("--form", type=click.Choice(["differential", "integral", "static"]),
              help="With accelerations, by intervals without them, or gravity only; else the data decide.")  # fmt: skip
@click.option("--delay", type=Delay(), default=0.0, show_default=True, metavar="SECONDS|auto",
              help="How late wrenches (or, without --sensor, torques) are stamped; auto estimates it.")  # fmt: skip
@CUTOFF
@DEAD_BAND
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
    arm: str,
    find_orientation: bool,
    sign: str,
    find_gravity: bool,
    drift: bool,
    axes: Literal["sensor", "base"],
    form: WrenchForm | None,
    delay: Seconds,
    cutoff: float | None,
    dead_band: float,
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
    from dynid.load.load_files import read_library, read_load
    from dynid.load.load_study import study_load, study_payload
    from dynid.load.wrist import Sensing

    sensing = Sensing(
        sign=int(sign), axes=axes, drift=drift, find_orientation=find_orientation, find_gravity=find_gravity
    )
    _refuse_contradictions(sensor, link, unloaded, arm, sensing != Sensing() or form is not None)
    _refuse_same_logs(logs, unloaded, tare)
    knowledge = _stated(arm)
    gripper = None if tare is None else read_load(tare)
    objects = () if library is None else read_library(library)
    run = None if out is None else open_run(out, ["load.json", "load.txt"], force=force)
    model = with_usual_terms(robot)
    source = LogSource(model, channel_map, profile, cutoff, torques=sensor is None, dead_band=dead_band,
                       delay=delay if sensor is None else 0.0)  # fmt: skip
    everything = read_experiments((*logs, *unloaded), source, run)
    held, empty = everything[: len(logs)], everything[len(logs) :]
    if sensor is None:
        study = study_payload(model, loaded=held, unloaded=empty or None, link=link, arm=knowledge, tare=gripper,
                              library=objects)  # fmt: skip
    else:
        sensing = _delayed(sensing, robot, held, sensor, form, delay)
        study = study_load(robot, held, sensor_frame=sensor, sensing=sensing, form=form, tare=gripper, library=objects)
    text = "\n".join([study.summary(), *_to_try(study.proposals, sensing)])
    _tell(study, text, robot, {sha256(Path(log)): Path(log).name for log in logs}, held[0], run, flange, as_json)


def _tell(
    study: LoadStudy,
    text: str,
    robot: Robot,
    logs: dict[str, str],
    held: Experiment,
    run: RunFolder | None,
    flange: str | None,
    as_json: bool,
) -> None:
    """Print, write and exit."""
    from dynid.export.payload_dialogs import payload_dialogs
    from dynid.report.load_sections import flange_pose, frame_hint

    if study.verdict != "doubtful":
        pose = None if flange is None else flange_pose(robot, study.load.frame, flange)
        dialogs = payload_dialogs(study.load, T_flange_frame=pose)
        text += "\n\n" + "\n".join([frame_hint(study, flange), *(str(dialog) for dialog in dialogs)])
    code = 1 if study.verdict == "doubtful" else 0
    content = study.to_dict() | {"logs": logs}
    if run is not None:
        _write(run, study, content, held, text, flange)
        run.finish("load.json", code)
    if as_json:
        print_json(content)
    else:
        click.echo(text)
        if run is not None:
            click.echo(f"written: {run.path}, with {run.path / 'report.html'} to open in a browser")
    sys.exit(code)


def _to_try(proposals: Sequence[Proposal], given: Sensing) -> list[str]:
    """The options that the proposals come to, where they differ from those given."""
    better = proposals[-1].sensing if proposals else given
    options = {
        "--find-orientation": better.find_orientation and not given.find_orientation,
        "--find-gravity": better.find_gravity and not given.find_gravity,
        "--drift": better.drift and not given.drift,
        f"--axes {better.axes}": better.axes != given.axes,
        f"--sign {better.sign}": better.sign != given.sign,
        f"--delay {round(better.delay_s, 5):g}": better.delay_s != given.delay_s,
        'moments in "N mm" under [wrench] in the map': better.moment_unit != given.moment_unit,
    }
    chosen = [option for option, is_needed in options.items() if is_needed]
    return [f"Try: {', '.join(chosen)}."] if chosen else []


def _delayed(
    sensing: Sensing, robot: Robot, held: Sequence[Experiment], sensor: str, form: WrenchForm | None, delay: Seconds
) -> Sensing:
    """The settings with the delay of the wrench, given or found."""
    from dynid.load.sensor_checks import find_wrench_delay

    if delay != "auto":
        return replace(sensing, delay_s=delay)
    found = find_wrench_delay(robot, held, sensor_frame=sensor, sensing=sensing, form=form)
    click.echo(f"wrenches are {1e3 * found.seconds:.3g} ms late (std {1e3 * found.stderr_s:.2g} ms)", err=True)
    return replace(sensing, delay_s=found.seconds)


def _refuse_contradictions(
    sensor: str | None, link: str | None, unloaded: tuple[str, ...], arm: str, about_sensor: bool
) -> None:
    """No option that another option ignores."""
    if sensor is None and about_sensor:
        raise errors.ArgumentError(
            "--find-orientation, --find-gravity, --drift, --axes, --form and --sign are about a wrist sensor",
            remedy="Name its link with --sensor.",
        )
    if sensor is not None and link is not None:
        raise errors.ArgumentError("--link is for joint torques; a sensor's link is --sensor", remedy="Leave one out.")
    if sensor is not None and (unloaded or arm != "known"):
        raise errors.ArgumentError(
            f"{'--unloaded' if unloaded else '--arm'} is for loads from joint torques; a sensor feels the load alone",
            remedy="Leave it out, or leave --sensor out.",
        )
    if unloaded and arm != "known":
        raise errors.ArgumentError(
            "with --unloaded the arm's model does not matter", remedy="Leave --arm or --unloaded out."
        )


def _refuse_same_logs(logs: Sequence[str], unloaded: Sequence[str], tare: str | None) -> None:
    """A log with the load is not one without it, and a load is not its own tare."""
    from dynid.load.load_files import read_load_logs

    refuse_copies(logs)
    refuse_copies(unloaded)
    held = {sha256(Path(log)): log for log in logs}
    for log in unloaded:
        if (twin := held.get(sha256(Path(log)))) is not None:
            raise errors.ArgumentError(
                f"--unloaded {log} has the same content as {twin}, which holds the load",
                remedy="Give a run of the robot without the load.",
            )
    for digest, name in ({} if tare is None else read_load_logs(tare)).items():
        if digest in held:
            raise errors.ArgumentError(
                f"--tare {tare} was identified from {name}, which is {held[digest]}: nothing would be left of the load",
                remedy="Give the load.json of the gripper alone.",
            )


def _write(
    run: RunFolder, study: LoadStudy, content: dict[str, Any], held: Experiment, text: str, flange: str | None
) -> None:
    from dynid.report.report import load_page
    from dynid.robot.formats.urdf import write_urdf

    run.write("load.txt", text + "\n")
    run.write("load.json", json.dumps(content, indent=1) + "\n")
    if study.load.mass > 0.0:
        write_urdf(study.robot_with_load, run.path / f"{study.robot.name}_with_load.urdf", force=run.overwrite)
    run.write_page(load_page(study, held, [run.settings()], flange))
