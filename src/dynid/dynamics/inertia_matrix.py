"""Inertia matrix and gravity torque from composite bodies, and velocity torque.

[Izaguirre1992] eqs. (9)-(20): compound links, their inertia and gravity coefficients, velocity terms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dynid.dynamics.inverse_dynamics import backward_pass
from dynid.dynamics.kinematics import ROUNDING, BodyMotion, Pair, carry_wrench, joint_rotation, lever, spin, unit_motion
from dynid.robot.model import Body, Robot
from dynid.spatial import Array, cross, turn_about

Composite = tuple[Any, Array, Array]
"""Mass, first moment (3,), tensor (3, 3) about the body's origin: of the body with all bodies that it carries."""


def composite_bodies(robot: Robot, theta: Array, q: Array) -> list[Composite]:
    """Mass properties of every body together with all bodies beyond it, in its frame ([Izaguirre1992] (15)-(17))."""
    composites: list[Composite] = [own_composite(theta[10 * j : 10 * j + 10]) for j in range(robot.dof)]
    for j in reversed(range(robot.dof)):
        body = robot.bodies[j]
        if body.parent < 0:
            continue
        mass, h, tensor = carry_down(body, q[j], composites[j])
        onto = composites[body.parent]
        composites[body.parent] = (onto[0] + mass, onto[1] + h, onto[2] + tensor)  # [Izaguirre1992] eqs. (15), (16)
    return composites


def carry_down(body: Body, q: Any, composite: Composite) -> Composite:
    """Describe a composite body in its parent's frame at joint position q [rad or m].

    Three cheap steps: a shift along the joint axis (which the joint angle does not change), the turn about it, and a
    shift across it to the parent's origin.
    """
    arm = lever(body, q)
    carried = _turn_back(body, q, move_origin(composite, body.axis * arm.along))
    return move_origin(rotate_composite(body.R_parent_joint, carried), arm.across)


def move_origin(composite: Composite, p: Array) -> Composite:
    """Describe the same body about another origin, in which the old one is at p (3,); written out so that zeros vanish.

    [Izaguirre1992] eqs. (15), (17) without the rotation.
    """
    mass, h, tensor = composite
    moved: Any = np.array(tensor, dtype=object)
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        constant = (p[b] * p[b] + p[c] * p[c]) * mass
        moved[a, a] = (tensor[a, a] + constant) + 2.0 * (p[b] * h[b] + p[c] * h[c])
        moved[b, c] = (tensor[b, c] - (p[b] * p[c]) * mass) - p[b] * h[c] - p[c] * h[b]
        moved[c, b] = moved[b, c]
    return mass, h + p * mass, moved


def _turn_back(body: Body, q: Any, composite: Composite) -> Composite:
    """Describe the same body in the frame before the joint's turn."""
    turn = joint_rotation(body, q)
    if body.is_prismatic or np.count_nonzero(body.axis) != 1:
        return rotate_composite(turn, composite)
    k = int(np.flatnonzero(body.axis)[0])
    a, b = (k + 1) % 3, (k + 2) % 3
    return turn_composite(k, turn[a, a], turn[b, a], composite)


def turn_composite(k: int, c: Any, s: Any, composite: Composite) -> Composite:
    """Describe the same body after a turn by an angle with cosine c and sine s about coordinate axis k.

    The products of the turn ``T J T'`` share the swing ``s (Jaa - Jbb) + 2 c Jab``: nine multiplications in all.
    """
    mass, h, J = composite
    a, b = (k + 1) % 3, (k + 2) % 3
    swing = s * (J[a, a] - J[b, b]) + c * (2.0 * J[a, b])
    turned: Any = np.array(J, dtype=object)
    turned[a, a], turned[b, b] = J[a, a] - s * swing, J[b, b] + s * swing
    turned[a, b] = turned[b, a] = c * swing - J[a, b]
    turned[k, a] = turned[a, k] = c * J[k, a] - s * J[k, b]
    turned[k, b] = turned[b, k] = s * J[k, a] + c * J[k, b]
    moment: Any = np.array(h, dtype=object)
    moment[a], moment[b] = c * h[a] - s * h[b], s * h[a] + c * h[b]
    return mass, moment, turned


def rotate_composite(R: Array, composite: Composite) -> Composite:
    """Describe the same body in a frame turned by R (3, 3); only the upper triangle of ``R J R'`` is computed."""
    mass, h, tensor = composite
    half = R @ tensor
    placed: Any = np.array(tensor, dtype=object)
    for a in range(3):
        for b in range(a, 3):
            placed[a, b] = placed[b, a] = half[a] @ R[b]
    return mass, R @ h, placed


