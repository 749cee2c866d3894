"""Write and read the terms that an MJCF states as tendons: coupled motors, constant torques, springs about a joint.

A term is a contribution to the joint torques with one parameter. MuJoCo's fixed tendon has the length ``sum c_i q_i``,
with coefficients c_i of joints; a spatial tendon is a string between sites, which are points of bodies. The MJCF writer
calls `tendon_text`, the reader `read_tendons`.

- A *motor that turns several joints* is a fixed tendon with armature, damping and frictionloss, whose coefficients c_i
  are the ratios of the motor. MuJoCo adds ``c_i c_j`` times the armature to the inertia matrix for all pairs of joints,
  i = j included; damping likewise. A `Coupling` has different joints i and j only. So on writing, ``c_i^2`` times the
  armature is subtracted from that of joint i (and so with damping), and on reading it is added.
- A *constant torque* (`Offset`) is a soft fixed tendon whose spring ends very far away.
- A torque that is a *sine of the joint angle* (`AngleHarmonic` of first order) is a spring of rest length zero between
  a point of the link and a point of the link before. Its torque is ``k a b sin(q - angle)`` for the stiffness k and
  points at distances a and b from the axis.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dynid.array_types import Floats
from dynid.errors import ExportError
from dynid.robot.formats.mjcf.mjcf_settings import MjcfSettings
from dynid.robot.formats.xml import Element, element_lines
from dynid.robot.model import Robot
from dynid.robot.parts import PlacedTerm
from dynid.spatial import EXACT, SAME, across, inverse_transform, rotation_about
from dynid.terms.base import StateTerm
from dynid.terms.coupling import CoupledTerm, Coupling
from dynid.terms.friction import Viscous
from dynid.terms.motors import Offset, RotorInertia
from dynid.terms.springs import AngleHarmonic

Site = tuple[str, Floats]
"""Link that a point is fixed to, and its position (3,) [m] in that link's frame."""
FAR = 1e6
"""Rest length of the spring of a constant torque [rad or m]: over 1 rad its torque changes by a millionth
(convention)."""
RADII = (0.1, 0.2)
"""Distances from the axis of the two ends of a spring about a joint [m] (convention); different ones, so that the
spring never has the length zero, at which it has no direction."""


def holds_as_tendon(robot: Robot, placed: PlacedTerm) -> bool:
    """Whether a tendon can state a term of a robot."""
    term = placed.term
    is_spring = isinstance(term, AngleHarmonic) and term.order == 1 and springs_fit(robot, placed.joints[0])
    return isinstance(term, Offset | CoupledTerm) or is_spring


# --- writing ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class TendonText:
    """What the tendons of a robot need in a file."""

    unique_name: Callable[[str], str]
    """Makes a name that no other tendon or site has."""
    bodies: Collection[str]
    """Links that are bodies of the file."""
    lines: list[str] = field(default_factory=list)
    """Lines of ``<tendon>``."""
    sites: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Link -> lines of sites to put into its body."""
    subtract: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    """Joint -> attribute -> number to subtract from the joint's attribute, because tendons add it."""


def tendon_text(robot: Robot, unique_name: Callable[[str], str], bodies: Collection[str]) -> TendonText:
    """Write the tendons of a robot; the arguments are fields of `TendonText`."""
    text = TendonText(unique_name, bodies)
    for coupling in robot.couplings:
        _write_coupling(text, robot, coupling)
    for j, joint in enumerate(robot.moving_joints):
        offset = sum(term.value for term in joint.terms if isinstance(term, Offset))
        if offset:
            _write_offset(text, joint.name, float(offset))
        harmonics = [t for t in joint.terms if isinstance(t, AngleHarmonic) and t.order == 1 and t.value]
        if harmonics:
            sine = sum(term.value for term in harmonics if term.sine)
            cosine = sum(term.value for term in harmonics if not term.sine)
            _write_harmonic(text, robot, j, float(cosine), float(sine))
    return text


