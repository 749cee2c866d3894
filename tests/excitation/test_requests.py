"""What a design is asked for: earlier motions of another period, arguments that cannot be meant, masses not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dynid.errors import ArgumentError, ExcitationError
from dynid.excitation.constraints import build_constraints, measure_margins
from dynid.excitation.criteria import (
    AOptimality,
    ConditionNumber,
    DOptimality,
    Equilibrium,
    FrobeniusCondition,
    GeometricCost,
    QRCondition,
    WeightedCost,
)
from dynid.excitation.design import design_excitation
from dynid.excitation.design_settings import DesignGoal, SearchSettings
from dynid.excitation.limits import HalfSpace, MotionLimits, Workspace
from dynid.excitation.measured import JointTorques
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.excitation.trajectories.time_scaling import scale_to_limits
from dynid.kernels import inverse_dynamics
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import JointLimits

QUICK = SearchSettings(starts=1, iterations=5, outer=2)


def peak_shares(plan, limits: MotionLimits) -> tuple[float, float]:
    """Largest share of the position and of the velocity range, over the motion's own length."""
    q, dq, _ = plan.trajectory.evaluate(np.linspace(0.0, plan.trajectory.duration, 5001))
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    return float(np.max(np.abs(q - middle) / half)), float(np.max(np.abs(dq) / limits.velocity))


@pytest.mark.parametrize(("period_s", "harmonics"), [(40.0, 3), (3.0, 3), (10.0, 2), (10.0, 6)])
def test_an_earlier_motion_of_another_period_becomes_one_of_the_asked_family(
    robot: Robot, period_s: float, harmonics: int
) -> None:
    limits = MotionLimits.from_robot(robot)
    rng = np.random.default_rng(0)
    wild = FourierTrajectory(coefficients=rng.normal(size=(1 + 2 * harmonics, robot.dof)), period_s=period_s)
    plan = design_excitation(robot, limits, period_s=10, harmonics=3, settings=replace(QUICK, initial=wild, starts=0))
    assert isinstance(plan.trajectory, FourierTrajectory)
    assert (plan.trajectory.period_s, plan.trajectory.harmonics) == (10.0, 3)
    assert max(peak_shares(plan, limits)) <= 1.0 + 1e-4


