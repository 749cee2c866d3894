"""Joint torques of a motion by the recursive Newton-Euler method ([Izaguirre1992] eqs. (18)-(24)).

The forward pass, `body_motions`, computes the motion of every body from the base to the tips; `backward_pass` sums the
wrenches from the tips to the base. `dynid.compiled` compiles `newton_euler`: all functions here also run on recorded
scalars. The *terms* of a robot are its friction, motors, springs and couplings, each with one parameter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.dynamics.kinematics import BodyMotion, Pair, body_motions, carry_wrench
from dynid.dynamics.wrench import body_wrench
from dynid.robot.model import Robot
from dynid.spatial import Array


def newton_euler(robot: Robot, theta: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """Torque of every joint (n,) [N m or N]: of the links, plus friction, offset, rotor inertia and couplings.

    Args:
        robot: Geometry, gravity and kinds of terms.
        theta: (p,) parameter values in the order of `Robot.parameter_vector`. A value that is the number zero leaves
            its products out of the recorded program.
        q: (n,) joint positions [rad or m].
        dq: (n,) joint velocities.
        ddq: (n,) joint accelerations.
    """
    return rigid_body_torque(robot, theta, q, dq, ddq) + term_torque(robot, theta, q, dq, ddq)


def rigid_body_torque(robot: Robot, theta: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """Torque of the links alone (n,) [N m or N]."""
    return backward_pass(robot, theta, q, body_motions(robot, q, dq, ddq))


def backward_pass(robot: Robot, theta: Array, q: Array, motions: list[BodyMotion]) -> Array:
    """Sum the bodies' wrenches from the tips to the base and project them on the joint axes (n,).

    Args:
        robot: Geometry.
        theta: (p,) parameters, ten per body first.
        q: (n,) joint positions [rad or m].
        motions: The motion of every body, with gravity in the accelerations.
    """
    count = robot.dof
    # (moment, force) on all bodies that each body carries, in its frame
    wrenches: list[Pair] = [(np.zeros(3), np.zeros(3)) for _ in range(count)]
    torque: list[Any] = [0.0] * count
    for j in reversed(range(count)):
        body = robot.bodies[j]
        # all fields of a BodyMotion but the first, the rotation
        force, moment = body_wrench(theta[10 * j : 10 * j + 10], *motions[j][1:])
        moment = wrenches[j][0] + moment  # [Atkeson1986] eq. (12)
        force = wrenches[j][1] + force
        torque[j] = body.axis @ (force if body.is_prismatic else moment)  # [Atkeson1986] eq. (17)
        if body.parent >= 0:
            moment, force = carry_wrench(body, q[j], (moment, force))  # [Atkeson1986] eq. (13)
            wrenches[body.parent] = wrenches[body.parent][0] + moment, wrenches[body.parent][1] + force
    return np.array(torque)


def term_rows(robot: Robot, q: Array, dq: Array, ddq: Array) -> list[dict[int, Any]]:
    """Columns of the terms (friction, motors, springs, couplings), in the order of their parameters.

    Each is a table: joint index -> torque of that joint per unit of the term's parameter.
    """
    return [placed.term.rows(placed.joints, q, dq, ddq) for placed in robot.terms]


def term_torque(robot: Robot, theta: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """Torque of the terms alone (n,)."""
    torque: list[Any] = [0.0] * robot.dof
    for value, rows in zip(theta[10 * robot.dof :], term_rows(robot, q, dq, ddq), strict=True):
        for j, column in rows.items():
            torque[j] = torque[j] + column * value
    return np.array(torque)
