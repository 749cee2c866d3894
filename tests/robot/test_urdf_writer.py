"""Writing URDF: the old text with new numbers, re-read by Pinocchio and MuJoCo; fresh files; what is refused."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import DescriptionError, ExportError
from dynid.robot.formats.urdf import read_urdf, urdf_text, write_urdf
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, JointLimits, Link
from dynid.terms.friction import Coulomb, Viscous
from support.described import parse_urdf
from support.random_robots import with_new_numbers

ARM = Path(__file__).parent / "data" / "arm.urdf"
HELD = {"gripper": 0.0}
FRICTION = (Viscous(), Coulomb())


@pytest.fixture
def arm() -> Robot:
    return read_urdf(ARM, hold=HELD)


@pytest.fixture
def renewed(arm: Robot) -> Robot:
    return with_new_numbers(arm.with_terms(*FRICTION))


def test_changed_limits_are_written(arm: Robot, tmp_path: Path) -> None:
    name = arm.joint_names[0]
    limits = JointLimits(lower=-0.5, upper=0.25, velocity=1.5, acceleration=7.0, effort=12.0)
    write_urdf(arm.with_limits({name: limits}), tmp_path / "narrow.urdf")
    again = read_urdf(tmp_path / "narrow.urdf", hold=HELD)
    assert again.moving_joints[0].limits == limits


@pytest.mark.parametrize(
    "change", [str, lambda t: t.replace("\n", "\r\n"), lambda t: "\ufeff" + t, lambda t: t + "\n<!-- -->"]
)
def test_an_unchanged_robot_gives_the_same_bytes(change: Callable[[str], str], tmp_path: Path) -> None:
    """With all line ends and a byte order mark."""
    text = change(ARM.read_text(encoding="utf-8"))
    robot = parse_urdf(text, hold=HELD)
    write_urdf(robot.with_parameters(robot.parameter_vector), tmp_path / "same.urdf")
    assert (tmp_path / "same.urdf").read_bytes() == text.encode()
    again = urdf_text(with_new_numbers(robot))
    assert again.count("\r\n") == again.count("\n") * ("\r\n" in text)


def test_only_inertials_and_dynamics_are_touched(renewed: Robot) -> None:
    old, new = ARM.read_text(encoding="utf-8").splitlines(), urdf_text(renewed).splitlines()
    changed = [line for line in difflib.ndiff(old, new) if line[0] in "+-"]
    assert changed
    numbers = r"<(inertial|/inertial|origin|mass|inertia|dynamics)\b|ixx|iyy"
    assert all(re.search(numbers, line) for line in changed)
    outside = re.compile(r"<inertial.*?</inertial>|<dynamics[^>]*/>\s*", re.DOTALL)
    assert re.sub(r"\s+", " ", outside.sub("", "\n".join(old))) == re.sub(r"\s+", " ", outside.sub("", "\n".join(new)))


def test_a_link_that_gains_inertia_gets_an_inertial(arm: Robot) -> None:
    tool = Inertia.from_com(1.0, [0.1, 0, 0], np.diag([0.01, 0.02, 0.02]))
    links = tuple(replace(link, inertia=tool) if link.name in ("flange", "base_link") else link for link in arm.links)
    again = parse_urdf(urdf_text(replace(arm, links=links)), hold=HELD)
    np.testing.assert_allclose(again.link("flange").inertia.vector, tool.vector, rtol=1e-14)
    np.testing.assert_allclose(again.link("base_link").inertia.vector, tool.vector, rtol=1e-14)


# --- re-read by others ------------------------------------------------------------------------------------------------


def test_pinocchio_reads_the_same_inertias(renewed: Robot) -> None:
    pin = pytest.importorskip("pinocchio")
    full = pin.buildModelFromXML(urdf_text(renewed))
    model = pin.buildReducedModel(full, [full.getJointId("gripper")], pin.neutral(full))
    for body in renewed.bodies:
        index = model.getJointId(body.joint.name)
        dynamic = model.inertias[index].toDynamicParameters()  # m, mc, Ixx Ixy Iyy Ixz Iyz Izz about the origin
        vector = body.inertia.vector
        assert dynamic[0] == pytest.approx(vector[9], rel=1e-12)
        np.testing.assert_allclose(dynamic[1:4], vector[6:9], rtol=1e-12, atol=1e-13)
        scale = np.abs(vector[:6]).max()
        np.testing.assert_allclose(dynamic[[4, 5, 7, 6, 8, 9]], vector[:6], rtol=0, atol=1e-12 * scale)
        viscous, coulomb = (model.value for model in body.joint.terms)
        column = model.joints[index].idx_v
        assert model.damping[column] == viscous
        assert model.upperDryFrictionLimit[column] == coulomb


# --- fresh files ------------------------------------------------------------------------------------------------------


def test_fresh_file_is_the_same_robot(renewed: Robot) -> None:
    again = parse_urdf(urdf_text(replace(renewed, source=None)))
    assert again.joint_names == renewed.joint_names
    np.testing.assert_allclose(again.parameter_vector, renewed.parameter_vector, rtol=1e-12, atol=1e-15)
    for ours, theirs in zip(renewed.joints, again.joints, strict=True):
        np.testing.assert_allclose(theirs.T_parent_joint, ours.T_parent_joint, atol=1e-14)
        np.testing.assert_allclose(theirs.axis, ours.axis if ours.moves else theirs.axis, atol=1e-15)
        assert (theirs.kind, theirs.limits) == (ours.kind, ours.limits)


@pytest.mark.parametrize("name", ["a\"<b>&'c", "tab\tstop", "größe 関節", "--> ]]>"])
def test_names_are_escaped(name: str) -> None:
    links = (Link(name=name), Link(name=name + "2"))
    joint = Joint(name=name, kind="continuous", parent=name, child=name + "2")
    again = parse_urdf(urdf_text(Robot(name=name, links=links, joints=(joint,))))
    assert (again.name, again.joint_names, again.root) == (name, (name,), name)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_names_of_several_lines_are_refused() -> None:
    with pytest.raises(DescriptionError, match=r"^link 'arm\\nnext: rm': the name has several lines"):
        Robot(name="arm", links=(Link(name="arm\nnext: rm"),), joints=())


def test_moment_without_mass_is_refused(arm: Robot) -> None:
    odd = Inertia(mass=0.0, first_moment=np.ones(3), about_origin=np.eye(3))
    links = tuple(replace(link, inertia=odd) if link.name == "fore" else link for link in arm.links)
    with pytest.raises(ExportError, match="without mass"):
        urdf_text(replace(arm, links=links))


def test_names_xml_cannot_hold_are_refused() -> None:
    with pytest.raises(ExportError, match="XML cannot hold"):
        urdf_text(Robot(name="r", links=(Link(name="a\x00b"),), joints=()))


def test_a_comment_states_gravity_that_the_file_cannot_hold(arm: Robot) -> None:
    """Once, whatever is read and written again; and none where gravity is the usual one."""
    comment = "<!-- gravity (0, 0, 9.81) m/s^2, which the format does not hold: set it where the file is loaded -->"
    for upright in (arm, replace(arm, source=None)):
        ceiling = upright.with_gravity((0.0, 0.0, 9.81))
        text = urdf_text(ceiling)
        assert text.count(comment) == 1
        assert text.index(comment) < text.index("<link")
        again = parse_urdf(text, hold=HELD)
        assert urdf_text(again.with_gravity(ceiling.gravity)) == text
        assert urdf_text(again) == urdf_text(upright)
        assert "gravity" not in urdf_text(upright.with_gravity((0.0, 0.0, -9.81)))
        assert "gravity (1, 0, -9.7)" in urdf_text(again.with_gravity((1.0, 0.0, -9.7)))
