"""The regressors: torque and momentum as matrices times the robot's parameters; `dynid.compiled` compiles them.

The block (1, 10) of row i and body j is ``Y_ij = J_ij^T A_j``. ``A_j`` (6, 10) is the wrench on body j per unit of its
ten parameters; ``J_ij`` (6,) is the motion of body j per unit velocity of joint i. Both are in the frame of body j.
[Atkeson1986] eqs. (15)-(17) carry the matrices ``A_j`` backwards to the joints instead, which gives the same rows and
costs more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.dynamics.inverse_dynamics import term_rows
from dynid.dynamics.kinematics import Pair, body_motions, body_velocities, joint_motions
from dynid.dynamics.wrench import body_momentum_regressor, body_wrench_regressor
from dynid.robot.model import Robot
from dynid.spatial import Array


def torque_regressor(robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
    """Matrix Y (n, p) with ``Y @ theta`` the torque of every joint; columns in the order of `Robot.parameter_vector`.

    Args:
        robot: Geometry, gravity and kinds of terms.
        q: (n,) joint positions [rad or m].
        dq: (n,) joint velocities.
        ddq: (n,) joint accelerations.
    """
    # the arguments are all fields of a BodyMotion but the first, the rotation; each wrench is (6, 10), force first
    wrenches = [body_wrench_regressor(*motion[1:]) for motion in body_motions(robot, q, dq, ddq)]
    # one column per friction, motor or coupling term, behind those of the links: joint index -> entry
    columns = term_rows(robot, q, dq, ddq)
    Y = _project(robot, joint_motions(robot, q), wrenches, extra=len(columns))
    for column, rows in enumerate(columns, start=10 * robot.dof):
        for j, value in rows.items():
            Y[j, column] = value
    return _as_floats(Y)


def momentum_regressor(robot: Robot, q: Array, dq: Array) -> Array:
    """Matrix (n, 10 n) with ``matrix @ theta`` the generalised momentum ``M(q) dq`` of the links [N m s or N s]."""
    momenta = [body_momentum_regressor(w, v) for w, v in body_velocities(robot, q, dq)]
    return _as_floats(_project(robot, joint_motions(robot, q), momenta, extra=0))


def _project(robot: Robot, motions: list[dict[int, Pair]], wrenches: list[Array], extra: int) -> Array:
    """Matrix (n, 10 n + extra) of the products ``J_ij^T A_j``; its last ``extra`` columns are zero.

    Args:
        robot: The robot.
        motions: For each body, joint index -> the body's motion (angular, linear) per unit velocity of that joint.
        wrenches: For each body the matrix A (6, 10), force or linear momentum first.
        extra: Number of columns to leave for the terms.
    """
    Y: Any = np.full((robot.dof, 10 * robot.dof + extra), 0.0, dtype=object)
    for j, (motion, wrench) in enumerate(zip(motions, wrenches, strict=True)):
        for i, (angular, linear) in motion.items():
            # [Atkeson1986] eqs. (15), (17)
            Y[i, 10 * j : 10 * j + 10] = np.concatenate([linear, angular]) @ wrench
    return np.asarray(Y)


def _as_floats(Y: Array) -> Array:
    """Make a float array of an object array that holds no recorded scalar; return any other as it is."""
    floats: Array = Y.astype(float) if all(isinstance(value, float) for value in Y.flat) else Y
    return floats
