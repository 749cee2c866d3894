"""Linear maps of a body's ten inertial parameters: their change of frame, and the kinetic energy that they give.

The parameters are ``XX XY XZ YY YZ ZZ MX MY MZ M``. Base parameters and their derivations by symbols use these maps.
"""

from __future__ import annotations

import numpy as np

from dynid.array_types import Floats
from dynid.spatial import Array, skew

UPPER = np.triu_indices(3)
"""Row and column indices of XX, XY, XZ, YY, YZ, ZZ in an inertia tensor (3, 3)."""
_SYMMETRIC = np.zeros((6, 3, 3))
"""(6, 3, 3): the symmetric tensor in which one of XX XY XZ YY YZ ZZ is 1 and the others are 0."""
_SYMMETRIC[range(6), UPPER[0], UPPER[1]] = _SYMMETRIC[range(6), UPPER[1], UPPER[0]] = 1.0


def transport(R: Array, p: Array) -> Array:
    """Matrix (10, 10) from a body's parameters in its frame to those in a frame where it has pose R (3, 3), p (3,).

    With the first moment h turned into the new axes: ``J -> R J R' - [p x][h x] - [h x][p x] - m [p x]^2``,
    ``h -> h + m p``. The transpose of lambda in [GautierKhalil1990] eq. (A2), for any pose instead of a modified DH
    row. The entries of the pose may also be polynomials in symbols of the geometry.
    """
    P = skew(p)
    H = np.array([skew(axis) for axis in R.T])  # (3, 3, 3): [h x] for each unit first moment, turned by R
    S = np.zeros((10, 10), dtype=np.result_type(R, p))
    S[:6, :6] = (R @ _SYMMETRIC @ R.T)[:, *UPPER].T  # [GautierKhalil1990] eq. (A3); from (6, 3, 3)
    S[:6, 6:9] = -(P @ H + H @ P)[:, *UPPER].T  # [GautierKhalil1990] eq. (A4)
    S[:6, 9] = -(P @ P)[UPPER]  # [GautierKhalil1990] eq. (A5)
    S[6:9, 6:9] = R
    S[6:9, 9] = p
    S[9, 9] = 1.0
    return S


def kinetic_row(twist: Floats) -> Floats:
    """Kinetic energy [J] per unit of each inertial parameter (10,).

    Args:
        twist: (6,) angular velocity w [rad/s], then velocity v of the origin [m/s], body frame.
    """
    return 0.5 * mixed_kinetic_matrix(twist) @ twist


def mixed_kinetic_matrix(twist: Floats) -> Floats:
    """Matrix B (10, 6) of a twist (w, v): times a second twist (w', v') it is the mixed part of the energy row (10,).

    The kinetic energy of the sum of two twists is that of each, plus this part:
    ``w' . J w + h . (v x w' + v' x w) + m v . v'``.
    """
    x, y, z = twist[:3]
    tensor_rows = [
        [x, 0, 0],
        [y, x, 0],
        [z, 0, x],
        [0, y, 0],
        [0, z, y],
        [0, 0, z],
    ]  # ``[. w]`` of [Atkeson1986] eq. (8), transposed
    matrix = np.zeros((10, 6))
    matrix[:6, :3] = tensor_rows
    # the first moment is multiplied by v x w' + v' x w
    matrix[6:9, :3] = skew(twist[3:])
    matrix[6:9, 3:] = -skew(twist[:3])
    matrix[9, 3:] = twist[3:]
    return matrix
