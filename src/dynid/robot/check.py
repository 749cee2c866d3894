"""Check a robot model for numbers that are unphysical or suspicious.

Each rule is a small generator of findings; `check_robot` runs them all. An error is impossible for
any robot, a warning is probably a mistake, a note is worth knowing.
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

IMPOSSIBLE_KG = 1e6
"""Mass from which on a link is none of a robot [kg] (convention): a thousand times the heaviest usual one."""
LIGHTEST_KG, HEAVIEST_KG = 1e-6, 1e3
"""Masses of links outside this range are more likely in another unit (convention)."""
ROUNDING = 1e-6
"""Part of the largest principal moment by which files may miss the triangle inequality (convention: six digits)."""
FEW_DIGITS = 0.01
"""The same part where a robot is not only reported but refused (convention: moments of a flat part, two digits)."""
IMPOSSIBLE = ("negative-mass", "negative-moment", "triangle-inequality")
"""Codes of the findings for which commands refuse a robot."""
FAR, WIDE, NARROW = 3.0, 3.0, 0.005
"""Distance of the centre of mass, and radius of gyration at most and at least, as multiples of the link's size, beyond
which a unit or a frame is probably wrong (convention)."""
TEMPLATE = 3
"""Links of one chain with the same ten numbers that look like a template (convention)."""
EXACT, ROUNDED = 1e-13, ROUNDED_ANGLE
"""Distance of a matrix entry from -1, 0 or 1 that is rounding of float64, and of a written angle such as 1.5708."""
EARTH = (9.7, 9.9)
"""Strength of gravity on Earth's ground [m/s^2], with a margin."""
POINT_MASS = 1e-12
"""Part of the tensor about the origin up to which the tensor about the centre of mass is rounding (convention)."""
SAME_PLACE_M, SMALLEST_LINK_M = 1e-3, 0.1
"""Distance up to which two joints are at the same place, and smallest size of a link that sizes are judged by [m]
(convention)."""


def check_robot(robot: Robot) -> QualityReport:
    """List what is unphysical or suspicious in a robot model, each with a remedy.

    Example:
        >>> dynid.check_robot(robot).ok
        False
    """
    return QualityReport.of(robot.name, (finding for rule in _RULES for finding in rule(robot)))


def _finding(code: str, severity: Severity, where: str, message: str, remedy: str) -> Finding:
    return Finding(code=code, severity=severity, where=where, message=message, remedy=remedy)


# --- links ------------------------------------------------------------------------------------------------------------


def _check_masses(robot: Robot) -> Iterator[Finding]:
    for link in _links_with_inertia(robot):
        mass = link.inertia.mass
        if mass < 0.0:
            yield _finding(
                "negative-mass",
                "error",
                _place(link),
                f"the mass is negative: {mass:g} kg",
                "Measure or identify it.",
            )
        elif mass == 0.0:
            yield _finding(
                "inertia-without-mass",
                "warning",  # the limit of ever lighter, ever larger bodies; simulators may refuse it
                _place(link),
                "it has inertia but no mass",
                "Give it its mass, or no inertia.",
            )
        elif not LIGHTEST_KG <= mass <= HEAVIEST_KG:
            yield _finding(
                "unusual-mass",
                "error" if mass > IMPOSSIBLE_KG else "warning",
                _place(link),
                f"its mass is {mass:g} kg",
                "Check the unit: kg, not g or t.",
            )


def impossible_inertias(robot: Robot) -> list[Finding]:
    """Masses and tensors that no body has, by more than the few digits of a file explain; commands refuse them."""
    found = (*_check_masses(robot), *_check_tensors(robot, FEW_DIGITS))
    heavy = "unusual-mass"
    return [f for f in found if f.code in IMPOSSIBLE or (f.code == heavy and f.severity == "error")]


