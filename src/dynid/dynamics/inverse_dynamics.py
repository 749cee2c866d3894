"""Joint torques of a motion by the recursive Newton-Euler method ([Izaguirre1992] eqs. (18)-(24))."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.dynamics.kinematics import BodyMotion, Pair, body_motions, carry_wrench
from dynid.dynamics.wrench import body_wrench
from dynid.robot.model import Robot
from dynid.spatial import Array


def newton_euler(robot: Robot, theta: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """Torque of every joint (n,) [N m or N]: links, then friction, offset, rotor inertia and couplings.

    Args:
        robot: Geometry, gravity and kinds of terms.
        theta: (p,) parameter values in the order of `Robot.parameter_vector`; zeros shorten the recorded program.
        q: (n,) joint positions [rad or m].
        dq: (n,) joint velocities.
        ddq: (n,) joint accelerations.
    """
    return rigid_body_torque(robot, theta, q, dq, ddq) + term_torque(robot, theta, q, dq, ddq)


def rigid_body_torque(robot: Robot, theta: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """Torque of the links alone (n,)."""
    return backward_pass(robot, theta, q, body_motions(robot, q, dq, ddq))


def backward_pass(robot: Robot, theta: Array, q: Array, motions: list[BodyMotion]) -> Array:
    """Sum the bodies' wrenches from the tips to the base and project them on the joint axes (n,)."""
    count = robot.dof
    wrenches: list[Pair] = [(np.zeros(3), np.zeros(3)) for _ in range(count)]
    torque: list[Any] = [0.0] * count
    for j in reversed(range(count)):
        body, motion = robot.bodies[j], motions[j]
        force, moment = body_wrench(theta[10 * j : 10 * j + 10], *motion[1:])
        wrench = wrenches[j][0] + moment, wrenches[j][1] + force  # [Atkeson1986] eq. (12)
        torque[j] = body.axis @ wrench[body.is_prismatic]  # [Atkeson1986] eq. (17)
        if body.parent >= 0:
            moment, force = carry_wrench(body, q[j], wrench)  # [Atkeson1986] eq. (13)
            wrenches[body.parent] = wrenches[body.parent][0] + moment, wrenches[body.parent][1] + force
    return np.array(torque)


def term_rows(robot: Robot, q: Array, dq: Array, ddq: Array) -> list[dict[int, Any]]:
    """One column per term, in the order of the parameters: joint index -> torque per unit of the parameter."""
    return [placed.term.rows(placed.joints, q, dq, ddq) for placed in robot.terms]


def term_torque(robot: Robot, theta: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """Torque of the terms alone (n,)."""
    torque: list[Any] = [0.0] * robot.dof
    for value, rows in zip(theta[10 * robot.dof :], term_rows(robot, q, dq, ddq), strict=True):
        for j, column in rows.items():
            torque[j] = torque[j] + column * value
    return np.array(torque)