def _fixed_tendon_lines(name: str, joints: Mapping[str, float], **attributes: float) -> list[str]:
    """Write a fixed tendon over joints: name of a joint -> its coefficient."""
    inside = (element_lines("joint", {"joint": joint, "coef": coef})[0] for joint, coef in joints.items())
    return element_lines("fixed", {"name": name, **attributes}, inside)


def _write_coupling(text: TendonText, robot: Robot, coupling: Coupling) -> None:
    """Write a motor as one tendon, or as several where its attributes need different coefficients.

    What MuJoCo adds to the single joints, value times coefficient^2, is noted in ``text.subtract``.
    """
    ratios = dict(coupling.ratios)
    quantities: dict[str, tuple[float, type[StateTerm]]] = {
        "armature": (coupling.rotor_inertia, RotorInertia),
        "damping": (coupling.viscous, Viscous),
    }
    tendons: dict[tuple[float, ...], dict[str, float]] = {}  # coefficients -> attributes
    for attribute, (value, kind) in quantities.items():
        if value:
            of_joints = [_joint_value(robot, name, kind) for name in ratios]
            coefs = _coefficients(list(ratios.values()), value, of_joints)
            tendons.setdefault(tuple(coefs), {})[attribute] = value
            for name, coef in zip(ratios, coefs, strict=True):
                text.subtract[name][attribute] += value * coef**2
    if coupling.coulomb:
        tendons.setdefault(tuple(ratios.values()), {})["frictionloss"] = coupling.coulomb
    for coefficients, attributes in tendons.items():
        name = text.unique_name(f"{'+'.join(ratios)}_motor")
        text.lines += _fixed_tendon_lines(name, dict(zip(ratios, coefficients, strict=True)), **attributes)


def _joint_value(robot: Robot, joint: str, kind: type[StateTerm]) -> float:
    """Add up the values of a joint's terms of one kind."""
    terms = next(j.terms for j in robot.moving_joints if j.name == joint)
    return float(sum(term.value for term in terms if type(term) is kind))


def _coefficients(ratios: list[float], value: float, of_joints: list[float]) -> list[float]:
    """Choose the coefficients of a tendon for a motor's armature or damping: its ratios, or scaled ratios.

    ``value * coef**2`` is subtracted from the number of each joint, and MuJoCo refuses a negative result. For two
    joints only the product of the coefficients matters: one can be smaller if the other is larger. They are scaled so
    that both subtractions are the same share of the joints' numbers.

    Args:
        ratios: Ratios of the motor.
        value: Armature or damping of the motor.
        of_joints: Armature or damping of each joint.
    """
    is_left = all(value * ratio**2 <= number for ratio, number in zip(ratios, of_joints, strict=True))
    if len(ratios) != 2 or min(of_joints) <= 0.0 or is_left:
        return ratios
    a, b = ratios
    # (a s)^2 / of_joints[0] = (b / s)^2 / of_joints[1]
    scale = float((of_joints[0] * b**2 / (of_joints[1] * a**2)) ** 0.25)
    return [a * scale, b / scale]


def _write_offset(text: TendonText, joint: str, offset: float) -> None:
    """Write a constant torque [N m or N], which the motor must exert in addition, as a spring with a far end."""
    # the spring pulls the joint with stiffness * FAR along the sign of its coefficient; the motor acts against it
    coef = -1.0 if offset > 0.0 else 1.0
    name = text.unique_name(f"{joint}_offset")
    text.lines += _fixed_tendon_lines(name, {joint: coef}, stiffness=abs(offset) / FAR, springlength=FAR)


