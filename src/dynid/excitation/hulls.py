"""Shapes of links as convex hulls with a radius: their distances, and the pairs of them that can collide.

A hull of one or two corners is a sphere or a capsule, whose distances are closed formulas. Others are measured by the
library coal: by the algorithm of Gilbert, Johnson and Keerthi (1988), overlaps by an expanding polytope.
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

from dynid.array_types import Floats, Ints
from dynid.checks import require_library
from dynid.decompositions import svd
from dynid.dynamics.kinematics import link_poses
from dynid.errors import ArgumentError
from dynid.robot.model import Robot
from dynid.spatial import SAME, inverse_transform

_HALF_THICKNESS_M = 1e-7
"""Half the thickness that a flat hull gets, since coal measures solids [m]. Convention."""
_POSITION_COUNT = 50
"""Number of random positions that decide whether bodies touch by design. Convention."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hull:
    """The shape of a link: all points within ``radius`` of the convex hull of points, such as the corners of a mesh."""

    link: str
    """Name of the link that carries it."""
    corners: Floats
    """(k, 3) points that span it, link frame [m]; those inside the hull are dropped. One is a sphere, two a capsule."""
    radius: float = 0.0
    """Distance by which the shape extends beyond the convex hull [m]."""

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
        """Make a capsule that contains the hull; its axis is the principal axis along which the hull is longest."""
        if self.is_segment:
            return self
        _, _, axes = svd(self.corners - self.corners.mean(axis=0))  # principal axes as rows
        places = self.corners @ axes.T
        low = places.min(axis=0)
        high = places.max(axis=0)
        middle = 0.5 * (low + high) @ axes
        axes = axes[np.argsort(low - high)]  # the longest first
        along, *across = ((self.corners - middle) @ axes.T).T
        radial = np.hypot(*across)
        radius = float(radial.max()) + SAME  # rounding leaves no corner outside
        cap = np.sqrt(radius**2 - radial**2)  # how far a cap reaches at that distance from the axis
        start = float(np.min(along + cap))
        end = float(np.max(along - cap))
        if start > end:  # the caps alone contain all corners: a sphere suffices
            start = end = 0.5 * (start + end)
        ends = middle + np.array([[start], [end]]) * axes[0]
        return Hull(link=self.link, corners=ends, radius=radius + self.radius)


def _outer_corners(points: Floats) -> Floats:
    """Find the corners (k, 3) of the convex hull of points (m, 3).

    A flat hull becomes a thin solid, because coal measures only solids: a small cube is put about every point.
    """
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except QhullError:
        cube = np.array(np.meshgrid(*[[-_HALF_THICKNESS_M, _HALF_THICKNESS_M]] * 3)).reshape(3, -1).T
        thick = (points[:, None] + cube).reshape(-1, 3)
        return np.asarray(thick[ConvexHull(thick).vertices])


