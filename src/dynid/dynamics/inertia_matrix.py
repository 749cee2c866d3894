"""Inertia matrix and gravity torque from composite bodies, and velocity torque ([Izaguirre1992] eqs. (9)-(24)).

A composite body is a body together with all bodies that it carries ("compound link" in the paper). The entry of the
inertia matrix for joints i and j is what joint i feels of the wrench that accelerates composite body j by one unit of
joint j. `dynid.compiled` compiles these functions: they run on recorded scalars, and every operation becomes part of a
program. So many lines are written out by components: the program then multiplies no zeros.

``theta`` (p,) are the robot's parameters in the order of `Robot.parameter_vector`: ten per body, then one per term.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dynid.dynamics.inverse_dynamics import backward_pass
from dynid.dynamics.kinematics import BodyMotion, Pair, carry_wrench, joint_rotation, lever, spin, unit_motion
from dynid.robot.model import Body, Robot
from dynid.spatial import ROUNDING, Array, cross, turn_about

Composite = tuple[Any, Array, Array]
"""Mass [kg], first moment (3,) [kg m], inertia tensor (3, 3) [kg m^2] about the body's origin, of a composite body."""


def composite_bodies(robot: Robot, theta: Array, q: Array) -> list[Composite]:
    """Mass properties of every composite body, in the frame of its first body ([Izaguirre1992] eqs. (15)-(17))."""
    composites: list[Composite] = [single_body(theta[10 * j : 10 * j + 10]) for j in range(robot.dof)]
    for j in reversed(range(robot.dof)):
        body = robot.bodies[j]
        if body.parent < 0:
            continue
        mass, h, tensor = carry_down(body, q[j], composites[j])
        parent = composites[body.parent]
        composites[body.parent] = (parent[0] + mass, parent[1] + h, parent[2] + tensor)  # eqs. (15), (16)
    return composites


def carry_down(body: Body, q: Any, composite: Composite) -> Composite:
    """Describe a composite body in its parent's frame at joint position q [rad or m].

    Three cheap steps: a shift along the joint axis (which the joint angle does not change), the turn about it, and a
    shift across it to the parent's origin.
    """
    arm = lever(body, q)  # from the parent's origin to the body's: across the axis and along it
    before_turn = _turn_back(body, q, move_origin(composite, body.axis * arm.along))
    return move_origin(rotate_composite(body.R_parent_joint, before_turn), arm.across)


def move_origin(composite: Composite, p: Array) -> Composite:
    """Describe the same body about another origin, from which the old one is at p (3,).

    [Izaguirre1992] eqs. (15), (17) without the rotation.
    """
    mass, h, tensor = composite
    moved: Any = np.array(tensor, dtype=object)
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3  # the two other axes
        point_inertia = (p[b] * p[b] + p[c] * p[c]) * mass
        moved[a, a] = (tensor[a, a] + point_inertia) + 2.0 * (p[b] * h[b] + p[c] * h[c])
        moved[b, c] = (tensor[b, c] - (p[b] * p[c]) * mass) - p[b] * h[c] - p[c] * h[b]
        moved[c, b] = moved[b, c]
    return mass, h + p * mass, moved


def _turn_back(body: Body, q: Any, composite: Composite) -> Composite:
    """Describe the same body in the frame before the joint's turn; about a coordinate axis it takes fewer products."""
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
    # with t the tensor turned: t_aa = J_aa - s swing, t_bb = J_bb + s swing, t_ab = c swing - J_ab
    swing = s * (J[a, a] - J[b, b]) + c * (2.0 * J[a, b])
    turned: Any = np.array(J, dtype=object)
    turned[a, a] = J[a, a] - s * swing
    turned[b, b] = J[b, b] + s * swing
    turned[a, b] = turned[b, a] = c * swing - J[a, b]
    turned[k, a] = turned[a, k] = c * J[k, a] - s * J[k, b]
    turned[k, b] = turned[b, k] = s * J[k, a] + c * J[k, b]
    first_moment: Any = np.array(h, dtype=object)
    first_moment[a] = c * h[a] - s * h[b]
    first_moment[b] = s * h[a] + c * h[b]
    return mass, first_moment, turned


