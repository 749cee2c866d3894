"""Curves through samples, against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import interpolate, ndimage, optimize, signal

from dynid.curves import CubicSpline, lag_exponentially, lowest_point, running_median


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 60), st.integers(1, 4), st.integers(0, 1000))
def test_splines_are_scipys(samples, columns, seed):
    rng = np.random.default_rng(seed)
    time, values = np.cumsum(rng.uniform(0.2, 2.0, samples)), rng.normal(size=(samples, columns))
    at = np.concatenate([rng.uniform(time[0] - 0.1, time[-1] + 0.1, 50), time])
    expected = interpolate.CubicSpline(time, values)(at)
    np.testing.assert_allclose(CubicSpline(time, values)(at), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("rows", [4, 9, 10, 400])
def test_running_medians_are_scipys(rows):
    x = np.random.default_rng(0).normal(size=(rows, 3)).round(1)
    np.testing.assert_array_equal(running_median(x, 9), ndimage.median_filter(x, size=(9, 1), mode="reflect"))


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 1000])
@pytest.mark.parametrize("keep", [0.0, 0.3, 0.999])
def test_lags_are_scipys_recursion(rows, keep):
    x = np.random.default_rng(1).normal(size=(rows, 2))
    expected, _ = signal.lfilter([1.0 - keep], [1.0, -keep], x, axis=0, zi=keep * x[:1])
    np.testing.assert_allclose(lag_exponentially(x, keep), expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(lag_exponentially(x[:, 0], keep), expected[:, 0], rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("cost", "low", "high"),
    [
        (lambda x: (x - 0.3) ** 4 + np.cos(5 * x), -1.0, 2.0),
        (lambda x: np.exp(x) - 2 * x, 0.0, 3.0),
        (lambda x: abs(x - 0.1234), -1.0, 1.0),
        (lambda x: x, 0.0, 1.0),
        (lambda x: 1.0, 0.0, 1.0),
    ],
)
def test_the_lowest_point_is_scipys(cost, low, high):
    expected = optimize.minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-6})
    calls = []
    place, value = lowest_point(lambda x: calls.append(x) or cost(x), low, high, accuracy=1e-6)
    assert place == pytest.approx(expected.x, abs=2e-6)
    assert value == pytest.approx(cost(place))
    assert low < min(calls)
    assert max(calls) < high
    assert len(calls) <= expected.nfev + 2
