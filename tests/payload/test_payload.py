"""Loads from joint torques: a loaded and an unloaded run, a known arm, known loads and unknown drive gains."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import approx_fprime
from scipy.stats import chi2

import dynid
from dynid.compiled import inverse_dynamics, regressor
from dynid.diagnosis.verdicts import LEVEL
from dynid.dynamics.inertia_maps import UPPER
from dynid.errors import ArgumentError
from dynid.payload.load import NAMES, Load
from dynid.payload.load_solver import LinearSolution
from dynid.payload.load_study import LoadStudy
from dynid.payload.payload import ArmUncertainty, _judge_arm, arm_directions, identify_payload, payload_problem
from dynid.processing.experiment import Experiment
from dynid.processing.simulation import sum_of_sines
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia
from support.exact_runs import exact_run

TRUTH = Inertia.from_com(2.0, [0.02, -0.03, 0.12], np.diag([0.004, 0.005, 0.003]))
ONCE = (Viscous(0.8), Coulomb(0.6), Offset(0.1), RotorInertia(0.05))


@cache
def arm() -> Robot:
    """A 7-joint arm with friction, offsets and rotors."""
    return dynid.robots.panda().with_terms(*ONCE)


@cache
def heavy() -> Robot:
    return arm().with_body("box", parent=last(arm()), inertia=TRUTH)


def last(robot: Robot) -> str:
    return robot.bodies[-1].joint.child


def run_of(robot: Robot, *, noise: float = 0.0, seed: int = 0, extra: Any = 0.0) -> Experiment:
    """Ten seconds of motion; noise relative to each joint's torque."""
    time = np.arange(1000) / 100.0
    q, dq, ddq = sum_of_sines(robot.dof, period_s=10.0, amplitude=1.2, seed=1)(time)
    effort = inverse_dynamics(robot, q, dq, ddq)
    spread = noise * np.sqrt((effort**2).mean(axis=0))
    effort = effort + np.random.default_rng(seed).normal(size=effort.shape) * spread
    return exact_run(time, (q, dq, ddq), effort=effort + extra)


@pytest.mark.parametrize("share", [0.15, 0.25])
def test_the_torque_that_no_load_explains_is_counted(share: float) -> None:
    """A fast torque that neither arm nor load can make, as a share of the load's torque at its joint."""
    run, empty = run_of(heavy()), run_of(arm())
    carried = run.effort - empty.effort
    fast = np.sin(40.0 * run.time)[:, None] * (np.arange(7) == 1)
    extra = share * fast * np.linalg.norm(carried) / np.linalg.norm(fast)
    extra += 3.0 * np.cos(40.0 * run.time)[:, None] * (np.arange(7) == 6)  # which hardly carries the load
    load = identify_payload(arm(), loaded=replace(run, effort=run.effort + extra))
    told = [f.evidence["unexplained share"] for f in load.findings if f.severity == "warning"]
    assert told == ([pytest.approx(share, rel=0.05)] if share > 0.2 else [])


def test_a_pair_of_runs_gives_all_ten_parameters() -> None:
    load = identify_payload(arm(), loaded=run_of(heavy()), unloaded=run_of(arm()))
    np.testing.assert_allclose(load.vector, TRUTH.vector, atol=1e-6)
    assert load.has_inertia


def test_a_frame_on_the_last_body_and_a_tare() -> None:
    T = np.eye(4)
    T[:3, 3] = [0.0, 0.0, 0.107]
    robot = arm().with_body("tool", parent=last(arm()), inertia=Inertia.zero(), T_parent_body=T)
    load = identify_payload(robot, loaded=run_of(heavy()), unloaded=run_of(arm()), link="tool")
    np.testing.assert_allclose(load.com, TRUTH.com - T[:3, 3], atol=1e-6)
    assert load.frame == "tool"
    part = Load.of(Inertia.from_com(0.5, TRUTH.com, np.zeros((3, 3))), last(arm()))
    rest = identify_payload(arm(), loaded=run_of(heavy()), unloaded=run_of(arm()), tare=part)
    assert rest.mass == pytest.approx(1.5, abs=1e-6)


