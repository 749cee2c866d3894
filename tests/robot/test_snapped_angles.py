"""Rounded right angles of URDF files are taken as exact, where the digits say so; the text of the file is kept."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.robot.formats.urdf import exact_angle, snapped_joints, urdf_text
from support.described import parse_urdf


def rounded(text: str, digits: int) -> str:
    """The text with all angles of origins rounded."""
    return re.sub(r'rpy="([^"]*)"', lambda m: f'rpy="{" ".join(f"{float(x):.{digits}f}" for x in m[1].split())}"', text)


@pytest.mark.parametrize("digits", [3, 4])
@pytest.mark.parametrize("name", ["panda", "ur10"])
def test_rounded_files_have_the_base_parameters_of_exact_ones(name: str, digits: int) -> None:
    robot = dynid.robots.get(name)
    text = rounded(urdf_text(robot), digits)
    read = parse_urdf(text)
    assert dynid.base_parameters(read).rank == dynid.base_parameters(robot).rank
    np.testing.assert_allclose(read.bodies[3].R_parent_joint, robot.bodies[3].R_parent_joint, atol=1e-12)
    assert snapped_joints(read)
    assert urdf_text(read) == text  # byte for byte
    changed = read.with_parameters(1.1 * read.parameter_vector)
    angles = re.compile(r'<joint.*?rpy="([^"]*)"', re.DOTALL)
    assert angles.findall(urdf_text(changed)) == angles.findall(text)


def test_without_snapping_there_are_more_parameters_and_a_note() -> None:
    """An arm under a ceiling: with 3.1416 rad its first axis is not vertical, and the first link has two more."""
    text = rounded(urdf_text(dynid.robots.panda()), 4)
    head, tail = text[: text.index("<joint")], text[text.index("<joint") :]
    text = head + re.sub(r'rpy="[^"]*"', 'rpy="3.1416 0 0"', tail, count=1)
    as_written = parse_urdf(text, snap=False)
    assert dynid.base_parameters(as_written).rank > dynid.base_parameters(parse_urdf(text)).rank
    assert not snapped_joints(as_written)
    (finding,) = dynid.check_robot(parse_urdf(text)).about("unusual-geometry")
    assert "taken as exact" in finding.message


@pytest.mark.parametrize(
    ("text", "exact"),
    [("1.57", True), ("1.5707", True), ("1.5708", True), ("-3.14", True), ("-3.1416", True), ("4.71239", True),
     ("-3.67e-06", True), ("1.571432", False), ("1.5", False), ("1.5716", False), ("0.785", False), ("0.001", False),
     ("1.56", False), ("2", False)],
)  # fmt: skip
def test_which_angles_are_meant_to_be_right(text: str, exact: bool) -> None:
    found = exact_angle(text, float(text))
    turns = found / (np.pi / 2)
    assert (abs(turns - round(turns)) < 1e-15) == exact
    assert exact or found == float(text)


def test_the_command_line_says_it_once_and_can_leave_it(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from dynid.cli import main

    path = tmp_path / "arm.urdf"
    path.write_text(rounded(urdf_text(dynid.robots.puma560()), 4), encoding="utf-8")
    snapped = CliRunner().invoke(main, ["base", str(path), "--json"])
    assert " ".join(snapped.stderr.split()).count("taken as exact") == 1
    written = CliRunner().invoke(main, ["base", str(path), "--json", "--no-snap"])
    assert written.exit_code == 0
    assert "taken as exact" not in written.stderr
    assert snapped.stdout != written.stdout
