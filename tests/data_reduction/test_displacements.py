"""Derivatives by the placements of joints: Pinocchio's torques and its derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynid
from dynid.data_reduction.displacements import displace, displacement_columns
from support.pinocchio_oracle import pinocchio_model, relative_error
from support.random_robots import random_robot

pin = pytest.importorskip("pinocchio")
STEP = 1e-6


def states_of(robot, seed, count=3):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (3, count, robot.dof))


def torques(robot, states):
    model = pinocchio_model(robot)
    data = model.createData()
    return np.array([pin.rnea(model, data, *state).copy() for state in zip(*states, strict=True)])


@given(seed=st.integers(0, 200))
@settings(max_examples=6, deadline=None)
def test_columns_are_slopes_of_pinocchios_torques(seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(seed, joints=3, tree=bool(seed % 2))
    states = states_of(robot, seed)
    columns = displacement_columns(robot, robot.parameter_vector, *states)
    joint, place = int(rng.integers(robot.dof)), int(rng.integers(6))
    name, shift = robot.joint_names[joint], STEP * np.eye(6)[place]
    slope = (torques(displace(robot, {name: shift}), states) - torques(displace(robot, {name: -shift}), states)) / (
        2.0 * STEP
    )
    assert relative_error(columns[:, :, joint, place], slope) < 1e-6 or np.abs(slope).max() < 1e-6


def test_many_samples_are_compiled_and_agree():
    robot = dynid.robots.get("ddarm").with_terms()
    states = states_of(robot, 2, count=20_001)
    few = [state[:10] for state in states]
    whole = displacement_columns(robot, robot.parameter_vector, *states)
    assert np.allclose(whole[:10], displacement_columns(robot, robot.parameter_vector, *few), rtol=1e-9, atol=1e-9)


def test_joints_behind_fixed_links_move_in_the_axes_of_their_body():
    robot = dynid.robots.get("panda").with_terms()
    moved = displace(robot, {"joint4": [0.01, 0.0, 0.0, 0.0, 0.0, 0.2]})
    before, after = robot.bodies[3], moved.bodies[3]
    assert np.allclose(after.p_parent_joint - before.p_parent_joint, [0.01, 0.0, 0.0])
    turn = dynid.spatial.rotation_about([0.0, 0.0, 1.0], 0.2)
    assert np.allclose(after.R_parent_joint, turn @ before.R_parent_joint)
