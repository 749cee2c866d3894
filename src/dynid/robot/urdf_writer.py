"""Writing URDF: new numbers in the text a robot came from, or a fresh file for a robot that came from elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.files import write_atomically
from dynid.robot.inertia import Inertia
from dynid.robot.inertia_output import centre_of_mass, same_inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, JointLimits
from dynid.robot.urdf import (
    DYNAMICS,
    TENSOR_ATTRIBUTES,
    UNBOUNDED,
    inertial_tensor,
    read_dynamics,
    read_inertia,
    read_origin,
)
from dynid.robot.xml_document import Element, XmlDocument, parse_document
from dynid.robot.xml_edit import TextEdits, format_numbers, start_tag
from dynid.spatial import rpy_from_rotation

__all__ = ["urdf_text", "write_urdf"]


def write_urdf(robot: Robot, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a robot as a URDF file; see `urdf_text`.

    URDF has no place for rotor inertias, offsets, couplings and gravity: they are not in the file. Keep them with
    `dynid.write_result`, or write an MJCF.

    Args:
        robot: The robot.
        path: The file to write; it appears complete or not at all.
        force: Whether an existing file may be replaced.

    Raises:
        ExportError: The file exists, cannot be written, or the robot has numbers a URDF cannot hold.
    """
    write_atomically(path, urdf_text(robot).encode("utf-8"), force=force)


def urdf_text(robot: Robot) -> str:
    """The robot as the text of a URDF.

    A robot read from a URDF gets that text back, with changed inertials and frictions put in and everything else left
    byte for byte. Any other robot gets a fresh text. URDF has no place for rotor inertias, offsets, couplings and
    gravity; friction goes into ``<dynamics>`` where the robot has `Viscous` or `Coulomb` for the joint.
    """
    if robot.source is not None and robot.source.format == "urdf":
        document = parse_document(robot.source.text, robot.source.path)
        links = {element.name: element for element in document.root.all("link")}
        joints = {element.name: element for element in document.root.all("joint")}
        if links.keys() == {link.name for link in robot.links} and joints.keys() == {j.name for j in robot.joints}:
            return _updated(robot, document, links, joints)
    return "\n".join(_fresh(robot)) + "\n"


def _updated(robot: Robot, document: XmlDocument, links: dict[str, Element], joints: dict[str, Element]) -> str:
    edits = TextEdits(document)
    for link in robot.links:
        element = links[link.name]
        if not same_inertia(link.inertia, read_inertia(document, element)):
            _set_inertial(edits, document, element, link.inertia)
    for joint in robot.moving_joints:
        _set_dynamics(edits, document, joints[joint.name], joint)
    return edits.apply().decode("utf-8")


def _set_inertial(edits: TextEdits, document: XmlDocument, link: Element, inertia: Inertia) -> None:
    """Put an inertia in place, in the axes the file already uses for it."""
    inertial = document.only(link, "inertial")
    com = centre_of_mass(inertia, link.name)
    if inertial is None:
        edits.insert_first(link, _inertial_lines(inertia, com))
        return
    T_link_inertial = read_origin(document, inertial)
    R = T_link_inertial[:3, :3]
    origin = document.only(inertial, "origin")
    if origin is not None:
        edits.set_numbers(origin, "xyz", com, T_link_inertial[:3, 3])
    elif com.any():
        edits.insert_first(inertial, [start_tag("origin", {"xyz": format_numbers(com), "rpy": "0 0 0"}) + "/>"])
    mass = document.needed(inertial, "mass")
    edits.set_numbers(mass, "value", [inertia.mass], [document.number(mass, "value")])
    present, tensor = inertial_tensor(document, inertial), R.T @ inertia.about_com @ R
    for name, place in TENSOR_ATTRIBUTES.items():
        edits.set_numbers(document.needed(inertial, "inertia"), name, [tensor[place]], [present[place]])


def _set_dynamics(edits: TextEdits, document: XmlDocument, element: Element, joint: Joint) -> None:
    present = read_dynamics(document, element)
    wanted = {name: value for name, value in _friction(joint).items() if value != present[name]}
    dynamics = document.only(element, "dynamics")
    if dynamics is not None:
        for name, value in wanted.items():
            edits.set_attribute(dynamics, name, format_numbers([value]))
    elif wanted:
        edits.insert_first(element, [_dynamics_tag(wanted)])


def _friction(joint: Joint) -> dict[str, float]:
    """Attribute of ``<dynamics>`` -> value, for the models the joint has."""
    return {name: m.values[0] for name, kind in DYNAMICS.items() for m in joint.models if isinstance(m, kind)}


def _dynamics_tag(friction: dict[str, float]) -> str:
    return start_tag("dynamics", {name: format_numbers([value]) for name, value in friction.items()}) + "/>"


def _fresh(robot: Robot) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield start_tag("robot", {"name": robot.name}) + ">"
    for link in robot.links:
        tag = start_tag("link", {"name": link.name})
        if link.inertia.vector.any():
            lines = _inertial_lines(link.inertia, centre_of_mass(link.inertia, link.name))
            yield from (f"  {tag}>", *(f"    {line}" for line in lines), "  </link>")
        else:
            yield f"  {tag}/>"
    for joint in robot.joints:
        yield from (f"  {line}" for line in _joint_lines(joint))
    yield "</robot>"


def _inertial_lines(inertia: Inertia, com: NDArray[np.float64]) -> list[str]:
    tensor = inertia.about_com
    values = {name: format_numbers([tensor[place]]) for name, place in TENSOR_ATTRIBUTES.items()}
    return [
        "<inertial>",
        "  " + start_tag("origin", {"xyz": format_numbers(com), "rpy": "0 0 0"}) + "/>",
        "  " + start_tag("mass", {"value": format_numbers([inertia.mass])}) + "/>",
        "  " + start_tag("inertia", values) + "/>",
        "</inertial>",
    ]


def _joint_lines(joint: Joint) -> Iterator[str]:
    T, limits = joint.T_parent_joint, joint.limits
    unlimited = joint.kind == "revolute" and np.isinf([limits.lower, limits.upper]).all()
    kind = "continuous" if unlimited else joint.kind
    yield start_tag("joint", {"name": joint.name, "type": kind}) + ">"
    placement = {"xyz": format_numbers(T[:3, 3]), "rpy": format_numbers(rpy_from_rotation(T[:3, :3]))}
    yield "  " + start_tag("origin", placement) + "/>"
    yield "  " + start_tag("parent", {"link": joint.parent}) + "/>"
    yield "  " + start_tag("child", {"link": joint.child}) + "/>"
    if joint.moves:
        yield "  " + start_tag("axis", {"xyz": format_numbers(joint.axis)}) + "/>"
        if kind != "continuous" or limits != JointLimits():
            yield "  " + start_tag("limit", _limit_attributes(limits, kind)) + "/>"
        if _friction(joint):
            yield "  " + _dynamics_tag(_friction(joint))
    yield "</joint>"


def _limit_attributes(limits: JointLimits, kind: str) -> dict[str, str]:
    names = ["effort", "velocity"] if kind == "continuous" else ["lower", "upper", "effort", "velocity"]
    names += ["acceleration"] if np.isfinite(limits.acceleration) else []
    return {name: format_numbers([np.clip(getattr(limits, name), -UNBOUNDED, UNBOUNDED)]) for name in names}
