"""Limits as functions of a motion, each with its gradient.

A constraint maps a motion at N samples to its *excess* (N, m): how far each of m quantities is beyond its limit, in
units of the limit; negative inside. Its pullback turns a cotangent (N, m) into one of the motion.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.dynamics.kinematics import body_poses, body_velocities
from dynid.excitation.capsules import Closest, closest_points, collision_pairs
from dynid.excitation.differentiable import Differentiable
from dynid.excitation.limits import MotionLimits, Workspace
from dynid.excitation.trajectory import Motion
from dynid.robot.model import Robot
from dynid.spatial import cross

__all__ = ["Constraint", "JointConstraint", "Margin", "build_constraints", "margins"]

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
class Constraint(ABC):
    """One kind of limit."""

    name: str
    """What it limits."""
    where: tuple[str, ...]
    """(m,) the joint, wall or pair of each column."""
    scale: Floats
    """(m,) size of the limit: excess times scale is in ``unit``."""
    unit: str

    @abstractmethod
    def excess(self, motion: Motion) -> Floats:
        """(N, m), positive beyond the limit."""

    @abstractmethod
    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        """Gradient of ``sum(cotangent * excess)`` with respect to the motion; call `excess` on it first."""


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
class _Recorded(Constraint):
    """A constraint on a recorded function of the state."""

    function: Differentiable

    def _states(self, motion: Motion) -> tuple[Floats, ...]:
        named = {"q": motion.q, "dq": motion.dq, "ddq": motion.ddq}
        return tuple(named[state] for state in self.function.states)

    def _values(self, motion: Motion) -> Floats:
        return self.function(*self._states(motion))

    def _pull(self, motion: Motion, cotangent: Floats) -> Motion:
        gradient = self.function.pullback(cotangent, *self._states(motion))
        zero = np.zeros_like(motion.q)
        return Motion(gradient["q"], gradient.get("dq", zero), gradient.get("ddq", zero), zero)


@dataclass(frozen=True)
class _Torque(_Recorded):
    joints: NDArray[np.int64]

    def excess(self, motion: Motion) -> Floats:
        torque = self._values(motion)[:, self.joints] / self.scale[: len(self.joints)]
        return np.hstack([torque - 1.0, -torque - 1.0])

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        k = len(self.joints)
        whole = np.zeros_like(motion.q)
        whole[:, self.joints] = (cotangent[:, :k] - cotangent[:, k:]) / self.scale[:k]
        return self._pull(motion, whole)


@dataclass(frozen=True)
class _Walls(_Recorded):
    normals: Floats
    """(m, 3)"""
    offsets: Floats
    """(m,) [m]"""

    def excess(self, motion: Motion) -> Floats:
        return (self._values(motion) @ self.normals.T - self.offsets) / self.scale

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        return self._pull(motion, (cotangent / self.scale) @ self.normals)


@dataclass(frozen=True)
class _ToolSpeed(_Recorded):
    def excess(self, motion: Motion) -> Floats:
        return np.asarray(np.linalg.norm(self._values(motion), axis=1, keepdims=True) / self.scale - 1.0)

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        velocity = self._values(motion)
        speed = np.linalg.norm(velocity, axis=1, keepdims=True)
        direction = np.divide(velocity, speed, out=np.zeros_like(velocity), where=speed > 0.0)
        return self._pull(motion, direction * (cotangent / self.scale))


@dataclass(frozen=True)
class _SelfCollision(_Recorded):
    pairs: tuple[tuple[int, int], ...]
    required: Floats
    """(m,) smallest distance of the segments of each pair: radii and clearance [m]."""

    def _closest(self, ends: Floats) -> list[Closest]:
        return [closest_points(ends[:, a, 0], ends[:, a, 1], ends[:, b, 0], ends[:, b, 1]) for a, b in self.pairs]

    def excess(self, motion: Motion) -> Floats:
        distance = np.stack([near.distance for near in self._closest(self._values(motion))], axis=1)
        return (self.required - distance) / self.scale

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        ends = self._values(motion)
        whole = np.zeros_like(ends)
        for k, ((a, b), near) in enumerate(zip(self.pairs, self._closest(ends), strict=True)):
            # where the closest points move along the segments the distance does not change: only the ends matter
            pull = -(cotangent[:, k] / self.scale[k])[:, None] * near.direction
            for capsule, place, sign in ((a, near.first, 1.0), (b, near.second, -1.0)):
                whole[:, capsule, 0] += sign * (1.0 - place)[:, None] * pull
                whole[:, capsule, 1] += sign * place[:, None] * pull
        return self._pull(motion, whole)


def build_constraints(robot: Robot, limits: MotionLimits) -> tuple[Constraint, ...]:
    """Every limit that is finite, as a constraint; recorded and compiled where it needs the robot."""
    constraints: list[Constraint] = list(_joint_constraints(limits))
    if np.isfinite(limits.torque).any():
        constraints.append(_torque(robot, limits))
    for workspace in limits.workspaces:
        constraints.extend(_workspace(robot, workspace))
    if pairs := collision_pairs(robot, limits.capsules, limits.clearance):
        constraints.append(_self_collision(robot, limits, pairs))
    return tuple(constraints)


def _joint_constraints(limits: MotionLimits) -> list[Constraint]:
    found: list[Constraint] = []
    span = limits.upper - limits.lower
    half = np.where(np.isfinite(span), 0.5 * span, 1.0)
    v, a, jerk = limits.velocity, limits.acceleration, limits.jerk
    kinds = (
        ("position", limits.lower, limits.upper, half, "rad or m"),
        ("velocity", -v, v, v, "rad/s or m/s"),
        ("acceleration", -a, a, a, "rad/s^2 or m/s^2"),
        ("jerk", -jerk, jerk, jerk, "rad/s^3 or m/s^3"),
    )
    for order, (name, lower, upper, size, unit) in enumerate(kinds):
        low, high = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
        joints = np.concatenate([high, low])
        if joints.size:
            sign = np.concatenate([np.ones(len(high)), -np.ones(len(low))])
            where = tuple(f"joint '{limits.joint_names[j]}'" for j in joints)
            scale = np.maximum(size[joints], 1e-6)
            bound = np.concatenate([upper[high], -lower[low]])
            found.append(JointConstraint(name, where, scale, unit, order, joints, sign, bound))
    return found


def _torque(robot: Robot, limits: MotionLimits) -> Constraint:
    joints = np.flatnonzero(np.isfinite(limits.torque))
    where = tuple(f"joint '{limits.joint_names[j]}'" for j in joints) * 2
    scale = np.maximum(np.tile(limits.torque[joints], 2), 1e-9)
    theta = robot.parameter_vector
    function = Differentiable(lambda **x: newton_euler(robot, theta, **x), robot.dof, "q", "dq", "ddq")
    return _Torque("torque", where, scale, "N m or N", function, joints)


def _workspace(robot: Robot, workspace: Workspace) -> list[Constraint]:
    body, T = robot.link_body(workspace.link)
    point = T[:3, :3] @ workspace.point + T[:3, 3]
    if body < 0:
        return []

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
        ones = np.ones(len(walls))
        found.append(_Walls("workspace", where, ones, "m", Differentiable(position, robot.dof, "q"), normals, offsets))
    if np.isfinite(workspace.speed):
        scale = np.array([workspace.speed])
        found.append(
            _ToolSpeed("tool speed", (workspace.link,), scale, "m/s", Differentiable(velocity, robot.dof, "q", "dq"))
        )
    return found


def _self_collision(robot: Robot, limits: MotionLimits, pairs: tuple[tuple[int, int], ...]) -> Constraint:
    used = sorted({index for pair in pairs for index in pair})
    capsules = [limits.capsules[index] for index in used]

    def ends(q: Any) -> Any:
        poses = [*body_poses(robot, q), (np.eye(3), np.zeros(3))]  # index -1 is the base
        rows = []
        for capsule in capsules:
            body, T = robot.link_body(capsule.link)
            R, p = poses[body]
            rows.append([p + R @ (T[:3, :3] @ x + T[:3, 3]) for x in (capsule.start, capsule.end)])
        return np.array(rows)

    local = tuple((used.index(a), used.index(b)) for a, b in pairs)
    where = tuple(f"links '{limits.capsules[a].link}' and '{limits.capsules[b].link}'" for a, b in pairs)
    required = np.array([limits.capsules[a].radius + limits.capsules[b].radius + limits.clearance for a, b in pairs])
    scale = np.full(len(pairs), 0.1)
    return _SelfCollision("self-collision", where, scale, "m", Differentiable(ends, robot.dof, "q"), local, required)


def margins(constraints: tuple[Constraint, ...], motion: Motion) -> tuple[Margin, ...]:
    """The closest approach to every limit over a motion."""
    found = []
    for constraint in constraints:
        worst = constraint.excess(motion).max(axis=0)
        for where, relative, scale in zip(constraint.where, -worst, constraint.scale, strict=True):
            found.append(Margin(constraint.name, where, float(relative * scale), float(relative), constraint.unit))
    return tuple(found)
