"""Significant parameters ([Izaguirre1992] section 7)."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from dynid.compiled import inverse_dynamics, regressor
from dynid.errors import ArgumentError
from dynid.estimators.equations import Samples, build_equations, sample_blocks
from dynid.estimators.linear.least_squares import WLS, refined_weights
from dynid.identifiability.base import base_parameters
from dynid.identification.significance import (
    Significance,
    TrajectoryStatistics,
    contributions,
    significant_parameters,
)
from dynid.processing.simulation import sum_of_sines
from dynid.robot import zoo
from support.exact_runs import exact_run

TABLE_2 = [  # the paper's ia1-6, m6, z6, y4, a4, c4, fs1-6, ds1-6, in modified DH frames
    *(f"IA{'R' if j < 3 else ''}{j}" for j in range(1, 7)),
    *("MR6", "MZR6", "MZR4", "XXR4", "YYR4"),
    *(f"FC{j}" for j in range(1, 7)),
    *(f"FV{j}" for j in range(1, 7)),
]


@cache
def puma_260(trajectories: int = 10, noise: float = 0.02) -> Samples:
    """Ten trajectories at the paper's 28 ms, with the parameters kept in the paper's order."""
    robot = zoo.puma260()
    symbols = ("M", "MX", "MY", "MZ", "XX", "YY", "ZZ", "XY", "YZ", "XZ")
    order = [f"IA{j}" for j in range(1, 7)] + [f"{symbol}{j}" for j in range(6, 0, -1) for symbol in symbols]
    runs = []
    for seed in range(trajectories):
        time = np.arange(200) * 0.028
        q, dq, ddq = sum_of_sines(6, period_s=4.0, amplitude=1.2, seed=seed)(time)
        effort = inverse_dynamics(robot, q, dq, ddq)
        effort = effort + noise * np.random.default_rng(seed).normal(size=q.shape)
        runs.append(exact_run(time, (q, dq, ddq), effort=effort, rate_hz=1 / 0.028))
    return build_equations(robot, runs, base=base_parameters(robot, order=order))


@cache
def paper() -> Significance:
    return significant_parameters(puma_260())


def test_the_papers_23_of_52() -> None:
    equations, result = puma_260(), paper()
    kept = [name for name, keep in zip(equations.names, result.significant, strict=True) if keep]
    assert len(equations.names) == 52
    assert sorted(kept) == sorted(TABLE_2)
    weights = np.sqrt(refined_weights(equations))
    for part, values, condition, error in (
        (equations, WLS().solve(equations).values, result.condition, result.error),
        (result.equations, result.estimate.values, result.reduced_condition, result.training_error[-1]),
    ):
        rows = np.concatenate([block.matrix for block in sample_blocks(part)])
        effort = np.concatenate([run.effort for run in part.experiments])
        W = (rows * weights[:, None]).reshape(-1, len(values))
        beta = np.linalg.lstsq(W, (effort * weights).ravel(), rcond=None)[0]
        np.testing.assert_allclose(values, beta, rtol=1e-3, atol=1e-3)
        assert condition == pytest.approx(np.linalg.cond(W), rel=1e-4)
        assert error == pytest.approx(100.0 * np.linalg.norm(effort - rows @ values) / np.linalg.norm(effort))
    assert result.gain == pytest.approx(result.condition / result.reduced_condition)
    assert result.gain > 2.0


def test_contributions_are_the_largest_torques() -> None:
    equations = puma_260(1, 0.0)
    run = equations.experiments[0]
    beta = equations.base.project(equations.robot.parameter_vector)
    Y = regressor(equations.robot, run.q, run.dq, run.ddq, columns=equations.base.columns)
    expected = np.max(np.abs(Y * beta).max(axis=0) / np.abs(run.effort).max(axis=0)[:, None], axis=0)
    assert contributions(equations, beta) == pytest.approx(100.0 * expected)


def test_one_trajectory_has_no_spread_and_open_parameters_no_average() -> None:
    values = np.array([[1.0, np.nan], [3.0, np.nan]])
    statistics = TrajectoryStatistics(names=("a", "b"), units=("kg", "kg"), values=values)
    assert statistics.average[0] == 2.0
    assert statistics.std[0] == pytest.approx(np.sqrt(2.0))
    assert np.isnan(statistics.average[1])
    assert np.isnan(statistics.maximum[1])
    alone = TrajectoryStatistics(names=("a",), units=("kg",), values=np.array([[1.0]]))
    assert np.isnan(alone.std[0])


def test_wrong_settings_and_empty_sets_are_refused() -> None:
    equations = puma_260(1)
    with pytest.raises(ArgumentError):
        significant_parameters(equations, threshold=1.0)
