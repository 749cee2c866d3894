"""Writing MJCF: new numbers in the text a robot came from, or a fresh file for a robot that came from elsewhere."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from dynid.arrays import Floats
from dynid.decompositions import eigh, eigvalsh
from dynid.errors import ExportError
from dynid.files import write_atomically
from dynid.robot.formats.mesh_paths import follow_assets
from dynid.robot.formats.mjcf.bodies import JOINT_TERMS
from dynid.robot.formats.mjcf.mjcf_settings import ORIENTATIONS, MjcfSettings
from dynid.robot.formats.mjcf.read import MjcfModel, read_model, tendon_terms
from dynid.robot.formats.mjcf.tendons import TendonText, tendon_text
from dynid.robot.formats.xml import Element, TextEdits, format_numbers, parse_document, start_tag
from dynid.robot.inertia import Inertia, centre_of_mass, is_same_inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Joint
from dynid.spatial import ROUNDING, SAME, inverse_transform
from dynid.terms.motors import Offset
from dynid.terms.springs import AngleHarmonic

_UPPER = ([0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2])  # MuJoCo's order: M11 M22 M33 M12 M13 M23


_SMALLEST_MOMENT, _SMALLEST_MASS = 1e-12, 1e-12
"""Principal moment [kg m^2] and mass [kg] below which MuJoCo refuses a body (it needs 1e-14 and 1e-15); a dummy link
gets as much, which no torque shows."""


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
    """The robot as the text of an MJCF.

    A robot read from an MJCF gets that text back, with changed inertials, armatures, dampings, friction losses, tendons
    and gravity put in and everything else left byte for byte. Any other robot gets a fresh text. Coupled motors need
    MuJoCo 3.3.1, friction that grows with powers of the speed 3.7. MJCF has no place for other terms, and for limits of
    velocity and acceleration.

    Args:
        robot: The robot.
        folder: Folder that the text is written to: relative folders of assets are turned to lead there from it.
    """
    if robot.source is not None and robot.source.format == "mjcf":
        held = {joint.name: 0.0 for joint in robot.joints if not joint.moves}
        model = read_model(parse_document(robot.source.text, robot.source.path), held)
        if {link.name for link in model.links} == {link.name for link in robot.links}:
            return _update_text(robot, model, folder, held)
    return "\n".join(_write_lines(robot, tendon_text(robot, _name_maker(())))) + "\n"


def _name_maker(taken: Iterable[str]) -> Callable[[str], str]:
    """A function that puts underscores behind a name until nothing else has it."""
    known = set(taken)

    def claim(name: str) -> str:
        while name in known:
            name += "_"
        known.add(name)
        return name

    return claim


def _update_text(robot: Robot, model: MjcfModel, folder: Path | None, held: dict[str, float]) -> str:
    edits = TextEdits(model.document)
    follow_assets(edits, model.document, folder)
    present = {link.name: link.inertia for link in model.links}
    for name, body in model.bodies.items():
        inertia = _with_frames(robot, name, model.frames[name])
        if not is_same_inertia(inertia, present[name]):
            _set_inertial(edits, model.settings, body, name, inertia)
    own = _update_tendons(edits, robot, model, held)
    for joint in robot.moving_joints:
        element = model.joint_elements[joint.name]
        for attribute, values in _friction(joint, own.get(joint.name, {})).items():
            text = model.document.number_list(element, attribute) if attribute in element.attributes else np.zeros(1)
            given = _without_last_zeros(text.tolist())
            is_rounding = joint.name in own and np.allclose(*_same_length(values, given), rtol=SAME, atol=0.0)
            edits.set_numbers(element, attribute, given if is_rounding else values, given)
    if not np.array_equal(robot.gravity, model.settings.gravity):
        _set_gravity(edits, model, robot.gravity)
    return edits.apply().decode("utf-8")


def _update_tendons(
    edits: TextEdits, robot: Robot, model: MjcfModel, held: dict[str, float]
) -> Mapping[str, Mapping[str, float]]:
    """Write the tendons anew where they differ from those of the file; what they add to the joints' own numbers."""
    document = model.document
    before = tendon_terms(model, held)
    taken = {element.name for element in document.root.walk() if element.tag in ("fixed", "spatial", "site")}
    claim = _name_maker(taken - {element.name for element in before.elements})
    text = tendon_text(robot, claim, [*model.bodies, "world"])
    if _tendon_numbers(robot) == _tendon_numbers(before.robot):
        return text.own
    for element in before.elements:
        edits.remove_element(element)
    for link, lines in text.sites.items():
        holder = model.bodies.get(link) or document.root.all("worldbody")[0]
        edits.insert_first(holder, lines)
    if text.lines:
        edits.insert_last(document.root, ["<tendon>", *(f"  {line}" for line in text.lines), "</tendon>"])
    return text.own