def skeleton_hulls(robot: Robot, radius: float) -> tuple[Hull, ...]:
    """Make capsules along every body, from its origin to that of each child: shapes for robots without geometry.

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
    """Closest points of M pairs of hulls; the deepest points where they overlap."""

    distance: Floats
    """(M,) distances between the hulls, negative where they overlap [m]."""
    direction: Floats
    """(M, 3) unit vector along which the first hull moves away from the second; zero where segments cross."""
    first: Floats
    """(M, 3) point of the first hull without its radius, root frame [m]."""
    second: Floats
    """(M, 3) point of the second hull without its radius, root frame [m]."""


def hull_distances(hulls: Sequence[Hull], poses: Floats, rows: Ints, pairs: Ints) -> Witness:
    """Measure the distances of M pairs of hulls, each pair at one position of the robot.

    Args:
        hulls: The h hulls.
        poses: (N, h, 3, 4) rotation and position of their links in the root frame, at N positions of the joints.
        rows: (M,) index of the position of each pair.
        pairs: (M, 2) indices of two hulls.

    Raises:
        ArgumentError: coal is needed and not installed.
    """
    found = np.empty((len(pairs), 10))  # columns of a `Witness`: distance, direction (3), first (3), second (3)
    places = poses[rows[:, None], pairs]  # (M, 2, 3, 4)
    is_segment = np.array([hull.is_segment for hull in hulls], dtype=bool)
    is_closed_form = is_segment[pairs].all(axis=1)
    if is_closed_form.any():
        local = np.array([hull.corners[[0, -1]] for hull in hulls])
        ends = np.einsum("msij,mskj->mski", places[is_closed_form][..., :3], local[pairs[is_closed_form]])
        ends += places[is_closed_form][:, :, None, :, 3]
        found[is_closed_form] = np.column_stack(segment_distances(ends[:, 0], ends[:, 1]))
    if not is_closed_form.all():
        corners = [hull.corners for hull in hulls]
        found[~is_closed_form] = _measure_by_coal(corners, pairs[~is_closed_form], places[~is_closed_form])
    found[:, 0] -= np.array([hull.radius for hull in hulls])[pairs].sum(axis=1)
    return Witness(found[:, 0], found[:, 1:4], found[:, 4:7], found[:, 7:])


def all_distances(hulls: Sequence[Hull], poses: Floats, pairs: Ints) -> Floats:
    """Measure the distances (N, m) [m] of m pairs of hulls at all N positions; arguments as for `hull_distances`."""
    rows = np.repeat(np.arange(len(poses)), len(pairs))
    return hull_distances(hulls, poses, rows, np.tile(pairs, (len(poses), 1))).distance.reshape(len(poses), -1)


def segment_distances(a: Floats, b: Floats) -> Witness:
    """Find the closest points of M pairs of segments with ends a and b, each (M, 2, 3) [m].

    The points are ``a_0 + s u`` and ``b_0 + t v`` with the places s and t from 0 to 1.

    The squared distance is a convex quadratic over the unit square, so its minimum is the interior one or lies on an
    edge, where it is the projection of an end point on the other segment; all five candidates are compared.
    """
    u = a[:, 1] - a[:, 0]
    v = b[:, 1] - b[:, 0]
    w = a[:, 0] - b[:, 0]
    uu, vv, uv, uw, vw = (np.einsum("ij,ij->i", x, y) for x, y in ((u, u), (v, v), (u, v), (u, w), (v, w)))
    zero = np.zeros_like(uu)
    one = np.ones_like(uu)

    def share(numerator: Floats, denominator: Floats) -> Floats:
        """Compute a place on a segment, zero where the denominator vanishes (parallel segments, points)."""
        found = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > SAME**2)
        return np.clip(found, 0.0, 1.0)

    inner = share(uv * vw - vv * uw, uu * vv - uv * uv)
    # (s, t) of the interior minimum, then of each edge of the unit square
    candidates = [(s, share(uv * s + vw, vv)) for s in (inner, zero, one)]
    candidates += [(share(uv * t - uw, uu), t) for t in (zero, one)]
    s = np.array([place for place, _ in candidates])[..., None]  # (5, M, 1)
    t = np.array([place for _, place in candidates])[..., None]
    gaps = w + s * u - t * v
    lengths = np.linalg.norm(gaps, axis=-1)
    pick = (np.argmin(lengths, axis=0), np.arange(len(a)))
    distance = lengths[pick]
    direction = np.divide(gaps[pick], distance[:, None], out=np.zeros_like(w), where=distance[:, None] > 0.0)
    return Witness(distance, direction, a[:, 0] + s[pick] * u, b[:, 0] + t[pick] * v)


def _measure_by_coal(corners: Sequence[Floats], pairs: Ints, poses: Floats) -> Floats:
    """Measure pairs (M, 2) of hulls at poses (M, 2, 3, 4); returns (M, 10), the columns of a `Witness` side by side."""
    coal = require_library("coal", "dynid[sim]")
    request = coal.DistanceRequest()
    result = coal.DistanceResult()
    request.gjk_tolerance = request.epa_tolerance = SAME / 10
    found = np.empty((len(pairs), 10))
    for row, (a, b), (first, second) in zip(found, pairs, poses, strict=True):
        at = [coal.Transform3s(np.array(T[:, :3]), np.array(T[:, 3])) for T in (first, second)]
        result.clear()
        shapes = [_coal_shape(corners[k].tobytes()) for k in (a, b)]
        row[0] = coal.distance(shapes[0], at[0], shapes[1], at[1], request, result)
        row[1:4] = -result.normal  # coal's normal points from the first to the second
        row[4:7] = result.getNearestPoint1()
        row[7:] = result.getNearestPoint2()
    return found


@lru_cache(maxsize=256)
def _coal_shape(corners: bytes) -> Any:
    """Make a shape of coal from the bytes of corners (k, 3), which can be keys of the cache."""
    coal = require_library("coal", "dynid[sim]")
    vertices = coal.StdVec_Vec3s()
    vertices.extend([np.array(point) for point in _outer_corners(np.frombuffer(corners).reshape(-1, 3))])
    return coal.Convex.convexHull(vertices, True, "Qt")


def split_pairs(robot: Robot, hulls: Sequence[Hull], clearance: float) -> tuple[Ints, Ints]:
    """List the pairs (m, 2) of hulls that can collide, and those that are nearer than the clearance by design.

    Hulls of one body, or of a body and its parent, never collide. Of the other pairs, those nearer than the clearance
    [m] in every one of 50 random joint positions are near by design, for example shoulder and upper arm.
    """
    # index of the body that carries each hull; -1 is the base
    holders = [robot.link_body(hull.link)[0] for hull in hulls]
    pairs = [
        (a, b)
        for a, b in combinations(range(len(hulls)), 2)
        # the parent of a body has the smaller index
        if holders[a] != holders[b] and robot.bodies[max(holders[a], holders[b])].parent != min(holders[a], holders[b])
    ]
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    positions = [link_poses(robot, q) for q in random_positions(robot)]
    poses = np.array([[at[hull.link][:3] for hull in hulls] for at in positions], dtype=float)
    # (m,) whether a pair is farther apart than the clearance at one of the positions at least
    apart = np.any(all_distances(hulls, poses, found) > clearance, axis=0)
    return found[apart], found[~apart]


def random_positions(robot: Robot) -> Floats:
    """Draw random positions (50, n) over nearly a turn [rad or m]; bodies that touch in all of them touch by design."""
    return np.random.default_rng(0).uniform(-3.0, 3.0, (_POSITION_COUNT, robot.dof))
