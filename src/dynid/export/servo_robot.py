"""Robot files of identified servos: MJCF with one actuator per joint, and URDF.

A servo is a joint with its drive and the drive's controller. An `ActuatorEstimate` holds identified servos: a control
law with gains (``found.model.law``) and a table of identified parameters, kind (``armature``, ``viscous``, ``delay``,
...) -> values (n,) in the order of the joints. Not every estimated value can be trusted, and not every kind has a place
in a format.

The first part of the module writes the files. The second one finds the values in them: friction terms, gains, limits.
The third one lists for people what a file does not hold, and which of its values are no estimates.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from dynid.array_types import Floats
from dynid.errors import ExportError
from dynid.export.mjcf_actuators import held_joints, put_actuators, servo_attributes
from dynid.robot.formats.mjcf.write import mjcf_text
from dynid.robot.formats.urdf import describe_lost_gravity, urdf_text
from dynid.robot.formats.xml import TextEdits, parse_document
from dynid.robot.model import Robot
from dynid.safe_files import write_atomically
from dynid.servos.drive_laws import MotorLaw, PositionLaw
from dynid.servos.kinds import LINKS
from dynid.servos.servo_identification import ActuatorEstimate
from dynid.terms.base import StateTerm
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

OVERSHOOT_SHARE = 0.1
"""Share of the measured range of a joint by which a widened limit lies beyond this range (convention: simulated motions
overshoot)."""
FILE_PURPOSES = {
    "servos.xml": "MuJoCo: joints and one position actuator each",
    "servos.urdf": "URDF: damping and friction of joints",
    "isaac_actuators.json": "Isaac Lab: settings of an actuator group",
}
"""Name of a file -> what it is for."""


@dataclass(frozen=True, slots=True)
class ServoFile:
    """A file for another program, with the notes about it."""

    path: Path
    """The file."""
    missing: tuple[str, ...] = ()
    """Notes: parameters that have no place in the format, as ``kind: what to do``, and other remarks."""
    refused: str = ""
    """Why the file was not written, and what to do; empty where it was written."""


STIFF_FRICTION = "0.002 1"
"""``solreffriction`` of a written joint: time constant [s] and damping ratio of MuJoCo's soft dry friction. Experiment:
tests/export/test_servo_files.py; MuJoCo's own 0.02 s lets a joint creep within its friction."""


def write_servo_mjcf(found: ActuatorEstimate, path: str | os.PathLike[str], *, force: bool = False) -> ServoFile:
    """Write the robot as MJCF with armature, damping and friction loss of its joints and one position actuator each.

    A robot that was read from MJCF keeps the rest of its file: limits of joints, geometry, other actuators. An actuator
    that drove a joint keeps its name and place, so that sensors and the order of the controls stay as they were. Joints
    that were kept still for the identification, such as the free joint of a quadruped that was hung up, move as in the
    file of the robot.

    Args:
        found: Identified servos whose law states the gains.
        path: The file to write.
        force: Whether an existing file may be replaced.

    Returns:
        The file, with notes about what MJCF has no place for.

    Raises:
        ExportError: The file exists, cannot be written, or the law is none of gains.
    """
    kp, kd = drive_gains(found)  # torques per position and velocity error, each (n,)
    robot = servo_terms(found)  # the robot with armature, friction and offset of the servos
    root = ElementTree.fromstring(mjcf_text(robot, folder=Path(path).parent))
    names = robot.joint_names
    wider = widened_limits(found)  # joint -> (lower, upper) [rad or m]
    for joint in root.iter("joint"):
        if joint.get("name") in names:
            joint.set("solreffriction", STIFF_FRICTION)
            joint.set("actuatorfrclimited", "false")  # the actuator has the limit of the servo
        if joint.get("name") in wider:
            joint.set("range", _range_text(root, wider[str(joint.get("name"))], joint.get("type", "hinge")))
    notes = _limit_notes(found)
    limits = limits_of(found)
    if isinstance(found.model.law, MotorLaw):
        kd = np.zeros_like(kd)  # the back-EMF is in the damping of the joint, see `servo_terms`
    servos = {
        name: servo_attributes(kp[j], kd[j], None if limits is None else limits[j]) for j, name in enumerate(names)
    }
    notes += put_actuators(root, servos)
    if still := held_joints(robot):
        notes.append(f"{', '.join(still)}: held in the identification, moves in this file as in the robot's own")
    ElementTree.indent(root)
    write_atomically(path, ElementTree.tostring(root, encoding="utf-8"), force=force)
    contained = ("armature", "offset", "effort_limit", "stall_torque")  # kinds of parameters with a place in MJCF
    return ServoFile(Path(path), (*missing_in(found, contained), *notes))


