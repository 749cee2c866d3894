"""The limits of a robot as constraints on a motion, the margins to them, and the limits that are not checked.

`build_constraints` turns every finite limit of a `MotionLimits` into a `Constraint`; `measure_margins` compares a
motion with them; `find_unchecked_limits` lists the limits that a motion was not compared with.

A constraint bounds a *quantity*, which is a function of the motion at N samples, such as the joint torques (N, n). Each
subclass of `Constraint` here defines two functions of its values: ``beyond`` (N, m), how far they are beyond each of m
limits (in SI units, negative within), and ``slope``, the gradient of ``sum(cotangent * beyond)`` by the values, for any
weights ``cotangent`` (N, m). The search for motions uses the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from dynid.array_types import Bools, Floats, Ints
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.dynamics.kinematics import body_poses, body_velocities
from dynid.errors import ArgumentError
from dynid.excitation.base import Constraint, Derivative, Margin, Quantity, Recorded
from dynid.excitation.hulls import Hull, Witness, all_distances, hull_distances, random_positions, split_pairs
from dynid.excitation.limits import MotionLimits, Wall, Workspace
from dynid.excitation.trajectories.trajectory import PlannedMotion
from dynid.lazy import cached_property
from dynid.robot.model import Robot
from dynid.spatial import SAME, cross

_DISTANCE_SCALE_M = 0.1
"""Distance [m] beyond a wall, or below the clearance, that counts as one unit of excess. Convention."""


def build_constraints(robot: Robot, limits: MotionLimits) -> tuple[Constraint, ...]:
    """Make the constraints of all finite limits; functions of the robot (torques, poses, speeds) are compiled."""
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
    """Lower and upper bounds of one quantity (N, n) of the joints, such as velocity; m bounds are finite."""

    joints: Ints
    """(m,) index of the joint of each bound."""
    sign: Floats
    """(m,) 1 for an upper bound, -1 for a lower one."""
    bound: Floats
    """(m,) signed bounds, so that ``sign * value <= bound``."""

    def beyond(self, values: Floats) -> Floats:
        return values[:, self.joints] * self.sign - self.bound

    def slope(self, values: Floats, cotangent: Floats) -> Floats:
        # (m, n) with 1 where a bound belongs to a joint: adds the one or two bounds of each joint
        onto_joint = self.joints[:, None] == np.arange(values.shape[1])
        return np.asarray((cotangent * self.sign) @ onto_joint)


def _joint_constraints(robot: Robot, limits: MotionLimits) -> list[Constraint]:
    """Make the constraints on position, velocity, acceleration, jerk and torque that have a finite bound."""
    span = limits.upper - limits.lower
    units = robot.position_units
    half = np.where(np.isfinite(span), 0.5 * span, 1.0)  # a bound on one side only is measured in rad or m
    # `half` and `size` below are what counts as one unit of excess
    found = [_bounds(limits, "position", Derivative(0), limits.lower, limits.upper, half, units)]
    for order, name in enumerate(("velocity", "acceleration", "jerk"), start=1):
        size = getattr(limits, name)
        power = "" if order == 1 else f"^{order}"
        rates = [f"{unit}/s{power}" for unit in units]
        found.append(_bounds(limits, name, Derivative(order), -size, size, size, rates))
    size = np.where(carries_mass(robot), limits.torque, np.inf)
    if np.isfinite(size).any():
        theta = robot.parameter_vector
        efforts = ["N" if unit == "m" else "N m" for unit in units]
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
    """Make a constraint of the finite ones among lower and upper bounds (n,) of a quantity.

    Args:
        limits: Gives the joint names.
        name: Name of the quantity in messages.
        quantity: Function of the motion with values (N, n).
        lower: (n,) lower bounds.
        upper: (n,) upper bounds.
        size: (n,) how far beyond a bound counts as an excess of 1.
        units: (n,) SI units.
    """
    low = np.flatnonzero(np.isfinite(lower))
    high = np.flatnonzero(np.isfinite(upper))
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
    """Find the joints (n,) that carry a body with mass or inertia in the model; only their torque can be judged."""
    heavy = np.array([bool(np.any(body.inertia.vector)) for body in robot.bodies], dtype=bool)
    for index in reversed(range(robot.dof)):  # a body's index is above its parent's
        if heavy[index] and robot.bodies[index].parent >= 0:
            heavy[robot.bodies[index].parent] = True
    return heavy


# --- points and bodies ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _SpeedLimit(Constraint):
    """An upper bound on the length of a velocity (N, 3); the bound is `scale`, so that an excess of 1 is twice it."""

    def beyond(self, values: Floats) -> Floats:
        return np.asarray(np.linalg.norm(values, axis=1, keepdims=True) - self.scale)

    def slope(self, values: Floats, cotangent: Floats) -> Floats:
        speed = np.linalg.norm(values, axis=1, keepdims=True)
        direction: Floats = np.divide(values, speed, out=np.zeros_like(values), where=speed > 0.0)
        return cotangent * direction


def _speed_constraint(robot: Robot, workspace: Workspace) -> Constraint:
    """Make the constraint on the speed of a point of a link."""
    link = str(workspace.link)
    body, T = robot.link_body(link)
    point = T[:3, :3] @ workspace.point + T[:3, 3]

    def velocity(q: Any, dq: Any) -> Any:
        """Velocity (3,) of the point, in the body's axes."""
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
    """Record the poses (h, 3, 4), rotation and position, of the links of h hulls in the root frame."""
    frames = [robot.link_body(hull.link) for hull in hulls]

    def poses(q: Any) -> Any:
        """Poses (h, 3, 4) at joint positions q (n,)."""
        bodies = [*body_poses(robot, q), (np.eye(3), np.zeros(3))]  # index -1 is the base
        found = []
        for body, T in frames:
            R, p = bodies[body]
            found.append(np.hstack([R @ T[:3, :3], (p + R @ T[:3, 3])[:, None]]))
        return np.array(found)

    return Recorded(poses, robot.dof, "q")


