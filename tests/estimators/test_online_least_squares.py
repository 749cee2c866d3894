"""Recursive least squares on line: equal to the whole log, with forgetting; the one triangle of all trackers."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.compiled import regressor
from dynid.errors import ArgumentError
from dynid.estimators.equations import build_equations
from dynid.estimators.linear.least_squares import OLS
from dynid.estimators.online.online_least_squares import OnlineLeastSquares
from dynid.estimators.online.triangle import RowTriangle

from .planted import arm, feed, planted_run


@pytest.mark.parametrize(("width", "rows"), [(1, 1), (5, 3), (9, 1), (53, 6)])
def test_the_triangle_is_that_of_all_rows(width: int, rows: int) -> None:
    parts = np.random.default_rng(0).normal(size=(30, rows, width))
    triangle = RowTriangle(width)
    for part in parts:
        triangle.update(part)
    A = parts.reshape(-1, width)
    whole = np.linalg.cholesky(A.T @ A).T
    assert pytest.approx(whole, abs=1e-10) == triangle.R
    triangle.scale(2.0)
    assert pytest.approx(2.0 * whole, abs=1e-10) == triangle.R
    shrink = np.linspace(0.5, 0.9, width - 1)
    triangle.forget(shrink)  # the same solution, with larger deviations
    values = np.linalg.lstsq(A[:, :-1], A[:, -1], rcond=None)[0]
    assert triangle.R[:-1, :-1] == pytest.approx(2.0 * whole[:-1, :-1] * shrink)
    assert triangle.R[:-1, -1] == pytest.approx(triangle.R[:-1, :-1] @ values)


def test_sample_by_sample_equals_batch() -> None:
    run = planted_run(arm(), noise=0.5, samples=300)
    tracker = feed(OnlineLeastSquares(arm()), run)
    found, equations = tracker.estimate(), build_equations(arm(), run)
    batch, R = OLS().solve(equations), equations.information.weight().R
    assert found.values == pytest.approx(batch.values, abs=1e-8)
    assert (tracker.samples, found.samples.tolist()) == (300, [300] * 3)
    assert found.noise_std == pytest.approx([0.5] * 3, rel=0.1)
    # on line residuals count as independent; in batch the scatter of blocks says how far they are
    assert found.stderr == pytest.approx(found.noise_std[0] * np.sqrt(np.diag(np.linalg.inv(R.T @ R))), rel=1e-6)


def test_forgetting_is_weighted_least_squares() -> None:
    run = planted_run(arm(), noise=0.5, samples=200)
    single, whole = (OnlineLeastSquares(arm(), forgetting=0.99) for _ in range(2))
    found = feed(single, run).estimate()
    assert found.values == pytest.approx(feed(whole, run, 77).estimate().values, abs=1e-9)
    age = np.arange(200)[::-1, None]
    root = (0.99 ** (age / 2.0) * np.ones(3)).ravel()
    Y = regressor(arm(), run.q, run.dq, run.ddq, columns=single.base.columns).reshape(600, -1) * root[:, None]
    y = run.effort.ravel() * root
    beta = np.linalg.lstsq(Y, y, rcond=None)[0]
    assert found.values == pytest.approx(beta, abs=1e-8)
    equations = 3.0 * (1.0 - 0.99**200) / 0.01
    assert single.equations == pytest.approx(equations)
    A, older = np.linalg.inv(Y.T @ Y), (0.99 ** (age / 2.0) * np.ones(3)).ravel()[:, None] * Y
    variance = np.sum((y - Y @ beta) ** 2) / (equations - len(beta))
    assert found.stderr == pytest.approx(np.sqrt(variance * np.diag(A @ older.T @ older @ A)), rel=1e-6)


def test_settings_without_meaning_are_refused() -> None:
    with pytest.raises(ArgumentError):
        dynid.estimators.OnlineLeastSquares(arm(), forgetting=0.0)