def _write_harmonic(text: TendonText, robot: Robot, j: int, cosine: float, sine: float) -> None:
    """Write a spring between link j and the link before: ``k a b sin(q - angle) = cosine cos q + sine sin q``."""
    body = robot.bodies[j]
    before = robot.bodies[body.parent].members if body.parent >= 0 else ((robot.root, np.eye(4)),)
    # for both bodies a link that is a body of the file, and its pose in the robot's body
    ends = [next(((n, T) for n, T in members if n in text.bodies), None) for members in (before, body.members)]
    if ends[0] is None or ends[1] is None or not springs_fit(robot, j):
        raise ExportError(
            "a spring about one of several joints between two bodies cannot be written",
            place=f"joint '{body.joint.name}'",
            remedy="Leave out the AngleHarmonic terms of this joint.",
        )
    # amplitude * sin(q - angle) = amplitude * (cos(angle) sin q - sin(angle) cos q)
    angle = float(np.arctan2(-cosine, sine))
    side = across(body.axis)
    # the point of the link is at `side` times its radius; that of the link before is turned by the angle, in its frame
    start = body.R_parent_joint @ (RADII[0] * (rotation_about(body.axis, angle) @ side)) + body.p_parent_joint
    names = []  # of the two sites
    for (link, T_body_link), point, end in zip(
        (ends[0], ends[1]), (start, RADII[1] * side), ("from", "to"), strict=True
    ):
        names.append(text.unique_name(f"{body.joint.name}_spring_{end}"))
        position = (inverse_transform(T_body_link) @ np.append(point, 1.0))[:3]
        text.sites[link] += element_lines("site", {"name": names[-1], "pos": position})
    stiffness = float(np.hypot(cosine, sine)) / (RADII[0] * RADII[1])
    spring = text.unique_name(f"{body.joint.name}_spring")
    attributes: dict[str, str | float] = {"name": spring, "stiffness": stiffness, "springlength": "0"}
    text.lines += element_lines("spatial", attributes, (element_lines("site", {"site": name})[0] for name in names))


