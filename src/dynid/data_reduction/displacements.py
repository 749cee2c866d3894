"""Derivatives of the torques by errors of the geometry: link lengths, angles between axes, encoder zeros, base tilt.

Identification and diagnosis call `displacement_columns` to see whether wrong geometry explains a residual: an error of
the placement of a joint, times its derivative, adds to the torques like a further column of the regressor. `displace`
moves the joints of a robot by errors found in this way.

To get exact derivatives, six virtual joints that stand still at zero are put before every joint: slides along x, y, z
of the parent body, then turns about the same axes. The Newton-Euler recursion of this extended robot is recorded as a
program ("tape"), which is differentiated with respect to the positions of the virtual joints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.dynamics.inverse_dynamics import rigid_body_torque
from dynid.robot.model import Robot, RobotKey
from dynid.robot.parts import Joint, JointKind, Link
from dynid.spatial import Array, rotation_about, transform
from dynid.tape import Program, Tape, compile_tape, jacobian, record

FREEDOMS = 6
"""Number of virtual joints per joint: slides along and turns about three axes."""
MOST_INTERPRETED_SAMPLES = 20_000
"""Number of samples up to which NumPy runs the program, because compiling would take longer (experiment: 600 samples of
a panda take 30 ms, compiling takes 0.9 s)."""


def displacement_columns(robot: Robot, theta: ArrayLike, q: Floats, dq: Floats, ddq: Floats) -> Floats:
    """Derivatives (N, n, n, 6) of the joint torques that the links cause, by the placements of the joints.

    Element ``[k, i, j]`` belongs to sample k, the torque of joint i and the placement of joint j. The first three of
    the six are [N m/m or N/m], for slides of joint j along the axes of its parent body; the last three are
    [N m/rad or N/rad], for turns about these axes through the joint's origin. The turn about a revolute joint's own
    axis is an error of its encoder's zero.

    Args:
        robot: Geometry and gravity.
        theta: (p,) parameters in the order of `Robot.parameter_vector`; those of the bodies are read.
        q: (N, n) joint positions [rad or m].
        dq: (N, n) joint velocities [rad/s or m/s].
        ddq: (N, n) joint accelerations [rad/s^2 or m/s^2].
    """
    inertial = np.asarray(theta, dtype=float)[: 10 * robot.dof]
    evaluate = _compile(RobotKey(robot, "numpy" if len(q) <= MOST_INTERPRETED_SAMPLES else "auto"))
    return np.asarray(evaluate(q, dq, ddq, inertial))


def displace(robot: Robot, shifts: Mapping[str, ArrayLike]) -> Robot:
    """A copy of the robot with some joints placed elsewhere.

    Args:
        robot: The robot.
        shifts: Name of a moving joint -> (6,) slide along the axes of its parent body [m], then the vector of a turn
            about the joint's origin, in the same axes [rad].
    """
    bodies = {body.joint.name: body for body in robot.bodies}
    joints = []
    for joint in robot.joints:
        if joint.name in shifts:
            shift = np.asarray(shifts[joint.name], dtype=float)
            body = bodies[joint.name]
            # a joint is placed in its parent link, whose axes may differ from those of the parent body
            R_body_link = body.R_parent_joint @ joint.T_parent_joint[:3, :3].T
            T = joint.T_parent_joint.copy()  # pose in the parent link
            T[:3, 3] += R_body_link.T @ shift[:3]
            angle = float(np.linalg.norm(shift[3:]))
            if angle > 0.0:
                T[:3, :3] = R_body_link.T @ rotation_about(shift[3:] / angle, angle) @ body.R_parent_joint
            joint = replace(joint, T_parent_joint=T)
        joints.append(joint)
    return replace(robot, joints=tuple(joints))


@lru_cache(maxsize=32)
def _compile(key: RobotKey[Literal["numpy", "auto"]]) -> Program:
    """The executable program for a robot and a back end (both in the key): q, dq, ddq, theta -> (N, n, n, 6)."""
    return compile_tape(_record(key.robot), key.fields)


def _record(robot: Robot) -> Tape:
    """Record the derivatives (n, n, 6) as a function of q, dq, ddq (n,) and theta (10 n,)."""
    extended = _with_virtual_joints(robot)
    count = robot.dof
    indices = {name: index for index, name in enumerate(extended.joint_names)}
    real = [indices[f"joint {j}"] for j in range(count)]  # indices of the robot's own joints

    def torque(q: Array, dq: Array, ddq: Array, theta: Array, shift: Array) -> Array:
        """Torques (n,) of the robot's own joints; shift (n, 6) are the positions of the virtual joints."""
        position, velocity, acceleration = (np.full(extended.dof, 0.0, dtype=object) for _ in range(3))
        inertial = np.full(10 * extended.dof, 0.0, dtype=object)
        position[real] = q
        velocity[real] = dq
        acceleration[real] = ddq
        for j, index in enumerate(real):
            inertial[10 * index : 10 * index + 10] = theta[10 * j : 10 * j + 10]
            for freedom in range(FREEDOMS):
                position[indices[f"virtual {j} {freedom}"]] = shift[j, freedom]
        return rigid_body_torque(extended, inertial, position, velocity, acceleration)[real]

    state = (count,)
    tape = record(torque, q=state, dq=state, ddq=state, theta=(10 * count,), shift=(count, FREEDOMS))
    return jacobian(tape, "output", "shift", 0.0)  # at shift = 0


def _with_virtual_joints(robot: Robot) -> Robot:
    """The robot with six virtual joints before every joint; links are called ``base`` and ``body j``."""
    links = [Link(name="base")]
    joints = []
    for j, body in enumerate(robot.bodies):
        parent = "base" if body.parent < 0 else f"body {body.parent}"
        T = transform(np.eye(3), body.p_parent_joint)  # the first virtual joint stands where the joint is
        for freedom in range(FREEDOMS):
            name = f"virtual {j} {freedom}"
            virtual: JointKind = "prismatic" if freedom < 3 else "revolute"
            links.append(Link(name=name))
            axis = np.eye(3)[freedom % 3]
            joints.append(Joint(name=name, kind=virtual, parent=parent, child=name, T_parent_joint=T, axis=axis))
            parent = name
            T = np.eye(4)
        links.append(Link(name=f"body {j}"))
        turned = transform(body.R_parent_joint, np.zeros(3))
        kind: JointKind = "prismatic" if body.is_prismatic else "revolute"
        joints.append(
            Joint(name=f"joint {j}", kind=kind, parent=parent, child=f"body {j}", T_parent_joint=turned, axis=body.axis)
        )
    return Robot(name=robot.name, links=tuple(links), joints=tuple(joints), gravity=robot.gravity)
