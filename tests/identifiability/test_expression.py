"""Polynomials in the symbols of lengths and angles."""

from __future__ import annotations

from dynid.identifiability.expression import Polynomial

D, R, C, S = (Polynomial.symbol(name) for name in ("D3", "R3", "CA3", "SA3"))
ONE = Polynomial.constant(1.0)


def test_normal_form():
    assert C * C + S * S == ONE
    assert not D - D
    assert (D + R) * (D - R) == D * D - R * R
    assert str((R - D) * (R + D)) == "R3^2 - D3^2"
    assert str(D * 0.5) == "1/2*D3"
    assert str(Polynomial()) == "0"
