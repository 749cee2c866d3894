"""Gains of drives in MJCF: one motor per joint, whose gear turns the torque of the log into that of the joint.

A log's torque is often a motor current times a catalogue value, which is a few percent off. The control input of such a
motor is the torque as the log states it, and MuJoCo multiplies it by the gear. So inverse dynamics of the file, divided
by the gears, is the torque that the log would show.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from dynid.errors import ExportError
from dynid.robot.formats.mjcf.mjcf_settings import ACTUATORS
from dynid.robot.formats.xml import (
    Element,
    TextEdits,
    XmlDocument,
    format_numbers,
    parse_document,
    read_document,
    start_tag,
)
from dynid.robot.model import Robot

SUFFIX = "_drive"
"""End of a motor's name behind that of its joint."""


def gear_lines(gears: Mapping[str, float]) -> list[str]:
    """Lines of ``<actuator>``: a motor for each joint with a gear.

    Args:
        gears: Joint -> torque of the joint over that of the log; empty for no motors.

    Raises:
        ExportError: A gear is not a positive number.
    """
    for joint, gear in gears.items():
        if not (np.isfinite(gear) and gear > 0.0):
            raise ExportError(f"the drive of joint '{joint}' has the gear {gear}", remedy="Give a positive number.")
    if not gears:
        return []
    motors = (
        "  " + start_tag("motor", {"name": joint + SUFFIX, "joint": joint, "gear": format_numbers([gear])}) + "/>"
        for joint, gear in gears.items()
    )
    return ["<!-- control: torque as the log states it -->", "<actuator>", *motors, "</actuator>"]


def read_gears(path: str | os.PathLike[str]) -> dict[str, float]:
    """Read the gears of a file that `dynid.write_mjcf` wrote.

    Args:
        path: The file.

    Returns:
        Joint -> torque of the joint over that of the log, for each joint with a motor named after it.
    """
    document = read_document(path)
    return {joint: float(document.number_list(motor, "gear")[0]) for joint, motor in _drives(document).items()}


def takes_gears(robot: Robot) -> bool:
    """Whether the MJCF of a robot can get such motors: an old file with actuators gives control another meaning."""
    if robot.source is None or robot.source.format != "mjcf":
        return True
    document = parse_document(robot.source.text, robot.source.path)
    return len(_drives(document)) == len(_actuators(document))


def update_gears(edits: TextEdits, document: XmlDocument, gears: Mapping[str, float]) -> None:
    """Put gears into the text of a file: into the motors that it has, and into new ones.

    Args:
        edits: The edits of the text.
        document: The file before.
        gears: Joint -> gear; a motor of the file that is not named here gets the gear 1.
    """
    drives = _drives(document)
    for joint, motor in drives.items():
        gear = [gears.get(joint, 1.0)]
        edits.set_numbers(motor, "gear", gear, document.number_list(motor, "gear")[:1])
    lines = gear_lines({joint: gear for joint, gear in gears.items() if joint not in drives})
    if lines:
        edits.insert_last(document.root, lines)


def _actuators(document: XmlDocument) -> list[Element]:
    sections = document.root.all("actuator")
    return [child for section in sections for child in section.children if child.tag in ACTUATORS]


def _drives(document: XmlDocument) -> dict[str, Element]:
    """Joint -> its motor, for the motors that `gear_lines` writes."""
    motors = [motor for motor in _actuators(document) if motor.tag == "motor" and "gear" in motor.attributes]
    named = {motor.attributes.get("joint", ""): motor for motor in motors}
    return {joint: motor for joint, motor in named.items() if joint and motor.name == joint + SUFFIX}
