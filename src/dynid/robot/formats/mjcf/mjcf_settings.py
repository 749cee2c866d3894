"""Read what an MJCF file states once for all bodies: compiler options, gravity, default classes, effort limits.

`read_settings` makes the `MjcfSettings`, whose methods read poses and angles of elements. `check_scope` refuses
elements that a tree of links with terms (friction, rotor inertia, springs, ...) cannot express. The caller is
`dynid.robot.formats.mjcf.read`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from dynid.array_types import Floats
from dynid.errors import DescriptionError
from dynid.robot.formats.xml import Element, XmlDocument
from dynid.robot.model import STANDARD_GRAVITY
from dynid.spatial import EXACT, ROUNDING, rotation_about, rotation_from_quaternion, transform

ACTUATORS = (
    *("general", "motor", "position", "velocity", "intvelocity", "orientation", "pid"),
    *("damper", "cylinder", "muscle", "adhesion", "dcmotor", "plugin"),
)
"""Elements of ``<actuator>``; they share one set of defaults."""

_DEFAULTS_OF = {tag: "actuator" for tag in ACTUATORS} | {"spatial": "tendon", "fixed": "tendon"}
"""Tag of an element -> tag under which its defaults are stated, where the two differ."""

# attribute of <compiler> -> the values that change nothing in the dynamics; others are refused
_NEUTRAL = {
    "settotalmass": ("-1", "-1.0"),
    "boundmass": ("0", "0.0"),
    "boundinertia": ("0", "0.0"),
    "balanceinertia": ("false",),
    "coordinate": ("local",),
}
# attribute of <flag> in <option> -> such values
_NEUTRAL_FLAGS = {name: ("enable",) for name in ("damper", "frictionloss", "passive", "constraint")}


Defaults = dict[str, dict[str, dict[str, str]]]
"""Name of a default class -> tag of an element -> attributes, inherited ones included."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MjcfSettings:
    """Options and defaults of one file."""

    document: XmlDocument
    """The file."""
    degrees: bool
    """Whether angles are in degrees."""
    euler_sequence: str
    """Three letters of ``xyz`` (about axes that turn with the body) and ``XYZ`` (about fixed axes)."""
    autolimits: bool
    """Whether a joint with a range is limited without a further attribute."""
    inertia_from_geom: str
    """Whether inertias follow from geoms: ``true``, ``false``, or ``auto``, where ``<inertial>`` is missing."""
    inertia_groups: tuple[float, float]
    """First and last group of geoms that have mass."""
    gravity: Floats
    """(3,) [m/s^2], world frame."""
    defaults: Defaults
    """Default attributes of every class."""

    def resolve(self, element: Element, childclass: str) -> Element:
        """Fill in the attributes that an element inherits: from its own default class, or else from ``childclass``."""
        name = element.attributes.get("class", childclass)
        if name not in self.defaults:
            raise element.error(f"the default class '{name[:60]}' does not exist", "Define the class.")
        inherited = self.defaults[name].get(_DEFAULTS_OF.get(element.tag, element.tag), {})
        return replace(element, attributes=inherited | element.attributes)

    def radians(self, angle: float) -> float:
        """Convert an angle of the file to radians."""
        return float(np.deg2rad(angle)) if self.degrees else angle

    def pose(self, element: Element) -> Floats:
        """Read the pose (4, 4) of an element in the frame of the body or ``<frame>`` around it."""
        return transform(self.rotation(element), element.numbers("pos", 3, np.zeros(3)))

    def rotation(self, element: Element) -> Floats:
        """Read the rotation (3, 3) in whichever orientation attribute the element has."""
        given = [name for name in ORIENTATIONS if name in element.attributes]
        if len(given) > 1:
            raise element.error(f"two orientations: {' and '.join(given[:2])}", "Keep one of them.")
        if not given:
            return np.eye(3)
        count, build = ORIENTATIONS[given[0]]
        numbers = element.numbers(given[0], count)
        with element.at():
            return build(self, numbers)


def _unit(vector: Floats) -> Floats:
    """Scale a vector to length one."""
    length = np.linalg.norm(vector)
    if length <= ROUNDING:
        raise DescriptionError("the orientation has no direction", remedy="Give a vector that is not zero.")
    return np.asarray(vector / length)


def _from_euler(settings: MjcfSettings, angles: Floats) -> Floats:
    """Compute the rotation (3, 3) of three angles about the axes of the Euler sequence."""
    R = np.eye(3)
    for letter, angle in zip(settings.euler_sequence, angles, strict=True):
        turn = rotation_about(np.eye(3)["xyz".index(letter.lower())], settings.radians(angle))
        R = R @ turn if letter.islower() else turn @ R
    return R


