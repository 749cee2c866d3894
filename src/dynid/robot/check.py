"""What is unphysical or suspicious in a robot model, and what to do about it.

Each rule is a small generator of findings; `check_robot` runs them all. An error is something no robot can have, a
warning something that is probably a mistake, a note something worth knowing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link

__all__ = ["Finding", "ModelCheck", "Severity", "check_robot"]

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at."""

    severity: Severity
    place: str
    """Link or joint concerned."""
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """All findings about one robot, the worst first."""

    robot_name: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is impossible; warnings and notes may remain."""
        return not any(finding.severity == "error" for finding in self.findings)

    def __str__(self) -> str:
        """A headline, then one line per finding with its remedy below it."""
        counts = {word: sum(f.severity == word for f in self.findings) for word in _ORDER}
        summary = ", ".join(f"{n} {word}{'s' * (n != 1)}" for word, n in counts.items() if n) or "nothing to report"
        width = max((len(finding.place) for finding in self.findings), default=0)
        lines = [f"{self.robot_name}: {summary}"]
        for finding in self.findings:
            lines.append(f"  {finding.severity:<7}  {finding.place:<{width}}  {finding.message}")
            lines.append(f"  {'':<7}  {'':<{width}}  -> {finding.remedy}")
        return "\n".join(lines)


_ORDER: tuple[Severity, ...] = ("error", "warning", "note")


def check_robot(robot: Robot) -> ModelCheck:
    """List what is unphysical or suspicious in a robot model, each with a remedy."""
    findings = [finding for rule in _RULES for finding in rule(robot)]
    return ModelCheck(robot.name, tuple(sorted(findings, key=lambda finding: _ORDER.index(finding.severity))))


# --- links ------------------------------------------------------------------------------------------------------------


def _masses(robot: Robot) -> Iterator[Finding]:
    for link in _links_with_inertia(robot):
        mass = link.inertia.mass
        if mass < 0.0:
            yield Finding("error", _of(link), f"the mass is negative: {mass:g} kg", "Measure or identify it.")
        elif mass == 0.0:
            yield Finding("error", _of(link), "it has inertia but no mass", "Give it its mass, or no inertia.")
        elif not 1e-6 <= mass <= 1e3:
            yield Finding("warning", _of(link), f"its mass is {mass:g} kg", "Check the unit: kg, not g or t.")


def _tensors(robot: Robot) -> Iterator[Finding]:
    """Tensors no body can have: not positive, or against the triangle inequality of the principal moments."""
    for link in _links_with_inertia(robot):
        if link.inertia.mass <= 0.0:
            continue
        moments = _principal_moments(link.inertia)
        shown = ", ".join(f"{moment:.4g}" for moment in moments)
        remedy = "Take the tensor from CAD again (about the centre of mass, in kg m^2), or identify it."
        slack = 1e-6 * max(abs(moments[0]), moments[2])  # files are rounded
        if not moments.any():
            yield Finding("warning", _of(link), "it has mass but a zero inertia tensor", remedy)
        elif moments[0] < -slack:
            yield Finding("error", _of(link), f"a principal moment of inertia is negative: {shown} kg m^2", remedy)
        elif moments[0] + moments[1] < moments[2] - slack:
            text = f"its principal moments break the triangle inequality: {shown} kg m^2"
            yield Finding("error", _of(link), text, remedy)


def _placement(robot: Robot) -> Iterator[Finding]:
    """Mass far from where the link is, or spread far wider or narrower than the link."""
    typical = _typical_length(robot)
    for link in _links_with_inertia(robot):
        if link.inertia.mass < 1e-6:  # reported already, and too small to divide by
            continue
        points = _joint_points(robot, link)
        size = max([float(np.linalg.norm(point)) for point in points] + [typical])
        away = min(_distance_to_segment(link.inertia.com, point) for point in [*points, np.zeros(3)])
        spread = float(np.sqrt(max(_principal_moments(link.inertia)[2], 0.0) / link.inertia.mass))
        if away > 3.0 * size:
            text = f"the centre of mass is {away:.3g} m from the line between its joints, which are {size:.3g} m apart"
            yield Finding("warning", _of(link), text, "Check its unit (m) and frame (the link's, not the CAD file's).")
        if spread > 3.0 * size:
            text = f"the radius of gyration is {spread:.3g} m for a link of about {size:.3g} m"
            yield Finding(
                "warning", _of(link), text, "Check the unit (kg m^2) and the point (centre of mass) it is about."
            )
        if 0.0 < spread < 0.005 * size:
            text = f"the radius of gyration is only {spread * 1e3:.3g} mm for a link of about {size:.3g} m"
            yield Finding("warning", _of(link), text, "Check the unit (kg m^2), or identify the tensor.")


def _copies(robot: Robot) -> Iterator[Finding]:
    """The same ten numbers on three links or more of one chain: placeholders. Legs side by side may well be equal."""
    above = {joint.child: joint.parent for joint in robot.joints}
    groups: dict[bytes, list[str]] = defaultdict(list)
    for link in _links_with_inertia(robot):
        groups[link.inertia.vector.tobytes()].append(link.name)
    for names in groups.values():
        longest = max((_chain_members(name, above, set(names)) for name in names), key=len)
        if len(longest) >= 3:
            text = "they all have the same mass and inertia, as if copied from a template"
            yield Finding("warning", _listed("link", longest), text, "Replace them by CAD values, or identify them.")


def _massless_ends(robot: Robot) -> Iterator[Finding]:
    carriers = {body.parent for body in robot.bodies}
    for index, body in enumerate(robot.bodies):
        if index not in carriers and not body.inertia.vector.any():
            text = "it moves a body without mass, so its acceleration is not defined"
            yield Finding("warning", f"joint '{body.joint.name}'", text, "Give the body its mass, or lock the joint.")


# --- joints -----------------------------------------------------------------------------------------------------------


def _limits(robot: Robot) -> Iterator[Finding]:
    """Limits that are missing or leave no motion, one finding for all joints alike."""
    cases: tuple[tuple[Severity, str, str, Callable[[Joint], bool]], ...] = (
        (
            "warning",
            "no position limits",
            "Add lower and upper, or declare the joint continuous.",
            lambda j: j.kind != "continuous" and not np.isfinite([j.limits.lower, j.limits.upper]).all(),
        ),
        ("warning", "the position limits leave no motion", "Correct lower and upper, or make the joint fixed.", _stuck),
        ("warning", "the velocity limit is zero", "Give it in rad/s or m/s.", lambda j: j.limits.velocity == 0.0),
        ("warning", "the effort limit is zero", "Give it in N m or N.", lambda j: j.limits.effort == 0.0),
        (
            "warning",
            "no velocity limit",
            "Add one, or use with_limits, before a motion is designed.",
            lambda j: bool(np.isinf(j.limits.velocity)),
        ),
        (
            "note",
            "no effort limit",
            "Add one, or use with_limits, to keep designed motions within the drives' torque.",
            lambda j: bool(np.isinf(j.limits.effort)),
        ),
    )
    for severity, message, remedy, applies in cases:
        names = [joint.name for joint in robot.moving_joints if applies(joint)]
        if names:
            yield Finding(severity, _listed("joint", names), message, remedy)


def _stuck(joint: Joint) -> bool:
    return joint.limits.lower == joint.limits.upper


def _friction(robot: Robot) -> Iterator[Finding]:
    for joint in robot.moving_joints:
        for model in joint.models:
            for symbol, value, positive in zip(model.symbols, model.values, model.physical, strict=True):
                if positive and value < 0.0:
                    text = f"{type(model).__name__} ({symbol}) is negative: {value:g}"
                    yield Finding("error", f"joint '{joint.name}'", text, "Correct the sign, or identify it.")


def _rounded_angles(robot: Robot) -> Iterator[Finding]:
    names = []
    for joint in robot.joints:
        entries = np.abs(np.concatenate([joint.T_parent_joint[:3, :3].ravel(), joint.axis]))
        off = np.minimum(np.abs(entries - 1.0), entries)
        if np.any((off > 1e-13) & (off <= 1e-4)):
            names.append(joint.name)
    if names:
        text = "right angles are rounded (1.5708 for pi/2), which adds terms to the equations"
        yield Finding("note", _listed("joint", names), text, "Use robot.snapped() to make them exact.")


def _gravity(robot: Robot) -> Iterator[Finding]:
    strength = float(np.linalg.norm(robot.gravity))
    if not 9.7 <= strength <= 9.9:
        remedy = "Pass gravity=(0, 0, -9.81), or keep it if the robot is not on Earth's ground."
        yield Finding("note", "robot", f"gravity is {strength:.4g} m/s^2", remedy)


_RULES: tuple[Callable[[Robot], Iterator[Finding]], ...] = (
    *(_masses, _tensors, _placement, _copies, _massless_ends),
    *(_limits, _friction, _rounded_angles, _gravity),
)


# --- geometry ---------------------------------------------------------------------------------------------------------


def _links_with_inertia(robot: Robot) -> list[Link]:
    return [link for link in robot.links if link.inertia.vector.any()]


def _principal_moments(inertia: Inertia) -> NDArray[np.float64]:
    """(3,) about the centre of mass, ascending [kg m^2]."""
    about_com, about_origin = inertia.about_com, inertia.about_origin
    if np.linalg.norm(about_com) <= 1e-12 * np.linalg.norm(about_origin):
        return np.zeros(3)  # what is left of a point mass after rounding
    return np.array(np.linalg.eigvalsh(about_com))


def _joint_points(robot: Robot, link: Link) -> list[NDArray[np.float64]]:
    """Where the next joints sit on a link (3,) [m], link frame."""
    return [joint.T_parent_joint[:3, 3] for joint in robot.joints if joint.parent == link.name]


def _typical_length(robot: Robot) -> float:
    """Median distance between successive joints [m], and at least 0.1."""
    lengths = [float(np.linalg.norm(joint.T_parent_joint[:3, 3])) for joint in robot.joints]
    return max(float(np.median([length for length in lengths if length > 1e-3] or [0.1])), 0.1)


def _distance_to_segment(point: NDArray[np.float64], end: NDArray[np.float64]) -> float:
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


def _of(link: Link) -> str:
    return f"link '{link.name}'"


def _listed(what: str, names: list[str]) -> str:
    """``joint 'a'`` or ``joints a, b, c and 4 more``."""
    if len(names) == 1:
        return f"{what} '{names[0]}'"
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{what}s {', '.join(names[:3])}{more}"