def _tendon_numbers(robot: Robot) -> list[object]:
    """What the tendons of a robot are made from, rounded so that reading and writing do not change it."""
    local = [
        (joint.name, repr(term.with_value(0.0)), _rounded(term.value))
        for joint in robot.moving_joints
        for term in joint.terms
        if isinstance(term, Offset | AngleHarmonic) and term.value
    ]
    motors = [
        ({name: _rounded(ratio) for name, ratio in c.ratios.items()}, *(_rounded(t.value) for t in c.terms))
        for c in robot.couplings
        if any(term.value for term in c.terms)
    ]
    return [local, motors]


def _rounded(value: float) -> str:
    return f"{value:.9g}"


def _without_last_zeros(numbers: list[float]) -> list[float]:
    while len(numbers) > 1 and not numbers[-1]:
        numbers = numbers[:-1]
    return numbers


def _same_length(a: list[float], b: list[float]) -> tuple[list[float], list[float]]:
    size = max(len(a), len(b))
    return [*a, *[0.0] * (size - len(a))], [*b, *[0.0] * (size - len(b))]


def _set_gravity(edits: TextEdits, model: MjcfModel, gravity: Floats) -> None:
    options = model.document.root.all("option")
    if any(flag.attributes.get("gravity") == "disable" for option in options for flag in option.all("flag")):
        raise ExportError("the file switches gravity off by a flag", remedy="Take the flag out of the MJCF file first.")
    if options:
        edits.set_attribute(options[-1], "gravity", format_numbers(gravity))
    else:
        edits.insert_first(model.document.root, [start_tag("option", {"gravity": format_numbers(gravity)}) + "/>"])


def _with_frames(robot: Robot, link: str, frames: list[str]) -> Inertia:
    """Inertia of a body's link with what has been given to the massless links of its joints."""
    total = robot.link(link).inertia
    index, T_body_link = robot.link_body(link)
    for frame in frames:
        part = robot.link(frame).inertia
        own, T_body_frame = robot.link_body(frame)
        if own == index:
            total += part.in_frame(inverse_transform(T_body_link) @ T_body_frame)
        elif not is_same_inertia(total + part, total):
            raise ExportError(
                "a body with several joints has inertia between them, which MJCF cannot hold",
                place=f"link '{frame}'",
                remedy="Move that inertia to the body, or write a URDF.",
            )
    return total


def _set_inertial(edits: TextEdits, settings: MjcfSettings, body: Element, name: str, inertia: Inertia) -> None:
    """Put an inertia in place, in the form the file already uses for it."""
    document = settings.document
    if settings.inertia_from_geom == "true":
        remedy = 'Set inertiafromgeom="auto" in the model file and read it again.'
        raise ExportError("inertiafromgeom makes MuJoCo ignore <inertial>", path=document.path, remedy=remedy)
    com, (mass, tensor) = centre_of_mass(inertia, name), _accepted(inertia)
    inertial = document.optional_child(body, "inertial")
    if inertial is None:
        edits.insert_first(body, [start_tag("inertial", _inertial_attributes(inertia, com)) + "/>"])
        return
    edits.set_numbers(inertial, "pos", com, document.numbers(inertial, "pos", 3))
    edits.set_numbers(inertial, "mass", [mass], [document.number(inertial, "mass")])
    if "fullinertia" in inertial.attributes:
        present = document.numbers(inertial, "fullinertia", 6)
        edits.set_numbers(inertial, "fullinertia", tensor[_UPPER], present)
        return
    R = settings.rotation(inertial)
    moments = R.T @ tensor @ R
    if np.linalg.norm(moments - np.diag(np.diag(moments))) > ROUNDING * np.linalg.norm(moments):
        moments, R = _principal(tensor)
        for orientation in ORIENTATIONS:
            if orientation != "quat":
                edits.remove_attribute(inertial, orientation)
        edits.set_attribute(inertial, "quat", format_numbers(_quaternion(R)))
    present = document.numbers(inertial, "diaginertia", 3, np.zeros(3))
    edits.set_numbers(inertial, "diaginertia", np.diag(moments), present)


