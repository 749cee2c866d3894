"""Read mass properties and joints of an MJCF body, and connect the body to its parent.

`dynid.robot.formats.mjcf.read` walks through the bodies and calls `read_inertial`, `geom_inertia`, `read_joint` and
`connect`. The mass properties of a body are stated in ``<inertial>``, or follow from the primitive shapes of its geoms.
Hinge and slide joints have an axis, an anchor (a point that the axis goes through), a zero position, a range and
friction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dynid.array_types import Floats
from dynid.robot.formats.mjcf.mjcf_settings import ORIENTATIONS, MjcfSettings, rotation_to_z_axis
from dynid.robot.formats.xml import Element
from dynid.robot.inertia import Inertia, inertia_about_com
from dynid.robot.parts import Joint, JointKind, JointLimits
from dynid.spatial import ROUNDING, rotation_about, transform
from dynid.terms import TERMS
from dynid.terms.base import StateTerm

_DEFAULT_DENSITY = 1000.0
"""MuJoCo's default density [kg/m^3], that of water."""
_SMALLEST_VOLUME = 1e-15
"""Volume [m^3] below which MuJoCo leaves out the mass of a geom (its ``mjMINVAL``)."""

Shape = tuple[float, Floats]
"""Volume [m^3] and principal moments about the centre per unit mass (3,) [m^2] of a homogeneous solid."""

# MuJoCo's sizes [m]: half axes; radius; half edges; radius and half length along z


def _ellipsoid(size: Floats) -> Shape:
    a, b, c = size**2
    return 4.0 / 3.0 * np.pi * float(np.prod(size)), np.array([b + c, a + c, a + b]) / 5.0


def _sphere(size: Floats) -> Shape:
    return _ellipsoid(np.repeat(size[0], 3))


def _box(size: Floats) -> Shape:
    a, b, c = size**2
    return 8.0 * float(np.prod(size)), np.array([b + c, a + c, a + b]) / 3.0


def _cylinder(size: Floats) -> Shape:
    r, h = size
    across = r**2 / 4.0 + h**2 / 3.0
    return 2.0 * np.pi * r**2 * h, np.array([across, across, r**2 / 2.0])


def _capsule(size: Floats) -> Shape:
    r, h = size
    tube, tube_moments = _cylinder(size)
    caps, _ = _sphere(size)
    # of both half spheres, moved by h along z: 2/5 r^2 + h^2 + 2 h (3/8 r)
    across = 0.4 * r**2 + h**2 + 0.75 * h * r
    moments = tube * tube_moments + caps * np.array([across, across, 0.4 * r**2])
    return tube + caps, moments / (tube + caps)


# type of a geom -> (how many numbers of its ``size`` it has, function from these (count,) to its shape)
_SHAPE_BY_TYPE: dict[str, tuple[int, Callable[[Floats], Shape]]] = {
    "sphere": (1, _sphere),
    "capsule": (2, _capsule),
    "cylinder": (2, _cylinder),
    "ellipsoid": (3, _ellipsoid),
    "box": (3, _box),
}
_WEIGHTLESS = ("plane", "hfield")
"""Types of geoms without mass."""


def read_inertial(settings: MjcfSettings, inertial: Element) -> Inertia:
    """Read the mass properties in an ``<inertial>``, in the body frame."""
    is_full = "fullinertia" in inertial.attributes
    if is_full and not inertial.attributes.keys().isdisjoint((*ORIENTATIONS, "diaginertia")):
        raise inertial.error(
            "'fullinertia' cannot stand with an orientation or 'diaginertia'", "Keep one of the forms."
        )
    if is_full:
        xx, yy, zz, xy, xz, yz = inertial.numbers("fullinertia", 6)
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    else:
        tensor = np.diag(inertial.numbers("diaginertia", 3, np.zeros(3)))
    R = settings.rotation(inertial)
    mass = inertial.number("mass")
    com = inertial.numbers("pos", 3)
    with inertial.at():
        return inertia_about_com(mass, com, R @ tensor @ R.T)


