"""Linear maps of the ten inertial parameters: transport to another frame, and the kinetic energy they give."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.spatial import skew

__all__ = ["kinetic_row", "mixed_kinetic_row", "transport"]

Floats = NDArray[np.float64]

_UPPER = np.triu_indices(3)


def transport(R: Floats, p: Floats) -> Floats:
    """Matrix (10, 10) from a body's parameters in its frame to those in a frame where it has pose R (3, 3), p (3,).

    The transpose of lambda in [GautierKhalil1990] eq. (A2), for any pose.
    """
    S = np.zeros((10, 10))
    for k, (a, b) in enumerate(zip(*_UPPER, strict=True)):
        unit = np.zeros((3, 3))
        unit[a, b] = unit[b, a] = 1.0
        S[:6, k] = (R @ unit @ R.T)[_UPPER]
    for k in range(3):
        h = R[:, k]
        S[:6, 6 + k] = -(skew(p) @ skew(h) + skew(h) @ skew(p))[_UPPER]
    S[:6, 9] = -(skew(p) @ skew(p))[_UPPER]
    S[6:9, 6:9], S[6:9, 9], S[9, 9] = R, p, 1.0
    return S


def kinetic_row(w: Floats, v: Floats) -> Floats:
    """Kinetic energy per unit of the ten parameters (10,), for angular velocity w and origin velocity v, body frame."""
    x, y, z = w
    about = [0.5 * x * x, x * y, x * z, 0.5 * y * y, y * z, 0.5 * z * z]
    return np.concatenate([about, np.cross(v, w), [0.5 * (v @ v)]])


def mixed_kinetic_row(twist: Floats, other: Floats) -> Floats:
    """The part of the kinetic energy that is bilinear in two twists (w, v), each (6,); (10,)."""
    both = twist + other
    rows = [kinetic_row(t[:3], t[3:]) for t in (both, twist, other)]
    return rows[0] - rows[1] - rows[2]
