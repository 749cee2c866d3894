"""Parameters moved along the joint axes: other numbers, the same torques, a shorter program."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.kinematics import spin
from dynid.dynamics.wrench import body_wrench, body_wrench_regressor
from dynid.export.c.c_model import flatten
from dynid.export.c.c_package import generate_c
from dynid.kernels import regressor
from dynid.robot import zoo
from dynid.robot.formats.modified_dh import modified_dh
from support.random_robots import random_robot


@pytest.mark.parametrize("robot", [modified_dh(zoo.panda()).robot, zoo.stanford(), random_robot(4, tree=True)])
def test_flat_bodies_have_the_same_torques(robot):
    theta = robot.parameter_vector
    flat = flatten(robot, theta)
    Y = regressor(robot, *np.random.default_rng(0).normal(size=(3, 50, robot.dof)))
    terms = np.abs(Y) @ np.abs(theta)
    assert np.abs(Y @ flat - Y @ theta).max() <= 1e-14 * terms.max()


def test_flat_bodies_are_flat_and_cheaper():
    robot = modified_dh(zoo.panda()).robot
    flat = flatten(robot, robot.parameter_vector)[:70].reshape(7, 10)
    np.testing.assert_array_equal(flat[:, 5], flat[:, 0] + flat[:, 3])
    assert generate_c(zoo.panda(), ["inverse_dynamics"], two_rate=False).counts["inverse_dynamics"].flops < 590


def test_wrench_of_a_flat_body():
    rng = np.random.default_rng(0)
    theta, (w, dw, a) = rng.normal(size=10), rng.normal(size=(3, 3))
    theta[5] = theta[0] + theta[3]
    force, moment = body_wrench(theta, w, dw, a, spin(w, dw))
    expected = body_wrench_regressor(w, dw, a, spin(w, dw)) @ theta
    np.testing.assert_allclose(np.concatenate([force, moment]), expected, atol=1e-13)
