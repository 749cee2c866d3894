"""Angles in degrees, joints held beyond their limits and negative masses are said, each with a remedy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import ArgumentError, ExportError

URDF = """<robot name="two"><link name="base"/>
<link name="a"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="slew" type="revolute"><parent link="base"/><child link="a"/><origin rpy="0 0 {angle}"/><axis xyz="0 0 1"/>
<limit lower="-2.6" upper="2.6" velocity="1" effort="1"/></joint>
<joint name="lift" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
<limit lower="0.1" upper="0.6" velocity="1" effort="1"/></joint></robot>"""


def write(folder: Path, angle: str) -> Path:
    path = folder / "two.urdf"
    path.write_text(URDF.replace("{angle}", angle), encoding="utf-8")
    return path


@pytest.mark.parametrize(("angle", "told"), [("90", True), ("-180", True), ("1.5708", False), ("6.2832", False)])
def test_angles_in_degrees_are_named(tmp_path: Path, angle: str, told: bool) -> None:
    found = dynid.check_robot(dynid.read_urdf(write(tmp_path, angle))).about("unusual-geometry")
    assert any(finding.severity == "warning" for finding in found) is told
    if told:
        assert found[0].where == "joint 'slew'"
        assert "radians" in found[0].remedy


def test_joints_are_held_within_their_limits(tmp_path: Path) -> None:
    path = write(tmp_path, "0")
    with pytest.raises(ArgumentError, match=r"'lift' cannot be held at 60 m: its limits are 0\.1 and 0\.6 m"):
        dynid.read_urdf(path, hold={"lift": 60.0})
    with pytest.raises(ArgumentError, match=r"'slew' cannot be held at 90 rad: its limits are -2\.6 and 2\.6 rad"):
        dynid.read_urdf(path, hold={"slew": 90.0})
    for position in (0.0, 0.1, 0.6):
        assert dynid.read_urdf(path, hold={"lift": position}).dof == 1


def test_negative_masses_are_not_written_without_a_word(tmp_path: Path) -> None:
    robot = dynid.read_urdf(write(tmp_path, "0"))
    negative = robot.with_parameters(-robot.parameter_vector)
    out = tmp_path / "out.urdf"
    with pytest.raises(ExportError, match="the mass of a, b is negative"):
        dynid.write_urdf(negative, out)
    assert not out.exists()
    dynid.write_urdf(negative, out, allow_unphysical=True)
    assert dynid.read_urdf(out).links[1].inertia.mass == -2.0
    assert "the mass of a, b is negative" in dynid.generate_c(negative, ["gravity"]).warnings[0]
    with pytest.raises(ArgumentError, match="the mass of a, b is negative"):
        dynid.forward_dynamics(negative, np.zeros(2), np.zeros(2), np.zeros(2))
