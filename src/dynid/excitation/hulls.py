"""Bodies of links as convex hulls with a radius: their distances, and the pairs of them that can collide.

A hull of one or two corners is a sphere or a capsule, whose distances are closed formulas. Others are measured by coal:
by the algorithm of [GilbertJohnsonKeerthi1988] and, where hulls overlap, by an expanding polytope.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull, QhullError

from dynid.arrays import Floats, Ints
from dynid.checks import require_library
from dynid.decompositions import svd
from dynid.dynamics.kinematics import link_poses
from dynid.errors import ArgumentError
from dynid.robot.model import Robot
from dynid.spatial import SAME, inverse_transform

_THIN_M = 1e-7
"""Half the thickness that a flat hull gets, since coal measures solids [m]. Convention."""
_POSITIONS = 50
"""Number of random positions that decide whether bodies touch by design. Convention."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hull:
    """All points within ``radius`` of the convex hull of points fixed to a link, for example the vertices of a mesh."""

    link: str
    """Name of the link that carries it."""
    corners: Floats
    """(k, 3) points that span it, link frame [m]; points inside the hull are dropped. Two are a capsule."""
    radius: float = 0.0
    """Radius about the hull [m]."""

    def __post_init__(self) -> None:
        """Check the points, drop those inside the hull and freeze."""
        corners = np.array(self.corners, dtype=float)
        if corners.ndim != 2 or corners.shape[1:] != (3,) or not len(corners) or not np.isfinite(corners).all():
            raise ArgumentError(
                "a hull needs finite points of shape (k, 3)", remedy="Give the vertices of the mesh [m]."
            )
        if not 0.0 <= self.radius < np.inf:
            raise ArgumentError(f"the radius of a hull is {self.radius}", remedy="Give metres, zero or more.")
        if len(corners) > 2:
            corners = _outer_corners(corners)
        corners.setflags(write=False)
        object.__setattr__(self, "corners", corners)

    @property
    def is_segment(self) -> bool:
        """Whether it is a sphere or a capsule."""
        return len(self.corners) <= 2

    def capsule(self) -> Hull:
        """A capsule along the longest principal axis that contains the hull."""
        if self.is_segment:
            return self
        axes = svd(self.corners - self.corners.mean(axis=0))[2]
        places = self.corners @ axes.T
        low, high = places.min(axis=0), places.max(axis=0)
        middle, axes = 0.5 * (low + high) @ axes, axes[np.argsort(low - high)]
        along, *across = ((self.corners - middle) @ axes.T).T
        radial = np.hypot(*across)
        radius = float(radial.max()) + SAME  # rounding leaves no corner outside
        cap = np.sqrt(radius**2 - radial**2)  # how far a cap reaches at that distance from the axis
        start, end = float(np.min(along + cap)), float(np.max(along - cap))
        if start > end:
            start = end = 0.5 * (start + end)
        ends = middle + np.array([[start], [end]]) * axes[0]
        return Hull(link=self.link, corners=ends, radius=radius + self.radius)


def _outer_corners(points: Floats) -> Floats:
    """The corners (k, 3) of the hull of points; a flat hull becomes a thin solid, for only solids can be measured."""
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except QhullError:
        cube = np.array(np.meshgrid(*[[-_THIN_M, _THIN_M]] * 3)).reshape(3, -1).T
        thick = (points[:, None] + cube).reshape(-1, 3)
        return np.asarray(thick[ConvexHull(thick).vertices])


def skeleton_hulls(robot: Robot, radius: float) -> tuple[Hull, ...]:
    """A capsule along every body, from its origin to the origin of each child: a body for robots without geometry.

    Args:
        robot: The robot.
        radius: Radius of every capsule [m].

    Example:
        >>> len(dynid.excitation.skeleton_hulls(robot, radius=0.05)) > 0
        True
    """
    segments: list[tuple[str, ArrayLike]] = []
    for body in robot.bodies:
        parent = robot.root if body.parent < 0 else robot.bodies[body.parent].joint.child
        segments.append((parent, body.p_parent_joint))
    segments += [(name, inverse_transform(T)[:3, 3]) for body in robot.bodies for name, T in body.members[1:]]
    return tuple(
        Hull(link=link, corners=np.array([np.zeros(3), end]), radius=radius)
        for link, end in segments
        if np.linalg.norm(end) > SAME
    )


class Witness(NamedTuple):
    """Closest points of M pairs of bodies; deepest ones where hulls overlap."""

    distance: Floats
    """(M,) negative where they overlap [m]."""
    direction: Floats
    """(M, 3) unit vector along which the first moves away from the second; zero where segments cross."""
    first: Floats
    """(M, 3) point of the first hull without its radius, root frame [m]."""
    second: Floats
    """(M, 3) point of the second hull without its radius, root frame [m]."""


