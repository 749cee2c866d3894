"""Recursive estimation in square-root information form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import ArgumentError, DataError, IdentifiabilityError
from dynid.estimation.equations import build_equations
from dynid.estimation.linear.least_squares import OLS
from dynid.estimation.linear.recursive import Recursive
from dynid.kernels import regressor
from dynid.parameters.base import base_parameters
from dynid.robot import zoo

from .planted import arm, coverage, equations_of, planted_run, silent, still, truth, with_friction


def test_equals_batch() -> None:
    equations = equations_of(with_friction(zoo.puma560()), noise=0.5)
    estimate, batch = Recursive().solve(equations), OLS().solve(equations)
    assert estimate.values == pytest.approx(batch.values, abs=1e-8)
    assert estimate.stderr == pytest.approx(batch.stderr, rel=1e-6)


def test_sample_by_sample_equals_batch() -> None:
    run = planted_run(arm(), noise=0.5, samples=300)
    state = Recursive().begin(arm())
    for k in range(300):
        state = state.update(run.q[k], run.dq[k], run.ddq[k], run.effort[k])
    equations = build_equations(arm(), run)
    batch, R = OLS().solve(equations), equations.information.weight().R
    assert state.values == pytest.approx(batch.values, abs=1e-8)
    assert state.samples == 300
    assert state.noise_std == pytest.approx([0.5] * 3, rel=0.1)
    # on line residuals count as independent; in batch the scatter of blocks says how far they are
    assert state.stderr == pytest.approx(state.noise_std[0] * np.sqrt(np.diag(np.linalg.inv(R.T @ R))), rel=1e-6)
    assert 0.6 < np.median(batch.stderr / state.stderr) < 1.6


def test_portions_do_not_matter_even_with_forgetting() -> None:
    run = planted_run(arm(), noise=0.5, samples=200)
    single = whole = Recursive(forgetting=0.99, torque_std=(1.0, 0.5, 0.2)).begin(arm())
    for k in range(200):
        single = single.update(run.q[k], run.dq[k], run.ddq[k], run.effort[k])
    whole = whole.update(run.q[:150], run.dq[:150], run.ddq[:150], run.effort[:150])
    whole = whole.update(run.q[150:], run.dq[150:], run.ddq[150:], run.effort[150:])
    assert single.values == pytest.approx(whole.values, abs=1e-9)
    assert single.stderr == pytest.approx(whole.stderr, rel=1e-9)
    assert single.equations == pytest.approx(whole.equations)


def test_forgetting_follows_a_load_that_is_picked_up() -> None:
    light = zoo.ddarm()
    heavy = light.with_parameters(1.2 * light.parameter_vector)
    base = base_parameters(light)
    state = Recursive(forgetting=0.99).begin(light, base)
    for robot in (light, heavy):
        run = planted_run(robot, samples=1500)
        state = state.update(run.q, run.dq, run.ddq, run.effort)
    assert state.values == pytest.approx(base.project(heavy.parameter_vector), abs=1e-4)
    assert not np.allclose(
        OLS().solve(build_equations(light, [planted_run(light), run])).values, state.values, atol=0.1
    )


def test_intervals_hold_with_forgetting() -> None:
    covered = [
        coverage(equations, Recursive(forgetting=0.998).solve(equations))
        for equations in (equations_of(arm(), noise=0.5, seed=seed, motion=seed) for seed in range(8))
    ]
    assert 0.88 < np.mean(covered) <= 1.0


def test_nothing_is_claimed_before_there_is_data() -> None:
    state = Recursive().begin(arm())
    assert np.all(np.isinf(state.stderr))
    run = planted_run(arm(), samples=3)
    state = state.update(run.q, run.dq, run.ddq, run.effort)
    assert np.all(np.isinf(state.stderr))


def test_missing_torques_do_not_count() -> None:
    run = planted_run(arm(), samples=400)
    effort = run.effort.copy()
    effort[::2, 1] = np.nan
    state = Recursive().begin(arm()).update(run.q, run.dq, run.ddq, effort)
    assert state.equations == 3 * 400 - 200
    equations = build_equations(arm(), replace(run, effort=effort, valid=~np.isnan(effort)))
    assert state.values == pytest.approx(truth(equations), abs=1e-8)


def test_wrong_input_is_refused() -> None:
    state = Recursive().begin(arm())
    with pytest.raises(ArgumentError):
        state.update(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2))
    with pytest.raises(DataError):
        state.update(np.full(3, np.nan), np.zeros(3), np.zeros(3), np.zeros(3))
    with pytest.raises(ArgumentError):
        Recursive(forgetting=0.0)
    with pytest.raises(ArgumentError):
        Recursive(torque_std=(1.0,)).begin(arm())
    with pytest.raises(IdentifiabilityError, match="all torques are zero"):
        Recursive().solve(silent(arm()))


def test_a_locked_joint_stays_open() -> None:
    estimate = Recursive(forgetting=0.999).solve(still(arm(), [1]))
    assert np.all(np.isinf(estimate.stderr[estimate.undetermined]))
    assert estimate.undetermined.any()


@pytest.mark.parametrize("scale", [0.05, 1.0, 20.0])
def test_stated_noise_of_any_size_gives_the_same_deviations(scale: float) -> None:
    """Standard deviations only say how joints compare; all of them larger changes nothing (normal equations)."""
    run = planted_run(arm(), noise=0.5, samples=300)
    state = Recursive(torque_std=(scale,) * 3).begin(arm()).update(run.q, run.dq, run.ddq, run.effort)
    Y = regressor(arm(), run.q, run.dq, run.ddq, columns=state.base.columns).reshape(900, -1)
    left = run.effort.ravel() - Y @ np.linalg.lstsq(Y, run.effort.ravel(), rcond=None)[0]
    variance = left @ left / (900 - Y.shape[1])
    assert state.stderr == pytest.approx(np.sqrt(variance * np.diag(np.linalg.inv(Y.T @ Y))), rel=1e-6)
