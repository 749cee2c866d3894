"""All limits of a robot as constraints, how far a motion stays from them, and which limits are not stated.

`build_constraints` turns every finite limit of a `MotionLimits` into a `Constraint`; `measure_margins` compares a
motion with them; `find_unchecked_limits` lists what the motion was not measured against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from dynid.arrays import Bools, Floats, Ints
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.dynamics.kinematics import body_poses, body_velocities
from dynid.errors import ArgumentError
from dynid.excitation.base import Constraint, Derivative, Margin, Quantity, Recorded
from dynid.excitation.hulls import Hull, Witness, all_distances, hull_distances, random_positions, split_pairs
from dynid.excitation.limits import MotionLimits, Wall, Workspace
from dynid.excitation.trajectories.trajectory import Motion
from dynid.lazy import cached_property
from dynid.robot.model import Robot
from dynid.spatial import SAME, cross

_SCALE = 0.1
"""Distance between bodies [m] that counts as one unit of excess. Convention."""


def build_constraints(robot: Robot, limits: MotionLimits) -> tuple[Constraint, ...]:
    """Every limit that is finite, as a constraint; recorded and compiled where it needs the robot."""
    constraints = _joint_constraints(robot, limits)
    for workspace in limits.workspaces:
        if workspace.link is not None and robot.link_body(workspace.link)[0] < 0:
            raise ArgumentError(
                f"link '{workspace.link}' does not move: its workspace limits nothing", remedy="Name the tool's link."
            )
        if workspace.walls:
            constraints.append(_wall_constraint(robot, workspace, limits.hulls))
        if np.isfinite(workspace.speed):
            constraints.append(_speed_constraint(robot, workspace))
    if limits.clearance is not None and limits.hulls:
        constraints.append(_collision_constraint(robot, limits.hulls, limits.clearance))
    return tuple(constraints)


# --- joints -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _JointBounds(Constraint):
    """Bounds of one quantity (N, n) of the joints."""

    joints: Ints
    """(m,) the joint of each column."""
    sign: Floats
    """(m,) 1 for an upper bound, -1 for a lower one."""
    bound: Floats
    """(m,) signed bounds, so that ``sign * value <= bound``."""

    def beyond(self, values: Floats) -> Floats:
        return values[:, self.joints] * self.sign - self.bound

    def slope(self, values: Floats, cotangent: Floats) -> Floats:
        onto_joint = self.joints[:, None] == np.arange(values.shape[1])
        return np.asarray((cotangent * self.sign) @ onto_joint)


def _joint_constraints(robot: Robot, limits: MotionLimits) -> list[Constraint]:
    span, units = limits.upper - limits.lower, robot.position_units
    half = np.where(np.isfinite(span), 0.5 * span, 1.0)  # a bound on one side only is measured in rad or m
    found = [_bounds(limits, "position", Derivative(0), limits.lower, limits.upper, half, units)]
    for order, name in enumerate(("velocity", "acceleration", "jerk"), start=1):
        size, power = getattr(limits, name), "" if order == 1 else f"^{order}"
        rates = [f"{unit}/s{power}" for unit in units]
        found.append(_bounds(limits, name, Derivative(order), -size, size, size, rates))
    size = np.where(carries_mass(robot), limits.torque, np.inf)
    if np.isfinite(size).any():
        theta, efforts = robot.parameter_vector, ["N" if unit == "m" else "N m" for unit in units]
        torque = Recorded(lambda **state: newton_euler(robot, theta, **state), robot.dof, "q", "dq", "ddq")
        found.append(_bounds(limits, "torque", torque, -size, size, size, efforts))
    return [constraint for constraint in found if constraint.where]


def _bounds(
    limits: MotionLimits,
    name: str,
    quantity: Quantity,
    lower: Floats,
    upper: Floats,
    size: Floats,
    units: Sequence[str],
) -> Constraint:
    """The finite ones of the bounds (n,) of a quantity."""
    low, high = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
    joints = np.concatenate([high, low])
    return _JointBounds(
        name=name,
        where=tuple(f"joint '{limits.joint_names[j]}'" for j in joints),
        scale=np.maximum(size[joints], SAME),
        units=tuple(units[j] for j in joints),
        quantity=quantity,
        joints=joints,
        sign=np.repeat([1.0, -1.0], [len(high), len(low)]),
        bound=np.concatenate([upper[high], -lower[low]]),
    )


def carries_mass(robot: Robot) -> Bools:
    """Whether each joint (n,) carries a body with mass or inertia in the model: only then its torque can be judged."""
    heavy = np.array([bool(np.any(body.inertia.vector)) for body in robot.bodies], dtype=bool)
    for index in reversed(range(robot.dof)):
        if heavy[index] and robot.bodies[index].parent >= 0:
            heavy[robot.bodies[index].parent] = True
    return heavy


# --- points and bodies ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _SpeedLimit(Constraint):
    """A bound of the length of a velocity (N, 3)."""

    def beyond(self, values: Floats) -> Floats:
        return np.asarray(np.linalg.norm(values, axis=1, keepdims=True) - self.scale)

    def slope(self, values: Floats, cotangent: Floats) -> Floats:
        speed = np.linalg.norm(values, axis=1, keepdims=True)
        direction: Floats = np.divide(values, speed, out=np.zeros_like(values), where=speed > 0.0)
        return cotangent * direction


def _speed_constraint(robot: Robot, workspace: Workspace) -> Constraint:
    link = str(workspace.link)
    body, T = robot.link_body(link)
    point = T[:3, :3] @ workspace.point + T[:3, 3]

    def velocity(q: Any, dq: Any) -> Any:
        w, v = body_velocities(robot, q, dq)[body]
        return v + cross(w, point)

    return _SpeedLimit(
        name="tool speed",
        where=(link,),
        scale=np.array([workspace.speed]),
        units=("m/s",),
        quantity=Recorded(velocity, robot.dof, "q", "dq"),
    )


def _poses(robot: Robot, hulls: Sequence[Hull]) -> Recorded:
    """Poses (h, 3, 4) of the links of bodies in the root frame, as a function of the joint positions."""
    frames = [robot.link_body(hull.link) for hull in hulls]

    def poses(q: Any) -> Any:
        bodies = [*body_poses(robot, q), (np.eye(3), np.zeros(3))]  # index -1 is the base
        found = []
        for body, T in frames:
            R, p = bodies[body]
            found.append(np.hstack([R @ T[:3, :3], (p + R @ T[:3, 3])[:, None]]))
        return np.array(found)

    return Recorded(poses, robot.dof, "q")


@dataclass(frozen=True, kw_only=True)
class _Walls(Constraint):
    """The corner of a body that is farthest beyond a wall decides."""

    pairs: tuple[tuple[int, Hull, Wall], ...]
    """(m) number of a body, the body, and a wall."""

    def beyond(self, values: Floats) -> Floats:
        return np.stack([_heights(values[:, h], hull, wall).max(axis=1) for h, hull, wall in self.pairs], axis=1)

    def slope(self, values: Floats, cotangent: Floats) -> Floats:
        whole = np.zeros_like(values)
        for (h, hull, wall), force in zip(self.pairs, cotangent.T, strict=True):
            farthest = hull.corners[_heights(values[:, h], hull, wall).argmax(axis=1)]
            whole[:, h] += _pose_force(force[:, None] * wall.normal, farthest)
        return whole


def _heights(poses: Floats, hull: Hull, wall: Wall) -> Floats:
    """How far each corner of a body at poses (N, 3, 4) reaches beyond a wall (N, k) [m]."""
    origins = poses[:, :, 3] @ wall.normal + hull.radius - wall.offset
    return np.asarray((wall.normal @ poses[:, :, :3]) @ hull.corners.T + origins[:, None])


def _pose_force(force: Floats, place: Floats) -> Floats:
    """What forces (N, 3) on points (N, 3) fixed to links, root and link frame, are on the links' poses (N, 3, 4)."""
    return force[:, :, None] * np.column_stack([place, np.ones(len(place))])[:, None, :]


