"""Constraints on whole bodies, with gradients: walls that they stay behind, and distances that they keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Bools, Floats, Ints
from dynid.dynamics.kinematics import body_poses
from dynid.errors import ArgumentError
from dynid.excitation.base import Constraint, Differentiable, RecordedConstraint
from dynid.excitation.hulls import (
    Hull,
    Witness,
    hull_distances,
    random_positions,
    segment_distances,
    split_pairs,
)
from dynid.excitation.limits import MotionLimits, Workspace
from dynid.excitation.trajectory import Motion
from dynid.robot.model import Robot

_SCALE = 0.1
"""Distance [m] that counts as one unit of excess. Convention."""


def _pose_function(robot: Robot, links: Sequence[str]) -> Differentiable:
    """Poses of links (h, 3, 4) in the root frame, as a function of the joint positions."""
    frames = [robot.link_body(link) for link in links]

    def poses(q: Any) -> Any:
        bodies = [*body_poses(robot, q), (np.eye(3), np.zeros(3))]  # index -1 is the base
        found = []
        for body, T in frames:
            R, p = bodies[body]
            found.append(np.hstack([R @ T[:3, :3], (p + R @ T[:3, 3])[:, None]]))
        return np.array(found)

    return Differentiable(poses, robot.dof, "q")


@dataclass(frozen=True)
class _Walls(RecordedConstraint):
    """The corner of a body that is farthest beyond a wall decides."""

    hulls: tuple[Hull, ...]
    """(h) the bodies."""
    normals: Floats
    """(w, 3) unit vectors out of the allowed region, root frame."""
    offsets: Floats
    """(w,) distances of the walls from the root's origin along their normals [m]."""
    kept: Ints
    """(m,) the pairs of body and wall that are checked, as indices among all h w."""

    def _farthest(self, poses: Floats) -> tuple[Floats, Ints]:
        """How far each body reaches beyond each wall (N, h w) [m], and the corner that does."""
        reach, which = [], []
        for h, hull in enumerate(self.hulls):
            heights = (self.normals @ poses[:, h, :, :3]) @ hull.corners.T  # (N, w, k)
            which.append(heights.argmax(axis=2))
            reach.append(heights.max(axis=2) + hull.radius + poses[:, h, :, 3] @ self.normals.T - self.offsets)
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
            corner[:, :3] = self.hulls[h].corners[which[:, place]]
            force = cotangent[:, column, None] / self.scale[column] * self.normals[wall]
            whole[:, h] += force[:, :, None] * corner[:, None, :]
        return self.pull(motion, whole)


def wall_constraint(robot: Robot, workspace: Workspace, bodies: Sequence[Hull]) -> tuple[Constraint, tuple[str, ...]]:
    """The constraint that keeps the point of a workspace, or every moving body, behind all walls.

    A body that is beyond a wall in every one of 50 random positions of the joints is beyond it by build, for example
    the foot of the first link, which turns on the floor. Such pairs are not checked.

    Returns:
        The constraint, and a phrase for each pair of body and wall that is not checked.

    Raises:
        ArgumentError: No body is ever inside.
    """
    hulls = _moving_bodies(robot, bodies) if workspace.link is None else [workspace.tool]
    walls = workspace.half_spaces
    where = [f"link '{hull.link}': {wall.name}" for hull in hulls for wall in walls]
    name = "workspace" if workspace.link is not None else "floor or wall"

    def constraint(kept: Ints) -> Constraint:
        return _Walls(
            name, tuple(where[k] for k in kept), np.full(len(kept), _SCALE), ("m",) * len(kept), function,
            tuple(hulls), np.array([x.normal for x in walls]), np.array([x.offset for x in walls]), kept,
        )  # fmt: skip

    function = _pose_function(robot, [hull.link for hull in hulls])
    every = constraint(np.arange(len(where)))
    if workspace.link is not None:
        return every, ()
    q = random_positions(robot)
    inside = np.any(every.excess(Motion(q, 0.0 * q, 0.0 * q, 0.0 * q)) < 0.0, axis=0)
    if not inside.any():
        raise ArgumentError(
            f"the whole robot is beyond '{', '.join(x.name for x in walls)}' wherever its joints are",
            remedy="Give it in the frame of the base.",
        )
    beyond = tuple(f"{where[k]} (it stands beyond by build)" for k in np.flatnonzero(~inside))
    return constraint(np.flatnonzero(inside)), beyond


def _moving_bodies(robot: Robot, bodies: Sequence[Hull]) -> list[Hull]:
    """The hulls of moving links; where a body has none, the origins of its links."""
    hulls = [hull for hull in bodies if robot.link_body(hull.link)[0] >= 0]
    covered = {robot.link_body(hull.link)[0] for hull in hulls}
    bare = [body for index, body in enumerate(robot.bodies) if index not in covered]
    return hulls + [Hull(link=name, corners=np.zeros((1, 3))) for body in bare for name, _ in body.members]