def hull_distances(hulls: Sequence[Hull], poses: Floats, rows: Ints, pairs: Ints) -> Witness:
    """Distances of pairs of bodies.

    Args:
        hulls: The h bodies.
        poses: (N, h, 3, 4) rotation and position of their links in the root frame, at N positions of the joints.
        rows: (M,) which of the positions.
        pairs: (M, 2) indices of two bodies.

    Raises:
        ArgumentError: coal is needed and not installed.
    """
    found, places = np.empty((len(pairs), 10)), poses[rows[:, None], pairs]
    is_segment = np.array([hull.is_segment for hull in hulls], dtype=bool)
    quick = is_segment[pairs].all(axis=1)
    if quick.any():
        local = np.array([hull.corners[[0, -1]] for hull in hulls])
        ends = np.einsum("msij,mskj->mski", places[quick][..., :3], local[pairs[quick]])
        ends += places[quick][:, :, None, :, 3]
        found[quick] = np.column_stack(segment_distances(ends[:, 0], ends[:, 1]))
    if not quick.all():
        found[~quick] = _measure_by_coal([hull.corners for hull in hulls], pairs[~quick], places[~quick])
    found[:, 0] -= np.array([hull.radius for hull in hulls])[pairs].sum(axis=1)
    return Witness(found[:, 0], found[:, 1:4], found[:, 4:7], found[:, 7:])


def all_distances(hulls: Sequence[Hull], poses: Floats, pairs: Ints) -> Floats:
    """Distances (N, m) [m] of m pairs of bodies at every position; arguments as for `hull_distances`."""
    rows = np.repeat(np.arange(len(poses)), len(pairs))
    return hull_distances(hulls, poses, rows, np.tile(pairs, (len(poses), 1))).distance.reshape(len(poses), -1)


def segment_distances(a: Floats, b: Floats) -> Witness:
    """Closest points of segments with ends a and b, each (M, 2, 3) [m].

    The squared distance is a convex quadratic over the unit square, so its minimum is the interior one or lies on an
    edge, where it is the projection of an end point on the other segment; all five candidates are compared.
    """
    u, v, w = a[:, 1] - a[:, 0], b[:, 1] - b[:, 0], a[:, 0] - b[:, 0]
    uu, vv, uv, uw, vw = (np.einsum("ij,ij->i", x, y) for x, y in ((u, u), (v, v), (u, v), (u, w), (v, w)))
    zero, one = np.zeros_like(uu), np.ones_like(uu)

    def share(numerator: Floats, denominator: Floats) -> Floats:
        """Place on a segment, zero where the denominator vanishes (parallel segments, points)."""
        found = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > SAME**2)
        return np.clip(found, 0.0, 1.0)

    inner = share(uv * vw - vv * uw, uu * vv - uv * uv)
    candidates = [(s, share(uv * s + vw, vv)) for s in (inner, zero, one)]
    candidates += [(share(uv * t - uw, uu), t) for t in (zero, one)]
    s, t = (np.array([pair[k] for pair in candidates])[..., None] for k in (0, 1))
    gaps = w + s * u - t * v
    lengths = np.linalg.norm(gaps, axis=-1)
    pick = (np.argmin(lengths, axis=0), np.arange(len(a)))
    distance = lengths[pick]
    direction = np.divide(gaps[pick], distance[:, None], out=np.zeros_like(w), where=distance[:, None] > 0.0)
    return Witness(distance, direction, a[:, 0] + s[pick] * u, b[:, 0] + t[pick] * v)


def _measure_by_coal(corners: Sequence[Floats], pairs: Ints, poses: Floats) -> Floats:
    """Distance, direction and points (M, 10) of pairs of hulls."""
    coal = require_library("coal", "dynid[sim]")
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance = request.epa_tolerance = SAME / 10
    found = np.empty((len(pairs), 10))
    for row, (a, b), (first, second) in zip(found, pairs, poses, strict=True):
        at = [coal.Transform3s(np.array(T[:, :3]), np.array(T[:, 3])) for T in (first, second)]
        result.clear()
        shapes = (_coal_shape(corners[k].tobytes()) for k in (a, b))
        row[0] = coal.distance(next(shapes), at[0], next(shapes), at[1], request, result)
        row[1:4], row[4:7], row[7:] = -result.normal, result.getNearestPoint1(), result.getNearestPoint2()
    return found


@lru_cache(maxsize=256)
def _coal_shape(corners: bytes) -> Any:
    """The hull of corners (k, 3) as a shape of coal."""
    coal = require_library("coal", "dynid[sim]")
    vertices = coal.StdVec_Vec3s()
    vertices.extend([np.array(point) for point in _outer_corners(np.frombuffer(corners).reshape(-1, 3))])
    return coal.Convex.convexHull(vertices, True, "Qt")


def split_pairs(robot: Robot, hulls: Sequence[Hull], clearance: float) -> tuple[Ints, Ints]:
    """Pairs (m, 2) of bodies that can collide, and those that are nearer than the clearance by design.

    Only bodies on links that no joint connects can collide. Those nearer than the clearance in every one of 50 random
    positions of the joints are near by design, for example the shoulder and the upper arm.
    """
    holders = [robot.link_body(hull.link)[0] for hull in hulls]
    pairs = [
        (a, b)
        for a, b in combinations(range(len(hulls)), 2)
        if holders[a] != holders[b] and robot.bodies[max(holders[a], holders[b])].parent != min(holders[a], holders[b])
    ]
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    positions = [link_poses(robot, q) for q in random_positions(robot)]
    poses = np.array([[at[hull.link][:3] for hull in hulls] for at in positions], dtype=float)
    apart = np.any(all_distances(hulls, poses, found) > clearance, axis=0)
    return found[apart], found[~apart]


def random_positions(robot: Robot) -> Floats:
    """Random positions (50, n) over nearly a turn [rad or m]; bodies that touch in all of them touch by design."""
    return np.random.default_rng(0).uniform(-3.0, 3.0, (_POSITIONS, robot.dof))
