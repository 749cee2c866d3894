"""Designs for loads: observations against the kernels, gradients against central differences, whole designs."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.excitation.criteria import ColumnScaled, ConditionNumber, DOptimality
from dynid.excitation.design import design_excitation
from dynid.excitation.design_settings import DesignGoal, SearchSettings
from dynid.excitation.measured import LoadTorques, LoadWrench, Measured
from dynid.kernels import regressor, wrench_regressor
from dynid.robot.model import Robot
from dynid.robot.zoo import panda, ur10

QUICK = SearchSettings(starts=1, iterations=25, outer=4)


def tip(robot: Robot) -> str:
    return robot.bodies[-1].joint.child


def states(robot: Robot, samples: int = 20) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(3, samples, robot.dof))


def test_wrench_information_is_that_of_the_kernel() -> None:
    robot = ur10()
    observation = LoadWrench(tip(robot), force_noise=0.5, moment_noise=0.02).observation(robot)
    weight = 1.0 / np.repeat([0.5, 0.02], 3)
    W = wrench_regressor(robot, tip(robot), *states(robot)) * weight[:, None]
    assert np.allclose(observation.matrix(*states(robot)), W.reshape(-1, 10))
    assert np.allclose(observation.information(*states(robot)), np.einsum("nij,nik->jk", W, W))


def test_load_torques_are_those_of_a_heavier_robot() -> None:
    robot = panda()
    link = robot.bodies[-1].members[-1][0]
    observation = LoadTorques(link, noise=2.0).observation(robot)
    Y = regressor(robot, *states(robot), columns=range(60, 70))
    _, T = robot.link_body(link)
    mass, first = 1.3, np.array([0.02, -0.01, 0.05])
    load = np.array([0, 0, 0, 0, 0, 0, *(mass * first), mass])  # a load without inertia about the link's origin
    p, h = T[:3, 3], T[:3, :3] @ (mass * first)
    about = mass * (p @ p * np.eye(3) - np.outer(p, p)) + 2 * (p @ h) * np.eye(3) - np.outer(p, h) - np.outer(h, p)
    there = np.array([*about[np.triu_indices(3)], *(h + mass * p), mass])
    assert np.allclose(observation.matrix(*states(robot)) @ load * 2.0, (Y @ there).ravel())


@pytest.mark.parametrize("kind", [LoadWrench, LoadTorques])
@pytest.mark.parametrize("criterion", [DOptimality(), ColumnScaled(ConditionNumber())], ids=str)
def test_gradients(kind: type[Measured], criterion) -> None:
    robot = ur10()
    observation = kind(tip(robot)).observation(robot)
    motion = states(robot, 30)
    _, G = criterion.of_information(observation.information(*motion))
    gradient = np.array(observation.pullback(G, *motion))
    rng = np.random.default_rng(1)
    for _ in range(3):
        d, h = rng.normal(size=motion.shape), 1e-6
        ends = [criterion.of_information(observation.information(*(motion + s * h * d)))[0] for s in (1, -1)]
        assert np.vdot(gradient, d) == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5)


@pytest.mark.parametrize("kind", [LoadWrench, LoadTorques])
def test_designs_reveal_a_load(kind: type[Measured]) -> None:
    robot = ur10()
    plan = design_excitation(robot, goal=DesignGoal(observation=kind(tip(robot))), settings=QUICK)
    assert plan.parameter_names[-1] == "M"
    assert plan.information.shape == (10, 10)
    assert plan.condition_number < 0.7 * plan.history[0].value
    assert min(m.relative for m in plan.margins) >= 0.0