def _check_tensors(robot: Robot, rounding: float = ROUNDING) -> Iterator[Finding]:
    """Tensors that no body can have: principal moments that are negative or break the triangle inequality."""
    for link in _links_with_inertia(robot):
        if link.inertia.mass <= 0.0:
            continue
        moments = _principal_moments(link.inertia)
        shown = ", ".join(f"{moment:.4g}" for moment in moments)
        remedy = "Take the tensor from CAD again (about the centre of mass, in kg m^2), or identify it."
        slack = rounding * max(abs(moments[0]), moments[2])  # files are rounded
        if not moments.any():
            yield _finding(
                "mass-without-inertia", "warning", _place(link), "it has mass but a zero inertia tensor", remedy
            )
        elif moments[0] < -slack:
            yield _finding(
                "negative-moment",
                "error",
                _place(link),
                f"a principal moment of inertia is negative: {shown} kg m^2",
                remedy,
            )
        elif moments[0] + moments[1] < moments[2] - slack:
            text = f"its principal moments break the triangle inequality: {shown} kg m^2"
            yield _finding("triangle-inequality", "error", _place(link), text, remedy)


def _check_placements(robot: Robot) -> Iterator[Finding]:
    """Mass far from where the link is, or spread far wider or narrower than the link."""
    typical = _typical_length(robot)
    for link in _links_with_inertia(robot):
        if link.inertia.mass < LIGHTEST_KG:  # reported already, and too small to divide by
            continue
        points = _joint_points(robot, link)
        size = max([float(np.linalg.norm(point)) for point in points] + [typical])
        away = min(_distance_to_segment(link.inertia.com, point) for point in [*points, np.zeros(3)])
        spread = float(np.sqrt(max(_principal_moments(link.inertia)[2], 0.0) / link.inertia.mass))
        if away > FAR * size:
            text = f"the centre of mass is {away:.3g} m from the line between its joints, which are {size:.3g} m apart"
            remedy = "Check its unit (m) and frame (the link's, not the CAD file's)."
            yield _finding("far-centre-of-mass", "warning", _place(link), text, remedy)
        if spread > WIDE * size:
            text = f"the radius of gyration is {spread:.3g} m for a link of about {size:.3g} m"
            remedy = "Check the unit (kg m^2) and the point (centre of mass) it is about."
            yield _finding("wide-inertia", "warning", _place(link), text, remedy)
        if 0.0 < spread < NARROW * size:
            text = f"the radius of gyration is only {spread * 1e3:.3g} mm for a link of about {size:.3g} m"
            remedy = "Check the unit (kg m^2), or identify the tensor."
            yield _finding("narrow-inertia", "warning", _place(link), text, remedy)


def _check_copies(robot: Robot) -> Iterator[Finding]:
    """Links of one chain with the same ten numbers: placeholders. Links of parallel chains (legs) may be equal."""
    above = {joint.child: joint.parent for joint in robot.joints}
    groups: dict[bytes, list[str]] = defaultdict(list)
    for link in _links_with_inertia(robot):
        groups[link.inertia.vector.tobytes()].append(link.name)
    for names in groups.values():
        longest = max((_chain_members(name, above, set(names)) for name in names), key=len)
        if len(longest) >= TEMPLATE:
            text = "they all have the same mass and inertia, as if copied from a template"
            remedy = "Replace them by CAD values, or identify them."
            yield _finding("copied-inertia", "warning", _list_names("link", longest), text, remedy)


def _check_massless_ends(robot: Robot) -> Iterator[Finding]:
    carriers = {body.parent for body in robot.bodies}
    for index, body in enumerate(robot.bodies):
        if index not in carriers and not body.inertia.vector.any():
            text = "it moves a body without mass, so its acceleration is not defined"
            remedy = "Give the body its mass, or hold the joint (--hold JOINT, in Python hold={'JOINT': 0.0})."
            yield _finding("massless-body", "warning", f"joint '{body.joint.name}'", text, remedy)


# --- joints -----------------------------------------------------------------------------------------------------------


