"""Bodies of links as convex hulls with a radius: their distances, and the pairs of them that can collide.

A hull of one or two corners is a sphere or a capsule, whose distances are closed formulas. Others are measured by coal:
by the algorithm of [GilbertJohnsonKeerthi1988] and, where hulls overlap, by an expanding polytope.

The collision shapes of a URDF become hulls: boxes are exact; cylinders and spheres become polyhedra about them, at most
one or five per cent larger. Meshes are opened only inside a folder the caller names, and only as STL.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull, QhullError

from dynid.arrays import Floats, Ints
from dynid.checks import require_library
from dynid.decompositions import svd
from dynid.dynamics.kinematics import link_poses
from dynid.errors import ArgumentError, DescriptionError
from dynid.files.small_files import open_regular
from dynid.robot.formats.urdf import read_origin
from dynid.robot.formats.xml import Element, parse_document
from dynid.robot.model import Robot
from dynid.spatial import inverse_transform

_TINY_M = 1e-9
"""Length that counts as zero, and accuracy of a distance [m], far below that of any body. Convention."""
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
        if not _is_flat(corners):
            corners = corners[ConvexHull(corners).vertices]
        corners.setflags(write=False)
        object.__setattr__(self, "corners", corners)

    @property
    def is_segment(self) -> bool:
        """Whether it is a sphere or a capsule."""
        return len(self.corners) <= 2

    def cover(self) -> tuple[Floats, float]:
        """Ends (2, 3) and radius [m] of a capsule along the longest principal axis that contains the hull."""
        if self.is_segment:
            return self.corners[[0, -1]], self.radius
        axes = svd(self.corners - self.corners.mean(axis=0), full_matrices=True)[2]
        places = self.corners @ axes.T
        low, high = places.min(axis=0), places.max(axis=0)
        middle, axes = 0.5 * (low + high) @ axes, axes[np.argsort(low - high)]
        along, *across = ((self.corners - middle) @ axes.T).T
        radial = np.hypot(*across)
        radius = float(radial.max()) + _TINY_M  # rounding leaves no corner outside
        cap = np.sqrt(radius**2 - radial**2)  # how far a cap reaches at that distance from the axis
        start, end = float(np.min(along + cap)), float(np.max(along - cap))
        if start > end:
            start = end = 0.5 * (start + end)
        return middle + np.array([[start], [end]]) * axes[0], radius + self.radius


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
        if np.linalg.norm(end) > _TINY_M
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


def hull_distances(hulls: Sequence[Hull], pairs: Ints, poses: Floats) -> Witness:
    """Distances of pairs of bodies.

    Args:
        hulls: The bodies.
        pairs: (M, 2) indices of the two bodies of each pair.
        poses: (M, 2, 3, 4) rotation and position of their links in the root frame.

    Raises:
        ArgumentError: coal is needed and not installed.
    """
    found = np.empty((len(pairs), 10))
    quick = np.array([hull.is_segment for hull in hulls], dtype=bool)[pairs].all(axis=1)
    if quick.any():
        local = np.array([hull.corners[[0, -1]] for hull in hulls if hull.is_segment])
        places = np.cumsum([hull.is_segment for hull in hulls]) - 1
        ends = np.einsum("msij,mskj->mski", poses[quick][..., :3], local[places[pairs[quick]]])
        ends += poses[quick][:, :, None, :, 3]
        found[quick] = np.column_stack(segment_distances(ends[:, 0], ends[:, 1]))
    if not quick.all():
        found[~quick] = _measure_by_coal([hull.corners for hull in hulls], pairs[~quick], poses[~quick])
    found[:, 0] -= np.array([hull.radius for hull in hulls])[pairs].sum(axis=1)
    return Witness(found[:, 0], found[:, 1:4], found[:, 4:7], found[:, 7:])


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
        found = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > _TINY_M**2)
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
    request.gjk_tolerance = request.epa_tolerance = _TINY_M / 10
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
    points = np.frombuffer(corners).reshape(-1, 3)
    if _is_flat(points):  # coal measures solids
        cube = np.array(np.meshgrid(*[[-_THIN_M, _THIN_M]] * 3)).reshape(3, -1).T
        points = (points[:, None] + cube).reshape(-1, 3)
    vertices = coal.StdVec_Vec3s()
    vertices.extend([np.array(point) for point in points])
    return coal.Convex.convexHull(vertices, True, "Qt")


def _is_flat(points: Floats) -> bool:
    """Whether points are too few for a solid, or lie in a plane."""
    try:
        ConvexHull(points)
    except (QhullError, ValueError):
        return True
    return False


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
    if not pairs:
        return np.empty((0, 2), dtype=np.int64), np.empty((0, 2), dtype=np.int64)
    found = np.array(pairs, dtype=np.int64)
    positions = [link_poses(robot, q) for q in random_positions(robot)]
    poses = np.array([[at[hull.link][:3] for hull in hulls] for at in positions], dtype=float)
    many, rows = np.tile(found, (len(poses), 1)), np.repeat(np.arange(len(poses)), len(found))
    distance = hull_distances(hulls, many, poses[rows[:, None], many]).distance.reshape(len(poses), -1)
    apart = np.any(distance > clearance, axis=0)
    return found[apart], found[~apart]


def random_positions(robot: Robot) -> Floats:
    """Random positions (50, n) over nearly a turn [rad or m]; bodies that touch in all of them touch by design."""
    return np.random.default_rng(0).uniform(-3.0, 3.0, (_POSITIONS, robot.dof))


_SIDES = 24
"""Sides of the prism about a cylinder. Derivation: its corners lie 1 / cos(pi / 24) - 1 = 0.9 % outside."""
_LARGEST = 64 * 2**20
"""Size of the largest mesh that is read [bytes]. Convention."""
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def urdf_hulls(robot: Robot, meshes: str | os.PathLike[str] | None = None) -> tuple[Hull, ...]:
    """A convex hull for every ``<collision>`` of the URDF that the robot was read from.

    Args:
        robot: Read by `dynid.read_urdf`.
        meshes: The folder that holds the packages, or one package, that mesh names begin with; nothing outside it is
            opened. Not needed where all shapes are boxes, cylinders and spheres.

    Raises:
        ArgumentError: The robot comes from elsewhere, or meshes are needed.
        DescriptionError: A shape or a mesh is damaged, missing or of another kind.

    Example:
        >>> arm = dynid.read_urdf(folder / "box.urdf")
        >>> [hull.link for hull in dynid.excitation.urdf_hulls(arm)]
        ['bar']
    """
    if robot.source is None or robot.source.format != "urdf":
        raise ArgumentError("the robot was not read from a URDF", remedy="Make Hull objects from points of your own.")
    document = parse_document(robot.source.text, robot.source.path)
    folder = None if meshes is None else Path(meshes).resolve()
    hulls = []
    for link in document.root.all("link"):
        for collision in link.all("collision"):
            T = read_origin(collision)
            points = _shape(collision.child("geometry"), robot.name, folder)
            hulls.append(Hull(link=link.name, corners=points @ T[:3, :3].T + T[:3, 3]))
    return tuple(hulls)


def _shape(geometry: Element, robot: str, folder: Path | None) -> Floats:
    """Points (k, 3) whose hull holds the shape, in its own frame [m]."""
    shape = geometry.children[0] if geometry.children else geometry
    if shape.tag == "box":
        half = 0.5 * shape.numbers("size", 3)
        return np.array(np.meshgrid(*zip(-half, half, strict=True))).reshape(3, -1).T
    if shape.tag == "cylinder":
        radius, height = shape.number("radius"), 0.5 * shape.number("length")
        angle = 2.0 * np.pi / _SIDES * np.arange(_SIDES)
        ring = radius / np.cos(np.pi / _SIDES) * np.column_stack([np.cos(angle), np.sin(angle)])
        return np.array([[*corner, z] for corner in ring for z in (-height, height)])
    if shape.tag == "sphere":
        return shape.number("radius") * _about_unit_sphere()
    if shape.tag == "mesh":
        return _mesh(shape, robot, folder) * shape.numbers("scale", 3, np.ones(3))
    raise shape.error(f"<{shape.tag[:40]}> is no known shape", "Use box, cylinder, sphere or mesh.")


def _about_unit_sphere() -> Floats:
    """Corners of a polyhedron that holds the unit sphere, in the directions of small whole numbers."""
    steps = np.array(np.meshgrid(*[range(-2, 3)] * 3)).reshape(3, -1).T.astype(float)
    steps = steps[np.any(steps != 0.0, axis=1)]
    points = np.unique((steps / np.linalg.norm(steps, axis=1, keepdims=True)).round(15), axis=0)
    return np.asarray(points / -ConvexHull(points).equations[:, 3].max())


def _mesh(shape: Element, robot: str, folder: Path | None) -> Floats:
    name = shape.attribute("filename")
    if folder is None:
        raise ArgumentError(f"the body of '{robot}' is made of meshes", remedy="Name their folder: meshes=...")
    inside = name.split("://", 1)[-1].lstrip("/")
    parts = Path(inside).parts
    for k in range(min(3, len(parts))):  # packages stand in the folder, or the folder is the package or its inside
        path = folder.joinpath(*parts[k:]).resolve()
        if path.is_relative_to(folder) and path.is_file():
            with shape.at():
                return read_stl(path)
    raise shape.error(f"no mesh '{inside[:80]}' in {folder}", "Name the folder that holds the packages.")


def read_stl(path: Path) -> Floats:
    """Corners (k, 3) of the triangles of a binary or ASCII STL file, each once, in its own unit.

    Raises:
        DescriptionError: The file is no STL, damaged or too large.
    """
    remedy = "Convert the mesh to STL."
    if path.suffix.lower() != ".stl":
        raise DescriptionError(f"a mesh of kind '{path.suffix[:10]}' is not read", path=path, remedy=remedy)
    try:
        with open_regular(path) as stream:
            data = stream.read(_LARGEST + 1)
    except OSError as error:
        raise DescriptionError(f"the mesh cannot be read: {error.strerror}", path=path, remedy=remedy) from error
    if len(data) > _LARGEST:
        raise DescriptionError("the mesh is larger than 64 MiB", path=path, remedy="Simplify it.")
    count = int.from_bytes(data[80:84], "little")
    if len(data) == 84 + count * _TRIANGLE.itemsize and count:
        points = np.frombuffer(data, _TRIANGLE, count, 84)["corners"].reshape(-1, 3).astype(float)
    else:
        points = _ascii_corners(data)
    if not len(points) or not np.isfinite(points).all():
        raise DescriptionError("no triangles with finite corners", path=path, remedy=remedy)
    return np.unique(points, axis=0)


def _ascii_corners(data: bytes) -> Floats:
    words = data.split()
    places = [k for k, word in enumerate(words) if word == b"vertex"]
    try:
        return np.array([[float(x) for x in words[k + 1 : k + 4]] for k in places], dtype=float).reshape(-1, 3)
    except ValueError:
        return np.zeros((0, 3))
