"""Our equations against MuJoCo's, friction and armature included, on a URDF and on an MJCF model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid import compiled
from dynid.robot.formats.mjcf.read import read_mjcf
from dynid.robot.formats.urdf import read_urdf
from dynid.robot.model import Robot
from dynid.terms.base import Dependence
from support.random_robots import random_states

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the oracle here")

URDF = """<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.1 0.02 0.3" rpy="0.3 -0.2 0.5"/><mass value="4.2"/>
    <inertia ixx="0.09" iyy="0.1" izz="0.04" ixy="0.003" ixz="-0.002" iyz="0.001"/></inertial></link>
  <link name="slider"><inertial><origin xyz="0 0.1 0.05"/><mass value="1.5"/>
    <inertia ixx="0.02" iyy="0.015" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="hand"><inertial><origin xyz="0.01 0 0.08"/><mass value="0.8"/>
    <inertia ixx="0.004" iyy="0.005" izz="0.002" ixy="0" ixz="0.0003" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0 0.4" rpy="0.2 0.4 -0.1"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" velocity="2" effort="100"/><dynamics damping="0.7" friction="0.4"/></joint>
  <joint name="reach" type="prismatic"><parent link="upper"/><child link="slider"/>
    <origin xyz="0.05 0 0.5" rpy="0 0.6 0"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" velocity="1" effort="100"/><dynamics damping="3.0" friction="1.1"/></joint>
  <joint name="wrist" type="continuous"><parent link="slider"/><child link="hand"/>
    <origin xyz="0 0 0.2" rpy="1.2 0 0.3"/><axis xyz="0.6 0 0.8"/>
    <limit velocity="3" effort="20"/><dynamics damping="0.05" friction="0.02"/></joint>
</robot>"""

MJCF = """<mujoco model="tree">
  <compiler angle="degree"/>
  <option gravity="1 -2 -9"/>
  <default><joint damping="0.2" armature="0.05"/>
    <default class="arm"><joint damping="0.6" frictionloss="0.3" armature="0.12"/></default></default>
  <worldbody>
    <body name="trunk" pos="0 0 0.5" euler="10 20 30">
      <joint name="yaw" type="hinge" axis="0 0 1" class="arm"/>
      <inertial pos="0.02 0.01 0.2" mass="5" fullinertia="0.2 0.25 0.1 0.01 -0.02 0.015"/>
      <body name="left" pos="0.1 0.2 0.4" quat="0.8 0.2 0.4 0.4">
        <joint name="left_swing" type="hinge" axis="0 1 0" pos="0 0 0.05"/>
        <inertial pos="0 0 0.1" quat="0.9 0.1 0.3 0.2" mass="1.2" diaginertia="0.02 0.03 0.015"/>
        <body name="left_slide" pos="0 0 0.3">
          <joint name="left_reach" type="slide" axis="0 0.6 0.8" frictionloss="0.7"/>
          <inertial pos="0.01 0.02 0.03" mass="0.4" diaginertia="0.002 0.003 0.0015"/>
        </body>
      </body>
      <body name="right" pos="0.1 -0.2 0.4">
        <joint name="right_swing" type="hinge" axis="1 0 0"/>
        <inertial pos="0 0.05 0.1" mass="1.1" diaginertia="0.02 0.03 0.015"/>
      </body>
    </body>
  </worldbody>
</mujoco>"""


def inverse_by_mujoco(model: object, robot: Robot, states: tuple[np.ndarray, ...]) -> np.ndarray:
    """mj_inverse on the same states: the force that must be applied, passive damping and friction included."""
    data = mujoco.MjData(model)
    columns = [model.joint(name).dofadr[0] for name in robot.joint_names]  # type: ignore[attr-defined]
    torque = []
    for q, dq, ddq in zip(*states, strict=True):
        data.qpos[columns], data.qvel[columns], data.qacc[columns] = q, dq, ddq
        mujoco.mj_inverse(model, data)
        torque.append(data.qfrc_inverse[columns].copy())
    return np.array(torque)


@pytest.mark.parametrize(("text", "ending"), [(URDF, "urdf"), (MJCF, "xml")])
def test_torque_with_friction_and_armature(
    text: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its log into the working directory
    path = tmp_path / f"model.{ending}"
    path.write_text(text)
    robot = read_urdf(path, snap=False) if ending == "urdf" else read_mjcf(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_CONTACT
    q, dq, ddq = random_states(robot, 50)
    dq = np.where(np.abs(dq) < 0.05, 0.5, dq)  # MuJoCo's dry friction is a soft constraint: leave the stick region
    ours = compiled.inverse_dynamics(robot, q, dq, ddq)
    without_friction = without_dry_friction(robot)
    model.dof_frictionloss[:] = 0.0
    theirs = inverse_by_mujoco(model, robot, (q, dq, ddq))
    np.testing.assert_allclose(compiled.inverse_dynamics(without_friction, q, dq, ddq), theirs, rtol=1e-9, atol=1e-9)
    friction = ours - compiled.inverse_dynamics(without_friction, q, dq, ddq)
    levels = mujoco.MjModel.from_xml_path(str(path)).dof_frictionloss
    columns = [model.joint(name).dofadr[0] for name in robot.joint_names]
    np.testing.assert_allclose(friction, np.sign(dq) * levels[columns], atol=1e-12)


def without_dry_friction(robot: Robot) -> Robot:
    theta = robot.parameter_vector.copy()
    for column, placed in enumerate(robot.terms, start=10 * robot.dof):
        theta[column] = 0.0 if placed.term.dependence is Dependence.DIRECTION else theta[column]
    return robot.with_parameters(theta)


def test_inertia_matrix_has_the_armature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.xml"
    path.write_text(MJCF)
    robot, model = read_mjcf(path), mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    columns = np.array([model.joint(name).dofadr[0] for name in robot.joint_names])
    q = random_states(robot, 1)[0][0]
    data.qpos[columns] = q
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    np.testing.assert_allclose(compiled.inertia_matrix(robot, q), M[np.ix_(columns, columns)], rtol=1e-9, atol=1e-10)
