"""What is wrong or suspicious in a robot model: masses, tensors, placements, limits, terms, angles, gravity.

Everything is only reported; nothing is changed. Most faults of model files are units, frames and copied numbers.
``dynid check`` calls `check_robot`, which applies a list of *rules*: each is a generator that takes the robot and
yields the faults of one kind. Terms are friction, rotor inertia and other contributions to the joint torques.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from dynid.array_types import Floats
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError
from dynid.findings import Finding, QualityReport, Severity
from dynid.robot.formats.urdf import joints_in_degrees, snapped_joints
from dynid.robot.inertia import Inertia
from dynid.robot.model import STANDARD_GRAVITY, Robot
from dynid.robot.parts import SMALLEST_LINK_M, Joint, Link
from dynid.spatial import EXACT, SIX_DIGITS

LIGHTEST_KG, HEAVIEST_KG, IMPOSSIBLE_KG, LONGEST_M = 1e-6, 1e3, 1e6, 100.0
"""Masses of links below the first and above the second are probably in another unit; above the third they are
impossible; a robot that reaches farther than the fourth is probably stated in millimetres (convention)."""
REFUSED_EXCESS = 0.01
"""Relative amount by which a number may miss what is physically possible without being refused by commands (convention:
files are rounded to two digits for flat parts); without a finding, it is `SIX_DIGITS`."""
FARTHEST_IN_SIZES, SMALLEST_GYRATION_IN_SIZES = 3.0, 0.005
"""Limits in multiples of the link's size (convention): largest distance of the centre of mass and largest radius of
gyration, and smallest radius of gyration. Beyond them a unit or a frame is probably wrong."""

RuleFindings = Iterator[tuple[str, Severity, str, str, str]]
"""What a rule yields for each fault: code, severity, place, message and remedy, the fields of a `Finding`."""
TENSOR_REMEDY = "Take the tensor from CAD again (about the centre of mass, in kg m^2), or identify it."


def check_robot(robot: Robot) -> QualityReport:
    """List what is unphysical or suspicious in a robot model, each with a remedy.

    Example:
        >>> dynid.check_robot(robot).ok
        False
    """
    return QualityReport.of(robot.name, _apply(robot, _RULES))


def _apply(robot: Robot, rules: Iterable[Callable[[Robot], RuleFindings]]) -> list[Finding]:
    """Collect the findings of some rules."""
    return [
        Finding(code=code, severity=severity, where=where, message=message, remedy=remedy)
        for rule in rules
        for code, severity, where, message, remedy in rule(robot)
    ]


def _at(names: list[str]) -> str:
    """Write the place of a finding: the name of one joint, or the first three of several."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"joint '{names[0]}'" if len(names) == 1 else f"joints {', '.join(names[:3])}{more}"


# --- links ------------------------------------------------------------------------------------------------------------


def _check_links(robot: Robot) -> RuleFindings:
    """Find masses and tensors of links that no body has, or hardly any.

    The size of a link is the distance from its frame to its farthest joint, at least the median of the robot.
    """
    lengths = [float(np.linalg.norm(joint.T_parent_joint[:3, 3])) for joint in robot.joints]
    typical = max(np.median([length for length in lengths if length > EXACT] or [SMALLEST_LINK_M]), SMALLEST_LINK_M)
    for link in _links_with_inertia(robot):
        where = f"link '{link.name}'"
        if fault := _mass_fault(link.inertia) or _tensor_fault(link.inertia, SIX_DIGITS):  # message, remedy
            yield "impossible-inertia", "error", where, *fault
        points = [joint.T_parent_joint[:3, 3] for joint in robot.joints if joint.parent == link.name]
        size = max([float(np.linalg.norm(point)) for point in points] + [typical])
        for message, remedy in _unusual_numbers(link.inertia, points, size):
            yield "unusual-inertia", "warning", where, message, remedy


