"""Probabilities and quantiles against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy.stats import ncx2

from dynid.estimation.intervals import quantiles
from dynid.estimation.intervals.displaced import displaced_std

FREEDOM = st.integers(1, 3000)
CLOSE = 1e-9
"""Relative error that thousands of degrees of freedom leave in the logarithms of gamma functions, tenfold."""


@given(FREEDOM, FREEDOM, st.floats(1e-3, 100.0))
def test_f(first: int, second: int, above: float) -> None:
    expected = float(special.fdtrc(first, second, above))
    assert quantiles.f_probability(above, first, second) == pytest.approx(expected, rel=CLOSE, abs=1e-12)


@given(FREEDOM, st.floats(1e-9, 0.9))
def test_chi_squared(freedom: int, chance: float) -> None:
    expected = float(special.chdtri(freedom, chance))
    assert quantiles.chi_squared_quantile(freedom, chance) == pytest.approx(expected, rel=CLOSE)


@given(st.floats(1.0, 1e5), st.floats(0.9, 0.9999))
def test_student(freedom: float, probability: float) -> None:
    expected = float(special.stdtrit(freedom, probability))
    assert quantiles.student_quantile(freedom, probability) == pytest.approx(expected, rel=CLOSE)
    ratio = quantiles.student_ratio(freedom, probability)
    assert ratio == pytest.approx(expected / float(special.ndtri(probability)), rel=CLOSE)


@given(st.lists(st.floats(1.0, 1e5) | st.just(float("inf")), min_size=1, max_size=40), st.floats(0.9, 0.9999))
def test_many_student_quantiles_at_once(freedom: list[float], probability: float) -> None:
    expected = [quantiles.student_ratio(each, probability) for each in freedom]
    found = quantiles.student_ratios(np.array(freedom), probability)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@given(st.floats(0.01, 30.0))
def test_displaced(mean: float) -> None:
    expected = float(np.sqrt(ncx2.ppf(0.95, 1, mean**2)))  # squares of such numbers are noncentral chi-squared
    assert quantiles.displaced_quantile(mean) == pytest.approx(expected, rel=1e-6)


@given(st.floats(0.0, 30.0), st.floats(1e-3, 1e3))
def test_displaced_standard_deviation(ratio: float, spread: float) -> None:
    mean = ratio * spread
    found = displaced_std(np.array([spread**2 + mean**2]), np.array([mean]))[0]
    assert found == pytest.approx(spread * quantiles.displaced_quantile(ratio) / 1.959963984540054, rel=2e-3)


def test_limits() -> None:
    assert quantiles.f_probability(0.0, 3, 5) == 1.0
    assert quantiles.student_quantile(float("inf"), 0.975) == quantiles.normal_quantile(0.975)
