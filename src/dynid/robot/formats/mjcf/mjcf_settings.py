"""What an MJCF file states once for all bodies: compiler options, gravity, default classes, effort limits of actuators.

`check_scope` refuses by name what no tree of links can express.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Floats
from dynid.robot.formats.xml import Element, XmlDocument
from dynid.robot.model import STANDARD_GRAVITY
from dynid.spatial import EXACT, ROUNDING, rotation_about, rotation_from_quaternion, transform

ACTUATORS = (
    *("general", "motor", "position", "velocity", "intvelocity", "orientation", "pid"),
    *("damper", "cylinder", "muscle", "adhesion", "dcmotor", "plugin"),
)
"""Elements of ``<actuator>``; they share one set of defaults."""

_DEFAULTS_OF = {tag: "actuator" for tag in ACTUATORS} | {"spatial": "tendon", "fixed": "tendon"}

# compiler attribute -> the values that leave the dynamics as the other elements say
_NEUTRAL = {
    "settotalmass": ("-1", "-1.0"),
    "boundmass": ("0", "0.0"),
    "boundinertia": ("0", "0.0"),
    "balanceinertia": ("false",),
    "coordinate": ("local",),
}
_UNSUPPORTED_FLAGS = ("damper", "frictionloss", "passive", "constraint")


Defaults = dict[str, dict[str, dict[str, str]]]
"""Class -> element tag -> attributes, inherited ones included."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MjcfSettings:
    """Options and defaults of one file."""

    document: XmlDocument
    degrees: bool
    """Whether angles are in degrees."""
    euler_sequence: str
    """Three of ``xyz`` (about the turning axes) and ``XYZ`` (about the fixed ones)."""
    autolimits: bool
    """Whether a range alone makes a joint limited."""
    inertia_from_geom: str
    """``true``, ``false`` or ``auto``: only where ``<inertial>`` is missing."""
    inertia_groups: tuple[float, float]
    """First and last group of geoms that have mass."""
    gravity: Floats
    """(3,) [m/s^2], world frame."""
    defaults: Defaults

    def resolve(self, element: Element, childclass: str) -> Element:
        """The element with the attributes it inherits from its class, or from ``childclass``, filled in."""
        name = element.attributes.get("class", childclass)
        if name not in self.defaults:
            raise self.document.error(element, f"the default class '{name[:60]}' does not exist", "Define the class.")
        inherited = self.defaults[name].get(_DEFAULTS_OF.get(element.tag, element.tag), {})
        return replace(element, attributes=inherited | element.attributes)

    def radians(self, angle: float) -> float:
        """An angle of the file in radians."""
        return float(np.deg2rad(angle)) if self.degrees else angle

    def pose(self, element: Element) -> Floats:
        """Pose (4, 4) in the frame the element stands in."""
        return transform(self.rotation(element), self.document.numbers(element, "pos", 3, np.zeros(3)))

    def rotation(self, element: Element) -> Floats:
        """Rotation (3, 3) from whichever orientation attribute the element has."""
        given = [name for name in ORIENTATIONS if name in element.attributes]
        if len(given) > 1:
            raise self.document.error(element, f"two orientations: {' and '.join(given[:2])}", "Keep one of them.")
        if not given:
            return np.eye(3)
        count, build = ORIENTATIONS[given[0]]
        rotation = build(self, self.document.numbers(element, given[0], count))
        if rotation is None:
            raise self.document.error(element, f"'{given[0]}' has no direction", "Give a vector that is not zero.")
        return rotation


def _from_quaternion(_: MjcfSettings, q: Floats) -> Floats | None:
    return rotation_from_quaternion(q) if np.linalg.norm(q) > ROUNDING else None


def _from_euler(settings: MjcfSettings, angles: Floats) -> Floats:
    R = np.eye(3)
    for letter, angle in zip(settings.euler_sequence, angles, strict=True):
        turn = rotation_about(np.eye(3)["xyz".index(letter.lower())], settings.radians(angle))
        R = R @ turn if letter.islower() else turn @ R
    return R


def _from_axis_angle(settings: MjcfSettings, values: Floats) -> Floats | None:
    length = np.linalg.norm(values[:3])
    return rotation_about(values[:3] / length, settings.radians(values[3])) if length > ROUNDING else None


def _from_xy_axes(_: MjcfSettings, values: Floats) -> Floats | None:
    x, y = values[:3], values[3:]
    if np.linalg.norm(x) < ROUNDING:
        return None
    x = x / np.linalg.norm(x)
    y = y - x * (x @ y)
    if np.linalg.norm(y) < ROUNDING:
        return None
    y = y / np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])


def _from_z_axis(_: MjcfSettings, z: Floats) -> Floats | None:
    length = np.linalg.norm(z)
    return rotation_to_z_axis(z / length) if length > ROUNDING else None


