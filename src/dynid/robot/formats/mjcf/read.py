"""Read MJCF, the model format of MuJoCo: bodies with hinge and slide joints, their inertias, friction and limits.

A body becomes a link whose frame is the body's frame. A joint that does not pass through that frame's origin, and every
joint but the last of a body with several, gets a massless link in addition, ``<joint>_frame``. Friction, rotor inertia
and tendons become *terms*, contributions to the joint torques with one parameter each. What changes the dynamics and is
not supported is refused by name; everything else (assets, sensors, keyframes, contacts, ...) is skipped. Nothing but
the given file is opened: neither meshes nor includes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from dynid.array_types import Floats
from dynid.robot.formats.mjcf.bodies import connect, geom_inertia, read_inertial, read_joint
from dynid.robot.formats.mjcf.mjcf_settings import MjcfSettings, check_scope, effort_limits, read_settings
from dynid.robot.formats.mjcf.tendons import Site, TendonTerms, read_tendons
from dynid.robot.formats.xml import Element, XmlDocument, read_document
from dynid.robot.inertia import Inertia
from dynid.robot.model import ModelFile, Robot
from dynid.robot.parts import Joint, Link, check_held


@dataclass(slots=True, eq=False)
class MjcfModel:
    """The content of a file: its links and joints with the elements they came from."""

    document: XmlDocument
    """The file."""
    settings: MjcfSettings
    """Its compiler settings and defaults."""
    links: list[Link] = field(default_factory=list)
    """In the order of the file, the world first."""
    joints: list[Joint] = field(default_factory=list)
    """In the order of the file."""
    bodies: dict[str, Element] = field(default_factory=dict)
    """Link -> ``<body>``."""
    frames: dict[str, list[str]] = field(default_factory=dict)
    """Link of a body -> the massless links between its joints."""
    joint_elements: dict[str, Element] = field(default_factory=dict)
    """Joint -> ``<joint>`` with its defaults filled in."""
    sites: dict[str, tuple[Site, Element]] = field(default_factory=dict)
    """Name of a site -> its point (link, position (3,) [m] in the link's frame), and ``<site>``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """An element in a body, directly or inside ``<frame>`` elements."""

    element: Element
    """The element."""
    T_body_frame: Floats
    """(4, 4) product of the poses of the frames around it."""
    childclass: str
    """Class of defaults that holds for it."""


def read_mjcf(path: str | os.PathLike[str], *, hold: Mapping[str, float] | None = None) -> Robot:
    """Read a robot from an MJCF file; gravity comes from the file.

    Args:
        path: The file; nothing else is opened.
        hold: Joint name -> position [rad or m] at which the joint is fixed; required for joints under an equality
            constraint. Ball and free joints can be fixed at 0.

    Raises:
        DescriptionError: The file is wrong or uses what is not supported; the error says where and what to do.

    Example:
        >>> dynid.write_mjcf(robot, folder / "own.xml")
        >>> dynid.read_mjcf(folder / "own.xml").joint_names
        ('joint1', 'joint2', 'joint3')
    """
    return robot_with_tendons(read_model(read_document(path), hold or {}), hold or {}).robot


def robot_with_tendons(model: MjcfModel, hold: Mapping[str, float]) -> TendonTerms:
    """Build the robot of a file with the terms of its joints and tendons; the result also has the tendons' elements.

    Raises:
        DescriptionError: A tendon has stiffness, damping, friction or inertia that is no term.
    """
    document = model.document
    check_held(hold, [joint.name for joint in model.joints])
    source = ModelFile(path=document.path, format="mjcf", text=document.data.decode("utf-8"))
    with document.root.at():
        robot = Robot(
            name=document.root.attributes.get("model") or "robot",
            links=tuple(model.links),
            joints=tuple(model.joints),
            gravity=model.settings.gravity,
            source=source,
        )
    return read_tendons(model.settings, robot, model.sites)


def read_model(document: XmlDocument, hold: Mapping[str, float]) -> MjcfModel:
    """Read links and joints together with the elements they came from."""
    root = document.root
    if root.tag != "mujoco":
        remedy = "Use read_urdf." if root.tag == "robot" else "Give a file whose outermost element is <mujoco>."
        raise root.error(f"this is not an MJCF: it starts with <{root.tag[:60]}>", remedy)
    check_scope(root, hold)
    return _Reader(document, hold).read()


class _Reader:
    """Walks the tree of bodies, depth first as MuJoCo numbers them."""

    def __init__(self, document: XmlDocument, hold: Mapping[str, float]) -> None:
        """Prepare to read.

        Args:
            document: The file.
            hold: Joint name -> position at which the joint is fixed.
        """
        self._document = document
        self._hold = hold
        self._settings = read_settings(document)
        self._model = MjcfModel(document, self._settings)
        self._efforts = effort_limits(self._settings)
        self._used_names = {element.name for element in document.root.walk() if element.tag in ("body", "joint")}
        self._count = 0  # of bodies so far, to name those without a name

    def read(self) -> MjcfModel:
        """Read all bodies of the file."""
        self._model.links.append(Link(name="world"))
        for world in self._document.root.all("worldbody"):
            self._read_children(world, "world", world.attributes.get("childclass", "main"), moving=False)
        if len(self._model.links) == 1:
            raise self._document.root.error("the model has no body", "Add a <body> to <worldbody>.")
        return self._model

    def _read_children(self, body: Element, link: str, childclass: str, *, moving: bool) -> None:
        """Read the bodies and sites in a body, which is a link and moves or not."""
        for member in self._members(body, np.eye(4), childclass):
            if member.element.tag == "body":
                self._read_body(member, link, moving=moving)
            elif member.element.tag == "site" and member.element.name:
                site = self._settings.resolve(member.element, member.childclass)
                position = np.append(site.numbers("pos", 3, np.zeros(3)), 1.0)
                point = (member.T_body_frame @ position)[:3]
                self._model.sites[site.name] = (link, point), member.element

    def _members(self, parent: Element, T_body_frame: Floats, childclass: str) -> Iterator[_Member]:
        """Yield the elements in a body or ``<frame>``, and in the frames inside it."""
        for child in parent.children:
            if child.tag == "frame":
                T_body_child = T_body_frame @ self._settings.pose(child)
                yield from self._members(child, T_body_child, child.attributes.get("childclass", childclass))
            else:
                yield _Member(element=child, T_body_frame=T_body_frame, childclass=childclass)

    def _read_body(self, member: _Member, parent: str, *, moving: bool) -> None:
        """Read a body with all bodies in it; ``moving`` says whether the parent link moves."""
        body = member.element
        self._count += 1
        name = body.name or self._unique_name(f"body{self._count}")
        if name == "world":
            raise body.error("the name 'world' belongs to the world", "Rename the body.")
        childclass = body.attributes.get("childclass", member.childclass)
        members = list(self._members(body, np.eye(4), childclass))
        joints = [self._read_joint(m, name, k) for k, m in enumerate(m for m in members if m.element.tag in _JOINTS)]
        moving = moving or any(joint.moves and joint.name not in self._hold for joint, _ in joints)
        self._model.bodies[name] = body
        pose = member.T_body_frame @ self._settings.pose(body)
        placed, self._model.frames[name] = connect(name, parent, pose, joints, self._unique_name)
        self._model.joints += [j.held_at(self._hold[j.name]) if j.name in self._hold else j for j in placed]
        self._model.links += [Link(name=frame) for frame in self._model.frames[name]]
        self._model.links.append(Link(name=name, inertia=self._read_inertia(body, members, moving=moving)))
        self._read_children(body, name, childclass, moving=moving)

    # --- joints ----------------------------------------------------------------------------------------------------

    def _read_joint(self, member: _Member, body: str, index: int) -> tuple[Joint, Floats]:
        """Read a joint of a body, not yet between links, and its anchor (3,) [m] in the body frame."""
        element = self._settings.resolve(member.element, member.childclass)
        name = element.name or self._unique_name(f"{body}_joint{index + 1}")
        self._model.joint_elements[name] = element
        kind = "free" if element.tag == "freejoint" else element.attributes.get("type", "hinge")
        if kind in ("ball", "free") and self._hold.get(name) == 0.0:
            return Joint(name=name, kind="fixed", parent="", child=""), np.zeros(3)
        return read_joint(self._settings, element, name, kind, member.T_body_frame, self._efforts.get(name, np.inf))

    # --- inertias --------------------------------------------------------------------------------------------------

    def _read_inertia(self, body: Element, members: list[_Member], *, moving: bool) -> Inertia:
        """Read the inertia of a body, of ``<inertial>`` or of its geoms, as ``inertiafromgeom`` of the file says."""
        inertial = body.optional_child("inertial")
        from_geom = self._settings.inertia_from_geom
        stated = None if inertial is None else read_inertial(self._settings, inertial)
        if stated is not None and from_geom != "true":
            return stated
        if from_geom == "false":
            return Inertia.zero()
        total = Inertia.zero()
        for member in members:
            if member.element.tag == "geom":
                geom = self._settings.resolve(member.element, member.childclass)
                total += geom_inertia(self._settings, geom, moving=moving).in_frame(member.T_body_frame)
        return stated if stated is not None and total.mass == 0.0 else total  # as MuJoCo: no geom has a mass

    def _unique_name(self, name: str) -> str:
        """Append underscores to a name until no body or joint has it; it counts as used from now on."""
        while name in self._used_names:
            name += "_"
        self._used_names.add(name)
        return name


_JOINTS = ("joint", "freejoint")
"""Tags of joints."""