def _wall_constraint(robot: Robot, workspace: Workspace, bodies: Sequence[Hull]) -> Constraint:
    """The constraint that keeps the point of a workspace, or every moving body, behind all walls.

    A body that is beyond a wall in every one of 50 random positions of the joints is beyond it by build, for example
    the foot of the first link, which turns on the floor. Such pairs are not checked.

    Raises:
        ArgumentError: No body is ever inside.
    """
    if workspace.link is not None:
        hulls, name = [Hull(link=workspace.link, corners=workspace.point[None])], "workspace"
    else:
        hulls, name = _moving_bodies(robot, bodies), "floor or wall"
    pairs = tuple((h, hull, wall) for h, hull in enumerate(hulls) for wall in workspace.walls)
    every = _Walls(
        name=name,
        where=tuple(f"link '{hull.link}': {wall.name}" for _, hull, wall in pairs),
        scale=np.full(len(pairs), _SCALE),
        units=("m",) * len(pairs),
        quantity=_poses(robot, hulls),
        pairs=pairs,
    )
    if workspace.link is not None:
        return every
    inside = np.any(every.excess(Motion.at(random_positions(robot))) < 0.0, axis=0)
    if not inside.any():
        raise ArgumentError(
            f"the whole robot is beyond '{', '.join(wall.name for wall in workspace.walls)}' wherever its joints are",
            remedy="Give it in the frame of the base.",
        )
    return replace(
        every,
        where=tuple(compress(every.where, inside)),
        scale=every.scale[inside],
        units=tuple(compress(every.units, inside)),
        pairs=tuple(compress(pairs, inside)),
        by_build=tuple(f"{where} (it stands beyond by build)" for where in compress(every.where, ~inside)),
    )


