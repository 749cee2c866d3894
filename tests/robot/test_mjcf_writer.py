"""Writing MJCF: the old text with new numbers, re-read by MuJoCo; fresh files; what cannot be written."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.compiled import inertia_matrix
from dynid.errors import ExportError
from dynid.robot.formats.mjcf.read import read_mjcf
from dynid.robot.formats.mjcf.write import mjcf_text, write_mjcf
from dynid.robot.formats.urdf import read_urdf, write_urdf
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import RotorInertia
from robot.test_mjcf import assert_same_inertias
from support.described import parse_mjcf, parse_urdf, tetrahedron
from support.random_robots import with_new_numbers

DATA = Path(__file__).parent / "data"
ARM = DATA / "arm.xml"


@pytest.fixture
def arm() -> Robot:
    return read_mjcf(ARM)


@pytest.fixture
def renewed(arm: Robot) -> Robot:
    return with_new_numbers(arm.with_terms(RotorInertia(), Viscous(), Coulomb()))


def compile_without_meshes(mujoco: Any, text: str) -> Any:
    return mujoco.MjModel.from_xml_string(re.sub(r'<asset>.*</asset>|<geom class="visual" mesh="hull"/>', "", text))


def assert_same_numbers(robot: Robot, mujoco: Any, model: Any) -> None:
    assert_same_inertias(robot, mujoco, model)
    expected = np.array([[m.value for m in joint.terms] for joint in robot.moving_joints])
    np.testing.assert_array_equal(
        np.column_stack([model.dof_armature, model.dof_damping, model.dof_frictionloss]), expected
    )


def test_unchanged_robot_gives_the_same_bytes(arm: Robot, tmp_path: Path) -> None:
    write_mjcf(arm, tmp_path / "same.xml")
    assert (tmp_path / "same.xml").read_bytes() == ARM.read_bytes()
    assert mjcf_text(arm.with_parameters(arm.parameter_vector)).encode() == ARM.read_bytes()


def test_mujoco_reads_the_same_numbers(renewed: Robot, mujoco: Any) -> None:
    model = compile_without_meshes(mujoco, mjcf_text(renewed))
    assert_same_numbers(renewed, mujoco, model)
    again = parse_mjcf(mjcf_text(renewed))
    np.testing.assert_allclose(again.parameter_vector, renewed.parameter_vector, rtol=1e-12, atol=1e-14)


def test_only_inertials_and_joint_friction_are_touched(renewed: Robot) -> None:
    old, new = ARM.read_text(), mjcf_text(renewed)
    changed = [line for line in difflib.ndiff(old.splitlines(), new.splitlines()) if line[0] in "+-"]
    assert changed
    assert all(re.search(r"<(inertial|joint) ", line) for line in changed)
    touched = re.compile(r'\s*<inertial[^>]*/>|\s(armature|damping|frictionloss)="[^"]*"')
    default = old.index("</default>")
    assert touched.sub("", old[default:]) == touched.sub("", new[new.index("</default>") :])
    assert old[:default] == new[: new.index("</default>")]


def test_inertia_between_joints_cannot_be_written(arm: Robot) -> None:
    theta = arm.parameter_vector.copy()
    theta[10 * arm.joint_names.index("wrist1") + 9] = 1.0
    with pytest.raises(ExportError, match="between"):
        mjcf_text(arm.with_parameters(theta))


def test_inertia_from_geoms_cannot_be_overruled(renewed: Robot) -> None:
    text = (
        ARM.read_text().replace("autolimits", 'inertiafromgeom="true" autolimits').replace('size="0.02"', 'size="0.03"')
    )
    text = text.replace('<geom class="visual" mesh="hull"/>', '<geom size="0.1"/>')
    robot = with_new_numbers(parse_mjcf(text))
    with pytest.raises(ExportError, match="inertiafromgeom"):
        mjcf_text(robot)


# --- fresh files ------------------------------------------------------------------------------------------------------


def test_fresh_file_from_urdf(mujoco: Any) -> None:
    robot = read_urdf(DATA / "arm.urdf", hold={"gripper": 0.0}, gravity=(1.0, 2.0, -9.0))
    robot = with_new_numbers(robot.with_terms(RotorInertia(), Viscous(), Coulomb()))
    text = mjcf_text(robot)
    model = mujoco.MjModel.from_xml_string(text)
    assert_same_numbers(robot, mujoco, model)
    np.testing.assert_array_equal(model.opt.gravity, robot.gravity)
    again = parse_mjcf(text)
    np.testing.assert_allclose(again.parameter_vector, robot.parameter_vector, rtol=1e-12, atol=1e-14)
    assert again.moving_joints[2].limits.effort == 300.0


@pytest.mark.parametrize("option", ["", '<option gravity="0 0 -9"/>', '<option timestep="0.001"/>'])
def test_changed_gravity_is_written(option: str) -> None:
    text = f"<mujoco>{option}<worldbody><body><joint name='j' type='hinge'/><inertial pos='0 0 1' mass='1' "
    text += "diaginertia='1 1 1'/></body></worldbody></mujoco>"
    robot = parse_mjcf(text, "text").with_gravity((0.0, 1.0, -1.6))
    again = parse_mjcf(mjcf_text(robot), "again")
    np.testing.assert_array_equal(again.gravity, [0.0, 1.0, -1.6])


DUMMY = """<robot name="r"><link name="base"/><link name="arm"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j1" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" velocity="1" effort="10"/></joint>
<link name="dummy"><inertial><mass value="{}"/><inertia ixx="{}" iyy="{}" izz="{}" ixy="0" ixz="0" iyz="0"/></inertial>
</link><joint name="j2" type="{}"><parent link="arm"/><child link="dummy"/><origin xyz="0.2 0.1 0"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" velocity="1" effort="10"/></joint></robot>"""


