"""Criteria of how much a motion reveals: functions of the observation matrix, each with its exact gradient.

The observation matrix W (m, b) has one row per measured torque or energy, each divided by the standard deviation of its
noise, and one column per parameter. All measures but the equilibrium need only its information ``A = W^T W`` (b, b), to
which earlier experiments add theirs. Lower is better throughout. Measures without an equation number are textbook ones.

The search for motions and the choice of energy points minimise a `Criterion`: one *measure*, or a weighted sum of
several. Each measure is a function below that returns its value for A and its symmetric gradient G (b, b), with ``d
value = sum(G * dA)``. Measures that depend on a largest or smallest singular value or entry have kinks, so a search
minimises smooth bounds of them first (`Criterion.stages`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpstrf

from dynid.array_types import Floats
from dynid.checks import as_number
from dynid.decompositions import eigh
from dynid.errors import ArgumentError
from dynid.spatial import ROUNDING

_STAGE_ORDERS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Orders of the norms in the smooth stages, doubled from stage to stage. Convention."""
_SMOOTH_CONDITION = 4.0
"""Smallest order for the condition number: that of the Frobenius norm of A. Convention."""
_SINGULAR_OBJECTIVE = 50.0
"""Objective where the information is singular. Convention: above the logarithm of any condition number, and finite, as
the line search needs it."""

Valued = tuple[float, Floats]
"""The value of a measure and its gradient by A or W."""


def _spectrum(A: Floats) -> tuple[Floats, Floats]:
    """Compute eigenvalues (b,), ascending, and eigenvectors (b, b) of a positive definite matrix.

    Raises:
        LinAlgError: The matrix is singular.
    """
    eigenvalues, vectors = eigh(A)
    if not eigenvalues[0] > ROUNDING * eigenvalues[-1]:
        raise np.linalg.LinAlgError("the information matrix is singular")
    return eigenvalues, vectors


def _inverse(A: Floats) -> Floats:
    """Invert a positive definite matrix by its Cholesky factor; raises LinAlgError where it is singular."""
    factor = np.linalg.inv(np.linalg.cholesky(A))
    return np.asarray(factor.T @ factor)


def _condition(A: Floats, order: float) -> Valued:
    """Condition number of W in the Schatten norm of an order, the ratio of singular values for infinite order.

    Finite orders p are smooth upper bounds, ``(sum s^p)^(1/p) (sum s^-p)^(1/p)`` of the singular values s.
    """
    eigenvalues, V = _spectrum(A)  # squares of the singular values
    # powers of the singular values relative to the extreme ones; if the order is infinite: 1 for those, 0 for others
    up = (eigenvalues / eigenvalues[-1]) ** (order / 2)
    down = (eigenvalues[0] / eigenvalues) ** (order / 2)
    value = float(np.sqrt(eigenvalues[-1] / eigenvalues[0]))  # [GautierKhalil1992] eq. (16)
    value *= float(up.sum() * down.sum()) ** (1 / order)
    rate = 0.5 * (up / up.sum() - down / down.sum()) / eigenvalues  # derivative of log(value) by each eigenvalue
    return value, (V * (value * rate)) @ V.T


def _scaled_condition(A: Floats, order: float) -> Valued:
    """Condition number as in `_condition`, of W with columns of unit length, so that units and sizes do not matter."""
    diagonal = np.diag(A)
    if not np.all(diagonal > 0.0):
        raise np.linalg.LinAlgError("a parameter is not excited at all")
    scale = 1.0 / np.sqrt(np.outer(diagonal, diagonal))
    value, G = _condition(A * scale, order)
    # chain rule: an entry of A * scale depends on that entry of A and on two diagonal entries
    return value, (G - np.diag((G * A * scale).sum(axis=1))) * scale


def _frobenius(A: Floats) -> Valued:
    """``||A||_F ||A^-1||_F``: the square of the condition number of order 4 of W."""
    root, G = _condition(A, _SMOOTH_CONDITION)
    return root * root, 2.0 * root * G  # [GautierKhalil1992] eq. (21)


