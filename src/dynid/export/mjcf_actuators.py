"""Actuators of an MJCF file replaced by servos, with everything else that refers to actuators kept whole."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree

from dynid.robot.formats.mjcf.read import read_model
from dynid.robot.formats.xml import parse_document
from dynid.robot.model import Robot

Element = ElementTree.Element
POSITION_TAGS = ("position", "intvelocity")
"""Actuators whose control is a position already, so that the controls of keyframes keep their meaning."""


def servo_attributes(kp: float, kd: float, limit: float | None) -> dict[str, str]:
    """Attributes of a ``general`` actuator: ``kp (ctrl - q) - kd dq``, within the limit.

    Every attribute that a default class of the file might set otherwise is stated.
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
    """Give every joint one servo; returns what was lost of the file.

    The first actuator of a joint is replaced in its place and keeps its name; joints without one get a new one at the
    end. Further actuators of these joints are taken out, with the sensors that name them. Others stay.

    Args:
        root: The whole file.
        servos: Joint -> attributes of its actuator.
    """
    before = [(block, one) for block in root.findall("actuator") for one in block]
    taken, lost, tags, done = {one.get("name") for _, one in before}, [], set(), set()
    for block, one in before:
        joint = one.get("joint") or one.get("jointinparent")
        if joint is None or joint not in servos:
            continue
        if joint in done:
            block.remove(one)
            lost.append(one.get("name") or f"a second actuator of {joint}")
            continue
        done.add(joint)
        tags.add(one.tag)
        name = one.get("name") or _free_name(f"{joint}_servo", taken)
        one.clear()
        one.tag = "general"
        one.attrib.update({"name": name, "joint": joint, **servos[joint]})
    new = [joint for joint in servos if joint not in done]
    if new:
        last = root.find("actuator")
        last = ElementTree.SubElement(root, "actuator") if last is None else last
        for joint in new:
            name = _free_name(f"{joint}_servo", taken)
            ElementTree.SubElement(last, "general", {"name": name, "joint": joint, **servos[joint]})
    told = [f"{name}: a second actuator of a joint with a servo; taken out" for name in lost]
    told += _without_sensors(root, set(lost))
    if bool(lost) or bool(before and new) or not tags <= set(POSITION_TAGS):
        told += _without_controls(root)
    return told


def _free_name(name: str, taken: set[str | None]) -> str:
    """A name that no actuator has."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _without_sensors(root: Element, lost: set[str]) -> list[str]:
    """Take out the sensors of actuators that are gone: MuJoCo refuses a file with them."""
    told = []
    for block in root.findall("sensor"):
        for sensor in list(block):
            of = sensor.get("actuator") or (sensor.get("objname") if sensor.get("objtype") == "actuator" else None)
            if of in lost:
                block.remove(sensor)
                told.append(f"{sensor.get('name', sensor.tag)}: a sensor of {of}; taken out")
    return told


def _without_controls(root: Element) -> list[str]:
    """Take controls out of keyframes: they were torques, or controls of other actuators."""
    keys = [key for key in root.iter("key") if {"ctrl", "act"} & set(key.attrib)]
    for key in keys:
        key.attrib.pop("ctrl", None)
        key.attrib.pop("act", None)
    return ["keyframes: their controls belonged to the old actuators and are taken out"] if keys else []


def held_joints(robot: Robot) -> tuple[str, ...]:
    """Joints that move in the robot's own MJCF file and not in the robot."""
    if robot.source is None or robot.source.format != "mjcf":
        return ()
    held = {joint.name: 0.0 for joint in robot.joints if not joint.moves}
    model = read_model(parse_document(robot.source.text, robot.source.path), held)
    return tuple(name for name in model.joint_elements if name in held)