WRONG = {
    "harmonics": [-1, 0, 2.5, "3", True],
    "period_s": [np.inf, np.nan, 0.0, -1.0, "10"],
    "seed": [-1, 1.5],
    "starts": [0, -1, 1.5],
    "noise": [[1.0, 2.0], 0.0, -1.0, np.nan, "loud"],
    "prior": [1.0, np.eye(3), "much"],
    "criterion": ["D", 5],
    "limits": [5],
    "speed_coverage": [np.nan, 2.0, -1.0],
    "processes": [0, -3],
    "time_limit_s": [np.nan, -1.0],
    "rate_hz": [0.0, -5.0, np.nan, np.inf],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_what_cannot_be_meant_is_refused_by_name(robot: Robot, name: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=name):
        design_with(robot, name, value)


def design_with(robot: Robot, name: str, value: Any) -> None:
    """A design with one odd value, handed to whatever takes it."""
    others: dict[str, Any] = {"settings": QUICK}
    if name == "noise":
        others["goal"] = DesignGoal(observation=JointTorques.of(robot, noise=value))
    elif name in DesignGoal.__slots__:
        others["goal"] = DesignGoal(**{name: value})
    elif name in SearchSettings.__slots__:
        others["settings"] = SearchSettings(**{name: value})
    else:
        others[name] = value
    design_excitation(robot, **others)


def test_a_prior_must_be_information(robot: Robot) -> None:
    size = len(design_excitation(robot, settings=QUICK).parameter_names)
    for odd in (np.full((size, size), np.nan), np.triu(np.ones((size, size))), -np.eye(size)):
        with pytest.raises(ArgumentError, match="prior"):
            design_excitation(robot, goal=DesignGoal(prior=odd), settings=QUICK)


@pytest.mark.parametrize(
    "criterion",
    [Equilibrium(), WeightedCost(((1.0, Equilibrium()),)), GeometricCost(((1.0, AOptimality()), (1.0, Equilibrium())))],
)
def test_criteria_of_the_whole_matrix_are_refused(robot: Robot, criterion) -> None:
    with pytest.raises(ArgumentError, match=r"every entry of the observation matrix.*DOptimality"):
        design_excitation(robot, goal=DesignGoal(criterion=criterion), settings=QUICK)


@pytest.mark.parametrize(
    "criterion",
    [
        QRCondition(),
        FrobeniusCondition(),
        WeightedCost(((1.0, ConditionNumber()), (0.1, AOptimality()))),
        WeightedCost(((1.0, DOptimality()),)),
        GeometricCost(((1.0, AOptimality()),)),
    ],
    ids=str,
)
def test_criteria_of_the_information_are_accepted(robot: Robot, criterion) -> None:
    plan = design_excitation(robot, goal=DesignGoal(criterion=criterion), settings=QUICK)
    assert plan.criterion == criterion
    factor = np.linalg.cholesky(plan.information).T  # any W with this information has the same value
    assert plan.value == pytest.approx(criterion.value(factor), rel=1e-6)


def test_a_robot_that_cannot_move_is_refused(robot: Robot) -> None:
    still = replace(robot, joints=tuple(replace(joint, kind="fixed", terms=()) for joint in robot.joints))
    with pytest.raises(ArgumentError, match="no moving joint"):
        design_excitation(still)


def test_workspaces_that_say_nothing_are_refused(robot: Robot) -> None:
    limits = MotionLimits.from_robot(robot)
    with pytest.raises(ArgumentError, match="does not move"):
        build_constraints(robot, limits.with_workspace(Workspace.box(robot.root, [-1, -1, -1], [1, 1, 1])))
    for lower in ([1, -1, -1], [np.nan, -1, -1], [-1, -1]):
        with pytest.raises(ArgumentError, match="box"):
            Workspace.box("tool", lower, [0.5, 1, 1])
    with pytest.raises(ArgumentError, match="not finite"):
        HalfSpace(normal=np.array([0, 0, 1.0]), offset=np.nan)


def weightless(robot: Robot, bodies: tuple[int, ...]) -> Robot:
    empty = {robot.bodies[k].joint.child for k in bodies}
    links = [replace(link, inertia=Inertia.zero()) if link.name in empty else link for link in robot.links]
    return replace(robot, links=tuple(links))


def test_torques_of_unknown_masses_are_not_judged(robot: Robot) -> None:
    nothing = design_excitation(weightless(robot, (0, 1, 2, 3)), settings=QUICK)
    assert not [m for m in nothing.margins if m.limit == "torque"]
    assert "torques cannot be judged, masses are zero" in nothing.summary()
    assert "unjudged-torque" in {finding.code for finding in nothing.unchecked}
    hand = design_excitation(weightless(robot, (3,)), settings=QUICK)
    assert {m.where for m in hand.margins if m.limit == "torque"} == {f"joint 'joint{j}'" for j in (1, 2, 3)}
    assert "torque of joint4 (torques cannot be judged" in hand.summary()
    assert "cannot be judged" not in design_excitation(robot, settings=QUICK).summary()


def swing(robot: Robot, size: float = 0.1, period_s: float = 10.0) -> FourierTrajectory:
    coefficients = size * np.random.default_rng(0).normal(size=(7, robot.dof))
    limits = MotionLimits.from_robot(robot)
    coefficients[0] = 0.5 * (limits.lower + limits.upper)
    return FourierTrajectory(coefficients=coefficients, period_s=period_s)


def test_time_scaling_by_torque_or_tool_speed_alone(robot: Robot) -> None:
    free = np.full(robot.dof, np.inf)
    limits = replace(MotionLimits.from_robot(robot), velocity=free, acceleration=free)
    for period_s in (10.0, 1e-3):  # seconds, and a path that must be run thousands of times slower
        path = swing(robot, 0.05 * 10.0 / period_s, period_s)
        scaled = scale_to_limits(path, robot, limits)
        q, dq, ddq = scaled.evaluate(np.linspace(0.0, scaled.duration, 4001))
        shares = np.abs(inverse_dynamics(robot, q, dq, ddq)) / limits.torque
        assert shares.max() == pytest.approx(1.0, abs=1e-3)
    tool = Workspace(link=robot.bodies[-1].joint.child, point=np.zeros(3), speed=0.2)
    only = replace(limits, torque=free, workspaces=(tool,))
    slow = scale_to_limits(swing(robot), robot, only)
    found = measure_margins(build_constraints(robot, only), slow.motion(np.linspace(0.0, slow.duration, 2001)))
    assert min(m.relative for m in found if m.limit == "tool speed") == pytest.approx(0.0, abs=1e-6)


def test_time_scaling_says_what_makes_it_impossible(robot: Robot) -> None:
    limits, free = MotionLimits.from_robot(robot), np.full(robot.dof, np.inf)
    with pytest.raises(ExcitationError, match=r"velocity of joint 'joint2' is zero"):
        scale_to_limits(swing(robot), robot, replace(limits, velocity=limits.velocity * [1, 0, 1, 1]))
    with pytest.raises(ArgumentError, match="no limit has to do with the speed"):
        scale_to_limits(swing(robot), robot, replace(limits, velocity=free, acceleration=free, torque=free))
    with pytest.raises(ExcitationError, match=r"at any speed: torque of joint 'joint2'"):
        scale_to_limits(swing(robot), robot, replace(limits, torque=limits.torque * [1, 1e-3, 1, 1]))


def test_conflicts_name_what_is_beyond_and_nothing_else() -> None:
    heavy = Inertia.from_com(10.0, [0.5, 0, 0], 0.1 * np.eye(3))
    own = JointLimits(lower=-0.1, upper=0.1, velocity=1.0, effort=5.0)
    robot = from_dh([DH(alpha=90.0)], degrees=True, inertias=[heavy], limits=[own])
    with pytest.raises(ExcitationError, match=r"best one: torque of joint 'joint1' \(by [0-9.]+ N m\)\. Relax"):
        design_excitation(robot, settings=SearchSettings(starts=1))
