"""What is wrong or suspicious in a robot model: masses, tensors, placements, limits, terms, angles, gravity.

Everything is only reported; nothing is changed. Most faults of model files are units, frames and copied numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError
from dynid.findings import Finding, QualityReport, Severity
from dynid.robot.formats.urdf import joints_in_degrees, snapped_joints
from dynid.robot.inertia import Inertia
from dynid.robot.model import STANDARD_GRAVITY, Robot
from dynid.robot.parts import SMALLEST_LINK_M, Joint, Link
from dynid.spatial import EXACT

LIGHTEST_KG, HEAVIEST_KG, IMPOSSIBLE_KG = 1e-6, 1e3, 1e6
"""Masses of links below the first and above the second are more likely in another unit; above the third they are
impossible (convention)."""
ROUNDING, FEW_DIGITS = 1e-6, 0.01
"""Part of a number by which it may miss what is possible or usual without a finding, and without being refused
(convention: six digits, and two for flat parts)."""
FAR, NARROW = 3.0, 0.005
"""Distance of the centre of mass and radius of gyration at most, and radius of gyration at least, as multiples of the
link's size, beyond which a unit or a frame is probably wrong (convention)."""

Rule = Iterator[tuple[str, Severity, str, str, str]]
"""Code, severity, place, message and remedy of what a rule finds."""
TENSOR = "Take the tensor from CAD again (about the centre of mass, in kg m^2), or identify it."


def check_robot(robot: Robot) -> QualityReport:
    """List what is unphysical or suspicious in a robot model, each with a remedy.

    Example:
        >>> dynid.check_robot(robot).ok
        False
    """
    return QualityReport.of(robot.name, _apply(robot, _RULES))


def _apply(robot: Robot, rules: Iterable[Callable[[Robot], Rule]]) -> list[Finding]:
    return [
        Finding(code=code, severity=severity, where=where, message=message, remedy=remedy)
        for rule in rules
        for code, severity, where, message, remedy in rule(robot)
    ]


