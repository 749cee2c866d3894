"""Limits of the joints and of the tool as constraints, and all limits of a robot together.

What a design did not look at, in words: limits that were not given, and torques that nothing can be said about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.dynamics.kinematics import body_poses, body_velocities
from dynid.errors import ArgumentError
from dynid.excitation.base import Constraint, Differentiable, RecordedConstraint
from dynid.excitation.collision.capsules import collision_pairs, distant_pairs
from dynid.excitation.collision.cell import beyond_by_build, cell_constraint
from dynid.excitation.collision.hulls import hull_pairs
from dynid.excitation.collision.self_collision import self_collision
from dynid.excitation.limits import MotionLimits, Workspace
from dynid.excitation.trajectories.trajectory import Motion
from dynid.robot.model import Robot
from dynid.spatial import cross

__all__ = ["JointConstraint", "Margin", "build_constraints", "margins", "unchecked", "weighed"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Margin:
    """How far a motion stays from one limit at its closest."""

    limit: str
    """``position``, ``velocity``, ``torque``, ..."""
    where: str
    """The joint, wall or pair of links."""
    margin: float
    """Distance to the limit, negative beyond it, in ``unit``."""
    relative: float
    """The same in units of the limit."""
    unit: str


@dataclass(frozen=True)
class JointConstraint(Constraint):
    """Bounds on position, velocity, acceleration or jerk: linear in the motion."""

    order: int
    joints: NDArray[np.int64]
    """(m,) the joint of each column."""
    sign: Floats
    """(m,) 1 for an upper bound, -1 for a lower one."""
    bound: Floats
    """(m,)"""

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
    """(m, 3)"""
    offsets: Floats
    """(m,) [m]"""

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
    if (np.isfinite(limits.torque) & weighed(robot)).any():
        constraints.append(_torque(robot, limits))
    for workspace in limits.workspaces:
        constraints.extend(_workspace(robot, workspace))
    if limits.cell is not None:
        constraints.append(cell_constraint(robot, limits.cell))
    return (*constraints, *self_collision(robot, limits))


def _joint_constraints(robot: Robot, limits: MotionLimits) -> list[Constraint]:
    found: list[Constraint] = []
    span = limits.upper - limits.lower
    half = np.where(np.isfinite(span), 0.5 * span, 1.0)
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
            scale = np.maximum(size[joints], 1e-6)
            bound = np.concatenate([upper[high], -lower[low]])
            units = tuple(("m" if robot.bodies[j].prismatic else "rad") + per for j in joints)
            found.append(JointConstraint(name, where, scale, units, order, joints, sign, bound))
    return found


def _torque(robot: Robot, limits: MotionLimits) -> Constraint:
    joints = np.flatnonzero(np.isfinite(limits.torque) & weighed(robot))
    where = tuple(f"joint '{limits.joint_names[j]}'" for j in joints) * 2
    scale = np.maximum(np.tile(limits.torque[joints], 2), 1e-9)
    theta = robot.parameter_vector
    function = Differentiable(lambda **x: newton_euler(robot, theta, **x), robot.dof, "q", "dq", "ddq")
    units = tuple("N" if robot.bodies[j].prismatic else "N m" for j in joints) * 2
    return _Torque("torque", where, scale, units, function, joints)


def _workspace(robot: Robot, workspace: Workspace) -> list[Constraint]:
    body, T = robot.link_body(workspace.link)
    point = T[:3, :3] @ workspace.point + T[:3, 3]
    if body < 0:
        raise ArgumentError(
            f"link '{workspace.link}' does not move: its workspace would say nothing", remedy="Name the tool's link."
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


def margins(constraints: tuple[Constraint, ...], motion: Motion) -> tuple[Margin, ...]:
    """The closest approach to every limit over a motion."""
    found = []
    for constraint in constraints:
        closest = constraint.closest(motion)
        rows = zip(constraint.where, -closest, constraint.scale, constraint.units, strict=True)
        for where, relative, scale, unit in rows:
            found.append(Margin(constraint.name, where, float(relative * scale), float(relative), unit))
    return tuple(found)


def weighed(robot: Robot) -> NDArray[np.bool_]:
    """Whether each joint (n,) carries anything with mass or inertia in the model: otherwise its torque says nothing."""
    heavy = np.array([bool(np.any(body.inertia.vector)) for body in robot.bodies], dtype=bool)
    for index in reversed(range(robot.dof)):
        if heavy[index] and robot.bodies[index].parent >= 0:
            heavy[robot.bodies[index].parent] = True
    return heavy


def unchecked(robot: Robot, limits: MotionLimits) -> tuple[str, ...]:
    """Phrases that name what no limit was given for."""
    kinds = {
        "velocity": limits.velocity,
        "acceleration": limits.acceleration,
        "jerk": limits.jerk,
        "torque": limits.torque,
    }
    told = [_of(kind, np.isinf(bound), limits.joint_names) for kind, bound in kinds.items()]
    told += _weightless(robot, limits)
    if limits.cell is None and not any(space.half_spaces for space in limits.workspaces):
        told.append("floor and walls")
    elif limits.cell is not None and not limits.cell.hulls:
        told.append("floor and walls for the bodies around the joint origins")
    elif limits.cell is None:
        told.append("floor and walls for anything but the tool")
    if limits.cell is not None:
        told += [f"{where} (it stands beyond by build)" for where in beyond_by_build(robot, limits.cell)]
    if not any(np.isfinite(space.speed) for space in limits.workspaces):
        told.append("tool speed")
    if not (limits.capsules or limits.hulls):
        told.append("self-collision")
    told += _near_by_build(robot, limits)
    return tuple(phrase for phrase in told if phrase)


def _near_by_build(robot: Robot, limits: MotionLimits) -> list[str]:
    """Pairs of links that keep less than the clearance wherever the joints are: they are not held to it."""
    told: dict[str, None] = {}
    kinds = (
        ([hull.link for hull in limits.hulls], hull_pairs(robot, limits.hulls, limits.clearance)),
        ([c.link for c in limits.capsules], collision_pairs(robot, limits.capsules, limits.clearance)),
    )
    for links, kept in kinds:
        for a, b in sorted(set(distant_pairs(robot, links)) - set(kept)):
            told[f"self-collision of {links[a]} and {links[b]} (nearer than the clearance by build)"] = None
    return list(told)


def _weightless(robot: Robot, limits: MotionLimits) -> list[str]:
    limited, carried = np.isfinite(limits.torque), weighed(robot)
    told = []
    if np.any(limited & ~carried):
        phrase = _of("torque", limited & ~carried, limits.joint_names)
        told.append(f"{phrase} (torques cannot be judged, masses are zero)")
    empty = [body.joint.child for body in robot.bodies if not np.any(body.inertia.vector)]
    if empty and np.any(limited & carried):
        told.append(f"torque for {', '.join(empty)} (masses are zero: torques are judged without them)")
    return told


def _of(kind: str, missing: NDArray[np.bool_], names: tuple[str, ...]) -> str:
    if missing.all():
        return kind
    return f"{kind} of {', '.join(names[j] for j in np.flatnonzero(missing))}" if missing.any() else ""
