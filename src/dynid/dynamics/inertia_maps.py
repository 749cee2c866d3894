"""Linear maps of the ten inertial parameters: transport to another frame, and the kinetic energy they give."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Floats
from dynid.spatial import Array, skew

UPPER = np.triu_indices(3)
"""Places of XX, XY, XZ, YY, YZ, ZZ in a tensor."""
_CROSS = np.array([skew(unit) for unit in np.eye(3)])
"""(3, 3, 3): the cross-product matrix of each coordinate axis."""
_SYMMETRIC = np.zeros((6, 3, 3))
"""(6, 3, 3): the tensor that each of XX XY XZ YY YZ ZZ stands for."""
_SYMMETRIC[range(6), UPPER[0], UPPER[1]] = _SYMMETRIC[range(6), UPPER[1], UPPER[0]] = 1.0


def transport(R: Array, p: Array) -> Array:
    """Matrix (10, 10) from a body's parameters in its frame to those in a frame where it has pose R (3, 3), p (3,).

    The transpose of lambda in [GautierKhalil1990] eq. (A2), for any pose instead of a modified DH row; the pose may be
    numbers or polynomials in geometric symbols.
    """
    P = skew(p)
    H = np.tensordot(R.T, _CROSS, axes=1)  # [h x] of the turned unit first moments
    S = np.zeros((10, 10), dtype=np.result_type(R, p))
    S[:6, :6] = (R @ _SYMMETRIC @ R.T)[:, *UPPER].T  # [GautierKhalil1990] eq. (A3)
    S[:6, 6:9] = -(P @ H + H @ P)[:, *UPPER].T  # [GautierKhalil1990] eq. (A4)
    S[:6, 9] = -(P @ P)[UPPER]  # [GautierKhalil1990] eq. (A5)
    S[6:9, 6:9], S[6:9, 9], S[9, 9] = R, p, 1.0
    return S


def kinetic_row(twist: Floats) -> Floats:
    """Kinetic energy per unit of the ten parameters (10,), for a twist (w, v) of the body's origin, body frame."""
    return 0.5 * mixed_kinetic_matrix(twist) @ twist


def mixed_kinetic_matrix(twist: Floats) -> Floats:
    """Matrix (10, 6): times a second twist it is the part of the energy row that is bilinear in both twists."""
    x, y, z = twist[:3]
    about = [
        [x, 0, 0],
        [y, x, 0],
        [z, 0, x],
        [0, y, 0],
        [0, z, y],
        [0, 0, z],
    ]  # ``[. w]`` of [Atkeson1986] eq. (8), transposed
    W, V = skew(twist[:3]), skew(twist[3:])
    matrix = np.zeros((10, 6))
    matrix[:6, :3] = about
    matrix[6:9, :3], matrix[6:9, 3:] = V, -W  # v x w' + v' x w
    matrix[9, 3:] = twist[3:]
    return matrix
