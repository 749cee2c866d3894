"""Polynomials, combinations and recognition of numbers."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.parameters.expression import Combination, Polynomial, Term
from dynid.parameters.number_recognition import Recogniser
from dynid.robot.formats.dh import DH, from_dh

D, R, C, S = (Polynomial.symbol(name) for name in ("D3", "R3", "CA3", "SA3"))
ONE = Polynomial.constant(1.0)


def test_normal_form():
    assert C * C + S * S == ONE
    assert not D - D
    assert (D + R) * (D - R) == D * D - R * R
    assert str((R - D) * (R + D)) == "R3^2 - D3^2"
    assert str(D * 0.5) == "1/2*D3"
    assert str(Polynomial()) == "0"
    assert (D * 2.0 + 1.0).text(latex=True) == r"2\,D_{3} + 1"


def test_value_agrees_with_arithmetic():
    values = {"D3": 0.4, "R3": -0.2, "CA3": np.cos(0.3), "SA3": np.sin(0.3)}
    polynomial = (D * S + R * C) * (D * S - 2.0 * R) + 0.25
    d, r, c, s = values.values()
    assert polynomial.value(values) == pytest.approx((d * s + r * c) * (d * s - 2 * r) + 0.25)


def test_combination_gathers_equal_coefficients():
    terms = (Term(ONE, "ZZ1"), Term(-ONE, "YY2"), Term(D * D, "M2"), Term(-(D * D), "M3"), Term(R * D * 2.0, "MZ2"))
    assert str(Combination("ZZR1", terms)) == "ZZR1 = ZZ1 - YY2 + D3^2*(M2 - M3) + 2*D3*R3*MZ2"
    assert str(Combination("XX2", (Term(ONE, "XX2"),))) == "XX2"


@pytest.mark.parametrize(
    ("value", "degree", "text"),
    [
        (0.43, 1, "D3"),
        (-0.86, 1, "-2*D3"),
        (0.43**2 + 0.15**2, 2, "D3^2 + R3^2"),
        (0.15**2 - 0.43**2, 2, "R3^2 - D3^2"),
        (-0.43 * 0.15, 2, "-D3*R3"),
        (0.5, 0, "1/2"),
        (0.123456789, 1, "0.123457"),
    ],
)
def test_recognition(value, degree, text):
    assert str(Recogniser({"D3": 0.43, "R3": 0.15, "D9": 0.123456789})(value, degree, 2, 3)) == text


def test_general_angles_show_as_symbols():
    from dynid.parameters.base import base_parameters

    robot = from_dh([DH(), DH(alpha=0.7, d=0.3), DH(alpha=-0.4, d=0.2, r=0.1)])
    text = str(base_parameters(robot))
    assert "CA3*SA3" in text
    assert "CA2 = 0.764842" in text


def test_a_number_that_several_lengths_explain_stays_a_number() -> None:
    recognise = Recogniser({"PX2": 0.05, "PZ2": 0.1, "PX3": 0.37})
    assert str(recognise(0.05, 1, 0, 3)) == "PX2"
    assert str(recognise(0.74, 1, 0, 3)) == "2*PX3"
    assert "P" not in str(recognise(0.1, 1, 0, 3))  # PZ2, and 2*PX2
    assert "P" not in str(recognise(0.01, 2, 0, 3))  # PZ2^2, and 2*PX2*PZ2
