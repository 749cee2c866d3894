"""Replace the actuators of an MJCF file by servos; sensors and keyframes that refer to actuators stay valid.

A servo is a position actuator of one joint with the torque ``kp (ctrl - q) - kd dq``. `dynid.export.servo_robot` calls
`servo_attributes` and `put_actuators` on the parsed XML of a robot.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree

from dynid.robot.formats.mjcf.read import read_model
from dynid.robot.formats.xml import parse_document
from dynid.robot.model import Robot

Element = ElementTree.Element
POSITION_TAGS = ("position", "intvelocity")
"""MJCF elements of actuators whose control is a position already: in place of them a servo gets the same controls, so
that those in keyframes keep their meaning."""


def servo_attributes(kp: float, kd: float, limit: float | None) -> dict[str, str]:
    """Make the attributes of a ``general`` actuator with the torque ``kp (ctrl - q) - kd dq``.

    MuJoCo computes ``gainprm[0] ctrl + biasprm[0] + biasprm[1] q + biasprm[2] dq``. Attributes that a default class of
    the file might set are all written, so that they have these values.

    Args:
        kp: Torque per position error [N m/rad or N/m].
        kd: Torque per velocity [N m s/rad or N s/m].
        limit: Largest torque [N m or N]; None for no limit.
    """
    bound = 0.0 if limit is None else float(limit)
    return {
        "gear": "1",
        "dyntype": "none",
        "gaintype": "fixed",
        "biastype": "affine",
        "gainprm": f"{float(kp)!r} 0 0",
        "biasprm": f"0 {-float(kp)!r} {-float(kd)!r}",
        "ctrllimited": "false",
        "forcelimited": "false" if limit is None else "true",
        "forcerange": f"{-bound!r} {bound!r}",
    }


def put_actuators(root: Element, servos: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Give every joint one servo.

    The first actuator of a joint is replaced in its place and keeps its name; joints without one get a new one at the
    end. Further actuators of these joints are removed, with the sensors that name them. Actuators of other joints stay.

    Args:
        root: The whole file; it is changed.
        servos: Joint -> attributes of its actuator.

    Returns:
        A note for each thing that was removed from the file: actuators, sensors, controls of keyframes.
    """
    before = [(section, actuator) for section in root.findall("actuator") for actuator in section]
    names = {actuator.get("name") for _, actuator in before}
    removed = []  # names of second actuators
    replaced_tags = set()
    done = set()  # joints that have their servo
    for section, actuator in before:
        joint = actuator.get("joint") or actuator.get("jointinparent")
        if joint is None or joint not in servos:
            continue
        if joint in done:
            section.remove(actuator)
            removed.append(actuator.get("name") or f"a second actuator of {joint}")
            continue
        done.add(joint)
        replaced_tags.add(actuator.tag)
        name = actuator.get("name") or _free_name(f"{joint}_servo", names)
        actuator.clear()
        actuator.tag = "general"
        actuator.attrib.update({"name": name, "joint": joint, **servos[joint]})
    new = [joint for joint in servos if joint not in done]
    if new:
        first = root.find("actuator")
        first = ElementTree.SubElement(root, "actuator") if first is None else first
        for joint in new:
            name = _free_name(f"{joint}_servo", names)
            ElementTree.SubElement(first, "general", {"name": name, "joint": joint, **servos[joint]})
    notes = [f"{name}: a second actuator of a joint with a servo; taken out" for name in removed]
    notes += _remove_sensors(root, set(removed))
    # the controls of keyframes stay valid only if the number, order and meaning of all controls are as before
    if bool(removed) or bool(before and new) or not replaced_tags <= set(POSITION_TAGS):
        notes += _remove_controls(root)
    return notes


def _free_name(name: str, names: set[str | None]) -> str:
    """Make a name that no actuator has, and add it to the names."""
    while name in names:
        name += "_"
    names.add(name)
    return name


def _remove_sensors(root: Element, actuators: set[str]) -> list[str]:
    """Remove the sensors of removed actuators, because MuJoCo refuses a file with them; returns a note for each."""
    notes = []
    for section in root.findall("sensor"):
        for sensor in list(section):
            # name of its actuator: actuatorfrc and the like name it, sensors of any object name its type, too
            of = sensor.get("actuator") or (sensor.get("objname") if sensor.get("objtype") == "actuator" else None)
            if of in actuators:
                section.remove(sensor)
                notes.append(f"{sensor.get('name', sensor.tag)}: a sensor of {of}; taken out")
    return notes


def _remove_controls(root: Element) -> list[str]:
    """Remove controls and actuator states, which belong to other actuators, from keyframes; a note if there are any."""
    keys = [key for key in root.iter("key") if {"ctrl", "act"} & set(key.attrib)]
    for key in keys:
        key.attrib.pop("ctrl", None)
        key.attrib.pop("act", None)
    return ["keyframes: their controls belonged to the old actuators and are taken out"] if keys else []


def held_joints(robot: Robot) -> tuple[str, ...]:
    """Names of the joints that move in the MJCF file of the robot, but were read as fixed (``hold``)."""
    if robot.source is None or robot.source.format != "mjcf":
        return ()
    still = {joint.name: 0.0 for joint in robot.joints if not joint.moves}  # joint -> position at which it is held
    model = read_model(parse_document(robot.source.text, robot.source.path), still)
    return tuple(name for name in model.joint_elements if name in still)
