"""All limits of a robot as constraints, how far a motion stays from them, and which limits are not stated.

`build_constraints` turns every finite limit of a `MotionLimits` into a `Constraint`; `measure_margins` compares a
motion with them; `find_unchecked_limits` lists what the motion was not measured against.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.dynamics.kinematics import body_poses, body_velocities
from dynid.errors import ArgumentError
from dynid.excitation.base import Constraint, Differentiable, RecordedConstraint
from dynid.excitation.collision.capsules import collision_pairs, distant_pairs
from dynid.excitation.collision.cell import cell_constraint, find_always_beyond
from dynid.excitation.collision.hulls import hull_pairs
from dynid.excitation.collision.self_collision import self_collision
from dynid.excitation.limits import MotionLimits, Workspace
from dynid.excitation.trajectories.trajectory import Motion
from dynid.findings import Finding
from dynid.robot.model import Robot
from dynid.spatial import cross

_SMALLEST_MOTION = 1e-6
"""Smallest range, velocity, ... [rad or m, and their derivatives] by which an excess is divided. Convention."""
_SMALLEST_TORQUE = 1e-9
"""Smallest torque limit [N m or N] by which an excess is divided: zero limits stay finite. Convention."""
_PEAK_ORDER = 12.0
"""Order of the norm over time that stands for a peak: high enough to follow it, low enough for smooth gradients.

Convention: chosen when speed coverage was first built; no experiment compared orders.
"""


@dataclass(frozen=True, slots=True)
class Margin:
    """How far a motion stays from one limit at its closest."""

    limit: str
    """Name of the constraint: ``position``, ``velocity``, ``torque``, ..."""
    where: str
    """The joint, wall or pair of links."""
    margin: float
    """Smallest distance to the limit, negative beyond it, in ``unit``."""
    relative: float
    """The margin as a share of the limit (of 0.1 m for distances between bodies)."""
    unit: str
    """SI unit of ``margin``."""


@dataclass(frozen=True)
class JointConstraint(Constraint):
    """Bounds on position, velocity, acceleration or jerk: linear in the motion."""

    order: int
    """0 position, 1 velocity, 2 acceleration, 3 jerk."""
    joints: NDArray[np.int64]
    """(m,) the joint of each column."""
    sign: Floats
    """(m,) 1 for an upper bound, -1 for a lower one."""
    bound: Floats
    """(m,) signed bounds, so that ``sign * value <= bound`` [rad or m, and their time derivatives]."""

    def excess(self, motion: Motion) -> Floats:
        """(N, m)."""
        return (motion[self.order][:, self.joints] * self.sign - self.bound) / self.scale

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        """Gradient with respect to the motion."""
        parts = [np.zeros_like(x) for x in motion]
        onto_joint = self.joints[:, None] == np.arange(motion.q.shape[1])
        parts[self.order][:] = (cotangent * (self.sign / self.scale)) @ onto_joint
        return Motion(*parts)


@dataclass(frozen=True)
class _Torque(RecordedConstraint):
    joints: NDArray[np.int64]
    """(m / 2,) the limited joints; the first half of the columns is the upper bound, the second half the lower one."""

    def excess(self, motion: Motion) -> Floats:
        torque = self.values(motion)[:, self.joints] / self.scale[: len(self.joints)]
        return np.hstack([torque - 1.0, -torque - 1.0])

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        k = len(self.joints)
        whole = np.zeros_like(motion.q)
        whole[:, self.joints] = (cotangent[:, :k] - cotangent[:, k:]) / self.scale[:k]
        return self.pull(motion, whole)


@dataclass(frozen=True)
class _Walls(RecordedConstraint):
    normals: Floats
    """(m, 3) unit vectors out of the allowed region, root frame."""
    offsets: Floats
    """(m,) distances of the walls from the root's origin along their normals [m]."""

    def excess(self, motion: Motion) -> Floats:
        return (self.values(motion) @ self.normals.T - self.offsets) / self.scale

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        return self.pull(motion, (cotangent / self.scale) @ self.normals)


@dataclass(frozen=True)
class _ToolSpeed(RecordedConstraint):
    def excess(self, motion: Motion) -> Floats:
        return np.asarray(np.linalg.norm(self.values(motion), axis=1, keepdims=True) / self.scale - 1.0)

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        velocity = self.values(motion)
        speed = np.linalg.norm(velocity, axis=1, keepdims=True)
        direction = np.divide(velocity, speed, out=np.zeros_like(velocity), where=speed > 0.0)
        return self.pull(motion, direction * (cotangent / self.scale))


def build_constraints(robot: Robot, limits: MotionLimits) -> tuple[Constraint, ...]:
    """Every limit that is finite, as a constraint; recorded and compiled where it needs the robot."""
    constraints: list[Constraint] = list(_joint_constraints(robot, limits))
    if (np.isfinite(limits.torque) & carries_mass(robot)).any():
        constraints.append(_torque(robot, limits))
    for workspace in limits.workspaces:
        constraints.extend(_workspace(robot, workspace))
    if limits.cell is not None:
        constraints.append(cell_constraint(robot, limits.cell))
    return (*constraints, *self_collision(robot, limits))


