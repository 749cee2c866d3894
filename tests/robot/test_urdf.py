"""Reading URDF: conventions, limits, friction, held joints, and agreement with Pinocchio on real files."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import ArgumentError, DescriptionError
from dynid.robot.formats.urdf import read_urdf
from dynid.robot.model import Robot
from dynid.robot.parts import JointLimits
from dynid.terms.friction import Coulomb, Viscous
from support.described import parse_urdf

ARM = Path(__file__).parent / "data" / "arm.urdf"
HELD = {"gripper": 0.01}


@pytest.fixture
def arm() -> Robot:
    return read_urdf(ARM, hold=HELD)


def test_structure(arm: Robot) -> None:
    assert arm.name == "arm"
    assert arm.joint_names == ("shoulder", "elbow", "reach")
    assert [joint.kind for joint in arm.moving_joints] == ["revolute", "continuous", "prismatic"]
    assert arm.root == "base_link"
    assert [name for name, _ in arm.bodies[2].members] == ["slider", "flange", "tool", "finger"]
    assert arm.source.format == "urdf"
    assert arm.source.text.encode() == ARM.read_bytes()
    np.testing.assert_array_equal(arm.gravity, [0, 0, -9.81])


def test_limits(arm: Robot) -> None:
    shoulder, elbow, reach = (joint.limits for joint in arm.moving_joints)
    assert shoulder == JointLimits(lower=-2.5, upper=2.6, velocity=3.1, effort=120, acceleration=7)
    assert elbow == JointLimits()
    assert reach == JointLimits(lower=0, upper=0.5, velocity=1, effort=300)


def test_terms_stand_only_where_the_file_has_them(arm: Robot) -> None:
    assert [joint.terms for joint in arm.moving_joints] == [(Viscous(0.5), Coulomb(1.25)), (Coulomb(0.75),), ()]


def test_locked_joint_stays_at_its_position(arm: Robot) -> None:
    gripper = next(joint for joint in arm.joints if joint.name == "gripper")
    assert gripper.kind == "fixed"
    np.testing.assert_allclose(gripper.T_parent_joint[:3, 3], [0, 0.03, 0.05])


@pytest.mark.parametrize("kind", ["floating", "planar"])
def test_free_joints_can_only_be_locked_at_zero(kind: str) -> None:
    text = _two_links("", kind=kind)
    with pytest.raises(DescriptionError, match=f"{kind} joints are not supported"):
        parse_urdf(text)
    with pytest.raises(DescriptionError):
        parse_urdf(text, hold={"j": 1.0})
    assert parse_urdf(text, hold={"j": 0.0}).dof == 0


def test_mimic_joint_is_refused_with_the_way_out() -> None:
    with pytest.raises(DescriptionError, match="mimic") as caught:
        read_urdf(ARM)
    assert caught.value.path == str(ARM)
    assert "joint 'gripper'" in str(caught.value.place)
    assert "hold={'gripper': 0.0}" in str(caught.value.remedy)


@pytest.mark.parametrize("hold", [{"nobody": 0.0}, {"gripper": float("nan")}])
def test_wrong_hold_is_an_argument_error(hold: dict[str, float]) -> None:
    with pytest.raises(ArgumentError):
        read_urdf(ARM, hold=hold)


# --- against Pinocchio ------------------------------------------------------------------------------------------------

ROBOTS = (
    *("ur_description/urdf/ur5_robot", "tiago_description/robots/tiago", "so_arm_description/urdf/so100"),
    *("baxter_description/urdf/baxter", "icub_description/robots/icub", "go2_description/urdf/go2"),
)


def example_urdf(name: str) -> Path:
    """A file of example-robot-data; the test is skipped where that is not installed."""
    try:
        files = metadata.files("example-robot-data") or []
    except metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    path = next((file.locate() for file in files if file.as_posix().endswith(f"robots/{name}.urdf")), None)
    if path is None or not Path(path).exists():
        pytest.skip(f"example-robot-data has no {name}")
    return Path(path)


def read_with_mimics_held(path: Path) -> tuple[Robot, dict[str, float]]:
    """Read a file as the remedies of the errors say."""
    hold: dict[str, float] = {}
    while True:
        try:
            return read_urdf(path, hold=hold, snap=False), hold
        except DescriptionError as error:
            if "hold=" not in str(error.remedy):
                raise
            hold[str(error.remedy).split("'")[1]] = 0.0


@pytest.mark.parametrize("name", ROBOTS)
def test_agrees_with_pinocchio(name: str) -> None:
    pin = pytest.importorskip("pinocchio")
    path = example_urdf(name)
    robot, hold = read_with_mimics_held(path)
    full = pin.buildModelFromXML(path.read_text(encoding="utf-8"))
    held = [full.getJointId(joint) for joint in hold if full.existJointName(joint)]
    model = pin.buildReducedModel(full, held, pin.neutral(full)) if held else full
    assert sorted(robot.joint_names) == sorted(list(model.names)[1:])
    assert robot.joint_names
    for body in robot.bodies:
        index = model.getJointId(body.joint.name)
        placement, inertia = model.jointPlacements[index], model.inertias[index]
        parent = 0 if body.parent < 0 else model.getJointId(robot.joint_names[body.parent])
        assert model.parents[index] == parent
        np.testing.assert_allclose(body.R_parent_joint, placement.rotation, atol=1e-13)
        np.testing.assert_allclose(body.p_parent_joint, placement.translation, atol=1e-13)
        # Pinocchio keeps no centre of mass for a body without mass, so its tensor is about an arbitrary point
        if body.inertia.mass > 1e-9:
            assert body.inertia.mass == pytest.approx(inertia.mass, rel=1e-13)
            scale = np.abs(body.inertia.about_origin).max()
            np.testing.assert_allclose(body.inertia.first_moment, inertia.mass * inertia.lever, atol=1e-13)
            shifted = inertia.inertia - inertia.mass * pin.skew(inertia.lever) @ pin.skew(inertia.lever)
            np.testing.assert_allclose(body.inertia.about_origin, shifted, atol=1e-12 * scale)


# --- wrong files ------------------------------------------------------------------------------------------------------


def _two_links(inside: str, kind: str = "revolute", link: str = "") -> str:
    joint = f'<joint name="j" type="{kind}"><parent link="a"/><child link="b"/>{inside}</joint>'
    return f'<robot name="r"><link name="a"/><link name="b">{link}</link>{joint}</robot>'


def _inertial(mass: str = "1", ixx: str = "1", origin: str = "") -> str:
    tensor = f'<inertia ixx="{ixx}" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    return f'<inertial>{origin}<mass value="{mass}"/>{tensor}</inertial>'


WRONG = """
_two_links("", link=_inertial(mass="nan")) -> link 'b' <mass> -> finite
_two_links("", link=_inertial(mass="1e400")) -> link 'b' <mass> -> below 1e+30
_two_links("", link="<inertial/>") -> link 'b' <inertial> -> <mass> is missing
_two_links("", link=_inertial(ixx="1 2")) -> link 'b' <inertia> -> 2 values
_two_links("", link=_inertial(origin='<origin xyz="0 1"/>')) -> link 'b' <origin> -> 2 values, not 3 numbers
_two_links('<axis xyz="0 0 0"/>') -> joint 'j' -> axis
_two_links('<axis xyz="${x} 0 0"/>') -> joint 'j' <axis> -> ${x}
_two_links('<limit lower="1" upper="-1"/>') -> joint 'j' <limit> -> exceeds the upper limit
_two_links("", kind="screw") -> joint 'j' -> screw
'<robot><link name="a"/><joint name="j" type="fixed"/></robot>' -> joint 'j' -> <parent>
_two_links("").replace('<link name="a"/>', "") -> joint 'j' -> 'a' does not exist
"<robot><link/></robot>" -> <link> -> 'name' is missing
'<robot><link name="a"/><link name="a"/></robot>' -> link 'a' -> 2 links
'<robot><link name="a"/><link name="b"/></robot>' -> <robot> -> 2 links have no parent
"<robot/>" -> <robot> -> no links
"<sdf/>" -> <sdf> -> not a URDF
"<mujoco/>" -> <mujoco> -> not a URDF
'<robot><xacro:macro name="m"/></robot>' -> xacro:macro 'm' -> xacro
"""
"""File -> place and reason of its refusal."""


@pytest.mark.parametrize("case", WRONG.strip().splitlines())
def test_wrong_files_are_refused_with_place_reason_and_remedy(case: str) -> None:
    text, place, reason = case.split(" -> ")
    with pytest.raises(DescriptionError) as caught:
        parse_urdf(eval(text), "wrong.urdf")
    error = caught.value
    assert error.path.endswith("wrong.urdf")
    assert place in str(error.place)
    assert reason in error.reason
    assert error.remedy
