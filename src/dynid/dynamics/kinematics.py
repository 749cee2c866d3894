"""How every body moves when the joints do: motions, velocities and poses, and how to carry motions and wrenches.

Quantities of body j are expressed in its own frame, at its own origin. The acceleration carries ``-g`` (the base
accelerates upwards), so that gravity needs no term of its own (Luh, Walker and Paul). The recursion is that of
[Izaguirre1992] eqs. (18)-(20) with the joint accelerations added.

`dynid.compiled` runs these functions on recorded scalars to make programs. Two arrangements keep the programs short. A
rotation from parent to body is applied in two steps, first the constant rotation of the joint's placement
(``R_parent_joint``), then that by the joint angle, whose matrix has zeros. And the part of the lever arm that lies
along the joint axis is added after the rotation, which does not change it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynid.array_types import Floats
from dynid.robot.model import Body, Robot
from dynid.spatial import ROUNDING, Array, cross, rotation_about, snap, transform


class BodyMotion(NamedTuple):
    """Motion of one body, in its own frame."""

    R_joint_body: Array
    """(3, 3) rotation by the joint angle; the identity for a prismatic joint."""
    angular_velocity: Array
    """(3,) [rad/s]"""
    angular_acceleration: Array
    """(3,) [rad/s^2]"""
    acceleration: Array
    """(3,) acceleration of the origin minus gravity [m/s^2]"""
    spin: Array
    """(3, 3) ``[dw x] + [w x]^2``: times a body-fixed vector it is that vector's second derivative [1/s^2]"""


@dataclass(frozen=True, slots=True, eq=False)
class Lever:
    """The vector from the parent body's origin to the body's origin, split into parts across and along the axis."""

    across: Floats
    """(3,) part perpendicular to the axis, parent frame [m]."""
    along: Any
    """Signed length along the axis [m]; of a prismatic joint it contains q."""


def lever(body: Body, q: Any) -> Lever:
    """The lever arm of a body at joint position q [rad or m]."""
    axis_in_parent = body.R_parent_joint @ body.axis
    along = float(axis_in_parent @ body.p_parent_joint)
    across = body.p_parent_joint - along * axis_in_parent
    size = float(np.abs(body.p_parent_joint).max())
    across = np.where(np.abs(across) <= ROUNDING * size, 0.0, across)
    along = 0.0 if abs(along) <= ROUNDING * size else along
    return Lever(across=across, along=along + q if body.is_prismatic else along)


def joint_rotation(body: Body, q: Any) -> Array:
    """Rotation from body coordinates to joint-placement coordinates (3, 3) at joint position q."""
    return np.eye(3) if body.is_prismatic else rotation_about(body.axis, q)


def spin(w: Array, dw: Array) -> Array:
    """``[dw x] + [w x]^2`` (3, 3): the matrix U of [Izaguirre1992] eq. (20)."""
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    return np.array(
        [
            [-(yy + zz), xy - dw[2], xz + dw[1]],
            [xy + dw[2], -(xx + zz), yz - dw[0]],
            [xz - dw[1], yz + dw[0], -(xx + yy)],
        ]
    )


def body_motions(robot: Robot, q: Array, dq: Array, ddq: Array) -> list[BodyMotion]:
    """Velocities and accelerations of all bodies for one state.

    Args:
        robot: The robot.
        q: (n,) joint positions [rad or m].
        dq: (n,) joint velocities.
        ddq: (n,) joint accelerations.
    """
    base = BodyMotion(np.eye(3), np.zeros(3), np.zeros(3), -robot.gravity, np.zeros((3, 3)))
    motions: list[BodyMotion] = []
    for j, body in enumerate(robot.bodies):
        parent = motions[body.parent] if body.parent >= 0 else base
        motions.append(_next_motion(body, parent, q[j], dq[j], ddq[j]))
    return motions


