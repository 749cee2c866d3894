"""Loads by a sensor: no bias by filters, rests alone for static loads, intervals that know how few poses there are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import t as student

import dynid
from campaigns.load_coverage import NOISES, Trial, trial
from dynid.compiled import wrench_regressor
from dynid.payload.load_solver import BlockEquations, block_covariance, count_blocks, solve_blocks, solve_minimum_norm
from dynid.payload.sensing import Sensing
from dynid.payload.wrist import identify_load, identify_load_from_poses
from payload.test_wrist import LINK, ROBOT, TRUTH, poses_of, run_of
from support.exact_runs import exact_run


@pytest.mark.parametrize("noise", NOISES)
def test_noise_of_the_positions_does_not_bias_the_mass(noise: float) -> None:
    """The wrench alone through the filter of the positions made masses 0.3 to 1.9 % too small."""
    trials: list[Trial] = [trial(seed, noise) for seed in range(8)]
    assert abs(np.mean([one.mass_error for one in trials])) < 3e-4
    assert np.mean([one.covered for one in trials]) > 0.85


def test_a_wrench_that_was_low_passed_with_the_torques_meets_equations_that_were_too() -> None:
    exact = run_of(noise=0.02, rate=200.0)
    log = dynid.Recording(
        time=exact.time, q=exact.q, effort=exact.effort, wrench=exact.wrench, joint_names=ROBOT.joint_names
    )
    run = dynid.process(log, filter_effort=True, cutoff_hz=3.0)
    assert identify_load(ROBOT, run, sensor_frame=LINK).mass == pytest.approx(TRUTH.mass, rel=2e-3)


def test_static_form_uses_the_rests_alone() -> None:
    """Twelve poses of a second with quick moves between them: the moves made the mass uncertain by 18 g."""
    rng = np.random.default_rng(0)
    poses = rng.uniform(-1.2, 1.2, size=(12, ROBOT.dof))
    path = dynid.excitation.QuinticTrajectory(
        q=np.repeat(poses, 2, axis=0), dq=np.zeros((24, ROBOT.dof)), durations=np.tile([1.0, 0.5], 12)[:-1]
    )
    time = np.arange(0.0, path.duration, 0.005)
    motion = path.evaluate(time)
    wrench = wrench_regressor(ROBOT, LINK, *motion) @ TRUTH.vector + 0.02 * rng.normal(size=(len(time), 6))
    run = exact_run(time, motion, wrench=wrench)
    load = identify_load(ROBOT, run, sensor_frame=LINK, form="static")
    assert load.mass_stderr < 1e-3
    assert abs(load.mass - TRUTH.mass) < 3.0 * load.mass_stderr


@pytest.mark.parametrize(("count", "repeats"), [(7, 1), (7, 50), (30, 1)])
def test_few_poses_have_wide_intervals_that_hold_the_truth(count: int, repeats: int) -> None:
    """Poses with errors that are one per pose (cables, hysteresis), however often each is measured."""
    rng, loads = np.random.default_rng(1), []
    for seed in range(60):
        turns, wrench = (np.repeat(part, repeats, axis=0) for part in poses_of(count, seed, 0.3))
        loads.append(identify_load_from_poses(turns, wrench + 0.01 * rng.normal(size=wrench.shape)))
    inside = [
        np.abs(np.append(load.mass - TRUTH.mass, load.com - TRUTH.com))
        < 1.96 * np.append(load.mass_stderr, load.com_stderr)
        for load in loads
    ]
    assert np.mean(inside) > 0.9


def test_a_drift_that_is_found_widens_the_interval() -> None:
    turns, wrench = poses_of(12, 2, 0.003)
    calm = identify_load_from_poses(turns, wrench)
    late = wrench + np.outer(np.arange(12.0), [0.2, -0.1, 0.15, 0, 0, 0])
    drifting, right = (identify_load_from_poses(turns, late, sensing=Sensing(find=f)) for f in ((), ("drift",)))
    assert not any(finding.code == "drift" for load in (calm, right) for finding in load.findings)
    (told,) = [finding.message for finding in drifting.findings if finding.code == "drift"]
    assert "up to 2.2 N" in told
    assert abs(drifting.mass - TRUTH.mass) < 1.96 * drifting.mass_stderr
    assert drifting.mass_stderr > 3.0 * calm.mass_stderr


def test_blocks_are_three_periods_of_the_cutoff_and_neither_few_nor_many() -> None:
    assert [count_blocks(30.0, hz) for hz in (0.1, 1.0, 2.0, 9.0, None)] == [8, 10, 20, 24, 24]


def test_the_sandwich_against_its_definition_and_correlated_noise() -> None:
    rng = np.random.default_rng(3)
    W = rng.normal(size=(960, 1, 4)) + np.sin(np.arange(960) / 40.0)[:, None, None]
    x = np.array([1.0, -2.0, 0.5, 0.0])
    inside, sizes = [], []
    for _ in range(150):
        noise = lfilter([1.0], [1.0, -0.8], rng.normal(size=960))[:, None]
        found = solve_blocks(BlockEquations.of(W, W @ x + noise, np.arange(960) // 40))
        inside.append(np.abs(found.values - x) < 1.96 * np.sqrt(np.diag(found.covariance)))
        sizes.append(np.diag(found.covariance) / np.diag(found.white))
    assert 0.92 < np.mean(inside) < 0.98
    assert np.mean(sizes) > 1.4  # the noise is correlated
    y = W @ x + noise
    rows = np.concatenate([W[:, 0], y], axis=1)
    values, root, _ = solve_minimum_norm(rows[:, :-1], rows[:, -1])
    halves = [rows[:480], rows[480:]]
    C = np.linalg.inv(W[:, 0].T @ W[:, 0])
    meat = np.zeros((4, 4))
    for part in halves:
        H = part[:, :-1] @ C @ part[:, :-1].T
        e = np.linalg.solve(np.real(_root(np.eye(480) - H)), part[:, -1] - part[:, :-1] @ values)
        score = part[:, :-1].T @ e
        meat += np.outer(score, score)
    found = block_covariance(halves, values, root, np.zeros((0, 4)))
    ratio = np.diag(found) / np.diag(C @ meat @ C)
    assert np.all(ratio >= 0.99 * (student.ppf(0.975, 2) / 1.96) ** 2)  # two blocks: one or two degrees of freedom
    assert np.all(ratio <= 1.01 * (student.ppf(0.975, 1) / 1.96) ** 2)


def _root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
