"""Coriolis and centrifugal coefficients D_ijk(q) from composite bodies ([Izaguirre1992] eq. (1)).

Let S_a be the unit motion of joint a, I_c the inertia of body c with all that it carries, a <= b <= c on one branch:

    dM_ab/dq_c = S_a . dI_c S_b,   dI_c = dI_c/dq_c        the composite body turns under two resting joints
    dM_ac/dq_b = (S_a x S_b) . I_c S_c                     it turns, with its own joint, under the first one
    dM_bc/dq_a = 0                                         everything turns together

so that D_abc and D_bac are half the sum and half the difference of the first two, and D_cab = -D_bac. dI_c is an
inertia without mass: a first moment and a tensor. It is carried to the frame of body b like a composite body.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dynid.dynamics.inertia_matrix import Composite, carry_down, composite_bodies
from dynid.dynamics.kinematics import joint_rotation, lever
from dynid.robot.model import Body, Robot
from dynid.spatial import Array, cross, skew

Pair = tuple[Array, Array]
"""Two vectors (3,): a motion (angular, linear) or a wrench (moment, force) at the origin of a body, in its axes."""


def christoffel_coefficients(robot: Robot, theta: Array, q: Array) -> Array:
    """Coefficients D (n, n, n) of the velocity torques: ``torque_i = sum_jk D_ijk dq_j dq_k``, with D_ijk = D_ikj.

    They are the Christoffel symbols of the first kind of the inertia matrix. Rotor inertias do not change with the
    position and do not enter.

    Args:
        robot: The robot.
        theta: (p,) parameters.
        q: (n,) joint positions [rad or m].
    """
    n = robot.dof
    D: Any = np.full((n, n, n), 0.0, dtype=object)
    motions = [_motions_of_joints(robot, b, q) for b in range(n)]
    for c, composite in enumerate(composite_bodies(robot, theta, q)):
        body = robot.bodies[c]
        wrench = _unit_wrench(body, composite)
        for a, motion in motions[c].items():
            if a != c:  # a joint cannot change the torque that its own speed needs: D_ccc = 0
                D[a, c, c] = _power(motion, _cross_wrench(_unit_motion(body), wrench))
        change, half = _halved_change(body, composite), (wrench[0] * 0.5, wrench[1] * 0.5)
        for b, child, carried in _down(robot, q, c, change):
            half = _carry_wrench(robot, q, child, half)
            S_b = _unit_motion(robot.bodies[b])
            turning, sweeping = _apply(carried, S_b), _cross_wrench(S_b, half)
            for a, motion in motions[b].items():
                P, K = _power(motion, turning), _power(motion, sweeping) if a != b else 0.0
                D[a, b, c] = D[a, c, b] = P + K  # [Izaguirre1992] eq. (1)
                D[b, a, c] = D[b, c, a] = P - K
                D[c, a, b] = D[c, b, a] = K - P
    is_plain = all(isinstance(value, float) for value in D.flat)
    return np.asarray(D, dtype=float) if is_plain else np.asarray(D)


def _down(robot: Robot, q: Array, c: int, change: Composite) -> Iterator[tuple[int, int, Composite]]:
    """Every ancestor of body c, nearest first: its number, that of its child, and the change of c in its frame."""
    child = c
    while (parent := robot.bodies[child].parent) >= 0:
        change = carry_down(robot.bodies[child], q[child], change)
        yield parent, child, change
        child = parent


def _motions_of_joints(robot: Robot, b: int, q: Array) -> dict[int, Pair]:
    """Unit motion of joint b and of every joint before it, at the origin of body b in its axes."""
    found = {b: _unit_motion(robot.bodies[b])}
    chain = [b]
    while (parent := robot.bodies[chain[-1]].parent) >= 0:
        chain.append(parent)
    for place, a in enumerate(chain[1:], start=1):
        w, v = _unit_motion(robot.bodies[a])
        for child in reversed(chain[:place]):
            body, turn = robot.bodies[child], joint_rotation(robot.bodies[child], q[child])
            arm = lever(body, q[child])
            v = turn.T @ (body.R_parent_joint.T @ (v + cross(w, arm.across)))
            w = turn.T @ (body.R_parent_joint.T @ w)
            v = v + cross(w, body.axis * arm.along)
        found[a] = (w, v)
    return found


def _unit_motion(body: Body) -> Pair:
    return (np.zeros(3), body.axis) if body.is_prismatic else (body.axis, np.zeros(3))


def _unit_wrench(body: Body, composite: Composite) -> Pair:
    """Momentum ``I_c S_c`` of a composite body that moves with unit speed about its joint."""
    mass, h, tensor = composite
    u = body.axis
    return (cross(h, u), u * mass) if body.is_prismatic else (tensor @ u, cross(u, h))


def _halved_change(body: Body, composite: Composite) -> Composite:
    """Half the derivative of a composite body by its own joint position, in fixed axes at its origin."""
    mass, h, tensor = composite
    u = body.axis
    if body.is_prismatic:
        turned = skew(u * 0.5) @ skew(h)
        return 0.0, u * 0.5 * mass, -(turned + turned.T)
    turned = skew(u * 0.5) @ tensor
    return 0.0, cross(u * 0.5, h), turned + turned.T


def _apply(composite: Composite, motion: Pair) -> Pair:
    """Momentum of a body without mass that moves by (w, v): moment ``J w + h x v``, force ``w x h``."""
    _, h, tensor = composite
    w, v = motion
    return tensor @ w + cross(h, v), cross(w, h)


def _cross_wrench(motion: Pair, wrench: Pair) -> Pair:
    """Derivative of a wrench that moves along with (w, v): moment ``w x n + v x f``, force ``w x f``."""
    (w, v), (moment, force) = motion, wrench
    return cross(w, moment) + cross(v, force), cross(w, force)


def _power(motion: Pair, wrench: Pair) -> Any:
    return motion[0] @ wrench[0] + motion[1] @ wrench[1]


def _carry_wrench(robot: Robot, q: Array, child: int, wrench: Pair) -> Pair:
    """A wrench on a body, about the parent's origin in the parent's axes."""
    body, (moment, force) = robot.bodies[child], wrench
    arm, turn = lever(body, q[child]), joint_rotation(body, q[child])
    moment = moment + cross(body.axis * arm.along, force)
    force = body.R_parent_joint @ (turn @ force)
    return body.R_parent_joint @ (turn @ moment) + cross(arm.across, force), force
