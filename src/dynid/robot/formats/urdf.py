"""Reading and writing URDF: links and joints with their inertials, limits and friction.

`read_urdf` reads, `write_urdf` and `urdf_text` write. Friction and rotor inertia become *terms* of a joint:
contributions to its torque with one parameter, such as `Viscous`. What the dynamics do not depend on (visuals,
collisions, materials, simulator extensions) is skipped, and meshes are never opened. Conventions (REP-103): SI units;
``rpy`` turns about the fixed axes x, y, z; an ``<inertial>`` has its own frame at the centre of mass, which may be
turned against the link.

A robot that was read from a URDF is written as that text with its new numbers; any other robot as a new file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.errors import ExportError
from dynid.robot.formats.mesh_paths import follow_meshes
from dynid.robot.formats.transmissions import DRAKE, read_transmissions, transmission_lines, update_transmissions
from dynid.robot.formats.xml import (
    Element,
    TextEdits,
    XmlDocument,
    element_lines,
    parse_document,
    read_document,
)
from dynid.robot.inertia import Inertia, centre_of_mass, inertia_about_com, is_same_inertia
from dynid.robot.model import STANDARD_GRAVITY, ModelFile, Robot
from dynid.robot.parts import ROUNDED_RAD, UNBOUNDED, Joint, JointKind, JointLimits, Link, check_held
from dynid.safe_files import write_atomically
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

LOST_GRAVITY = "which the format does not hold: set it where the file is loaded"
"""End of the sentence about gravity that a file does not hold; by it the comment is found again in the text."""
_GRAVITY_COMMENT = re.compile(rf"\r?\n[ \t]*<!-- gravity [^>]*, {LOST_GRAVITY} -->")
_SUPPORTED_KINDS: dict[str, JointKind] = {kind: kind for kind in get_args(JointKind)}
"""Types of joints in URDF that are kinds of joints here."""


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
    return _build_robot(read_document(path), gravity, hold or {}, snap)


def snapped_joints(robot: Robot) -> tuple[str, ...]:
    """List the joints whose right angles are rounded in the robot's URDF, and exact in the robot.

    Example:
        >>> dynid.robot.snapped_joints(robot)  # it does not come from a file
        ()
    """
    joints = {joint.name: joint for joint in robot.joints}
    found = []
    for name, element in _joints_of_source(robot).items():
        exact, written = (read_origin(element, snap=snap)[:3, :3] for snap in (True, False))
        if name in joints and not np.array_equal(exact, written):
            # which of the two the robot has; the placement of a held joint includes its position, and does not show it
            from_exact, from_written = (np.abs(joints[name].T_parent_joint[:3, :3] - R).max() for R in (exact, written))
            if from_exact < from_written or not joints[name].moves:
                found.append(name)
    return tuple(found)


def joints_in_degrees(robot: Robot) -> dict[str, str]:
    """Find joints with an angle above a whole turn in the robot's URDF, probably in degrees: joint -> its ``rpy``."""
    origins = {name: element.optional_child("origin") for name, element in _joints_of_source(robot).items()}
    turned = {name: origin.numbers("rpy", 3, np.zeros(3)) for name, origin in origins.items() if origin}
    return {
        name: " ".join(f"{a:g}" for a in rpy)
        for name, rpy in turned.items()
        if np.abs(rpy).max() > 2.0 * np.pi * (1.0 + ROUNDED_RAD)
    }


def _joints_of_source(robot: Robot) -> dict[str, Element]:
    """Parse the URDF that the robot was read from: joint -> its element; empty for other robots."""
    if robot.source is None or robot.source.format != "urdf":
        return {}
    document = parse_document(robot.source.text, robot.source.path)
    return {element.name: element for element in document.root.all("joint")}