def rotation_to_z_axis(z: Floats) -> Floats:
    """The smallest turn (3, 3) that brings the z axis to a unit vector (3,); about x when it is half a turn."""
    axis, sine = np.array([-z[1], z[0], 0.0]), float(np.hypot(z[0], z[1]))
    return rotation_about(axis / sine if sine > EXACT else np.array([1.0, 0.0, 0.0]), np.arctan2(sine, z[2]))


_Build = Callable[[MjcfSettings, Floats], Floats | None]
ORIENTATIONS: dict[str, tuple[int, _Build]] = {
    "quat": (4, _from_quaternion),
    "euler": (3, _from_euler),
    "axisangle": (4, _from_axis_angle),
    "xyaxes": (6, _from_xy_axes),
    "zaxis": (3, _from_z_axis),
}
"""Attribute -> how many numbers it holds and the rotation they make (None: no direction)."""


def read_settings(document: XmlDocument) -> MjcfSettings:
    """Read the options and defaults of a file.

    Raises:
        DescriptionError: An option is wrong, or changes the dynamics in a way that is not supported.
    """
    compiler = _merge_sections(document, "compiler")
    option = _merge_sections(document, "option")
    for name, neutral in _NEUTRAL.items():
        if compiler.attributes.get(name, neutral[0]) not in neutral:
            raise document.error(compiler, f"the compiler option '{name}' is not supported", f"Remove '{name}'.")
    for name in ("density", "viscosity"):
        if document.number(option, name, 0.0) != 0.0:
            raise document.error(option, f"a surrounding fluid ('{name}') is not supported", f"Remove '{name}'.")
    groups = document.numbers(compiler, "inertiagrouprange", 2, [0, 5])
    return MjcfSettings(
        document=document,
        degrees=_choice(document, compiler, "angle", ("degree", "radian")) == "degree",
        euler_sequence=_euler_sequence(document, compiler),
        autolimits=_choice(document, compiler, "autolimits", ("true", "false")) == "true",
        inertia_from_geom=_choice(document, compiler, "inertiafromgeom", ("auto", "true", "false")),
        inertia_groups=(float(groups[0]), float(groups[1])),
        gravity=_gravity(document, option),
        defaults=_read_defaults(document),
    )


def _merge_sections(document: XmlDocument, tag: str) -> Element:
    """All sections of that tag as one element; the last word counts."""
    sections = document.root.all(tag)
    attributes = {name: value for section in sections for name, value in section.attributes.items()}
    base = sections[-1] if sections else document.root
    children = [child for section in sections for child in section.children]
    return replace(base, tag=tag, attributes=attributes, children=children)


def _choice(document: XmlDocument, element: Element, attribute: str, allowed: tuple[str, ...]) -> str:
    value = element.attributes.get(attribute, allowed[0])
    if value not in allowed:
        raise document.error(element, f"'{attribute}' is '{value[:60]}'", f"Use one of {', '.join(allowed)}.")
    return value


def _euler_sequence(document: XmlDocument, compiler: Element) -> str:
    sequence = compiler.attributes.get("eulerseq", "xyz")
    if len(sequence) != 3 or not set(sequence) <= set("xyzXYZ"):
        raise document.error(compiler, f"'eulerseq' is '{sequence[:60]}'", "Use three of x, y, z, X, Y, Z.")
    return sequence


def _gravity(document: XmlDocument, option: Element) -> Floats:
    flags = {name: value for flag in option.all("flag") for name, value in flag.attributes.items()}
    for name in _UNSUPPORTED_FLAGS:
        if flags.get(name) == "disable":
            raise document.error(option, f'the flag {name}="disable" is not supported', "Remove the flag.")
    gravity = document.numbers(option, "gravity", 3, STANDARD_GRAVITY)
    return gravity if flags.get("gravity") != "disable" else np.zeros(3)


def _read_defaults(document: XmlDocument) -> Defaults:
    defaults: Defaults = {"main": {}}
    for section in document.root.all("default"):
        name = section.attributes.get("class", "main")
        own = _own_defaults(section)
        defaults["main"] = {tag: defaults["main"].get(tag, {}) | own.get(tag, {}) for tag in {*defaults["main"], *own}}
        defaults[name] = defaults["main"]
        for nested, inherited in _nested_defaults(document, section, defaults["main"]):
            if nested in defaults:
                raise document.error(section, f"two default classes are called '{nested[:60]}'", "Rename one.")
            defaults[nested] = inherited
    return defaults


def _nested_defaults(
    document: XmlDocument, section: Element, inherited: dict[str, dict[str, str]]
) -> Iterator[tuple[str, dict[str, dict[str, str]]]]:
    for child in section.all("default"):
        own = _own_defaults(child)
        merged = {tag: inherited.get(tag, {}) | own.get(tag, {}) for tag in {*inherited, *own}}
        yield document.attribute(child, "class"), merged
        yield from _nested_defaults(document, child, merged)


