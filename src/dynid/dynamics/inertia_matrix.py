"""Inertia matrix and gravity torque from composite bodies, velocity torque, forward dynamics.

Equation numbers: [Izaguirre1992] eqs. 9-24.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.dynamics.inverse_dynamics import joint_model_torque, rigid_body_torque
from dynid.dynamics.kinematics import joint_rotation, lever
from dynid.robot.joint_models import RotorInertia
from dynid.robot.model import Robot
from dynid.spatial import Array, cross, skew

__all__ = ["composite_bodies", "composite_inertia_matrix", "forward_dynamics", "gravity_torque", "velocity_torque"]

Composite = tuple[Any, Array, Array]
"""Mass, first moment (3,), tensor (3, 3) about the body's origin, of the body and all that it carries."""


def composite_bodies(robot: Robot, theta: Array, q: Array) -> list[Composite]:
    """Mass properties of every body together with all bodies beyond it, in its frame ([Izaguirre1992] eqs. 12-16)."""
    composites: list[Composite] = [_own(theta[10 * j : 10 * j + 10]) for j in range(robot.dof)]
    for j in reversed(range(robot.dof)):
        body = robot.bodies[j]
        if body.parent < 0:
            continue
        mass, h, tensor = composites[j]
        R = body.R_parent_joint @ joint_rotation(body, q[j])
        arm = lever(body, q[j])
        p = arm.across + (body.R_parent_joint @ body.axis) * arm.along
        h = R @ h
        shift = -(skew(p) @ skew(h) + skew(h) @ skew(p)) - (skew(p) @ skew(p)) * mass
        onto = composites[body.parent]
        composites[body.parent] = (onto[0] + mass, onto[1] + h + p * mass, onto[2] + R @ tensor @ R.T + shift)
    return composites


def _own(theta: Array) -> Composite:
    xx, xy, xz, yy, yz, zz, mx, my, mz, m = theta
    return m, np.array([mx, my, mz]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def composite_inertia_matrix(robot: Robot, theta: Array, q: Array) -> Array:
    """Inertia matrix M(q) (n, n), rotor inertias and couplings included ([Izaguirre1992] eqs. 9-11)."""
    M: Any = np.full((robot.dof, robot.dof), 0.0, dtype=object)
    for j, (mass, h, tensor) in enumerate(composite_bodies(robot, theta, q)):
        body = robot.bodies[j]
        u = body.axis
        # wrench that accelerates the composite body by one unit of joint j
        force, moment = (u * mass, cross(h, u)) if body.prismatic else (cross(u, h), tensor @ u)
        M[j, j] = u @ (force if body.prismatic else moment)
        i = j
        while body.parent >= 0:
            arm, turn = lever(body, q[i]), joint_rotation(body, q[i])
            moment = moment + cross(body.axis * arm.along, force)
            force = body.R_parent_joint @ (turn @ force)
            moment = body.R_parent_joint @ (turn @ moment) + cross(arm.across, force)
            i, body = body.parent, robot.bodies[body.parent]
            M[i, j] = M[j, i] = body.axis @ (force if body.prismatic else moment)
    return _with_motor_inertia(robot, theta, M)


def _with_motor_inertia(robot: Robot, theta: Array, M: Array) -> Array:
    values = iter(theta[10 * robot.dof :])
    for j, joint in enumerate(robot.moving_joints):
        for model in joint.models:
            model_values = [next(values) for _ in model.symbols]
            if isinstance(model, RotorInertia):
                M[j, j] = M[j, j] + model_values[0]
    index = {name: j for j, name in enumerate(robot.joint_names)}
    for coupling in robot.couplings:
        rotor, _, _ = (next(values) for _ in coupling.symbols)
        for a, ratio_a in coupling.ratios.items():
            for b, ratio_b in coupling.ratios.items():
                if a != b:
                    M[index[a], index[b]] = M[index[a], index[b]] + rotor * (ratio_a * ratio_b)
    return M.astype(float) if all(isinstance(value, float) for value in M.flat) else M


def gravity_torque(robot: Robot, theta: Array, q: Array) -> Array:
    """Torque that holds the links against gravity (n,) ([Izaguirre1992] eq. 17)."""
    torque = []
    directions: list[Array] = []
    for j, body in enumerate(robot.bodies):
        above = directions[body.parent] if body.parent >= 0 else robot.gravity
        directions.append(joint_rotation(body, q[j]).T @ (body.R_parent_joint.T @ above))
    for j, (mass, h, _) in enumerate(composite_bodies(robot, theta, q)):
        body = robot.bodies[j]
        wrench = directions[j] * mass if body.prismatic else cross(h, directions[j])
        torque.append(-(body.axis @ wrench))
    return np.array(torque)


def velocity_torque(robot: Robot, theta: Array, q: Array, dq: Array) -> Array:
    """Coriolis and centrifugal torque of the links (n,): eqs. 18-24 without acceleration and gravity."""
    return rigid_body_torque(robot, theta, q, dq, np.zeros(robot.dof), gravity=np.zeros(3))


def forward_dynamics(robot: Robot, theta: Array, q: Array, dq: Array, torque: Array) -> Array:
    """Accelerations (n,) under given joint torques: ``M(q) ddq = torque - all that acts without acceleration``."""
    at_rest = np.zeros(robot.dof)
    bias = rigid_body_torque(robot, theta, q, dq, at_rest) + joint_model_torque(robot, theta, q, dq, at_rest)
    return np.asarray(np.linalg.solve(composite_inertia_matrix(robot, theta, q), torque - bias))