@pytest.mark.parametrize("kind", ["fixed", "revolute"])
@pytest.mark.parametrize(
    "numbers",
    [
        (0.001, 0, 0, 0),
        (0, 1e-3, 1e-3, 1e-3),
        (0.1, 0, 1e-3, 1e-3),
        (0.001, 1e-6, 1e-6, 1e-3),
    ],
)
def test_mujoco_accepts_dummy_links(mujoco: Any, kind: str, numbers: tuple[float, ...]) -> None:
    """Dummy links have masses and tensors that MuJoCo refuses; the robot's inertia matrix is the same."""
    robot = parse_urdf(DUMMY.format(*numbers, kind))
    text = mjcf_text(robot)
    if kind == "revolute" and not all(body.inertia.is_physical for body in robot.bodies):
        with pytest.raises(ValueError, match=r"A \+ B >= C"):  # a moving body that cannot exist: MuJoCo is right
            mujoco.MjModel.from_xml_string(text)
        return
    model = mujoco.MjModel.from_xml_string(text)
    data, M = mujoco.MjData(model), np.zeros((robot.dof, robot.dof))
    data.qpos[:] = 0.3
    mujoco.mj_forward(model, data)
    for k, unit in enumerate(np.eye(robot.dof)):
        mujoco.mj_mulM(model, data, M[k], unit)
    np.testing.assert_allclose(M, inertia_matrix(robot, np.full(robot.dof, 0.3)), atol=1e-10)


@pytest.mark.parametrize("form", ['diaginertia="1 1 1"', 'fullinertia="1 1 1 0 0 0"'])
def test_mujoco_accepts_a_link_that_was_emptied(mujoco: Any, form: str) -> None:
    """An identification may leave nothing for a link that is fixed to another one."""
    text = (
        '<mujoco><compiler inertiafromgeom="false"/><worldbody><body name="axis"><inertial pos="0 0 0.1" mass="1" '
        f'{form}/><joint name="j1" axis="0 1 0"/><body name="link" pos="0 0 0.2"><inertial pos="0 0 0" mass="2" '
        f"{form}/></body></body></worldbody></mujoco>"
    )
    robot = parse_mjcf(text)
    links = [replace(link, inertia=Inertia.zero()) if link.name == "link" else link for link in robot.links]
    emptied = replace(robot, links=tuple(links))
    written = mjcf_text(emptied)
    model = mujoco.MjModel.from_xml_string(written)
    assert model.body_mass[1:] == pytest.approx([1.0, 0.0], abs=1e-9)
    np.testing.assert_allclose(parse_mjcf(written).parameter_vector, emptied.parameter_vector, atol=1e-10)


def test_meshes_of_a_urdf_are_found_from_another_folder(mujoco: Any) -> None:
    for place in (Path("source/meshes/a"), Path("source/meshes/b")):
        place.mkdir(parents=True)
        (place / "part.stl").write_bytes(tetrahedron())
    shape = '<collision><geometry><mesh filename="{}"/></geometry></collision>'
    text = DUMMY.format(0.1, 1e-3, 1e-3, 1e-3, "revolute")
    text = text.replace('<link name="dummy">', '<link name="dummy">' + shape.format("meshes/b/part.stl"))
    text = text.replace('<link name="arm">', '<link name="arm">' + shape.format("meshes/a/part.stl"))
    Path("source/r.urdf").write_text(text)
    robot = read_urdf("source/r.urdf")
    Path("out/deep").mkdir(parents=True)
    write_urdf(robot, "out/deep/r.urdf")
    assert '"../../source/meshes/a/part.stl"' in Path("out/deep/r.urdf").read_text()
    model = mujoco.MjModel.from_xml_path("out/deep/r.urdf")
    assert model.nmesh == 2
    again = read_urdf("out/deep/r.urdf")
    np.testing.assert_array_equal(again.parameter_vector, robot.parameter_vector)
    write_urdf(again, "r.urdf")  # and back, from the copy
    assert mujoco.MjModel.from_xml_path("r.urdf").nmesh == 2
    write_urdf(robot, "source/same.urdf")
    assert Path("source/same.urdf").read_text() == text


@pytest.mark.parametrize("compiler", ["", '<compiler meshdir="meshes"/>', '<compiler angle="radian"/>'])
def test_assets_of_an_mjcf_are_found_from_another_folder(mujoco: Any, compiler: str) -> None:
    Path("source/meshes").mkdir(parents=True)
    Path("source/meshes/part.stl").write_bytes(tetrahedron())
    name = "part.stl" if "meshdir" in compiler else "meshes/part.stl"
    text = (
        f'<mujoco>{compiler}<asset><mesh name="part" file="{name}"/></asset><worldbody><body>'
        '<inertial pos="0 0 0.1" mass="1" diaginertia="0.1 0.1 0.1"/><joint name="j1" axis="0 1 0"/>'
        '<geom type="mesh" mesh="part"/></body></worldbody></mujoco>'
    )
    Path("source/r.xml").write_text(text)
    robot = read_mjcf("source/r.xml")
    Path("out").mkdir()
    write_mjcf(robot, "out/r.xml")
    assert mujoco.MjModel.from_xml_path("out/r.xml").nmesh == 1
    write_mjcf(robot, "source/same.xml")
    assert Path("source/same.xml").read_text() == text