def rotate_composite(R: Array, composite: Composite) -> Composite:
    """Describe the same body in a frame turned by R (3, 3); only the upper triangle of ``R J R'`` is computed."""
    mass, h, tensor = composite
    left_product = R @ tensor
    rotated: Any = np.array(tensor, dtype=object)
    for a in range(3):
        for b in range(a, 3):
            rotated[a, b] = rotated[b, a] = left_product[a] @ R[b]
    return mass, R @ h, rotated


def single_body(theta: Array) -> Composite:
    """Mass properties of one body without those that it carries, from its parameters (10,)."""
    xx, xy, xz, yy, yz, zz, mx, my, mz, m = theta
    return m, np.array([mx, my, mz]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def momentum(composite: Composite, motion: Pair) -> Pair:
    """Momentum of a body that moves by (w, v): angular about its origin ``J w + h x v``, linear ``m v + w x h``.

    With an acceleration instead of a velocity it is the wrench that accelerates the body from rest.
    """
    mass, h, tensor = composite
    w, v = motion
    return tensor @ w + cross(h, v), v * mass + cross(w, h)


def change_frame(T: Array, theta: Array) -> Array:
    """Ten parameters (10,) of a body in a frame in which its own frame has the pose T (4, 4)."""
    m, h, J = move_origin(rotate_composite(T[:3, :3], single_body(theta)), T[:3, 3])
    return np.array([J[0, 0], J[0, 1], J[0, 2], J[1, 1], J[1, 2], J[2, 2], *h, m])


def composite_inertia_matrix(robot: Robot, theta: Array, q: Array) -> Array:
    """Inertia matrix M(q) (n, n), rotor inertias and couplings included ([Izaguirre1992] eqs. (9), (11))."""
    M: Any = np.full((robot.dof, robot.dof), 0.0, dtype=object)
    for j, composite in enumerate(composite_bodies(robot, theta, q)):
        # the wrench that accelerates composite body j by one unit of joint j; it is carried from joint j to the base,
        # and every joint i on the way feels its part along the joint's axis
        moment, force = momentum(composite, unit_motion(robot.bodies[j]))
        i = j
        while i >= 0:
            body = robot.bodies[i]
            M[i, j] = M[j, i] = body.axis @ (force if body.is_prismatic else moment)  # [Izaguirre1992] eq. (9)
            moment, force = carry_wrench(body, q[i], (moment, force))
            i = body.parent
    return add_motor_inertia(robot, theta, M)


def motor_inertia_matrix(robot: Robot, theta: Array) -> Array:
    """Inertia of the rotors (n, n): of single joints on the diagonal, of couplings also off the diagonal."""
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
    gravities: list[Array] = []  # in the frame of each body
    for j, body in enumerate(robot.bodies):
        in_parent = gravities[body.parent] if body.parent >= 0 else robot.gravity
        gravities.append(joint_rotation(body, q[j]).T @ (body.R_parent_joint.T @ in_parent))
    torque = []
    for j, (mass, h, _) in enumerate(composite_bodies(robot, theta, q)):
        body = robot.bodies[j]
        weight = gravities[j] * mass if body.is_prismatic else cross(h, gravities[j])  # its force or its moment
        torque.append(-(body.axis @ weight))  # [Izaguirre1992] eqs. (5), (13)
    return np.array(torque)


def velocity_torque(robot: Robot, theta: Array, q: Array, dq: Array) -> Array:
    """Coriolis and centrifugal torque of the links (n,): [Izaguirre1992] eqs. (18)-(24).

    It is Newton-Euler's inverse dynamics without joint accelerations and gravity.
    """
    return backward_pass(robot, theta, q, _velocity_motions(robot, q, dq))


class _ParallelJoints(NamedTuple):
    """A series of consecutive revolute joints on parallel axes: they turn the last body like a single joint.

    Turning velocities once by the sum of the angles, instead of joint by joint, shortens the recorded program. Every
    joint starts a series of its own, unless its axis is parallel to that of its parent's joint.
    """

    before: BodyMotion
    """Motion of the body before the first joint."""
    placement: Array
    """(3, 3) product of the joints' constant rotations `R_parent_joint`; the turn by the sum of angles follows it."""
    cosine: Any
    """Of the sum of the joint angles, signed as the last axis points."""
    sine: Any
    """Of the same sum."""
    rate: Any
    """Sum of the joint velocities, signed as the last axis points."""


def _velocity_motions(robot: Robot, q: Array, dq: Array) -> list[BodyMotion]:
    """Motions of all bodies without joint accelerations and gravity ([Izaguirre1992] eqs. (18)-(20))."""
    zero = np.zeros(3)
    base = BodyMotion(np.eye(3), zero, zero, zero, np.zeros((3, 3)))
    motions: list[BodyMotion] = []
    series: list[_ParallelJoints] = []
    for j, body in enumerate(robot.bodies):
        parent = motions[body.parent] if body.parent >= 0 else base
        turn = joint_rotation(body, q[j])
        arm = lever(body, q[j])
        u = body.axis
        joints = _extend_series(robot, series, body, q[j], dq[j]) or _start_series(parent, body, q[j], dq[j])
        series_turn = np.eye(3) if body.is_prismatic else turn_about(u, joints.cosine, joints.sine)
        w = series_turn.T @ (joints.placement.T @ joints.before.angular_velocity)
        dw = series_turn.T @ (joints.placement.T @ joints.before.angular_acceleration)
        if not body.is_prismatic:
            dw = dw + cross(w, u * joints.rate)  # [Izaguirre1992] eq. (19)
            w = w + u * joints.rate  # [Izaguirre1992] eq. (18)
        spin_matrix = spin(w, dw)
        a = body.R_parent_joint.T @ (parent.acceleration + parent.spin @ arm.across)
        a = turn.T @ a + (spin_matrix @ u) * arm.along  # [Izaguirre1992] eq. (20)
        if body.is_prismatic:
            a = a + cross(w, u * (2.0 * dq[j]))
        motions.append(BodyMotion(turn, w, dw, a, spin_matrix))
        series.append(joints)
    return motions


def _start_series(parent: BodyMotion, body: Body, q: Any, dq: Any) -> _ParallelJoints:
    """The series of one joint; of a prismatic joint cosine and sine are those of a zero angle."""
    if body.is_prismatic:
        return _ParallelJoints(parent, body.R_parent_joint, 1.0, 0.0, dq)
    return _ParallelJoints(parent, body.R_parent_joint, np.cos(q), np.sin(q), dq)


def _extend_series(robot: Robot, series: list[_ParallelJoints], body: Body, q: Any, dq: Any) -> _ParallelJoints | None:
    """Add a joint to its parent's series, by the addition theorems; None where the two axes are not parallel."""
    if body.parent < 0 or body.is_prismatic or robot.bodies[body.parent].is_prismatic:
        return None
    sign = float(np.round(body.R_parent_joint @ body.axis @ robot.bodies[body.parent].axis))
    if not np.allclose(body.R_parent_joint @ body.axis, sign * robot.bodies[body.parent].axis, rtol=0.0, atol=ROUNDING):
        return None
    joints = series[body.parent]
    cosine = np.cos(q)
    sine = np.sin(q)
    signed_sine = joints.sine * sign  # of the parent's sum, about the axis of this joint
    return _ParallelJoints(
        joints.before,
        joints.placement @ body.R_parent_joint,
        joints.cosine * cosine - signed_sine * sine,
        signed_sine * cosine + joints.cosine * sine,
        joints.rate * sign + dq,
    )
