"""Identities of mechanics that hold for every robot, as Hypothesis properties."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid import compiled
from dynid.robot import zoo
from dynid.robot.model import Robot
from support.random_robots import random_robot, random_states

ROBOTS = int(os.environ.get("DYNID_TEST_ROBOTS", "12"))
seeds = st.sampled_from(range(ROBOTS))  # the same for all properties, so that each robot's kernels are compiled once
examples = settings(max_examples=ROBOTS, deadline=None, derandomize=True)


def robot_and_state(seed: int, **options: bool) -> tuple[Robot, np.ndarray, np.ndarray, np.ndarray]:
    robot = random_robot(seed, tree=bool(seed % 2), **options)
    q, dq, ddq = random_states(robot, 5, seed)
    return robot, q, dq, ddq


@examples
@given(seeds)
def test_torque_is_regressor_times_parameters(seed: int) -> None:
    robot, q, dq, ddq = robot_and_state(seed, terms=True)
    tau = compiled.inverse_dynamics(robot, q, dq, ddq)
    np.testing.assert_allclose(
        compiled.regressor(robot, q, dq, ddq) @ robot.parameter_vector, tau, rtol=1e-10, atol=1e-9
    )


@examples
@given(seeds)
def test_torque_is_inertia_velocity_gravity_and_joint_terms(seed: int) -> None:
    robot, q, dq, ddq = robot_and_state(seed)
    M = compiled.inertia_matrix(robot, q)
    parts = compiled.velocity_torque(robot, q, dq) + compiled.gravity_torque(robot, q) + np.einsum("kij,kj->ki", M, ddq)
    np.testing.assert_allclose(compiled.inverse_dynamics(robot, q, dq, ddq), parts, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("name", ["scara", "puma560", "ur10"])
def test_parallel_axes_turn_as_one(name: str) -> None:
    """The recursion of the velocities adds up the angles of parallel axes; that of the torques does not."""
    robot = zoo.get(name).with_terms()
    q, dq, _ = random_states(robot, 5)
    moving, still = (compiled.inverse_dynamics(robot, q, rate, 0.0 * q) for rate in (dq, 0.0 * q))
    np.testing.assert_allclose(compiled.velocity_torque(robot, q, dq), moving - still, rtol=1e-10, atol=1e-9)


@examples
@given(seeds)
def test_power_balance(seed: int) -> None:
    """dH/dt = tau . dq without friction: the energy regressor's time derivative is dq^T Y, column by column."""
    robot, q, dq, ddq = robot_and_state(seed)
    step = 1e-5
    ahead = compiled.energy_regressor(robot, q + step * dq + 0.5 * step**2 * ddq, dq + step * ddq)
    behind = compiled.energy_regressor(robot, q - step * dq + 0.5 * step**2 * ddq, dq - step * ddq)
    rate = (ahead - behind) / (2 * step)
    power = np.einsum("kj,kjp->kp", dq, compiled.regressor(robot, q, dq, ddq))
    np.testing.assert_allclose(rate, power, atol=2e-6 * max(1.0, np.abs(power).max()))


@examples
@given(seeds)
def test_momentum_is_inertia_times_velocity(seed: int) -> None:
    robot, q, dq, _ = robot_and_state(seed)
    momentum = compiled.momentum_regressor(robot, q, dq) @ robot.inertial_vector
    np.testing.assert_allclose(
        momentum, np.einsum("kij,kj->ki", compiled.inertia_matrix(robot, q), dq), rtol=1e-10, atol=1e-9
    )


@examples
@given(seeds)
def test_forward_dynamics_inverts_inverse_dynamics(seed: int) -> None:
    robot, q, dq, ddq = robot_and_state(seed, terms=True)
    tau = compiled.inverse_dynamics(robot, q, dq, ddq)
    np.testing.assert_allclose(compiled.forward_dynamics(robot, q, dq, tau), ddq, rtol=1e-7, atol=1e-7)
