"""The shapes of a robot's links as triangles, for the player of the report: boxes, cylinders, spheres and STL meshes.

Meshes are drawn where they are at hand: beside the URDF, or in the package folder that their names begin with. A mesh
that is not there, or is of another kind, is left out, and the report draws lines between the joints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import DynidError
from dynid.robot.formats.urdf import read_origin
from dynid.robot.formats.xml import Element, XmlDocument, parse_document
from dynid.robot.model import Robot

MOST_TRIANGLES = 6000
"""Triangles of a whole robot (convention): a page of 100 kB that a phone can turn."""
LEAST_SHARE = 0.5
"""Share of the bodies, with the root, that must have a shape; else lines between joints are drawn (convention)."""
FEWEST = 200
"""Triangles that every shape may keep (convention): those of boxes, cylinders and spheres."""
SIDES = 16
"""Sides of a drawn cylinder or sphere (convention)."""
MOST_PARENTS = 4
"""Folders above the URDF in which packages are looked for (convention: urdf, description, package, workspace)."""


@dataclass(frozen=True, slots=True, eq=False)
class LinkShape:
    """Triangles of one link, in the frame of the body that carries it."""

    body: int
    """Index of the body, from 0; -1 for the root."""
    corners: Floats
    """(k, 3) [m]"""
    faces: NDArray[np.int64]
    """(t, 3) indices of corners."""


def link_shapes(robot: Robot) -> tuple[LinkShape, ...]:
    """The shapes of a robot that was read from a URDF; empty where there are none or they cannot be read."""
    if robot.source is None or robot.source.format != "urdf":
        return ()
    try:
        document = parse_document(robot.source.text, robot.source.path)
        found = list(_shapes(robot, document))
    except (DynidError, OSError):  # a report is not refused for a picture
        return ()
    if len({shape.body for shape in found}) < LEAST_SHARE * (robot.dof + 1):
        return ()  # a gripper that floats in the air says less than lines between the joints
    total = sum(len(shape.faces) for shape in found)
    share = min(1.0, MOST_TRIANGLES / total) if total else 1.0
    return tuple(_simplify(shape, max(FEWEST, int(share * len(shape.faces)))) for shape in found)


def _shapes(robot: Robot, document: XmlDocument) -> Iterator[LinkShape]:
    names = {link.name for link in robot.links}
    for link in document.root.all("link"):
        if link.name not in names:
            continue
        body, T_body_link = robot.link_body(link.name)
        for kind in ("visual", "collision"):  # collision shapes are STL more often than visual ones
            known = [(part, _triangles(document, document.child(part, "geometry"))) for part in link.all(kind)]
            readable = [(part, triangles) for part, triangles in known if triangles is not None]
            for part, triangles in readable:
                T = T_body_link @ read_origin(document, part)
                corners, inverse = np.unique(triangles.reshape(-1, 3).round(6), axis=0, return_inverse=True)
                yield LinkShape(body, corners @ T[:3, :3].T + T[:3, 3], inverse.reshape(-1, 3).astype(np.int64))
            if readable:
                break


def _triangles(document: XmlDocument, geometry: Element) -> Floats | None:
    """(t, 3, 3) corners in the shape's own frame [m]; None for a mesh that is not at hand."""
    shape = geometry.children[0] if geometry.children else geometry
    if shape.tag == "mesh":
        path = _find_mesh(Path(document.path), document.attribute(shape, "filename"))
        scale = document.numbers(shape, "scale", 3, np.ones(3))
        if path is None:
            return None
        from dynid.excitation.collision.geometry import read_triangles

        return np.asarray(read_triangles(path) * scale)
    if shape.tag == "box":
        x, y, z = 0.5 * document.numbers(shape, "size", 3)
        corners = np.array([[x, y], [-x, y], [-x, -y], [x, -y]])
        return _stack_of_rings([(0.0, -z), (1.0, -z), (1.0, z), (0.0, z)], corners)
    turn = 2.0 * np.pi / SIDES * np.arange(SIDES)
    ring = np.column_stack([np.cos(turn), np.sin(turn)])
    if shape.tag == "cylinder":
        radius, half_length = document.number(shape, "radius"), 0.5 * document.number(shape, "length")
        return _stack_of_rings(
            [(0.0, -half_length), (radius, -half_length), (radius, half_length), (0.0, half_length)], ring
        )
    if shape.tag == "sphere":
        radius, angles = document.number(shape, "radius"), np.linspace(0.0, np.pi, SIDES // 2 + 1)
        return _stack_of_rings([(radius * np.sin(a), radius * np.cos(a)) for a in angles], ring)
    return None


def _stack_of_rings(levels: Sequence[tuple[float, float]], ring: Floats) -> Floats:
    """(t, 3, 3) triangles between rings (s, 2), each level of which has a size and a height; points at both ends."""
    rings = np.array([np.column_stack([size * ring, np.full(len(ring), height)]) for size, height in levels])
    low, high = rings[:-1], rings[1:]
    following = [np.roll(part, -1, axis=1) for part in (low, high)]
    rising = np.stack([low, high, following[1]], axis=2)[:-1]  # at the last level they have no area
    falling = np.stack([low, following[0], following[1]], axis=2)[1:]  # nor these at the first
    return np.concatenate([rising.reshape(-1, 3, 3), falling.reshape(-1, 3, 3)])


def _find_mesh(urdf: Path, name: str) -> Path | None:
    """The STL file that a mesh's name leads to: from the folder of the URDF, or from a package folder above it."""
    inside = Path(name.split("://", 1)[-1].lstrip("/")) if "://" in name else Path(name)
    if inside.suffix.lower() != ".stl":
        return None
    here = urdf.resolve().parent
    places = [here, *list(here.parents)[:MOST_PARENTS]] if "://" in name else [here]
    for folder in places:
        for start in range(min(2, len(inside.parts))):  # the folder holds the package, or is the package
            path = folder.joinpath(*inside.parts[start:])
            if path.is_file():
                return path
    return None


def _simplify(shape: LinkShape, most: int) -> LinkShape:
    """Merge corners on a grid until at most so many triangles are left."""
    corners, faces = shape.corners, shape.faces
    size = float(np.ptp(corners, axis=0).max()) or 1.0
    cells = 48
    while len(faces) > most and cells > 2:
        keys = np.floor((shape.corners - shape.corners.min(axis=0)) / size * cells).astype(np.int64)
        _, first, place = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        corners, faces = shape.corners[first], place.reshape(-1)[shape.faces]
        whole = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 0] != faces[:, 2])
        faces = np.unique(np.sort(faces[whole], axis=1), axis=0)
        cells = int(0.8 * cells)
    return LinkShape(shape.body, corners, faces)
