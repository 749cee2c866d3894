"""Coriolis and centrifugal coefficients D_ijk(q) from composite bodies ([Izaguirre1992] eq. (1)).

They are the Christoffel symbols ``D_ijk = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2`` of the inertia matrix M. Instead
of differentiating M, `christoffel_coefficients` uses what a joint does to the bodies. `dynid.compiled` compiles it.

Let S_a be the motion of a body per unit velocity of joint a, and I_c the inertia of the composite body c: body c with
all bodies that it carries. With joints a <= b <= c on one branch and a dot for the power of a wrench in a motion:

    dM_ab/dq_c = S_a . (dI_c/dq_c) S_b       joint c turns the composite body; joints a and b stand still
    dM_ac/dq_b = (S_a x S_b) . I_c S_c       joint b turns the composite body and axis c; axis a stands still
    dM_bc/dq_a = 0                           joint a turns everything together

so that D_abc and D_bac are half the sum and half the difference of the first two, and D_cab = -D_bac. The derivative
dI_c/dq_c has the form of a composite body without mass, with a first moment and a tensor, and is transformed to the
frame of body b in the same way. A motion is a pair (angular, linear) and a wrench a pair (moment, force), both (3,).
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
    for c, composite in enumerate(composite_bodies(robot, theta, q)):  # in the frame of body c
        S_c = unit_motion(robot.bodies[c])
        moment, force = momentum(composite, S_c)  # I_c S_c
        for a, S_a in motions[c].items():
            if a != c:  # a joint cannot change the torque that its own speed needs: D_ccc = 0
                D[a, c, c] = _power(S_a, _cross_wrench(S_c, (moment, force)))
        half: Pair = (moment * 0.5, force * 0.5)  # I_c S_c / 2, from here on in the frame of ancestor b
        for b, child, half_change in _to_ancestors(robot, q, c, _half_derivative(robot.bodies[c], composite)):
            half = carry_wrench(robot.bodies[child], q[child], half)
            S_b = unit_motion(robot.bodies[b])
            by_c = momentum(half_change, S_b)
            by_b = _cross_wrench(S_b, half)
            for a, S_a in motions[b].items():
                P = _power(S_a, by_c)  # half of dM_ab/dq_c
                K = _power(S_a, by_b) if a != b else 0.0  # half of dM_ac/dq_b; S_b x S_b = 0
                D[a, b, c] = D[a, c, b] = P + K  # [Izaguirre1992] eq. (1)
                D[b, a, c] = D[b, c, a] = P - K
                D[c, a, b] = D[c, b, a] = K - P
    is_plain = all(isinstance(value, float) for value in D.flat)  # not so while a program is recorded
    return np.asarray(D, dtype=float) if is_plain else np.asarray(D)


def _to_ancestors(robot: Robot, q: Array, c: int, change: Composite) -> Iterator[tuple[int, int, Composite]]:
    """Express a composite body, given in the frame of body c, in the frame of every ancestor, the parent first.

    Yields (ancestor, child, body): the indices of the ancestor and of its child on the way to c, and the composite body
    in the ancestor's frame.
    """
    child = c
    while (parent := robot.bodies[child].parent) >= 0:
        change = carry_down(robot.bodies[child], q[child], change)
        yield parent, child, change
        child = parent


def _half_derivative(body: Body, composite: Composite) -> Composite:
    """Half the derivative of a composite body by the position of its joint, in axes that stand still."""
    mass, h, tensor = composite
    half_axis = body.axis * 0.5
    if body.is_prismatic:
        half_tensor = -(skew(half_axis) @ skew(h))
        return 0.0, half_axis * mass, half_tensor + half_tensor.T
    half_tensor = skew(half_axis) @ tensor
    return 0.0, cross(half_axis, h), half_tensor + half_tensor.T


def _cross_wrench(motion: Pair, wrench: Pair) -> Pair:
    """Derivative of a wrench (n, f) that moves along with a body (w, v): moment ``w x n + v x f``, force ``w x f``."""
    w, v = motion
    moment, force = wrench
    return cross(w, moment) + cross(v, force), cross(w, force)


def _power(motion: Pair, wrench: Pair) -> Any:
    """Power of a wrench in a motion: ``w . moment + v . force``."""
    return motion[0] @ wrench[0] + motion[1] @ wrench[1]