def _inertial_attributes(inertia: Inertia, com: Floats) -> dict[str, str]:
    mass, tensor = _accepted(inertia)
    numbers: dict[str, Iterable[float]] = {"pos": com, "mass": [mass], "fullinertia": tensor[_UPPER]}
    return {name: format_numbers(values) for name, values in numbers.items()}


def _accepted(inertia: Inertia) -> tuple[float, Floats]:
    """Mass [kg] and tensor about the centre of mass (3, 3) [kg m^2] that MuJoCo accepts, an empty dummy link's too."""
    tensor = inertia.about_com
    tensor = tensor + max(0.0, _SMALLEST_MOMENT - float(eigvalsh(tensor)[0])) * np.eye(3)
    return inertia.mass if abs(inertia.mass) > _SMALLEST_MASS else _SMALLEST_MASS, tensor


def _principal(tensor: Floats) -> tuple[Floats, Floats]:
    """Principal moments (3, 3), largest first, and the axes (3, 3) as columns of a rotation."""
    moments, axes = eigh(tensor)
    axes = axes[:, ::-1] * [1.0, 1.0, 1.0]
    axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
    return np.diag(moments[::-1]), axes


def _quaternion(R: Floats) -> Floats:
    """Quaternion w, x, y, z of a rotation, with w not negative."""
    return np.asarray(np.roll(Rotation.from_matrix(R).as_quat(canonical=True), 1))


def _friction(joint: Joint, elsewhere: Mapping[str, float]) -> dict[str, list[float]]:
    """Attribute of ``<joint>`` -> numbers, for the terms that the joint has, less what its tendons hold."""
    found: dict[str, list[float]] = {}
    for attribute, kinds in JOINT_TERMS.items():
        terms = [term for term in joint.terms if term.mjcf_attribute == attribute]
        if terms or elsewhere.get(attribute):
            numbers = [sum(term.value for term in terms if type(term) is kind) for kind in kinds]
            numbers[0] -= elsewhere.get(attribute, 0.0)
            found[attribute] = _without_last_zeros([float(number) for number in numbers])
    return found


def _write_lines(robot: Robot, tendons: TendonText) -> Iterator[str]:
    yield start_tag("mujoco", {"model": robot.name}) + ">"
    yield '  <compiler angle="radian" autolimits="true" inertiafromgeom="false"/>'
    yield "  " + start_tag("option", {"gravity": format_numbers(robot.gravity)}) + "/>"
    yield "  <worldbody>"
    robot = _with_written_inertias(robot)
    outgoing: dict[str, list[Joint]] = defaultdict(list)
    for joint in robot.joints:
        outgoing[joint.parent].append(joint)
    # a stack of bodies to open (depth) and to close (-depth): chains may be longer than the call stack
    waiting: list[tuple[int, str, list[Joint]]] = [(2, robot.root, [])]
    if robot.root == "world":
        waiting = [(2, *_joints_to_body(robot, outgoing, joint)) for joint in reversed(outgoing["world"])]
        yield from (f"    {line}" for line in tendons.sites["world"])
    while waiting:
        depth, link, joints = waiting.pop()
        if depth < 0:
            yield "  " * -depth + "</body>"
            continue
        yield from ("  " * depth + line for line in _body_lines(robot, link, joints, tendons))
        waiting.append((-depth, link, []))
        waiting += [(depth + 1, *_joints_to_body(robot, outgoing, joint)) for joint in reversed(outgoing[link])]
    yield "  </worldbody>"
    if tendons.lines:
        yield from ("  <tendon>", *(f"    {line}" for line in tendons.lines), "  </tendon>")
    yield "</mujoco>"