def _check_limits(robot: Robot) -> Iterator[Finding]:
    """Limits that are missing or leave no motion, one finding for all joints with the same problem."""
    cases: tuple[tuple[str, Severity, str, str, Callable[[Joint], bool]], ...] = (
        (
            "no-position-limits",
            "warning",
            "it has no position limits",
            "Add lower and upper, or declare the joint continuous.",
            lambda j: j.kind != "continuous" and not np.isfinite([j.limits.lower, j.limits.upper]).all(),
        ),
        (
            "no-travel",
            "warning",
            "the position limits leave no motion",
            "Correct lower and upper, or make the joint fixed.",
            lambda j: j.limits.lower == j.limits.upper,
        ),
        (
            "zero-velocity-limit",
            "warning",
            "the velocity limit is zero",
            "Give it in rad/s or m/s.",
            lambda j: j.limits.velocity == 0.0,
        ),
        (
            "zero-effort-limit",
            "warning",
            "the effort limit is zero",
            "Give it in N m or N.",
            lambda j: j.limits.effort == 0.0,
        ),
        (
            "no-velocity-limit",
            "warning",
            "it has no velocity limit",
            "Add one, or use with_limits, before a motion is designed.",
            lambda j: bool(np.isinf(j.limits.velocity)),
        ),
        (
            "no-effort-limit",
            "note",
            "it has no effort limit",
            "Add one, or use with_limits, to keep designed motions within the drives' torque.",
            lambda j: bool(np.isinf(j.limits.effort)),
        ),
    )
    for code, severity, message, remedy, applies in cases:
        names = [joint.name for joint in robot.moving_joints if applies(joint)]
        if names:
            yield _finding(code, severity, _list_names("joint", names), message, remedy)


def _check_friction(robot: Robot) -> Iterator[Finding]:
    for joint in robot.moving_joints:
        for term in joint.terms:
            if term.is_non_negative and term.value < 0.0:
                text = f"{type(term).__name__} ({term.symbol}) is negative: {term.value:g}"
                remedy = "Correct the sign, or identify it."
                yield _finding("negative-friction", "error", f"joint '{joint.name}'", text, remedy)


def _check_couplings(robot: Robot) -> Iterator[Finding]:
    """Motors of several joints: parameters of the wrong sign, and matrices that would give energy away."""
    coupled = [placed for placed in robot.terms if len(placed.joints) > 1]
    for placed in coupled:
        if placed.term.is_non_negative and placed.term.value < 0.0:
            text = f"{type(placed.term).__name__} ({placed.term.symbol}) is negative: {placed.term.value:g}"
            remedy = "Correct the sign, or identify it."
            yield _finding("negative-friction", "error", f"motor of {placed.owner}", text, remedy)
    joints = sorted({joint for placed in coupled for joint in placed.joints})
    inertias = [(placed.term.value, placed.inertia()) for placed in robot.terms]
    viscous = [(placed.term.value, placed.viscosity()) for placed in robot.terms]
    names = ", ".join(robot.joint_names[joint] for joint in joints)
    for what, entries in (("rotor inertias", inertias), ("viscous frictions", viscous)):
        matrix = np.zeros((robot.dof, robot.dof))
        for value, parts in entries:
            for pair, part in parts.items():
                matrix[pair] += value * part
        values = eigvalsh(matrix[np.ix_(joints, joints)]) if joints else np.zeros(1)
        if values[0] < -ROUNDING * max(float(np.abs(values).max()), 1e-300):
            text = (
                f"the matrix of the {what} of motors and joints has the eigenvalue {values[0]:.4g}; it must have no "
                "negative one"
            )
            remedy = "A motor's part is in the joints' own parameters, too: they are at least ratio^2 times it."
            yield _finding("impossible-coupling", "error", f"joints {names}", text, remedy)


def _check_rounded_angles(robot: Robot) -> Iterator[Finding]:
    names = []
    for joint in robot.joints:
        entries = np.abs(np.concatenate([joint.T_parent_joint[:3, :3].ravel(), joint.axis]))
        off = np.minimum(np.abs(entries - 1.0), entries)
        if np.any((off > EXACT) & (off <= ROUNDED)):
            names.append(joint.name)
    if names:
        text = "right angles are rounded (1.5708 for pi/2), which adds terms to the equations"
        yield _finding(
            "rounded-angle", "note", _list_names("joint", names), text, "Use robot.snap_angles() to make them exact."
        )


def snapping_finding(robot: Robot) -> Finding | None:
    """The finding that rounded right angles of a robot's file are taken as exact; None where there are none."""
    names = snapped_joints(robot)
    if not names:
        return None
    text = "right angles that the file has rounded (1.5708 for pi/2) are taken as exact; the file's text is kept"
    remedy = "Nothing to do. --no-snap, or read_urdf(path, snap=False), takes the angles as they are written."
    return _finding("snapped-angle", "note", _list_names("joint", list(names)), text, remedy)


def _check_snapped_angles(robot: Robot) -> Iterator[Finding]:
    found = snapping_finding(robot)
    if found is not None:
        yield found


