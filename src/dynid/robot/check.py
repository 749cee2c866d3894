"""Check a robot model for numbers that are unphysical or suspicious.

Each rule is a small generator of findings; `check_robot` runs them all. An error is impossible for any robot, a warning
is probably a mistake, a note is worth knowing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError
from dynid.findings import Finding, QualityReport, Severity
from dynid.robot.formats.urdf import joints_in_degrees, snapped_joints
from dynid.robot.inertia import Inertia
from dynid.robot.model import ROUNDED_ANGLE, Robot
from dynid.robot.parts import Joint, Link

LIGHTEST_KG, HEAVIEST_KG, IMPOSSIBLE_KG = 1e-6, 1e3, 1e6
"""Masses of links below the first and above the second are more likely in another unit; above the third they are
impossible (convention)."""
ROUNDING, FEW_DIGITS = 1e-6, 0.01
"""Part of the largest principal moment by which a tensor may miss the triangle inequality without a finding, and
without being refused (convention: six digits, and two for flat parts)."""
FAR, NARROW = 3.0, 0.005
"""Distance of the centre of mass and radius of gyration at most, and radius of gyration at least, as multiples of the
link's size, beyond which a unit or a frame is probably wrong (convention)."""
TEMPLATE = 3
"""Links of one chain with the same ten numbers that look like a template (convention)."""
EARTH = (9.7, 9.9)
"""Strength of gravity on Earth's ground [m/s^2], with a margin."""
TINY = 1e-12
"""Part of a number that is rounding of float64 (convention)."""
SMALLEST_LINK_M = 0.1
"""Smallest size of a link that sizes are judged by [m] (convention)."""


def check_robot(robot: Robot) -> QualityReport:
    """List what is unphysical or suspicious in a robot model, each with a remedy.

    Example:
        >>> dynid.check_robot(robot).ok
        False
    """
    return QualityReport.of(robot.name, (finding for rule in _RULES for finding in rule(robot)))


def _find(code: str, severity: Severity, where: Link | list[str] | str, message: str, remedy: str) -> Finding:
    if isinstance(where, Link):
        where = f"link '{where.name}'"
    elif isinstance(where, list):
        more = f" and {len(where) - 3} more" if len(where) > 3 else ""
        where = f"joint '{where[0]}'" if len(where) == 1 else f"joints {', '.join(where[:3])}{more}"
    return Finding(code=code, severity=severity, where=where, message=message, remedy=remedy)


# --- links ------------------------------------------------------------------------------------------------------------


def _check_masses(robot: Robot) -> Iterator[Finding]:
    for link in _links_with_inertia(robot):
        mass = link.inertia.mass
        if mass < 0.0:
            text = f"the mass is negative: {mass:g} kg"
            yield _find("impossible-mass", "error", link, text, "Measure or identify it.")
        elif mass == 0.0:  # the limit of ever lighter, ever larger bodies; simulators may refuse it
            text = "it has inertia but no mass"
            yield _find("unusual-inertia", "warning", link, text, "Give it its mass, or no inertia.")
        elif not LIGHTEST_KG <= mass <= HEAVIEST_KG:
            code, severity = ("impossible-mass", "error") if mass > IMPOSSIBLE_KG else ("unusual-inertia", "warning")
            yield _find(code, severity, link, f"its mass is {mass:g} kg", "Check the unit: kg, not g or t.")  # type: ignore[arg-type]


def _check_tensors(robot: Robot, rounding: float = ROUNDING) -> Iterator[Finding]:
    """Tensors that no body can have: principal moments that are negative or break the triangle inequality."""
    remedy = "Take the tensor from CAD again (about the centre of mass, in kg m^2), or identify it."
    for link in _links_with_inertia(robot):
        if link.inertia.mass > 0.0:
            fault = _tensor_fault(link.inertia, rounding)
            if fault:
                yield _find("impossible-inertia", "error", link, fault, remedy)
            elif not _principal_moments(link.inertia).any():
                text = "it has mass but a zero inertia tensor"
                yield _find("unusual-inertia", "warning", link, text, remedy)


def _tensor_fault(inertia: Inertia, rounding: float) -> str:
    moments = _principal_moments(inertia)
    shown = ", ".join(f"{moment:.4g}" for moment in moments)
    slack = rounding * max(abs(moments[0]), moments[2])  # files are rounded
    if moments[0] < -slack:
        return f"a principal moment of inertia is negative: {shown} kg m^2"
    if moments[0] + moments[1] < moments[2] - slack:
        return f"its principal moments break the triangle inequality: {shown} kg m^2"
    return ""


