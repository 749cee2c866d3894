"""Polynomials, combinations and recognition of numbers."""

from __future__ import annotations

from dynid.identifiability.expression import Combination, Polynomial, Term

D, R, C, S = (Polynomial.symbol(name) for name in ("D3", "R3", "CA3", "SA3"))
ONE = Polynomial.constant(1.0)


def test_normal_form():
    assert C * C + S * S == ONE
    assert not D - D
    assert (D + R) * (D - R) == D * D - R * R
    assert str((R - D) * (R + D)) == "R3^2 - D3^2"
    assert str(D * 0.5) == "1/2*D3"
    assert str(Polynomial()) == "0"


def test_combination_gathers_equal_coefficients():
    terms = (Term(ONE, "ZZ1"), Term(-ONE, "YY2"), Term(D * D, "M2"), Term(-(D * D), "M3"), Term(R * D * 2.0, "MZ2"))
    assert str(Combination("ZZR1", terms)) == "ZZR1 = ZZ1 - YY2 + D3^2*(M2 - M3) + 2*D3*R3*MZ2"
    assert str(Combination("XX2", (Term(ONE, "XX2"),))) == "XX2"
