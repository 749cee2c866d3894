"""Where a link is, and how it moves with the joints: forward kinematics and the geometric Jacobian.

The Jacobian's rows are the velocity of the link's origin, then its angular velocity: the order of a wrench's force and
moment, so that ``J^T wrench`` are the joint torques that exert a wrench on what the link touches or holds.
"""

from __future__ import annotations

import numpy as np

from dynid.dynamics.kinematics import body_poses
from dynid.robot.model import Robot
from dynid.spatial import Array, cross, snap


def link_frame(robot: Robot, link: str, q: Array) -> Array:
    """Pose ``T_base_link`` (4, 4) of a link.

    Args:
        robot: The robot.
        link: Name of the link; fixed links are allowed.
        q: (n,) joint positions [rad or m].
    """
    R, p, _ = _placed_link(robot, link, q)
    pose = np.zeros((4, 4), dtype=np.asarray(R @ p).dtype)
    pose[:3, :3], pose[:3, 3], pose[3, 3] = R, p, 1.0
    return pose


def geometric_jacobian(robot: Robot, link: str, q: Array) -> Array:
    """Matrix J (6, n): ``J dq`` is the velocity of a link's origin [m/s], then its angular velocity [rad/s].

    Both are in the axes of the base.

    Args:
        robot: The robot.
        link: Name of the link.
        q: (n,) joint positions [rad or m].
    """
    _, p, index = _placed_link(robot, link, q)
    bodies = body_poses(robot, q)
    columns = [np.zeros(6) for _ in range(robot.dof)]
    while index >= 0:  # only the joints between the base and the link move it
        body = robot.bodies[index]
        R_base_body, origin = bodies[index]
        axis = R_base_body @ body.axis
        velocity = axis if body.is_prismatic else cross(axis, p - origin)
        angular = np.zeros(3) if body.is_prismatic else axis
        columns[index] = np.concatenate([velocity, angular])
        index = body.parent
    return np.stack(columns, axis=1)


def _placed_link(robot: Robot, link: str, q: Array) -> tuple[Array, Array, int]:
    """Rotation (3, 3) and origin (3,) [m] of a link in the base, and the index of its body; -1 for the base's own."""
    index, T_body_link = robot.link_body(link)
    R_body_link, p_body_link = snap(T_body_link[:3, :3]), T_body_link[:3, 3]
    if index < 0:
        return R_body_link, p_body_link, index
    R, p = body_poses(robot, q)[index]
    return R @ R_body_link, p + R @ p_body_link, index
