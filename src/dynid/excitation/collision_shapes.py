"""Read the collision shapes of a URDF as convex hulls.

Boxes and spheres are exact, cylinders become prisms that are at most 1 % larger, meshes the hull of their corners.
Meshes are read only from a folder that the caller names, and only as STL.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

from dynid.array_types import Floats
from dynid.errors import ArgumentError, DescriptionError
from dynid.excitation.hulls import Hull
from dynid.robot.formats.urdf import read_origin
from dynid.robot.formats.xml import Element, parse_document
from dynid.robot.model import Robot
from dynid.safe_files.small_files import WRITTEN, read_small

_SIDES = 24
"""Sides of the prism about a cylinder (derivation: its corners lie 1 / cos(pi / 24) - 1 = 0.9 % outside)."""
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
"""One triangle of a binary STL file, which follow a header of 80 bytes and their number in 4 bytes."""


def urdf_hulls(robot: Robot, meshes: str | os.PathLike[str] | None = None) -> tuple[Hull, ...]:
    """Make a convex hull for every ``<collision>`` of the URDF that a robot was read from.

    Args:
        robot: A robot that `dynid.read_urdf` returned.
        meshes: Folder of the packages that mesh names begin with, or of one package; no file outside it is opened. Not
            needed if all shapes are boxes, cylinders and spheres.

    Raises:
        ArgumentError: The robot was not read from a URDF, or shapes are meshes and no folder is given.
        DescriptionError: A shape or a mesh is damaged, missing or of an unknown kind.

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
            points, radius = _shape(collision.child("geometry"), robot.name, folder)
            hulls.append(Hull(link=link.name, corners=points @ T[:3, :3].T + T[:3, 3], radius=radius))
    return tuple(hulls)


def _shape(geometry: Element, robot: str, folder: Path | None) -> tuple[Floats, float]:
    """Describe a shape by points (k, 3) in its frame and a radius [m]: it is all within the radius of their hull."""
    shape = geometry.children[0] if geometry.children else geometry
    if shape.tag == "sphere":
        return np.zeros((1, 3)), shape.number("radius")
    if shape.tag == "box":
        half = 0.5 * shape.numbers("size", 3)
        return np.array(np.meshgrid(*zip(-half, half, strict=True))).reshape(3, -1).T, 0.0
    if shape.tag == "cylinder":
        radius, height = shape.number("radius"), 0.5 * shape.number("length")
        angle = 2.0 * np.pi / _SIDES * np.arange(_SIDES)
        ring = radius / np.cos(np.pi / _SIDES) * np.column_stack([np.cos(angle), np.sin(angle)])
        return np.array([[*corner, z] for corner in ring for z in (-height, height)]), 0.0
    if shape.tag == "mesh":
        return _mesh(shape, robot, folder) * shape.numbers("scale", 3, np.ones(3)), 0.0
    raise shape.error(f"<{shape.tag[:40]}> is no known shape", "Use box, cylinder, sphere or mesh.")


def _mesh(shape: Element, robot: str, folder: Path | None) -> Floats:
    """Find the file of a mesh in the folder, and read its corners (k, 3)."""
    name = shape.attribute("filename")
    if folder is None:
        raise ArgumentError(f"the body of '{robot}' is made of meshes", remedy="Name their folder: meshes=...")
    inside = name.split("://", 1)[-1].lstrip("/")  # package://arm/meshes/link.stl -> arm/meshes/link.stl
    parts = Path(inside).parts
    # the folder holds the packages, or it is the package, or the folder of meshes in the package
    for k in range(min(3, len(parts))):
        path = folder.joinpath(*parts[k:]).resolve()
        if path.is_relative_to(folder) and path.is_file():
            with shape.at():
                return read_stl(path)
    raise shape.error(f"no mesh '{inside[:80]}' in {folder}", "Name the folder that holds the packages.")


def read_stl(path: Path) -> Floats:
    """Read the corners (k, 3) of the triangles of a binary or ASCII STL file, each once, in the file's unit.

    Raises:
        DescriptionError: The file is no STL, damaged or too large.
    """
    remedy = "Convert the mesh to STL."
    if path.suffix.lower() != ".stl":
        raise DescriptionError(f"a mesh of kind '{path.suffix[:10]}' is not read", path=path, remedy=remedy)
    data = read_small(path, most=WRITTEN, error=DescriptionError, remedy=remedy)
    count = int.from_bytes(data[80:84], "little")
    if len(data) == 84 + count * _TRIANGLE.itemsize and count:
        points = np.frombuffer(data, _TRIANGLE, count, 84)["corners"].reshape(-1, 3).astype(float)
    else:
        points = _ascii_corners(data)
    if not len(points) or not np.isfinite(points).all():
        raise DescriptionError("no triangles with finite corners", path=path, remedy=remedy)
    return np.unique(points, axis=0)


def _ascii_corners(data: bytes) -> Floats:
    """Read the corners (k, 3) of an ASCII STL file; none if they are no numbers."""
    corners = re.findall(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)", data)
    try:
        return np.array(corners, dtype=bytes).astype(float).reshape(-1, 3)
    except ValueError:
        return np.zeros((0, 3))