def degrees_finding(robot: Robot) -> Finding | None:
    """The finding that angles of joints in a robot's URDF are beyond a whole turn; None where there are none."""
    found = joints_in_degrees(robot)
    if not found:
        return None
    first = next(iter(found))
    text = f"the angles rpy=\"{found[first]}\" of '{first}' are beyond a whole turn, as if in degrees"
    remedy = "Write them in radians: 90 degrees are 1.5707963."
    return _finding("angle-in-degrees", "warning", _list_names("joint", list(found)), text, remedy)


def _check_degrees(robot: Robot) -> Iterator[Finding]:
    found = degrees_finding(robot)
    if found is not None:
        yield found


def _check_gravity(robot: Robot) -> Iterator[Finding]:
    strength = float(np.linalg.norm(robot.gravity))
    if not EARTH[0] <= strength <= EARTH[1]:
        remedy = "Pass gravity=(0, 0, -9.81), or keep it if the robot is not on Earth's ground."
        yield _finding("unusual-gravity", "note", "robot", f"gravity is {strength:.4g} m/s^2", remedy)


_RULES: tuple[Callable[[Robot], Iterator[Finding]], ...] = (
    *(_check_masses, _check_tensors, _check_placements, _check_copies, _check_massless_ends),
    *(_check_limits, _check_friction, _check_couplings, _check_rounded_angles, _check_snapped_angles, _check_degrees),
    _check_gravity,
)


# --- geometry ---------------------------------------------------------------------------------------------------------


def _links_with_inertia(robot: Robot) -> list[Link]:
    return [link for link in robot.links if link.inertia.vector.any()]


def _principal_moments(inertia: Inertia) -> Floats:
    """(3,) about the centre of mass, ascending [kg m^2]."""
    about_com, about_origin = inertia.about_com, inertia.about_origin
    if np.linalg.norm(about_com) <= POINT_MASS * np.linalg.norm(about_origin):
        return np.zeros(3)  # what is left of a point mass after rounding
    return np.array(eigvalsh(about_com))


def _joint_points(robot: Robot, link: Link) -> list[Floats]:
    """Where the next joints sit on a link (3,) [m], link frame."""
    return [joint.T_parent_joint[:3, 3] for joint in robot.joints if joint.parent == link.name]


def _typical_length(robot: Robot) -> float:
    """Median distance between successive joints [m], at least `SMALLEST_LINK_M`."""
    lengths = [float(np.linalg.norm(joint.T_parent_joint[:3, 3])) for joint in robot.joints]
    return max(
        float(np.median([length for length in lengths if length > SAME_PLACE_M] or [SMALLEST_LINK_M])), SMALLEST_LINK_M
    )


def _distance_to_segment(point: Floats, end: Floats) -> float:
    """Distance [m] of a point from the segment between the origin and ``end``."""
    square = float(end @ end)
    along = float(np.clip(point @ end / square, 0.0, 1.0)) if square > 0.0 else 0.0
    return float(np.linalg.norm(point - along * end))


def _chain_members(name: str, above: dict[str, str], group: set[str]) -> list[str]:
    """Members of the group between the root and ``name``, in that order."""
    members = []
    link: str | None = name
    while link is not None:
        members += [link] if link in group else []
        link = above.get(link)
    return members[::-1]


def _place(link: Link) -> str:
    return f"link '{link.name}'"


def _list_names(what: str, names: list[str]) -> str:
    """``joint 'a'`` or ``joints a, b, c and 4 more``."""
    if len(names) == 1:
        return f"{what} '{names[0]}'"
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{what}s {', '.join(names[:3])}{more}"


def refuse_negative_masses(robot: Robot) -> None:
    """Refuse a robot with a mass that no link has: its torques, and all limits on them, would be wrong.

    Raises:
        ArgumentError: A link has a negative mass, or one of thousands of tons.
    """
    for link in robot.links:
        if link.inertia.mass > IMPOSSIBLE_KG:
            raise ArgumentError(
                f"the mass of {link.name} is {link.inertia.mass:g} kg, which no link has", remedy="Check the unit: kg."
            )
    negative = [link.name for link in robot.links if link.inertia.mass < 0.0]
    if negative:
        raise ArgumentError(
            f"the mass of {', '.join(negative)} is negative, so that the torques of a motion would be wrong",
            remedy="Correct the robot file (dynid check lists its faults), or identify the robot first.",
        )
