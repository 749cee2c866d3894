"""Writing MJCF, MuJoCo's format: new numbers in the text a robot was read from, or a new file for any other robot.

`mjcf_text` decides: `_update_text` changes the text of a file, `_write_lines` writes a new one. A *term* is a
contribution to the joint torques with one parameter; friction and rotor inertia are attributes of ``<joint>``, a few
others become tendons (`dynid.robot.formats.mjcf.tendons`).
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dynid.array_types import Floats
from dynid.decompositions import eigvalsh
from dynid.errors import ExportError
from dynid.robot.formats.mesh_paths import follow_meshes
from dynid.robot.formats.mjcf.bodies import JOINT_TERMS
from dynid.robot.formats.mjcf.read import MjcfModel, read_model, robot_with_tendons
from dynid.robot.formats.mjcf.tendons import TendonText, tendon_text
from dynid.robot.formats.xml import TextEdits, element_lines, parse_document
from dynid.robot.inertia import Inertia, centre_of_mass, is_same_inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Joint
from dynid.safe_files import write_atomically
from dynid.spatial import SAME, inverse_transform
from dynid.terms.motors import Offset
from dynid.terms.springs import AngleHarmonic

_SMALLEST = 1e-12
"""Smallest principal moment [kg m^2] and mass [kg] that are written (effect: MuJoCo refuses bodies below 1e-14 and
1e-15). Links without mass get as much, which changes no torque that a log shows."""


def write_mjcf(robot: Robot, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a robot as an MJCF file; see `mjcf_text`.

    Args:
        robot: The robot.
        path: The file to write; it appears complete or not at all.
        force: Whether an existing file may be replaced.

    Raises:
        ExportError: The file exists, cannot be written, or the robot has numbers an MJCF cannot hold.

    Example:
        >>> dynid.write_mjcf(robot, folder / "arm.xml")
        >>> (folder / "arm.xml").exists()
        True
    """
    write_atomically(path, mjcf_text(robot, folder=Path(path).parent).encode("utf-8"), force=force)


def mjcf_text(robot: Robot, folder: Path | None = None) -> str:
    """Write the text of an MJCF.

    A robot read from an MJCF gets that text back, with changed inertials, armatures, dampings, friction losses, tendons
    and gravity put in and everything else left byte for byte. Any other robot gets a fresh text. Coupled motors need
    MuJoCo 3.3.1. MJCF has no place for other terms, and for limits of velocity and acceleration.

    Args:
        robot: The robot.
        folder: Folder that the text is written to: relative folders of assets are turned to lead there from it.
    """
    if robot.source is not None and robot.source.format == "mjcf":
        # joints that were fixed when the file was read must be fixed again: joint -> position
        held = {joint.name: 0.0 for joint in robot.joints if not joint.moves}
        model = read_model(parse_document(robot.source.text, robot.source.path), held)
        if {link.name for link in model.links} == {link.name for link in robot.links}:
            return _update_text(robot, model, folder, held)
    tendons = tendon_text(robot, _name_maker(()), [link.name for link in robot.links])
    return "\n".join(_write_lines(robot, tendons)) + "\n"


def _name_maker(taken: Iterable[str]) -> Callable[[str], str]:
    """Make a function that appends underscores to a name until it is unique among the taken and the claimed ones."""
    known = set(taken)

    def claim(name: str) -> str:
        while name in known:
            name += "_"
        known.add(name)
        return name

    return claim


def _update_text(robot: Robot, model: MjcfModel, folder: Path | None, held: dict[str, float]) -> str:
    """Write the text that a robot was read from, with the numbers that have changed.

    Args:
        robot: The robot.
        model: The model in that text.
        folder: As in `mjcf_text`.
        held: Joint that does not move -> 0.
    """
    edits = TextEdits(model.document)
    if folder is not None:
        follow_meshes(edits, model.document, folder)
    present = {link.name: link.inertia for link in model.links}
    for name, body in model.bodies.items():
        inertia = _inertia_with_frames(robot, name, model.frames[name])
        if not is_same_inertia(inertia, present[name]):
            if model.settings.inertia_from_geom == "true":
                remedy = 'Set inertiafromgeom="auto" in the model file and read it again.'
                raise ExportError("inertiafromgeom makes MuJoCo ignore <inertial>", path=body.path, remedy=remedy)
            edits.set_child(body, "inertial", _inertial_lines(inertia, name))
    subtract = _update_tendons(edits, robot, model, held)
    for joint in robot.moving_joints:
        element = model.joint_elements[joint.name]
        for attribute, value in _friction_attributes(joint, subtract.get(joint.name, {})).items():
            given = element.number(attribute, 0.0)
            # a difference of two numbers has rounding errors; any other number is written if it differs at all
            tolerance = SAME if joint.name in subtract else 0.0
            if abs(value - given) > tolerance * abs(given):
                edits.set_attribute(element, attribute, value)
    if not np.array_equal(robot.gravity, model.settings.gravity):
        options = model.document.root.all("option")
        if any(flag.attributes.get("gravity") == "disable" for option in options for flag in option.all("flag")):
            remedy = "Take the flag out of the MJCF file first."
            raise ExportError("the file switches gravity off by a flag", remedy=remedy)
        if options:
            edits.set_attribute(options[-1], "gravity", robot.gravity)
        else:
            edits.insert_first(model.document.root, element_lines("option", {"gravity": robot.gravity}))
    return edits.apply().decode("utf-8")


