"""What of an MJCF file no tree of links can express, refused by name; and the efforts its actuators tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dynid.robot.mjcf_settings import ACTUATORS, MjcfSettings
from dynid.robot.xml_document import Element, XmlDocument

__all__ = ["check_scope", "effort_limits"]

_EXPANDED = "Load the model in MuJoCo and save it once: the saved file has every body written out."
_REFUSED = {
    "include": "Put the text of the included file in its place; other files are never opened.",
    "replicate": _EXPANDED,
    "attach": _EXPANDED,
    "composite": "Describe its bodies one by one.",
    "flexcomp": "Soft bodies are outside rigid-body dynamics: remove them.",
    "flex": "Soft bodies are outside rigid-body dynamics: remove them.",
}
_IN_BODY = ("body", "frame", "inertial", "joint", "freejoint", "geom", "site", "camera", "light")
_BODIES = ("worldbody", "body", "frame")
_TENDONS = ("spatial", "fixed")
_PASSIVE_TENDON = ("stiffness", "damping", "frictionloss", "armature")
_PASSIVE_ACTUATOR = ("damping", "armature")


def check_scope(document: XmlDocument, locked: Mapping[str, float]) -> None:
    """Refuse what changes the dynamics in a way no tree of links with joint models can express.

    Raises:
        DescriptionError: Naming the element and what to do about it.
    """
    for element in document.root.walk():
        if element.tag in _REFUSED:
            raise document.error(element, f"<{element.tag}> is not supported", _REFUSED[element.tag])
        if element.tag in _BODIES:
            _check_body(document, element)
    for section in document.root.all("equality"):
        for constraint in section.children:
            _check_equality(document, constraint, locked)


def _check_body(document: XmlDocument, body: Element) -> None:
    for child in body.children:
        if child.tag not in _IN_BODY:
            raise document.error(child, f"<{child.tag[:60]}> in a body is not supported", "Remove or replace it.")
        if child.tag == "inertial" and body.tag == "frame":
            raise document.error(child, "<inertial> in a <frame> is not supported", "Move it to the body.")
    if body.tag == "body" and document.number(body, "gravcomp", 0.0) != 0.0:
        raise document.error(body, "gravity compensation ('gravcomp') is not supported", "Remove 'gravcomp'.")


def _check_equality(document: XmlDocument, constraint: Element, locked: Mapping[str, float]) -> None:
    if constraint.attributes.get("active") == "false":
        return
    first = constraint.attributes.get("joint1", "")
    if constraint.tag != "joint":
        remedy = "Cut the loop: remove the constraint; dynid handles serial chains and trees."
        raise document.error(constraint, f"the equality constraint <{constraint.tag[:60]}> is not supported", remedy)
    if first not in locked and constraint.attributes.get("joint2") not in locked:
        remedy = f"Hold the joint: read_mjcf(path, locked={{{first!r}: 0.0}})."
        raise document.error(constraint, f"joint '{first[:60]}' is bound by an equality constraint", remedy)


def effort_limits(settings: MjcfSettings) -> dict[str, float]:
    """Joint -> effort its actuators can give [N m or N], where the file bounds it.

    Raises:
        DescriptionError: An actuator or tendon adds friction, stiffness or inertia of its own.
    """
    document = settings.document
    for tendon in _section(document, "tendon", _TENDONS):
        _check_passive(settings, tendon, _PASSIVE_TENDON)
    efforts: dict[str, float] = {}
    for element in _section(document, "actuator", ACTUATORS):
        _check_passive(settings, element, _PASSIVE_ACTUATOR)
        actuator = settings.resolve(element, "main")
        joint = actuator.attributes.get("joint", "")
        name = "forcerange" if "forcerange" in actuator.attributes else "ctrlrange"
        if joint and name in actuator.attributes and (name == "forcerange" or actuator.tag == "motor"):
            gear = document.number_list(actuator, "gear")[0] if "gear" in actuator.attributes else 1.0
            effort = float(np.abs(document.numbers(actuator, name, 2)).min() * abs(gear))
            efforts[joint] = efforts.get(joint, 0.0) + effort
    return {joint: effort for joint, effort in efforts.items() if effort > 0.0}


def _section(document: XmlDocument, tag: str, kinds: tuple[str, ...]) -> Iterator[Element]:
    return (child for section in document.root.all(tag) for child in section.children if child.tag in kinds)


def _check_passive(settings: MjcfSettings, element: Element, names: tuple[str, ...]) -> None:
    resolved = settings.resolve(element, "main")
    for name in names:
        if name in resolved.attributes and settings.document.number_list(resolved, name).any():
            raise settings.document.error(
                element, f"'{name}' of a <{element.tag}> is not supported", "Give it to the joint, or remove it."
            )