def exact_angle(text: str, value: float) -> float:
    """Find the multiple of pi/2 that a written angle stands for [rad], or return the angle itself.

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
    # digits behind the point; beyond two whole turns, or with an exponent, no right angle is meant
    _, _, behind = text.lower().partition("e")[0].partition(".")
    if not turns or abs(turns) > 4 or len(behind) < 2 or "e" in text.lower():
        return value
    return exact if abs(value - exact) < 10.0 ** -len(behind) else value


def _build_robot(document: XmlDocument, gravity: ArrayLike, hold: Mapping[str, float], snap: bool) -> Robot:
    """Build the robot of a parsed URDF; other arguments as in `read_urdf`."""
    root = document.root
    if root.tag != "robot":
        remedy = "Use read_mjcf." if root.tag == "mujoco" else "Give a file whose outermost element is <robot>."
        raise root.error(f"this is not a URDF: it starts with <{root.tag[:60]}>", remedy)
    for child in root.children:
        if child.tag.startswith("xacro:"):
            raise child.error("this is a xacro file, not yet a URDF", "Expand it: xacro in.xacro > out.urdf.")
    if not root.all("link"):
        raise root.error("the robot has no links", "Expand macros first; give at least one <link>.")
    check_held(hold, [joint.name for joint in root.all("joint")])
    links = tuple(Link(name=link.attribute("name"), inertia=read_inertia(link)) for link in root.all("link"))
    # joint -> rotor inertia at the joint side
    rotors = {name: found.inertia for name, found in read_transmissions(document).items()}
    joints = tuple(_read_joint(element, hold, snap, rotors) for element in root.all("joint"))
    source = ModelFile(path=document.path, format="urdf", text=document.data.decode("utf-8"))
    with root.at():
        return Robot(name=root.name or "robot", links=links, joints=joints, gravity=np.array(gravity), source=source)


def read_inertia(link: Element) -> Inertia:
    """Read the mass properties of a ``<link>`` in the link's frame; zero without ``<inertial>``."""
    inertial = link.optional_child("inertial")
    if inertial is None:
        return Inertia.zero()
    T_link_inertial = read_origin(inertial)
    R = T_link_inertial[:3, :3]
    mass = inertial.child("mass").number("value")
    values = inertial.child("inertia")
    tensor = np.zeros((3, 3))
    for attribute, (row, column) in TENSOR_ATTRIBUTES.items():
        tensor[row, column] = tensor[column, row] = values.number(attribute)
    with inertial.at():
        return inertia_about_com(mass, T_link_inertial[:3, 3], R @ tensor @ R.T)


def read_origin(element: Element, *, snap: bool = False) -> Floats:
    """Read the pose (4, 4) in the ``<origin>`` of an ``<inertial>`` or ``<joint>``; the identity without one.

    Args:
        element: The element that has the origin.
        snap: Whether rounded right angles are taken as exact; see `exact_angle`.
    """
    origin = element.optional_child("origin")
    if origin is None:
        return np.eye(4)
    rpy = origin.numbers("rpy", 3, np.zeros(3))
    words = origin.attributes.get("rpy", "").split()
    if snap and len(words) == 3:
        rpy = np.array([exact_angle(word, value) for word, value in zip(words, rpy.tolist(), strict=True)])
    return transform(rotation_from_rpy(rpy), origin.numbers("xyz", 3, np.zeros(3)))


def _read_joint(element: Element, hold: Mapping[str, float], snap: bool, rotors: Mapping[str, float]) -> Joint:
    """Read a ``<joint>``; ``rotors`` holds the rotor inertia of joints, other arguments as in `read_urdf`."""
    name = element.attribute("name")
    kind = _read_kind(element, hold)
    axis = element.optional_child("axis")
    moves = kind != "fixed"
    # class of a term -> its value
    values = {RotorInertia: rotors.get(name, 0.0)} | {DYNAMICS[key]: x for key, x in read_dynamics(element).items()}
    with element.at():
        joint = Joint(
            name=name,
            kind=kind,
            parent=element.child("parent").attribute("link"),
            child=element.child("child").attribute("link"),
            T_parent_joint=read_origin(element, snap=snap),
            axis=axis.numbers("xyz", 3) if axis and moves else np.array([1.0, 0.0, 0.0]),
            limits=_read_limits(element, kind) if moves else JointLimits(),
            terms=tuple(term(value) for term, value in values.items() if value) if moves else (),
        )
        return joint.held_at(hold[name]) if name in hold else joint


