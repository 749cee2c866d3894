"""Ridge regression as in [Atkeson1986] eq. (20) and section 3.3."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimation.linear.least_squares import OLS
from dynid.estimation.linear.ridge import Ridge
from dynid.estimation.linear.truncated_svd import TruncatedSVD
from dynid.kernels import regressor
from dynid.robot import zoo

from .planted import arm, atkeson_equations, coverage, equations_of, silent, still, truth


def test_equation_20_on_the_regressor_itself() -> None:
    equations = atkeson_equations()
    K = np.concatenate([regressor(equations.robot, run.q, run.dq, run.ddq) for run in equations.experiments])
    K = K.reshape(-1, 30)
    tau = np.concatenate([run.effort for run in equations.experiments]).ravel()
    expected = np.linalg.solve(K.T @ K + 10.0 * np.eye(30), K.T @ tau)  # (20)
    assert Ridge(10.0).parameters(equations) == pytest.approx(expected, abs=1e-8)
    assert Ridge(10.0).solve(equations).least_norm == pytest.approx(expected, abs=1e-8)


def test_the_papers_figures() -> None:
    equations = atkeson_equations()
    estimate = Ridge(10.0).solve(equations)
    assert estimate.extras["smallest_eigenvalue"] == pytest.approx(2935, rel=0.01)  # 3395 on the measured motion
    psi, least = Ridge(10.0).parameters(equations), TruncatedSVD().parameters(equations)
    assert np.linalg.norm(psi - least) / np.linalg.norm(least) == pytest.approx(2.6e-4, rel=0.5)
    assert estimate.values == pytest.approx(truth(equations), abs=5e-3)
    assert Ridge().solve(equations).extras["d"] == pytest.approx(10.0 * 2935 / 3395, rel=0.01)


def test_unidentifiable_parameters_stay_at_zero() -> None:
    equations = atkeson_equations()
    psi = dict(zip(equations.base.layout.names, Ridge().parameters(equations), strict=True))
    assert max(abs(psi[name]) for name in equations.base.unidentifiable) < 1e-9


@pytest.mark.parametrize("d", ["paper", "gcv"])
def test_intervals_hold_with_noise_and_bias(d: str) -> None:
    covered = [
        coverage(equations, Ridge(d).solve(equations))  # type: ignore[arg-type]
        for equations in (equations_of(arm(), noise=0.5, seed=seed) for seed in range(8))
    ]
    assert 0.88 < np.mean(covered) <= 1.0


def test_cross_validation_beats_least_squares_where_data_are_poor() -> None:
    equations = equations_of(zoo.puma560(), noise=2.0, amplitude=0.05, samples=400)
    ridge, plain = Ridge("gcv").solve(equations), OLS().solve(equations)
    assert np.linalg.norm(ridge.values - truth(equations)) < 0.5 * np.linalg.norm(plain.values - truth(equations))


def test_open_and_unsupported_data() -> None:
    estimate = Ridge().solve(still(arm(), [1]))
    assert estimate.undetermined.any()
    assert np.all(np.isinf(estimate.stderr[estimate.undetermined]))
    with pytest.raises(IdentifiabilityError, match="all torques are zero"):
        Ridge().solve(silent(arm()))
    with pytest.raises(IdentifiabilityError):
        Ridge().solve(equations_of(arm(), samples=3))
    with pytest.raises(ArgumentError):
        Ridge(-1.0)
    with pytest.raises(ArgumentError):
        Ridge("L-curve")  # type: ignore[arg-type]