def _from_xy_axes(_: MjcfSettings, values: Floats) -> Floats:
    """Compute the rotation (3, 3) with this x axis, and a second vector in the plane of its x and y axes."""
    x = _unit(values[:3])
    y = _unit(values[3:] - x * (x @ values[3:]))
    return np.column_stack([x, y, np.cross(x, y)])


def rotation_to_z_axis(z: Floats) -> Floats:
    """Compute the smallest rotation (3, 3) that takes the z axis to a unit vector (3,); half a turn is about x."""
    axis = np.array([-z[1], z[0], 0.0])
    sine = float(np.hypot(z[0], z[1]))
    return rotation_about(axis / sine if sine > EXACT else np.array([1.0, 0.0, 0.0]), np.arctan2(sine, z[2]))


ORIENTATIONS: dict[str, tuple[int, Callable[[MjcfSettings, Floats], Floats]]] = {
    "quat": (4, lambda _, q: rotation_from_quaternion(_unit(q))),
    "euler": (3, _from_euler),
    "axisangle": (4, lambda settings, turn: rotation_about(_unit(turn[:3]), settings.radians(turn[3]))),
    "xyaxes": (6, _from_xy_axes),
    "zaxis": (3, lambda _, z: rotation_to_z_axis(_unit(z))),
}
"""Attribute -> how many numbers it holds, and the function that makes a rotation of them."""


def read_settings(document: XmlDocument) -> MjcfSettings:
    """Read the options and defaults of a file.

    Raises:
        DescriptionError: An option is wrong, or changes the dynamics in a way that is not supported.
    """
    compiler, option = (_merge_sections(document.root, tag) for tag in ("compiler", "option"))
    flags = {name: value for flag in option.all("flag") for name, value in flag.attributes.items()}
    for element, given, neutral in ((compiler, compiler.attributes, _NEUTRAL), (option, flags, _NEUTRAL_FLAGS)):
        for name, allowed in neutral.items():
            if given.get(name, allowed[0]) not in allowed:
                raise element.error(f'{name}="{given[name][:60]}" is not supported', f"Remove '{name}'.")
    for name in ("density", "viscosity"):
        if option.number(name, 0.0) != 0.0:
            raise option.error(f"a surrounding fluid ('{name}') is not supported", f"Remove '{name}'.")
    sequence = compiler.attributes.get("eulerseq", "xyz")
    if len(sequence) != 3 or not set(sequence) <= set("xyzXYZ"):
        raise compiler.error(f"'eulerseq' is '{sequence[:60]}'", "Use three of x, y, z, X, Y, Z.")
    first, last = compiler.numbers("inertiagrouprange", 2, [0, 5])
    gravity = option.numbers("gravity", 3, STANDARD_GRAVITY)
    return MjcfSettings(
        document=document,
        degrees=_read_choice(compiler, "angle", ("degree", "radian")) == "degree",
        euler_sequence=sequence,
        autolimits=_read_choice(compiler, "autolimits", ("true", "false")) == "true",
        inertia_from_geom=_read_choice(compiler, "inertiafromgeom", ("auto", "true", "false")),
        inertia_groups=(float(first), float(last)),
        gravity=np.zeros(3) if flags.get("gravity") == "disable" else gravity,
        defaults=_read_defaults(document.root),
    )


def _merge_sections(root: Element, tag: str) -> Element:
    """Merge all sections of a tag into one element; of an attribute that several of them state, the last one counts."""
    sections = root.all(tag)
    attributes = {name: value for section in sections for name, value in section.attributes.items()}
    children = [child for section in sections for child in section.children]
    return replace([root, *sections][-1], tag=tag, attributes=attributes, children=children)


def _read_choice(element: Element, attribute: str, allowed: tuple[str, ...]) -> str:
    """Read an attribute that has one of some allowed values, of which the first is the default."""
    value = element.attributes.get(attribute, allowed[0])
    if value not in allowed:
        raise element.error(f"'{attribute}' is '{value[:60]}'", f"Use one of {', '.join(allowed)}.")
    return value


def _read_defaults(root: Element) -> Defaults:
    """Read all default classes of a file."""
    defaults: Defaults = {"main": {}}
    for section in root.all("default"):
        name = section.attributes.get("class", "main")
        _add_class(defaults, section, name, defaults["main"])
        defaults["main"] = defaults[name]
    return defaults


