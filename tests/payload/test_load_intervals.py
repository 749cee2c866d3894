"""Loads by a sensor: no bias by filters, rests alone for static loads, intervals that know how few poses there are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.signal import lfilter
from scipy.stats import t as student

import dynid
from campaigns.load_coverage import NOISES, Trial, trial
from dynid.payload.load_solver import BlockEquations, block_covariance, count_blocks, solve_blocks, solve_minimum_norm
from dynid.payload.sensing import Sensing
from dynid.payload.wrench_equations import pose_equations, wrench_data
from dynid.payload.wrist import _solve, identify_load, identify_load_from_poses
from dynid.processing.cutoff import HIGHEST_CUTOFF
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
    assert run.smoothing is not None
    data = wrench_data(ROBOT, run, LINK, Sensing())
    assert data.cutoff_hz == run.smoothing.cutoff_hz
    assert len(data.time) == run.samples - 2 * np.ceil(200.0 * run.smoothing.settling_s)
    plain = dynid.process(log, cutoff_hz=3.0)
    assert plain.derivation is not None
    most = HIGHEST_CUTOFF * 200.0  # three times the cutoff of the positions, if that is below
    for hz, expected in ((0.33 * most, 0.99 * most), (0.34 * most, None), (None, None)):
        smoothing = replace(plain.derivation.smoothing, cutoff_hz=hz)
        own = replace(plain, derivation=replace(plain.derivation, smoothing=smoothing))
        data = wrench_data(ROBOT, own, LINK, Sensing())
        assert (data.cutoff_hz, len(data.time)) == (expected and pytest.approx(expected), plain.samples)


@pytest.mark.parametrize(
    ("still", "slow", "fast", "poses", "step", "found"),
    [
        (210, 0.009, 1.0, 3, 0.019, 3),
        (210, 0.009, 1.0, 3, 0.021, 4),
        (190, 0.009, 1.0, 5, 0.0, 1000),  # less than a fifth of the samples
        (300, 0.011, 1.0, 3, 0.0, 1000),  # faster than a hundredth of the motion
        (300, 9e-4, 0.05, 3, 0.0, 3),
        (300, 0.0011, 0.05, 3, 0.0, 1000),
        (300, 0.009, 1.0, 2, 0.0, 1000),
    ],
)
def test_rests_of_a_static_log_become_poses(
    still: int, slow: float, fast: float, poses: int, step: float, found: int
) -> None:
    """Samples at rest, speeds, number of rests, and a step within the first rest."""
    length, period = still // poses, 990 // poses
    rests = np.arange(1000) % period < length
    rests[990:] = False
    dq = np.where(rests, slow, fast)[:, None] * np.ones(6)
    dq[-5:] = 100.0  # a peak
    q = np.cumsum(np.where(rests, 0.0, 0.01))[:, None] * np.ones(6)
    q[length // 2 : length] += step
    run = exact_run(np.arange(1000) / 100.0, (q, dq, 0.0 * q), wrench=np.arange(6000.0).reshape(1000, 6))
    data = wrench_data(ROBOT, run, LINK, Sensing(), form="static")
    assert (data.rests, len(data.time)) == (found < 1000, found)
    if data.rests:
        mean = np.arange(period, period + length).mean()  # of the second rest
        assert data.time[-2] == pytest.approx(mean / 100.0)
        assert data.wrench[-2, 0] == pytest.approx(6.0 * mean)


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
    equations = pose_equations(turns, late, Sensing())
    plain, with_drift = (_solve(equations, Sensing(find=f)) for f in ((), ("drift",)))
    most = np.maximum(plain.stderr, with_drift.stderr[:16])[6:10] ** 2
    changes = (plain.values - with_drift.values[:16])[6:10] ** 2
    np.testing.assert_allclose(np.diag(drifting.covariance)[6:], most + changes)


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
        e = np.linalg.solve(sqrtm(np.eye(480) - H), part[:, -1] - part[:, :-1] @ values)
        score = part[:, :-1].T @ e
        meat += np.outer(score, score)
    found = block_covariance(halves, values, root, np.zeros((0, 4)))
    ratio = np.diag(found) / np.diag(C @ meat @ C)
    assert np.all(ratio >= 0.99 * (student.ppf(0.975, 2) / 1.96) ** 2)  # two blocks: one or two degrees of freedom
    assert np.all(ratio <= 1.01 * (student.ppf(0.975, 1) / 1.96) ** 2)


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
