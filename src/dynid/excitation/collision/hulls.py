"""Convex hulls as bodies for self-collision: measured exactly, or covered by a few capsules that contain them.

For the cover, planes cut a hull into convex pieces; a capsule contains all corners of a piece and therefore the piece.
The cover is safe, never exact: the capsules reach beyond the hull by the distance that `overhang` measures. A motion
that keeps the capsules apart keeps the hulls apart, but some motions that keep the hulls apart are refused. More
capsules fit closer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull, QhullError

from dynid.arrays import Floats
from dynid.checks import as_whole, check_kind
from dynid.decompositions import svd
from dynid.dynamics.kinematics import link_poses
from dynid.errors import ArgumentError
from dynid.excitation.collision.capsules import Capsule, distant_pairs, random_positions
from dynid.excitation.collision.hull_distance import hull_distances
from dynid.robot.model import Robot

_SMALLEST = 1e-6
"""Radius of a capsule about points on one line [m]. Convention."""
_ROUNDING = 1.0 + 1e-12
"""Factor on a radius, so that rounding leaves no corner outside. Convention."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hull:
    """The convex hull of points fixed to a link, for example the vertices of a mesh."""

    link: str
    """Name of the link that carries it."""
    corners: Floats
    """(k, 3) points that span it, link frame [m]; points inside the hull are dropped."""

    def __post_init__(self) -> None:
        """Check the points, drop those inside the hull and freeze."""
        corners = np.array(_drop_inner_points(_as_points(self.corners)))
        corners.setflags(write=False)
        object.__setattr__(self, "corners", corners)


def hull_pairs(robot: Robot, hulls: tuple[Hull, ...], clearance: float = 0.0) -> tuple[tuple[int, int], ...]:
    """Pairs of hulls that can collide, by the same rule as `collision_pairs`."""
    pairs = np.array(distant_pairs(robot, [hull.link for hull in hulls]), dtype=np.int64)
    if not len(pairs):
        return ()
    positions = [link_poses(robot, q) for q in random_positions(robot)]
    poses = np.array([[at[hull.link][:3] for hull in hulls] for at in positions], dtype=float)
    many = np.tile(pairs, (len(poses), 1))
    rows = np.repeat(np.arange(len(poses)), len(pairs))
    distance = hull_distances([hull.corners for hull in hulls], many, poses[rows[:, None], many]).distance
    apart = np.any(distance.reshape(len(poses), -1) > clearance, axis=0)
    return tuple((int(a), int(b)) for a, b in pairs[apart])


def hull_capsules(link: str, points: ArrayLike, count: int = 4) -> tuple[Capsule, ...]:
    """Capsules that together contain the convex hull of points, for example the vertices of a mesh.

    Args:
        link: The link that carries the hull.
        points: (k, 3) points that span the hull, link frame [m].
        count: Number of capsules; the widest piece is cut until there are enough pieces.

    Example:
        >>> len(dynid.excitation.hull_capsules("link1", np.random.default_rng(0).normal(size=(20, 3)), count=2))
        2
    """
    corners = _as_points(points)
    check_kind("link", link, str)
    as_whole("count", count, least=1)
    pieces = [_drop_inner_points(corners)]
    while len(pieces) < count:
        covers = [_cover(link, piece) for piece in pieces]
        widest = int(np.argmax([cover.radius for cover in covers]))
        if covers[widest].radius <= _SMALLEST:
            break
        pieces.extend(_cut_in_half(link, pieces.pop(widest)))
    return tuple(_cover(link, piece) for piece in pieces)


def overhang(capsules: tuple[Capsule, ...], points: ArrayLike, directions: int = 2000) -> float:
    """How far the capsules of one link reach beyond the hull of points (k, 3) [m], over random directions."""
    d = np.random.default_rng(0).normal(size=(directions, 3))
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    hull = (np.asarray(points, dtype=float) @ d.T).max(axis=0)
    reach = [np.maximum(c.start @ d.T, c.end @ d.T) + c.radius for c in capsules]
    return float(np.max(reach - hull))


def _as_points(points: ArrayLike) -> Floats:
    """Finite points (k, 3), at least one."""
    corners = np.asarray(points, dtype=float)
    if corners.ndim != 2 or corners.shape[1:] != (3,) or len(corners) < 1 or not np.isfinite(corners).all():
        raise ArgumentError("a hull needs finite points of shape (k, 3)", remedy="Give the vertices of the mesh [m].")
    return corners


def _drop_inner_points(points: Floats) -> Floats:
    """The points that are corners of the hull; all of them where they are too few or lie in a plane."""
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except (QhullError, ValueError):
        return points


def _cut_in_half(link: str, corners: Floats) -> tuple[Floats, Floats]:
    """The two parts of a hull cut in the middle along that principal axis for which their capsules are thinnest."""
    _, axes = _frame(corners)
    cuts = [_cut(corners, axis) for axis in axes]
    return min(cuts, key=lambda halves: sum(_cover(link, half).radius ** 2 for half in halves))


def _cut(corners: Floats, normal: Floats) -> tuple[Floats, Floats]:
    """Corners on either side of the middle plane, with those that the plane makes where it crosses the hull."""
    height = corners @ normal
    height = height - 0.5 * (height.min() + height.max())
    below, above = corners[height <= 0.0], corners[height >= 0.0]
    low, high = height[height < 0.0], height[height > 0.0]
    share = (low[:, None] / (low[:, None] - high))[..., None]
    crossing = (1.0 - share) * corners[height < 0.0][:, None] + share * corners[height > 0.0]
    section = crossing.reshape(-1, 3)  # of all pairs: their hull is the whole section
    return _drop_inner_points(np.vstack([below, section])), _drop_inner_points(np.vstack([above, section]))


def _cover(link: str, corners: Floats) -> Capsule:
    """A capsule along the longest principal axis that contains all corners."""
    middle, axes = _frame(corners)
    along, *across = ((corners - middle) @ axes.T).T
    radial = np.hypot(*across)
    radius = max(float(radial.max()) * _ROUNDING, _SMALLEST)
    cap = np.sqrt(radius**2 - np.minimum(radial, radius) ** 2)  # how far a cap reaches at that distance from the axis
    start, end = float(np.min(along + cap)), float(np.max(along - cap))
    if start > end:
        start = end = 0.5 * (start + end)
    return Capsule(link=link, start=middle + start * axes[0], end=middle + end * axes[0], radius=radius)


def _frame(corners: Floats) -> tuple[Floats, Floats]:
    """Middle (3,) of the box along the principal axes, and these axes (3, 3), one per row, the longest first."""
    axes = svd(corners - corners.mean(axis=0), full_matrices=True)[2]
    places = corners @ axes.T
    low, high = places.min(axis=0), places.max(axis=0)
    order = np.argsort(low - high)
    return 0.5 * (low + high) @ axes, axes[order]