def _joint_constraints(robot: Robot, limits: MotionLimits) -> list[Constraint]:
    found: list[Constraint] = []
    span = limits.upper - limits.lower
    half = np.where(np.isfinite(span), 0.5 * span, 1.0)  # a bound on one side only is measured in rad or m
    v, a, jerk = limits.velocity, limits.acceleration, limits.jerk
    kinds = (
        ("position", limits.lower, limits.upper, half, ""),
        ("velocity", -v, v, v, "/s"),
        ("acceleration", -a, a, a, "/s^2"),
        ("jerk", -jerk, jerk, jerk, "/s^3"),
    )
    for order, (name, lower, upper, size, per) in enumerate(kinds):
        low, high = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
        joints = np.concatenate([high, low])
        if joints.size:
            sign = np.concatenate([np.ones(len(high)), -np.ones(len(low))])
            where = tuple(f"joint '{limits.joint_names[j]}'" for j in joints)
            scale = np.maximum(size[joints], _SMALLEST_MOTION)
            bound = np.concatenate([upper[high], -lower[low]])
            units = tuple(robot.position_units[j] + per for j in joints)
            found.append(JointConstraint(name, where, scale, units, order, joints, sign, bound))
    return found


def _torque(robot: Robot, limits: MotionLimits) -> Constraint:
    joints = np.flatnonzero(np.isfinite(limits.torque) & carries_mass(robot))
    where = tuple(f"joint '{limits.joint_names[j]}'" for j in joints) * 2
    scale = np.maximum(np.tile(limits.torque[joints], 2), _SMALLEST_TORQUE)
    theta = robot.parameter_vector
    function = Differentiable(lambda **x: newton_euler(robot, theta, **x), robot.dof, "q", "dq", "ddq")
    units = tuple("N" if robot.bodies[j].is_prismatic else "N m" for j in joints) * 2
    return _Torque("torque", where, scale, units, function, joints)


def _workspace(robot: Robot, workspace: Workspace) -> list[Constraint]:
    body, T = robot.link_body(workspace.link)
    point = T[:3, :3] @ workspace.point + T[:3, 3]
    if body < 0:
        raise ArgumentError(
            f"link '{workspace.link}' does not move: its workspace limits nothing", remedy="Name the tool's link."
        )

    def position(q: Any) -> Any:
        R, p = body_poses(robot, q)[body]
        return p + R @ point

    def velocity(q: Any, dq: Any) -> Any:
        w, v = body_velocities(robot, q, dq)[body]
        return v + cross(w, point)

    found: list[Constraint] = []
    if workspace.half_spaces:
        walls = workspace.half_spaces
        normals, offsets = np.array([x.normal for x in walls]), np.array([x.offset for x in walls])
        where = tuple(f"{workspace.link}: {x.name}" for x in walls)
        ones, units = np.ones(len(walls)), ("m",) * len(walls)
        function = Differentiable(position, robot.dof, "q")
        found.append(_Walls("workspace", where, ones, units, function, normals, offsets))
    if np.isfinite(workspace.speed):
        scale = np.array([workspace.speed])
        found.append(
            _ToolSpeed("tool speed", (workspace.link,), scale, ("m/s",), Differentiable(velocity, robot.dof, "q", "dq"))
        )
    return found


@dataclass(frozen=True)
class SpeedCoverage(Constraint):
    """A wish, not a limit: each joint's peak speed reaches a target in both directions.

    Friction models need speeds over the whole range in both directions. The peak is a norm of high order over time,
    which is smooth.
    """

    @classmethod
    def of(cls, joint_names: tuple[str, ...], targets: Floats) -> SpeedCoverage:
        """Targets (n,) [rad/s or m/s], positive."""
        where = tuple(f"joint '{name}' {way}" for way in ("forwards", "backwards") for name in joint_names)
        return cls("speed coverage", where, np.tile(targets, 2), ("rad/s or m/s",) * len(where))

    def _peaks(self, motion: Motion) -> tuple[Floats, Floats]:
        relative = np.maximum(np.hstack([motion.dq, -motion.dq]) / self.scale, 0.0)
        return relative, np.asarray(np.mean(relative**_PEAK_ORDER, axis=0) ** (1 / _PEAK_ORDER))

    def excess(self, motion: Motion) -> Floats:
        """(1, 2 n): how far each peak stays below its target, as a share of the target."""
        return 1.0 - self._peaks(motion)[1][None, :]

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        """Gradient with respect to the motion."""
        relative, peaks = self._peaks(motion)
        share = np.divide(relative, peaks, out=np.zeros_like(relative), where=peaks > 0.0) ** (_PEAK_ORDER - 1)
        rate = -cotangent * share / (len(relative) * self.scale)
        n = motion.dq.shape[1]
        zero = np.zeros_like(motion.q)
        return Motion(zero, rate[:, :n] - rate[:, n:], zero, zero)


