"""Reading and writing URDF: links and joints with their inertials, limits and friction.

What the dynamics do not depend on (visuals, collisions, materials, simulator extensions) is skipped,
and meshes are never opened. Conventions (REP-103): SI units; ``rpy`` turns about the fixed axes x, y, z; an
``<inertial>`` has its own frame at the centre of mass, which may be turned against the link.

A robot that was read from a URDF is written as that text with its new numbers; any other robot as a fresh file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import ExportError
from dynid.files import write_atomically
from dynid.robot.formats.gravity_note import LOST_GRAVITY, describe_lost_gravity
from dynid.robot.formats.mesh_paths import follow_meshes
from dynid.robot.formats.transmissions import DRAKE, read_transmissions, transmission_lines, update_transmissions
from dynid.robot.formats.xml import (
    Element,
    TextEdits,
    XmlDocument,
    format_numbers,
    parse_document,
    read_document,
    start_tag,
)
from dynid.robot.inertia import Inertia, centre_of_mass, inertia_about_com, is_same_inertia
from dynid.robot.model import ROUNDED_ANGLE, STANDARD_GRAVITY, ModelFile, Robot
from dynid.robot.parts import ROUNDED_RAD, UNBOUNDED, Joint, JointKind, JointLimits, Link, check_held
from dynid.spatial import SAME, rotation_from_rpy, rpy_from_rotation, transform
from dynid.terms import TERMS
from dynid.terms.base import StateTerm
from dynid.terms.motors import RotorInertia

TENSOR_ATTRIBUTES = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
"""Attribute of ``<inertia>`` -> row and column of the tensor."""
DYNAMICS: dict[str, type[StateTerm]] = {
    term.urdf_attribute: term for term in TERMS if term.urdf_attribute and issubclass(term, StateTerm)
}
"""Attribute of ``<dynamics>`` -> the term it becomes."""

_GRAVITY_COMMENT = re.compile(rf"\r?\n[ \t]*<!-- gravity [^>]*, {LOST_GRAVITY} -->")
_KINDS: dict[str, JointKind] = {kind: kind for kind in get_args(JointKind)}


def read_urdf(
    path: str | os.PathLike[str],
    *,
    gravity: ArrayLike = STANDARD_GRAVITY,
    hold: Mapping[str, float] | None = None,
    snap: bool = True,
) -> Robot:
    """Read a robot from a URDF file.

    ``<dynamics>`` becomes `Viscous` and `Coulomb` on those joints where damping and friction are not zero.

    Args:
        path: The file; nothing else is opened.
        gravity: (3,) acceleration of free fall in the root link's frame [m/s^2].
        hold: Joint name -> position [rad or m] at which the joint is held; mimic joints need it, and floating and
            planar joints can be held at 0.
        snap: Take written right angles of joints as exact: 1.5708 is pi/2 (`exact_angle` has the rule). They would
            add terms to the equations and parameters that no log can tell. `snapped_joints` names the joints;
            `write_urdf` keeps the text of the file.

    Raises:
        DescriptionError: The file is wrong or uses what is not supported; the error says where and what to do.

    Example:
        >>> dynid.write_urdf(robot, folder / "own.urdf")
        >>> dynid.read_urdf(folder / "own.urdf").joint_names
        ('joint1', 'joint2', 'joint3')
    """
    return _robot(read_document(path), gravity, hold or {}, snap)


def parse_urdf(
    text: str,
    name: str = "<text>",
    *,
    gravity: ArrayLike = STANDARD_GRAVITY,
    hold: Mapping[str, float] | None = None,
    snap: bool = True,
) -> Robot:
    """Read a robot from the text of a URDF; ``name`` stands for the file in messages. See `read_urdf`."""
    return _robot(parse_document(text, name), gravity, hold or {}, snap)


def snapped_joints(robot: Robot) -> tuple[str, ...]:
    """The joints whose right angles are rounded in the robot's URDF, and exact in the robot.

    Example:
        >>> dynid.robot.snapped_joints(robot)  # it does not come from a file
        ()
    """
    if robot.source is None or robot.source.format != "urdf":
        return ()
    document = parse_document(robot.source.text, robot.source.path)
    elements = {element.name: element for element in document.root.all("joint")}
    kept = {joint.name: joint for joint in robot.joints if joint.name in elements}
    found = []
    for name, element in elements.items():
        exact, written = (read_origin(document, element, snap=snap)[:3, :3] for snap in (True, False))
        if name in kept and not np.array_equal(exact, written):
            away = [np.abs(kept[name].T_parent_joint[:3, :3] - R).max() for R in (exact, written)]
            if away[0] < away[1] or not kept[name].moves:
                found.append(name)
    return tuple(found)


def joints_in_degrees(robot: Robot) -> dict[str, str]:
    """Joint -> its ``rpy`` in the robot's URDF, where an angle is beyond a whole turn: it is hardly in radians."""
    if robot.source is None or robot.source.format != "urdf":
        return {}
    document = parse_document(robot.source.text, robot.source.path)
    origins = {element.name: document.optional_child(element, "origin") for element in document.root.all("joint")}
    turned = {name: document.numbers(origin, "rpy", 3, np.zeros(3)) for name, origin in origins.items() if origin}
    return {
        name: " ".join(f"{a:g}" for a in rpy)
        for name, rpy in turned.items()
        if np.abs(rpy).max() > 2.0 * np.pi + ROUNDED_ANGLE
    }


