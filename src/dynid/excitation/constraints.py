"""All limits of a robot as constraints, how far a motion stays from them, and which limits are not stated.

`build_constraints` turns every finite limit of a `MotionLimits` into a `Constraint`; `measure_margins` compares a
motion with them; `find_unchecked_limits` lists what the motion was not measured against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Bools, Floats, Ints
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.dynamics.kinematics import body_poses, body_velocities
from dynid.errors import ArgumentError
from dynid.excitation.base import Constraint, Differentiable, RecordedConstraint
from dynid.excitation.hulls import (
    Hull,
    Witness,
    hull_distances,
    random_positions,
    segment_distances,
    split_pairs,
)
from dynid.excitation.limits import MotionLimits, Workspace
from dynid.excitation.trajectories.trajectory import Motion
from dynid.robot.model import Robot
from dynid.spatial import cross

_SCALE = 0.1
"""Distance [m] that counts as one unit of excess. Convention."""


def _pose_function(robot: Robot, links: Sequence[str]) -> Differentiable:
    """Poses of links (h, 3, 4) in the root frame, as a function of the joint positions."""
    frames = [robot.link_body(link) for link in links]

    def poses(q: Any) -> Any:
        bodies = [*body_poses(robot, q), (np.eye(3), np.zeros(3))]  # index -1 is the base
        found = []
        for body, T in frames:
            R, p = bodies[body]
            found.append(np.hstack([R @ T[:3, :3], (p + R @ T[:3, 3])[:, None]]))
        return np.array(found)

    return Differentiable(poses, robot.dof, "q")


@dataclass(frozen=True)
class _Walls(RecordedConstraint):
    """The corner of a body that is farthest beyond a wall decides."""

    hulls: tuple[Hull, ...]
    """(h) the bodies."""
    normals: Floats
    """(w, 3) unit vectors out of the allowed region, root frame."""
    offsets: Floats
    """(w,) distances of the walls from the root's origin along their normals [m]."""
    kept: Ints
    """(m,) the pairs of body and wall that are checked, as indices among all h w."""

    def _farthest(self, poses: Floats) -> tuple[Floats, Ints]:
        """How far each body reaches beyond each wall (N, h w) [m], and the corner that does."""
        reach, which = [], []
        for h, hull in enumerate(self.hulls):
            heights = (self.normals @ poses[:, h, :, :3]) @ hull.corners.T  # (N, w, k)
            which.append(heights.argmax(axis=2))
            reach.append(heights.max(axis=2) + hull.radius + poses[:, h, :, 3] @ self.normals.T - self.offsets)
        return np.hstack(reach), np.hstack(which)

    def excess(self, motion: Motion) -> Floats:
        return np.asarray(self._farthest(self.values(motion))[0][:, self.kept] / self.scale)

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        poses = self.values(motion)
        _, which = self._farthest(poses)
        whole = np.zeros_like(poses)
        for column, place in enumerate(self.kept):
            h, wall = divmod(int(place), len(self.offsets))
            corner = np.ones((len(poses), 4))
            corner[:, :3] = self.hulls[h].corners[which[:, place]]
            force = cotangent[:, column, None] / self.scale[column] * self.normals[wall]
            whole[:, h] += force[:, :, None] * corner[:, None, :]
        return self.pull(motion, whole)