def _with_written_inertias(robot: Robot) -> Robot:
    """The same moving bodies, where links that cannot exist by themselves are part of the link that moves them.

    MuJoCo refuses the tensor of such a dummy link even where it is fixed to another one, and both together can exist.
    """
    found = {link.name: link.inertia for link in robot.links}
    for name in found.keys() - {name for body in robot.bodies for name, _ in body.members}:
        found[name] = found[name] if found[name].is_physical else Inertia.zero()  # it never moves
    for body in robot.bodies:
        (own, _), *others = body.members
        wrong = [(name, T) for name, T in others if not (found[name].is_physical and found[own].is_physical)]
        for name, T_body_link in wrong if body.inertia.is_physical else ():
            found[own], found[name] = found[own] + found[name].in_frame(T_body_link), Inertia.zero()
    return replace(robot, links=tuple(replace(link, inertia=found[link.name]) for link in robot.links))


def _joints_to_body(robot: Robot, outgoing: dict[str, list[Joint]], first: Joint) -> tuple[str, list[Joint]]:
    """The next link that becomes a body, and the joints to it.

    MuJoCo refuses a moving body without mass; a massless link between two moving joints is left out, and its joints go
    to the body behind it.
    """
    joints = [first]
    while joints[-1].moves and not robot.link(joints[-1].child).inertia.vector.any():
        following = outgoing[joints[-1].child]
        if len(following) != 1 or not following[0].moves:
            break
        joints.append(following[0])
    return joints[-1].child, joints


def _body_lines(robot: Robot, link: str, joints: list[Joint], tendons: TendonText) -> Iterator[str]:
    """Start of a body: its tag, inertial, joints and the ends of springs."""
    T_body_joint, attributes = np.eye(4), []
    for joint in reversed(joints):
        attributes.append(_joint_attributes(joint, T_body_joint, tendons.own.get(joint.name, {})))
        T_body_joint = T_body_joint @ inverse_transform(joint.T_parent_joint)
    T_parent_body = inverse_transform(T_body_joint)
    pose = {"pos": T_parent_body[:3, 3], "quat": _quaternion(T_parent_body[:3, :3])} if joints else {}
    yield start_tag("body", {"name": link} | {name: format_numbers(values) for name, values in pose.items()}) + ">"
    inertia = robot.link(link).inertia
    if inertia.vector.any():
        yield "  " + start_tag("inertial", _inertial_attributes(inertia, centre_of_mass(inertia, link))) + "/>"
    moving = [values for joint, values in zip(joints, reversed(attributes), strict=True) if joint.moves]
    yield from ("  " + start_tag("joint", values) + "/>" for values in moving)
    yield from (f"  {line}" for line in tendons.sites.get(link, ()))


def _joint_attributes(joint: Joint, T_body_joint: Floats, elsewhere: Mapping[str, float]) -> dict[str, str]:
    limits = joint.limits
    kind = "slide" if joint.kind == "prismatic" else "hinge"
    numbers: dict[str, Iterable[float]] = {"axis": T_body_joint[:3, :3] @ joint.axis}
    if T_body_joint[:3, 3].any():
        numbers["pos"] = T_body_joint[:3, 3]
    if np.isfinite([limits.lower, limits.upper]).all() and joint.kind != "continuous":
        numbers["range"] = [limits.lower, limits.upper]
    if np.isfinite(limits.effort) and limits.effort > 0.0:
        numbers["actuatorfrcrange"] = [-limits.effort, limits.effort]
    numbers |= _friction(joint, elsewhere)
    return {"name": joint.name, "type": kind} | {name: format_numbers(values) for name, values in numbers.items()}