def write_servo_urdf(found: ActuatorEstimate, path: str | os.PathLike[str], *, force: bool = False) -> ServoFile:
    """Write the robot as URDF with damping and friction of its joints; URDF has no armature and no actuators.

    The damping is that of the joint alone, without the braking by the back-EMF of a `MotorLaw`: a simulated drive with
    this law has that braking itself.

    Args:
        found: Identified servos.
        path: The file to write.
        force: Whether an existing file may be replaced.

    Returns:
        The file, with notes about what URDF has no place for.

    Raises:
        ExportError: The file exists or cannot be written.
    """
    table = found.table
    robot = _changed_links(found)
    for j, name in enumerate(robot.joint_names):
        kinds = [(Viscous, "viscous"), (Coulomb, "coulomb")]
        terms = [term(float(table[kind][j])) for term, kind in kinds if kind in table]
        robot = robot.with_terms(*terms, joints=[name]) if terms else robot
    document = parse_document(urdf_text(robot, folder=Path(path).parent), os.fspath(path))
    edits = TextEdits(document)
    wider = widened_limits(found)
    for joint in document.root.all("joint"):  # `TextEdits` changes the text of an attribute and keeps the rest
        limit = joint.optional_child("limit")
        if joint.name in wider and limit is not None:
            for side, value in zip(("lower", "upper"), wider[joint.name], strict=True):
                edits.set_attribute(limit, side, repr(value))
    write_atomically(path, edits.apply(), force=force)
    law = "the law of the drives: URDF has no actuators; the controller needs its gains"
    gravity = filter(None, [describe_lost_gravity(robot.gravity)])  # empty for the usual gravity
    return ServoFile(Path(path), (*missing_in(found, ()), law, *gravity, *_limit_notes(found)))


def _range_text(root: ElementTree.Element, limits: tuple[float, float], kind: str) -> str:
    """Write the limits of a joint [rad or m] in the unit of the file: degrees, unless its compiler element says radian.

    Args:
        root: The whole file.
        limits: Lower and upper limit.
        kind: Type of the joint: ``slide``, ``hinge``, ...
    """
    in_radians = any(compiler.get("angle") == "radian" for compiler in root.iter("compiler"))
    factor = 1.0 if kind == "slide" or in_radians else 180.0 / np.pi
    return " ".join(repr(float(factor * limit)) for limit in limits)


def servo_terms(found: ActuatorEstimate) -> Robot:
    """Make the robot with the links, armature, viscous and dry friction and constant torque of its servos, for MJCF.

    The back-EMF of a `MotorLaw` is viscous friction here, because it brakes also where the duty cycle is at its limit,
    and an actuator of MuJoCo would limit it together with the torque.
    """
    table = found.table
    robot = _changed_links(found)
    is_motor = isinstance(found.model.law, MotorLaw)
    back_emf = table["kt"] ** 2 / table["resistance"] if is_motor else np.zeros(robot.dof)
    for j, name in enumerate(robot.joint_names):
        kinds = ("armature", "viscous", "coulomb", "offset")
        values = {kind: float(table[kind][j]) if kind in table else 0.0 for kind in kinds}
        terms: list[StateTerm] = [RotorInertia(values["armature"]), Viscous(values["viscous"] + float(back_emf[j]))]
        terms += [Coulomb(values["coulomb"])]
        # the offset of a servo helps its drive; a term `Offset` is a torque that the drive must overcome
        terms += [Offset(-values["offset"])] if values["offset"] else []
        robot = robot.with_terms(*terms, joints=[name])
    return robot


def _changed_links(found: ActuatorEstimate) -> Robot:
    """Make the robot without friction and other terms, and with the identified changes of its bodies' parameters."""
    robot = found.model.robot.with_terms()
    theta = np.array(robot.inertial_vector)
    changes = {kind: place for kind, place in LINKS.items() if kind in found.table}  # place: index among a body's ten
    for kind, place in changes.items():
        theta[place::10] += found.table[kind]  # the same one of the ten parameters of every body
    return robot.with_parameters(theta) if changes else robot


def drive_gains(found: ActuatorEstimate) -> tuple[Floats, Floats]:
    """Compute the gains kp and kd (n,): torque per position error [N m/rad or N/m] and per velocity error.

    A `PositionLaw` has them; estimated scale factors multiply them. A `MotorLaw` computes a voltage from the position
    error. With its motor constant kt, duty cycle g per gain k_law, supply voltage V and resistance R, its torque is
    ``kt g k_law V / R`` per position error and, by the back-EMF, ``kt^2 / R`` per velocity.

    Raises:
        ExportError: The law is another one, or it has no gains, because they are columns of the logs.
    """
    law = found.model.law
    table = found.table
    ones = np.ones(found.model.dof)
    gains = law.gains(found.model.dof)
    scale = table.get("gain_scale", ones)
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
    """Compute the largest torques of the drives (n,) [N m or N]; None where the model has no limits."""
    table = found.table
    law = found.model.law
    if isinstance(law, MotorLaw):  # at rest, with a duty cycle of one
        largest = table["kt"] / table["resistance"] * law.gains(found.model.dof)["voltage"]
        return np.asarray(np.minimum(largest, table["kt"] * table.get("current_limit", np.inf)))
    given = [table[kind] for kind in ("effort_limit", "stall_torque") if kind in table]
    return np.minimum.reduce(given) if given else None