def test_masses_known_and_friction_not() -> None:
    frictionless = dynid.robots.panda().with_terms(Viscous(), Coulomb(), Offset(), RotorInertia())
    run = run_of(heavy(), noise=0.02)
    deceived = identify_payload(frictionless, loaded=run)
    assert any("no friction" in finding.message for finding in deceived.findings)
    load = identify_payload(frictionless, loaded=run, arm=(0.0, 0.0), physical=False)
    assert np.all(np.abs(load.vector - TRUTH.vector) < 4.5 * load.stderr)
    assert load.mass_stderr < 0.02
    assert not any("no friction" in finding.message for finding in load.findings)


def test_directions_of_an_arm_are_the_slopes_of_its_parameters() -> None:
    """A heavier body of the same shape, a shifted centre, moments by a share of the mean principal moment."""
    slopes = []
    for body in arm().bodies:
        m, com, tensor = body.inertia.mass, body.inertia.com, body.inertia.about_com

        def changed(x: np.ndarray, m: float = m, com: np.ndarray = com, tensor: np.ndarray = tensor) -> np.ndarray:
            more = np.zeros((3, 3))
            more[UPPER] = more.T[UPPER] = x[4:] * np.trace(tensor) / 3.0
            scale = 1.0 + 0.1 * x[0]
            return Inertia.from_com(scale * m, com + 0.01 * x[1:4], scale * tensor + 0.1 * more).vector

        slopes.append(approx_fprime(np.zeros(10), changed))
    found = arm_directions(arm(), (0.1, 0.01))
    np.testing.assert_allclose(found[:70], block_diag(*slopes), atol=1e-7)
    assert not np.any(found[70:])


@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_an_arm_is_judged_by_what_the_data_say_of_it(factor: float) -> None:
    """The data remove 0.5 and 0.64 of the prior variance of two causes, and nearly nothing of the third."""
    white = np.diag(np.append(np.ones(10), [0.5, 0.36, 0.95, 1.0]))
    white[9, 10:] = 0.03, 0.04, 0.0, 7.0  # the last is a friction
    limit = np.sqrt(0.5 * chi2.isf(LEVEL, 2))
    values = np.append(np.zeros(10), [factor * limit, 0.0, 9.0, 9.0])
    solution = LinearSolution(values=values, covariance=0.01 * np.eye(14), undetermined=values > np.inf,
                              noise_std=np.ones(1), white=white)  # fmt: skip
    note, *warning = _judge_arm(ArmUncertainty(0.05, 0.004), np.append(np.zeros(10), [1.0, 1.0, 1.0, 0.0]), solution)
    assert note.evidence["share of the variance"] == pytest.approx(0.25)
    assert "within 5 %, centres of mass within 4 mm (one standard deviation) and makes 25 %" in note.message
    told = [finding.evidence["departure [standard deviations, rms]"] for finding in warning]
    assert told == ([pytest.approx(factor * limit)] if factor > 1.0 else [])


def test_blocks_of_time_share_the_samples_and_end_at_gaps() -> None:
    run = run_of(heavy())
    gap = replace(run, segment=np.repeat([0, 1], [750, 250]))
    equations = payload_problem(arm(), gap, run.rows(slice(0, 500))).equations()
    assert len(equations.blocks) == 24
    np.testing.assert_array_equal(equations.counts, 1500.0)
    for block, rows in ((11, slice(688, 750)), (12, slice(750, 813)), (16, slice(0, 63))):
        for joint, found in enumerate(equations.blocks[block]):
            assert np.linalg.norm(found[:, -1]) == pytest.approx(np.linalg.norm(run.effort[rows, joint]))


def test_an_uncertain_arm_against_the_marginal_likelihood() -> None:
    """The same by the covariance of all torques, noise and arm together, which knows no base parameters."""
    stated = (0.1, 0.01)
    run = run_of(heavy(), noise=0.02)
    load = identify_payload(arm(), loaded=run, arm=stated, physical=False)
    Y = regressor(arm(), run.q, run.dq, run.ddq) / load.residual_std[:, None]
    Y = Y.reshape(-1, Y.shape[2])
    drives, p = slice(70, None), arm().parameter_vector
    y = (run.effort / load.residual_std).ravel() - Y[:, :70] @ p[:70]
    B = Y @ arm_directions(arm(), stated)
    A = np.hstack([Y[:, drives], Y[:, 60:70]])
    small = np.linalg.inv(np.eye(B.shape[1]) + B.T @ B)  # Woodbury: V^-1 = I - B small B^T
    information = A.T @ A - A.T @ B @ small @ B.T @ A
    covariance = np.linalg.inv(information)
    expected = (covariance @ (A.T @ y - A.T @ B @ small @ (B.T @ y)))[-10:]
    spread = np.sqrt(np.diag(covariance))[-10:]
    np.testing.assert_allclose((load.vector - expected) / spread, 0.0, atol=0.02)
    np.testing.assert_allclose(load.stderr / spread, 1.0, atol=0.1)