def _at(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"joint '{names[0]}'" if len(names) == 1 else f"joints {', '.join(names[:3])}{more}"


# --- links ------------------------------------------------------------------------------------------------------------


def _check_links(robot: Robot) -> Rule:
    lengths = [float(np.linalg.norm(joint.T_parent_joint[:3, 3])) for joint in robot.joints]
    typical = max(np.median([length for length in lengths if length > EXACT] or [SMALLEST_LINK_M]), SMALLEST_LINK_M)
    for link in _links_with_inertia(robot):
        where = f"link '{link.name}'"
        if fault := _mass_fault(link.inertia) or _tensor_fault(link.inertia, ROUNDING):
            yield "impossible-inertia", "error", where, *fault
        points = [joint.T_parent_joint[:3, 3] for joint in robot.joints if joint.parent == link.name]
        size = max([float(np.linalg.norm(point)) for point in points] + [typical])
        for message, remedy in _unusual(link.inertia, points, size):
            yield "unusual-inertia", "warning", where, message, remedy


def _mass_fault(inertia: Inertia) -> tuple[str, str] | None:
    """Message and remedy for a mass that no link has."""
    if inertia.mass < 0.0:
        return f"the mass is negative: {inertia.mass:g} kg", "Measure or identify it."
    if inertia.mass > IMPOSSIBLE_KG:
        return f"its mass is {inertia.mass:g} kg", "Check the unit: kg, not g or t."
    return None


def _tensor_fault(inertia: Inertia, rounding: float) -> tuple[str, str] | None:
    """Message and remedy for principal moments that are negative or break the triangle inequality."""
    if inertia.mass <= 0.0:
        return None
    moments = _principal_moments(inertia)
    shown = ", ".join(f"{moment:.4g}" for moment in moments)
    slack = rounding * max(abs(moments[0]), moments[2])  # files are rounded
    if moments[0] < -slack:
        return f"a principal moment of inertia is negative: {shown} kg m^2", TENSOR
    if moments[0] + moments[1] < moments[2] - slack:
        return f"its principal moments break the triangle inequality: {shown} kg m^2", TENSOR
    return None


def _unusual(inertia: Inertia, points: list[Floats], size: float) -> Iterator[tuple[str, str]]:
    """Message and remedy for numbers that a link can have, and hardly has: a wrong unit or frame.

    Args:
        inertia: Of the link.
        points: Where the next joints are.
        size: Of the link [m].
    """
    mass = inertia.mass
    if mass == 0.0:  # the limit of ever lighter, ever larger bodies; simulators may refuse it
        yield "it has inertia but no mass", "Give it its mass, or no inertia."
    elif not LIGHTEST_KG <= mass <= HEAVIEST_KG and not _mass_fault(inertia):
        yield f"its mass is {mass:g} kg", "Check the unit: kg, not g or t."
    if mass < LIGHTEST_KG:  # too small to divide by
        return
    moments = _principal_moments(inertia)
    if not moments.any():
        yield "it has mass but a zero inertia tensor", TENSOR
    away = min(_distance_to_segment(inertia.com, point) for point in [*points, np.zeros(3)])
    spread = float(np.sqrt(max(moments[2], 0.0) / mass))
    if away > FAR * size:
        text = f"the centre of mass is {away:.3g} m from the line between its joints, which are {size:.3g} m apart"
        yield text, "Check its unit (m) and frame (the link's, not the CAD file's)."
    if spread > FAR * size or 0.0 < spread < NARROW * size:
        text = f"the radius of gyration is {spread:.3g} m for a link of about {size:.3g} m"
        yield text, "Check the unit (kg m^2) and the point (centre of mass) it is about, or identify the tensor."


def impossible_inertias(robot: Robot) -> tuple[list[Finding], list[Finding]]:
    """Masses and tensors that no body has, by more than the few digits of a file explain.

    Returns:
        Those that the motion depends on, for which commands refuse a robot; and those that no torque depends on: of
        links that do not move, and tensors of parts of bodies that are possible as a whole.
    """
    body_of = {name: body for body in robot.bodies for name, _ in body.members}
    needed, harmless = list[Finding](), list[Finding]()
    for link in _links_with_inertia(robot):
        light, wide = _mass_fault(link.inertia), _tensor_fault(link.inertia, FEW_DIGITS)
        if light or wide:
            body = body_of.get(link.name)
            matters = body is not None and bool(light or _tensor_fault(body.inertia, FEW_DIGITS))
            message, remedy = light or wide or ("", "")
            found = Finding(code="impossible-inertia", severity="error", where=f"link '{link.name}'", message=message,
                            remedy=remedy)  # fmt: skip
            (needed if matters else harmless).append(found)
    return needed, harmless


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


def _check_massless_ends(robot: Robot) -> Rule:
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
"""Limits that are missing or leave no motion: severity, message, remedy, question."""


def _check_limits(robot: Robot) -> Rule:
    for severity, message, remedy, applies in _LIMITS:
        if names := [joint.name for joint in robot.moving_joints if applies(joint)]:
            yield "joint-limits", severity, _at(names), message, remedy


def _check_terms(robot: Robot) -> Rule:
    """Parameters of the wrong sign, and couplings that would give energy away."""
    for placed in robot.terms:
        if placed.term.is_non_negative and placed.term.value < 0.0:
            text = f"{type(placed.term).__name__} ({placed.term.symbol}) is negative: {placed.term.value:g}"
            where = _at([placed.owner]) if len(placed.joints) == 1 else f"motor of {placed.owner}"
            yield "negative-friction", "error", where, text, "Correct the sign, or identify it."
    joints = sorted({joint for placed in robot.terms if len(placed.joints) > 1 for joint in placed.joints})
    for what in ("inertia", "viscosity") if joints else ():
        matrix = np.zeros((robot.dof, robot.dof))
        for placed in robot.terms:
            for pair, part in getattr(placed.term, what)(placed.joints).items():
                matrix[pair] += placed.term.value * part
        values = eigvalsh(matrix[np.ix_(joints, joints)])
        if values[0] < -ROUNDING * float(np.abs(values).max()):
            text = f"the matrix of their coupled {what} has the negative eigenvalue {values[0]:.4g}"
            remedy = "A motor's part is in the joints' own parameters, too: they are at least ratio^2 times it."
            yield "negative-friction", "error", _at([robot.joint_names[joint] for joint in joints]), text, remedy


# --- geometry ---------------------------------------------------------------------------------------------------------


def _check_written_angles(robot: Robot) -> Rule:
    if found := joints_in_degrees(robot):
        first = next(iter(found))
        text = f"the angles rpy=\"{found[first]}\" of '{first}' are beyond a whole turn, as if in degrees"
        yield "unusual-geometry", "warning", _at(list(found)), text, "Write them in radians: 90 degrees are 1.5707963."
    if names := snapped_joints(robot):
        text = "right angles that the file has rounded (1.5708 for pi/2) are taken as exact; the file's text is kept"
        remedy = "Nothing to do. --no-snap, or read_urdf(path, snap=False), takes the angles as they are written."
        yield "unusual-geometry", "note", _at(list(names)), text, remedy


def angle_findings(robot: Robot) -> list[Finding]:
    """What is worth knowing about the angles of a robot's URDF before it is used."""
    return _apply(robot, [_check_written_angles])


def _check_gravity(robot: Robot) -> Rule:
    strength, usual = float(np.linalg.norm(robot.gravity)), float(np.linalg.norm(STANDARD_GRAVITY))
    if abs(strength - usual) > FEW_DIGITS * usual:
        remedy = "Pass gravity=(0, 0, -9.81), or keep it if the robot is not on Earth's ground."
        yield "unusual-geometry", "note", "robot", f"gravity is {strength:.4g} m/s^2", remedy


_RULES: tuple[Callable[[Robot], Rule], ...] = (
    *(_check_links, _check_massless_ends, _check_limits, _check_terms),
    *(_check_written_angles, _check_gravity),
)


def _links_with_inertia(robot: Robot) -> list[Link]:
    return [link for link in robot.links if link.inertia.vector.any()]


def _principal_moments(inertia: Inertia) -> Floats:
    """(3,) about the centre of mass, ascending [kg m^2]."""
    about_com, about_origin = inertia.about_com, inertia.about_origin
    if np.linalg.norm(about_com) <= EXACT * np.linalg.norm(about_origin):
        return np.zeros(3)  # what is left of a point mass after rounding
    return np.array(eigvalsh(about_com))


def _distance_to_segment(point: Floats, end: Floats) -> float:
    """Distance [m] of a point from the segment between the origin and ``end``."""
    square = float(end @ end)
    along = float(np.clip(point @ end / square, 0.0, 1.0)) if square > 0.0 else 0.0
    return float(np.linalg.norm(point - along * end))
