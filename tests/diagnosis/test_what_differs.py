"""What differs between runs, and what a model leaves of a run: planted in one joint, found there with its amount."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import dynid
from campaigns import diagnosis as campaign
from dynid.diagnosis.evidence import take_excerpt
from dynid.diagnosis.runs import diagnose_runs, explain_residuals
from dynid.estimators import build_equations
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from support.exact_runs import exact_run

JOINT = 1
HELD = dynid.Inertia.from_com(3.0, (0.0, 0.0, 0.1), 0.03 * np.eye(3))


@cache
def arm_and_runs() -> tuple[Robot, tuple[Experiment, Experiment]]:
    """An arm with friction and offsets, and two motions of it with a little noise of the torques."""
    robot = campaign.arm("ur10", 7)[0]
    time, rng = np.arange(3000) / 150.0, np.random.default_rng(0)
    states = [campaign.motion(robot, k)(time) for k in (1, 2)]
    torques = [dynid.inverse_dynamics(robot, *state) for state in states]
    noisy = [torque + 2e-3 * torque.std(axis=0) * rng.normal(size=torque.shape) for torque in torques]
    return robot, tuple(exact_run(time, state, effort=e) for state, e in zip(states, noisy, strict=True))  # type: ignore[return-value]


def planted(kind: str, robot: Robot, run: Experiment) -> Experiment:
    """The run with a fault in one joint's torque, or a load that all joints carry."""
    one = np.arange(robot.dof) == JOINT
    late = np.gradient(run.effort, run.time, axis=0)
    extra = {
        "gain": 0.2 * run.effort * one,
        "offset": 7.0 * one * np.ones_like(run.effort),
        "drift": 40.0 * one * np.linspace(-0.5, 0.5, run.samples)[:, None],
        "friction": one * (6.0 * np.sign(run.dq) + 4.0 * run.dq),
        "delay": -0.03 * one * late,
    }
    heavy = robot.with_body("held", parent=robot.moving_joints[-1].child, inertia=HELD)
    states = run.q, run.dq, run.ddq
    held = dynid.inverse_dynamics(heavy, *states) - dynid.inverse_dynamics(robot, *states)
    return replace(run, effort=run.effort + extra.get(kind, held))


DIFFERENCES = "gain runs-differ 18.2, offset runs-differ 7, drift drift 40, friction runs-differ 6, load load 3"
"""Fault, code of its finding, and amount; that of the gain, 1.2, is told of the mean of both runs, 1.1."""
LEFT = "friction missing-friction, offset runs-differ, gain gain, delay delay, load load"


@pytest.mark.parametrize("case", DIFFERENCES.split(", "))
def test_a_run_differs_from_the_other_by_what_was_planted(case: str) -> None:
    kind, code, amount = case.split()
    robot, (first, second) = arm_and_runs()
    found = diagnose_runs(build_equations(robot, [first, planted(kind, robot, second)]))[0]
    assert (found.code, found.severity) == (code, "warning")
    assert found.joint == (None if kind == "load" else robot.joint_names[JOINT])
    (told,) = (value for name, value in found.evidence.items() if name.startswith(kind))
    assert abs(told) == pytest.approx(float(amount), rel=0.15)
    spread = float(re.findall(r"\+- (\S+)", found.message)[0])
    assert abs(abs(told) - float(amount)) < 3.0 * spread < 0.5 * float(amount)
    agree = diagnose_runs(build_equations(robot, [first, second]))
    assert {finding.severity for finding in agree} <= {"note"}


@pytest.mark.parametrize("case", LEFT.split(", "))
def test_what_a_model_leaves_is_explained_by_what_was_planted(case: str) -> None:
    kind, code = case.split()
    robot, (run, _) = arm_and_runs()
    clean = dynid.inverse_dynamics(robot, run.q, run.dq, run.ddq)
    changed, every = planted(kind, robot, run), np.ones(robot.dof, dtype=bool)
    (found,) = explain_residuals(robot, [changed], [clean], every)
    assert found.code == code
    assert found.joint == (None if kind == "load" else robot.joint_names[JOINT])
    share = found.evidence["explained share"]
    assert share > 0.9
    assert f"{100 * share:.0f} % of the held-out residuals" in found.message
    assert not explain_residuals(robot, [run], [clean], every)
    assert kind == "load" or not explain_residuals(robot, [changed], [clean], np.arange(robot.dof) != JOINT)


def test_an_excerpt_leaves_out_missing_torques_and_moves_the_others_back() -> None:
    robot, time = arm_and_runs()[0], np.arange(4000) / 200.0
    angle = 2.0 * time[:, None] + np.arange(6.0)
    late = np.sin(angle - 0.06)
    late[1000:1020, 2] = np.nan
    run = exact_run(time, (np.sin(angle), 2.0 * np.cos(angle), -4.0 * np.sin(angle)), effort=late)
    excerpt = take_excerpt(robot, run, 0.03)
    there, angle = excerpt.run.valid, 2.0 * excerpt.run.time[:, None] + np.arange(6.0)
    np.testing.assert_allclose(excerpt.run.effort[there], np.sin(angle)[there], atol=3e-3)
    speed = 2.0 * np.cos(angle)
    inside = there & (excerpt.run.time < 19.9)[:, None]  # a rate needs samples on both sides
    np.testing.assert_allclose(excerpt.slope[inside], speed[inside], atol=0.05)
    np.testing.assert_allclose(excerpt.harmless[-1], speed * np.abs(speed), atol=1e-9)
    gap = np.abs(excerpt.run.time - 5.02) < 0.05
    assert not there[gap, 2].any()
    assert there[gap, 0].any()
    assert there.mean() > 0.8
