"""Vectors, rotations and rigid transforms on plain arrays; everything that knows geometry calls these functions.

The functions that take `Array` work on floats and on the symbolic numbers (recorded scalars) with which `dynid.tape`
records the equations of a robot as a program, because they only add, multiply and call ``np.cos`` and ``np.sin``. Exact
zeros and ones stay exact, so that products with them vanish from the recorded program.

A rotation ``R_a_b`` turns coordinates in frame b into coordinates in frame a; a transform ``T_a_b`` (4, 4) does the
same to points, so that names cancel: ``T_a_c = T_a_b @ T_b_c``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.array_types import Floats

Array = NDArray[Any]
"""An array of floats or of recorded scalars."""
ROUNDING = 1e-14
"""Largest distance of an entry of a rotation from -1, 0 or 1 that counts as rounding (convention: some tens of machine
precisions)."""
EXACT = 1e-12
"""Relative difference that counts as rounding of a chain of sums and products (convention)."""
SAME = 1e-9
"""Difference in an angle [rad], a length [m] or a ratio up to which two geometries count as the same, for example one
and its copy that was written to a file and read (convention: far above rounding, far below what anybody measures)."""
SIX_DIGITS = 1e-6
"""Relative difference up to which two numbers count as the same where one was rounded by a file of six digits, or by
the computations of another machine (convention)."""
TINY = 1e-300
"""Least denominator, which stands for zero where a quotient must stay finite (near the smallest double)."""


def skew(v: Array) -> Array:
    """Matrix of the cross product, ``skew(v) @ x == v x x`` (3, 3)."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def cross(a: Array, b: Array) -> Array:
    """Cross product of two (3,) vectors."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def across(axis: Floats) -> Floats:
    """Make a unit vector (3,) at right angles to an axis (3,): the coordinate axis least parallel to it, projected."""
    z = axis / np.linalg.norm(axis)
    x = np.eye(3)[np.argmin(np.abs(z))]
    x = x - z * (z @ x)
    return np.asarray(x / np.linalg.norm(x))


def turn_about(axis: Array, cosine: Any, sine: Any) -> Array:
    """Rotation (3, 3) by an angle with this cosine and sine about a constant unit axis (3,), by Rodrigues' formula.

    ``R = cos I + sin [axis x] + (1 - cos) axis axis'``. For a coordinate axis the result keeps exact zeros and ones.
    """
    x, y, z = (float(a) for a in axis)
    versine = 1.0 - cosine if 1.0 not in (abs(x), abs(y), abs(z)) else 0.0  # its products vanish for such an axis
    # an entry of the axis that is 1 or -1 makes its diagonal entry exactly 1
    diagonal = [cosine + versine * (a * a) if abs(a) != 1.0 else 1.0 for a in (x, y, z)]
    xy, xz, yz = versine * (x * y), versine * (x * z), versine * (y * z)
    return np.array(
        [
            [diagonal[0], xy - sine * z, xz + sine * y],
            [xy + sine * z, diagonal[1], yz - sine * x],
            [xz - sine * y, yz + sine * x, diagonal[2]],
        ]
    )


def rotation_about(axis: ArrayLike, angle: Any) -> Array:
    """Rotation (3, 3) by ``angle`` [rad] about a constant unit axis."""
    return turn_about(np.asarray(axis, dtype=float), np.cos(angle), np.sin(angle))


def rotation_from_rpy(rpy: ArrayLike) -> Floats:
    """Rotation (3, 3) from fixed-axis roll, pitch, yaw [rad]: ``Rz(yaw) Ry(pitch) Rx(roll)`` (URDF, REP-103)."""
    roll, pitch, yaw = np.asarray(rpy, dtype=float)
    x, y, z = np.eye(3)
    return np.asarray(rotation_about(z, yaw) @ rotation_about(y, pitch) @ rotation_about(x, roll), dtype=float)


def rpy_from_rotation(R: Floats) -> Floats:
    """Fixed-axis roll, pitch, yaw (3,) [rad] of a rotation (3, 3), the inverse of `rotation_from_rpy`.

    Near gimbal lock the split between roll and yaw is arbitrary.
    """
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    # roll from Rz(-yaw) R = Ry Rx, whose middle row is (0, cos roll, -sin roll): exact also where cos(pitch) vanishes
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])


def rotation_from_quaternion(wxyz: ArrayLike) -> Floats:
    """Rotation (3, 3) from a quaternion (4,) in the order w, x, y, z, which is normalised here."""
    q = np.asarray(wxyz, dtype=float)
    w = q[0] / np.linalg.norm(q)
    v = q[1:] / np.linalg.norm(q)
    return np.asarray(np.eye(3) + 2.0 * w * skew(v) + 2.0 * skew(v) @ skew(v), dtype=float)  # Rodrigues


def transform(R: Array, p: Array) -> Array:
    """Homogeneous transform (4, 4) from a rotation (3, 3) and a translation (3,) [m]."""
    T = np.eye(4)
    T[:3, :3] = R
    T[:3, 3] = p
    return T


def inverse_transform(T: Array) -> Array:
    """Inverse of a rigid transform (4, 4)."""
    R = T[:3, :3]
    return transform(R.T, -R.T @ T[:3, 3])


def snap(values: ArrayLike) -> Floats:
    """Replace entries within rounding of -1, 0 or 1 by exactly that number."""
    array = np.array(values, dtype=float)
    for exact in (-1.0, 0.0, 1.0):
        array[np.abs(array - exact) <= ROUNDING] = exact
    return array
