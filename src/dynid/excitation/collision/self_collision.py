"""The constraints that keep the robot from colliding with itself: distances of capsules and hulls, with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.dynamics.kinematics import body_poses
from dynid.excitation.base import Constraint, Differentiable, RecordedConstraint
from dynid.excitation.collision.capsules import Closest, closest_points, collision_pairs
from dynid.excitation.collision.hull_distance import Witness, hull_distances
from dynid.excitation.collision.hulls import hull_capsules, hull_pairs
from dynid.excitation.limits import MotionLimits
from dynid.excitation.trajectories.trajectory import Motion
from dynid.robot.model import Robot

_SCALE = 0.1
"""Distance [m] that counts as one unit of excess. Convention."""
_NEAR = 0.05
"""Distance beyond the clearance [m] up to which hulls are measured exactly: farther away no limit acts. Convention."""


def self_collision(robot: Robot, limits: MotionLimits) -> list[Constraint]:
    """Constraints of the capsules and of the hulls, for the pairs of them that can collide."""
    found: list[Constraint] = []
    if pairs := collision_pairs(robot, limits.capsules, limits.clearance):
        found.append(_capsule_constraint(robot, limits, pairs))
    if pairs := hull_pairs(robot, limits.hulls, limits.clearance):
        found.append(_hull_constraint(robot, limits, pairs))
    return found


@dataclass(frozen=True)
class _CapsuleCollision(RecordedConstraint):
    pairs: tuple[tuple[int, int], ...]
    """(m) indices of the two capsules of each pair."""
    required: Floats
    """(m,) smallest distance of the segments of each pair: radii and clearance [m]."""

    def _closest(self, ends: Floats) -> list[Closest]:
        return [closest_points(ends[:, a, 0], ends[:, a, 1], ends[:, b, 0], ends[:, b, 1]) for a, b in self.pairs]

    def excess(self, motion: Motion) -> Floats:
        distance = np.stack([near.distance for near in self._closest(self.values(motion))], axis=1)
        return (self.required - distance) / self.scale

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        ends = self.values(motion)
        whole = np.zeros_like(ends)
        for k, ((a, b), near) in enumerate(zip(self.pairs, self._closest(ends), strict=True)):
            # where the closest points move along the segments the distance does not change: only the ends matter
            pull = -(cotangent[:, k] / self.scale[k])[:, None] * near.direction
            for capsule, place, sign in ((a, near.first, 1.0), (b, near.second, -1.0)):
                whole[:, capsule, 0] += sign * (1.0 - place)[:, None] * pull
                whole[:, capsule, 1] += sign * place[:, None] * pull
        return self.pull(motion, whole)


def _capsule_constraint(robot: Robot, limits: MotionLimits, pairs: tuple[tuple[int, int], ...]) -> Constraint:
    used = sorted({index for pair in pairs for index in pair})
    capsules = [limits.capsules[index] for index in used]

    def ends(q: Any) -> Any:
        poses = [*body_poses(robot, q), (np.eye(3), np.zeros(3))]  # index -1 is the base
        rows = []
        for capsule in capsules:
            body, T = robot.link_body(capsule.link)
            R, p = poses[body]
            rows.append([p + R @ (T[:3, :3] @ x + T[:3, 3]) for x in (capsule.start, capsule.end)])
        return np.array(rows)

    local = tuple((used.index(a), used.index(b)) for a, b in pairs)
    where = tuple(f"links '{limits.capsules[a].link}' and '{limits.capsules[b].link}'" for a, b in pairs)
    required = np.array([limits.capsules[a].radius + limits.capsules[b].radius + limits.clearance for a, b in pairs])
    scale = np.full(len(pairs), _SCALE)
    function = Differentiable(ends, robot.dof, "q")
    return _CapsuleCollision("self-collision", where, scale, ("m",) * len(pairs), function, local, required)


@dataclass(frozen=True)
class _HullCollision(RecordedConstraint):
    """Distances of hulls where their bounding capsules are near; elsewhere those of the capsules, which are smaller."""

    hulls: tuple[Floats, ...]
    """(h) corners (k, 3) of the hulls in their link frames [m]."""
    bounds: Floats
    """(h, 2, 3) ends of each hull's bounding capsule, link frame [m]."""
    radii: Floats
    """(h,) radii of the bounding capsules [m]."""
    pairs: NDArray[np.int64]
    """(m, 2) indices of the two hulls of each pair."""
    clearance: float
    """Smallest distance of two hulls [m]."""

    def excess(self, motion: Motion) -> Floats:
        poses = self.values(motion)
        distance = self._bounds(poses)
        self._measure(poses, distance, distance < self.clearance + _NEAR)
        return (self.clearance - distance) / self.scale

    def closest(self, motion: Motion) -> Floats:
        """The largest excess (m,) of each pair, measured by hulls even where they stay far from each other."""
        poses = self.values(motion)
        distance = self._bounds(poses)
        smallest = np.zeros_like(distance, dtype=bool)
        smallest[np.argmin(distance, axis=0), np.arange(len(self.pairs))] = True
        bound = distance.copy()
        self._measure(poses, distance, smallest)
        self._measure(poses, distance, ~smallest & (bound < np.where(smallest, distance, np.inf).min(axis=0)))
        return np.asarray((self.clearance - distance.min(axis=0)) / self.scale)

    def _bounds(self, poses: Floats) -> Floats:
        """Distances (N, m) of the bounding capsules [m]."""
        ends = np.einsum("nhij,hkj->nhki", poses[..., :3], self.bounds) + poses[:, :, None, :, 3]
        a, b = (ends[:, self.pairs[:, side]].reshape(-1, 2, 3) for side in (0, 1))
        near = closest_points(a[:, 0], a[:, 1], b[:, 0], b[:, 1]).distance.reshape(len(poses), -1)
        return np.asarray(near - self.radii[self.pairs].sum(axis=1))

    def _measure(self, poses: Floats, distance: Floats, where: NDArray[np.bool_]) -> None:
        """Replace the distances (N, m) by exact ones where ``where`` is true."""
        rows, columns = np.nonzero(where)
        if rows.size:
            distance[rows, columns] = self._witness(poses, rows, columns).distance

    def _witness(self, poses: Floats, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Witness:
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


def pose_function(robot: Robot, links: Sequence[str]) -> Differentiable:
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


def _hull_constraint(robot: Robot, limits: MotionLimits, pairs: tuple[tuple[int, int], ...]) -> Constraint:
    used = sorted({index for pair in pairs for index in pair})
    hulls = [limits.hulls[index] for index in used]
    capsules = [hull_capsules(hull.link, hull.corners, 1)[0] for hull in hulls]
    return _HullCollision(
        "self-collision",
        tuple(f"hulls of links '{limits.hulls[a].link}' and '{limits.hulls[b].link}'" for a, b in pairs),
        np.full(len(pairs), _SCALE),
        ("m",) * len(pairs),
        pose_function(robot, [hull.link for hull in hulls]),
        tuple(hull.corners for hull in hulls),
        np.array([[capsule.start, capsule.end] for capsule in capsules]),
        np.array([capsule.radius for capsule in capsules]),
        np.array([[used.index(index) for index in pair] for pair in pairs]),
        limits.clearance,
    )
