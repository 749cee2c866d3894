"""Reading MJCF: agreement with MuJoCo on poses, inertias, terms; what is refused and what is skipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.dynamics.kinematics import link_poses
from dynid.errors import ArgumentError, DescriptionError
from dynid.robot.formats.mjcf.read import read_mjcf
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import RotorInertia
from support.described import parse_mjcf

ARM = Path(__file__).parent / "data" / "arm.xml"
VISUALS = ('<asset><mesh name="hull" file="../../../etc/passwd"/></asset>', '<geom class="visual" mesh="hull"/>')


@pytest.fixture
def arm() -> Robot:
    return read_mjcf(ARM)


def without_visuals(text: str) -> str:
    """MuJoCo would open the mesh."""
    for part in VISUALS:
        text = text.replace(part, "")
    return text


def assert_same_inertias(robot: Robot, mujoco: Any, model: Any) -> None:
    for index in range(1, model.nbody):
        if not model.body_mass[index] > 1e-9:
            continue
        inertia, R = robot.link(model.body(index).name).inertia, np.zeros(9)
        mujoco.mju_quat2Mat(R, model.body_iquat[index])
        tensor = R.reshape(3, 3) @ np.diag(model.body_inertia[index]) @ R.reshape(3, 3).T
        assert inertia.mass == pytest.approx(model.body_mass[index], rel=1e-12)
        np.testing.assert_allclose(inertia.com, model.body_ipos[index], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(inertia.about_com, tensor, rtol=0, atol=1e-12 * np.abs(tensor).max())


def test_structure(arm: Robot) -> None:
    assert arm.name == "arm"
    assert arm.root == "world"
    assert arm.joint_names == ("shoulder", "elbow", "wrist1", "wrist2", "wrist3", "tip_joint1", "side")
    assert [joint.kind for joint in arm.moving_joints] == [
        *("revolute", "revolute", "continuous", "continuous", "prismatic", "continuous", "prismatic")
    ]
    massless = [link.name for link in arm.links if not link.inertia.mass]
    assert massless == ["world", "elbow_frame", "wrist1_frame", "wrist2_frame"]


def test_poses_agree_with_mujoco(arm: Robot, mujoco: Any) -> None:
    model = mujoco.MjModel.from_xml_string(without_visuals(ARM.read_text()))
    data = mujoco.MjData(model)
    for q in np.random.default_rng(0).uniform(-2, 2, size=(20, arm.dof)):
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        poses = link_poses(arm, q)
        for index in range(model.nbody):
            T = poses[model.body(index).name]
            np.testing.assert_allclose(T[:3, 3], data.xpos[index], atol=1e-13)
            np.testing.assert_allclose(T[:3, :3], data.xmat[index].reshape(3, 3), atol=1e-13)


def test_numbers_agree_with_mujoco(arm: Robot, mujoco: Any) -> None:
    model = mujoco.MjModel.from_xml_string(without_visuals(ARM.read_text()))
    assert_same_inertias(arm, mujoco, model)
    np.testing.assert_array_equal(arm.gravity, model.opt.gravity)
    kinds = {RotorInertia: model.dof_armature, Viscous: model.dof_damping, Coulomb: model.dof_frictionloss}
    for column, joint in enumerate(arm.moving_joints):
        assert model.joint(column).name in (joint.name, "")
        present = {type(m): m.value for m in joint.terms}
        assert all(present.get(kind, 0.0) == values[column] for kind, values in kinds.items())
        if model.jnt_limited[column]:
            np.testing.assert_allclose([joint.limits.lower, joint.limits.upper], model.jnt_range[column])
        else:
            assert np.isinf([joint.limits.lower, joint.limits.upper]).all()


def test_efforts_come_from_the_joint_or_its_motor(arm: Robot) -> None:
    efforts = {joint.name: joint.limits.effort for joint in arm.moving_joints}
    assert efforts["shoulder"] == 50.0
    assert efforts["elbow"] == 50.0
    assert efforts["side"] == np.inf


GEOMS = (
    '<geom size="0.1"/>',
    '<geom type="box" size="0.1 0.2 0.3" euler="10 20 30" pos="1 2 3"/>',
    '<geom type="cylinder" size="0.1 0.2" density="300" axisangle="1 2 3 40"/>',
    '<geom type="capsule" size="0.1 0.2" mass="2" xyaxes="1 2 3 3 2 0"/>',
    '<geom type="capsule" size="0.1" fromto="0 0 0 0.1 -0.4 0.3"/>',
    '<geom type="cylinder" size="0.1" fromto="0 0 1 0 0 0"/>',
    '<geom type="box" size="0.1" fromto="0 0 0 0.3 0.4 0"/>',
    '<geom type="ellipsoid" size="0.1" fromto="0 0 0 0.3 0.4 0"/>',
    '<geom type="ellipsoid" size="0.1 0.2 0.3" zaxis="0 0 -2"/><geom pos="0 0 1" size="0.2"/>',
    '<geom size="0.1" group="4"/><geom size="0.2" pos="0 0 1"/>',
    '<frame euler="0 90 0"><frame pos="0 0 1" quat="1 1 0 0"><geom size="2" pos="1 0 0"/></frame></frame>',
)


@pytest.mark.parametrize("geom", GEOMS)
@pytest.mark.parametrize("compiler", ['angle="radian" eulerseq="XYZ"', 'inertiagrouprange="0 3"', 'eulerseq="zXy"'])
def test_inertia_from_geoms(geom: str, compiler: str, mujoco: Any) -> None:
    body = f'<body name="b"><joint/>{geom}</body>'
    text = f"<mujoco><compiler {compiler}/><worldbody>{body}</worldbody></mujoco>"
    assert_same_inertias(parse_mjcf(text), mujoco, mujoco.MjModel.from_xml_string(text))


INERTIAL = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'


def one_body(inside: str = "<joint name='j'/>", around: str = "", body: str = "", inertial: str = INERTIAL) -> str:
    world = f'<worldbody><body name="b" {body}>{inertial}{inside}</body></worldbody>'
    return f"<mujoco>{around}{world}</mujoco>"


@pytest.mark.parametrize("mode", ["true", "auto", "false"])
@pytest.mark.parametrize("geom", ["", '<geom size="1" mass="0"/>', '<geom size="1" mass="3"/>'])
def test_masses_are_those_of_mujoco_whatever_inertiafromgeom_says(mode: str, geom: str, mujoco: Any) -> None:
    text = one_body(f"<joint/>{geom}", f'<compiler inertiafromgeom="{mode}"/>')
    assert parse_mjcf(text).bodies[0].inertia.mass == mujoco.MjModel.from_xml_string(text).body_mass[1]


def test_defaults_follow_class_and_childclass() -> None:
    default = """<default><joint damping="1"/><default class="a"><joint armature="2"/>
        <default class="b"><joint damping="3"/></default></default></default>"""
    cases = {
        ("<joint/>", ""): (Viscous(1.0),),
        ("<joint/>", 'childclass="a"'): (RotorInertia(2.0), Viscous(1.0)),
        ('<joint class="b"/>', 'childclass="a"'): (RotorInertia(2.0), Viscous(3.0)),
        ('<joint class="main"/>', 'childclass="b"'): (Viscous(1.0),),
        ('<joint damping="0"/>', 'childclass="b"'): (RotorInertia(2.0),),
        ('<frame childclass="b"><joint/></frame>', ""): (RotorInertia(2.0), Viscous(3.0)),
    }
    for (inside, body), models in cases.items():
        assert parse_mjcf(one_body(inside, default, body)).moving_joints[0].terms == models


@pytest.mark.parametrize(
    ("joint", "compiler", "limits"),
    [
        ('range="-90 90"', "", (-np.pi / 2, np.pi / 2)),
        ('range="-1 1"', 'angle="radian"', (-1, 1)),
        ('range="-1 1" type="slide"', "", (-1, 1)),
        ('range="-1 1" limited="false"', "", (-np.inf, np.inf)),
        ('range="-1 1" type="slide"', 'autolimits="false"', (-np.inf, np.inf)),
        ('range="-1 1" type="slide" limited="true"', 'autolimits="false"', (-1, 1)),
    ],
)
def test_ranges(joint: str, compiler: str, limits: tuple[float, float]) -> None:
    robot = parse_mjcf(one_body(f"<joint {joint}/>", f"<compiler {compiler}/>"))
    assert (robot.moving_joints[0].limits.lower, robot.moving_joints[0].limits.upper) == pytest.approx(limits)


def test_locked_joints() -> None:
    free = one_body('<freejoint name="root"/>')
    assert parse_mjcf(free, hold={"root": 0.0}).dof == 0
    pair = one_body(
        "<joint name='a'/><joint name='b' axis='1 0 0'/>", "<equality><joint joint1='a' joint2='b'/></equality>"
    )
    assert parse_mjcf(pair, hold={"b": 0.2}).joint_names == ("a",)
    with pytest.raises(ArgumentError):
        parse_mjcf(pair, hold={"b": 0.2, "c": 0.0})


MESH = '<joint/><geom type="mesh" mesh="m"/>'
WRONG = """
one_body('<freejoint name="root"/>') -> freejoint 'root' -> free joints
one_body('<joint name="j" type="ball"/>') -> joint 'j' -> ball joints
one_body('<joint name="j" stiffness="3"/>') -> joint 'j' -> stiffness
one_body('<joint name="j" armature="1 2"/>') -> joint 'j' -> 2 values
one_body(body='gravcomp="1"') -> body 'b' -> gravcomp
one_body(around='<include file="../x.xml"/>') -> <include> -> include
one_body('<composite type="grid"/>') -> body 'b' <composite> -> composite
one_body("<replicate/>") -> <replicate> -> replicate
one_body("<jiont/>") -> <jiont> -> jiont
one_body(around='<equality><weld body1="b"/></equality>') -> <weld> -> weld
one_body(around='<equality><joint joint1="j"/></equality>') -> <joint> -> equality
one_body(around='<tendon><fixed name="t" stiffness="1"/></tendon>') -> fixed 't' -> stiffness
one_body(around='<option density="1.2"/>') -> <option> -> density
one_body(around='<compiler settotalmass="3"/>') -> <compiler> -> settotalmass
one_body(around='<compiler angle="grad"/>') -> <compiler> -> grad
one_body(around='<option><flag damper="disable"/></option>') -> <option> -> damper
one_body(MESH, inertial="") -> body 'b' <geom> -> mesh
one_body('<joint name="j" class="x"/>') -> joint 'j' -> 'x' does not exist
one_body(body='quat="1 0 0 0" euler="0 0 0"') -> body 'b' -> two orientations
one_body(inertial=INERTIAL.replace("/>", ' fullinertia="1 1 1 0 0 0"/>')) -> <inertial> -> full
one_body(body='pos="1 2"') -> body 'b' -> 2 values, not 3
one_body('<body name="b"/>') -> link 'b' -> 2 links
one_body('<body name="world"/>') -> body 'world' -> world
"<mujoco><worldbody/></mujoco>" -> <mujoco> -> no body
"<robot/>" -> <robot> -> not an MJCF
"""
"""File -> place and reason of its refusal."""


@pytest.mark.parametrize("case", WRONG.strip().splitlines())
def test_what_changes_the_dynamics_is_refused_by_name(case: str) -> None:
    text, place, reason = case.split(" -> ")
    with pytest.raises(DescriptionError) as caught:
        parse_mjcf(eval(text), "wrong.xml")
    error = caught.value
    assert str(error.path).endswith("wrong.xml")
    assert place in str(error.place)
    assert reason in error.reason
    assert error.remedy


@pytest.mark.parametrize("around", ["<sensor><x/></sensor>", "<contact/>"])
def test_what_does_not_change_the_dynamics_is_skipped(around: str) -> None:
    assert parse_mjcf(one_body(around=around)).dof == 1
