"""Printed formulas: evaluated, counted, mended, derived."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.studies.papers.judgement.formulas import (
    Monomials,
    OperatorCount,
    constant_operators,
    evaluate,
    mend_parentheses,
    operators,
)


def test_arithmetic_on_names() -> None:
    assert evaluate("2*a**2 - (b + 1)*a", {"a": 3.0, "b": 4.0}) == 3.0
    assert evaluate("-T**-2", {"T": 2.0}) == -0.25


@pytest.mark.parametrize("text", ["__import__('os')", "a.b", "a[0]", "a if a else a", "a / b", "'a'", "(a", "c"])
def test_nothing_else_is_accepted(text: str) -> None:
    with pytest.raises(ArgumentError):
        evaluate(text, {"a": 1.0, "b": 1.0})


def test_operators_as_written() -> None:
    assert operators("(2.0 * (a * b)) - c + (- d)") == OperatorCount(products=1, doublings=1, sums=2, negations=1)
    assert operators("(0 - (a * b))") == OperatorCount(products=1, negations=1)


def test_operators_of_constants() -> None:
    assert constant_operators("(k - 2*h) * a + k", {"k", "h"}) == OperatorCount(doublings=1, sums=1)


def test_parentheses() -> None:
    assert mend_parentheses("((a * b)") == "((a * b))"
    assert mend_parentheses("(a * b))") == "(a * b)"


def test_monomials_find_the_formula() -> None:
    q = np.random.default_rng(0).uniform(-3, 3, 80)
    basis = Monomials([["1", "s"], ["1", "c", "c**2"]], {"s": np.sin(q), "c": np.cos(q)})
    found = basis.fit(np.sin(q) ** 2 - 2 * np.sin(2 * q))
    assert found == {"1": 1.0, "c**2": -1.0, "s*c": -4.0}
    assert basis.text(found) == "1 - c^2 - 4 s c"
    assert basis.fit_formula("1 - c*c - 4*s*c") == found
    with pytest.raises(ArgumentError):
        basis.fit(np.exp(q))