def _update_tendons(
    edits: TextEdits, robot: Robot, model: MjcfModel, held: dict[str, float]
) -> Mapping[str, Mapping[str, float]]:
    """Replace the tendons of the text if those of the robot differ.

    Returns:
        `TendonText.subtract`, joint -> attribute -> number: what tendons add to damping and armature of joints.
    """
    document = model.document
    before = robot_with_tendons(model, held)
    taken = {element.name for element in document.root.walk() if element.tag in ("fixed", "spatial", "site")}
    unique_name = _name_maker(taken - {element.name for element in before.elements})
    text = tendon_text(robot, unique_name, [*model.bodies, "world"])
    if _tendon_numbers(robot) == _tendon_numbers(before.robot):
        return text.subtract
    for element in before.elements:
        edits.remove_element(element)
    for link, lines in text.sites.items():
        holder = model.bodies.get(link) or document.root.all("worldbody")[0]
        edits.insert_first(holder, lines)
    if text.lines:
        edits.insert_last(document.root, element_lines("tendon", {}, text.lines))
    return text.subtract


def _tendon_numbers(robot: Robot) -> list[object]:
    """Collect the numbers that tendons are made from, rounded so that reading and writing do not change them."""
    found: list[tuple[object, list[float]]] = [
        ((joint.name, repr(term.with_value(0.0))), [term.value])
        for joint in robot.moving_joints
        for term in joint.terms
        if isinstance(term, Offset | AngleHarmonic) and term.value
    ]
    for coupling in robot.couplings:
        values = [float(term.value) for term in coupling.terms]
        if any(values):
            found.append((tuple(coupling.ratios), [*coupling.ratios.values(), *values]))
    return [(what, [f"{value:.9g}" for value in values]) for what, values in found]


def _inertia_with_frames(robot: Robot, link: str, frames: list[str]) -> Inertia:
    """Add up the inertia of a link and of the links between the joints of its MJCF body, in the link's frame.

    Args:
        robot: The robot.
        link: The link of the MJCF body.
        frames: The links between its joints, which were massless in the file.

    Raises:
        ExportError: One of these has inertia now and moves against the link.
    """
    total = robot.link(link).inertia
    body, T_body_link = robot.link_body(link)
    for frame in frames:
        part = robot.link(frame).inertia
        body_of_frame, T_body_frame = robot.link_body(frame)
        if body_of_frame == body:
            total += part.in_frame(inverse_transform(T_body_link) @ T_body_frame)
        elif not is_same_inertia(total + part, total):
            raise ExportError(
                "a body with several joints has inertia between them, which MJCF cannot hold",
                place=f"link '{frame}'",
                remedy="Move that inertia to the body, or write a URDF.",
            )
    return total


def _inertial_lines(inertia: Inertia, link: str) -> list[str]:
    """Write ``<inertial>``; a link without mass gets the smallest moments and mass that MuJoCo accepts."""
    tensor = inertia.about_com
    tensor = tensor + max(0.0, _SMALLEST - float(eigvalsh(tensor)[0])) * np.eye(3)
    mass = inertia.mass if abs(inertia.mass) > _SMALLEST else _SMALLEST
    pos = centre_of_mass(inertia, link)
    order = [*np.diag(tensor), *tensor[np.triu_indices(3, 1)]]  # M11 M22 M33 M12 M13 M23
    return element_lines("inertial", {"pos": pos, "mass": mass, "fullinertia": order})


def _friction_attributes(joint: Joint, elsewhere: Mapping[str, float]) -> dict[str, float]:
    """Make the attributes of ``<joint>`` for friction and rotor inertia.

    Args:
        joint: The joint.
        elsewhere: Attribute -> part of its value that tendons hold, which is subtracted.

    Returns:
        Attribute -> value, for the terms that the joint has.
    """
    found: dict[str, float] = {}
    for attribute, kind in JOINT_TERMS.items():
        values = [term.value for term in joint.terms if type(term) is kind]
        if values or elsewhere.get(attribute):
            found[attribute] = sum(values) - elsewhere.get(attribute, 0.0)
    return found


def _write_lines(robot: Robot, tendons: TendonText) -> list[str]:
    """Write the lines of a new file."""
    compiler = {"angle": "radian", "autolimits": "true", "inertiafromgeom": "false"}
    inside = element_lines("compiler", compiler) + element_lines("option", {"gravity": robot.gravity})
    inside += element_lines("worldbody", {}, _tree_lines(_with_possible_inertias(robot), tendons))
    if tendons.lines:
        inside += element_lines("tendon", {}, tendons.lines)
    return element_lines("mujoco", {"model": robot.name}, inside)


