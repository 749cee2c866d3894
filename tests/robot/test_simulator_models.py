"""Models of Pinocchio and MuJoCo in memory: the robots have the same torques as the libraries themselves."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.export import body_parameters
from dynid.robot import to_mujoco, to_pinocchio
from support.random_robots import random_states


def test_pinocchio_models_come_in_with_the_torques_of_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    model = pin.buildSampleModelManipulator()
    robot = dynid.from_pinocchio(model)
    data = model.createData()
    for q, dq, ddq in zip(*random_states(robot, 5), strict=True):
        wanted = pin.rnea(model, data, q, dq, ddq)
        np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, dq, ddq), wanted, atol=1e-9)


def test_a_free_flyer_is_refused() -> None:
    pin = pytest.importorskip("pinocchio")
    with pytest.raises(dynid.errors.ArgumentError, match="degrees of freedom"):
        dynid.from_pinocchio(pin.buildSampleModelHumanoid())


@pytest.mark.parametrize("name", ["panda", "stanford"])
def test_robots_go_to_pinocchio_and_come_back(name: str) -> None:
    pin = pytest.importorskip("pinocchio")
    robot = dynid.robots.get(name)
    model = to_pinocchio(robot)
    again = dynid.from_pinocchio(model)
    assert again.joint_names == robot.joint_names
    data = model.createData()
    for q, dq, ddq in zip(*random_states(robot, 5), strict=True):
        wanted = dynid.inverse_dynamics(robot, q, dq, ddq)
        np.testing.assert_allclose(pin.rnea(model, data, q, dq, ddq), wanted, atol=1e-9)
        np.testing.assert_allclose(dynid.inverse_dynamics(again, q, dq, ddq), wanted, atol=1e-9)
    rows = body_parameters(robot, "pinocchio")
    for index, row in enumerate(rows, start=1):
        np.testing.assert_allclose(row, model.inertias[index].toDynamicParameters(), atol=1e-12)
    regressor = pin.computeJointTorqueRegressor(model, data, q, dq, ddq)
    np.testing.assert_allclose(regressor @ rows.reshape(-1), wanted, atol=1e-9)


MODEL = """
<mujoco><compiler angle="radian"/><option gravity="0 1 -9.7"/><worldbody>
 <body name="a" pos="0.1 0 0.3" quat="0.9 0.1 0.3 0.2">
  <joint name="turn" type="hinge" axis="0 1 1" pos="0.02 0.1 0" ref="0.4" damping="0.7" armature="0.2"/>
  <inertial pos="0.1 0 0.2" mass="2" fullinertia="0.05 0.06 0.04 0.001 0.002 0.003"/>
  <body name="b" pos="0 0.3 0.1">
   <joint name="slide" type="slide" axis="1 0 0" ref="0.1" range="-1 1" limited="true"/>
   <joint name="twist" type="hinge" axis="0 0 1" pos="0.05 0 0"/>
   <inertial pos="0 0.05 0.1" mass="1.5" diaginertia="0.02 0.03 0.01"/>
   <body name="c" pos="0.2 0 0" euler="0.3 0.2 0.1">
    <inertial pos="0.1 0 0" mass="0.5" diaginertia="0.01 0.01 0.01"/></body>
  </body></body></worldbody></mujoco>
"""


def mujoco_torques(mujoco, model, q, dq, ddq):
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = q, dq, ddq
    mujoco.mj_inverse(model, data)
    return data.qfrc_inverse + data.qfrc_constraint  # limits are no part of the robot


def test_mujoco_models_come_in_with_the_torques_of_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(MODEL)
    robot = dynid.from_mujoco(model)
    assert robot.joint_names == ("turn", "slide", "twist")
    for q, dq, ddq in zip(*random_states(robot, 5), strict=True):
        ours = dynid.inverse_dynamics(robot, q, dq, ddq)
        np.testing.assert_allclose(ours, mujoco_torques(mujoco, model, q, dq, ddq), atol=1e-8)


def test_robots_go_to_mujoco_and_come_back() -> None:
    mujoco = pytest.importorskip("mujoco")
    robot = dynid.robots.panda().with_terms(dynid.RotorInertia(), dynid.Viscous())
    theta = robot.parameter_vector.copy()
    theta[70:] = 0.3
    robot = robot.with_parameters(theta)
    model = to_mujoco(robot)
    again = dynid.from_mujoco(model)
    for q, dq, ddq in zip(*random_states(robot, 5), strict=True):
        wanted = dynid.inverse_dynamics(robot, q, dq, ddq)
        np.testing.assert_allclose(mujoco_torques(mujoco, model, q, dq, ddq), wanted, atol=1e-6)
        np.testing.assert_allclose(dynid.inverse_dynamics(again, q, dq, ddq), wanted, atol=1e-6)