def widened_limits(found: ActuatorEstimate) -> dict[str, tuple[float, float]]:
    """Find wider limits for joints that went beyond those of the description: joint -> (lower, upper) [rad or m].

    Encoder readings minus the estimated zeros of the encoders are positions in the coordinates of the description. A
    joint that went beyond its limits in these has another zero than the estimated one, or another limit. The simulated
    joint would be stopped at the limit of the description.
    """
    wider = {}
    for joint, (low, high) in zip(found.model.robot.moving_joints, found.reach, strict=True):
        if joint.name in found.beyond_limits:
            margin = OVERSHOOT_SHARE * float(high - low)
            lower = float(low) - margin if low < joint.limits.lower else joint.limits.lower
            upper = float(high) + margin if high > joint.limits.upper else joint.limits.upper
            wider[joint.name] = (lower, upper)
    return wider


NOTES_ON_MISSING = {
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
"""Kind of parameter that a format may have no place for -> the note about it: what the user can do or, where the file
holds a simpler parameter in its place, how that differs."""


def missing_in(found: ActuatorEstimate, contained: tuple[str, ...]) -> tuple[str, ...]:
    """Write the notes about a file: parameters that it does not contain, and values in it that are no estimates.

    Args:
        found: The identified servos.
        contained: Kinds, of those in `NOTES_ON_MISSING`, that the file contains.

    Returns:
        Notes: for each missing kind with values that matter what to do; then for each doubtful value in the file why.
    """
    table = found.table
    law = found.model.law
    doubtful = doubtful_values(found)
    absent = [kind for kind in NOTES_ON_MISSING if kind not in contained]
    notes = []
    for kind in absent:
        if kind not in table or not np.any(table[kind] != 0.0):
            continue
        names = [entry.name for entry in found.model.entries if entry.kind == kind and entry.name in doubtful]
        joints = ", ".join(name.removeprefix(kind).strip() or "of all joints" for name in names)
        notes.append(f"{kind}: {NOTES_ON_MISSING[kind]}" + (f" (no estimates: {joints})" if names else ""))
    if law.integrates and np.any(law.gains(found.model.dof)["ki"] != 0.0):
        notes.append("ki: the written actuator has no integral; add it in the controller")
    written = [entry.name for entry in found.model.entries if entry.kind not in absent and entry.name in doubtful]
    return (*notes, *(f"{name}: no estimate ({doubtful[name]}); written as it stands" for name in written))


def doubtful_values(found: ActuatorEstimate) -> dict[str, str]:
    """Find values that are no estimates: name of the parameter -> reason.

    Either it ended at a bound of the search, or the motions leave it open, perhaps with a lower bound.
    """
    reasons = {
        name: f"not reached, at least {direction.at_least:.3g}" if direction.at_least is not None else "open"
        for direction in found.open_directions
        for name in direction.names
    }
    return reasons | dict.fromkeys(found.at_bound, "at a bound of the search")


def _limit_notes(found: ActuatorEstimate) -> list[str]:
    """Write a note for each joint whose limits were widened."""
    notes = []
    for name, (lower, upper) in widened_limits(found).items():
        place = found.model.robot.joint_names.index(name)
        low, high = found.reach[place]
        limits = found.model.robot.moving_joints[place].limits
        unit = found.model.robot.position_units[place]
        notes.append(
            f"{name}: the readings less their zero go from {low:.4g} to {high:.4g} {unit}, beyond the limits of the "
            f"description ({limits.lower:.4g} to {limits.upper:.4g}); the limits in this file are {lower:.4g} to "
            f"{upper:.4g}, so that it can move as in the log"
        )
    return notes


def notes_text(files: Sequence[ServoFile], warnings: Sequence[str]) -> str:
    """Write the text of ``not_in_the_files.txt``.

    Args:
        files: The files, in the order of the text.
        warnings: Lines at the beginning, such as that the law does not fit.
    """
    lines = [*warnings, *([""] if warnings else [])]
    lines += ["What the files of this folder cannot hold, and what to do about it. report.md has all values."]
    for file in files:
        lines += ["", f"{file.path.name} ({FILE_PURPOSES[file.path.name]})"]
        if file.refused:
            lines.append(f"  is not written: {file.refused}")
        elif not file.missing:
            lines.append("  holds everything.")
        lines += [f"  - {text}" for text in file.missing]
    return "\n".join(lines) + "\n"
