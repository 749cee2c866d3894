"""Read and write rotor inertias in URDF, which has no place of its own for them: in the ``<transmission>`` of a joint.

The inertia of the rotor is ``<motorInertia>`` of the ``<actuator>``, next to the ``<mechanicalReduction>`` of ROS. At
the joint side it is reduction^2 times as large, and this is the number that a `RotorInertia` holds. Drake's tags for
the same two numbers are written, too. The URDF reader and writer call the functions here. Links keep their true masses:
programs that ignore transmissions simulate a robot without rotors, and not one that is too heavy.
"""

from __future__ import annotations

from dataclasses import dataclass

from dynid.robot.formats.xml import Element, TextEdits, XmlDocument, element_lines, format_numbers
from dynid.robot.model import Robot
from dynid.terms.motors import RotorInertia

INERTIA = "motorInertia"
"""Tag of the rotor's inertia at the motor side [kg m^2 or kg]."""
REDUCTION = "mechanicalReduction"
"""Tag of the turns of the rotor per turn of the joint."""
DRAKE = {"xmlns:drake": "http://drake.mit.edu"}
"""Attribute of ``<robot>`` that declares Drake's tags."""
_WRITTEN = (INERTIA, "drake:rotor_inertia", "drake:gear_ratio")
"""Tags of an ``<actuator>`` that `_actuator_lines` writes."""


@dataclass(frozen=True, slots=True)
class Transmission:
    """A transmission of one joint with one actuator."""

    actuator: Element
    """Its ``<actuator>``."""
    reduction: float
    """Turns of the rotor per turn of the joint."""
    inertia: float
    """Inertia of the rotor at the joint side [kg m^2 or kg]."""


def read_transmissions(document: XmlDocument) -> dict[str, Transmission]:
    """Read the transmissions of one joint and one actuator: name of the joint -> transmission."""
    found = {}
    for element in document.root.all("transmission"):
        joints = element.all("joint")
        actuators = element.all("actuator")
        if len(joints) == len(actuators) == 1:
            reduction = _number(document, actuators[0], REDUCTION, 1.0)
            inertia = reduction**2 * _number(document, actuators[0], INERTIA, 0.0)
            found[joints[0].name] = Transmission(actuators[0], reduction, inertia)
    return found


def _number(document: XmlDocument, actuator: Element, tag: str, default: float) -> float:
    """Read the number in an element of an actuator, or return the default if there is none."""
    child = actuator.optional_child(tag)
    return default if child is None else document.text_number(child)


def transmission_lines(robot: Robot) -> list[str]:
    """Write the ``<transmission>`` elements for the rotors of a robot."""
    return [line for joint, value in _rotors(robot).items() if value for line in _transmission(joint, value)]


def update_transmissions(edits: TextEdits, document: XmlDocument, robot: Robot) -> None:
    """Write the rotor inertias of a robot that differ from those in the text of its URDF."""
    present = read_transmissions(document)
    is_changed = False
    for joint, value in _rotors(robot).items():
        transmission = present.get(joint)
        if value == (0.0 if transmission is None else transmission.inertia):
            continue
        is_changed = True
        if transmission is None:
            edits.insert_last(document.root, _transmission(joint, value))
            continue
        for child in transmission.actuator.children:
            if child.tag in _WRITTEN:
                edits.remove_element(child)
        edits.insert_first(transmission.actuator, _actuator_lines(value, transmission.reduction))
    if is_changed and "xmlns:drake" not in document.root.attributes:
        edits.set_attribute(document.root, *next(iter(DRAKE.items())))


def _rotors(robot: Robot) -> dict[str, float]:
    """Collect rotor inertias at the joint side [kg m^2 or kg]: name of a joint with such a term -> their sum."""
    values = {j.name: [t.value for t in j.terms if isinstance(t, RotorInertia)] for j in robot.moving_joints}
    return {joint: sum(of_joint) for joint, of_joint in values.items() if of_joint}


def _transmission(joint: str, value: float) -> list[str]:
    """Write a ``<transmission>`` without gear, for a rotor inertia at the joint side."""
    interface = "<hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface>"
    reduction = f"<{REDUCTION}>1</{REDUCTION}>"
    inside = [
        "<type>transmission_interface/SimpleTransmission</type>",
        *element_lines("joint", {"name": joint}, [interface]),
        *element_lines("actuator", {"name": f"{joint}_motor"}, [reduction, *_actuator_lines(value, 1.0)]),
    ]
    return element_lines("transmission", {"name": f"{joint}_transmission"}, inside)


def _actuator_lines(value: float, reduction: float) -> list[str]:
    """Write the lines in an ``<actuator>`` for a rotor inertia at the joint side."""
    inertia = value / reduction**2
    return [
        f"<{INERTIA}>{format_numbers(inertia)}</{INERTIA}>",
        *element_lines("drake:rotor_inertia", {"value": inertia}),
        *element_lines("drake:gear_ratio", {"value": reduction}),
    ]