def exact_angle(text: str, value: float) -> float:
    """The multiple of pi/2 that a written angle stands for [rad], or the angle itself.

    A multiple is meant if it has the same digits as the text, rounded or cut off, with two digits or more behind the
    point: 1.57, 1.5707, 1.5708, -3.14159. Angles within `ROUNDED_RAD` of zero are zero: conversions leave them behind.
    A calibrated angle such as 1.571432 has other digits than pi/2 and stays.

    Args:
        text: The angle as the file has it.
        value: Its value [rad].
    """
    if abs(value) <= ROUNDED_RAD:
        return 0.0
    turns = round(value / (0.5 * np.pi))
    exact = 0.5 * np.pi * turns
    _, _, behind = text.lower().partition("e")[0].partition(".")
    if not turns or abs(turns) > 4 or len(behind) < 2 or "e" in text.lower():
        return value
    return exact if abs(value - exact) < 10.0 ** -len(behind) else value


def _robot(document: XmlDocument, gravity: ArrayLike, hold: Mapping[str, float], snap: bool) -> Robot:
    root = document.root
    if root.tag != "robot":
        remedy = "Use read_mjcf." if root.tag == "mujoco" else "Give a file whose outermost element is <robot>."
        raise document.error(root, f"this is not a URDF: it starts with <{root.tag[:60]}>", remedy)
    for child in root.children:
        if child.tag.startswith("xacro:"):
            raise document.error(child, "this is a xacro file, not yet a URDF", "Expand it: xacro in.xacro > out.urdf.")
    if not root.all("link"):
        raise document.error(root, "the robot has no links", "Expand macros first; give at least one <link>.")
    check_held(hold, [joint.name for joint in root.all("joint")])
    links = tuple(_link(document, element) for element in root.all("link"))
    rotors = {name: found.inertia for name, found in read_transmissions(document).items()}
    joints = tuple(_joint(document, element, hold, snap, rotors) for element in root.all("joint"))
    source = ModelFile(path=document.path, format="urdf", text=document.data.decode("utf-8"))
    with document.at(root):
        return Robot(name=root.name or "robot", links=links, joints=joints, gravity=np.array(gravity), source=source)


def _link(document: XmlDocument, element: Element) -> Link:
    return Link(name=document.attribute(element, "name"), inertia=read_inertia(document, element))