def _mass_fault(inertia: Inertia) -> tuple[str, str] | None:
    """Write message and remedy for a mass that no link has; None if it is possible."""
    if inertia.mass < 0.0:
        return f"the mass is negative: {inertia.mass:g} kg", "Measure or identify it."
    if inertia.mass > IMPOSSIBLE_KG:
        return f"its mass is {inertia.mass:g} kg", "Check the unit: kg, not g or t."
    return None


def _tensor_fault(inertia: Inertia, rounding: float) -> tuple[str, str] | None:
    """Write message and remedy for principal moments that are negative or break the triangle inequality; else None.

    Args:
        inertia: Of a link or a body.
        rounding: Relative amount by which a moment may miss the limit.
    """
    if inertia.mass <= 0.0:
        return None
    moments = _principal_moments(inertia)
    shown = ", ".join(f"{moment:.4g}" for moment in moments)
    slack = rounding * max(abs(moments[0]), moments[2])  # moments are ascending
    if moments[0] < -slack:
        return f"a principal moment of inertia is negative: {shown} kg m^2", TENSOR_REMEDY
    if moments[0] + moments[1] < moments[2] - slack:
        return f"its principal moments break the triangle inequality: {shown} kg m^2", TENSOR_REMEDY
    return None


def _unusual_numbers(inertia: Inertia, points: list[Floats], size: float) -> Iterator[tuple[str, str]]:
    """Yield message and remedy for each number that is possible but unlikely: probably a wrong unit or frame.

    Args:
        inertia: Mass properties of the link in its frame.
        points: (3,) each, positions of the next joints in the link's frame [m].
        size: Length of the link [m].
    """
    mass = inertia.mass
    if mass == 0.0:  # the limit of ever lighter, ever larger bodies; simulators may refuse it
        yield "it has inertia but no mass", "Give it its mass, or no inertia."
    elif not LIGHTEST_KG <= mass <= HEAVIEST_KG and not _mass_fault(inertia):
        yield f"its mass is {mass:g} kg", "Check the unit: kg, not g or t."
    if mass < LIGHTEST_KG:  # too small to divide by in the radius of gyration
        return
    moments = _principal_moments(inertia)
    if not moments.any():
        yield "it has mass but a zero inertia tensor", TENSOR_REMEDY
    # distance from the line between the link's own joint, at the origin, and a next one; the largest radius of gyration
    away = min(_distance_to_segment(inertia.com, point) for point in [*points, np.zeros(3)])
    spread = float(np.sqrt(max(moments[2], 0.0) / mass))
    if away > FARTHEST_IN_SIZES * size:
        text = f"the centre of mass is {away:.3g} m from the line between its joints, which are {size:.3g} m apart"
        yield text, "Check its unit (m) and frame (the link's, not the CAD file's)."
    if spread > FARTHEST_IN_SIZES * size or 0.0 < spread < SMALLEST_GYRATION_IN_SIZES * size:
        text = f"the radius of gyration is {spread:.3g} m for a link of about {size:.3g} m"
        yield text, "Check the unit (kg m^2) and the point (centre of mass) it is about, or identify the tensor."


def impossible_inertias(robot: Robot) -> tuple[list[Finding], list[Finding]]:
    """Find masses and tensors that no body has, and that rounding to few digits (`REFUSED_EXCESS`) does not explain.

    Returns:
        Findings that torques depend on, for which commands refuse a robot; and findings that no torque depends on:
        links that do not move, and links whose tensor is impossible while the body that they are part of is possible.
    """
    body_of = {name: body for body in robot.bodies for name, _ in body.members}
    harmful = list[Finding]()
    harmless = list[Finding]()
    for link in _links_with_inertia(robot):
        mass_fault = _mass_fault(link.inertia)
        if fault := mass_fault or _tensor_fault(link.inertia, REFUSED_EXCESS):
            body = body_of.get(link.name)
            matters = body is not None and bool(mass_fault or _tensor_fault(body.inertia, REFUSED_EXCESS))
            message, remedy = fault
            found = Finding(code="impossible-inertia", severity="error", where=f"link '{link.name}'", message=message,
                            remedy=remedy)  # fmt: skip
            (harmful if matters else harmless).append(found)
    return harmful, harmless


