"""Designs: gradients of the whole problem, limits kept at finer sampling, determinism, conflicts named, priors used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import ArgumentError, ExcitationError
from dynid.excitation.constraints import build_constraints, measure_margins
from dynid.excitation.criteria import AOptimality, ColumnScaled, ConditionNumber, DOptimality
from dynid.excitation.design import design_excitation
from dynid.excitation.design_problem import DesignProblem
from dynid.excitation.design_settings import DesignGoal, SearchSettings
from dynid.excitation.limits import MotionLimits, Workspace
from dynid.excitation.observation import TorqueObservation, with_smooth_friction
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.excitation.trajectories.spline import SplineTrajectory
from dynid.kernels import regressor
from dynid.parameters.base import base_parameters
from dynid.robot.model import Robot

from .conftest import all_limits, arm

QUICK = SearchSettings(starts=1, iterations=25, outer=4)


def problem(robot: Robot) -> DesignProblem:
    smooth, limits = with_smooth_friction(robot), all_limits(robot)
    observation = TorqueObservation(smooth, base_parameters(robot).columns, noise=np.linspace(1, 2, robot.dof))
    return DesignProblem(
        FourierTrajectory.still(robot.dof, period_s=6, harmonics=3),
        observation,
        build_constraints(smooth, limits),
        sizes=((limits.upper - limits.lower) / 2, limits.velocity, limits.acceleration),
        samples=40,
        repetitions=3.0,
        prior=0.1 * np.eye(observation.size),
    )


@pytest.mark.parametrize("criterion", [DOptimality(), ColumnScaled(ConditionNumber()), AOptimality()], ids=str)
def test_gradient_of_objective_and_lagrangian(robot: Robot, criterion) -> None:
    design = problem(robot)
    rng = np.random.default_rng(0)
    x = 0.3 * rng.normal(size=design.size)
    design.update_multipliers(x, 5.0)
    for function in (lambda x: design.objective(x, criterion), lambda x: design.lagrangian(x, criterion, 5.0)):
        _, gradient = function(x)
        for _ in range(3):
            d, h = rng.normal(size=x.size), 1e-6
            difference = (function(x + h * d)[0] - function(x - h * d)[0]) / (2 * h)
            assert gradient @ d == pytest.approx(difference, rel=1e-5, abs=1e-6)


def test_information_is_that_of_the_regressor(robot: Robot) -> None:
    columns = base_parameters(robot).columns
    noise = np.linspace(0.5, 2, robot.dof)
    observation = TorqueObservation(robot, columns, noise)
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, 50, robot.dof))
    W = (regressor(robot, q, dq, ddq, columns=columns) / noise[None, :, None]).reshape(-1, len(columns))
    assert np.allclose(observation.matrix(q, dq, ddq), W)
    assert np.allclose(observation.information(q, dq, ddq), W.T @ W)


def fine(plan, robot: Robot) -> list:
    times, _ = plan.trajectory.grid(3000)
    return list(measure_margins(build_constraints(robot, plan.limits), plan.trajectory.motion(times)))


@pytest.mark.parametrize("family", ["fourier", "cubic", "quintic"])
def test_design_keeps_every_limit_at_finer_sampling(robot: Robot, family: str) -> None:
    degree = {"fourier": 0, "cubic": 3, "quintic": 5}[family]
    still = SplineTrajectory.still(robot.dof, duration_s=8, points=9, degree=degree) if degree else None
    limits = all_limits(robot)
    plan = design_excitation(robot, limits, period_s=6, harmonics=4, settings=replace(QUICK, family=still))
    assert min(m.relative for m in fine(plan, robot)) >= 0.0
    assert min(m.relative for m in plan.margins) >= 0.0
    assert plan.condition_number < 100
    assert plan.value == pytest.approx(plan.condition_number)
    first = plan.history[0].value
    assert plan.value < 0.7 * first
    _, dq, ddq = plan.trajectory.evaluate([0.0, plan.trajectory.duration])
    assert np.allclose(dq, 0, atol=1e-9)
    assert np.allclose(ddq, 0, atol=1e-9)
    assert "condition number" in plan.summary()
    assert plan.sample(rate_hz=100).joint_names == robot.joint_names


def test_processes_find_the_same_design(robot: Robot) -> None:
    effort, told = SearchSettings(starts=1, iterations=3, outer=1), []
    alone = design_excitation(robot, settings=replace(effort, starts=2))
    shared = design_excitation(robot, progress=told.append, settings=replace(effort, starts=2, processes=2))
    assert np.array_equal(alone.trajectory.coefficients, shared.trajectory.coefficients)
    assert len(shared.history) == len(alone.history)
    assert sorted(told, key=lambda s: (s.start, s.iteration)) == list(shared.history)


def test_continuing_does_not_get_worse_and_progress_is_told(robot: Robot) -> None:
    first = design_excitation(robot, settings=SearchSettings(starts=1, iterations=5, outer=2))
    steps = []
    second = design_excitation(robot, progress=steps.append, settings=replace(QUICK, initial=first, starts=0))
    assert second.value <= first.value * (1 + 1e-6)
    assert [step.iteration for step in steps] == list(range(len(steps)))
    assert tuple(steps) == second.history


def test_torque_limit_becomes_active(robot: Robot) -> None:
    limits = MotionLimits.from_robot(robot)
    hard = replace(limits, torque=np.full(robot.dof, np.inf))
    free = design_excitation(robot, hard, goal=DesignGoal(criterion=DOptimality()), settings=QUICK)
    torque = build_constraints(robot, limits)[-1]
    peak = (torque.excess(free.trajectory.motion(free.trajectory.grid(500)[0])).max(axis=0) + 1) * torque.scale
    tight = replace(limits, torque=np.maximum(0.8 * peak[: robot.dof], 0.8 * peak[robot.dof :]))
    plan = design_excitation(
        robot,
        tight,
        goal=DesignGoal(criterion=DOptimality()),
        settings=SearchSettings(starts=1, iterations=40, outer=8),
    )
    nearest = min(m.relative for m in plan.margins if m.limit == "torque")
    assert 0.0 <= nearest < 0.05


@pytest.mark.parametrize("seed", range(6))
def test_random_robots_move_or_their_limits_are_named(seed: int) -> None:
    robot = arm(100 + seed, joints=4 + seed % 3, tight=seed % 2 == 1)
    plan = conflict = None
    try:
        plan = design_excitation(robot, period_s=8, settings=SearchSettings(starts=1, iterations=10, outer=2))
    except ExcitationError as error:
        conflict = str(error)
    if plan is not None:
        assert min(m.relative for m in fine(plan, robot)) >= -1e-4
    else:
        assert any(name in conflict for name in robot.joint_names)


def test_conflicts_are_named(robot: Robot) -> None:
    limits = MotionLimits.from_robot(robot)
    weak = replace(limits, torque=np.where(np.arange(robot.dof) == 1, 1e-3, limits.torque))
    with pytest.raises(ExcitationError, match="torque of joint 'joint2'"):
        design_excitation(robot, weak, settings=SearchSettings(starts=1))
    walls = Workspace.box(robot.bodies[-1].joint.child, [5, 5, 5], [6, 6, 6])
    with pytest.raises(ExcitationError, match=r"workspace of .*x >= 5 m"):
        design_excitation(robot, limits.with_workspace(walls), settings=SearchSettings(starts=1))
    stuck = replace(limits, velocity=limits.velocity * [1, 1, 0, 1])
    with pytest.raises(ExcitationError, match="velocity of joint 'joint3' is zero"):
        design_excitation(robot, stuck, settings=SearchSettings(starts=1))
    with pytest.raises(ArgumentError, match="another robot"):
        design_excitation(arm(1, joints=5), limits, settings=SearchSettings(starts=1))
