"""Distances of convex hulls by coal, with the points where they are attained; negative where hulls overlap.

coal measures by the algorithm of [GilbertJohnsonKeerthi1988] and, where hulls overlap, by an expanding polytope.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from dynid.arrays import Floats, Ints
from dynid.checks import require_library

_TOLERANCE = 1e-10
"""Accuracy of a distance [m], far below that of any hull. Convention."""
_THIN = 1e-7
"""Half the thickness that a flat hull gets, since coal measures solids [m]. Convention."""


class Witness(NamedTuple):
    """Closest points of M pairs of hulls; deepest ones where they overlap."""

    distance: Floats
    """(M,) negative where they overlap [m]."""
    direction: Floats
    """(M, 3) unit vector along which the first moves away from the second."""
    first: Floats
    """(M, 3) point of the first hull, root frame [m]."""
    second: Floats
    """(M, 3) point of the second hull, root frame [m]."""


def hull_distances(hulls: Sequence[Floats], pairs: Ints, poses: Floats) -> Witness:
    """Distances of pairs of hulls.

    Args:
        hulls: Corners (k, 3) of each hull in the frame of its link [m].
        pairs: (M, 2) indices of the two hulls of each pair.
        poses: (M, 2, 3, 4) rotation and position of their links in the root frame.

    Raises:
        ArgumentError: coal is not installed.
    """
    coal = require_library("coal", "dynid[collision]")
    shapes = [_shape(corners.tobytes()) for corners in hulls]
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance = request.epa_tolerance = _TOLERANCE
    found = np.empty((len(pairs), 10))
    for row, (a, b), (first, second) in zip(found, pairs, poses, strict=True):
        at = [coal.Transform3s(np.array(T[:, :3]), np.array(T[:, 3])) for T in (first, second)]
        result.clear()
        row[0] = coal.distance(shapes[a], at[0], shapes[b], at[1], request, result)
        row[1:4], row[4:7], row[7:] = -result.normal, result.getNearestPoint1(), result.getNearestPoint2()
    return Witness(found[:, 0], found[:, 1:4], found[:, 4:7], found[:, 7:])


@lru_cache(maxsize=256)
def _shape(corners: bytes) -> Any:
    """The hull of corners (k, 3) as a shape of coal."""
    coal = require_library("coal", "dynid[collision]")
    points = np.frombuffer(corners).reshape(-1, 3)
    try:
        ConvexHull(points)
    except (QhullError, ValueError):  # flat: coal measures solids
        points = (points[:, None] + _THIN * _BOX).reshape(-1, 3)
    vertices = coal.StdVec_Vec3s()
    vertices.extend([np.array(point) for point in points])
    return coal.Convex.convexHull(vertices, True, "Qt")


_BOX = np.array(np.meshgrid([-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0])).reshape(3, -1).T
"""(8, 3) corners of a cube."""