def impossible_inertias(robot: Robot) -> tuple[list[Finding], list[Finding]]:
    """Masses and tensors that no body has, by more than the few digits of a file explain.

    Returns:
        Those that the motion depends on, for which commands refuse a robot; and those that no torque depends on: of
        links that do not move, and tensors of parts of bodies that are possible as a whole.
    """
    faults = ("impossible-mass", "impossible-inertia")
    found = [f for f in (*_check_masses(robot), *_check_tensors(robot, FEW_DIGITS)) if f.code in faults]
    moving, doubtful = set(), set()
    for body in robot.bodies:
        names = {f"link '{name}'" for name, _ in body.members}
        moving |= names
        doubtful |= names if _tensor_fault(body.inertia, FEW_DIGITS) else set()
    needed = [f for f in found if f.where in doubtful or (f.where in moving and f.code == "impossible-mass")]
    return needed, [finding for finding in found if finding not in needed]


def _check_placements(robot: Robot) -> Iterator[Finding]:
    """Mass far from where the link is, or spread far wider or narrower than the link."""
    lengths = [float(np.linalg.norm(joint.T_parent_joint[:3, 3])) for joint in robot.joints]
    typical = max(np.median([length for length in lengths if length > TINY] or [SMALLEST_LINK_M]), SMALLEST_LINK_M)
    for link in _links_with_inertia(robot):
        if link.inertia.mass < LIGHTEST_KG:  # reported already, and too small to divide by
            continue
        points = [joint.T_parent_joint[:3, 3] for joint in robot.joints if joint.parent == link.name]
        size = max([float(np.linalg.norm(point)) for point in points] + [typical])
        away = min(_distance_to_segment(link.inertia.com, point) for point in [*points, np.zeros(3)])
        spread = float(np.sqrt(max(_principal_moments(link.inertia)[2], 0.0) / link.inertia.mass))
        if away > FAR * size:
            text = f"the centre of mass is {away:.3g} m from the line between its joints, which are {size:.3g} m apart"
            remedy = "Check its unit (m) and frame (the link's, not the CAD file's)."
            yield _find("unusual-inertia", "warning", link, text, remedy)
        if spread > FAR * size or 0.0 < spread < NARROW * size:
            text = f"the radius of gyration is {spread:.3g} m for a link of about {size:.3g} m"
            remedy = "Check the unit (kg m^2) and the point (centre of mass) it is about, or identify the tensor."
            yield _find("unusual-inertia", "warning", link, text, remedy)


def _check_copies(robot: Robot) -> Iterator[Finding]:
    """Links of one chain with the same ten numbers: placeholders. Links of parallel chains (legs) may be equal."""
    above = {joint.child: joint.parent for joint in robot.joints}
    groups: dict[bytes, list[str]] = defaultdict(list)
    for link in _links_with_inertia(robot):
        groups[link.inertia.vector.tobytes()].append(link.name)
    for names in groups.values():
        longest = max(([x for x in _path_from_root(name, above) if x in names] for name in names), key=len)
        if len(longest) >= TEMPLATE:
            text = f"links {', '.join(longest[:3])} have the same mass and inertia, as if copied from a template"
            yield _find("copied-inertia", "warning", "robot", text, "Replace them by CAD values, or identify them.")


def _check_massless_ends(robot: Robot) -> Iterator[Finding]:
    carriers = {body.parent for body in robot.bodies}
    names = [
        body.joint.name
        for index, body in enumerate(robot.bodies)
        if index not in carriers and not body.inertia.vector.any()
    ]
    if names:
        text = "it moves a body without mass, so its acceleration is not defined"
        remedy = "Give the body its mass, or hold the joint (--hold JOINT, in Python hold={'JOINT': 0.0})."
        yield _find("massless-body", "warning", names, text, remedy)


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


def _check_limits(robot: Robot) -> Iterator[Finding]:
    for severity, message, remedy, applies in _LIMITS:
        names = [joint.name for joint in robot.moving_joints if applies(joint)]
        if names:
            yield _find("joint-limits", severity, names, message, remedy)


def _check_terms(robot: Robot) -> Iterator[Finding]:
    """Parameters of the wrong sign, and couplings that would give energy away."""
    for placed in robot.terms:
        if placed.term.is_non_negative and placed.term.value < 0.0:
            text = f"{type(placed.term).__name__} ({placed.term.symbol}) is negative: {placed.term.value:g}"
            where = [placed.owner] if len(placed.joints) == 1 else f"motor of {placed.owner}"
            yield _find("negative-friction", "error", where, text, "Correct the sign, or identify it.")
    joints = sorted({joint for placed in robot.terms if len(placed.joints) > 1 for joint in placed.joints})
    for what in ("inertia", "viscosity") if joints else ():
        matrix = np.zeros((robot.dof, robot.dof))
        for placed in robot.terms:
            for pair, part in getattr(placed, what)().items():
                matrix[pair] += placed.term.value * part
        values = eigvalsh(matrix[np.ix_(joints, joints)])
        if values[0] < -ROUNDING * float(np.abs(values).max()):
            names = [robot.joint_names[joint] for joint in joints]
            text = (
                f"the matrix of their coupled {what} has the eigenvalue {values[0]:.4g}; it must have no negative one"
            )
            remedy = "A motor's part is in the joints' own parameters, too: they are at least ratio^2 times it."
            yield _find("impossible-coupling", "error", names, text, remedy)


