"""Intervals cover: white noise, coloured noise, filtered equations, noisy positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from dynid.estimators.equations import build_equations
from dynid.estimators.estimate import Estimator
from dynid.estimators.linear.energy_differences import Energy
from dynid.estimators.linear.least_squares import WLS
from dynid.estimators.linear.robust import Huber
from dynid.estimators.noise import whitened_scores
from dynid.identifiability.base import base_parameters
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset
from estimators.planted import arm, coverage, planted_run

ROBOT = zoo.scara().with_terms(Viscous(0.5), Coulomb(0.4), Offset(0.1))
BASE = base_parameters(ROBOT)
TRUTH = BASE.project(ROBOT.parameter_vector)
RUNS = 30


def covered(interval: np.ndarray) -> np.ndarray:
    return np.asarray((interval[:, 0] <= TRUTH) & (interval[:, 1] >= TRUTH))


@pytest.mark.parametrize("estimator", [WLS(), Huber(), Energy()], ids=lambda e: type(e).__name__)
def test_coloured_torque_noise_of_every_estimator(estimator: Estimator) -> None:
    """AR(1) noise of 0.9: intervals hold about as often as those of least squares."""
    robot = arm()
    hits, inflation = [], []
    for seed in range(10):
        white = np.random.default_rng(seed).normal(size=(2200, robot.dof))
        noise = lfilter([np.sqrt(1.0 - 0.9**2)], [1.0, -0.9], white, axis=0)[200:]
        clean = planted_run(robot, samples=2000, rate_hz=200.0, period_s=10.0, motion=seed)
        equations = build_equations(robot, replace(clean, effort=clean.effort + 0.3 * noise))
        estimate = estimator.solve(equations)
        hits.append(coverage(equations, estimate))
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
        estimate = WLS().solve(build_equations(ROBOT, process(log, cutoff_hz=15.0, rest=None), base=BASE))
        hits.append(covered(estimate.interval()))
    assert 0.90 < np.mean(hits) < 0.99


@given(seed=st.integers(0, 1000), size=st.sampled_from([1e-13, 1e-16, 1e-18]))
def test_a_column_of_rounding_changes_no_factor(seed: int, size: float) -> None:
    """A column that is rounding differs between versions of NumPy, and must not decide on the intervals."""
    generator = np.random.default_rng(seed)
    rows, errors = generator.normal(size=(6, 40, 3)), generator.normal(size=(6, 40))
    rounding = size * generator.normal(size=(6, 40, 1))
    found = whitened_scores(list(np.append(rows, rounding, axis=2)), list(errors))
    np.testing.assert_allclose(found, whitened_scores(list(rows), list(errors)), rtol=1e-9)