def _own_defaults(section: Element) -> dict[str, dict[str, str]]:
    own: dict[str, dict[str, str]] = {}
    for child in section.children:
        if child.tag != "default":
            tag = _DEFAULTS_OF.get(child.tag, child.tag)
            own[tag] = own.get(tag, {}) | child.attributes
    return own


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
_PASSIVE_ACTUATOR = ("damping", "armature")


_MOVING = ("body", "joint", "freejoint", "inertial", "geom")
_NOT_IN = {
    "mujoco": _MOVING,
    "default": ("body", "freejoint", "inertial"),
    "worldbody": ("joint", "freejoint", "inertial"),
    **dict.fromkeys(("joint", "freejoint", "inertial", "geom", "compiler", "option", "site"), _MOVING),
}
"""Element -> what would carry mass or motion elsewhere, and is refused there, as MuJoCo does."""


def check_scope(document: XmlDocument, hold: Mapping[str, float]) -> None:
    """Refuse what changes the dynamics in a way no tree of links with terms can express.

    Raises:
        DescriptionError: Naming the element and what to do about it.
    """
    for element in document.root.walk():
        if element.tag in _REFUSED:
            raise document.error(element, f"<{element.tag}> is not supported", _REFUSED[element.tag])
        if element.tag in _BODIES:
            _check_body(document, element)
        misplaced = next((child for child in element.children if child.tag in _NOT_IN.get(element.tag, ())), None)
        if misplaced is not None:
            text = f"<{misplaced.tag}> has no meaning in <{element.tag}>"
            raise document.error(misplaced, text, "Move it to the body that it describes.")
        if element.tag == "default":
            _check_default(document, element)
    for section in document.root.all("equality"):
        for constraint in section.children:
            _check_equality(document, constraint, hold)


def _check_default(document: XmlDocument, section: Element) -> None:
    """Refuse a part of the robot among the defaults: it would act on all parts of its kind."""
    named = next((child for child in section.children if child.tag in _MOVING and child.name), None)
    if named is not None:
        text = f"<{named.tag}> has a name, although it stands in <default>"
        raise document.error(named, text, "Move it to a body, or remove its name.")


def _check_body(document: XmlDocument, body: Element) -> None:
    for child in body.children:
        if child.tag not in _IN_BODY:
            raise document.error(child, f"<{child.tag[:60]}> in a body is not supported", "Remove or replace it.")
        if child.tag == "inertial" and body.tag == "frame":
            raise document.error(child, "<inertial> in a <frame> is not supported", "Move it to the body.")
    if body.tag == "body" and document.number(body, "gravcomp", 0.0) != 0.0:
        raise document.error(body, "gravity compensation ('gravcomp') is not supported", "Remove 'gravcomp'.")


def _check_equality(document: XmlDocument, constraint: Element, hold: Mapping[str, float]) -> None:
    if constraint.attributes.get("active") == "false":
        return
    first = constraint.attributes.get("joint1", "")
    if constraint.tag != "joint":
        remedy = "Cut the loop: remove the constraint; dynid handles serial chains and trees."
        raise document.error(constraint, f"the equality constraint <{constraint.tag[:60]}> is not supported", remedy)
    if first not in hold and constraint.attributes.get("joint2") not in hold:
        remedy = f"Hold the joint: --hold {first}, or read_mjcf(path, hold={{{first!r}: 0.0}})."
        raise document.error(constraint, f"joint '{first[:60]}' is bound by an equality constraint", remedy)


def effort_limits(settings: MjcfSettings) -> dict[str, float]:
    """Joint -> effort its actuators can give [N m or N], where the file bounds it.

    Raises:
        DescriptionError: An actuator adds friction or inertia of its own.
    """
    document = settings.document
    efforts: dict[str, float] = {}
    sections = (section.children for section in document.root.all("actuator"))
    for element in (child for children in sections for child in children if child.tag in ACTUATORS):
        actuator = settings.resolve(element, "main")
        for name in _PASSIVE_ACTUATOR:
            if name in actuator.attributes and document.number_list(actuator, name).any():
                reason = f"'{name}' of a <{element.tag}> is not supported"
                raise document.error(element, reason, "Give it to the joint, or remove it.")
        joint = actuator.attributes.get("joint", "")
        name = "forcerange" if "forcerange" in actuator.attributes else "ctrlrange"
        if joint and name in actuator.attributes and (name == "forcerange" or actuator.tag == "motor"):
            gear = document.number_list(actuator, "gear")[0] if "gear" in actuator.attributes else 1.0
            effort = float(np.abs(document.numbers(actuator, name, 2)).min() * abs(gear))
            efforts[joint] = efforts.get(joint, 0.0) + effort
    return {joint: effort for joint, effort in efforts.items() if effort > 0.0}
