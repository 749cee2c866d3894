"""Intervals from the scores of blocks: right on average for known covariances, direction by direction, run by run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter

from dynid.estimators.equations import build_equations
from dynid.estimators.estimate import Estimator
from dynid.estimators.linear.least_squares import OLS, WLS
from dynid.estimators.linear.robust import Huber
from dynid.estimators.score_sums import WAVES, ScoreSums, make_waves, student_factor, wave_number
from dynid.processing.experiment import Experiment
from estimators.planted import arm, covered, equations_of, planted_run

Floats = NDArray[np.float64]
BLOCKS, SAMPLES = 12, 600


def claimed(X: Floats, e: Floats, runs: NDArray[np.int64], kinds: str) -> Floats:
    """(b, b) covariance of least squares as claimed, from scores in equal blocks."""
    A = X.T @ X
    root = np.linalg.inv(np.linalg.cholesky(A)).T
    residual = e - X @ np.linalg.solve(A, X.T @ e)
    v = residual @ residual / (len(e) - X.shape[1])
    parts = np.split(np.arange(len(e)), BLOCKS)
    sums = ScoreSums(root, np.full(BLOCKS, SAMPLES / BLOCKS), runs)
    for place, part in enumerate(parts):
        sums.add(place, X[part] @ root, residual[part], np.full(len(part), v))
    return sums.covariance(tuple(kinds))


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("blocks", [11, 40])
def test_degrees_of_freedom_are_those_of_the_covariances_themselves(blocks: int, alike: bool) -> None:
    """Against C_kl formed block by block: ``sum_s (k_s - A_k) B_s (l_s - A_l)'``."""
    rng = np.random.default_rng(4)
    r = 5
    Z = rng.normal(size=(blocks, 30, r)) * rng.uniform(0.2, 2.0, (blocks, 1, r))
    root = np.linalg.inv(np.linalg.cholesky(np.einsum("sij,sik->jk", Z, Z))).T
    Z = Z @ root
    noise = np.ones((blocks, 30)) if alike else rng.uniform(0.5, 2.0, (blocks, 30))
    bread, filling = Z.swapaxes(1, 2) @ Z, Z.swapaxes(1, 2) @ (noise[..., None] * Z)
    sums = ScoreSums(root, rng.uniform(20.0, 40.0, blocks), np.zeros(blocks, int))
    for place in range(blocks):
        sums.add(place, Z[place], rng.normal(size=30), noise[place])
    waves = sums._weights
    inner = np.tensordot(waves, bread, axes=1)
    away = waves[:, :, None, None] * np.eye(r) - inner[:, None]  # (m, S, r, r)
    C = np.einsum("ksij,sjn,lsqn->kliq", away, filling, away)
    np.testing.assert_allclose(sums._expected(), np.einsum("kkij->ij", C), rtol=1e-12, atol=1e-13)
    rows = rng.normal(size=(7, r))
    table = np.einsum("ci,klij,cj->ckl", rows, C, rows)
    expected = np.einsum("ckk->c", table) ** 2 / np.sum(table**2, axis=(1, 2))
    np.testing.assert_allclose(sums._freedom(rows), expected, rtol=1e-10)


def test_students_factor_is_that_of_tables() -> None:
    np.testing.assert_allclose(student_factor([1, 8, 30]) * 1.959964, [12.706, 2.306, 2.042], atol=6e-4)


def test_short_logs_have_fewer_waves() -> None:
    """Lazarus, Lewis, Stock and Watson (2018): 0.4 T^(2/3), as 8.6 for T = 100 and 5.4 for T = 50."""
    assert [wave_number(values) for values in (1.0, 30.0, 50.0, 100.0, 1e6)] == [3, 4, 5, WAVES, WAVES]