def _read_kind(element: Element, hold: Mapping[str, float]) -> JointKind:
    """Read the kind of a joint; floating and planar joints that are held are fixed.

    Raises:
        DescriptionError: The type is not supported, or the joint mimics another one and is not held.
    """
    kind = element.attribute("type")
    remedy = f"Hold the joint: --hold {element.name}, or read_urdf(path, hold={{{element.name!r}: 0.0}})."
    if kind in ("floating", "planar"):
        if hold.get(element.name) != 0.0:
            raise element.error(f"{kind} joints are not supported", remedy)
        return "fixed"
    if kind not in _SUPPORTED_KINDS:
        known = ", ".join(_SUPPORTED_KINDS)
        raise element.error(f"the joint type '{kind[:60]}' is not known", f"Use one of {known}.")
    if element.all("mimic") and kind != "fixed" and element.name not in hold:
        raise element.error("mimic joints are not supported: their coordinate is not free", remedy)
    return _SUPPORTED_KINDS[kind]


def _read_limits(element: Element, kind: JointKind) -> JointLimits:
    """Read the limits of a moving joint; a bound that the file does not give is infinite."""
    limit = element.optional_child("limit")
    if limit is None:
        return JointLimits()
    bounds = {name: limit.number(name, np.inf, infinite=True) for name in ("velocity", "acceleration", "effort")}
    if kind != "continuous" and not limit.attributes.keys().isdisjoint(("lower", "upper")):
        # the URDF specification: a bound that is left out is 0
        bounds |= {name: limit.number(name, 0.0, infinite=True) for name in ("lower", "upper")}
    unbounded = {name: np.copysign(np.inf, bound) for name, bound in bounds.items() if abs(bound) >= UNBOUNDED}
    with limit.at():
        return JointLimits(**(bounds | unbounded))


def read_dynamics(joint: Element) -> dict[str, float]:
    """Read damping and friction of a ``<joint>``: attribute of ``<dynamics>`` -> value, 0 where the file gives none."""
    dynamics = joint.optional_child("dynamics")
    return {name: 0.0 if dynamics is None else dynamics.number(name, 0.0) for name in DYNAMICS}


def write_urdf(
    robot: Robot, path: str | os.PathLike[str], *, force: bool = False, allow_unphysical: bool = False
) -> None:
    """Write a robot as a URDF file; see `urdf_text`.

    Args:
        robot: The robot.
        path: The file to write; it appears complete or not at all.
        force: Whether an existing file may be replaced.
        allow_unphysical: Whether to write a robot with negative masses.

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
    """Write the text of a URDF.

    A robot read from a URDF gets that text back, with changed inertials, frictions, limits and placements of joints put
    in and everything else left byte for byte. Any other robot gets a new text. URDF has no place for offsets, couplings
    and gravity; a comment states gravity that is not the usual one. Friction goes into ``<dynamics>`` where
    the robot has `Viscous` or `Coulomb` for the joint, rotor inertias into ``<transmission>``.

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
    """Write the text that a robot was read from, with the numbers that have changed.

    Args:
        robot: The robot.
        document: That text, parsed.
        links: Link -> its element.
        joints: Joint -> its element.
        folder: As in `urdf_text`.
    """
    edits = TextEdits(document)
    if folder is not None:
        follow_meshes(edits, document, folder)
    edits.insert_first(document.root, _gravity_comment(robot))
    for link in robot.links:
        if not is_same_inertia(link.inertia, read_inertia(links[link.name])):
            edits.set_child(links[link.name], "inertial", _inertial_lines(link))
    for joint in robot.moving_joints:
        element = joints[joint.name]
        # poses in the file, with the angles as written and as exact right angles: a changed joint has neither
        present = [read_origin(element, snap=snap) for snap in (False, True)]
        if all(np.abs(joint.T_parent_joint - T).max() > SAME for T in present):
            _set_child(edits, element, "origin", _origin_attributes(joint))
        written = read_dynamics(element)
        friction = {name: value for name, value in _friction_attributes(joint).items() if value != written[name]}
        _set_child(edits, element, "dynamics", friction)
        known = _read_limits(element, joint.kind)
        changed = {
            name: value
            for name, value in _limit_attributes(joint.limits, joint.kind).items()
            if getattr(known, name) != value
        }
        _set_child(edits, element, "limit", _replace_infinity(changed))
    update_transmissions(edits, document, robot)
    return edits.apply().decode("utf-8")


def _set_child(edits: TextEdits, element: Element, tag: str, attributes: Mapping[str, ArrayLike]) -> None:
    """Set attributes of the child with that tag; without such a child insert one with them."""
    child = element.optional_child(tag)
    if child is None and attributes:
        edits.insert_first(element, element_lines(tag, attributes))
    elif child is not None:
        for name, values in attributes.items():
            edits.set_attribute(child, name, values)