def _moving_bodies(robot: Robot, bodies: Sequence[Hull]) -> list[Hull]:
    """The hulls of moving links; where a body has none, the origins of its links."""
    hulls = [hull for hull in bodies if robot.link_body(hull.link)[0] >= 0]
    covered = {robot.link_body(hull.link)[0] for hull in hulls}
    bare = [body for index, body in enumerate(robot.bodies) if index not in covered]
    return hulls + [Hull(link=name, corners=np.zeros((1, 3))) for body in bare for name, _ in body.members]


@dataclass(frozen=True, kw_only=True)
class _SelfCollision(Constraint):
    """Distances of bodies where the capsules about them are near; elsewhere those of the capsules, which are less."""

    hulls: tuple[Hull, ...]
    """(h) the bodies."""
    pairs: Ints
    """(m, 2) indices of the two bodies of each pair."""
    clearance: float
    """Smallest distance of two bodies [m]."""

    @cached_property
    def _capsules(self) -> list[Hull]:
        return [hull.capsule() for hull in self.hulls]

    def beyond(self, values: Floats) -> Floats:
        distance = all_distances(self._capsules, values, self.pairs)
        near = np.nonzero(distance < self.clearance + _SCALE / 2)
        distance[near] = self._measure(values, *near).distance
        return self.clearance - distance

    def closest(self, motion: Motion) -> Floats:
        """The largest excess (m,) of each pair, measured exactly even where bodies stay far from each other."""
        poses = self.quantity(motion)
        bound = all_distances(self._capsules, poses, self.pairs)
        smallest = self._measure(poses, bound.argmin(axis=0), np.arange(len(self.pairs))).distance
        rows, columns = np.nonzero(bound < smallest)
        np.minimum.at(smallest, columns, self._measure(poses, rows, columns).distance)
        return np.asarray((self.clearance - smallest) / self.scale)

    def slope(self, values: Floats, cotangent: Floats) -> Floats:
        rows, columns = np.nonzero(cotangent)
        near, whole = self._measure(values, rows, columns), np.zeros_like(values)
        # the distance changes as if its points were fixed to the links
        force = -cotangent[rows, columns, None] * near.direction
        for side, point, sign in ((0, near.first, 1.0), (1, near.second, -1.0)):
            links = self.pairs[columns, side]
            pose = values[rows, links]
            place = np.einsum("mij,mi->mj", pose[..., :3], point - pose[..., 3])
            np.add.at(whole, (rows, links), _pose_force(sign * force, place))
        return whole

    def _measure(self, poses: Floats, rows: Ints, columns: Ints) -> Witness:
        return hull_distances(self.hulls, poses, rows, self.pairs[columns])