def springs_fit(robot: Robot, j: int) -> bool:
    """Whether a spring about joint j can be written: the joint turns, and both of its links are bodies with mass.

    A massless link does not become a body of the file: its joint becomes one of several of the next body.
    """
    body = robot.bodies[j]
    parent_is_body = body.parent < 0 or bool(robot.bodies[body.parent].inertia.vector.any())
    return parent_is_body and bool(body.inertia.vector.any()) and not body.is_prismatic


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class TendonTerms:
    """A robot with the terms that the tendons of its file state."""

    robot: Robot
    """The robot with these terms."""
    elements: tuple[Element, ...] = ()
    """The elements of the tendons that were read, and of their sites."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Tendon:
    """A tendon with passive attributes (stiffness, damping, friction, inertia)."""

    element: Element
    """Its element, with defaults filled in."""
    joints: dict[str, float]
    """Joint -> coefficient; empty for a spatial tendon."""
    numbers: dict[str, float]
    """Passive attribute -> its number, for those that are not zero."""


_TermsByJoint = dict[str, tuple[StateTerm, ...]]
"""Name of a joint -> its terms."""
_PASSIVE_ATTRIBUTES = ("stiffness", "damping", "frictionloss", "armature", "springyield")
"""The passive attributes of a tendon."""


def read_tendons(settings: MjcfSettings, robot: Robot, sites: Mapping[str, tuple[Site, Element]]) -> TendonTerms:
    """Add to a robot the terms that the tendons of its file state.

    Args:
        settings: The settings and defaults of the file.
        robot: The robot without its tendons.
        sites: Name of a site -> its point and its element.

    Raises:
        DescriptionError: A tendon has stiffness, damping, friction or inertia that is no term.
    """
    terms = {joint.name: joint.terms for joint in robot.joints}  # the functions below change it
    motors: list[_Tendon] = []
    used: list[Element] = []  # elements that become terms
    for section in settings.document.root.all("tendon"):
        for element in section.children:
            tendon = _read_passive_tendon(settings, element)
            if tendon is None:
                continue
            used.append(element)
            if element.tag == "spatial":
                used += _read_harmonic(robot, terms, tendon, sites)
            elif "stiffness" in tendon.numbers:
                _read_offset(robot, terms, tendon)
            elif "springyield" in tendon.numbers:
                raise _attribute_error(element, "springyield", "is friction with memory, which no robot carries")
            else:
                motors.append(tendon)
    couplings = _read_motors(robot, terms, motors)
    joints = tuple(joint.with_terms(terms[joint.name]) for joint in robot.joints)
    return TendonTerms(replace(robot, joints=joints, couplings=couplings) if used else robot, tuple(used))


def _read_passive_tendon(settings: MjcfSettings, element: Element) -> _Tendon | None:
    """Read a tendon with passive attributes; None for one that only transmits forces."""
    if element.tag not in ("fixed", "spatial"):
        return None
    resolved = settings.resolve(element, "main")
    numbers = {}
    for name in _PASSIVE_ATTRIBUTES:
        values = resolved.number_list(name, [0.0])
        if values[1:].any():
            raise _attribute_error(element, name, "is a polynomial, which is not supported")
        if values[0]:
            numbers[name] = float(values[0])
    if not numbers:
        return None
    joints = {c.attributes.get("joint", ""): c.number("coef", 1.0) for c in element.all("joint")}
    return _Tendon(element=resolved, joints=joints, numbers=numbers)


def _attribute_error(element: Element, attribute: str, reason: str = "is not supported") -> Exception:
    """Make the error for an attribute of a tendon that states no term."""
    reason = f"'{attribute}' of a <{element.tag}> {reason}"
    return element.error(reason, "Give it to the joint, or remove it.")


def _check_joints(robot: Robot, tendon: _Tendon, *, least: int, turning: bool) -> None:
    """Refuse a tendon over joints that do not move, over less than ``least`` joints, or (``turning``) over slides."""
    moving = {joint.name: joint for joint in robot.moving_joints}
    fits = len(tendon.joints) >= least and all(coef and name in moving for name, coef in tendon.joints.items())
    if not fits or (turning and any(moving[name].kind == "prismatic" for name in tendon.joints)):
        raise _attribute_error(tendon.element, next(iter(tendon.numbers)))


def _read_offset(robot: Robot, terms: _TermsByJoint, tendon: _Tendon) -> None:
    """Read a constant torque, and add it to the terms of its joint."""
    _check_joints(robot, tendon, least=1, turning=False)
    lengths = tendon.element.number_list("springlength", [0.0])
    # one rest length, not a range; not much nearer than what is written here: there the torque is nearly constant
    is_far = np.ptp(lengths) == 0.0 and abs(lengths[0]) >= 0.1 * FAR
    if len(tendon.joints) != 1 or set(tendon.numbers) != {"stiffness"} or not is_far:
        raise _attribute_error(tendon.element, "stiffness")
    ((name, coef),) = tendon.joints.items()
    _add_term(terms, name, Offset(float(-coef * tendon.numbers["stiffness"] * lengths[0])))


def _read_motors(robot: Robot, terms: _TermsByJoint, tendons: Sequence[_Tendon]) -> tuple[Coupling, ...]:
    """Read couplings of fixed tendons, and add their shares of the joints' armature and damping to the terms.

    Several tendons over the same joints are one motor if their coefficients allow it, because `_write_coupling` may
    write one motor as several tendons with scaled coefficients.
    """
    groups: dict[frozenset[str], list[_Tendon]] = {}
    for tendon in tendons:
        _check_joints(robot, tendon, least=2, turning=True)
        groups.setdefault(frozenset(tendon.joints), []).append(tendon)
    couplings: list[Coupling] = []
    for group in groups.values():
        # tendons with friction first: their coefficients are never scaled, so that they are the ratios
        group.sort(key=lambda tendon: "frictionloss" not in tendon.numbers)
        while group:
            ratios = group[0].joints
            same = [tendon for tendon in group if tendon is group[0] or _is_same_motor(ratios, tendon)]
            values = dict.fromkeys(("armature", "damping", "frictionloss"), 0.0)
            for tendon in same:
                a, b = list(ratios)[:2]
                # the joints feel number * c_a c_b; the motor with its ratios must have the same effect
                factor = tendon.joints[a] * tendon.joints[b] / (ratios[a] * ratios[b])
                for name, number in tendon.numbers.items():
                    values[name] += number * (1.0 if name == "frictionloss" else factor)
            couplings.append(Coupling(ratios, values["armature"], values["damping"], values["frictionloss"]))
            group = [tendon for tendon in group if tendon not in same]
    for tendon in tendons:
        for name, coef in tendon.joints.items():
            for attribute, kind in (("armature", RotorInertia), ("damping", Viscous)):
                if attribute in tendon.numbers:
                    _add_term(terms, name, kind(tendon.numbers[attribute] * coef**2), first=True)
    return tuple(couplings)


def _is_same_motor(ratios: Mapping[str, float], tendon: _Tendon) -> bool:
    """Whether a tendon can belong to a motor with these ratios: its coefficients are the same, or scaled.

    Of two joints, only the sign of the product of the coefficients is given, see `_coefficients`.
    """
    factors = [tendon.joints[name] / ratio for name, ratio in ratios.items()]
    if np.allclose(factors, 1.0, rtol=SAME):
        return True
    return len(factors) == 2 and factors[0] * factors[1] > 0.0 and "frictionloss" not in tendon.numbers


def _add_term(terms: _TermsByJoint, joint: str, term: StateTerm, *, first: bool = False) -> None:
    """Add the value of a term to that of the joint's term of the same kind; a sum of zero removes the term.

    A joint without such a term gets it, before its other terms (``first``) or after them.
    """
    of_joint = terms[joint]
    kind = term.with_value(0.0)
    same = [t for t in of_joint if t.with_value(0.0) == kind]
    total = sum(t.value for t in same) + term.value
    if abs(total) <= EXACT * abs(term.value):
        terms[joint] = tuple(t for t in of_joint if t not in same)
    elif same:
        terms[joint] = tuple(t.with_value(total) if t is same[0] else t for t in of_joint if t not in same[1:])
    else:
        terms[joint] = (term, *of_joint) if first else (*of_joint, term)


def _read_harmonic(
    robot: Robot, terms: _TermsByJoint, tendon: _Tendon, sites: Mapping[str, tuple[Site, Element]]
) -> list[Element]:
    """Read a spring of rest length zero between two neighbouring bodies as sine and cosine of the joint between them.

    Returns:
        The elements of the sites at its ends.
    """
    element = tendon.element
    names = [child.attributes.get("site", "") for child in element.children]
    is_spring = set(tendon.numbers) == {"stiffness"} and not element.number_list("springlength", [-1.0]).any()
    if not is_spring or len(names) != 2 or any(name not in sites for name in names):
        raise _attribute_error(element, next(iter(tendon.numbers)))
    # (index of the body, point in its frame) of both ends, that of the parent body first
    ends = [_point_in_body(robot, *sites[name][0]) for name in names]
    if robot.bodies[ends[1][0]].parent != ends[0][0]:
        ends.reverse()
    (parent, from_point), (j, to_point) = ends
    body = robot.bodies[j] if j >= 0 else None
    if body is None or body.parent != parent or body.is_prismatic:
        raise _attribute_error(element, "stiffness")
    # both points in the joint frame at q = 0: height along the axis, and the part across it (a, b)
    start = body.R_parent_joint.T @ (from_point - body.p_parent_joint)
    start_height = float(start @ body.axis)
    end_height = float(to_point @ body.axis)
    if abs(start_height - end_height) > SAME:  # then the torque is no pure sine
        raise _attribute_error(element, "stiffness")
    a = start - start_height * body.axis
    b = to_point - end_height * body.axis
    # the torque is k |a| |b| sin(q - angle), with the angle from b to a about the axis
    stiffness = tendon.numbers["stiffness"]
    sine = stiffness * float(a @ b)
    cosine = -stiffness * float(np.cross(b, a) @ body.axis)
    name = body.joint.name
    _add_term(terms, name, AngleHarmonic(cosine))
    _add_term(terms, name, AngleHarmonic(sine, sine=True))
    return [sites[end][1] for end in names]


def _point_in_body(robot: Robot, link: str, point: Floats) -> tuple[int, Floats]:
    """Find the body of a link (its index, -1 for the base), and convert a point (3,) [m] to the body's frame."""
    index, T_body_link = robot.link_body(link)
    return index, (T_body_link @ np.append(point, 1.0))[:3]