def _origin_attributes(joint: Joint) -> dict[str, Floats]:
    """Make the attributes of the ``<origin>`` of a joint."""
    T = joint.T_parent_joint
    return {"xyz": T[:3, 3], "rpy": rpy_from_rotation(T[:3, :3])}


def _friction_attributes(joint: Joint) -> dict[str, float]:
    """Make the attributes of ``<dynamics>`` for the terms that the joint has."""
    return {name: term.value for name in DYNAMICS for term in joint.terms if term.urdf_attribute == name}


def _limit_attributes(limits: JointLimits, kind: str) -> dict[str, float]:
    """Make the attributes of ``<limit>``; values may be infinite."""
    names = [*(() if kind == "continuous" else ("lower", "upper")), "effort", "velocity"]
    names += ["acceleration"] if np.isfinite(limits.acceleration) else []
    return {name: getattr(limits, name) for name in names}


def _replace_infinity(limits: Mapping[str, float]) -> dict[str, ArrayLike]:
    """Put the large number that means no limit in place of infinity, which URDF cannot state."""
    return {name: np.clip(value, -UNBOUNDED, UNBOUNDED) for name, value in limits.items()}


def describe_lost_gravity(gravity: ArrayLike) -> str:
    """Write a sentence about gravity (3,) [m/s^2] for a format that does not hold it; empty for standard gravity.

    Example:
        >>> from dynid.robot.formats.urdf import describe_lost_gravity
        >>> describe_lost_gravity([0.0, 0.0, 9.81])
        'gravity (0, 0, 9.81) m/s^2, which the format does not hold: set it where the file is loaded'
        >>> describe_lost_gravity([0.0, 0.0, -9.81])
        ''
    """
    if np.array_equal(gravity, STANDARD_GRAVITY):
        return ""
    return f"gravity ({', '.join(f'{value:.6g}' for value in np.asarray(gravity))}) m/s^2, {LOST_GRAVITY}"


def _gravity_comment(robot: Robot) -> list[str]:
    """Write a comment about gravity that is not standard, as a list of one line; otherwise of none."""
    return [f"<!-- {note} -->" for note in [describe_lost_gravity(robot.gravity)] if note]


def _write_lines(robot: Robot) -> list[str]:
    """Write the lines of a new URDF."""
    rotors = transmission_lines(robot)
    inside = _gravity_comment(robot)
    for link in robot.links:
        inertial = _inertial_lines(link) if link.inertia.vector.any() else []
        inside += element_lines("link", {"name": link.name}, inertial)
    for joint in robot.joints:
        inside += _joint_lines(joint)
    attributes = {"name": robot.name} | (DRAKE if rotors else {})
    return ['<?xml version="1.0" encoding="utf-8"?>', *element_lines("robot", attributes, [*inside, *rotors])]


def _inertial_lines(link: Link) -> list[str]:
    """Write the element ``<inertial>`` of a link, parallel to the link's frame at the centre of mass."""
    tensor = link.inertia.about_com
    parts: dict[str, Mapping[str, ArrayLike]] = {
        "origin": {"xyz": centre_of_mass(link.inertia, link.name), "rpy": np.zeros(3)},
        "mass": {"value": link.inertia.mass},
        "inertia": {name: tensor[place] for name, place in TENSOR_ATTRIBUTES.items()},
    }
    return element_lines("inertial", {}, (line for tag in parts for line in element_lines(tag, parts[tag])))


def _joint_lines(joint: Joint) -> list[str]:
    """Write the element ``<joint>``."""
    limits = joint.limits
    unlimited = joint.kind == "revolute" and np.isinf([limits.lower, limits.upper]).all()
    kind = "continuous" if unlimited else joint.kind
    parts: dict[str, Mapping[str, str | ArrayLike]] = {
        "origin": _origin_attributes(joint),
        "parent": {"link": joint.parent},
        "child": {"link": joint.child},
    }
    if joint.moves:
        parts["axis"] = {"xyz": joint.axis}
        if kind != "continuous" or limits != JointLimits():
            parts["limit"] = _replace_infinity(_limit_attributes(limits, kind))
        if _friction_attributes(joint):
            parts["dynamics"] = _friction_attributes(joint)
    inside = (line for tag in parts for line in element_lines(tag, parts[tag]))
    return element_lines("joint", {"name": joint.name, "type": kind}, inside)
