"""The table of robot formats: every format reads what it writes, and a new one is a module and a row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import DescriptionError, ExportError
from dynid.robot.formats import read_robot


@pytest.mark.parametrize(
    ("ending", "write"), [(".urdf", dynid.write_urdf), (".xml", dynid.write_mjcf), (".mjcf", dynid.write_mjcf)]
)
def test_every_format_reads_what_it_writes(ending: str, write: Callable[..., None], tmp_path: Path) -> None:
    robot, path = dynid.robots.scara(), tmp_path / f"arm{ending}"
    write(robot, path)
    again = read_robot(path)
    np.testing.assert_allclose(again.parameter_vector, robot.parameter_vector, atol=1e-9)
    with pytest.raises(ExportError, match="exists"):
        write(robot, path)
    write(robot, path, force=True)
    assert read_robot(path, hold={again.joint_names[0]: 0.1}).dof == robot.dof - 1


def test_unknown_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=r"\.urdf, \.xml"):
        read_robot(tmp_path / "arm.step")
    with pytest.raises(DescriptionError, match="Expand it first"):
        read_robot(tmp_path / "arm.urdf.xacro")