def wall_constraint(robot: Robot, workspace: Workspace, bodies: Sequence[Hull]) -> tuple[Constraint, tuple[str, ...]]:
    """The constraint that keeps the point of a workspace, or every moving body, behind all walls.

    A body that is beyond a wall in every one of 50 random positions of the joints is beyond it by build, for example
    the foot of the first link, which turns on the floor. Such pairs are not checked.

    Returns:
        The constraint, and a phrase for each pair of body and wall that is not checked.

    Raises:
        ArgumentError: No body is ever inside.
    """
    hulls = _moving_bodies(robot, bodies) if workspace.link is None else [workspace.tool]
    walls = workspace.half_spaces
    where = [f"link '{hull.link}': {wall.name}" for hull in hulls for wall in walls]
    name = "workspace" if workspace.link is not None else "floor or wall"

    def constraint(kept: Ints) -> Constraint:
        return _Walls(
            name, tuple(where[k] for k in kept), np.full(len(kept), _SCALE), ("m",) * len(kept), function,
            tuple(hulls), np.array([x.normal for x in walls]), np.array([x.offset for x in walls]), kept,
        )  # fmt: skip

    function = _pose_function(robot, [hull.link for hull in hulls])
    every = constraint(np.arange(len(where)))
    if workspace.link is not None:
        return every, ()
    q = random_positions(robot)
    inside = np.any(every.excess(Motion(q, 0.0 * q, 0.0 * q, 0.0 * q)) < 0.0, axis=0)
    if not inside.any():
        raise ArgumentError(
            f"the whole robot is beyond '{', '.join(x.name for x in walls)}' wherever its joints are",
            remedy="Give it in the frame of the base.",
        )
    beyond = tuple(f"{where[k]} (it stands beyond by build)" for k in np.flatnonzero(~inside))
    return constraint(np.flatnonzero(inside)), beyond


def _moving_bodies(robot: Robot, bodies: Sequence[Hull]) -> list[Hull]:
    """The hulls of moving links; where a body has none, the origins of its links."""
    hulls = [hull for hull in bodies if robot.link_body(hull.link)[0] >= 0]
    covered = {robot.link_body(hull.link)[0] for hull in hulls}
    bare = [body for index, body in enumerate(robot.bodies) if index not in covered]
    return hulls + [Hull(link=name, corners=np.zeros((1, 3))) for body in bare for name, _ in body.members]


@dataclass(frozen=True)
class _SelfCollision(RecordedConstraint):
    """Distances of bodies where the capsules about them are near; elsewhere those of the capsules, which are less."""

    hulls: tuple[Hull, ...]
    """(h) the bodies."""
    covers: Floats
    """(h, 2, 3) ends of the capsule about each body, link frame [m]."""
    radii: Floats
    """(h,) radii of these capsules [m]."""
    pairs: Ints
    """(m, 2) indices of the two bodies of each pair."""
    clearance: float
    """Smallest distance of two bodies [m]."""

    def excess(self, motion: Motion) -> Floats:
        poses = self.values(motion)
        distance = self._bounds(poses)
        self._measure(poses, distance, distance < self.clearance + _SCALE / 2)
        return (self.clearance - distance) / self.scale

    def closest(self, motion: Motion) -> Floats:
        """The largest excess (m,) of each pair, measured exactly even where bodies stay far from each other."""
        poses = self.values(motion)
        distance = self._bounds(poses)
        smallest = np.zeros_like(distance, dtype=bool)
        smallest[np.argmin(distance, axis=0), np.arange(len(self.pairs))] = True
        bound = distance.copy()
        self._measure(poses, distance, smallest)
        self._measure(poses, distance, ~smallest & (bound < np.where(smallest, distance, np.inf).min(axis=0)))
        return np.asarray((self.clearance - distance.min(axis=0)) / self.scale)

    def _bounds(self, poses: Floats) -> Floats:
        """Distances (N, m) of the capsules [m]."""
        ends = np.einsum("nhij,hkj->nhki", poses[..., :3], self.covers) + poses[:, :, None, :, 3]
        a, b = (ends[:, self.pairs[:, side]].reshape(-1, 2, 3) for side in (0, 1))
        near = segment_distances(a, b).distance.reshape(len(poses), -1)
        return np.asarray(near - self.radii[self.pairs].sum(axis=1))

    def _measure(self, poses: Floats, distance: Floats, where: Bools) -> None:
        """Replace the distances (N, m) by exact ones where ``where`` is true."""
        rows, columns = np.nonzero(where)
        if rows.size:
            distance[rows, columns] = self._witness(poses, rows, columns).distance

    def _witness(self, poses: Floats, rows: Ints, columns: Ints) -> Witness:
        pairs = self.pairs[columns]
        return hull_distances(self.hulls, pairs, poses[rows[:, None], pairs])

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        poses = np.array(self.values(motion))
        rows, columns = np.nonzero(cotangent)
        whole = np.zeros_like(poses)
        if rows.size:
            near = self._witness(poses, rows, columns)
            # the distance changes as if its points were fixed to the links: a pose feels force times place
            pull = -(cotangent[rows, columns] / self.scale[columns])[:, None] * near.direction
            for side, point, sign in ((0, near.first, 1.0), (1, near.second, -1.0)):
                links = self.pairs[columns, side]
                pose = poses[rows, links]
                place = np.ones((len(rows), 4))
                place[:, :3] = np.einsum("mij,mi->mj", pose[..., :3], point - pose[..., 3])
                np.add.at(whole, (rows, links), sign * pull[:, :, None] * place[:, None, :])
        return self.pull(motion, whole)