def _collision_constraint(robot: Robot, hulls: tuple[Hull, ...], clearance: float) -> Constraint:
    """The constraint that keeps bodies apart, but for pairs that are near by build."""
    pairs, near = split_pairs(robot, hulls, clearance)
    phrase = "self-collision of {} and {} (nearer than the clearance by build)"
    return _SelfCollision(
        name="self-collision",
        where=tuple(f"links '{hulls[a].link}' and '{hulls[b].link}'" for a, b in pairs),
        scale=np.full(len(pairs), _SCALE),
        units=("m",) * len(pairs),
        quantity=_poses(robot, hulls),
        by_build=tuple(dict.fromkeys(phrase.format(hulls[a].link, hulls[b].link) for a, b in near)),
        hulls=hulls,
        pairs=pairs,
        clearance=clearance,
    )


# --- what a motion keeps ----------------------------------------------------------------------------------------------


def measure_speed_shares(motion: Motion, velocity: Floats) -> Floats:
    """Peak speeds (n, 2) forwards and backwards as shares of the limits (n,), or of the larger peak without a limit."""
    peaks = np.stack([motion.dq.max(axis=0), -motion.dq.min(axis=0)], axis=1)
    limit = np.where(np.isfinite(velocity), velocity, peaks.max(axis=1))
    shares: Floats = np.divide(peaks, limit[:, None], out=np.zeros_like(peaks), where=limit[:, None] > 0.0)
    return shares


def measure_margins(constraints: tuple[Constraint, ...], motion: Motion) -> tuple[Margin, ...]:
    """The closest approach to every limit over a motion."""
    return tuple(margin for c in constraints for margin in c.margins(c.closest(motion)))


def find_unchecked_limits(robot: Robot, limits: MotionLimits, constraints: tuple[Constraint, ...]) -> tuple[str, ...]:
    """A phrase for everything that these constraints do not check of a motion, with the reason if there is one."""
    kinds = ("velocity", "acceleration", "jerk", "torque")
    found = [_joints_text(kind, np.isinf(getattr(limits, kind)), limits.joint_names) for kind in kinds]
    limited, carried = np.isfinite(limits.torque), carries_mass(robot)
    if where := _joints_text("torque", limited & ~carried, limits.joint_names):
        found.append(f"{where} (torques cannot be judged, masses are zero)")
    empty = [body.joint.child for body in robot.bodies if not np.any(body.inertia.vector)]
    if empty and np.any(limited & carried):
        found.append(f"torque for {', '.join(empty)} (masses are zero: torques are judged without them)")
    tools = [space for space in limits.workspaces if space.link is not None]
    if len(tools) == len(limits.workspaces):
        walled = any(space.walls for space in tools)
        found.append("floor and walls for anything but the tool" if walled else "floor and walls")
    elif not limits.hulls:
        found.append("floor and walls for the bodies around the joint origins")
    found += [] if any(np.isfinite(space.speed) for space in tools) else ["tool speed"]
    found += [] if limits.hulls and limits.clearance is not None else ["self-collision"]
    found += [phrase for constraint in constraints for phrase in constraint.by_build]
    return tuple(phrase for phrase in found if phrase)


def _joints_text(kind: str, missing: Bools, names: tuple[str, ...]) -> str:
    """``kind of a, b`` for the joints concerned; the kind alone where it is all of them, empty where it is none."""
    if missing.all():
        return kind
    return f"{kind} of {', '.join(names[j] for j in np.flatnonzero(missing))}" if missing.any() else ""