@dataclass(frozen=True, kw_only=True)
class _Walls(Constraint):
    """Walls that hulls must stay behind; the corner of a hull that is farthest beyond a wall counts.

    The values are the poses (N, h, 3, 4) of the links of h hulls in the root frame.
    """

    pairs: tuple[tuple[int, Hull, Wall], ...]
    """(m,) index of a hull among the h poses, the hull, and a wall."""

    def beyond(self, values: Floats) -> Floats:
        return np.stack([_heights(values[:, h], hull, wall).max(axis=1) for h, hull, wall in self.pairs], axis=1)

    def slope(self, values: Floats, cotangent: Floats) -> Floats:
        whole = np.zeros_like(values)
        for (h, hull, wall), force in zip(self.pairs, cotangent.T, strict=True):
            farthest = hull.corners[_heights(values[:, h], hull, wall).argmax(axis=1)]
            whole[:, h] += _pose_force(force[:, None] * wall.normal, farthest)
        return whole


def _heights(poses: Floats, hull: Hull, wall: Wall) -> Floats:
    """Measure how far a hull, at each of its k corners, reaches beyond a wall, (N, k) [m]; poses (N, 3, 4)."""
    # how far the link's origin, plus the radius of the hull, is beyond the wall (N,)
    origins = poses[:, :, 3] @ wall.normal + hull.radius - wall.offset
    return np.asarray((wall.normal @ poses[:, :, :3]) @ hull.corners.T + origins[:, None])


def _pose_force(force: Floats, place: Floats) -> Floats:
    """Map gradients by points of links to gradients by the links' poses.

    Args:
        force: (N, 3) gradient by the position of each point, root frame.
        place: (N, 3) the points, link frame [m].

    Returns:
        (N, 3, 4) gradient by rotation and position of each link: a point is at ``R place + p``.
    """
    return force[:, :, None] * np.column_stack([place, np.ones(len(place))])[:, None, :]