def collision_constraint(robot: Robot, limits: MotionLimits) -> tuple[Constraint | None, tuple[str, ...]]:
    """The constraint that keeps bodies apart, and a phrase for each pair of them that is near by build.

    Returns:
        The constraint, None where no pair can collide, and the phrases.
    """
    if limits.clearance is None:
        return None, ()
    hulls = limits.hulls
    pairs, near = split_pairs(robot, hulls, limits.clearance)
    names = dict.fromkeys(
        f"self-collision of {hulls[a].link} and {hulls[b].link} (nearer than the clearance by build)" for a, b in near
    )
    if not len(pairs):
        return None, tuple(names)
    covers = [hull.cover() for hull in hulls]
    constraint = _SelfCollision(
        "self-collision",
        tuple(f"links '{hulls[a].link}' and '{hulls[b].link}'" for a, b in pairs),
        np.full(len(pairs), _SCALE),
        ("m",) * len(pairs),
        _pose_function(robot, [hull.link for hull in hulls]),
        hulls,
        np.array([ends for ends, _ in covers]),
        np.array([radius for _, radius in covers]),
        pairs,
        limits.clearance,
    )
    return constraint, tuple(names)


_SMALLEST = 1e-6
"""Smallest limit [SI] by which an excess is divided: zero limits stay finite. Convention."""


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
class _JointBounds(RecordedConstraint):
    """Bounds on a derivative of the positions, or on the torque."""

    order: int
    """0 position, 1 velocity, 2 acceleration, 3 jerk; of the torque it is the recorded function that counts."""
    joints: Ints
    """(m,) the joint of each column."""
    sign: Floats
    """(m,) 1 for an upper bound, -1 for a lower one."""
    bound: Floats
    """(m,) signed bounds, so that ``sign * value <= bound``."""

    def excess(self, motion: Motion) -> Floats:
        values = motion[self.order] if self.function is None else self.values(motion)
        return (values[:, self.joints] * self.sign - self.bound) / self.scale

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        onto_joint = self.joints[:, None] == np.arange(motion.q.shape[1])
        gradient = (cotangent * (self.sign / self.scale)) @ onto_joint
        if self.function is not None:
            return self.pull(motion, gradient)
        zero = np.zeros_like(motion.q)
        return Motion(*(gradient if order == self.order else zero for order in range(4)))


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
    return _build_all(robot, limits)[0]


def _build_all(robot: Robot, limits: MotionLimits) -> tuple[tuple[Constraint, ...], list[str]]:
    """The constraints, and phrases for bodies that are beyond a wall or near each other by build."""
    constraints = _joint_constraints(robot, limits)
    unchecked: list[str] = []
    for workspace in limits.workspaces:
        if workspace.link is not None and robot.link_body(workspace.link)[0] < 0:
            raise ArgumentError(
                f"link '{workspace.link}' does not move: its workspace limits nothing", remedy="Name the tool's link."
            )
        if workspace.half_spaces:
            walls, beyond = wall_constraint(robot, workspace, limits.hulls)
            constraints.append(walls)
            unchecked += beyond
        if np.isfinite(workspace.speed):
            constraints.append(_tool_speed(robot, workspace))
    apart, near = collision_constraint(robot, limits)
    return (*constraints, *([] if apart is None else [apart])), [*unchecked, *near]


