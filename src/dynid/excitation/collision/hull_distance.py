"""Distances of convex hulls, many pairs at once: exact, with the points where they are attained.

Apart, hulls are measured by the algorithm of [GilbertJohnsonKeerthi1988]: the closest point of A - B to the origin is
approached by simplices of at most four of its corners. Where hulls overlap, the distance is negative: the largest gap
that a separating direction leaves, over the normals of all faces and the common normals of all pairs of edges; for
hulls of many edges over the faces alone, which may overstate the depth but never hides an overlap.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import lstsq

Integers = NDArray[np.int64]
_PAIRS = np.array(list(combinations(range(4), 2)))
"""(6, 2) the edges of a simplex of four corners."""
_TRIPLES = np.array(list(combinations(range(4), 3)))
"""(4, 3) the faces of a simplex of four corners."""
_ITERATIONS = 60
"""Iterations of the distance algorithm at most; most pairs need fewer than ten. Convention."""
_MOST_EDGE_PAIRS = 4000
"""Pairs of edges of overlapping hulls up to which all common normals are tried. Convention."""
_OVERLAP_M = 1e-12
"""Distance up to which hulls count as overlapping [m]. Convention."""
_GAIN = 1e-13
"""Gain of an iteration, relative to the squared distance, below which a pair is settled: double rounding."""
_SETTLED_M2, _TOUCHING_M2 = 1e-18, 1e-24
"""Gain below which a pair is settled whatever its distance, and squared distance at which hulls touch [m^2]: a
nanometre and a picometre. Convention."""
_WHOLE = 1e-9
"""Distance of the sum of the shares from one that is rounding. Convention."""
_VANISHING = 1e-30
"""Denominator below which a quotient is not defined [m^2 to m^6]. Convention."""
_PARALLEL = 1e-9
"""Length of a cross product, relative to its factors, below which two edges are parallel. Convention."""


class Polytope(NamedTuple):
    """A convex hull in the frame of its link."""

    corners: Floats
    """(k, 3) corners [m]."""
    normals: Floats
    """(f, 3) outward unit normals of its faces; none where it is flat."""
    edges: Floats
    """(e, 2, 3) ends of its edges [m]; none where it is flat."""


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


def hull_distances(hulls: tuple[Polytope, ...], pairs: Integers, poses: Floats) -> Witness:
    """Distances of pairs of hulls.

    Args:
        hulls: The hulls.
        pairs: (M, 2) indices of the two hulls of each pair.
        poses: (M, 2, 3, 4) rotation and position of their links in the root frame.
    """
    most = max(len(hull.corners) for hull in hulls)
    corners = np.array([np.resize(hull.corners, (most, 3)) for hull in hulls])  # repeated corners do no harm
    found = _gjk(corners, pairs, poses)
    for m in np.flatnonzero(found.distance <= _OVERLAP_M):
        gap, *places = _overlap(hulls[pairs[m, 0]], hulls[pairs[m, 1]], poses[m])
        found.distance[m] = gap
        for whole, part in zip(found[1:], places, strict=True):
            whole[m] = part
    return found


def _gjk(corners: Floats, pairs: Integers, poses: Floats) -> Witness:
    """Closest points of all pairs; distance zero where hulls overlap."""
    count = len(pairs)
    points = np.empty((count, 2, 4, 3))  # corners of both hulls that span the simplex; free places repeat the first
    v = poses[:, 0, :, 3] - poses[:, 1, :, 3]
    points[:] = _supports(corners, pairs, poses, v)[:, :, None]
    shares = np.zeros((count, 4))
    shares[:, 0] = 1.0
    v = points[:, 0, 0] - points[:, 1, 0]
    active = np.arange(count)
    for _ in range(_ITERATIONS):
        new = _supports(corners, pairs[active], poses[active], v[active])
        gain = np.einsum("mi,mi->m", v[active], v[active] - (new[:, 0] - new[:, 1]))
        size = np.einsum("mi,mi->m", v[active], v[active])
        going = (gain > _GAIN * size + _SETTLED_M2) & (size > _TOUCHING_M2)
        active, new = active[going], new[going]
        if not active.size:
            break
        points[active, :, np.argmin(shares[active], axis=1)] = new  # a full simplex has lost a corner before
        found, shares[active] = _nearest(points[active, 0] - points[active, 1])
        closer = np.einsum("mi,mi->m", found, found) < size[going]
        v[active] = found
        points[active] = _fill_idle_places(points[active], shares[active])
        active = active[closer]
    ends = np.einsum("mk,mskd->msd", shares, points)
    distance = np.linalg.norm(v, axis=1)
    direction = np.divide(v, distance[:, None], out=np.zeros_like(v), where=distance[:, None] > 0.0)
    return Witness(distance, direction, ends[:, 0], ends[:, 1])


def _supports(corners: Floats, pairs: Integers, poses: Floats, v: Floats) -> Floats:
    """The corner of the first hull farthest against v and that of the second farthest along it (M, 2, 3)."""
    signs = np.array([-1.0, 1.0])
    local = np.einsum("s,msij,mi->msj", signs, poses[..., :3], v)
    chosen = corners[pairs]
    best = np.argmax(np.einsum("mskj,msj->msk", chosen, local), axis=2)
    corner = np.take_along_axis(chosen, best[:, :, None, None], axis=2)[:, :, 0]
    return np.asarray(np.einsum("msij,msj->msi", poses[..., :3], corner) + poses[..., 3])


def _fill_idle_places(points: Floats, shares: Floats) -> Floats:
    """The simplex with places of no share filled by its heaviest corner."""
    heaviest = np.take_along_axis(points, np.argmax(shares, axis=1)[:, None, None, None], axis=2)
    return np.where((shares > 0.0)[:, None, :, None], points, heaviest)


def _nearest(y: Floats) -> tuple[Floats, Floats]:
    """Point nearest to the origin (M, 3) of simplices with corners y (M, 4, 3), and the shares (M, 4) of these.

    The nearest points of the planes through every subset of corners are compared, those outside their subset left out.
    """
    count = len(y)
    shares = np.zeros((count, 15, 4))
    shares[:, np.arange(4), np.arange(4)] = 1.0
    a, b = y[:, _PAIRS[:, 0]], y[:, _PAIRS[:, 1]]
    along = b - a
    t = _ratio(-_dot(a, along), _dot(along, along))
    shares[:, 4 + np.arange(6), _PAIRS[:, 0]], shares[:, 4 + np.arange(6), _PAIRS[:, 1]] = 1.0 - t, t
    a, e, f = (y[:, _TRIPLES[:, k]] for k in range(3))
    e, f = e - a, f - a
    ee, ff, ef, ae, af = _dot(e, e), _dot(f, f), _dot(e, f), _dot(a, e), _dot(a, f)
    determinant = ee * ff - ef * ef
    s, t = _ratio(ef * af - ff * ae, determinant), _ratio(ef * ae - ee * af, determinant)
    for k, share in enumerate((1.0 - s - t, s, t)):
        shares[:, 10 + np.arange(4), _TRIPLES[:, k]] = share
    volumes = _dot(y[:, [1, 0, 0, 0]], _cross(y[:, [2, 2, 1, 1]], y[:, [3, 3, 3, 2]])) * [1.0, -1.0, 1.0, -1.0]
    shares[:, 14] = _ratio(volumes, volumes.sum(axis=1, keepdims=True))
    places = shares @ y
    inside = np.all(shares >= 0.0, axis=2) & (np.abs(shares.sum(axis=2) - 1.0) < _WHOLE)
    best = np.argmin(np.where(inside, _dot(places, places), np.inf), axis=1)
    rows = np.arange(count)
    return places[rows, best], shares[rows, best]


def _dot(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.einsum("...i,...i->...", a, b))


def _cross(a: Floats, b: Floats) -> Floats:
    """Cross product along the last axis; it takes a third of the time of NumPy's for few rows."""
    ahead, behind = [1, 2, 0], [2, 0, 1]
    return np.asarray(a[..., ahead] * b[..., behind] - a[..., behind] * b[..., ahead])


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Quotient; not a number, which no comparison accepts, where the denominator vanishes."""
    where = np.broadcast_to(np.abs(denominator) > _VANISHING, numerator.shape)
    return np.divide(numerator, denominator, out=np.full_like(numerator, np.nan), where=where)


def _overlap(a: Polytope, b: Polytope, poses: Floats) -> tuple[float, Floats, Floats, Floats]:
    """Largest (least negative) gap of two overlapping hulls, its direction and the points where it is attained."""
    (A, B), (p, q) = poses[..., :3], poses[..., 3]
    x, y = a.corners @ A.T + p, b.corners @ B.T + q
    outward = np.vstack([-a.normals @ A.T, b.normals @ B.T])  # from the second hull to the first
    edges = [(hull.edges @ R.T + origin) for hull, R, origin in ((a, A, p), (b, B, q))]
    few = 0 < len(edges[0]) * len(edges[1]) <= _MOST_EDGE_PAIRS
    crossed = _common_normals(*edges) if few else np.zeros((0, 3))
    directions = np.vstack([outward, crossed, -crossed])
    if not len(directions):
        return 0.0, np.zeros(3), x[0], x[0]
    gaps = (x @ directions.T).min(axis=0) - (y @ directions.T).max(axis=0)
    k = int(np.argmax(gaps))
    gap, n = float(gaps[k]), directions[k]
    if k < len(a.normals):
        second = y[np.argmax(y @ n)]
        return gap, n, second + gap * n, second
    if k < len(outward):
        first = x[np.argmin(x @ n)]
        return gap, n, first, first - gap * n
    first, second = (_supporting_edge(e, n * s) for e, s in ((edges[0], -1.0), (edges[1], 1.0)))
    return gap, n, *_closest_on_lines(first, second)


def _common_normals(first: Floats, second: Floats) -> Floats:
    """Unit normals common to every pair of edges (m, 3); parallel ones left out."""
    u, v = first[:, 1] - first[:, 0], second[:, 1] - second[:, 0]
    n = _cross(u[:, None], v[None]).reshape(-1, 3)
    length = np.linalg.norm(n, axis=1)
    clear = length > _PARALLEL * (np.linalg.norm(u, axis=1).max() * np.linalg.norm(v, axis=1).max())
    return np.asarray(n[clear] / length[clear, None])


def _supporting_edge(edges: Floats, n: Floats) -> Floats:
    """The edge (2, 3) that lies farthest along n as a whole."""
    return np.asarray(edges[np.argmax((edges @ n).min(axis=1))])


def _closest_on_lines(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Closest points of the lines through two edges."""
    u, v, w = first[1] - first[0], second[1] - second[0], first[0] - second[0]
    s, t = lstsq(np.column_stack([u, -v]), -w)
    return first[0] + s * u, second[0] + t * v
