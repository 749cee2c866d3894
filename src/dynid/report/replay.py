"""Chapter of the report that plays a motion in three dimensions, with the inertia ellipsoids of the bodies."""

from __future__ import annotations

import numpy as np

from dynid.array_types import Floats
from dynid.decompositions import eigh
from dynid.dynamics.kinematics import body_poses
from dynid.report.html_blocks import Player, Text, pack
from dynid.report.page import Chapter
from dynid.robot.model import Robot

FRAMES = 240
"""Largest number of poses that the player steps through (convention: it keeps the page small)."""


def play_motion(robot: Robot, time: Floats, q: Floats) -> Chapter:
    """Make the chapter that plays the positions q (N, n) [rad or m] at the times (N,) [s]."""
    rows = np.linspace(0, len(q) - 1, min(FRAMES, len(q))).astype(int)
    rotations, origins = _poses(robot, q[rows])
    points = np.concatenate([np.zeros((len(rows), 1, 3)), origins], axis=1)  # the root first
    ellipsoids = _ellipsoids(robot, rotations, origins)
    reach = float(np.abs(points).max()) or 1.0
    data = {  # read by report.js
        "points": pack(points),
        "ellipsoids": pack(ellipsoids),
        "nodes": points.shape[1],
        "bodies": robot.dof,
        "frames": len(rows),
        "edges": [[body.parent + 1, j + 1] for j, body in enumerate(robot.bodies)],
        "reach": reach,
        "middle": float(points[..., 2].mean()),
        "step": float((time[rows[-1]] - time[rows[0]]) / max(1, len(rows) - 1)),
    }
    hint = (
        "Each orange ellipsoid is a solid body with the mass, the centre of mass and the inertia of its link: one that "
        "reaches far beyond its link shows an inertia that no such link has. Drag or use the arrow keys to turn the "
        "view; press space to pause."
    )
    player = Player("the robot's motion, with the inertia ellipsoids of its bodies", data)
    return Chapter("Motion", (Text(hint, "hint"), player))


def body_points(robot: Robot, q: Floats) -> Floats:
    """Compute the origins (N, n + 1, 3) of the root and of all bodies in the root frame [m] at positions (N, n)."""
    return np.concatenate([np.zeros((len(q), 1, 3)), _poses(robot, q)[1]], axis=1)


def _poses(robot: Robot, q: Floats) -> tuple[Floats, Floats]:
    """Compute rotations (N, n, 3, 3) and origins (N, n, 3) [m] of all bodies in the root frame at positions (N, n)."""
    frames = [body_poses(robot, row) for row in q]
    return np.array([[R for R, _ in frame] for frame in frames]), np.array([[p for _, p in frame] for frame in frames])


def _ellipsoids(robot: Robot, rotations: Floats, origins: Floats) -> Floats:
    """Compute the solid ellipsoids that have the inertias of the bodies.

    A solid ellipsoid of mass m with half axes a, b, c has the moments m (b^2 + c^2) / 5 and so on, which gives
    a^2 = 5/2 (I_y + I_z - I_x) / m.

    Args:
        robot: The robot.
        rotations: (N, n, 3, 3) of all bodies in the root frame.
        origins: (N, n, 3) of all bodies in the root frame [m].

    Returns:
        (N, n, 12) centre and three half axes of each ellipsoid in the root frame [m].
    """
    inertias = [body.inertia for body in robot.bodies]
    moments, axes = eigh(np.array([inertia.about_com for inertia in inertias]))
    mass = np.maximum([inertia.mass for inertia in inertias], 1e-9)  # bodies without mass are not divided by zero
    squares = 2.5 * (moments.sum(axis=1, keepdims=True) - 2.0 * moments) / mass[:, None]
    half_axes = rotations @ (axes * np.sqrt(np.clip(squares, 0.0, None))[:, None])
    centres = np.array([inertia.com for inertia in inertias])
    middle = origins + (rotations @ centres[:, :, None])[..., 0]
    return np.concatenate([middle, half_axes.swapaxes(2, 3).reshape(*origins.shape[:2], 9)], axis=2)