def refuse_negative_masses(robot: Robot) -> None:
    """Refuse a robot with a mass that no link has: its torques, and all limits on them, would be wrong.

    Raises:
        ArgumentError: A link that moves has a negative mass, or one of thousands of tons.
    """
    for link in (robot.link(name) for body in robot.bodies for name, _ in body.members):
        if _mass_fault(link.inertia):
            raise ArgumentError(
                f"the mass of {link.name} is {link.inertia.mass:g} kg, so that the torques of a motion would be wrong",
                remedy="Correct the robot file (dynid check lists its faults), or identify the robot first.",
            )


def _check_massless_ends(robot: Robot) -> RuleFindings:
    """Find joints at the end of a branch that move a body without mass."""
    carriers = {body.parent for body in robot.bodies}
    ends = [body for index, body in enumerate(robot.bodies) if index not in carriers]
    if names := [body.joint.name for body in ends if not body.inertia.vector.any()]:
        text = "it moves a body without mass, so its acceleration is not defined"
        remedy = "Give the body its mass, or hold the joint (--hold JOINT, in Python hold={'JOINT': 0.0})."
        yield "unusual-inertia", "warning", _at(names), text, remedy


# --- joints -----------------------------------------------------------------------------------------------------------

_LIMITS: tuple[tuple[Severity, str, str, Callable[[Joint], bool]], ...] = (
    ("warning", "it has no position limits", "Add lower and upper, or declare the joint continuous.",
     lambda j: j.kind != "continuous" and not np.isfinite([j.limits.lower, j.limits.upper]).all()),
    ("warning", "the position limits leave no motion", "Correct lower and upper, or make the joint fixed.",
     lambda j: j.limits.lower == j.limits.upper),
    ("warning", "the velocity limit is zero", "Give it in rad/s or m/s.", lambda j: j.limits.velocity == 0.0),
    ("warning", "the effort limit is zero", "Give it in N m or N.", lambda j: j.limits.effort == 0.0),
    ("warning", "it has no velocity limit", "Add one, or use with_limits, before a motion is designed.",
     lambda j: bool(np.isinf(j.limits.velocity))),
    ("note", "it has no effort limit",
     "Add one, or use with_limits, to keep designed motions within the drives' torque.",
     lambda j: bool(np.isinf(j.limits.effort))),
)  # fmt: skip
"""Limits that are missing or leave no motion: severity, message, remedy, and the test whether a joint has the fault."""


def _check_limits(robot: Robot) -> RuleFindings:
    """Find limits of joints that are missing or leave no motion."""
    for severity, message, remedy, applies in _LIMITS:
        if names := [joint.name for joint in robot.moving_joints if applies(joint)]:
            yield "joint-limits", severity, _at(names), message, remedy


def _check_terms(robot: Robot) -> RuleFindings:
    """Find friction and inertia of drives with the wrong sign, and couplings with an indefinite matrix.

    A motor that turns several joints adds to their matrices of inertia and of viscosity. If one of these has a negative
    eigenvalue, some motion has negative kinetic energy, or friction drives it.
    """
    for placed in robot.terms:
        if placed.term.is_non_negative and placed.term.value < 0.0:
            text = f"{type(placed.term).__name__} ({placed.term.symbol}) is negative: {placed.term.value:g}"
            where = _at([placed.owner]) if len(placed.joints) == 1 else f"motor of {placed.owner}"
            yield "negative-friction", "error", where, text, "Correct the sign, or identify it."
    joints = sorted({joint for placed in robot.terms if len(placed.joints) > 1 for joint in placed.joints})
    for what in ("inertia", "viscosity") if joints else ():
        matrix = np.zeros((robot.dof, robot.dof))
        for placed in robot.terms:
            # (row, column) -> coefficient of the term's value in the joints' matrix of inertia or of viscosity
            for pair, part in getattr(placed.term, what)(placed.joints).items():
                matrix[pair] += placed.term.value * part
        values = eigvalsh(matrix[np.ix_(joints, joints)])
        if values[0] < -SIX_DIGITS * float(np.abs(values).max()):
            text = f"the matrix of their coupled {what} has the negative eigenvalue {values[0]:.4g}"
            remedy = "A motor's part is in the joints' own parameters, too: they are at least ratio^2 times it."
            yield "negative-friction", "error", _at([robot.joint_names[joint] for joint in joints]), text, remedy


