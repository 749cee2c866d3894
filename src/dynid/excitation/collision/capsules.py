"""Capsules: cheap bodies for self-collision, with exact distances and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dynid.arrays import Floats
from dynid.dynamics.kinematics import link_poses
from dynid.errors import ArgumentError
from dynid.robot.model import Robot
from dynid.robot.parts import freeze_array
from dynid.spatial import inverse_transform

_SHORTEST_M = 1e-9
"""Distance of two origins below which no capsule joins them [m]. Convention."""
_POSITIONS = 50
"""Number of random positions that decide whether bodies touch by design. Convention."""
_SPREAD = 3.0
"""Largest absolute random position [rad or m]: nearly a half turn. Convention."""
_PARALLEL = 1e-14
"""Squared length, or determinant of two directions [m^2, m^4], below which it counts as zero. Convention."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Capsule:
    """All points within ``radius`` of a straight segment fixed to a link; a sphere where its ends coincide."""

    link: str
    """Name of the link that carries it."""
    start: Floats
    """(3,) one end of the segment, link frame [m]."""
    end: Floats
    """(3,) the other end, link frame [m]."""
    radius: float
    """Radius [m]."""

    def __post_init__(self) -> None:
        """Check and freeze."""
        object.__setattr__(self, "start", freeze_array(self.start, (3,)))
        object.__setattr__(self, "end", freeze_array(self.end, (3,)))
        if not (np.isfinite(self.radius) and self.radius > 0.0):
            raise ArgumentError(f"the radius of a capsule must be positive, not {self.radius}")


def skeleton_capsules(robot: Robot, radius: float) -> tuple[Capsule, ...]:
    """A capsule along every body, from its origin to the origin of each child: a body for robots without geometry.

    Args:
        robot: The robot.
        radius: Radius of every capsule [m].

    Example:
        >>> len(dynid.excitation.skeleton_capsules(robot, radius=0.05)) > 0
        True
    """
    capsules = []
    for body in robot.bodies:
        parent = robot.root if body.parent < 0 else robot.bodies[body.parent].joint.child
        if np.linalg.norm(body.p_parent_joint) > _SHORTEST_M:
            capsules.append(Capsule(link=parent, start=np.zeros(3), end=body.p_parent_joint, radius=radius))
    for body in robot.bodies:
        for name, T in body.members[1:]:
            if np.linalg.norm(T[:3, 3]) > _SHORTEST_M:
                body_origin = inverse_transform(T)[:3, 3]
                capsules.append(Capsule(link=name, start=body_origin, end=np.zeros(3), radius=radius))
    return tuple(capsules)


def collision_pairs(robot: Robot, capsules: tuple[Capsule, ...], clearance: float = 0.0) -> tuple[tuple[int, int], ...]:
    """Pairs of capsules that can collide: on bodies that no joint connects, and not always nearer than the clearance.

    Capsules that are nearer than the clearance in every one of 50 random positions of the joints count as near by
    design, for example the shoulder and the upper arm.
    """
    pairs = distant_pairs(robot, [capsule.link for capsule in capsules])
    if not pairs:
        return ()
    ends = np.array([_capsule_ends(robot, capsules, q) for q in random_positions(robot)])

    def reach(a: int, b: int) -> float:
        return capsules[a].radius + capsules[b].radius + clearance

    return tuple((a, b) for a, b in pairs if not _always_touch(ends[:, a], ends[:, b], reach(a, b)))


def distant_pairs(robot: Robot, links: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of indices into the list whose links belong to different bodies that no joint connects."""
    holders = [robot.link_body(link)[0] for link in links]
    return [
        (a, b)
        for a, b in combinations(range(len(links)), 2)
        if holders[a] != holders[b] and not _neighbours(robot, holders[a], holders[b])
    ]


def random_positions(robot: Robot) -> Floats:
    """Random positions (50, n) [rad or m]; bodies that touch in all of them touch by design."""
    return np.random.default_rng(0).uniform(-_SPREAD, _SPREAD, (_POSITIONS, robot.dof))


def _neighbours(robot: Robot, a: int, b: int) -> bool:
    return robot.bodies[max(a, b)].parent == min(a, b)


def _capsule_ends(robot: Robot, capsules: tuple[Capsule, ...], q: Floats) -> Floats:
    """Ends of the capsules' segments in the root frame (k, 2, 3) [m]."""
    poses = link_poses(robot, q)
    ends = [[T[:3, :3] @ x + T[:3, 3] for x in (c.start, c.end)] for c in capsules for T in (poses[c.link],)]
    return np.array(ends, dtype=float)


def _always_touch(a: Floats, b: Floats, reach: float) -> bool:
    return bool(np.all(closest_points(a[:, 0], a[:, 1], b[:, 0], b[:, 1]).distance <= reach))


class Closest(NamedTuple):
    """Closest points of two families of N segments."""

    distance: Floats
    """(N,) between the segments [m]."""
    direction: Floats
    """(N, 3) unit vector from the second to the first; zero where they cross."""
    first: Floats
    """(N,) position on the first segment: 0 at its start, 1 at its end."""
    second: Floats
    """(N,) position on the second segment: 0 at its start, 1 at its end."""


def closest_points(a0: Floats, a1: Floats, b0: Floats, b1: Floats) -> Closest:
    """Closest points of segments a0-a1 and b0-b1, each (N, 3) [m].

    The squared distance is a convex quadratic over the unit square, so its minimum is the interior one or lies on an
    edge, where it is the projection of an end point on the other segment; all five candidates are compared.
    """
    u, v, w = a1 - a0, b1 - b0, a0 - b0
    uu, vv, uv = (np.einsum("ij,ij->i", x, y) for x, y in ((u, u), (v, v), (u, v)))
    uw, vw = np.einsum("ij,ij->i", u, w), np.einsum("ij,ij->i", v, w)
    zero, one = np.zeros_like(uu), np.ones_like(uu)
    determinant = uu * vv - uv * uv
    inner = np.clip(_ratio(uv * vw - vv * uw, determinant), 0.0, 1.0)
    candidates = [(inner, np.clip(_ratio(uv * inner + vw, vv), 0.0, 1.0))]
    candidates += [(s, np.clip(_ratio(uv * s + vw, vv), 0.0, 1.0)) for s in (zero, one)]
    candidates += [(np.clip(_ratio(uv * t - uw, uu), 0.0, 1.0), t) for t in (zero, one)]
    s, t = (np.array([pair[k] for pair in candidates]) for k in (0, 1))
    gaps = w + s[..., None] * u - t[..., None] * v
    lengths = np.sqrt(np.einsum("kij,kij->ki", gaps, gaps))
    best = np.argmin(lengths, axis=0)
    pick = (best, np.arange(len(best)))
    distance = lengths[pick]
    direction = np.divide(gaps[pick], distance[:, None], out=np.zeros_like(w), where=distance[:, None] > 0.0)
    return Closest(distance, direction, s[pick], t[pick])


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Quotient, zero where the denominator vanishes (parallel segments, points)."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > _PARALLEL)
