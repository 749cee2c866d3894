"""Ridge regression as in [Atkeson1986] eq. (20) and section 3.3."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ArgumentError, EstimationError, IdentifiabilityError
from dynid.estimation.linear.least_squares import OLS
from dynid.estimation.linear.ridge import Ridge
from dynid.estimation.linear.truncated_svd import TruncatedSVD
from dynid.kernels import regressor
from dynid.robot import zoo

from .planted import arm, atkeson_problem, coverage, problem_of, silent, still, truth


def test_equation_20_on_the_regressor_itself() -> None:
    problem = atkeson_problem()
    K = np.concatenate([regressor(problem.robot, run.q, run.dq, run.ddq) for run in problem.experiments])
    K = K.reshape(-1, 30)
    tau = np.concatenate([run.effort for run in problem.experiments]).ravel()
    expected = np.linalg.solve(K.T @ K + 10.0 * np.eye(30), K.T @ tau)  # (20)
    assert Ridge(10.0).parameters(problem) == pytest.approx(expected, abs=1e-8)


def test_the_papers_figures() -> None:
    problem = atkeson_problem()
    estimate = Ridge(10.0).solve(problem)
    assert estimate.extras["smallest_eigenvalue"] == pytest.approx(2935, rel=0.01)  # 3395 on the measured motion
    psi, least = Ridge(10.0).parameters(problem), TruncatedSVD().parameters(problem)
    assert np.linalg.norm(psi - least) / np.linalg.norm(least) == pytest.approx(2.6e-4, rel=0.5)
    assert estimate.values == pytest.approx(truth(problem), abs=5e-3)
    assert Ridge().solve(problem).extras["d"] == pytest.approx(10.0 * 2935 / 3395, rel=0.01)


def test_unidentifiable_parameters_stay_at_zero() -> None:
    problem = atkeson_problem()
    psi = dict(zip(problem.base.layout.names, Ridge().parameters(problem), strict=True))
    assert max(abs(psi[name]) for name in problem.base.unidentifiable) < 1e-9


@pytest.mark.parametrize("d", ["paper", "gcv"])
def test_intervals_hold_with_noise_and_bias(d: str) -> None:
    covered = [
        coverage(problem, Ridge(d).solve(problem))  # type: ignore[arg-type]
        for problem in (problem_of(arm(), noise=0.5, seed=seed) for seed in range(8))
    ]
    assert 0.88 < np.mean(covered) <= 1.0


def test_cross_validation_beats_least_squares_where_data_are_poor() -> None:
    problem = problem_of(zoo.puma560(), noise=2.0, amplitude=0.05, samples=400)
    ridge, plain = Ridge("gcv").solve(problem), OLS().solve(problem)
    assert np.linalg.norm(ridge.values - truth(problem)) < 0.5 * np.linalg.norm(plain.values - truth(problem))


def test_open_and_unsupported_data() -> None:
    estimate = Ridge().solve(still(arm(), [1]))
    assert estimate.undetermined.any()
    assert np.all(np.isinf(estimate.stderr[estimate.undetermined]))
    with pytest.raises(EstimationError):
        Ridge().solve(silent(arm()))
    with pytest.raises(IdentifiabilityError):
        Ridge().solve(problem_of(arm(), samples=3))
    with pytest.raises(ArgumentError):
        Ridge(-1.0)
    with pytest.raises(ArgumentError):
        Ridge("L-curve")  # type: ignore[arg-type]
