"""Polynomials, combinations and recognition of numbers."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.parameters.expression import Combination, Polynomial, Term
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


def test_general_angles_show_as_symbols():
    from dynid.parameters.base import base_parameters

    robot = from_dh([DH(), DH(alpha=0.7, d=0.3), DH(alpha=-0.4, d=0.2, r=0.1)])
    text = str(base_parameters(robot))
    assert "CA3*SA3" in text
    assert "CA2 = 0.764842" in text
