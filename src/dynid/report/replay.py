"""Section of the report that plays a motion in three dimensions, with the inertia ellipsoids of the bodies."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.decompositions import eigh
from dynid.dynamics.kinematics import body_poses
from dynid.processing.experiment import Experiment
from dynid.report.html_blocks import Block, Player, Text, pack
from dynid.report.page import Section
from dynid.report.sections.robot_shapes import LinkShape, link_shapes
from dynid.robot.model import Robot

__all__ = ["Replay", "play_motion"]

Floats = NDArray[np.float64]
FRAMES = 240
"""Poses that the player steps through; a convention that keeps the page small."""


@dataclass(frozen=True, slots=True, eq=False)
class Replay(Section):
    """A player of one run."""

    robot: Robot
    run: Experiment

    @property
    def title(self) -> str:
        """Heading."""
        return "Motion"

    def blocks(self) -> Sequence[Block]:
        """A canvas that plays the motion; drag to turn it."""
        return play_motion(self.robot, self.run.time, self.run.q)


def play_motion(robot: Robot, time: Floats, q: Floats) -> list[Block]:
    """Make a player of the positions q (N, n) [rad or m] at the times (N,) [s]."""
    rows = np.linspace(0, len(q) - 1, min(FRAMES, len(q))).astype(int)
    poses = [body_poses(robot, q[row]) for row in rows]
    points = np.array([[[0.0, 0.0, 0.0], *(p for _, p in pose)] for pose in poses])
    ellipsoids = np.array([[_ellipsoid(robot, j, *pose[j]) for j in range(robot.dof)] for pose in poses])
    reach = float(np.abs(points).max()) or 1.0
    data: dict[str, object] = {
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
    shapes = link_shapes(robot)
    if shapes:
        data |= {"poses": pack(_pose_table(poses)), "meshes": [_packed(shape) for shape in shapes]}
    hint = (
        f"{'The shapes are those of the robot file. ' if shapes else ''}The orange solid ellipsoids have the masses "
        "and inertias of the bodies. Drag or use the arrow keys to turn the view; press space to pause."
    )
    return [Text(hint, "hint"), Player("the robot's motion, with the inertia ellipsoids of its bodies", data)]


def _pose_table(poses: Sequence[Sequence[tuple[Floats, Floats]]]) -> Floats:
    """(frames, bodies + 1, 12) rotations and positions: the root, then every body."""
    root = np.append(np.eye(3).ravel(), np.zeros(3))
    return np.array([[root, *(np.append(R.ravel(), p) for R, p in pose)] for pose in poses])


def _packed(shape: LinkShape) -> dict[str, object]:
    """A shape as the script of the page reads it: corners as float32, indices as 16-bit numbers."""
    faces = base64.b64encode(shape.faces.astype("<u2").tobytes()).decode()
    return {"body": shape.body + 1, "corners": pack(shape.corners), "faces": faces}


def _ellipsoid(robot: Robot, j: int, R: Floats, p: Floats) -> Floats:
    """(12,) centre and three half axes of the solid ellipsoid with the body's inertia, in the root frame [m].

    A solid ellipsoid of mass m with half axes a, b, c has the moments m (b^2 + c^2) / 5 and so on, which gives
    a^2 = 5/2 (I_y + I_z - I_x) / m.
    """
    inertia = robot.bodies[j].inertia
    moments, axes = eigh(inertia.about_com)
    squares = 2.5 * (moments.sum() - 2.0 * moments) / max(inertia.mass, 1e-9)
    half = R @ (axes * np.sqrt(np.clip(squares, 0.0, None)))
    return np.concatenate([p + R @ inertia.com, half.T.ravel()])