def measure_speed_shares(motion: Motion, velocity: Floats) -> Floats:
    """Peak speeds (n, 2) forwards and backwards as shares of the limits (n,), or of the larger peak without a limit."""
    peaks = np.stack([motion.dq.max(axis=0), -motion.dq.min(axis=0)], axis=1)
    limit = np.where(np.isfinite(velocity), velocity, peaks.max(axis=1))
    shares: Floats = np.divide(peaks, limit[:, None], out=np.zeros_like(peaks), where=limit[:, None] > 0.0)
    return shares


def measure_margins(constraints: tuple[Constraint, ...], motion: Motion) -> tuple[Margin, ...]:
    """The closest approach to every limit over a motion."""
    found = []
    for constraint in constraints:
        closest = constraint.closest(motion)
        rows = zip(constraint.where, -closest, constraint.scale, constraint.units, strict=True)
        for where, relative, scale, unit in rows:
            found.append(Margin(constraint.name, where, float(relative * scale), float(relative), unit))
    return tuple(found)


def carries_mass(robot: Robot) -> NDArray[np.bool_]:
    """Whether each joint (n,) carries a body with mass or inertia in the model: only then its torque can be judged."""
    heavy = np.array([bool(np.any(body.inertia.vector)) for body in robot.bodies], dtype=bool)
    for index in reversed(range(robot.dof)):
        if heavy[index] and robot.bodies[index].parent >= 0:
            heavy[robot.bodies[index].parent] = True
    return heavy


def find_unchecked_limits(robot: Robot, limits: MotionLimits) -> tuple[Finding, ...]:
    """One finding for everything that a motion within these limits is not checked against."""
    kinds = {
        "velocity": limits.velocity,
        "acceleration": limits.acceleration,
        "jerk": limits.jerk,
        "torque": limits.torque,
    }
    missing = [_joints_text(kind, np.isinf(bound), limits.joint_names) for kind, bound in kinds.items()]
    return (
        *(_no_limit(where) for where in missing if where),
        *_find_weightless(robot, limits),
        *_find_cell_limits(robot, limits),
        *(() if any(np.isfinite(space.speed) for space in limits.workspaces) else [_no_limit("tool speed")]),
        *(() if limits.capsules or limits.hulls else [_no_limit("self-collision")]),
        *_find_always_near(robot, limits),
    )


def _finding(code: str, where: str, message: str, remedy: str) -> Finding:
    return Finding(code=code, severity="note", where=where, message=message, remedy=remedy)


def _no_limit(where: str) -> Finding:
    return _finding("no-limit", where, "no limit is stated", "State one in MotionLimits.")


def _find_cell_limits(robot: Robot, limits: MotionLimits) -> list[Finding]:
    cell = limits.cell
    if cell is None:
        tool = any(space.half_spaces for space in limits.workspaces)
        return [_no_limit("floor and walls for anything but the tool" if tool else "floor and walls")]
    found = [] if cell.hulls else [_no_limit("floor and walls for the bodies around the joint origins")]
    remedy = "Check by eye that this is how the robot is built."
    return found + [
        _finding("always-beyond", where, "it stands beyond by build", remedy)
        for where in find_always_beyond(robot, cell)
    ]


def _find_always_near(robot: Robot, limits: MotionLimits) -> list[Finding]:
    """Pairs of links that are nearer than the clearance in every position of the joints."""
    pairs: dict[str, None] = {}
    kinds = (
        ([hull.link for hull in limits.hulls], hull_pairs(robot, limits.hulls, limits.clearance)),
        ([c.link for c in limits.capsules], collision_pairs(robot, limits.capsules, limits.clearance)),
    )
    for links, kept in kinds:
        for a, b in sorted(set(distant_pairs(robot, links)) - set(kept)):
            pairs[f"self-collision of {links[a]} and {links[b]}"] = None
    remedy = "Reduce the clearance to check this pair."
    return [_finding("always-near", pair, "nearer than the clearance by build", remedy) for pair in pairs]


def _find_weightless(robot: Robot, limits: MotionLimits) -> list[Finding]:
    """Torques that cannot be judged, or not fully, because masses are zero in the model."""
    limited, carried = np.isfinite(limits.torque), carries_mass(robot)
    remedy, found = "Give the links masses.", []
    if where := _joints_text("torque", limited & ~carried, limits.joint_names):
        found.append(_finding("unjudged-torque", where, "torques cannot be judged, masses are zero", remedy))
    empty = [body.joint.child for body in robot.bodies if not np.any(body.inertia.vector)]
    if empty and np.any(limited & carried):
        message = "masses are zero: torques are judged without them"
        found.append(_finding("unjudged-torque", f"torque for {', '.join(empty)}", message, remedy))
    return found


def _joints_text(kind: str, missing: NDArray[np.bool_], names: tuple[str, ...]) -> str:
    """``kind of a, b`` for the joints concerned; the kind alone where it is all of them, empty where it is none."""
    if missing.all():
        return kind
    return f"{kind} of {', '.join(names[j] for j in np.flatnonzero(missing))}" if missing.any() else ""