def geom_inertia(settings: MjcfSettings, geom: Element, *, moving: bool) -> Inertia:
    """Compute the mass properties of one geom in the frame of the element around it: the body or a ``<frame>``.

    Args:
        settings: Options of the file.
        geom: The element with its defaults filled in.
        moving: Whether its body can move. A mesh on a body that cannot move is skipped, as its mass does not matter.

    Raises:
        DescriptionError: The mass would depend on a mesh, or a number is wrong.
    """
    kind = geom.attributes.get("type", "mesh" if "mesh" in geom.attributes else "sphere")
    mass = geom.number("mass") if "mass" in geom.attributes else None
    density = geom.number("density", _DEFAULT_DENSITY)
    low, high = settings.inertia_groups
    if kind in _WEIGHTLESS or not low <= geom.number("group", 0.0) <= high:
        return Inertia.zero()
    if mass == 0.0 or (mass is None and density == 0.0):
        return Inertia.zero()
    if kind not in _SHAPE_BY_TYPE or "mesh" in geom.attributes or geom.attributes.get("shellinertia") == "true":
        if not moving:
            return Inertia.zero()
        what = "a shell" if kind in _SHAPE_BY_TYPE and "mesh" not in geom.attributes else f"of type '{kind[:60]}'"
        remedy = 'Give the body an <inertial>, or the geom mass="0"; meshes are never opened.'
        raise geom.error(f"the body's inertia would come from a geom {what}", remedy)
    size, T_frame_geom = _size_and_pose(settings, geom, kind)
    if np.any(size <= 0.0) or density < 0.0 or (mass is not None and mass < 0.0):
        raise geom.error("size, density and mass must be positive", "Correct the geom.")
    volume, moments = _SHAPE_BY_TYPE[kind][1](size)
    if volume <= _SMALLEST_VOLUME:
        text = f"the geom has a volume of {volume:.3g} m^3, so small that MuJoCo leaves its mass out"
        raise geom.error(text, 'Correct its size, or give it mass="0".')
    mass = density * volume if mass is None else mass
    R = T_frame_geom[:3, :3]
    with geom.at():
        return inertia_about_com(mass, T_frame_geom[:3, 3], R @ np.diag(mass * moments) @ R.T)


def _size_and_pose(settings: MjcfSettings, geom: Element, kind: str) -> tuple[Floats, Floats]:
    """Read the sizes (count,) [m] of a geom of a known shape, and its pose (4, 4).

    Shapes other than a sphere may be given by their two ends (``fromto``), on their z axis.
    """
    count = _SHAPE_BY_TYPE[kind][0]
    size = geom.number_list("size")
    if size.size > 3:
        raise geom.error(f"'size' holds {size.size} numbers", "Give three at most, as MuJoCo takes them.")
    if "fromto" not in geom.attributes or kind == "sphere":
        if size.size < count:
            raise geom.error(f"a {kind} needs {count} sizes, not {size.size}", "Complete 'size'.")
        return size[:count], settings.pose(geom)
    ends = geom.numbers("fromto", 6)
    along = ends[3:] - ends[:3]
    middle = (ends[:3] + ends[3:]) / 2.0
    half = np.linalg.norm(along) / 2.0
    if not half > ROUNDING or not size.size:
        raise geom.error("'fromto' has no length or 'size' is empty", "Give two different points and a size.")
    # a box or ellipsoid drawn between two points is as deep as it is wide
    sizes = np.array([*np.repeat(size[0], count - 1), half])
    return sizes, transform(rotation_to_z_axis(along / (2.0 * half)), middle)


JOINT_TERMS: dict[str, type[StateTerm]] = {
    term.mjcf_attribute: term for term in TERMS if term.mjcf_attribute and issubclass(term, StateTerm)
}
"""Attribute of ``<joint>`` -> the term (contribution to the joint torque with one parameter) that it becomes; the units
are the same."""