def _next_motion(body: Body, parent: BodyMotion, q: Any, dq: Any, ddq: Any) -> BodyMotion:
    """Motion of a body from that of its parent (or of the base) and the state of its joint."""
    turn = joint_rotation(body, q)
    arm = lever(body, q)
    u = body.axis
    w = turn.T @ (body.R_parent_joint.T @ parent.angular_velocity)
    dw = turn.T @ (body.R_parent_joint.T @ parent.angular_acceleration)
    if not body.is_prismatic:
        dw = dw + u * ddq + cross(w, u * dq)  # [Izaguirre1992] eq. (19)
        w = w + u * dq  # [Izaguirre1992] eq. (18)
    spin_matrix = spin(w, dw)
    # [Izaguirre1992] eq. (20), with the lever in two parts
    a = turn.T @ (body.R_parent_joint.T @ (parent.acceleration + parent.spin @ arm.across))
    a = a + (spin_matrix @ u) * arm.along
    if body.is_prismatic:
        a = a + u * ddq + cross(w, u * (2.0 * dq))  # the last is the Coriolis acceleration
    return BodyMotion(turn, w, dw, a, spin_matrix)


Pair = tuple[Array, Array]
"""Two vectors (3,): a motion (angular, linear) or a wrench (moment, force) at the origin of a body, in its axes."""


def unit_motion(body: Body) -> Pair:
    """Motion of a body per unit velocity of its own joint."""
    return (np.zeros(3), body.axis) if body.is_prismatic else (body.axis, np.zeros(3))


def carry_motion(body: Body, q: Any, motion: Pair) -> Pair:
    """Motion (w, v) of a body, at its origin in its axes, when its parent moves by ``motion`` and its joint rests."""
    turn = joint_rotation(body, q)
    arm = lever(body, q)
    w, v = motion
    v = turn.T @ (body.R_parent_joint.T @ (v + cross(w, arm.across)))
    w = turn.T @ (body.R_parent_joint.T @ w)
    return w, v + cross(w, body.axis * arm.along)


def carry_wrench(body: Body, q: Any, wrench: Pair) -> Pair:
    """Express a wrench on a body about the parent's origin, in the parent's axes ([Izaguirre1992] eqs. (23), (24))."""
    turn = joint_rotation(body, q)
    arm = lever(body, q)
    moment, force = wrench
    moment = moment + cross(body.axis * arm.along, force)
    force = body.R_parent_joint @ (turn @ force)
    return body.R_parent_joint @ (turn @ moment) + cross(arm.across, force), force


def body_velocities(robot: Robot, q: Array, dq: Array) -> list[Pair]:
    """Angular velocity (3,) [rad/s] and velocity of the origin (3,) [m/s] of every body, in the body's axes."""
    velocities: list[Pair] = []
    for j, body in enumerate(robot.bodies):
        parent = velocities[body.parent] if body.parent >= 0 else (np.zeros(3), np.zeros(3))
        w, v = carry_motion(body, q[j], parent)
        velocities.append((w, v + body.axis * dq[j]) if body.is_prismatic else (w + body.axis * dq[j], v))
    return velocities


def joint_motions(robot: Robot, q: Array) -> list[dict[int, Pair]]:
    """For every body a table: index of a joint that moves it -> the body's motion per unit velocity of that joint."""
    motions: list[dict[int, Pair]] = []
    for j, body in enumerate(robot.bodies):
        parent = motions[body.parent] if body.parent >= 0 else {}
        motions.append({i: carry_motion(body, q[j], motion) for i, motion in parent.items()} | {j: unit_motion(body)})
    return motions


def body_poses(robot: Robot, q: Array) -> list[tuple[Array, Array]]:
    """Rotation ``R_base_body`` (3, 3) and origin (3,) [m] of every body in the root frame."""
    poses: list[tuple[Array, Array]] = []
    for j, body in enumerate(robot.bodies):
        R_base_parent, p = poses[body.parent] if body.parent >= 0 else (np.eye(3), np.zeros(3))
        R_base_joint = R_base_parent @ body.R_parent_joint
        p = p + R_base_parent @ body.p_parent_joint
        if body.is_prismatic:
            p = p + (R_base_joint @ body.axis) * q[j]
        poses.append((R_base_joint @ joint_rotation(body, q[j]), p))
    return poses


def link_poses(robot: Robot, q: Array) -> dict[str, Array]:
    """Table: name of a link, fixed ones included -> its pose ``T_base_link`` (4, 4) at numeric positions q (n,)."""
    bodies = [transform(R, p) for R, p in body_poses(robot, np.asarray(q, dtype=float))]
    poses = {}
    for link in robot.links:
        index, T_body_link = robot.link_body(link.name)
        poses[link.name] = snap(bodies[index] @ T_body_link) if index >= 0 else T_body_link
    return poses
