"""Probabilities and quantiles against SciPy's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from dynid.estimation.intervals import quantiles

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


def test_limits() -> None:
    assert quantiles.f_probability(0.0, 3, 5) == 1.0
    assert quantiles.student_quantile(float("inf"), 0.975) == quantiles.normal_quantile(0.975)
