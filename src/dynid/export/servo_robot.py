"""What files of identified servos cannot hold, as a text for people; wider joint limits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ExportError
from dynid.export.mjcf_actuators import (
    held_joints,
    put_actuators,
    servo_attributes,
)
from dynid.files import write_atomically
from dynid.robot.formats.mjcf.write import mjcf_text
from dynid.robot.formats.urdf import describe_lost_gravity, urdf_text
from dynid.robot.formats.xml import TextEdits, parse_document
from dynid.robot.model import Robot
from dynid.servos.drive_laws import MotorLaw, PositionLaw
from dynid.servos.kinds import LINKS
from dynid.servos.servo_identification import ActuatorEstimate
from dynid.terms.base import StateTerm
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

SLACK = 0.1
"""Share of the range of a motion by which a joint limit is set beyond it. Convention: a simulated motion overshoots."""
USE = {
    "servos.xml": "MuJoCo: joints and one position actuator each",
    "servos.urdf": "URDF: damping and friction of joints",
    "isaac_actuators.json": "Isaac Lab: settings of an actuator group",
}
"""File -> what it is for."""


@dataclass(frozen=True, slots=True)
class ServoFile:
    """A file for another program, and what is to be said of it."""

    path: Path
    missing: tuple[str, ...] = ()
    """Parameters that have no place in the format, as ``kind: what to do``, and other remarks."""
    refused: str = ""
    """Why it was not written, and what to do; empty where it was."""


def doubtful_values(found: ActuatorEstimate) -> dict[str, str]:
    """Entry -> why its value is no estimate, for those that stand at a bound or are open."""
    told = {
        name: f"not reached, at least {direction.at_least:.3g}" if direction.at_least is not None else "open"
        for direction in found.open_directions
        for name in direction.names
    }
    return told | dict.fromkeys(found.at_bound, "at a bound of the search")


def widened_limits(found: ActuatorEstimate) -> dict[str, tuple[float, float]]:
    """Joint -> limits that hold its motion [rad or m], for joints that went beyond the description's.

    Readings less the zeros are positions in the description's coordinates, in which its limits stand. A joint that went
    beyond them has another zero than the estimated one, or another limit; the simulated joint would be stopped there.
    """
    wider = {}
    for joint, (low, high) in zip(found.model.robot.moving_joints, found.reach, strict=True):
        limits, slack = joint.limits, SLACK * float(high - low)
        if joint.name in found.beyond_limits:
            lower = float(low) - slack if low < limits.lower else limits.lower
            wider[joint.name] = (lower, float(high) + slack if high > limits.upper else limits.upper)
    return wider


def notes_text(files: Sequence[ServoFile], warnings: Sequence[str]) -> str:
    """The text of ``not_in_the_files.txt``.

    Args:
        files: The files, in the order of the text.
        warnings: What comes first, such as that the law does not fit.
    """
    lines = [*warnings, *([""] if warnings else [])]
    lines += ["What the files of this folder cannot hold, and what to do about it. report.md has all values."]
    for file in files:
        lines += ["", f"{file.path.name} ({USE[file.path.name]})"]
        if file.refused:
            lines.append(f"  is not written: {file.refused}")
        elif not file.missing:
            lines.append("  holds everything.")
        lines += [f"  - {text}" for text in file.missing]
    return "\n".join(lines) + "\n"


STIFF_FRICTION = "0.002 1"
"""``solreffriction`` of a written joint: time constant [s] and damping ratio of MuJoCo's soft dry friction. Experiment:
tests/export/test_servo_files.py; MuJoCo's own 0.02 s lets a joint creep within its friction."""


def servo_terms(found: ActuatorEstimate) -> Robot:
    """The robot with the links, armature, viscous and dry friction and constant torque of its servos.

    The back-EMF of a `MotorLaw` is viscous friction here: it acts outside the limit of the duty cycle.
    """
    table, law = found.table, found.model.law
    robot = _changed_links(found)
    braking = table["kt"] ** 2 / table["resistance"] if isinstance(law, MotorLaw) else np.zeros(robot.dof)
    for j, name in enumerate(robot.joint_names):
        kinds = ("armature", "viscous", "coulomb", "offset")
        values = {kind: float(table[kind][j]) if kind in table else 0.0 for kind in kinds}
        terms: list[StateTerm] = [RotorInertia(values["armature"]), Viscous(values["viscous"] + float(braking[j]))]
        terms += [Coulomb(values["coulomb"])]
        terms += [Offset(-values["offset"])] if values["offset"] else []  # a term is on the drive's side of the balance
        robot = robot.with_terms(*terms, joints=[name])
    return robot


