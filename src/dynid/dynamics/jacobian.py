"""Forward kinematics and geometric Jacobian of a link, for numbers or recorded scalars; `dynid.compiled` compiles them.

The Jacobian's first three rows are the velocity of the link's origin, the last three its angular velocity. A wrench has
the same order (force, then moment), so that ``J^T wrench`` are the joint torques with which the link exerts that wrench
on what it touches or holds.
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
    R, p = _link_pose(robot, link, body_poses(robot, q))
    pose = np.zeros((4, 4), dtype=np.asarray(R @ p).dtype)  # floats, or objects where q holds recorded scalars
    pose[:3, :3] = R
    pose[:3, 3] = p
    pose[3, 3] = 1.0
    return pose


def geometric_jacobian(robot: Robot, link: str, q: Array) -> Array:
    """Matrix J (6, n): ``J dq`` is the velocity of a link's origin [m/s], then the link's angular velocity [rad/s].

    Both are expressed in the axes of the base.

    Args:
        robot: The robot.
        link: Name of the link.
        q: (n,) joint positions [rad or m].
    """
    poses = body_poses(robot, q)
    _, p = _link_pose(robot, link, poses)
    columns = [np.zeros(6) for _ in range(robot.dof)]
    # Every moving joint carries one body, of the same index. Only the joints between the base and the link move the
    # link: from its body back to the base, each joint fills its column.
    index, _ = robot.link_body(link)
    while index >= 0:
        body = robot.bodies[index]
        R_base_body, origin = poses[index]
        axis = R_base_body @ body.axis
        velocity = axis if body.is_prismatic else cross(axis, p - origin)
        angular = np.zeros(3) if body.is_prismatic else axis
        columns[index] = np.concatenate([velocity, angular])
        index = body.parent
    return np.stack(columns, axis=1)


def _link_pose(robot: Robot, link: str, poses: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Rotation (3, 3) and origin (3,) [m] of a link in the base, from the poses of all bodies (`body_poses`)."""
    index, T_body_link = robot.link_body(link)
    R_body_link = snap(T_body_link[:3, :3])  # exact zeros and ones keep recorded programs short
    p_body_link = T_body_link[:3, 3]
    if index < 0:  # the link is fixed to the base
        return R_body_link, p_body_link
    R, p = poses[index]
    return R @ R_body_link, p + R @ p_body_link