def _check_rounded_angles(robot: Robot) -> Iterator[Finding]:
    names = []
    for joint in robot.joints:
        entries = np.abs(np.concatenate([joint.T_parent_joint[:3, :3].ravel(), joint.axis]))
        off = np.minimum(np.abs(entries - 1.0), entries)
        if np.any((off > TINY) & (off <= ROUNDED_ANGLE)):
            names.append(joint.name)
    if names:
        text = "right angles are rounded (1.5708 for pi/2), which adds terms to the equations"
        yield _find("rounded-angle", "note", names, text, "Use robot.snap_angles() to make them exact.")


def _check_snapped_angles(robot: Robot) -> Iterator[Finding]:
    if names := snapped_joints(robot):
        text = "right angles that the file has rounded (1.5708 for pi/2) are taken as exact; the file's text is kept"
        remedy = "Nothing to do. --no-snap, or read_urdf(path, snap=False), takes the angles as they are written."
        yield _find("rounded-angle", "note", list(names), text, remedy)


def _check_degrees(robot: Robot) -> Iterator[Finding]:
    if found := joints_in_degrees(robot):
        first = next(iter(found))
        text = f"the angles rpy=\"{found[first]}\" of '{first}' are beyond a whole turn, as if in degrees"
        yield _find(
            "angle-in-degrees", "warning", list(found), text, "Write them in radians: 90 degrees are 1.5707963."
        )


def angle_findings(robot: Robot) -> list[Finding]:
    """What is worth knowing about the angles of a robot's URDF before it is used."""
    return [*_check_degrees(robot), *_check_snapped_angles(robot)]


def _check_gravity(robot: Robot) -> Iterator[Finding]:
    strength = float(np.linalg.norm(robot.gravity))
    if not EARTH[0] <= strength <= EARTH[1]:
        remedy = "Pass gravity=(0, 0, -9.81), or keep it if the robot is not on Earth's ground."
        yield _find("unusual-gravity", "note", "robot", f"gravity is {strength:.4g} m/s^2", remedy)


_RULES: tuple[Callable[[Robot], Iterator[Finding]], ...] = (
    *(_check_masses, _check_tensors, _check_placements, _check_copies, _check_massless_ends, _check_limits),
    *(_check_terms, _check_rounded_angles, _check_snapped_angles, _check_degrees, _check_gravity),
)


# --- geometry ---------------------------------------------------------------------------------------------------------


def _links_with_inertia(robot: Robot) -> list[Link]:
    return [link for link in robot.links if link.inertia.vector.any()]


def _principal_moments(inertia: Inertia) -> Floats:
    """(3,) about the centre of mass, ascending [kg m^2]."""
    about_com, about_origin = inertia.about_com, inertia.about_origin
    if np.linalg.norm(about_com) <= TINY * np.linalg.norm(about_origin):
        return np.zeros(3)  # what is left of a point mass after rounding
    return np.array(eigvalsh(about_com))


def _distance_to_segment(point: Floats, end: Floats) -> float:
    """Distance [m] of a point from the segment between the origin and ``end``."""
    square = float(end @ end)
    along = float(np.clip(point @ end / square, 0.0, 1.0)) if square > 0.0 else 0.0
    return float(np.linalg.norm(point - along * end))


def _path_from_root(name: str, above: dict[str, str]) -> list[str]:
    path = [name]
    while path[-1] in above:
        path.append(above[path[-1]])
    return path[::-1]


def refuse_negative_masses(robot: Robot) -> None:
    """Refuse a robot with a mass that no link has: its torques, and all limits on them, would be wrong.

    Raises:
        ArgumentError: A link that moves has a negative mass, or one of thousands of tons.
    """
    for link in (robot.link(name) for body in robot.bodies for name, _ in body.members):
        if not 0.0 <= link.inertia.mass <= IMPOSSIBLE_KG:
            raise ArgumentError(
                f"the mass of {link.name} is {link.inertia.mass:g} kg, so that the torques of a motion would be wrong",
                remedy="Correct the robot file (dynid check lists its faults), or identify the robot first.",
            )
