"""Noise of joints and autocorrelation factors from the samples themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from dynid.compiled import regressor
from dynid.data_reduction.factor import RESOLUTION
from dynid.errors import IdentifiabilityError
from dynid.estimators.equations import build_equations
from dynid.estimators.estimate import Estimator
from dynid.estimators.linear.energy_differences import Energy
from dynid.estimators.linear.least_squares import WLS
from dynid.estimators.linear.robust import Huber
from dynid.estimators.noise import check_data, correlation_inflation, joint_variances, whitened_scores
from dynid.identifiability.base import base_parameters
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from estimators.planted import SCARA as ROBOT
from estimators.planted import arm, covered, planted_run

BASE = base_parameters(ROBOT)
TRUTH = BASE.project(ROBOT.parameter_vector)


def test_variances_and_factors_from_the_samples_themselves() -> None:
    """Scores of ten blocks against ``g' A^+ g`` and its expected value; a silent, an exact and two noisy joints."""
    run = planted_run(ROBOT, noise=(0.5, 1.0, 0.0, 0.3), samples=400)
    run = replace(run, effort=run.effort + 0.4 * np.sin(np.arange(400) / 30.0)[:, None] * [1.0, 0.0, 0.0, 0.0])
    run = replace(run, valid=run.valid & (np.arange(4) < 3))
    equations = build_equations(ROBOT, run, base=BASE, blocks=10)
    Y = regressor(ROBOT, run.q, run.dq, run.ddq, columns=BASE.columns)
    e, b = run.effort - Y @ TRUTH, BASE.rank
    variances = (e**2).sum(axis=0) / (400 * (1.0 - b / 1200.0))
    variances[2] = max(1e-20 * variances.max(), RESOLUTION**2 * np.mean(run.effort[:, 2] ** 2))
    variances[3] = 1e-20 * variances[:2].max()
    np.testing.assert_allclose(joint_variances(equations, TRUTH), variances, rtol=1e-6)
    check_data(equations, spare=1200 - b)
    with pytest.raises(IdentifiabilityError, match="nothing to judge the noise by"):
        check_data(equations, spare=1201 - b)
    squares, ranks, overlaps = [], [], []
    for W, r in ((Y[:, joint], e[:, joint]) for joint in range(3)):
        W = W / np.maximum(np.linalg.norm(W, axis=0), 1e-12)
        inverse, blocks = np.linalg.pinv(W.T @ W, rcond=1e-10), range(0, 400, 40)
        scores = np.array([W[k : k + 40].T @ r[k : k + 40] for k in blocks])
        squares.append(np.einsum("sb,bc,sc->", scores, inverse, scores))
        ranks.append(np.linalg.matrix_rank(W, tol=1e-5))
        overlaps.append(
            sum(np.trace(np.linalg.matrix_power(inverse @ W[k : k + 40].T @ W[k : k + 40], 2)) for k in blocks)
        )
        units = 10.0 ** np.linspace(-4.0, 4.0, b)
        found = whitened_scores([W[k : k + 40] * units for k in blocks], [r[k : k + 40] for k in blocks])
        np.testing.assert_allclose(found, (squares[-1], ranks[-1], overlaps[-1]), rtol=1e-6)
    expected = variances[:3] * (np.array(ranks) - b / sum(ranks) * np.array(overlaps))
    factors = np.maximum(1.0, np.array(squares) / expected)
    assert factors[0] > 2.0
    np.testing.assert_allclose(correlation_inflation(equations, TRUTH)[[0, 1, 3]], [*factors[:2], 1.0], rtol=1e-6)


@given(seed=st.integers(0, 1000), size=st.sampled_from([1e-13, 1e-16, 1e-18]))
def test_a_column_of_rounding_changes_no_factor(seed: int, size: float) -> None:
    """A column that is rounding differs between versions of NumPy, and must not decide on the intervals."""
    generator = np.random.default_rng(seed)
    rows, errors = generator.normal(size=(6, 40, 3)), generator.normal(size=(6, 40))
    rounding = size * generator.normal(size=(6, 40, 1))
    found = whitened_scores(list(np.append(rows, rounding, axis=2)), list(errors))
    np.testing.assert_allclose(found, whitened_scores(list(rows), list(errors)), rtol=1e-9)


@pytest.mark.parametrize("estimator", [WLS(), Huber(), Energy()], ids=lambda e: type(e).__name__)
def test_coloured_torque_noise_of_every_estimator(estimator: Estimator) -> None:
    """AR(1) noise of 0.9: intervals hold about as often as those of least squares."""
    hits, inflation = [], []
    for seed in range(10):
        white = np.random.default_rng(seed).normal(size=(2200, 3))
        noise = lfilter([np.sqrt(1.0 - 0.9**2)], [1.0, -0.9], white, axis=0)[200:]
        clean = planted_run(arm(), samples=2000, rate_hz=200.0, period_s=10.0, motion=seed)
        equations = build_equations(arm(), replace(clean, effort=clean.effort + 0.3 * noise))
        estimate = estimator.solve(equations)
        hits.append(covered(equations, estimate))
        inflation.append(estimate.inflation.mean())
    if isinstance(estimator, WLS):
        assert np.mean(inflation) > 3.0  # (1 + 0.9) / (1 - 0.9) = 19 for constant columns
    assert 0.86 < np.mean(hits) < 0.99


def test_position_noise() -> None:
    hits = []
    for seed in range(15):
        log = simulate_experiment(
            ROBOT,
            sum_of_sines(ROBOT.dof, amplitude=0.6, seed=1),
            rate_hz=250.0,
            duration_s=8.0,
            noise=Noise(position=1e-5, effort=0.1),
            with_velocity=False,
            seed=seed,
        )
        equations = build_equations(ROBOT, process(log, cutoff_hz=15.0, rest=None), base=BASE)
        hits.append(covered(equations, WLS().solve(equations)))
    assert 0.90 < np.mean(hits) < 0.99
