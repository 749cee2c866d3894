"""Force, moment and momentum of one rigid body, linear in its ten parameters, and the wrench at a wrist sensor.

Newton and Euler about the origin of the body frame, [Atkeson1986] eqs. (1)-(8): ``f = m a + spin h`` and
``n = J dw + w x J w + h x a``, with the acceleration a of the origin less gravity. The ten parameters are
``XX XY XZ YY YZ ZZ MX MY MZ M``: tensor J, first moment h and mass m about that origin. The rows of a wrench (6,) are
the force, then the moment about the same origin, both in the body frame.

The matrix ``spin = [dw x] + [w x]^2`` (3, 3) appears in most arguments: times a body-fixed vector it gives the second
derivative of that vector. Euler's equations need the same sums of products, such as ``spin[1, 0] = wx wy + dwz``, and
take them from it: recorded as a program, this saves operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynid.dynamics.kinematics import body_motions
from dynid.dynamics.kinematics import spin as spin_matrix
from dynid.errors import ArgumentError
from dynid.robot.model import Robot
from dynid.spatial import Array, cross, skew, snap


def tensor_times(v: Array) -> Array:
    """Matrix (3, 6) with ``tensor_times(v) @ (XX, XY, XZ, YY, YZ, ZZ) == J @ v`` (``[. v]``, [Atkeson1986] eq. (8))."""
    x, y, z = v
    return np.array([[x, y, z, 0.0, 0.0, 0.0], [0.0, x, 0.0, y, z, 0.0], [0.0, 0.0, x, 0.0, y, z]])


def _euler_columns(w: Array, dw: Array, spin: Array) -> Array:
    """Matrix (3, 6) that, times XX XY XZ YY YZ ZZ, is ``J dw + w x J w`` ([Lin1995] eqs. (26)-(28))."""
    square = w * w
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    return np.array(
        [
            [dw[0], -spin[2, 0], spin[1, 0], -yz, square[1] - square[2], yz],
            [xz, spin[2, 1], square[2] - square[0], dw[1], -spin[0, 1], -xz],
            [-xy, square[0] - square[1], -spin[1, 2], xy, spin[0, 2], dw[2]],
        ]
    )


def body_wrench_regressor(w: Array, dw: Array, a: Array, spin: Array) -> Array:
    """Wrench per unit of each parameter, (6, 10), [Atkeson1986] eq. (8).

    Args:
        w: (3,) angular velocity, body frame [rad/s].
        dw: (3,) angular acceleration [rad/s^2].
        a: (3,) acceleration of the origin minus gravity [m/s^2].
        spin: (3, 3) ``[dw x] + [w x]^2``.
    """
    force = np.hstack([np.zeros((3, 6)), spin, a[:, None]])  # [Atkeson1986] eq. (4)
    moment = np.hstack([_euler_columns(w, dw, spin), -skew(a), np.zeros((3, 1))])  # [Atkeson1986] eq. (7)
    return np.vstack([force, moment])


def body_wrench(theta: Array, w: Array, dw: Array, a: Array, spin: Array) -> tuple[Array, Array]:
    """Force [N] and moment about the origin [N m] of a body with parameters theta (10,), by Newton's and Euler's laws.

    The same as ``body_wrench_regressor(w, dw, a, spin) @ theta`` (see there for the other arguments), arranged so that
    the recorded program is short where parameters are known numbers.
    """
    h, m = theta[6:9], theta[9]
    force = a * m + spin @ h  # [Izaguirre1992] eq. (21)
    return force, euler_moment(theta[:6], w, dw, spin) + cross(h, a)  # the third term of [Izaguirre1992] eq. (24)


def euler_moment(
    tensor: Sequence[Any] | Array, w: Array, dw: Array, spin: Array, differences: Sequence[Any] | None = None
) -> Array:
    """``J dw + w x J w`` (3,) of a tensor XX XY XZ YY YZ ZZ ([Izaguirre1992] eq. (22), [Lin1995] eqs. (26)-(28)).

    Args:
        tensor: (6,) the tensor.
        w: (3,) angular velocity.
        dw: (3,) angular acceleration.
        spin: (3, 3) ``[dw x] + [w x]^2``.
        differences: ``ZZ - YY, XX - ZZ, YY - XX``; a caller gives them where they are known numbers although the
            moments of inertia are recorded variables. By default they are computed from the tensor.
    """
    xx, xy, xz, yy, yz, zz = tensor
    square = w * w  # differences of the diagonal of spin are the same, but would make the program compute the diagonal
    x, y, z = _principal_moment((xx, yy, zz), differences or (zz - yy, xx - zz, yy - xx), w, dw, spin)
    return np.array(
        [
            x - xy * spin[2, 0] + xz * spin[1, 0] + yz * (square[1] - square[2]),
            y + xy * spin[2, 1] + xz * (square[2] - square[0]) - yz * spin[0, 1],
            z + xy * (square[0] - square[1]) - xz * spin[1, 2] + yz * spin[0, 2],
        ]
    )


def _principal_moment(
    moments: tuple[Any, Any, Any], differences: Sequence[Any], w: Array, dw: Array, spin: Array
) -> tuple[Any, Any, Any]:
    """Components of ``J dw + w x J w`` for a diagonal tensor with the moments of inertia XX, YY, ZZ.

    For a body that is flat in z (``ZZ = XX + YY``) every factor is an entry of `spin`, which shortens the program.
    """
    xx, yy, zz = moments
    if all(isinstance(value, float) for value in (xx, yy, zz)) and zz == xx + yy:
        return xx * spin[2, 1], -(yy * spin[2, 0]), yy * spin[1, 0] - xx * spin[0, 1]
    return (
        xx * dw[0] + differences[0] * (w[1] * w[2]),
        yy * dw[1] + differences[1] * (w[0] * w[2]),
        zz * dw[2] + differences[2] * (w[0] * w[1]),
    )


def body_momentum_regressor(w: Array, v: Array) -> Array:
    """Momentum per unit of each parameter, (6, 10): linear, then angular about the origin.

    Args:
        w: (3,) angular velocity, body frame [rad/s].
        v: (3,) velocity of the origin, body frame [m/s].
    """
    linear = np.hstack([np.zeros((3, 6)), skew(w), v[:, None]])
    angular = np.hstack([tensor_times(w), -skew(v), np.zeros((3, 1))])
    return np.vstack([linear, angular])


def sensor_wrench_regressor(robot: Robot, link: str, q: Array, dq: Array, ddq: Array) -> Array:
    """Wrench on a load fixed to a link, per unit of the load's ten parameters in the link's frame, (6, 10).

    Force [N], then moment about the link's origin [N m], in the link's axes: what the robot must exert to move the load
    against gravity and inertia.

    Args:
        robot: Geometry and gravity.
        link: The link that carries the sensor; it must move.
        q: (n,) joint positions [rad or m].
        dq: (n,) joint velocities.
        ddq: (n,) joint accelerations.
    """
    index, T_body_link = robot.link_body(link)
    if index < 0:
        raise ArgumentError(f"link '{link}' does not move", remedy="Name the link that carries the sensor or the load.")
    motion = body_motions(robot, q, dq, ddq)[index]
    R = snap(T_body_link[:3, :3])  # exact zeros and ones keep recorded programs short
    w = R.T @ motion.angular_velocity
    dw = R.T @ motion.angular_acceleration
    a = R.T @ (motion.acceleration + motion.spin @ T_body_link[:3, 3])
    return body_wrench_regressor(w, dw, a, spin_matrix(w, dw))  # [Atkeson1986] eq. (8)
