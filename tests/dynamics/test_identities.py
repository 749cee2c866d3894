"""Identities of mechanics that hold for every robot, as Hypothesis properties."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid import kernels
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.dynamics.regressor import torque_regressor
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.spatial import inverse_transform, rotation_from_rpy, transform
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
    tau = kernels.inverse_dynamics(robot, q, dq, ddq)
    np.testing.assert_allclose(
        kernels.regressor(robot, q, dq, ddq) @ robot.parameter_vector, tau, rtol=1e-10, atol=1e-9
    )


@examples
@given(seeds)
def test_compiled_kernels_equal_the_plain_equations(seed: int) -> None:
    robot, q, dq, ddq = robot_and_state(seed, terms=True)
    plain = [newton_euler(robot, robot.parameter_vector, *state) for state in zip(q, dq, ddq, strict=True)]
    np.testing.assert_allclose(kernels.inverse_dynamics(robot, q, dq, ddq), plain, rtol=1e-10, atol=1e-9)
    plain_Y = [torque_regressor(robot, *state) for state in zip(q, dq, ddq, strict=True)]
    np.testing.assert_allclose(kernels.regressor(robot, q, dq, ddq), plain_Y, rtol=1e-10, atol=1e-9)


@examples
@given(seeds)
def test_torque_is_inertia_velocity_gravity_and_joint_terms(seed: int) -> None:
    robot, q, dq, ddq = robot_and_state(seed)
    M = kernels.inertia_matrix(robot, q)
    parts = kernels.velocity_torque(robot, q, dq) + kernels.gravity_torque(robot, q) + np.einsum("kij,kj->ki", M, ddq)
    np.testing.assert_allclose(kernels.inverse_dynamics(robot, q, dq, ddq), parts, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("name", ["scara", "puma560", "ur10"])
def test_parallel_axes_turn_as_one(name: str) -> None:
    """The recursion of the velocities adds up the angles of parallel axes; that of the torques does not."""
    robot = zoo.get(name).with_terms()
    q, dq, _ = random_states(robot, 5)
    moving, still = (kernels.inverse_dynamics(robot, q, rate, 0.0 * q) for rate in (dq, 0.0 * q))
    np.testing.assert_allclose(kernels.velocity_torque(robot, q, dq), moving - still, rtol=1e-10, atol=1e-9)


@examples
@given(seeds)
def test_inertia_matrix_is_symmetric_and_positive_definite(seed: int) -> None:
    robot, q, _, _ = robot_and_state(seed, terms=True)
    M = kernels.inertia_matrix(robot, q)
    np.testing.assert_allclose(M, M.transpose(0, 2, 1), atol=1e-12 * np.abs(M).max())
    assert np.linalg.eigvalsh(M).min() > 0.0


@examples
@given(seeds)
def test_power_balance(seed: int) -> None:
    """dH/dt = tau . dq without friction: the energy regressor's time derivative is dq^T Y, column by column."""
    robot, q, dq, ddq = robot_and_state(seed)
    step = 1e-5
    ahead = kernels.energy_regressor(robot, q + step * dq + 0.5 * step**2 * ddq, dq + step * ddq)
    behind = kernels.energy_regressor(robot, q - step * dq + 0.5 * step**2 * ddq, dq - step * ddq)
    rate = (ahead - behind) / (2 * step)
    power = np.einsum("kj,kjp->kp", dq, kernels.regressor(robot, q, dq, ddq))
    np.testing.assert_allclose(rate, power, atol=2e-6 * max(1.0, np.abs(power).max()))


@examples
@given(seeds)
def test_momentum_is_inertia_times_velocity(seed: int) -> None:
    robot, q, dq, _ = robot_and_state(seed)
    momentum = kernels.momentum_regressor(robot, q, dq) @ robot.inertial_vector
    np.testing.assert_allclose(
        momentum, np.einsum("kij,kj->ki", kernels.inertia_matrix(robot, q), dq), rtol=1e-10, atol=1e-9
    )


@examples
@given(seeds)
def test_forward_dynamics_inverts_inverse_dynamics(seed: int) -> None:
    robot, q, dq, ddq = robot_and_state(seed, terms=True)
    tau = kernels.inverse_dynamics(robot, q, dq, ddq)
    np.testing.assert_allclose(kernels.forward_dynamics(robot, q, dq, tau), ddq, rtol=1e-7, atol=1e-7)


@examples
@given(seeds)
def test_torque_is_linear_in_the_parameters(seed: int) -> None:
    robot, q, dq, ddq = robot_and_state(seed, terms=True)
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=robot.parameter_vector.shape)
    half = robot.parameter_vector - theta
    parts = [
        np.array([newton_euler(robot, part, *state) for state in zip(q, dq, ddq, strict=True)])
        for part in (theta, half, robot.parameter_vector)
    ]
    np.testing.assert_allclose(parts[0] + parts[1], parts[2], rtol=1e-9, atol=1e-8)


@examples
@given(seeds)
def test_torque_does_not_depend_on_the_choice_of_link_frames(seed: int) -> None:
    """Turn every link frame about and shift it along its joint axis; describe the same bodies in the new frames."""
    robot, q, dq, ddq = robot_and_state(seed)
    np.testing.assert_allclose(
        kernels.inverse_dynamics(reframed(robot, seed), q, dq, ddq),
        kernels.inverse_dynamics(robot, q, dq, ddq),
        rtol=1e-9,
        atol=1e-9,
    )


def reframed(robot: Robot, seed: int) -> Robot:
    """The same robot, every link described in another frame whose origin stays on the link's joint axis."""
    rng = np.random.default_rng(seed)
    change = {robot.root: np.eye(4)}  # T_old_new of every link
    for joint in robot.joints:
        shift = joint.axis * rng.normal() if joint.kind != "fixed" else rng.normal(size=3)
        change[joint.child] = transform(rotation_from_rpy(rng.normal(size=3)), shift)
    joints = [
        replace(
            joint,
            T_parent_joint=inverse_transform(change[joint.parent]) @ joint.T_parent_joint @ change[joint.child],
            axis=change[joint.child][:3, :3].T @ joint.axis,
        )
        for joint in robot.joints
    ]
    links = [replace(link, inertia=link.inertia.in_frame(inverse_transform(change[link.name]))) for link in robot.links]
    return replace(robot, links=tuple(links), joints=tuple(joints))


@examples
@given(seeds)
def test_a_turned_world_turns_nothing(seed: int) -> None:
    """Gravity and base turned together leave the torques alone."""
    robot, q, dq, ddq = robot_and_state(seed)
    R = rotation_from_rpy(np.random.default_rng(seed).normal(size=3))
    joints = tuple(
        replace(joint, T_parent_joint=transform(R, np.zeros(3)) @ joint.T_parent_joint)
        if joint.parent == robot.root
        else joint
        for joint in robot.joints
    )
    turned = replace(robot, joints=joints, gravity=R @ robot.gravity)
    np.testing.assert_allclose(
        kernels.inverse_dynamics(turned, q, dq, ddq), kernels.inverse_dynamics(robot, q, dq, ddq), rtol=1e-9, atol=1e-9
    )
