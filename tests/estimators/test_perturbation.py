"""The perturbation bounds of [GautierKhalil1992] section 3: the paper's own examples and tables, and many trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynid
from dynid.errors import ArgumentError
from dynid.estimators.equations import build_equations
from dynid.estimators.linear.least_squares import WLS
from dynid.estimators.perturbation import estimate_bounds, perturbation_bounds
from dynid.robot import zoo

from .planted import arm, equations_of, planted_run, still


def test_example_1_of_the_appendix() -> None:
    A, Y, dY = [[4.1, 2.8], [9.7, 6.6]], [4.1, 9.7], [0.01, 0.0]
    found = perturbation_bounds(A, Y, dY=dY, order=1)
    assert found.condition == pytest.approx(2249.4, rel=1e-9)
    assert found.target_error == pytest.approx(7.246e-4, rel=1e-4)  # (A5)
    assert found.relative_change == pytest.approx(1.63, rel=1e-9)  # (A7)
    assert found.target_bound == pytest.approx(1.63, rel=1e-9)  # "the example has been chosen to have the equality"
    assert found.overestimate == pytest.approx(1.0, rel=1e-9)
    assert found.bound == pytest.approx(1.63 * 13.8 / 13.8, rel=1e-9)


def test_errors_of_both_sides_in_one_unknown() -> None:
    alike = perturbation_bounds([[2.0]], [2.0], dY=[1.0], dW=[[1.0]])
    assert (alike.relative_change, alike.bound) == (0.0, pytest.approx(2.0))
    inverse = 1.0 / (np.sqrt(2.0) - 0.1)  # of (1.1, 1) at most
    found = perturbation_bounds([[1.0], [1.0]], [1.0, 3.0], dW=[[0.1], [0.0]])  # X = 2, a residual of sqrt(2)
    assert found.bound == pytest.approx((0.2 * inverse + 0.1 * np.sqrt(2.0) * inverse**2) / 2.0)


@pytest.mark.parametrize(("dY", "change"), [([1e-6, 0.0], 1e-6 / np.sqrt(2)), ([0.0, 1e-6], 1 / np.sqrt(2))])
def test_example_2_of_the_appendix(dY: list[float], change: float) -> None:
    found = perturbation_bounds([[1.0, 0.0], [0.0, 1e-6]], [1.0, 1e-6], dY=dY)
    assert found.condition == pytest.approx(1e6)
    assert found.relative_change == pytest.approx(change, rel=1e-6)
    assert found.target_bound == pytest.approx(1.0, rel=1e-6)


def draw(seed: int, rows: int, columns: int, size: float, consistent: bool) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(rows, columns)) * 10.0 ** rng.uniform(-1.0, 1.0, columns)
    X = rng.normal(size=columns)
    Y = W @ X + (0.0 if consistent else 0.3 * rng.normal(size=rows))
    return W, Y, size * rng.normal(size=W.shape), size * rng.normal(size=rows)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    b=st.integers(1, 6),
    more=st.integers(0, 10),
    size=st.sampled_from([1e-6, 1e-3, 1e-2, 0.1]),
)
def test_the_bound_for_both_holds_for_any_number_of_equations(seed: int, b: int, more: int, size: float) -> None:
    W, Y, dW, dY = draw(seed, b + more, b, size, False)
    found = perturbation_bounds(W, Y, dW=dW, dY=dY)
    assert found.relative_change is not None
    # both solutions are rounded by some 1e-15 of themselves times the condition, and their difference is of the size
    rounding = 1e-9 + 1e-14 * found.condition / size
    assert found.relative_change <= found.bound * (1.0 + rounding)
    assert found.condition == pytest.approx(np.linalg.cond(W))
    assert found.perturbed_condition == pytest.approx(np.linalg.cond(W + dW))
    assert found.matrix_error == pytest.approx(np.linalg.norm(dW, 2) / np.linalg.norm(W, 2))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), b=st.integers(1, 6), order=st.sampled_from([1, 2, np.inf]))
def test_the_papers_bounds_hold_where_they_are_proven(seed: int, b: int, order: float) -> None:
    W, Y, dW, dY = draw(seed, b, b, 1e-3, True)
    alone = perturbation_bounds(W, Y, dY=dY, order=order)
    assert alone.relative_change is not None
    assert alone.relative_change <= alone.target_bound * (1.0 + 1e-9)  # (12)
    assert alone.relative_change <= alone.bound * (1.0 + 1e-9)
    tilted = perturbation_bounds(W, Y, dW=dW, order=order)
    assert tilted.relative_change_of_perturbed is not None
    assert tilted.relative_change_of_perturbed <= tilted.matrix_bound * (1.0 + 1e-9)  # (13)
    assert tilted.target_bound == 0.0


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_torque_error_of_that_size_moves_an_estimate_further(seed: int) -> None:
    """Random torque errors and the worst of one parameter, estimated again."""
    rng = np.random.default_rng(seed)
    run = planted_run(arm(), noise=0.5, samples=200)
    base = dynid.base_parameters(arm())
    noise = np.array([0.5, 1.0, 0.2])
    W = dynid.regressor(arm(), run.q, run.dq, run.ddq)[..., list(base.columns)] / noise[:, None]
    W, Y = W.reshape(-1, base.rank), (run.effort / noise).ravel()
    equations = build_equations(arm(), run, base=base)
    estimate = replace(dynid.OLS().solve(equations), noise_std=noise, values=np.linalg.lstsq(W, Y, rcond=None)[0])
    left = np.linalg.norm(Y - W @ estimate.values) / np.linalg.norm(Y)
    assert estimate_bounds(equations, estimate).target_error == pytest.approx(left, rel=1e-6)
    found = estimate_bounds(equations, estimate, target_error=0.02)
    dY = rng.normal(size=Y.shape)
    if seed % 2:  # the worst direction of one parameter
        dY = np.linalg.pinv(W)[rng.integers(base.rank)]
    dY *= 0.02 * np.linalg.norm(Y) / np.linalg.norm(dY)
    moved = np.abs(np.linalg.lstsq(W, Y + dY, rcond=None)[0] - estimate.values)
    scaled = np.linalg.norm(W, axis=0)
    change = np.linalg.norm(moved * scaled) / np.linalg.norm(estimate.values * scaled)
    assert change <= found.bound * (1.0 + 1e-6)
    longest = 0.02 * np.linalg.norm(Y) / np.linalg.svd(W / scaled)[1][-1]
    assert found.bound == pytest.approx(longest / np.linalg.norm(estimate.values * scaled), rel=1e-6)
    assert found.condition == pytest.approx(np.linalg.cond(W / scaled), rel=1e-6)
    assert f"errors of 2 % could change the parameters by up to {100.0 * found.bound:.3g} %" in found.sentence


def test_open_parameters_have_no_bound() -> None:
    equations = still(arm(), [2])
    estimate = WLS().solve(equations)
    found = estimate_bounds(equations, estimate, target_error=0.01)
    assert found.bound == np.inf
    assert found.condition == np.inf
    assert "without bound" in found.sentence


def test_wrong_input_is_refused() -> None:
    W, Y, _, dY = draw(0, 6, 3, 1.0, True)
    with pytest.raises(ArgumentError, match="do not fit"):
        perturbation_bounds(W, Y, dY=dY[:4])
    with pytest.raises(ArgumentError, match="not finite"):
        perturbation_bounds(W, np.where(np.arange(6) == 1, np.nan, Y))
    equations = equations_of(arm(), noise=0.1)
    estimate = WLS().solve(equations)
    with pytest.raises(ArgumentError, match="target_error"):
        estimate_bounds(equations, estimate, target_error=-1.0)
    with pytest.raises(ArgumentError, match="columns"):
        estimate_bounds(equations_of(zoo.ddarm()), estimate)