def test_variances_are_mean_squares_of_cosine_sums() -> None:
    """Of an offset and a sign that both act all the time; what acts in one block only gets the average of all."""
    t, block = np.arange(SAMPLES), SAMPLES // BLOCKS
    X = np.column_stack([np.ones(SAMPLES), (-1.0) ** t, (-1.0) ** (t // 2) * (t // block == 5) * (t % block < 48)])
    e = np.random.default_rng(6).normal(size=SAMPLES) * (1.0 + t / 300.0)
    size = (X**2).sum(axis=0)
    residual = e - X @ (X.T @ e / size)
    plain = residual @ residual / (SAMPLES - 3) / size
    waves = np.cos(np.pi * np.outer(np.arange(1, WAVES + 1), (np.arange(BLOCKS) + 0.5) / BLOCKS))
    sums = waves @ (X[:, :2] * residual[:, None]).reshape(BLOCKS, block, 2).sum(axis=1) / size[:2]
    shown = np.zeros((3, 3))
    shown[:2, :2] = 2.0 * sums.T @ sums / WAVES  # a cosine has a mean square of one half
    average = np.mean(np.diag(shown) / plain)
    shown[2, 2] = average * plain[2]
    expected = (2.306 / 1.96) ** 2 * (0.99 * shown + 0.01 * average * np.diag(plain))
    np.testing.assert_allclose(
        claimed(X, e, np.zeros(BLOCKS, int), "abc"), expected, rtol=1e-3, atol=1e-3 * expected[0, 0]
    )


@pytest.mark.parametrize(("kinds", "student"), [("ab", 4.303), ("aa", 2.776)])
def test_differences_between_runs_are_those_of_their_means(kinds: str, student: float) -> None:
    """The variance of three runs' offsets over three, less what blocks explain; parameters of one kind share theirs."""
    X = np.column_stack([np.ones(SAMPLES), (-1.0) ** np.arange(SAMPLES)])
    runs, rng = np.repeat([0, 1, 2], BLOCKS // 3), np.random.default_rng(7)
    e, of_runs = rng.normal(size=SAMPLES), np.kron(np.eye(3), np.ones((SAMPLES // 3, 1)))
    e -= np.sum([x * (of_runs @ (of_runs.T @ (x * e))) / (SAMPLES / 3) for x in X.T], axis=0)  # no run deviates
    within = np.diag(claimed(X, e, runs, kinds))
    offsets = np.array([0.6, -0.5, 0.3])
    found = np.diag(claimed(X, e + of_runs @ offsets, runs, kinds))
    explained = within / (2.262 / 1.96) ** 2  # by three cosines in each run
    between = np.array([offsets.var(ddof=1) / 3.0, 0.0]) - explained
    if kinds == "aa":
        between = np.full(2, np.sum(between / explained**2) / np.sum(1.0 / explained**2))
    np.testing.assert_allclose(found, within + (student / 1.96) ** 2 * np.maximum(between, 0.0), rtol=1e-3)


def test_waves_are_cosines_of_the_time_in_a_run_or_of_the_sequence_of_runs() -> None:
    counts = np.array([10.0, 20.0, 10.0, 5.0, 5.0, 0.0])
    one = make_waves(counts[:3], np.zeros(3, int), 2)
    np.testing.assert_allclose(one, np.cos(np.pi * np.outer([1, 2], [1 / 8, 1 / 2, 7 / 8])))
    few = make_waves(counts[:5], np.array([0, 0, 0, 4, 4]), 3)  # two each, but a run of two blocks has one only
    second = [[0.0, 0.0, 0.0, *np.cos(np.pi * np.array([1 / 4, 3 / 4]))]]
    np.testing.assert_allclose(few, np.vstack([np.pad(one, ((0, 0), (0, 2))), second]))
    many = make_waves(np.repeat([10.0, 5.0, 5.0], 2), np.repeat([1, 2, 7], 2), 2)  # as blocks of 20, 10, 10
    np.testing.assert_allclose(many, np.cos(np.pi * np.outer([1, 2], np.repeat([1 / 4, 5 / 8, 7 / 8], 2))))


def test_joints_that_stand_still_in_all_runs_are_left_open() -> None:
    """Their own parameters have no equations; the others have intervals that differences between runs may widen."""
    runs = [planted_run(arm(), amplitude=(0.0, 0.8, 0.8), noise=0.3, seed=k, motion=k) for k in range(2)]
    at_rest = [replace(run, valid=run.valid & [False, True, True]) for run in runs]
    estimate = WLS().solve(build_equations(arm(), at_rest))
    stderr = dict(zip(estimate.names, estimate.stderr, strict=True))
    assert not np.isfinite(stderr["FV1"])
    assert np.isfinite(stderr["FV3"])


def test_one_block_gives_the_covariance_of_independent_residuals() -> None:
    equations = build_equations(arm(), planted_run(arm(), noise=0.1, samples=400), blocks=1)
    estimate = WLS().solve(equations)
    weights = 1.0 / estimate.noise_std**2
    A, B = (R.T @ R for R in (equations.information.weight(w).R for w in (weights, weights * estimate.inflation)))
    expected = np.linalg.solve(A, np.linalg.solve(A, B).T)
    np.testing.assert_allclose(estimate.stderr, np.sqrt(np.diag(expected)), rtol=1e-2)


def test_exact_data_have_intervals_that_are_not_zero() -> None:
    estimate = WLS().solve(equations_of(arm(), samples=400))
    assert np.all(estimate.stderr > 0.0)
    assert np.all(estimate.stderr < 1e-6 * (np.abs(estimate.values) + 1.0))


def coloured_run(seed: int, pole: float = 0.98, samples: int = 1500) -> Experiment:
    """A motion of its own with autoregressive torque noise."""
    run = planted_run(arm(), samples=samples, period_s=15.0, motion=seed)
    white = np.random.default_rng(seed).normal(size=(samples + 500, 3))
    noise = lfilter([np.sqrt(1.0 - pole**2)], [1.0, -pole], white, axis=0)[500:]
    return replace(run, effort=run.effort + 0.3 * noise)


@pytest.mark.parametrize(("estimator", "runs"), [(OLS(), 15), (WLS(), 15), (Huber(), 8)], ids=["ols", "wls", "huber"])
def test_every_group_is_covered_under_noise_of_long_memory(estimator: Estimator, runs: int) -> None:
    logs = [build_equations(arm(), coloured_run(seed)) for seed in range(runs)]
    hits = [covered(equations, estimator.solve(equations)) for equations in logs]
    for prefix in ("OFF", "FC", "FV"):
        mine = [name.startswith(prefix) for name in logs[0].names]
        assert np.mean(np.array(hits)[:, mine]) >= 0.83, prefix
    assert 0.90 < np.mean(hits) < 0.99
