"""Total least squares against a dense construction, and planted errors in positions."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ArgumentError, EstimationError, IdentifiabilityError
from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.linear.least_squares import OLS, WLS
from dynid.estimation.noisy.total_least_squares import TLS
from dynid.kernels import regressor
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines

from .planted import arm, coverage, equations_of, planted_run, still, truth


def noisy_positions(position: float, seed: int) -> Samples:
    path = sum_of_sines(3, amplitude=0.8, period_s=6.0)
    log = simulate_experiment(
        arm(),
        path,
        rate_hz=100.0,
        duration_s=20.0,
        noise=Noise(position=position, effort=0.3),
        with_velocity=False,
        seed=seed,
    )
    return build_equations(arm(), process(log, cutoff_hz=None))


def test_equals_the_singular_vector_of_the_dense_matrix() -> None:
    equations = equations_of(arm(), noise=0.5)
    run = equations.experiments[0]
    Y = regressor(arm(), run.q, run.dq, run.ddq, columns=equations.base.columns)
    A = Y.reshape(-1, Y.shape[2])
    b = run.effort.reshape(-1)
    whole = np.column_stack([A, b])
    lengths = np.linalg.norm(whole, axis=0)
    v = np.linalg.svd(whole / lengths, full_matrices=False)[2][-1]
    expected = -(v[:-1] / lengths[:-1]) / (v[-1] / lengths[-1])
    found = TLS(exact=(), weighted=False).solve(equations)
    assert found.values == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_exact_columns_are_projected_out() -> None:
    """Independent construction: remove the exact columns by orthogonal projection, then plain total least squares."""
    equations = equations_of(arm(), noise=0.5)
    run = equations.experiments[0]
    Y = regressor(arm(), run.q, run.dq, run.ddq, columns=equations.base.columns)
    A, b = Y.reshape(-1, Y.shape[2]), run.effort.reshape(-1)
    names = np.array(equations.names)
    exact = np.array([name.startswith(("OFF", "FC")) for name in names])
    Q = np.linalg.qr(A[:, exact])[0]
    lengths = np.append(np.linalg.norm(A[:, ~exact], axis=0), np.linalg.norm(b))
    rest = np.column_stack([A[:, ~exact], b])
    v = np.linalg.svd((rest - Q @ (Q.T @ rest)) / lengths, full_matrices=False)[2][-1] / lengths
    x = -v[:-1] / v[-1]
    other = np.linalg.lstsq(A[:, exact], b - A[:, ~exact] @ x, rcond=None)[0]
    found = TLS(weighted=False).solve(equations).values
    assert found[~exact] == pytest.approx(x, rel=1e-7, abs=1e-8)
    assert found[exact] == pytest.approx(other, rel=1e-7, abs=1e-8)


def test_without_noise_equals_least_squares() -> None:
    equations = equations_of(arm())
    assert TLS().solve(equations).values == pytest.approx(truth(equations), abs=1e-8)
    assert TLS(position_std=1e-5).solve(equations).values == pytest.approx(truth(equations), abs=1e-6)


def test_planted_errors_in_positions_leave_no_bias() -> None:
    problems = [noisy_positions(1e-4, seed) for seed in range(6)]
    planted = truth(problems[0])
    found = np.array([TLS(position_std=1e-4).solve(equations).values for equations in problems])
    plain = np.array([OLS().solve(equations).values for equations in problems])
    error = np.linalg.norm(found.mean(axis=0) - planted)
    assert error < 0.1 * np.linalg.norm(plain.mean(axis=0) - planted)
    inside = [coverage(equations, TLS(position_std=1e-4).solve(equations)) for equations in problems]
    assert np.mean(inside) > 0.9
    assert np.mean([coverage(equations, WLS().solve(equations)) for equations in problems]) < 0.85


def test_a_small_gap_is_refused() -> None:
    with pytest.raises(EstimationError, match="tell errors of columns"):
        TLS().solve(noisy_positions(1e-3, 0))


def test_open_parameters_and_wrong_settings_are_refused() -> None:
    with pytest.raises(IdentifiabilityError, match="determined parameters"):
        TLS().solve(still(arm(), [1]))
    with pytest.raises(ArgumentError, match="nonsense"):
        TLS(exact=("nonsense",)).solve(equations_of(arm(), noise=0.1))
    with pytest.raises(ArgumentError):
        TLS(smallest_gap=1.0)


def test_works_on_merged_information() -> None:
    runs = [planted_run(arm(), noise=0.2, seed=seed, motion=seed) for seed in range(2)]
    both = build_equations(arm(), runs)
    interval = TLS().solve(both).interval()
    assert np.mean((interval[:, 0] <= truth(both)) & (truth(both) <= interval[:, 1])) > 0.8