# --- geometry ---------------------------------------------------------------------------------------------------------


def _check_written_angles(robot: Robot) -> RuleFindings:
    """Find angles of a URDF that seem to be in degrees, and right angles that were rounded in the file."""
    if found := joints_in_degrees(robot):
        first = next(iter(found))
        text = f"the angles rpy=\"{found[first]}\" of '{first}' are beyond a whole turn, as if in degrees"
        yield "unusual-geometry", "warning", _at(list(found)), text, "Write them in radians: 90 degrees are 1.5707963."
    if names := snapped_joints(robot):
        text = "right angles that the file has rounded (1.5708 for pi/2) are taken as exact; the file's text is kept"
        remedy = "Nothing to do. --no-snap, or read_urdf(path, snap=False), takes the angles as they are written."
        yield "unusual-geometry", "note", _at(list(names)), text, remedy


def angle_findings(robot: Robot) -> list[Finding]:
    """Collect the findings about the angles in a robot's URDF, for commands that use the robot."""
    return _apply(robot, [_check_written_angles])


def _check_reach(robot: Robot) -> RuleFindings:
    """Find lengths and limits in millimetres: stretched out, the robot would be longer than any."""
    ranges = [joint.limits.upper - joint.limits.lower for joint in robot.joints if joint.kind == "prismatic"]
    reach = sum(float(np.linalg.norm(joint.T_parent_joint[:3, 3])) for joint in robot.joints)
    reach += sum(filter(np.isfinite, ranges))
    if reach > LONGEST_M:
        text = f"lengths and limits of its joints add up to {reach:.4g} m"
        yield "unusual-geometry", "warning", "robot", text, "Write them in metres, not in millimetres."


def _check_gravity(robot: Robot) -> RuleFindings:
    """Find a gravity that is not the Earth's."""
    strength = float(np.linalg.norm(robot.gravity))
    usual = float(np.linalg.norm(STANDARD_GRAVITY))
    if abs(strength - usual) > REFUSED_EXCESS * usual:  # gravity on Earth varies by less
        remedy = "Pass gravity=(0, 0, -9.81), or keep it if the robot is not on Earth's ground."
        yield "unusual-geometry", "note", "robot", f"gravity is {strength:.4g} m/s^2", remedy


_RULES: tuple[Callable[[Robot], RuleFindings], ...] = (
    _check_links,
    _check_massless_ends,
    _check_limits,
    _check_terms,
    _check_written_angles,
    _check_reach,
    _check_gravity,
)
"""The rules of `check_robot`, in the order of its report."""


def _links_with_inertia(robot: Robot) -> list[Link]:
    """List the links that have a mass, a first moment or a tensor."""
    return [link for link in robot.links if link.inertia.vector.any()]


def _principal_moments(inertia: Inertia) -> Floats:
    """Compute the principal moments of inertia (3,) about the centre of mass, ascending [kg m^2]."""
    about_com, about_origin = inertia.about_com, inertia.about_origin
    if np.linalg.norm(about_com) <= EXACT * np.linalg.norm(about_origin):
        return np.zeros(3)  # a point mass: the tensor about its centre is rounding
    return np.array(eigvalsh(about_com))


def _distance_to_segment(point: Floats, end: Floats) -> float:
    """Compute the distance [m] of a point (3,) from the segment between the origin and ``end`` (3,)."""
    square = float(end @ end)
    along = float(np.clip(point @ end / square, 0.0, 1.0)) if square > 0.0 else 0.0
    return float(np.linalg.norm(point - along * end))
