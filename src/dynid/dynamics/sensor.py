"""The wrench that a force and torque sensor measures of the body beyond it ([Atkeson1986] eqs. (1)-(8))."""

from __future__ import annotations

from dynid.dynamics.kinematics import body_motions, spin
from dynid.dynamics.wrench import body_wrench_regressor
from dynid.errors import ArgumentError
from dynid.robot.model import Robot
from dynid.spatial import Array, snap

__all__ = ["sensor_wrench_regressor"]


def sensor_wrench_regressor(robot: Robot, link: str, q: Array, dq: Array, ddq: Array) -> Array:
    """Wrench on a body held in the frame of a link, per unit of its ten parameters, (6, 10).

    Force [N], then moment about the link's origin [N m], in the link's axes: what the robot must exert to move the body
    against gravity and inertia.

    Args:
        robot: Geometry and gravity.
        link: The link that carries the sensor; it must move.
        q: (n,) joint positions [rad or m].
        dq: (n,) joint velocities.
        ddq: (n,) joint accelerations.
    """
    index, T_body_link = _carrier(robot, link)
    motion = body_motions(robot, q, dq, ddq)[index]
    R, p = snap(T_body_link[:3, :3]), T_body_link[:3, 3]
    w, dw = R.T @ motion.angular_velocity, R.T @ motion.angular_acceleration
    a = R.T @ (motion.acceleration + motion.spin @ p)
    return body_wrench_regressor(w, dw, a, spin(w, dw))  # [Atkeson1986] eq. (8)


def _carrier(robot: Robot, link: str) -> tuple[int, Array]:
    index, T_body_link = robot.link_body(link)
    if index < 0:
        raise ArgumentError(f"link '{link}' does not move", remedy="Name the link that carries the sensor or the load.")
    return index, T_body_link