def read_inertia(document: XmlDocument, link: Element) -> Inertia:
    """Mass properties of a ``<link>`` in its own frame; nothing without ``<inertial>``."""
    inertial = document.optional_child(link, "inertial")
    if inertial is None:
        return Inertia.zero()
    T_link_inertial = read_origin(document, inertial)
    R = T_link_inertial[:3, :3]
    mass = document.number(document.child(inertial, "mass"), "value")
    tensor = inertial_tensor(document, inertial)
    with document.at(inertial):
        return inertia_about_com(mass, T_link_inertial[:3, 3], R @ tensor @ R.T)


def read_origin(document: XmlDocument, element: Element, *, snap: bool = False) -> Floats:
    """Pose (4, 4) in the ``<origin>`` of an ``<inertial>`` or ``<joint>``; the identity without one.

    Args:
        document: The document.
        element: The element that has the origin.
        snap: Whether rounded right angles are taken as exact; see `exact_angle`.
    """
    origin = document.optional_child(element, "origin")
    if origin is None:
        return np.eye(4)
    rpy = document.numbers(origin, "rpy", 3, np.zeros(3))
    words = origin.attributes.get("rpy", "").split()
    if snap and len(words) == 3:
        rpy = np.array([exact_angle(word, value) for word, value in zip(words, rpy.tolist(), strict=True)])
    return transform(rotation_from_rpy(rpy), document.numbers(origin, "xyz", 3, np.zeros(3)))


def inertial_tensor(document: XmlDocument, inertial: Element) -> Floats:
    """Tensor (3, 3) [kg m^2] about the centre of mass, in the axes of the ``<inertial>``'s own frame."""
    values = document.child(inertial, "inertia")
    tensor = np.zeros((3, 3))
    for attribute, (row, column) in TENSOR_ATTRIBUTES.items():
        tensor[row, column] = tensor[column, row] = document.number(values, attribute)
    return tensor


def _joint(
    document: XmlDocument, element: Element, hold: Mapping[str, float], snap: bool, rotors: Mapping[str, float]
) -> Joint:
    name = document.attribute(element, "name")
    kind = _kind(document, element, hold)
    axis = document.optional_child(element, "axis")
    moves = kind != "fixed"
    with document.at(element):
        joint = Joint(
            name=name,
            kind=kind,
            parent=document.attribute(document.child(element, "parent"), "link"),
            child=document.attribute(document.child(element, "child"), "link"),
            T_parent_joint=read_origin(document, element, snap=snap),
            axis=document.numbers(axis, "xyz", 3) if axis and moves else np.array([1.0, 0.0, 0.0]),
            limits=_limits(document, element, kind) if moves else JointLimits(),
            terms=_terms(document, element, rotors.get(name, 0.0)) if moves else (),
        )
        return joint.held_at(hold[name]) if name in hold else joint


def _kind(document: XmlDocument, element: Element, hold: Mapping[str, float]) -> JointKind:
    kind = document.attribute(element, "type")
    remedy = f"Hold the joint: --hold {element.name}, or read_urdf(path, hold={{{element.name!r}: 0.0}})."
    if kind in ("floating", "planar"):
        if hold.get(element.name) != 0.0:
            raise document.error(element, f"{kind} joints are not supported", remedy)
        return "fixed"
    if kind not in _KINDS:
        known = ", ".join(_KINDS)
        raise document.error(element, f"the joint type '{kind[:60]}' is not known", f"Use one of {known}.")
    if element.all("mimic") and kind != "fixed" and element.name not in hold:
        raise document.error(element, "mimic joints are not supported: their coordinate is not free", remedy)
    return _KINDS[kind]


def _limits(document: XmlDocument, element: Element, kind: JointKind) -> JointLimits:
    """Limits of a moving joint; a bound the file does not give is infinite."""
    limit = document.optional_child(element, "limit")
    if limit is None:
        return JointLimits()
    bounds = {
        name: document.number(limit, name, np.inf, infinite=True) for name in ("velocity", "acceleration", "effort")
    }
    if kind != "continuous" and not limit.attributes.keys().isdisjoint(("lower", "upper")):
        # the URDF specification: a bound that is left out is 0
        bounds |= {name: document.number(limit, name, 0.0, infinite=True) for name in ("lower", "upper")}
    unbounded = {name: np.copysign(np.inf, bound) for name, bound in bounds.items() if abs(bound) >= UNBOUNDED}
    with document.at(limit):
        return JointLimits(**(bounds | unbounded))


