"""Robots from the text of a description, as from a file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

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