def _qr(A: Floats) -> Valued:
    """Ratio of the first to the last diagonal entry of R in the QR decomposition of W with column pivoting.

    It is the second of the three measures in [GautierKhalil1992] section 4.1.
    """
    _, order, rank, _ = dpstrf(A)  # pivoted Cholesky elimination takes the columns in the same order
    if rank < len(A):
        raise np.linalg.LinAlgError("the information matrix is singular")
    first = int(order[0]) - 1  # LAPACK counts from 1
    last = int(order[-1]) - 1
    inverse = _inverse(A)
    # r_11^2 = A_ff; r_bb^2 = 1 / (A^-1)_ll whatever the order of the columns before l
    value = float(np.sqrt(A[first, first] * inverse[last, last]))
    G = -0.5 * value / inverse[last, last] * np.outer(inverse[last], inverse[last])
    G[first, first] += 0.5 * value / A[first, first]
    return value, G


def _d_optimality(A: Floats) -> Valued:
    """Minus the logarithm of det(A): volume of the confidence ellipsoid, whatever the parameters' units."""
    factor = np.linalg.cholesky(A)
    return float(-2.0 * np.log(np.diag(factor)).sum()), -_inverse(A)


def _a_optimality(A: Floats, weights: Floats | float) -> Valued:
    """Sum of the parameters' variances, each times its weight."""
    inverse = _inverse(A)
    return float(np.sum(weights * np.diag(inverse))), -(inverse * weights) @ inverse


def _e_optimality(A: Floats) -> Valued:
    """Largest eigenvalue of A^-1: the variance along the worst direction."""
    eigenvalues, V = _spectrum(A)
    return float(1.0 / eigenvalues[0]), -np.outer(V[:, 0], V[:, 0]) / eigenvalues[0] ** 2


def _equilibrium(W: Floats, order: float) -> Valued:
    """Ratio S of the largest to the smallest absolute entry of W (infinite order), or a smooth bound (finite order)."""
    size = np.abs(W)
    low = float(size.min())
    high = float(size.max())
    if low == 0.0:
        return np.inf, np.zeros_like(W)
    up = (size / high) ** order  # of infinite order: 1 for the largest entry alone, 0 for others
    down = (low / size) ** order
    value = high / low * float(up.sum() * down.sum()) ** (1 / order)  # [GautierKhalil1992] eq. (19)
    return value, value * (up / up.sum() - down / down.sum()) / W


_EQUILIBRIUM = "equilibrium"
"""Name of the only measure that needs W itself: its information A does not suffice."""
_MEASURES: Mapping[str, Callable[[Floats, Criterion], Valued]] = {
    "condition": lambda A, c: _condition(A, max(c.order, _SMOOTH_CONDITION)),
    "scaled-condition": lambda A, c: _scaled_condition(A, max(c.order, _SMOOTH_CONDITION)),
    "frobenius": lambda A, c: _frobenius(A),
    "qr": lambda A, c: _qr(A),
    "d-optimality": lambda A, c: _d_optimality(A),
    "a-optimality": lambda A, c: _a_optimality(A, 1.0 if c.weights is None else np.asarray(c.weights)),
    "e-optimality": lambda A, c: _e_optimality(A),
    _EQUILIBRIUM: lambda W, c: _equilibrium(W, c.order),
}
"""Name -> function of the information A (of W for the equilibrium) and the criterion: value and gradient.

The functions raise `np.linalg.LinAlgError` where A is singular."""
_MEASURES_WITH_KINKS = {"condition", "scaled-condition", _EQUILIBRIUM}
"""Measures with kinks, where two extreme singular values or entries are equal; they have smooth bounds."""


