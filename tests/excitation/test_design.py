"""Designs: gradients of the whole problem, limits kept at finer sampling, conflicts named, requests refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.compiled import regressor, wrench_regressor
from dynid.errors import ArgumentError, ExcitationError
from dynid.excitation.constraints import build_constraints, find_unchecked_limits, measure_margins
from dynid.excitation.criteria import Criterion
from dynid.excitation.design import design_excitation
from dynid.excitation.limits import MotionLimits, Workspace
from dynid.excitation.measured import Measured, with_smooth_friction
from dynid.excitation.search import DesignProblem, SearchSettings
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.identifiability.base import base_parameters
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import JointLimits
from dynid.robot.zoo import panda, ur10

from .conftest import all_limits, arm, slope

QUICK = SearchSettings(starts=1, iterations=25, outer=4)
BRIEF = SearchSettings(starts=1, iterations=5, outer=2)


def problem(robot: Robot) -> DesignProblem:
    smooth, limits = with_smooth_friction(robot), all_limits(robot)
    observation = Measured.joint_torques(robot, noise=np.linspace(1, 2, robot.dof)).observation(smooth)
    return DesignProblem(
        FourierTrajectory.still(robot.dof, period_s=6, harmonics=3),
        observation,
        limits,
        build_constraints(smooth, limits),
        samples=40,
        rate_hz=20.0,
        prior=0.1 * np.eye(observation.size),
    )


@pytest.mark.parametrize("name", ["d-optimality", "scaled-condition"])
def test_gradient_of_objective_and_lagrangian(robot: Robot, name: str) -> None:
    design, criterion = problem(robot), Criterion(name)
    rng = np.random.default_rng(0)
    x = 0.3 * rng.normal(size=design.size)
    design.update_multipliers(x, 5.0)
    for function in (lambda x: design.objective(x, criterion), lambda x: design.lagrangian(x, criterion, 5.0)):
        _, gradient = function(x)
        for _ in range(3):
            d = rng.normal(size=x.size)
            assert gradient @ d == pytest.approx(slope(lambda x, f=function: f(x)[0], x, d), rel=1e-5, abs=1e-6)


def states(robot: Robot, samples: int = 30) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(3, samples, robot.dof))


def tip(robot: Robot) -> str:
    return robot.bodies[-1].joint.child


def test_information_is_that_of_the_kernels(robot: Robot) -> None:
    columns, noise = base_parameters(robot).columns, np.linspace(0.5, 2, robot.dof)
    observation = Measured.joint_torques(robot, noise).observation(robot)
    W = (regressor(robot, *states(robot), columns=columns) / noise[None, :, None]).reshape(-1, len(columns))
    assert np.allclose(observation.information(*states(robot)), W.T @ W)
    wrist = ur10()
    observation = Measured.load_wrench(tip(wrist), force_noise=0.5, moment_noise=0.02).observation(wrist)
    W = wrench_regressor(wrist, tip(wrist), *states(wrist)) / np.repeat([0.5, 0.02], 3)[:, None]
    assert np.allclose(observation.information(*states(wrist)), np.einsum("nij,nik->jk", W, W))
    arm = panda()
    link = arm.bodies[-1].members[-1][0]  # the flange, which is shifted in its body
    load = Inertia.from_com(1.3, [0.02, -0.01, 0.05], 0.01 * np.eye(3))
    torque = regressor(arm, *states(arm), columns=range(60, 70)) @ load.in_frame(arm.link_body(link)[1]).vector
    information = Measured.load_torques(link, noise=2.0).observation(arm).information(*states(arm))
    assert load.vector @ information @ load.vector == pytest.approx(np.sum(torque**2) / 4.0)


def fine(plan, robot: Robot) -> float:
    """The smallest relative margin at fine sampling."""
    times, _ = plan.trajectory.grid(3000)
    margins = measure_margins(build_constraints(robot, plan.limits), plan.trajectory.motion(times))
    return min(margin.relative for margin in margins)


def test_design_keeps_every_limit_at_finer_sampling(robot: Robot) -> None:
    plan = design_excitation(robot, all_limits(robot), period_s=6, harmonics=4, settings=QUICK)
    assert fine(plan, robot) >= 0.0
    assert min(m.relative for m in plan.margins) >= 0.0
    assert plan.value == pytest.approx(plan.condition_number)
    assert plan.value < 100
    assert plan.value < 0.7 * plan.history[0].value
    _, dq, ddq = plan.trajectory.evaluate([0.0, plan.trajectory.duration])
    assert np.allclose([dq, ddq], 0, atol=1e-9)
    assert "condition number" in plan.summary()
    assert plan.sample(rate_hz=100).joint_names == robot.joint_names


def test_errors_have_the_predicted_size(robot: Robot) -> None:
    """Errors of weighted least squares on torques with planted noise."""
    noise, base = np.linspace(0.3, 1.0, robot.dof), base_parameters(robot)
    settings = SearchSettings(starts=1, iterations=20, outer=3)
    plan = design_excitation(robot, observation=Measured.joint_torques(robot, noise), settings=settings)
    start, end = plan.trajectory.recorded
    t = start + np.arange(round((end - start) * 100.0)) / 100.0
    Y = regressor(robot, *plan.trajectory.evaluate(t), columns=base.columns)
    W = (Y / noise[None, :, None]).reshape(-1, base.rank)
    errors = np.random.default_rng(0).normal(size=(200, len(W))) @ np.linalg.pinv(W).T
    ratio = errors.std(axis=0) / plan.predicted_deviation
    assert np.all(np.abs(ratio - 1) < 0.2)
    assert ratio.mean() == pytest.approx(1.0, abs=0.03)


def test_an_earlier_motion_goes_on_and_counts_as_prior(robot: Robot) -> None:
    limits, steps = MotionLimits.from_robot(robot), []
    first = design_excitation(robot, limits, settings=BRIEF)
    more = replace(QUICK, initial=first, starts=0)
    second = design_excitation(robot, limits, progress=steps.append, settings=more)
    assert second.value <= first.value * (1 + 1e-6)
    assert tuple(steps) == second.history
    third = design_excitation(robot, limits, seed=1, prior=first.information, settings=BRIEF)
    assert np.linalg.eigvalsh(third.information - first.information).min() > -1e-6
    assert np.array_equal(
        design_excitation(robot, limits, settings=BRIEF).trajectory.coefficients, first.trajectory.coefficients
    )
    short = FourierTrajectory.still(robot.dof, period_s=4.0, harmonics=7).fit(first.trajectory)
    t = np.linspace(0.0, 1.0, 50)
    at = [path.evaluate(t * path.duration)[0] for path in (short, first.trajectory)]
    assert np.allclose(*at)


def test_conflicts_are_named(robot: Robot) -> None:
    limits = MotionLimits.from_robot(robot)
    weak = replace(limits, torque=np.where(np.arange(robot.dof) == 1, 1e-3, limits.torque))
    with pytest.raises(ExcitationError, match="torque of joint 'joint2'"):
        design_excitation(robot, weak, settings=QUICK)
    walls = Workspace.box([5, 5, 5], [6, 6, 6], link=tip(robot))
    with pytest.raises(ExcitationError, match=r"workspace of .*x >= 5 m"):
        design_excitation(robot, limits.with_workspace(walls), settings=QUICK)
    stuck = replace(limits, velocity=limits.velocity * [1, 1, 0, 1])
    with pytest.raises(ExcitationError, match="velocity of joint 'joint3' is zero"):
        design_excitation(robot, stuck, settings=QUICK)
    with pytest.raises(ArgumentError, match="another robot"):
        design_excitation(arm(1, joints=5), limits, settings=QUICK)
    heavy = Inertia.from_com(10.0, [0.5, 0, 0], 0.1 * np.eye(3))
    own = JointLimits(lower=-0.1, upper=0.1, velocity=1.0, effort=5.0)
    beam = from_dh([DH(alpha=90.0)], degrees=True, inertias=[heavy], limits=[own])
    with pytest.raises(ExcitationError, match=r"best one: torque of joint 'joint1' \(by [0-9.]+ N m\)\. Relax"):
        design_excitation(beam, settings=QUICK)
    still = replace(robot, joints=tuple(replace(joint, kind="fixed", terms=()) for joint in robot.joints))
    with pytest.raises(ArgumentError, match="no moving joint"):
        design_excitation(still)


@pytest.mark.parametrize("terms", ["qr", "frobenius", {"condition": 1.0, "a-optimality": 0.1}, "e-optimality"])
def test_criteria_of_the_information_are_accepted(robot: Robot, terms: object) -> None:
    plan = design_excitation(robot, criterion=terms, settings=BRIEF)
    factor = np.linalg.cholesky(plan.information).T  # any W with this information has the same value
    assert plan.value == pytest.approx(Criterion(terms).value(factor), rel=1e-6)


def weightless(robot: Robot, bodies: tuple[int, ...]) -> Robot:
    empty = {robot.bodies[k].joint.child for k in bodies}
    links = [replace(link, inertia=Inertia.zero()) if link.name in empty else link for link in robot.links]
    return replace(robot, links=tuple(links))


def test_torques_of_unknown_masses_are_not_judged(robot: Robot) -> None:
    limits = MotionLimits.from_robot(robot)
    nothing, hand = weightless(robot, (0, 1, 2, 3)), weightless(robot, (3,))
    assert "torque" not in [constraint.name for constraint in build_constraints(nothing, limits)]
    assert "torque (torques cannot be judged, masses are zero)" in find_unchecked_limits(nothing, limits, ())
    (judged,) = (constraint for constraint in build_constraints(hand, limits) if constraint.name == "torque")
    assert set(judged.where) == {f"joint 'joint{j}'" for j in (1, 2, 3)}
    assert any(
        "torque of joint4 (torques cannot be judged" in phrase for phrase in find_unchecked_limits(hand, limits, ())
    )
    assert not any("cannot be judged" in phrase for phrase in find_unchecked_limits(robot, limits, ()))


REFUSED = """
design_excitation(robot, harmonics=2.5) -> harmonics
design_excitation(robot, 5) -> limits
Measured.joint_torques(robot, noise=[1.0, 2.0]) -> noise
design_excitation(robot, prior=np.triu(np.ones((3, 3)))) -> prior
design_excitation(robot, prior=np.eye(3)) -> prior
design_excitation(robot, criterion="equilibrium") -> criterion
SearchSettings(starts=0) -> starts
design_excitation(robot, settings=SearchSettings(initial="plan")) -> initial
"""
"""Call -> what the refusal names."""


@pytest.mark.parametrize("case", REFUSED.strip().splitlines())
def test_what_cannot_be_meant_is_refused_by_name(robot: Robot, case: str) -> None:
    call, name = case.split(" -> ")
    with pytest.raises(ArgumentError, match=name):
        eval(call, globals() | {"robot": robot})