def _add_class(defaults: Defaults, section: Element, name: str, inherited: dict[str, dict[str, str]]) -> None:
    """Add a default class, with what it inherits, and the classes inside it."""
    defaults[name] = dict(inherited)
    for child in section.children:
        if child.tag != "default":
            tag = _DEFAULTS_OF.get(child.tag, child.tag)
            defaults[name][tag] = defaults[name].get(tag, {}) | child.attributes
    for child in section.all("default"):
        nested = child.attribute("class")
        if nested in defaults:
            raise child.error(f"two default classes are called '{nested[:60]}'", "Rename one.")
        _add_class(defaults, child, nested, defaults[name])


_EXPANDED = "Load the model in MuJoCo and save it once: the saved file has every body written out."
_SOFT = "Soft bodies are outside rigid-body dynamics: remove them."
# tag of an element that is refused wherever it stands -> the remedy
_REFUSED = {
    "include": "Put the text of the included file in its place; other files are never opened.",
    "replicate": _EXPANDED,
    "attach": _EXPANDED,
    "composite": "Describe its bodies one by one.",
    "flexcomp": _SOFT,
    "flex": _SOFT,
}
_ALLOWED_IN_BODY = ("body", "frame", "inertial", "joint", "freejoint", "geom", "site", "camera", "light")


def check_scope(root: Element, hold: Mapping[str, float]) -> None:
    """Refuse elements that change the dynamics in a way that no tree of links with terms can express.

    Args:
        root: The outermost element.
        hold: Joints that the user fixes: name -> position [rad or m].

    Raises:
        DescriptionError: Naming the element and what to do about it.
    """
    for element in root.walk():
        for child in element.children:
            if child.tag in _REFUSED:
                raise child.error(f"<{child.tag}> is not supported", _REFUSED[child.tag])
            if element.tag in ("worldbody", "body", "frame") and child.tag not in _ALLOWED_IN_BODY:
                raise child.error(f"<{child.tag[:60]}> in a body is not supported", "Remove or replace it.")
        if element.tag == "body" and element.number("gravcomp", 0.0) != 0.0:
            raise element.error("gravity compensation ('gravcomp') is not supported", "Remove 'gravcomp'.")
    for section in root.all("equality"):
        for constraint in section.children:
            _check_equality(constraint, hold)


def _check_equality(constraint: Element, hold: Mapping[str, float]) -> None:
    """Refuse an active equality constraint, unless it is between two joints of which one is fixed (``hold``)."""
    if constraint.attributes.get("active") == "false":
        return
    first = constraint.attributes.get("joint1", "")
    if constraint.tag != "joint":
        remedy = "Cut the loop: remove the constraint; dynid handles serial chains and trees."
        raise constraint.error(f"the equality constraint <{constraint.tag[:60]}> is not supported", remedy)
    if first not in hold and constraint.attributes.get("joint2") not in hold:
        remedy = f"Hold the joint: --hold {first}, or read_mjcf(path, hold={{{first!r}: 0.0}})."
        raise constraint.error(f"joint '{first[:60]}' is bound by an equality constraint", remedy)


def effort_limits(settings: MjcfSettings) -> dict[str, float]:
    """Read the largest effort of the actuators of each joint: name -> [N m or N], where the file limits it.

    It is the smaller bound of ``forcerange``, or of a motor's ``ctrlrange``, times the gear.

    Raises:
        DescriptionError: An actuator has damping or armature, which would add to those of the joint.
    """
    efforts: dict[str, float] = {}
    sections = (section.children for section in settings.document.root.all("actuator"))
    for element in (child for children in sections for child in children if child.tag in ACTUATORS):
        actuator = settings.resolve(element, "main")
        for name in ("damping", "armature"):
            if actuator.number_list(name, [0.0]).any():
                reason = f"'{name}' of a <{element.tag}> is not supported"
                raise element.error(reason, "Give it to the joint, or remove it.")
        joint = actuator.attributes.get("joint", "")
        name = "forcerange" if "forcerange" in actuator.attributes else "ctrlrange"
        if joint and name in actuator.attributes and (name == "forcerange" or actuator.tag == "motor"):
            effort = np.abs(actuator.numbers(name, 2)).min() * abs(actuator.number_list("gear", [1.0])[0])
            efforts[joint] = efforts.get(joint, 0.0) + float(effort)
    return {joint: effort for joint, effort in efforts.items() if effort > 0.0}
