"""Helpers with which the published tables of the zoo are written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.robot.inertia import Inertia
from dynid.robot.parts import JointLimits
from dynid.spatial import transform


def body(mass: float, com: ArrayLike, moments: Sequence[float]) -> Inertia:
    """A link from its mass [kg], centre of mass (3,) [m] and inertia about that [kg m^2].

    Args:
        mass: [kg]
        com: (3,) centre of mass in the link frame [m].
        moments: xx, yy, zz or xx, xy, xz, yy, yz, zz about the centre of mass, link axes [kg m^2].
    """
    xx, xy, xz, yy, yz, zz = moments if len(moments) == 6 else (moments[0], 0, 0, moments[1], 0, moments[2])
    return Inertia.from_com(mass, com, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=float))


def joint_limits(
    ranges: Sequence[float | tuple[float, float]],
    velocities: Sequence[float],
    efforts: Sequence[float],
    *,
    degrees: bool = False,
) -> list[JointLimits]:
    """Limits of every joint.

    Args:
        ranges: (lower, upper) [rad or m] of each joint, or one number for a symmetric range.
        velocities: [rad/s or m/s]
        efforts: [N m or N]
        degrees: Whether ranges and velocities are in degrees.
    """
    unit = np.pi / 180 if degrees else 1.0
    bounds = [r if isinstance(r, tuple) else (-r, r) for r in ranges]
    return [
        JointLimits(lower=unit * low, upper=unit * high, velocity=unit * velocity, effort=effort)
        for (low, high), velocity, effort in zip(bounds, velocities, efforts, strict=True)
    ]


def shift(x: float, y: float, z: float) -> Floats:
    """Pose (4, 4) of a parallel frame at (x, y, z) [m]."""
    return transform(np.eye(3), np.array([x, y, z], dtype=float))