def test_an_arm_that_is_further_off_than_stated_is_named() -> None:
    run = run_of(heavy())
    change = arm_directions(arm(), (0.2, 0.02)) @ np.random.default_rng(5).normal(size=70)
    run = replace(run, effort=run.effort + regressor(arm(), run.q, run.dq, run.ddq) @ change)
    load = identify_payload(arm(), loaded=run, arm=(0.02, 0.002))
    study = LoadStudy(robot=arm(), load=load)
    assert study.verdict == "doubtful"
    assert "arm-model" in {finding.code for finding in study.problems}
    with pytest.raises(ArgumentError, match="unloaded"):
        identify_payload(arm(), loaded=run, unloaded=run, arm=(0.1, 0.01))
    for wrong in ((-0.1, 0.01), (0.1, np.inf), (0.1,)):
        with pytest.raises(ArgumentError, match="finite"):
            identify_payload(arm(), loaded=run, arm=wrong)
    with pytest.raises(ArgumentError, match="does not move"):
        identify_payload(arm(), loaded=run, link=arm().root)


def test_what_the_torques_cannot_tell_is_infinite() -> None:
    robot = dynid.robots.scara(joints="RRPR")
    loaded = robot.with_body("part", parent=last(robot), inertia=TRUTH)
    load = identify_payload(robot, loaded=run_of(loaded), unloaded=run_of(robot))
    assert np.array(NAMES)[load.undetermined].tolist() == ["XX", "XY", "XZ", "YY", "YZ", "MZ"]
    assert np.isinf(load.com_stderr[2])
    assert load.mass == pytest.approx(2.0, abs=1e-6)
    np.testing.assert_allclose(load.com[:2], TRUTH.com[:2], atol=1e-6)


def test_the_spread_by_gains_is_the_change_by_a_wrong_gain() -> None:
    runs = [run_of(robot, noise=0.01, seed=seed) for seed, robot in enumerate((heavy(), arm()))]
    only, share = np.where(np.arange(7) == 1, 0.02, 0.0), 1e-3
    loads = []
    for std, factor in ((0.0 * only, 1.0), (only, 1.0), (0.0 * only, 1.0 + share * (only > 0.0))):
        loaded, unloaded = (replace(run, effort=factor * run.effort, gain_std=std) for run in runs)
        loads.append(identify_payload(arm(), loaded=loaded, unloaded=unloaded, physical=False))
    plain, stated, wrong = loads
    (told,) = [finding for finding in stated.findings if finding.code == "drive-gains"]
    share_of_gains = 1.0 - plain.covariance[9, 9] / stated.covariance[9, 9]
    assert told.evidence["share of the variance"] == pytest.approx(share_of_gains)
    claimed = np.sqrt(np.diag(stated.covariance - plain.covariance))
    seen = np.abs(wrong.vector - plain.vector) / share * 0.02
    np.testing.assert_allclose(claimed[9], seen[9], rtol=0.05)
    np.testing.assert_allclose(claimed[6:9], seen[6:9], rtol=0.3)  # the weights of the joints move with the residuals


def test_loaded_bare_bare_loaded_cancels_a_drift() -> None:
    warm = np.array([0.0, 0.6, 0.4, 0.4, 0.2, 0.2, 0.1])  # offset that grows from run to run [N m]
    runs = [run_of(robot, extra=k * warm) for k, robot in enumerate((heavy(), arm(), arm(), heavy()))]
    pair = identify_payload(arm(), loaded=runs[0], unloaded=runs[1])
    four = identify_payload(arm(), loaded=[runs[0], runs[3]], unloaded=[runs[1], runs[2]])
    assert np.abs(four.com - TRUTH.com).max() < 0.2 * np.abs(pair.com - TRUTH.com).max()
    assert abs(four.mass - 2.0) < 1e-3