@dataclass(frozen=True)
class Criterion:
    """A number that says how little a motion reveals: one measure, or a weighted sum of several.

    Measures: ``condition`` (of the observation matrix), ``scaled-condition`` (with columns of unit length),
    ``frobenius`` and ``qr`` (the estimates of the condition number in [GautierKhalil1992]), ``d-optimality`` (volume of
    the confidence ellipsoid), ``a-optimality`` (sum of the variances), ``e-optimality`` (largest variance), and
    ``equilibrium`` (ratio of the extreme entries of the observation matrix; for points alone).
    """

    terms: Any
    """Name of a measure, or measures with their weights: ``{"condition": 1.0, "equilibrium": 0.01}``, the cost of
    [GautierKhalil1992] eq. (18). Kept as pairs of name and weight."""
    weights: tuple[float, ...] | None = None
    """Weights (b,) of the variances in the sum of ``a-optimality``: the inverse squares of the standard deviations that
    are wanted, zero for parameters that do not matter; None for 1."""
    product: bool = False
    """Whether the weights are exponents of a product, which suits measures of different sizes."""
    order: float = np.inf
    """Order of the norms in condition numbers and equilibrium: infinite for the exact value, else a smooth bound."""

    def __post_init__(self) -> None:
        """Refuse unknown measures, weights that are not positive, and products of measures that may be negative."""
        given = {self.terms: 1.0} if isinstance(self.terms, str) else self.terms
        try:
            pairs = [(name, as_number("weight", weight, least=0.0)) for name, weight in dict(given).items()]
        except (TypeError, ValueError):
            pairs = []
        kept = tuple((name, weight) for name, weight in pairs if weight > 0.0)
        if not kept or not {name for name, _ in kept} <= _MEASURES.keys():
            raise ArgumentError(
                f"{self.terms!r} is no criterion",
                remedy=f"Give one of {', '.join(_MEASURES)}, or several with weights above zero.",
            )
        object.__setattr__(self, "terms", kept)
        if self.product and not self.positive:
            raise ArgumentError("d-optimality may be negative, and a product has no such factors", remedy="Use a sum.")

    @classmethod
    def of(cls, value: object) -> Criterion:
        """Make a criterion from a value of its field ``terms``; a criterion is returned unchanged."""
        return value if isinstance(value, Criterion) else cls(value)

    @property
    def positive(self) -> bool:
        """Whether values are positive, so that their logarithm can be minimised instead."""
        return "d-optimality" not in dict(self.terms)

    @property
    def needs_every_entry(self) -> bool:
        """Whether the information A does not suffice, because a measure needs the entries of W."""
        return _EQUILIBRIUM in dict(self.terms)

    def of_information(self, A: Floats) -> Valued:
        """Evaluate the criterion and its symmetric gradient for information A (b, b); infinite where A is singular."""
        try:
            return self._combine([(weight, *_MEASURES[name](A, self)) for name, weight in self.terms])
        except np.linalg.LinAlgError:
            return np.inf, np.zeros_like(A)

    def value_and_gradient(self, W: Floats) -> Valued:
        """Evaluate the criterion and its gradient (m, b) by W (m, b); infinite where W does not have full rank."""
        A = W.T @ W
        parts = []
        for name, weight in self.terms:
            try:
                value, G = _MEASURES[name](W if name == _EQUILIBRIUM else A, self)
            except np.linalg.LinAlgError:
                return np.inf, np.zeros_like(W)
            parts.append((weight, value, G if name == _EQUILIBRIUM else W @ (2.0 * G)))  # chain rule of A = W^T W
        return self._combine(parts)

    def objective(self, value: float, gradient: Floats, size: int) -> Valued:
        """Turn value and gradient into those that a search minimises, over b = ``size`` parameters.

        That is the logarithm where values are positive, which is flatter where they are large. Other criteria are
        divided by b; infinity becomes a plateau.
        """
        if not np.isfinite(value):
            return _SINGULAR_OBJECTIVE, np.zeros_like(gradient)
        if not self.positive:
            return value / size, gradient / size
        return float(np.log(value)), gradient / value

    def value(self, W: Floats) -> float:
        """Evaluate the criterion alone for W (m, b)."""
        return self.value_and_gradient(W)[0]

    def stages(self) -> Sequence[Criterion]:
        """List smooth bounds of this criterion to minimise first, and at the end the criterion itself.

        The bounds have norms of rising order: low orders count all singular values or entries, high ones nearly the
        extreme ones alone.
        """
        names = {name for name, _ in self.terms}
        first = 0.0 if self.needs_every_entry else _SMOOTH_CONDITION
        orders = (
            [order for order in _STAGE_ORDERS if first <= order < self.order] if names & _MEASURES_WITH_KINKS else []
        )
        return (*(replace(self, terms=dict(self.terms), order=order) for order in orders), self)

    def _combine(self, parts: Sequence[tuple[float, float, Floats]]) -> Valued:
        """Combine (weight, value, gradient) of each term to value and gradient of their sum or product."""
        if not self.product:
            value = sum(weight * part for weight, part, _ in parts)  # [GautierKhalil1992] eq. (18)
            return float(value), np.asarray(sum(weight * gradient for weight, _, gradient in parts))
        if not all(np.isfinite(part) for _, part, _ in parts):
            return np.inf, np.zeros_like(parts[0][2])
        value = float(np.prod([part**power for power, part, _ in parts]))
        return value, np.asarray(value * sum(power / part * gradient for power, part, gradient in parts))

    def __str__(self) -> str:
        """Write the measures with their weights."""
        if len(self.terms) == 1:
            return str(self.terms[0][0])
        return (" * " if self.product else " + ").join(
            f"{name}^{weight:g}" if self.product else f"{weight:g} {name}" for name, weight in self.terms
        )
