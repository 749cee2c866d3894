"""The motion in three dimensions, with the inertia ellipsoids of the bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.kinematics import body_poses
from dynid.processing.experiment import Experiment
from dynid.report.html_blocks import Block, Player, Text, packed
from dynid.report.page import Section
from dynid.robot.model import Robot

__all__ = ["Replay", "played"]

Floats = NDArray[np.float64]
FRAMES = 240


@dataclass(frozen=True, slots=True, eq=False)
class Replay(Section):
    """A small player of one run."""

    robot: Robot
    run: Experiment

    @property
    def title(self) -> str:
        """Heading."""
        return "Motion"

    def blocks(self) -> Sequence[Block]:
        """A canvas that plays the motion; drag to turn it."""
        return played(self.robot, self.run.time, self.run.q)


def played(robot: Robot, time: Floats, q: Floats) -> list[Block]:
    """A player of the positions q (N, n) at times (N,) [s]."""
    rows = np.linspace(0, len(q) - 1, min(FRAMES, len(q))).astype(int)
    poses = [body_poses(robot, q[row]) for row in rows]
    points = np.array([[[0.0, 0.0, 0.0], *(p for _, p in pose)] for pose in poses])
    ellipsoids = np.array([[_ellipsoid(robot, j, *pose[j]) for j in range(robot.dof)] for pose in poses])
    reach = float(np.abs(points).max()) or 1.0
    data = {
        "points": packed(points),
        "ellipsoids": packed(ellipsoids),
        "nodes": points.shape[1],
        "bodies": robot.dof,
        "frames": len(rows),
        "edges": [[body.parent + 1, j + 1] for j, body in enumerate(robot.bodies)],
        "reach": reach,
        "middle": float(points[..., 2].mean()),
        "step": float((time[rows[-1]] - time[rows[0]]) / max(1, len(rows) - 1)),
    }
    hint = "Orange: solid ellipsoids with the bodies' mass and inertia. Drag or arrow keys to turn, space to pause."
    return [Text(hint, "hint"), Player("the robot's motion, with the inertia ellipsoids of its bodies", data)]


def _ellipsoid(robot: Robot, j: int, R: Floats, p: Floats) -> Floats:
    """(12,) centre and three half axes of the solid ellipsoid with the body's inertia, in the root frame [m]."""
    inertia = robot.bodies[j].inertia
    moments, axes = np.linalg.eigh(inertia.about_com)
    squares = 2.5 * (moments.sum() - 2.0 * moments) / max(inertia.mass, 1e-9)
    half = R @ (axes * np.sqrt(np.clip(squares, 0.0, None)))
    return np.concatenate([p + R @ inertia.com, half.T.ravel()])
