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

from dynid.dynamics.inertia_matrix import Composite, carry_down, composite_bodies, momentum
from dynid.dynamics.kinematics import Pair, carry_wrench, joint_motions, unit_motion
from dynid.robot.model import Body, Robot
from dynid.spatial import Array, cross, skew


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
    motions = joint_motions(robot, q)
    for c, composite in enumerate(composite_bodies(robot, theta, q)):
        body = robot.bodies[c]
        wrench = momentum(composite, unit_motion(body))
        for a, motion in motions[c].items():
            if a != c:  # a joint cannot change the torque that its own speed needs: D_ccc = 0
                D[a, c, c] = _power(motion, _cross_wrench(unit_motion(body), wrench))
        change, half = _halved_change(body, composite), (wrench[0] * 0.5, wrench[1] * 0.5)
        for b, child, carried in _down(robot, q, c, change):
            half = carry_wrench(robot.bodies[child], q[child], half)
            S_b = unit_motion(robot.bodies[b])
            turning, sweeping = momentum(carried, S_b), _cross_wrench(S_b, half)
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


def _halved_change(body: Body, composite: Composite) -> Composite:
    """Half the derivative of a composite body by its own joint position, in fixed axes at its origin."""
    mass, h, tensor = composite
    u = body.axis
    if body.is_prismatic:
        turned = skew(u * 0.5) @ skew(h)
        return 0.0, u * 0.5 * mass, -(turned + turned.T)
    turned = skew(u * 0.5) @ tensor
    return 0.0, cross(u * 0.5, h), turned + turned.T


def _cross_wrench(motion: Pair, wrench: Pair) -> Pair:
    """Derivative of a wrench that moves along with (w, v): moment ``w x n + v x f``, force ``w x f``."""
    (w, v), (moment, force) = motion, wrench
    return cross(w, moment) + cross(v, force), cross(w, force)


def _power(motion: Pair, wrench: Pair) -> Any:
    return motion[0] @ wrench[0] + motion[1] @ wrench[1]