def _changed_links(found: ActuatorEstimate) -> Robot:
    """The robot without terms, with the changes of its bodies that were found."""
    table, robot = found.table, found.model.robot.with_terms()
    theta, changes = np.array(robot.inertial_vector), {k: v for k, v in LINKS.items() if k in table}
    for kind, place in changes.items():
        theta[place::10] += table[kind]
    return robot.with_parameters(theta) if changes else robot


def drive_gains(found: ActuatorEstimate) -> tuple[Floats, Floats]:
    """(n,) torque per position error and per velocity error, with all factors.

    A `MotorLaw` that is not saturated is such a law too: ``kt g kp V / R`` and ``kt^2 / R``.

    Raises:
        ExportError: The law is another one, or motions state the gains and the law does not.
    """
    law, table, n = found.model.law, found.table, found.model.dof
    ones = np.ones(n)
    gains, scale = law.gains(n), table.get("gain_scale", ones)
    if isinstance(law, PositionLaw):
        kp = gains["kp"] * scale * table.get("kp_scale", ones)
        kd = gains["kd"] * scale * table.get("kd_scale", ones)
    elif isinstance(law, MotorLaw):
        slope = table["kt"] / table["resistance"]
        kp = slope * law.duty_per_gain * gains["kp"] * gains["voltage"] * scale
        kd = slope * table["kt"]
    else:
        raise ExportError(f"a {type(law).__name__} is no law of gains", remedy="Write your own actuator.")
    if not (kp > 0.0).all():
        raise ExportError(
            "the law states no gains, and the logs' own may differ",
            remedy="Write kp" + (" and voltage" if isinstance(law, MotorLaw) else "") + " of the robot at work into "
            "the law's file: fits take the gains of the logs where these state them.",
        )
    return np.asarray(kp), np.asarray(kd)


def limits_of(found: ActuatorEstimate) -> Floats | None:
    """(n,) largest torques of the drives, where the model has them."""
    table, law = found.table, found.model.law
    if isinstance(law, MotorLaw):
        largest = table["kt"] / table["resistance"] * law.gains(found.model.dof)["voltage"]
        return np.asarray(np.minimum(largest, table["kt"] * table.get("current_limit", np.inf)))
    given = [table[kind] for kind in ("effort_limit", "stall_torque") if kind in table]
    return np.minimum.reduce(given) if given else None


REMEDIES = {
    "zero": "subtract it from every command, and add it to every position of the simulation",
    "delay": "send commands later by this time",
    "offset": "apply it as a constant torque of the joint",
    "breakaway": "dry friction at rest is written as small as that while sliding",
    "load_drive": "dry friction is written as without torque of the drive",
    "load_external": "dry friction is written as without load",
    "no_load_speed": "the written limit of the torque does not fall with the speed",
    "stall_torque": "limit the torque in the controller",
    "current_limit": "the back-EMF does not lower the written limit of the torque",
    "armature": "set it in the simulator, or the simulated joint is too light",
    "effort_limit": "limit the torque in the controller",
}
"""Kind that a format may lack -> what to do, or what is written in its place."""


def missing_in(found: ActuatorEstimate, held: tuple[str, ...]) -> tuple[str, ...]:
    """What a format does not hold, and what to do about each; values that are no estimates."""
    table, law, doubtful = found.table, found.model.law, doubtful_values(found)
    lost = [kind for kind in REMEDIES if kind not in held and kind in table and np.any(table[kind] != 0.0)]
    told = []
    for kind in lost:
        names = [entry.name for entry in found.model.entries if entry.kind == kind and entry.name in doubtful]
        joints = ", ".join(name.removeprefix(kind).strip() or "of all joints" for name in names)
        told.append(f"{kind}: {REMEDIES[kind]}" + (f" (no estimates: {joints})" if names else ""))
    if law.integrates and np.any(law.gains(found.model.dof)["ki"] != 0.0):
        told.append("ki: the written actuator has no integral; add it in the controller")
    absent = {kind for kind in REMEDIES if kind not in held}
    written = [entry.name for entry in found.model.entries if entry.kind not in absent and entry.name in doubtful]
    return (*told, *(f"{name}: no estimate ({doubtful[name]}); written as it stands" for name in written))