def read_joint(
    settings: MjcfSettings, element: Element, name: str, kind: str, T_body_frame: Floats, effort: float
) -> tuple[Joint, Floats]:
    """Read a joint, without the links that it connects: `connect` adds these.

    Args:
        settings: Options of the file.
        element: The joint with its defaults filled in.
        name: Name of the joint.
        kind: Its type in the file; only hinge and slide are supported.
        T_body_frame: (4, 4) pose of the ``<frame>`` around it, in the body.
        effort: Largest effort of its actuators [N m or N].

    Returns:
        The joint and its anchor (3,) [m] in the body frame. The pose of a body in the file is that at the joint
        position ``ref``, so that ``T_parent_joint`` is so far only a motion of the joint by minus ``ref``.

    Raises:
        DescriptionError: The joint is wrong or not supported.
    """
    _check_supported(element, name, kind)
    R = T_body_frame[:3, :3]
    anchor = R @ element.numbers("pos", 3, np.zeros(3)) + T_body_frame[:3, 3]
    axis = R @ element.numbers("axis", 3, [0.0, 0.0, 1.0])
    limits = _read_limits(settings, element, kind, effort)
    hinge: JointKind = "revolute" if np.isfinite([limits.lower, limits.upper]).any() else "continuous"
    with element.at():
        joint = Joint(
            name=name,
            kind="prismatic" if kind == "slide" else hinge,
            parent="",
            child="",
            axis=axis,
            limits=limits,
            # every term whose attribute is not zero
            terms=tuple(term(value) for word, term in JOINT_TERMS.items() if (value := element.number(word, 0.0))),
        )
    zero = -element.number("ref", 0.0)
    if kind == "slide":  # the anchor of a slide has no effect
        return replace(joint, T_parent_joint=transform(np.eye(3), zero * joint.axis)), np.zeros(3)
    turned = transform(rotation_about(joint.axis, settings.radians(zero)), np.zeros(3))
    return replace(joint, T_parent_joint=turned), anchor


def connect(
    link: str,
    parent: str,
    T_parent_body: Floats,
    joints: Sequence[tuple[Joint, Floats]],
    unique_name: Callable[[str], str],
) -> tuple[list[Joint], list[str]]:
    """Connect a body to its parent through its joints; in MJCF a body may have none or several.

    Args:
        link: The body's link.
        parent: Link that it moves on.
        T_parent_body: (4, 4) pose of the body.
        joints: The joints of the body from the parent on, each with its anchor (3,) [m] in the body frame.
        unique_name: Makes a name that nothing else has.

    Returns:
        The joints, and the names of the massless links between them. The last joint moves the body's link directly if
        its anchor is the origin of the body; otherwise a massless link, to which the body's link is fixed.
    """
    placed: list[Joint] = []
    frames: list[str] = []
    T_parent_next = T_parent_body
    for index, (joint, anchor) in enumerate(joints):
        moves_link = index == len(joints) - 1 and not anchor.any()
        child = link if moves_link else unique_name(f"{joint.name}_frame")
        T = T_parent_next @ transform(np.eye(3), anchor) @ joint.T_parent_joint
        placed.append(replace(joint, parent=parent, child=child, T_parent_joint=T))
        if not moves_link:
            frames.append(child)
        parent = child
        T_parent_next = transform(np.eye(3), -anchor)
    if parent != link:
        name = unique_name(f"{link}_fixed")
        placed.append(Joint(name=name, kind="fixed", parent=parent, child=link, T_parent_joint=T_parent_next))
    return placed, frames


def _check_supported(element: Element, name: str, kind: str) -> None:
    """Refuse joints other than hinges and slides, and springs in joints."""
    if kind in ("ball", "free"):
        remedy = f"Hold the joint: --hold {name}, or read_mjcf(path, hold={{{name!r}: 0.0}})."
        raise element.error(f"{kind} joints are not supported", remedy)
    if kind not in ("hinge", "slide"):
        raise element.error(f"the joint type '{kind[:60]}' is not known", "Use hinge or slide.")
    for spring in ("stiffness", "springdamper"):
        if element.number_list(spring, [0.0]).any():
            remedy = f"Remove '{spring}' and model it elsewhere."
            raise element.error(f"joint springs ('{spring}') are not supported", remedy)


def _read_limits(settings: MjcfSettings, element: Element, kind: str, effort: float) -> JointLimits:
    """Read the limits of a joint; its own limit of effort takes precedence over that of its actuators."""
    lower, upper = _read_range(settings, element, "range", "limited") or (-np.inf, np.inf)
    if kind == "hinge":
        lower, upper = settings.radians(lower), settings.radians(upper)
    force = _read_range(settings, element, "actuatorfrcrange", "actuatorfrclimited")
    with element.at():
        return JointLimits(lower=lower, upper=upper, effort=min(map(abs, force)) if force else effort)


def _read_range(settings: MjcfSettings, element: Element, attribute: str, switch: str) -> tuple[float, float] | None:
    """Read the two numbers of a range; None if the file has none, or it is switched off."""
    if attribute not in element.attributes:
        return None
    lower, upper = element.numbers(attribute, 2)
    limited = element.attributes.get(switch, "auto")
    applies = limited == "true" or (limited == "auto" and settings.autolimits)
    return (float(lower), float(upper)) if applies else None
