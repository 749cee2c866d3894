"""Printed formulas as data: evaluate them, count their operations, and find correct ones by fitting.

A formula is arithmetic on names, such as ``2*d1*d2*s2*c2 - a1*c2**2``; nothing else is accepted.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import astuple, dataclass
from itertools import product
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.errors import ArgumentError


def _tree(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ArgumentError(f"'{text}' is not a formula") from error


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """Evaluate a formula; its names may stand for arrays."""
    return _value(_tree(text), names)


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, names)
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, names), _value(node.right, names)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Pow):
            return left**right
    raise ArgumentError(f"'{ast.unparse(node)}' is not allowed in a formula")


@dataclass(frozen=True, slots=True)
class OperatorCount:
    """Numbers of operators of a formula, without any simplification."""

    products: int = 0
    doublings: int = 0
    """Products with the constant two."""
    sums: int = 0
    """Binary plus and minus."""
    negations: int = 0

    def __add__(self, other: OperatorCount) -> OperatorCount:
        return OperatorCount(*map(operator.add, astuple(self), astuple(other)))

    def __sub__(self, other: OperatorCount) -> OperatorCount:
        return OperatorCount(*map(operator.sub, astuple(self), astuple(other)))


def operators(text: str) -> OperatorCount:
    """Count the operators of a formula; a difference from a literal zero counts as a negation."""
    return _count(list(ast.walk(_tree(text))))


def constant_operators(text: str, constants: AbstractSet[str]) -> OperatorCount:
    """Count the operators of a formula whose operands are all constants."""
    return _count([node for node in ast.walk(_tree(text)) if _names(node) <= constants])


def variables(text: str) -> set[str]:
    """Names in a formula."""
    return _names(_tree(text))


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _count(nodes: Sequence[ast.AST]) -> OperatorCount:
    found = OperatorCount()
    for node in nodes:
        if isinstance(node, ast.UnaryOp):
            found += OperatorCount(negations=1)
        elif isinstance(node, ast.BinOp):
            left = node.left.value if isinstance(node.left, ast.Constant) else None
            if isinstance(node.op, ast.Mult):
                found += OperatorCount(doublings=1) if left == 2 else OperatorCount(products=1)
            else:
                found += OperatorCount(negations=1) if left == 0 else OperatorCount(sums=1)
    return found


def mend_parentheses(text: str) -> str:
    """Close open parentheses at the end, or drop surplus closing ones."""
    missing = text.count("(") - text.count(")")
    if missing >= 0:
        return text + ")" * missing
    return text.rstrip()[:missing]


class Monomials:
    """Products of powers of given factors, and the fit of functions by sums of these products.

    Args:
        factors: Groups of factors; a product has one factor of each group: ``[["a1", "a2"], ["1", "c2", "c2**2"]]``.
        samples: Values (N,) of all names.
    """

    def __init__(self, factors: Sequence[Sequence[str]], samples: Mapping[str, Floats]) -> None:
        self.samples = dict(samples)
        self.names = ["*".join(f for f in choice if f != "1") or "1" for choice in product(*factors)]
        ones = np.ones(len(next(iter(samples.values()))))
        self.matrix = np.stack([evaluate(name, samples) * ones for name in self.names], axis=1)
        self._inverse = np.linalg.pinv(self.matrix, rcond=1e-12)

    def fit(self, values: Floats) -> dict[str, float]:
        """Fit values by a sum of the products, and return the coefficients that are not zero.

        Raises:
            ArgumentError: No sum of the products equals the values.
        """
        coefficients = self._inverse @ values
        size = max(1.0, float(np.abs(values).max(initial=0.0)))
        if np.abs(self.matrix @ coefficients - values).max(initial=0.0) > 1e-9 * size:
            raise ArgumentError("no sum of these products equals the values")
        tidy = np.round(coefficients, 6)
        return {name: float(c) for name, c in zip(self.names, tidy, strict=True) if c}

    def fit_formula(self, text: str) -> dict[str, float]:
        """Fit a printed formula by the same products, and return the coefficients that are not zero."""
        return self.fit(evaluate(text, self.samples) * np.ones(len(self.matrix)))

    @staticmethod
    def text(coefficients: Mapping[str, float]) -> str:
        """Write a sum of products as a formula."""
        words = []
        for name, value in coefficients.items():
            size = f"{abs(value):g}"
            body = size if name == "1" else name if size == "1" else f"{size}*{name}"
            words.append(f"{'-' if value < 0 else '+'} {body}")
        text = " ".join(words).replace("**", "^").replace("*", " ")
        return text.removeprefix("+ ").replace("- ", "-", 1) if text.startswith("-") else text.removeprefix("+ ") or "0"