def _tree_lines(robot: Robot, tendons: TendonText) -> list[str]:
    """Write the lines of all bodies, nested as the robot's tree.

    They are made from the last body to the first, so that the lines of a body's children are ready when it is written.
    """
    outgoing: dict[str, list[Joint]] = defaultdict(list)
    for joint in robot.joints:
        outgoing[joint.parent].append(joint)
    order: list[tuple[str, list[Joint]]] = [(robot.root, [])]  # link of a body, and the joints to it from its parent
    following = {}  # link of a body -> such pairs of its child bodies
    for link, _ in order:  # the list grows in the loop; no recursion, for chains may be longer than the call stack
        following[link] = [_joints_to_body(robot, outgoing, joint) for joint in outgoing[link]]
        order += following[link]
    lines: dict[str, list[str]] = {}
    for link, joints in reversed(order):
        inside = [*tendons.sites.get(link, ()), *(line for child, _ in following[link] for line in lines.pop(child))]
        is_world = link == robot.root == "world"
        lines[link] = inside if is_world else _body_lines(robot, link, joints, tendons, inside)
    return lines[robot.root]


def _with_possible_inertias(robot: Robot) -> Robot:
    """Add the inertia of links that are physically impossible alone to the link of the body that they are fixed to.

    MuJoCo refuses the tensor of such a link even where it is fixed to another one and both together are possible. The
    moving bodies stay the same.
    """
    found = {link.name: link.inertia for link in robot.links}
    for name in found.keys() - {name for body in robot.bodies for name, _ in body.members}:
        found[name] = found[name] if found[name].is_physical else Inertia.zero()  # it never moves
    for body in robot.bodies:
        (main, _), *others = body.members
        wrong = [(name, T) for name, T in others if not (found[name].is_physical and found[main].is_physical)]
        for name, T_body_link in wrong if body.inertia.is_physical else ():
            found[main] += found[name].in_frame(T_body_link)
            found[name] = Inertia.zero()
    return replace(robot, links=tuple(replace(link, inertia=found[link.name]) for link in robot.links))


def _joints_to_body(robot: Robot, outgoing: dict[str, list[Joint]], first: Joint) -> tuple[str, list[Joint]]:
    """Find the next link that becomes an MJCF body, and the joints to it, beginning with ``first``.

    MuJoCo refuses a moving body without mass: a massless link between two moving joints is left out, and both joints
    belong to the body behind it.
    """
    joints = [first]
    while joints[-1].moves and not robot.link(joints[-1].child).inertia.vector.any():
        following = outgoing[joints[-1].child]
        if len(following) != 1 or not following[0].moves:
            break
        joints.append(following[0])
    return joints[-1].child, joints


def _body_lines(robot: Robot, link: str, joints: list[Joint], tendons: TendonText, inside: list[str]) -> list[str]:
    """Write the element ``<body>`` of a link.

    Args:
        robot: The robot.
        link: The link.
        joints: The joints between it and its parent body, in this order; empty for the root.
        tendons: Tendons that hold a part of the joints' friction.
        inside: Lines of its sites and child bodies.
    """
    # MJCF states all joints of a body in the body's frame at q = 0: from the last joint back to the parent
    T_body_joint = np.eye(4)
    joint_lines = list[str]()
    for joint in reversed(joints):
        if joint.moves:
            attributes = _joint_attributes(joint, T_body_joint, tendons.subtract.get(joint.name, {}))
            joint_lines = element_lines("joint", attributes) + joint_lines
        T_body_joint = T_body_joint @ inverse_transform(joint.T_parent_joint)
    T = inverse_transform(T_body_joint)
    quaternion = Rotation.from_matrix(T[:3, :3]).as_quat(canonical=True, scalar_first=True)
    pose = {"pos": T[:3, 3], "quat": quaternion} if joints else {}
    inertia = robot.link(link).inertia
    inertial = _inertial_lines(inertia, link) if inertia.vector.any() else []
    return element_lines("body", {"name": link, **pose}, [*inertial, *joint_lines, *inside])


def _joint_attributes(joint: Joint, T_body_joint: Floats, elsewhere: Mapping[str, float]) -> dict[str, str | ArrayLike]:
    """Make the attributes of ``<joint>``.

    Args:
        joint: The joint.
        T_body_joint: (4, 4) pose of the joint at q = 0 in the frame of the MJCF body.
        elsewhere: As in `_friction_attributes`.
    """
    limits = joint.limits
    found: dict[str, str | ArrayLike] = {
        "name": joint.name,
        "type": "slide" if joint.kind == "prismatic" else "hinge",
        "axis": T_body_joint[:3, :3] @ joint.axis,
    }
    if T_body_joint[:3, 3].any():
        found["pos"] = T_body_joint[:3, 3]
    if np.isfinite([limits.lower, limits.upper]).all() and joint.kind != "continuous":
        found["range"] = [limits.lower, limits.upper]
    if np.isfinite(limits.effort) and limits.effort > 0.0:
        found["actuatorfrcrange"] = [-limits.effort, limits.effort]
    return found | _friction_attributes(joint, elsewhere)