def _wall_constraint(robot: Robot, workspace: Workspace, bodies: Sequence[Hull]) -> Constraint:
    """Make the constraint that keeps the point of a workspace, or every moving body, behind all walls.

    A body that is beyond a wall in every one of 50 random positions of the joints is beyond it by build, for example
    the foot of the first link, which turns on the floor. Such pairs are not checked.

    Raises:
        ArgumentError: No body is ever inside.
    """
    if workspace.link is not None:
        hulls = [Hull(link=workspace.link, corners=workspace.point[None])]
        name = "workspace"
    else:
        hulls = _moving_bodies(robot, bodies)
        name = "floor or wall"
    pairs = tuple((h, hull, wall) for h, hull in enumerate(hulls) for wall in workspace.walls)
    all_pairs = _Walls(
        name=name,
        where=tuple(f"link '{hull.link}': {wall.name}" for _, hull, wall in pairs),
        scale=np.full(len(pairs), _DISTANCE_SCALE_M),
        units=("m",) * len(pairs),
        quantity=_poses(robot, hulls),
        pairs=pairs,
    )
    if workspace.link is not None:
        return all_pairs
    # (m,) whether the hull is behind the wall at one of the positions at least
    inside = np.any(all_pairs.excess(PlannedMotion.at(random_positions(robot))) < 0.0, axis=0)
    if not inside.any():
        raise ArgumentError(
            f"the whole robot is beyond '{', '.join(wall.name for wall in workspace.walls)}' wherever its joints are",
            remedy="Give it in the frame of the base.",
        )
    return replace(
        all_pairs,
        where=tuple(compress(all_pairs.where, inside)),
        scale=all_pairs.scale[inside],
        units=tuple(compress(all_pairs.units, inside)),
        pairs=tuple(compress(pairs, inside)),
        by_build=tuple(f"{where} (it stands beyond by build)" for where in compress(all_pairs.where, ~inside)),
    )


def _moving_bodies(robot: Robot, bodies: Sequence[Hull]) -> list[Hull]:
    """List the hulls of moving links; for a body without a hull, the origins of its links as points."""
    hulls = [hull for hull in bodies if robot.link_body(hull.link)[0] >= 0]
    covered = {robot.link_body(hull.link)[0] for hull in hulls}
    bare = [body for index, body in enumerate(robot.bodies) if index not in covered]
    return hulls + [Hull(link=name, corners=np.zeros((1, 3))) for body in bare for name, _ in body.members]


@dataclass(frozen=True, kw_only=True)
class _SelfCollision(Constraint):
    """A smallest distance between hulls; the values are the poses (N, h, 3, 4) of their links.

    Capsules around the hulls are measured first, which is fast: their distances are lower bounds. Only pairs whose
    capsules are near are measured exactly; for the others the lower bound suffices.
    """

    hulls: tuple[Hull, ...]
    """(h,) the hulls."""
    pairs: Ints
    """(m, 2) indices of the two hulls of each pair."""
    clearance: float
    """Smallest distance of two hulls that is allowed [m]."""

    @cached_property
    def _capsules(self) -> list[Hull]:
        """(h,) a capsule around each hull."""
        return [hull.capsule() for hull in self.hulls]

    def beyond(self, values: Floats) -> Floats:
        distance = all_distances(self._capsules, values, self.pairs)
        near = np.nonzero(distance < self.clearance + _DISTANCE_SCALE_M / 2)
        distance[near] = self._measure(values, *near).distance
        return self.clearance - distance

    def closest(self, motion: PlannedMotion) -> Floats:
        """Measure the largest excess (m,) of each pair over a motion, exactly even where hulls stay far apart."""
        poses = self.quantity(motion)
        # a first exact distance per pair, then every sample whose lower bound is smaller
        bound = all_distances(self._capsules, poses, self.pairs)
        smallest = self._measure(poses, bound.argmin(axis=0), np.arange(len(self.pairs))).distance
        rows, columns = np.nonzero(bound < smallest)
        np.minimum.at(smallest, columns, self._measure(poses, rows, columns).distance)
        return np.asarray((self.clearance - smallest) / self.scale)

    def slope(self, values: Floats, cotangent: Floats) -> Floats:
        rows, columns = np.nonzero(cotangent)
        near = self._measure(values, rows, columns)
        whole = np.zeros_like(values)
        # the gradient of the distance is the same as if the two closest points were fixed to their links
        force = -cotangent[rows, columns, None] * near.direction
        # columns of `pairs`: the first hull moves along the direction, the second against it
        for side, point, sign in ((0, near.first, 1.0), (1, near.second, -1.0)):
            links = self.pairs[columns, side]
            pose = values[rows, links]
            # the point in the link's frame: R^T (point - p)
            place = np.einsum("mij,mi->mj", pose[..., :3], point - pose[..., 3])
            np.add.at(whole, (rows, links), _pose_force(sign * force, place))
        return whole

    def _measure(self, poses: Floats, rows: Ints, columns: Ints) -> Witness:
        """Measure pairs of hulls exactly, number ``columns`` (k,) of `pairs` at sample ``rows`` (k,)."""
        return hull_distances(self.hulls, poses, rows, self.pairs[columns])


