"""Rotor inertias in URDF, which the format itself has no place for: they stand in the ``<transmission>`` of a joint.

The inertia of the rotor is ``<motorInertia>`` of the ``<actuator>``, beside the ``<mechanicalReduction>`` of ROS;
behind the gear it is reduction^2 times as large. Drake reads its own tags for the same two numbers. Links keep their
true masses: programs that read no transmissions simulate a robot without rotors, and not one that is too heavy.
"""

from __future__ import annotations

from dataclasses import dataclass

from dynid.robot.formats.xml import Element, TextEdits, XmlDocument, element_lines, format_numbers
from dynid.robot.model import Robot
from dynid.terms.motors import RotorInertia

INERTIA, REDUCTION = "motorInertia", "mechanicalReduction"
DRAKE = {"xmlns:drake": "http://drake.mit.edu"}
"""Attribute of ``<robot>`` that declares Drake's tags."""
_OWN = (INERTIA, "drake:rotor_inertia", "drake:gear_ratio")
"""Tags of an ``<actuator>`` that are written here."""


@dataclass(frozen=True, slots=True)
class Transmission:
    """One joint with one actuator."""

    actuator: Element
    reduction: float
    """Turns of the rotor per turn of the joint."""
    inertia: float
    """Of the rotor behind the gear [kg m^2 or kg]."""


def read_transmissions(document: XmlDocument) -> dict[str, Transmission]:
    """Joint -> its transmission, for transmissions of one joint and one actuator."""
    found = {}
    for element in document.root.all("transmission"):
        joints, actuators = element.all("joint"), element.all("actuator")
        if len(joints) == len(actuators) == 1:
            reduction = _number(document, actuators[0], REDUCTION, 1.0)
            inertia = reduction**2 * _number(document, actuators[0], INERTIA, 0.0)
            found[joints[0].name] = Transmission(actuators[0], reduction, inertia)
    return found


def _number(document: XmlDocument, actuator: Element, tag: str, default: float) -> float:
    child = actuator.optional_child(tag)
    return default if child is None else document.text_number(child)


def transmission_lines(robot: Robot) -> list[str]:
    """Lines of ``<transmission>`` for the rotors of a robot."""
    return [line for joint, value in _rotors(robot).items() if value for line in _lines(joint, value)]


def update_transmissions(edits: TextEdits, document: XmlDocument, robot: Robot) -> None:
    """Put changed rotor inertias of a robot into the text of its URDF."""
    present, is_new = read_transmissions(document), False
    for joint, value in _rotors(robot).items():
        held = present.get(joint)
        if value == (0.0 if held is None else held.inertia):
            continue
        is_new = True
        if held is None:
            edits.insert_last(document.root, _lines(joint, value))
            continue
        for child in held.actuator.children:
            if child.tag in _OWN:
                edits.remove_element(child)
        edits.insert_first(held.actuator, _actuator_lines(value, held.reduction))
    if is_new and "xmlns:drake" not in document.root.attributes:
        edits.set_attribute(document.root, *next(iter(DRAKE.items())))


def _rotors(robot: Robot) -> dict[str, float]:
    """Joint -> its rotor inertia, for joints that have such a term."""
    own = {j.name: [t.value for t in j.terms if isinstance(t, RotorInertia)] for j in robot.moving_joints}
    return {joint: sum(values) for joint, values in own.items() if values}


def _lines(joint: str, value: float) -> list[str]:
    interface = "<hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface>"
    reduction = f"<{REDUCTION}>1</{REDUCTION}>"
    inside = [
        "<type>transmission_interface/SimpleTransmission</type>",
        *element_lines("joint", {"name": joint}, [interface]),
        *element_lines("actuator", {"name": f"{joint}_motor"}, [reduction, *_actuator_lines(value, 1.0)]),
    ]
    return element_lines("transmission", {"name": f"{joint}_transmission"}, inside)


def _actuator_lines(value: float, reduction: float) -> list[str]:
    inertia = value / reduction**2
    return [
        f"<{INERTIA}>{format_numbers(inertia)}</{INERTIA}>",
        *element_lines("drake:rotor_inertia", {"value": inertia}),
        *element_lines("drake:gear_ratio", {"value": reduction}),
    ]