@dataclass(frozen=True)
class _SelfCollision(RecordedConstraint):
    """Distances of bodies where the capsules about them are near; elsewhere those of the capsules, which are less."""

    hulls: tuple[Hull, ...]
    """(h) the bodies."""
    covers: Floats
    """(h, 2, 3) ends of the capsule about each body, link frame [m]."""
    radii: Floats
    """(h,) radii of these capsules [m]."""
    pairs: Ints
    """(m, 2) indices of the two bodies of each pair."""
    clearance: float
    """Smallest distance of two bodies [m]."""

    def excess(self, motion: Motion) -> Floats:
        poses = self.values(motion)
        distance = self._bounds(poses)
        self._measure(poses, distance, distance < self.clearance + _SCALE / 2)
        return (self.clearance - distance) / self.scale

    def closest(self, motion: Motion) -> Floats:
        """The largest excess (m,) of each pair, measured exactly even where bodies stay far from each other."""
        poses = self.values(motion)
        distance = self._bounds(poses)
        smallest = np.zeros_like(distance, dtype=bool)
        smallest[np.argmin(distance, axis=0), np.arange(len(self.pairs))] = True
        bound = distance.copy()
        self._measure(poses, distance, smallest)
        self._measure(poses, distance, ~smallest & (bound < np.where(smallest, distance, np.inf).min(axis=0)))
        return np.asarray((self.clearance - distance.min(axis=0)) / self.scale)

    def _bounds(self, poses: Floats) -> Floats:
        """Distances (N, m) of the capsules [m]."""
        ends = np.einsum("nhij,hkj->nhki", poses[..., :3], self.covers) + poses[:, :, None, :, 3]
        a, b = (ends[:, self.pairs[:, side]].reshape(-1, 2, 3) for side in (0, 1))
        near = segment_distances(a, b).distance.reshape(len(poses), -1)
        return np.asarray(near - self.radii[self.pairs].sum(axis=1))

    def _measure(self, poses: Floats, distance: Floats, where: Bools) -> None:
        """Replace the distances (N, m) by exact ones where ``where`` is true."""
        rows, columns = np.nonzero(where)
        if rows.size:
            distance[rows, columns] = self._witness(poses, rows, columns).distance

    def _witness(self, poses: Floats, rows: Ints, columns: Ints) -> Witness:
        pairs = self.pairs[columns]
        return hull_distances(self.hulls, pairs, poses[rows[:, None], pairs])

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        poses = np.array(self.values(motion))
        rows, columns = np.nonzero(cotangent)
        whole = np.zeros_like(poses)
        if rows.size:
            near = self._witness(poses, rows, columns)
            # the distance changes as if its points were fixed to the links: a pose feels force times place
            pull = -(cotangent[rows, columns] / self.scale[columns])[:, None] * near.direction
            for side, point, sign in ((0, near.first, 1.0), (1, near.second, -1.0)):
                links = self.pairs[columns, side]
                pose = poses[rows, links]
                place = np.ones((len(rows), 4))
                place[:, :3] = np.einsum("mij,mi->mj", pose[..., :3], point - pose[..., 3])
                np.add.at(whole, (rows, links), sign * pull[:, :, None] * place[:, None, :])
        return self.pull(motion, whole)


def collision_constraint(robot: Robot, limits: MotionLimits) -> tuple[Constraint | None, tuple[str, ...]]:
    """The constraint that keeps bodies apart, and a phrase for each pair of them that is near by build.

    Returns:
        The constraint, None where no pair can collide, and the phrases.
    """
    if limits.clearance is None:
        return None, ()
    hulls = limits.hulls
    pairs, near = split_pairs(robot, hulls, limits.clearance)
    names = dict.fromkeys(
        f"self-collision of {hulls[a].link} and {hulls[b].link} (nearer than the clearance by build)" for a, b in near
    )
    if not len(pairs):
        return None, tuple(names)
    covers = [hull.cover() for hull in hulls]
    constraint = _SelfCollision(
        "self-collision",
        tuple(f"links '{hulls[a].link}' and '{hulls[b].link}'" for a, b in pairs),
        np.full(len(pairs), _SCALE),
        ("m",) * len(pairs),
        _pose_function(robot, [hull.link for hull in hulls]),
        hulls,
        np.array([ends for ends, _ in covers]),
        np.array([radius for _, radius in covers]),
        pairs,
        limits.clearance,
    )
    return constraint, tuple(names)