def _limit_notes(found: ActuatorEstimate) -> list[str]:
    """What is said about joint limits that were widened."""
    notes = []
    for name, (lower, upper) in widened_limits(found).items():
        place = found.model.robot.joint_names.index(name)
        low, high = found.reach[place]
        limits, unit = found.model.robot.moving_joints[place].limits, found.model.robot.position_units[place]
        notes.append(
            f"{name}: the readings less their zero go from {low:.4g} to {high:.4g} {unit}, beyond the limits of the "
            f"description ({limits.lower:.4g} to {limits.upper:.4g}); the limits in this file are {lower:.4g} to "
            f"{upper:.4g}, so that it can move as in the log"
        )
    return notes


def write_servo_mjcf(found: ActuatorEstimate, path: str | os.PathLike[str], *, force: bool = False) -> ServoFile:
    """Write the robot as MJCF with armature, damping and friction loss of its joints and one position actuator each.

    A robot that was read from MJCF keeps the rest of its file: limits of joints, geometry, other actuators. An actuator
    that drove a joint keeps its name and place, so that sensors and the order of the controls stay as they were. Joints
    that the identification held, such as the free joint of a quadruped that was hung up, move as in the robot's own.

    Args:
        found: Identified servos whose law states the gains.
        path: The file to write.
        force: Whether an existing file may be replaced.

    Returns:
        The file, and what MJCF cannot hold.

    Raises:
        ExportError: The file exists, cannot be written, or the law is none of gains.
    """
    kp, kd = drive_gains(found)
    robot = servo_terms(found)
    root = ElementTree.fromstring(mjcf_text(robot, folder=Path(path).parent))
    names = robot.joint_names
    wider = widened_limits(found)
    for joint in root.iter("joint"):
        if joint.get("name") in names:
            joint.set("solreffriction", STIFF_FRICTION)
        if joint.get("name") in wider:
            joint.set("range", _range_text(root, wider[str(joint.get("name"))], joint.get("type", "hinge")))
    notes = _limit_notes(found)
    limits = limits_of(found)
    if isinstance(found.model.law, MotorLaw):
        kd = np.zeros_like(kd)  # it is the damping of the joint
    servos = {
        name: servo_attributes(kp[j], kd[j], None if limits is None else limits[j]) for j, name in enumerate(names)
    }
    notes += put_actuators(root, servos)
    if held := held_joints(robot):
        notes.append(f"{', '.join(held)}: held in the identification, moves in this file as in the robot's own")
    ElementTree.indent(root)
    write_atomically(path, ElementTree.tostring(root, encoding="utf-8"), force=force)
    own = ("armature", "offset", "effort_limit", "stall_torque")
    return ServoFile(Path(path), (*missing_in(found, own), *notes))


def _range_text(root: ElementTree.Element, limits: tuple[float, float], kind: str) -> str:
    """Limits of a joint [rad or m] in the file's own unit; MJCF counts angles in degrees where it says nothing."""
    in_radians = any(compiler.get("angle") == "radian" for compiler in root.iter("compiler"))
    factor = 1.0 if kind == "slide" or in_radians else 180.0 / np.pi
    return " ".join(repr(float(factor * limit)) for limit in limits)


def write_servo_urdf(found: ActuatorEstimate, path: str | os.PathLike[str], *, force: bool = False) -> ServoFile:
    """Write the robot as URDF with damping and friction of its joints; URDF has no armature and no actuators.

    Args:
        found: Identified servos.
        path: The file to write.
        force: Whether an existing file may be replaced.

    Returns:
        The file, and what URDF cannot hold.

    Raises:
        ExportError: The file exists or cannot be written.
    """
    table, robot = found.table, _changed_links(found)
    for j, name in enumerate(robot.joint_names):
        terms = [(Viscous, "viscous"), (Coulomb, "coulomb")]
        own = [kind(float(table[key][j])) for kind, key in terms if key in table]
        robot = robot.with_terms(*own, joints=[name]) if own else robot
    document = parse_document(urdf_text(robot, folder=Path(path).parent), os.fspath(path))
    edits, wider = TextEdits(document), widened_limits(found)
    for joint in document.root.all("joint"):
        limit = joint.optional_child("limit")
        if joint.name in wider and limit is not None:
            for side, value in zip(("lower", "upper"), wider[joint.name], strict=True):
                edits.set_attribute(limit, side, repr(value))
    write_atomically(path, edits.apply(), force=force)
    gains = ("the law of the drives: URDF has no actuators; the controller needs its gains",)
    gravity = filter(None, [describe_lost_gravity(robot.gravity)])
    return ServoFile(Path(path), (*missing_in(found, ()), *gains, *gravity, *_limit_notes(found)))