def _joint_constraints(robot: Robot, limits: MotionLimits) -> list[Constraint]:
    span = limits.upper - limits.lower
    half = np.where(np.isfinite(span), 0.5 * span, 1.0)  # a bound on one side only is measured in rad or m
    judged = np.where(carries_mass(robot), limits.torque, np.inf)
    units, efforts = robot.position_units, ["N" if body.is_prismatic else "N m" for body in robot.bodies]
    kinds = [("position", limits.lower, limits.upper, half, units)]
    for per, name in enumerate(("velocity", "acceleration", "jerk"), start=1):
        bound, power = getattr(limits, name), "" if per == 1 else f"^{per}"
        kinds.append((name, -bound, bound, bound, tuple(f"{unit}/s{power}" for unit in units)))
    kinds.append(("torque", -judged, judged, judged, tuple(efforts)))
    theta = robot.parameter_vector
    torque = Differentiable(lambda **x: newton_euler(robot, theta, **x), robot.dof, "q", "dq", "ddq")
    found: list[Constraint] = []
    for order, (name, lower, upper, size, unit) in enumerate(kinds):
        low, high = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
        joints = np.concatenate([high, low])
        if joints.size:
            found.append(
                _JointBounds(
                    name,
                    tuple(f"joint '{limits.joint_names[j]}'" for j in joints),
                    np.maximum(size[joints], _SMALLEST),
                    tuple(unit[j] for j in joints),
                    torque if name == "torque" else None,
                    order,
                    joints,
                    np.repeat([1.0, -1.0], [len(high), len(low)]),
                    np.concatenate([upper[high], -lower[low]]),
                )
            )
    return found


def _tool_speed(robot: Robot, workspace: Workspace) -> Constraint:
    link = str(workspace.link)
    body, T = robot.link_body(link)
    point = T[:3, :3] @ workspace.point + T[:3, 3]

    def velocity(q: Any, dq: Any) -> Any:
        w, v = body_velocities(robot, q, dq)[body]
        return v + cross(w, point)

    function = Differentiable(velocity, robot.dof, "q", "dq")
    return _ToolSpeed("tool speed", (link,), np.array([workspace.speed]), ("m/s",), function)


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


def carries_mass(robot: Robot) -> Bools:
    """Whether each joint (n,) carries a body with mass or inertia in the model: only then its torque can be judged."""
    heavy = np.array([bool(np.any(body.inertia.vector)) for body in robot.bodies], dtype=bool)
    for index in reversed(range(robot.dof)):
        if heavy[index] and robot.bodies[index].parent >= 0:
            heavy[robot.bodies[index].parent] = True
    return heavy


def find_unchecked_limits(robot: Robot, limits: MotionLimits) -> tuple[str, ...]:
    """A phrase for everything that a motion within these limits is not checked against, with the reason if one is."""
    kinds = ("velocity", "acceleration", "jerk", "torque")
    found = [_joints_text(kind, np.isinf(getattr(limits, kind)), limits.joint_names) for kind in kinds]
    limited, carried = np.isfinite(limits.torque), carries_mass(robot)
    if where := _joints_text("torque", limited & ~carried, limits.joint_names):
        found.append(f"{where} (torques cannot be judged, masses are zero)")
    empty = [body.joint.child for body in robot.bodies if not np.any(body.inertia.vector)]
    if empty and np.any(limited & carried):
        found.append(f"torque for {', '.join(empty)} (masses are zero: torques are judged without them)")
    tools = [space for space in limits.workspaces if space.link is not None]
    if all(space.link is not None for space in limits.workspaces):
        walled = any(space.half_spaces for space in tools)
        found.append("floor and walls for anything but the tool" if walled else "floor and walls")
    elif not limits.hulls:
        found.append("floor and walls for the bodies around the joint origins")
    found += [] if any(np.isfinite(space.speed) for space in tools) else ["tool speed"]
    found += [] if limits.hulls and limits.clearance is not None else ["self-collision"]
    return tuple(phrase for phrase in (*found, *_build_all(robot, limits)[1]) if phrase)


def _joints_text(kind: str, missing: Bools, names: tuple[str, ...]) -> str:
    """``kind of a, b`` for the joints concerned; the kind alone where it is all of them, empty where it is none."""
    if missing.all():
        return kind
    return f"{kind} of {', '.join(names[j] for j in np.flatnonzero(missing))}" if missing.any() else ""
