"""Kinetic and potential energy, linear in the link parameters.

[GautierKhalil1990] eqs. (2), (3), (7), (8); [GautierKhalil1992] eqs. (4), (6) calls the row ``h``.
"""

from __future__ import annotations

import numpy as np

from dynid.dynamics.kinematics import body_poses, body_velocities
from dynid.robot.model import Robot
from dynid.spatial import Array, cross

__all__ = ["energy_rows", "kinetic_energy_row", "potential_energy_row"]


def kinetic_energy_row(robot: Robot, q: Array, dq: Array) -> Array:
    """Kinetic energy [J] per unit of each link parameter (10 n,), [GautierKhalil1990] eqs. (2), (7).

    Args:
        robot: Geometry.
        q: (n,) joint positions [rad or m].
        dq: (n,) joint velocities.
    """
    rows = []
    for w, v in body_velocities(robot, q, dq):
        x, y, z = w
        about = [0.5 * (x * x), x * y, x * z, 0.5 * (y * y), y * z, 0.5 * (z * z)]
        rows.append(np.concatenate([np.array(about), cross(v, w), np.array([0.5 * (v @ v)])]))
    return np.concatenate(rows)


def potential_energy_row(robot: Robot, q: Array) -> Array:
    """Potential energy [J] per unit of each link parameter (10 n,), zero at the origin of the root frame.

    [GautierKhalil1990] eqs. (3), (8); in the root frame it begins with (A12).
    """
    rows = []
    for R_base_body, p in body_poses(robot, q):
        first_moment = -(R_base_body.T @ robot.gravity)
        rows.append(np.concatenate([np.zeros(6), first_moment, np.array([-(robot.gravity @ p)])]))
    return np.concatenate(rows)


def energy_rows(robot: Robot, q: Array, dq: Array) -> Array:
    """Kinetic plus potential energy [J] per unit of each link parameter (10 n,)."""
    return kinetic_energy_row(robot, q, dq) + potential_energy_row(robot, q)  # [GautierKhalil1992] eqs. (4), (6)
