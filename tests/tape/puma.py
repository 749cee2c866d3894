"""The PUMA 560's 6 x 60 regressor as a realistic workload: joint twists are carried forward into each link frame."""

from __future__ import annotations

from typing import Any

import numpy as np

ALPHA = (0, -90, 0, -90, 90, -90)
LENGTH = (0.0, 0.0, 0.4318, 0.0203, 0.0, 0.0)
OFFSET = (0.0, 0.0, 0.15005, 0.4318, 0.0, 0.0)
PANDA_ALPHA = (0, -90, 90, 90, -90, 90, 90)
PANDA_LENGTH = (0, 0, 0, 0.0825, -0.0825, 0, 0.088)
PANDA_OFFSET = (0.333, 0, 0.316, 0, 0.384, 0, 0)
SINE = {0: 0.0, 90: 1.0, -90: -1.0}
COSINE = {0: 1.0, 90: 0.0, -90: 0.0}


def _cross(a: Any, b: Any) -> Any:
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]], dtype=object)


def _dot(a: Any, b: Any) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _into_link(v: Any, alpha: int, c: Any, s: Any) -> Any:
    """Rotate a vector of the previous frame into the link's frame: Rz(theta)^T Rx(alpha)^T v."""
    y = COSINE[alpha] * v[1] + SINE[alpha] * v[2]
    z = COSINE[alpha] * v[2] - SINE[alpha] * v[1]
    return np.array([c * v[0] + s * y, c * y - s * v[0], z], dtype=object)


def _link_matrices(w: Any, dw: Any) -> tuple[Any, Any]:
    """The link's moment per inertia component (3 x 6), and omega-dot-hat + omega-hat^2 (3 x 3)."""
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    inertia = np.array(
        [
            [dw[0], dw[1] - xz, dw[2] + xy, -yz, yy - zz, yz],
            [xz, dw[0] + yz, zz - xx, dw[1], dw[2] - xy, -xz],
            [-xy, xx - yy, dw[0] - yz, xy, dw[1] + xz, dw[2]],
        ],
        dtype=object,
    )
    first = np.array(
        [
            [-(yy + zz), xy - dw[2], xz + dw[1]],
            [xy + dw[2], -(xx + zz), yz - dw[0]],
            [xz - dw[1], yz + dw[0], -(xx + yy)],
        ],
        dtype=object,
    )
    return inertia, first


def regressor(q: Any, dq: Any, ddq: Any, dh: Any = (ALPHA, LENGTH, OFFSET)) -> Any:
    """(n, 10 n) torque regressor, columns XX XY XZ YY YZ ZZ MX MY MZ M per link."""
    n = len(dh[0])
    table = np.zeros((n, 10 * n), dtype=np.result_type(q))
    w = dw = np.zeros(3)
    acceleration = np.array([0.0, 0.0, 9.81])
    first = np.zeros((3, 3))
    twists: list[tuple[Any, Any]] = []
    for j in range(n):
        alpha, a, d = (row[j] for row in dh)
        arm = np.array([a, -d * SINE[alpha], d * COSINE[alpha]])
        c, s = np.cos(q[j]), np.sin(q[j])
        acceleration = _into_link(acceleration + first @ arm, alpha, c, s)
        twists = [(z, moved + _cross(z, arm)) for z, moved in twists]
        twists = [(_into_link(z, alpha, c, s), _into_link(moved, alpha, c, s)) for z, moved in twists]
        twists.append((np.array([0.0, 0.0, 1.0]), np.zeros(3)))
        turned, dturned = _into_link(w, alpha, c, s), _into_link(dw, alpha, c, s)
        w = turned + np.array([0.0, 0.0, dq[j]], dtype=object)
        dw = dturned + np.array([turned[1] * dq[j], -turned[0] * dq[j], ddq[j]], dtype=object)
        inertia, first = _link_matrices(w, dw)
        for i, (z, moved) in enumerate(twists):
            lever = _cross(acceleration, z)  # z . (m x a) = m . (a x z)
            row = [_dot(z, inertia[:, k]) for k in range(6)]
            row += [_dot(moved, first[:, k]) + lever[k] for k in range(3)] + [_dot(moved, acceleration)]
            table[i, 10 * j : 10 * j + 10] = row
    return table


def panda(q: Any, dq: Any, ddq: Any) -> Any:
    """The Panda's (7, 70) regressor."""
    return regressor(q, dq, ddq, (PANDA_ALPHA, PANDA_LENGTH, PANDA_OFFSET))


def inverse_dynamics(q: Any, dq: Any, ddq: Any, theta: Any, dh: Any = (ALPHA, LENGTH, OFFSET)) -> Any:
    """(n,) torques by the Newton-Euler recursion; ``theta`` (n, 10) holds the parameters of each link."""
    n = len(dh[0])
    w = dw = np.zeros(3)
    first = np.zeros((3, 3))
    acceleration = np.array([0.0, 0.0, 9.81])
    wrenches = []
    for j in range(n):
        alpha, a, d = (row[j] for row in dh)
        arm = np.array([a, -d * SINE[alpha], d * COSINE[alpha]])
        c, s = np.cos(q[j]), np.sin(q[j])
        acceleration = _into_link(acceleration + first @ arm, alpha, c, s)
        turned, dturned = _into_link(w, alpha, c, s), _into_link(dw, alpha, c, s)
        w = turned + np.array([0.0, 0.0, dq[j]], dtype=object)
        dw = dturned + np.array([turned[1] * dq[j], -turned[0] * dq[j], ddq[j]], dtype=object)
        inertia, first = _link_matrices(w, dw)
        moment = theta[j][6:9]
        force = first @ moment + theta[j][9] * acceleration
        wrenches.append((force, inertia @ theta[j][:6] + _cross(moment, acceleration), arm, alpha, c, s))
    torque = np.empty(n, dtype=object)
    force = couple = np.zeros(3)
    for j in range(n - 1, -1, -1):
        own_force, own_couple, arm, alpha, c, s = wrenches[j]
        force, couple = force + own_force, couple + own_couple
        torque[j] = couple[2]
        force = _out_of_link(force, alpha, c, s)
        couple = _out_of_link(couple, alpha, c, s) + _cross(arm, force)
    return torque


def _out_of_link(v: Any, alpha: int, c: Any, s: Any) -> Any:
    """Rotate a vector of the link's frame into the previous frame."""
    x, y = c * v[0] - s * v[1], s * v[0] + c * v[1]
    sine, cosine = SINE[alpha], COSINE[alpha]
    return np.array([x, cosine * y - sine * v[2], sine * y + cosine * v[2]], dtype=object)
