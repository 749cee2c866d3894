"""The constraint that keeps the whole robot above its floor and between its walls, with gradients.

A body is the set of corners of its convex hull: the corner farthest beyond a wall decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.excitation.base import Constraint, RecordedConstraint
from dynid.excitation.collision.capsules import random_positions
from dynid.excitation.collision.self_collision import pose_function
from dynid.excitation.limits import Cell
from dynid.excitation.trajectories.trajectory import Motion
from dynid.robot.model import Robot

_SCALE = 0.1
"""Distance [m] that counts as one unit of excess. Convention."""
_TOUCH = 1e-9
"""Relative distance inside a wall from which on a body is inside it. Convention."""


@dataclass(frozen=True)
class _CellConstraint(RecordedConstraint):
    corners: tuple[Floats, ...]
    """(h) corners (k, 3) of each body, link frame [m]."""
    normals: Floats
    """(w, 3) unit vectors out of the allowed region, root frame."""
    offsets: Floats
    """(w,) distances of the walls from the root's origin along their normals [m]."""
    kept: NDArray[np.int64]
    """(m,) the pairs of body and wall that are checked, as indices among all h w."""

    def _farthest(self, poses: Floats) -> tuple[Floats, NDArray[np.int64]]:
        """How far each body reaches beyond each wall (N, h w) [m], and the corner that does."""
        reach, which = [], []
        for h, corners in enumerate(self.corners):
            heights = (self.normals @ poses[:, h, :, :3]) @ corners.T  # (N, w, k)
            which.append(heights.argmax(axis=2))
            reach.append(heights.max(axis=2) + poses[:, h, :, 3] @ self.normals.T - self.offsets)
        return np.hstack(reach), np.hstack(which)

    def excess(self, motion: Motion) -> Floats:
        return np.asarray(self._farthest(self.values(motion))[0][:, self.kept] / self.scale)

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        poses = self.values(motion)
        _, which = self._farthest(poses)
        whole = np.zeros_like(poses)
        for column, place in enumerate(self.kept):
            h, wall = divmod(int(place), len(self.offsets))
            corner = np.ones((len(poses), 4))
            corner[:, :3] = self.corners[h][which[:, place]]
            force = cotangent[:, column, None] / self.scale[column] * self.normals[wall]
            whole[:, h] += force[:, :, None] * corner[:, None, :]
        return self.pull(motion, whole)


def cell_constraint(robot: Robot, cell: Cell) -> Constraint:
    """The constraint that keeps every moving body inside the cell.

    A body that is beyond a wall in every one of 50 random positions of the joints is beyond it by build, for example
    the foot of the first link, which turns on the floor. Such pairs are not checked.

    Raises:
        ArgumentError: No body is ever inside.
    """
    every = _all_pairs(robot, cell)
    kept = np.flatnonzero(_is_inside(robot, every))
    if not len(kept):
        names = ", ".join(x.name for x in cell.half_spaces)
        raise ArgumentError(
            f"the whole robot is beyond '{names}' wherever its joints are", remedy="Give it in the frame of the base."
        )
    where, units = tuple(every.where[k] for k in kept), ("m",) * len(kept)
    return replace(every, where=where, scale=every.scale[kept], units=units, kept=kept)


def find_always_beyond(robot: Robot, cell: Cell) -> tuple[str, ...]:
    """Links and walls, one phrase each, where the link is beyond the wall in every position: they are not checked."""
    every = _all_pairs(robot, cell)
    return tuple(every.where[k] for k in np.flatnonzero(~_is_inside(robot, every)))


def _all_pairs(robot: Robot, cell: Cell) -> _CellConstraint:
    """All pairs of body and wall."""
    bodies = _bodies(robot, cell)
    links = [link for link, _ in bodies]
    where = tuple(f"link '{link}': {wall.name}" for link in links for wall in cell.half_spaces)
    return _CellConstraint(
        "floor or wall",
        where,
        np.full(len(where), _SCALE),
        ("m",) * len(where),
        pose_function(robot, links),
        tuple(corners for _, corners in bodies),
        np.array([x.normal for x in cell.half_spaces]),
        np.array([x.offset for x in cell.half_spaces]),
        np.arange(len(where)),
    )


def _is_inside(robot: Robot, every: _CellConstraint) -> NDArray[np.bool_]:
    """Whether the body of each pair (m,) of body and wall is inside in any of the random positions."""
    q = random_positions(robot)
    zero = np.zeros_like(q)
    inside: NDArray[np.bool_] = np.any(every.excess(Motion(q, zero, zero, zero)) < -_TOUCH, axis=0)
    return inside


def _bodies(robot: Robot, cell: Cell) -> list[tuple[str, Floats]]:
    """Moving links with corners (k, 3) in their frames [m]: those of their hulls, or their origins without a hull."""
    hulls = [(hull.link, hull.corners) for hull in cell.hulls if robot.link_body(hull.link)[0] >= 0]
    covered = {robot.link_body(link)[0] for link, _ in hulls}
    bare = [body for index, body in enumerate(robot.bodies) if index not in covered]
    return hulls + [(name, np.zeros((1, 3))) for body in bare for name, _ in body.members]