def _terms(document: XmlDocument, element: Element, rotor: float) -> tuple[StateTerm, ...]:
    values = read_dynamics(document, element)
    friction = (term(values[attribute]) for attribute, term in DYNAMICS.items() if values[attribute] != 0.0)
    return (RotorInertia(rotor), *friction) if rotor else tuple(friction)


def read_dynamics(document: XmlDocument, joint: Element) -> dict[str, float]:
    """Damping and friction of a ``<joint>``; 0 where the file gives none."""
    dynamics = document.optional_child(joint, "dynamics")
    return {name: 0.0 if dynamics is None else document.number(dynamics, name, 0.0) for name in DYNAMICS}


def write_urdf(
    robot: Robot, path: str | os.PathLike[str], *, force: bool = False, allow_unphysical: bool = False
) -> None:
    """Write a robot as a URDF file; see `urdf_text`.

    Rotor inertias stand in ``<transmission>``, and links have their true masses. URDF has no place for offsets,
    couplings and gravity. A comment states gravity that is not the usual one.

    Args:
        robot: The robot.
        path: The file to write; it appears complete or not at all.
        force: Whether an existing file may be replaced.
        allow_unphysical: Whether a robot with negative masses is written all the same.

    Raises:
        ExportError: The file exists, cannot be written, or the robot has numbers a URDF cannot hold, or masses that no
            body has.

    Example:
        >>> dynid.write_urdf(robot, folder / "arm.urdf")
        >>> (folder / "arm.urdf").exists()
        True
    """
    negative = [link.name for link in robot.links if link.inertia.mass < 0.0]
    if negative and not allow_unphysical:
        raise ExportError(
            f"the mass of {', '.join(negative[:3])} is negative, which no simulator accepts",
            path=path,
            remedy="Identify with an estimator of possible bodies ('feasible'), or pass allow_unphysical=True.",
        )
    write_atomically(path, urdf_text(robot, folder=Path(path).parent).encode("utf-8"), force=force)


def urdf_text(robot: Robot, folder: Path | None = None) -> str:
    """The robot as the text of a URDF.

    A robot read from a URDF gets that text back, with changed inertials, frictions and placements of joints put in and
    everything else left byte for byte. Any other robot gets a fresh text. URDF has no place for offsets, couplings and
    gravity; a comment states gravity that is not the usual one. Friction goes into ``<dynamics>`` where the robot has
    `Viscous` or `Coulomb` for the joint, rotor inertias into ``<transmission>``.

    Args:
        robot: The robot.
        folder: Folder that the text is written to: relative names of meshes are turned to lead there from it.
    """
    if robot.source is not None and robot.source.format == "urdf":
        document = parse_document(_GRAVITY_COMMENT.sub("", robot.source.text), robot.source.path)
        links = {element.name: element for element in document.root.all("link")}
        joints = {element.name: element for element in document.root.all("joint")}
        if links.keys() == {link.name for link in robot.links} and joints.keys() == {j.name for j in robot.joints}:
            return _update_text(robot, document, links, joints, folder)
    return "\n".join(_write_lines(robot)) + "\n"


def _update_text(
    robot: Robot, document: XmlDocument, links: dict[str, Element], joints: dict[str, Element], folder: Path | None
) -> str:
    edits = TextEdits(document)
    follow_meshes(edits, document, folder)
    if comment := _gravity_comment(robot):
        edits.insert_first(document.root, comment)
    for link in robot.links:
        element = links[link.name]
        if not is_same_inertia(link.inertia, read_inertia(document, element)):
            _set_inertial(edits, document, element, link.inertia)
    for joint in robot.moving_joints:
        _set_origin(edits, document, joints[joint.name], joint)
        _set_dynamics(edits, document, joints[joint.name], joint)
    update_transmissions(edits, document, robot)
    return edits.apply().decode("utf-8")


