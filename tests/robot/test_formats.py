"""The table of robot formats: every format reads what it writes, and a new one is a module and a row."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dynid
from dynid.cli import main
from dynid.errors import DescriptionError, ExportError
from dynid.robot import formats
from dynid.robot.formats import FORMATS, RobotFormat, is_robot_file, read_robot, write_robot

MODULE = """
import json

from dynid import DH, Robot, from_dh
from dynid.robot import modified_dh


def read_rows(path, *, hold=None):
    assert not hold
    with open(path) as file:
        return from_dh([DH(**row) for row in json.load(file)], name="rows")


def write_rows(robot, path, *, force=False):
    rows = [dict(alpha=r.alpha, d=r.d, theta=r.theta, r=r.r, sigma=r.sigma) for r in modified_dh(robot).rows]
    with open(path, "w" if force else "x") as file:
        json.dump(rows, file)
"""


@pytest.mark.parametrize("ending", [ending for row in FORMATS if row.writer for ending in row.endings])
def test_every_format_reads_what_it_writes(ending: str, tmp_path: Path) -> None:
    robot = dynid.robots.scara().with_terms(dynid.RotorInertia(0.5))
    path = tmp_path / f"arm{ending}"
    write_robot(robot, path)
    again = read_robot(path)
    q = np.random.default_rng(1).normal(size=robot.dof)
    expected = dynid.inertia_matrix(robot.with_terms(), q)
    np.testing.assert_allclose(dynid.inertia_matrix(again.with_terms(), q), expected, atol=1e-9)
    with pytest.raises(ExportError, match="exists"):
        write_robot(robot, path)
    write_robot(robot, path, force=True)
    assert read_robot(path, hold={again.joint_names[0]: 0.1}).dof == robot.dof - 1


def test_a_new_format_is_one_module_and_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dh_rows.py").write_text(MODULE)
    row = RobotFormat(name="rows", endings=(".rows",), reader="dh_rows.read_rows", writer="dh_rows.write_rows")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, row))
    robot = dynid.robots.puma560()
    path = tmp_path / "arm.rows"
    write_robot(robot, path)
    assert is_robot_file(path)
    assert dynid.base_parameters(read_robot(path)).rank == 36
    result = CliRunner().invoke(main, ["base", str(path)])
    assert result.exit_code == 0, result.output
    assert "ZZR1" in result.output
    sys.modules.pop("dh_rows")


def test_unknown_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=r"\.urdf, \.xml"):
        read_robot(tmp_path / "arm.step")
    with pytest.raises(ExportError, match=r"\.urdf, \.xml"):
        write_robot(dynid.robots.scara(), tmp_path / "arm.step")
    with pytest.raises(DescriptionError, match="Expand it first"):
        read_robot(tmp_path / "arm.urdf.xacro")
