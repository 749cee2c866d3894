"""Read robots from files of any known format: the table of formats, of which each has a module or folder here.

A new format is one new module with a reader, and one row in `FORMATS`; whatever takes a robot file, also the command
line, asks the table.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dynid.errors import DescriptionError

if TYPE_CHECKING:
    from dynid.robot.model import Robot


class RobotFormat(NamedTuple):
    """One row of the table; the reader is loaded at its first use."""

    name: str
    """Name in messages."""
    endings: tuple[str, ...]
    """Endings of such files, in lower case."""
    module: str
    """Module of the reader."""
    reader: str
    """Name of the function ``read(path, *, hold=None) -> Robot`` in that module."""


FORMATS: tuple[RobotFormat, ...] = (
    RobotFormat("URDF", (".urdf",), "dynid.robot.formats.urdf", "read_urdf"),
    RobotFormat("MJCF", (".xml", ".mjcf"), "dynid.robot.formats.mjcf.read", "read_mjcf"),
    RobotFormat("table of DH rows", (".toml",), "dynid.robot.formats.dh_table", "read_dh"),
)
"""Every format of robot files."""


def format_of(path: str | os.PathLike[str]) -> RobotFormat | None:
    """Find the format of a file by its ending; None if no format has that ending."""
    ending = Path(path).suffix.lower()
    return next((row for row in FORMATS if ending in row.endings), None)


def is_robot_file(path: str | os.PathLike[str]) -> bool:
    """Whether the ending of a file says that it describes a robot, even if it cannot be read as it is (xacro)."""
    return Path(path).suffix.lower() == ".xacro" or format_of(path) is not None


def read_robot(path: str | os.PathLike[str], *, hold: Mapping[str, float] | None = None) -> Robot:
    """Read a robot from a file of any known format.

    Args:
        path: The file; its ending decides the format.
        hold: Joint name -> position [rad or m] at which the joint is fixed.

    Raises:
        DescriptionError: No format has that ending, or the file is wrong; the error says what to do.

    Example:
        >>> dynid.robot.read_robot(folder / "box.urdf").dof
        1
    """
    if Path(path).suffix.lower() == ".xacro":
        plain = Path(path).with_suffix("").name.removesuffix(".urdf") + ".urdf"
        raise DescriptionError(
            "a xacro file is a program that writes a URDF", path=path, remedy=f"Expand it first: xacro {path} > {plain}"
        )
    row = format_of(path)
    if row is None:
        known = ", ".join(ending for row in FORMATS for ending in row.endings)
        raise DescriptionError("the ending is not that of a robot file", path=path, remedy=f"Known endings: {known}.")
    robot: Robot = getattr(import_module(row.module), row.reader)(path, hold=hold)
    return robot


def joints_in_file(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """List the names of the joints in a robot file that may move, mimic joints included.

    An XML file may have faults for which `read_robot` refuses it.

    Raises:
        DescriptionError: The file is no XML, or is no robot file.
    """
    row = format_of(path)
    if row is None or row.name == "table of DH rows":
        return read_robot(path).joint_names
    from dynid.robot.formats.xml import read_document

    found = (element for element in read_document(path).root.walk() if element.tag == "joint" and element.name)
    return tuple(dict.fromkeys(element.name for element in found if element.attributes.get("type") != "fixed"))