def _set_inertial(edits: TextEdits, document: XmlDocument, link: Element, inertia: Inertia) -> None:
    """Put an inertia in place, in the axes the file already uses for it."""
    inertial = document.optional_child(link, "inertial")
    com = centre_of_mass(inertia, link.name)
    if inertial is None:
        edits.insert_first(link, _inertial_lines(inertia, com))
        return
    T_link_inertial = read_origin(document, inertial)
    R = T_link_inertial[:3, :3]
    origin = document.optional_child(inertial, "origin")
    if origin is not None:
        edits.set_numbers(origin, "xyz", com, T_link_inertial[:3, 3])
    elif com.any():
        edits.insert_first(inertial, [start_tag("origin", {"xyz": format_numbers(com), "rpy": "0 0 0"}) + "/>"])
    mass = document.child(inertial, "mass")
    edits.set_numbers(mass, "value", [inertia.mass], [document.number(mass, "value")])
    present, tensor = inertial_tensor(document, inertial), R.T @ inertia.about_com @ R
    for name, place in TENSOR_ATTRIBUTES.items():
        edits.set_numbers(document.child(inertial, "inertia"), name, [tensor[place]], [present[place]])


def _set_origin(edits: TextEdits, document: XmlDocument, element: Element, joint: Joint) -> None:
    """Put a placement in place that is not the one of the file, with rounded angles or exact ones."""
    written = [read_origin(document, element, snap=snap) for snap in (False, True)]
    T = joint.T_parent_joint
    if any(np.abs(T - present).max() <= SAME for present in written):
        return
    placement = {"xyz": format_numbers(T[:3, 3]), "rpy": format_numbers(rpy_from_rotation(T[:3, :3]))}
    origin = document.optional_child(element, "origin")
    if origin is None:
        edits.insert_first(element, [start_tag("origin", placement) + "/>"])
        return
    for name, text in placement.items():
        edits.set_attribute(origin, name, text)


def _set_dynamics(edits: TextEdits, document: XmlDocument, element: Element, joint: Joint) -> None:
    present = read_dynamics(document, element)
    wanted = {name: value for name, value in _friction(joint).items() if value != present[name]}
    dynamics = document.optional_child(element, "dynamics")
    if dynamics is not None:
        for name, value in wanted.items():
            edits.set_attribute(dynamics, name, format_numbers([value]))
    elif wanted:
        edits.insert_first(element, [_dynamics_tag(wanted)])


def _friction(joint: Joint) -> dict[str, float]:
    """Attribute of ``<dynamics>`` -> value, for the terms that the joint has."""
    return {name: term.value for name in DYNAMICS for term in joint.terms if term.urdf_attribute == name}


def _dynamics_tag(friction: dict[str, float]) -> str:
    return start_tag("dynamics", {name: format_numbers([value]) for name, value in friction.items()}) + "/>"


def _gravity_comment(robot: Robot) -> list[str]:
    note = describe_lost_gravity(robot.gravity)
    return [f"<!-- {note} -->"] if note else []


def _write_lines(robot: Robot) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="utf-8"?>'
    rotors = transmission_lines(robot)
    yield start_tag("robot", {"name": robot.name} | (DRAKE if rotors else {})) + ">"
    yield from (f"  {line}" for line in _gravity_comment(robot))
    for link in robot.links:
        tag = start_tag("link", {"name": link.name})
        if link.inertia.vector.any():
            lines = _inertial_lines(link.inertia, centre_of_mass(link.inertia, link.name))
            yield from (f"  {tag}>", *(f"    {line}" for line in lines), "  </link>")
        else:
            yield f"  {tag}/>"
    for joint in robot.joints:
        yield from (f"  {line}" for line in _joint_lines(joint))
    yield from (f"  {line}" for line in rotors)
    yield "</robot>"


def _inertial_lines(inertia: Inertia, com: Floats) -> list[str]:
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