def own_composite(theta: Array) -> Composite:
    """Mass properties of a single body with parameters (10,)."""
    xx, xy, xz, yy, yz, zz, mx, my, mz, m = theta
    return m, np.array([mx, my, mz]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def momentum(composite: Composite, motion: Pair) -> Pair:
    """Momentum of a body that moves: about its origin ``J w + h x v``, linear ``m v + w x h``."""
    (mass, h, tensor), (w, v) = composite, motion
    return tensor @ w + cross(h, v), v * mass + cross(w, h)


def change_frame(T: Array, theta: Array) -> Array:
    """Ten parameters (10,) of a body in a frame in which its own frame has the pose T (4, 4)."""
    m, h, J = move_origin(rotate_composite(T[:3, :3], own_composite(theta)), T[:3, 3])
    return np.array([J[0, 0], J[0, 1], J[0, 2], J[1, 1], J[1, 2], J[2, 2], *h, m])


def composite_inertia_matrix(robot: Robot, theta: Array, q: Array) -> Array:
    """Inertia matrix M(q) (n, n), rotor inertias and couplings included ([Izaguirre1992] eqs. (9), (11))."""
    M: Any = np.full((robot.dof, robot.dof), 0.0, dtype=object)
    for j, composite in enumerate(composite_bodies(robot, theta, q)):
        wrench, i = momentum(composite, unit_motion(robot.bodies[j])), j  # accelerates it by one unit of joint j
        while i >= 0:
            body = robot.bodies[i]
            M[i, j] = M[j, i] = body.axis @ wrench[body.is_prismatic]  # [Izaguirre1992] eq. (9)
            wrench, i = carry_wrench(body, q[i], wrench), body.parent
    return add_motor_inertia(robot, theta, M)


def motor_inertia_matrix(robot: Robot, theta: Array) -> Array:
    """Inertia of the rotors (n, n): the joints' own rotors on the diagonal, those of couplings also beside it."""
    M: Any = np.full((robot.dof, robot.dof), 0.0, dtype=object)
    return add_motor_inertia(robot, theta, M)


def add_motor_inertia(robot: Robot, theta: Array, M: Array) -> Array:
    """Add the inertia of rotors and couplings to an inertia matrix (n, n) of object elements."""
    for value, placed in zip(theta[10 * robot.dof :], robot.terms, strict=True):
        for (j, k), factor in placed.term.inertia(placed.joints).items():
            M[j, k] = M[j, k] + value * factor
    return M.astype(float) if all(isinstance(value, float) for value in M.flat) else M


def gravity_torque(robot: Robot, theta: Array, q: Array) -> Array:
    """Torque that holds the links against gravity (n,) ([Izaguirre1992] eq. (13))."""
    torque = []
    directions: list[Array] = []
    for j, body in enumerate(robot.bodies):
        above = directions[body.parent] if body.parent >= 0 else robot.gravity
        directions.append(joint_rotation(body, q[j]).T @ (body.R_parent_joint.T @ above))
    for j, (mass, h, _) in enumerate(composite_bodies(robot, theta, q)):
        body = robot.bodies[j]
        wrench = directions[j] * mass if body.is_prismatic else cross(h, directions[j])
        torque.append(-(body.axis @ wrench))  # [Izaguirre1992] eqs. (5), (13)
    return np.array(torque)


def velocity_torque(robot: Robot, theta: Array, q: Array, dq: Array) -> Array:
    """Coriolis and centrifugal torque of the links (n,): [Izaguirre1992] eqs. (18)-(24)."""
    return backward_pass(robot, theta, q, _velocity_motions(robot, q, dq))


class _Run(NamedTuple):
    """Revolute joints on parallel axes, one after the other: they turn the last body like a single joint."""

    before: BodyMotion
    placement: Array
    """(3, 3) placement of the run's first joint, with all the fixed turns about its axis."""
    cosine: Any
    sine: Any
    rate: Any
    """Sum of the joint velocities, signed as the last axis points."""


def _velocity_motions(robot: Robot, q: Array, dq: Array) -> list[BodyMotion]:
    """Forward recursion of the velocities alone ([Izaguirre1992] eqs. (18)-(20))."""
    nothing = np.zeros(3)
    base = BodyMotion(np.eye(3), nothing, nothing, nothing, np.zeros((3, 3)))
    motions: list[BodyMotion] = []
    runs: list[_Run] = []
    for j, body in enumerate(robot.bodies):
        before = motions[body.parent] if body.parent >= 0 else base
        turn, arm, u = joint_rotation(body, q[j]), lever(body, q[j]), body.axis
        run = _extend_run(robot, runs, body, q[j], dq[j]) or _Run(
            before, body.R_parent_joint, *_cosine_and_sine(body, q[j]), dq[j]
        )
        whole = np.eye(3) if body.is_prismatic else turn_about(u, run.cosine, run.sine)
        w = whole.T @ (run.placement.T @ run.before.angular_velocity)
        dw = whole.T @ (run.placement.T @ run.before.angular_acceleration)
        if not body.is_prismatic:
            dw, w = dw + cross(w, u * run.rate), w + u * run.rate  # [Izaguirre1992] eqs. (19), (18)
        field = spin(w, dw)
        a = body.R_parent_joint.T @ (before.acceleration + before.spin @ arm.across)
        a = turn.T @ a + (field @ u) * arm.along  # [Izaguirre1992] eq. (20)
        motions.append(BodyMotion(turn, w, dw, a + cross(w, u * (2.0 * dq[j])) if body.is_prismatic else a, field))
        runs.append(run)
    return motions


def _cosine_and_sine(body: Body, q: Any) -> tuple[Any, Any]:
    return (1.0, 0.0) if body.is_prismatic else (np.cos(q), np.sin(q))


def _extend_run(robot: Robot, runs: list[_Run], body: Body, q: Any, dq: Any) -> _Run | None:
    """Add a joint to its parent's run: one turn by the sum of the angles; None where the axes are not parallel."""
    if body.parent < 0 or body.is_prismatic or robot.bodies[body.parent].is_prismatic:
        return None
    sign = float(np.round(body.R_parent_joint @ body.axis @ robot.bodies[body.parent].axis))
    if not np.allclose(body.R_parent_joint @ body.axis, sign * robot.bodies[body.parent].axis, rtol=0.0, atol=ROUNDING):
        return None
    run, cosine, sine = runs[body.parent], np.cos(q), np.sin(q)
    before = run.sine * sign
    return _Run(
        run.before,
        run.placement @ body.R_parent_joint,
        run.cosine * cosine - before * sine,
        before * cosine + run.cosine * sine,
        run.rate * sign + dq,
    )
