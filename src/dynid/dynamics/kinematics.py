"""Forward pass: how every body moves when the joints do.

Quantities of body j are expressed in its own frame, at its own origin. The acceleration carries ``-g`` (the base
accelerates upwards), so that gravity needs no term of its own (Luh, Walker and Paul). The recursion is that of
[Izaguirre1992] eqs. (18)-(20) with the joint accelerations added.

Two arrangements keep the recorded programs short: a rotation is applied as placement, then joint angle; and the part of
the lever arm that lies along the joint axis is accounted for after the rotation, where it meets zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynid.arrays import Floats
from dynid.robot.model import Body, Robot
from dynid.spatial import Array, cross, rotation_about, snap, transform

ROUNDING = 1e-15
"""Part of a length or of a unit vector below which an entry is rounding and made an exact zero, which keeps the
recorded programs short (convention: some units in the last place of a double)."""


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
    """The way from the parent body's origin to the body's origin, split at the joint axis."""

    across: Floats
    """(3,) part perpendicular to the axis, parent frame [m]."""
    along: Any
    """Signed length along the axis [m]; of a prismatic joint it contains q."""


def lever(body: Body, q: Any) -> Lever:
    """The lever arm of a body at joint position q [rad or m], split at the joint axis."""
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
        before = motions[body.parent] if body.parent >= 0 else base
        motions.append(_next_motion(body, before, q[j], dq[j], ddq[j]))
    return motions


def _next_motion(body: Body, before: BodyMotion, q: Any, dq: Any, ddq: Any) -> BodyMotion:
    turn, arm, u = joint_rotation(body, q), lever(body, q), body.axis
    w = turn.T @ (body.R_parent_joint.T @ before.angular_velocity)
    dw = turn.T @ (body.R_parent_joint.T @ before.angular_acceleration)
    if not body.is_prismatic:
        dw = dw + u * ddq + cross(w, u * dq)  # [Izaguirre1992] eq. (19)
        w = w + u * dq  # [Izaguirre1992] eq. (18)
    field = spin(w, dw)
    # [Izaguirre1992] eq. (20), the lever split at the joint axis
    a = turn.T @ (body.R_parent_joint.T @ (before.acceleration + before.spin @ arm.across)) + (field @ u) * arm.along
    if body.is_prismatic:
        a = a + u * ddq + cross(w, u * (2.0 * dq))
    return BodyMotion(turn, w, dw, a, field)


Pair = tuple[Array, Array]
"""Two vectors (3,): a motion (angular, linear) or a wrench (moment, force) at the origin of a body, in its axes."""


def unit_motion(body: Body) -> Pair:
    """Motion of a body per unit velocity of its own joint."""
    return (np.zeros(3), body.axis) if body.is_prismatic else (body.axis, np.zeros(3))


def carry_motion(body: Body, q: Any, motion: Pair) -> Pair:
    """Motion of a body whose parent moves, its own joint at rest."""
    turn, arm, (w, v) = joint_rotation(body, q), lever(body, q), motion
    v = turn.T @ (body.R_parent_joint.T @ (v + cross(w, arm.across)))
    w = turn.T @ (body.R_parent_joint.T @ w)
    return w, v + cross(w, body.axis * arm.along)


def carry_wrench(body: Body, q: Any, wrench: Pair) -> Pair:
    """A wrench on a body, about the parent's origin in the parent's axes ([Izaguirre1992] eqs. (23), (24))."""
    turn, arm, (moment, force) = joint_rotation(body, q), lever(body, q), wrench
    moment = moment + cross(body.axis * arm.along, force)
    force = body.R_parent_joint @ (turn @ force)
    return body.R_parent_joint @ (turn @ moment) + cross(arm.across, force), force


def body_velocities(robot: Robot, q: Array, dq: Array) -> list[Pair]:
    """Angular velocity and origin velocity (3,), (3,) of every body, in its own frame."""
    velocities: list[Pair] = []
    for j, body in enumerate(robot.bodies):
        w, v = carry_motion(body, q[j], velocities[body.parent] if body.parent >= 0 else (np.zeros(3), np.zeros(3)))
        velocities.append((w, v + body.axis * dq[j]) if body.is_prismatic else (w + body.axis * dq[j], v))
    return velocities


def joint_motions(robot: Robot, q: Array) -> list[dict[int, Pair]]:
    """For every body, joint index -> its motion per unit velocity of that joint."""
    motions: list[dict[int, Pair]] = []
    for j, body in enumerate(robot.bodies):
        before = motions[body.parent] if body.parent >= 0 else {}
        motions.append({i: carry_motion(body, q[j], motion) for i, motion in before.items()} | {j: unit_motion(body)})
    return motions


def body_poses(robot: Robot, q: Array) -> list[tuple[Array, Array]]:
    """Rotation ``R_base_body`` (3, 3) and origin (3,) [m] of every body in the root frame."""
    poses: list[tuple[Array, Array]] = []
    for j, body in enumerate(robot.bodies):
        R, p = poses[body.parent] if body.parent >= 0 else (np.eye(3), np.zeros(3))
        R_base_joint = R @ body.R_parent_joint
        p = p + R @ body.p_parent_joint
        if body.is_prismatic:
            p = p + (R_base_joint @ body.axis) * q[j]
        poses.append((R_base_joint @ joint_rotation(body, q[j]), p))
    return poses


def link_poses(robot: Robot, q: Array) -> dict[str, Array]:
    """Pose ``T_base_link`` (4, 4) of every link, fixed ones included, by name."""
    bodies = [transform(R, p) for R, p in body_poses(robot, np.asarray(q, dtype=float))]
    poses = {}
    for link in robot.links:
        index, T_body_link = robot.link_body(link.name)
        poses[link.name] = snap(bodies[index] @ T_body_link) if index >= 0 else T_body_link
    return poses
