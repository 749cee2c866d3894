"""Kernels: caching, columns, parameters as inputs, single calls, and clear words for wrong arguments."""

from __future__ import annotations

import numpy as np
import pytest

from dynid import compiled
from dynid.dynamics.kinematics import body_velocities
from dynid.dynamics.wrench import sensor_wrench_regressor
from dynid.errors import ArgumentError
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.zoo import panda, puma560
from dynid.terms import friction
from support.chains import chain
from support.random_robots import random_inertia, random_states

ROBOT = puma560()
Q, DQ, DDQ = random_states(ROBOT, 7)


def test_equal_robots_share_a_kernel() -> None:
    assert compiled.kernel(puma560(), "regressor") is compiled.kernel(puma560(), "regressor")
    assert compiled.kernel(puma560().with_gravity((0, 0, -1)), "regressor") is not compiled.kernel(ROBOT, "regressor")


def test_folded_values_belong_to_the_kernel() -> None:
    heavy = ROBOT.with_parameters(2.0 * ROBOT.parameter_vector)
    np.testing.assert_allclose(
        compiled.inverse_dynamics(heavy, Q, DQ, DDQ), 2.0 * compiled.inverse_dynamics(ROBOT, Q, DQ, DDQ), rtol=1e-10
    )


def test_columns_are_those_asked_for() -> None:
    columns = [59, 5, 17]
    some = compiled.regressor(ROBOT, Q, DQ, DDQ, columns=columns)
    np.testing.assert_allclose(some, compiled.regressor(ROBOT, Q, DQ, DDQ)[:, :, columns], rtol=1e-12, atol=1e-13)


def test_parameters_as_an_input() -> None:
    theta = np.random.default_rng(0).normal(size=60)
    torque = compiled.kernel(ROBOT, "inverse_dynamics", symbolic_parameters=True)(Q, DQ, DDQ, theta)
    np.testing.assert_allclose(torque, compiled.regressor(ROBOT, Q, DQ, DDQ) @ theta, rtol=1e-9, atol=1e-9)


def test_wrench_on_a_held_body_is_what_joint_torques_feel_of_it() -> None:
    """The wrench at the flange, carried to the joints, is the torque that a body welded there adds."""
    robot = panda()
    q, dq, ddq = random_states(robot, 5)
    flange = robot.links[-1].name
    load = random_inertia(np.random.default_rng(3))
    wrench = compiled.wrench_regressor(robot, flange, q, dq, ddq) @ load.vector
    loaded = robot.with_body("load", parent=flange, inertia=load)
    added = compiled.inverse_dynamics(loaded, q, dq, ddq) - compiled.inverse_dynamics(robot, q, dq, ddq)
    power = np.einsum("kj,kj->k", added, dq)
    for k in range(5):
        velocity, turning = _flange_twist(robot, flange, q[k], dq[k])
        assert power[k] == pytest.approx(wrench[k, :3] @ velocity + wrench[k, 3:] @ turning, rel=1e-9)
        np.testing.assert_allclose(sensor_wrench_regressor(robot, flange, q[k], dq[k], ddq[k]) @ load.vector, wrench[k])


def _flange_twist(robot: Robot, flange: str, q: np.ndarray, dq: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Velocity of the flange's origin and its angular velocity, both in the flange's axes."""
    body, T_body_flange = robot.link_body(flange)
    w, v = body_velocities(robot, q, dq)[body]
    R, p = T_body_flange[:3, :3], T_body_flange[:3, 3]
    return R.T @ (v + np.cross(w, p)), R.T @ w


WRONG = """
compiled.inverse_dynamics("puma560", Q, DQ, DDQ) -> expected a Robot
compiled.inverse_dynamics(ROBOT, "abc", DQ, DDQ) -> q is an array of texts
compiled.inverse_dynamics(ROBOT, 1j * Q, DQ, DDQ) -> complex
compiled.inverse_dynamics(ROBOT, Q[:, :5], DQ, DDQ) -> shape
compiled.forward_dynamics(ROBOT, Q[0], DQ[0], np.zeros(5)) -> torques have shape
compiled.kernel(ROBOT, "nonsense") -> there is no kernel
compiled.wrench_regressor(ROBOT, "base", Q, DQ, DDQ) -> does not move
Viscous("a") -> finite number
ROBOT.with_terms(Viscous) -> no term of a joint's present state
ROBOT.with_base_orientation(2.0 * np.eye(3)) -> not a rotation
compiled.inertia_matrix(chain("r"), np.zeros(0)) -> no moving
"""
"""Call -> what the refusal names."""


@pytest.mark.parametrize("case", WRONG.strip().splitlines())
def test_wrong_arguments_are_named(case: str) -> None:
    call, message = case.split(" -> ")
    with pytest.raises(ArgumentError, match=message):
        eval(call, vars(friction) | globals())


def test_a_mass_on_its_own_axis_cannot_be_accelerated() -> None:
    axis = np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0)
    point = Inertia.from_com(3.0, 0.7 * axis, np.zeros((3, 3)))
    robot = chain("needle", (point, {"name": "j", "axis": axis}))
    with pytest.raises(ArgumentError, match="singular"):
        compiled.forward_dynamics(robot, [0.1], [0.2], [0.3])