def _collision_constraint(robot: Robot, hulls: tuple[Hull, ...], clearance: float) -> Constraint:
    """Make the constraint that keeps hulls apart, except pairs that are near by design in every position."""
    pairs, near = split_pairs(robot, hulls, clearance)
    phrase = "self-collision of {} and {} (nearer than the clearance by build)"
    return _SelfCollision(
        name="self-collision",
        where=tuple(f"links '{hulls[a].link}' and '{hulls[b].link}'" for a, b in pairs),
        scale=np.full(len(pairs), _DISTANCE_SCALE_M),
        units=("m",) * len(pairs),
        quantity=_poses(robot, hulls),
        by_build=tuple(dict.fromkeys(phrase.format(hulls[a].link, hulls[b].link) for a, b in near)),
        hulls=hulls,
        pairs=pairs,
        clearance=clearance,
    )


# --- what a motion keeps ----------------------------------------------------------------------------------------------


def measure_speed_shares(motion: PlannedMotion, velocity: Floats) -> Floats:
    """Compute peak speeds (n, 2), forwards and backwards, as shares of the limits (n,).

    Without a limit they are shares of the larger peak of the joint.
    """
    peaks = np.stack([motion.dq.max(axis=0), -motion.dq.min(axis=0)], axis=1)
    limit = np.where(np.isfinite(velocity), velocity, peaks.max(axis=1))
    shares: Floats = np.divide(peaks, limit[:, None], out=np.zeros_like(peaks), where=limit[:, None] > 0.0)
    return shares


def measure_margins(constraints: tuple[Constraint, ...], motion: PlannedMotion) -> tuple[Margin, ...]:
    """Measure how close a motion comes to every limit."""
    return tuple(margin for c in constraints for margin in c.margins(c.closest(motion)))


def find_unchecked_limits(robot: Robot, limits: MotionLimits, constraints: tuple[Constraint, ...]) -> tuple[str, ...]:
    """List the limits that these constraints do not check, one phrase each, with the reason if there is one."""
    kinds = ("velocity", "acceleration", "jerk", "torque")
    found = [_joints_text(kind, np.isinf(getattr(limits, kind)), limits.joint_names) for kind in kinds]
    limited = np.isfinite(limits.torque)
    carried = carries_mass(robot)
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
    if not any(np.isfinite(space.speed) for space in tools):
        found.append("tool speed")
    if not limits.hulls or limits.clearance is None:
        found.append("self-collision")
    found += [phrase for constraint in constraints for phrase in constraint.by_build]
    return tuple(phrase for phrase in found if phrase)


def _joints_text(kind: str, missing: Bools, names: tuple[str, ...]) -> str:
    """Write ``kind of a, b`` for the missing joints (n,); the kind alone for all joints, empty text for none."""
    if missing.all():
        return kind
    return f"{kind} of {', '.join(names[j] for j in np.flatnonzero(missing))}" if missing.any() else ""
