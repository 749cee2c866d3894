"""Identified servos as joints and actuators of robot descriptions: MJCF with position actuators, and URDF."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.drive_laws import MotorLaw, PositionLaw
from dynid.actuators.identify_actuators import ActuatorEstimate
from dynid.errors import ExportError
from dynid.files import write_atomically
from dynid.public_calls import public
from dynid.robot.formats.mjcf.write import mjcf_text
from dynid.robot.formats.urdf import write_urdf
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import RotorInertia

__all__ = ["ServoFile", "drive_gains", "servo_terms", "write_servo_mjcf", "write_servo_urdf"]

Floats = NDArray[np.float64]
STIFF_FRICTION = "0.002 1"
"""``solreffriction`` of a written joint: time constant [s] and damping ratio of MuJoCo's soft dry friction. Experiment:
tests/export/test_servo_files.py; MuJoCo's own 0.02 s lets a joint creep within its friction."""


@dataclass(frozen=True, slots=True)
class ServoFile:
    """A written file, and what of the estimate it could not hold."""

    path: Path
    missing: tuple[str, ...]
    """Parameters that have no place in the format, and what to do about each."""


def servo_terms(found: ActuatorEstimate) -> Robot:
    """The robot with armature, viscous and dry friction of its servos as terms."""
    robot, table = found.model.robot.with_terms(), found.model.table(found.values)
    for j, name in enumerate(robot.joint_names):
        values = {kind: float(table[kind][j]) if kind in table else 0.0 for kind in ("armature", "viscous", "coulomb")}
        terms = (RotorInertia(values["armature"]), Viscous(values["viscous"]), Coulomb(values["coulomb"]))
        robot = robot.with_terms(*terms, joints=[name])
    return robot


def drive_gains(found: ActuatorEstimate) -> tuple[Floats, Floats]:
    """(n,) torque per position error and per velocity error, with all factors.

    A `MotorLaw` that is not saturated is such a law too: ``kt g kp V / R`` and ``kt^2 / R``.

    Raises:
        ExportError: The law is another one, or motions state the gains and the law does not.
    """
    law, table, n = found.model.law, found.model.table(found.values), found.model.dof
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
        raise ExportError("the law states no gains", remedy="Give the law kp (and voltage) of the robot at work.")
    return np.asarray(kp), np.asarray(kd)


def _limits(found: ActuatorEstimate) -> Floats | None:
    """(n,) largest torques, where the model has them."""
    table, law = found.model.table(found.values), found.model.law
    if "effort_limit" in table:
        return table["effort_limit"]
    if isinstance(law, MotorLaw):
        return np.asarray(table["kt"] / table["resistance"] * law.gains(found.model.dof)["voltage"])
    return None


def _missing(found: ActuatorEstimate, held: tuple[str, ...]) -> tuple[str, ...]:
    """What a format does not hold."""
    remedies = {
        "zero": "subtract it from commands and add it to positions",
        "delay": "send commands later by this time",
        "offset": "apply it as a constant joint torque",
        "breakaway": "dry friction is written without it",
        "load_drive": "dry friction is written without it",
        "load_external": "dry friction is written without it",
        "ki_scale": "the written actuator has no integral",
        "stall_torque": "the written actuator has no torque-speed line",
        "armature": "the simulated joint is too light without it",
    }
    table = found.model.table(found.values)
    return tuple(
        f"{kind}: {remedy}"
        for kind, remedy in remedies.items()
        if kind not in held and kind in table and np.any(table[kind] != 0.0)
    )


@public
def write_servo_mjcf(found: ActuatorEstimate, path: str | os.PathLike[str], *, force: bool = False) -> ServoFile:
    """Write the robot as MJCF with armature, damping and friction loss of its joints and one position actuator each.

    Args:
        found: Identified servos whose law states the gains.
        path: The file to write.
        force: Whether an existing file may be replaced.

    Returns:
        The file, and what MJCF cannot hold.

    Raises:
        ExportError: The file exists, cannot be written, or the law is none of gains.

    Example:
        >>> dynid.export.write_servo_mjcf(servos, folder / "servos.xml").missing
        ()
    """
    kp, kd = drive_gains(found)
    limits, names = _limits(found), found.model.robot.joint_names
    root = ElementTree.fromstring(mjcf_text(servo_terms(found), folder=Path(path).parent))
    for joint in root.iter("joint"):
        if joint.get("name") in names:
            joint.set("solreffriction", STIFF_FRICTION)
    for old in root.findall("actuator"):
        root.remove(old)
    block = ElementTree.SubElement(root, "actuator")
    for j, name in enumerate(names):
        actuator = ElementTree.SubElement(block, "general", name=f"{name}_servo", joint=name, biastype="affine")
        actuator.set("gainprm", f"{float(kp[j])!r} 0 0")
        actuator.set("biasprm", f"0 {-float(kp[j])!r} {-float(kd[j])!r}")
        if limits is not None:
            actuator.set("forcelimited", "true")
            actuator.set("forcerange", f"{-float(limits[j])!r} {float(limits[j])!r}")
    ElementTree.indent(root)
    write_atomically(path, ElementTree.tostring(root, encoding="utf-8"), force=force)
    held = ("armature", "viscous", "coulomb", "gain_scale", "kp_scale", "kd_scale", "effort_limit")
    return ServoFile(Path(path), _missing(found, held))


@public
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

    Example:
        >>> dynid.export.write_servo_urdf(servos, folder / "servos.urdf").missing
        ('armature: the simulated joint is too light without it',)
    """
    robot, table = found.model.robot.with_terms(), found.model.table(found.values)
    for j, name in enumerate(robot.joint_names):
        terms = [(Viscous, "viscous"), (Coulomb, "coulomb")]
        own = [kind(float(table[key][j])) for kind, key in terms if key in table]
        robot = robot.with_terms(*own, joints=[name]) if own else robot
    write_urdf(robot, path, force=force)
    return ServoFile(Path(path), _missing(found, ("viscous", "coulomb")))
