"""Robots from the text of a description, as from a file, and a mesh for them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dynid.robot.formats.mjcf.read import read_mjcf
from dynid.robot.formats.urdf import read_urdf
from dynid.robot.model import Robot


def parse_urdf(text: str, name: str = "text.urdf", **options: Any) -> Robot:
    """The robot of a URDF."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return read_urdf(path, **options)


def parse_mjcf(text: str, name: str = "text.xml", **options: Any) -> Robot:
    """The robot of an MJCF."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return read_mjcf(path, **options)


def tetrahedron(size: float = 1.0) -> bytes:
    """A binary STL."""
    corners = size * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype="<f4")
    faces = [corners[list(face)] for face in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))]
    return bytes(80) + np.uint32(4).tobytes() + b"".join(bytes(12) + face.tobytes() + bytes(2) for face in faces)
