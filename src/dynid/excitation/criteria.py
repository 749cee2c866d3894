"""How much a motion reveals: functions of the observation matrix, each with its exact gradient.

The observation matrix W (m, b) has one row per measured torque or energy, each divided by the standard deviation of its
noise, and one column per parameter. Most criteria need only its information ``A = W^T W`` (b, b), to which earlier
experiments add theirs. Lower is better throughout. Criteria without an equation number are textbook ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg.lapack import dpstrf, dsyevr

from dynid.arrays import Floats
from dynid.checks import as_number
from dynid.decompositions import eigh
from dynid.errors import ArgumentError

_STAGES = (4.0, 8.0, 16.0, 32.0, 64.0)
"""Orders of the norms that lead to the extreme ones, doubled from stage to stage. Convention."""
Parts = Sequence[tuple[float, float, Floats]]
"""Weight or exponent, value and gradient of each criterion of a cost."""
_SINGULAR = 1e-15
"""Ratio of the extreme eigenvalues of the information below which it is singular: a few units of double rounding."""


@dataclass(frozen=True)
class Criterion(ABC):
    """A number that says how little a motion reveals."""

    @property
    def positive(self) -> bool:
        """Whether values are positive, so that their logarithm can be minimised instead."""
        return True

    @abstractmethod
    def value_and_gradient(self, W: Floats, prior: Floats | None = None) -> tuple[float, Floats]:
        """Value, and its derivative (m, b) with respect to W; infinite where W does not have full rank.

        Args:
            W: (m, b) weighted observations.
            prior: (b, b) information of earlier experiments, where the criterion has a use for it.
        """

    def value(self, W: Floats, prior: Floats | None = None) -> float:
        """Value alone."""
        return self.value_and_gradient(W, prior)[0]

    def stages(self) -> Sequence[Criterion]:
        """Smoother criteria to minimise first, ending with this one."""
        return (self,)

    def as_information(self) -> InformationCriterion | None:
        """The same number as a function of the information alone; None for a criterion that needs every entry of W."""
        return None


@dataclass(frozen=True)
class InformationCriterion(Criterion):
    """A criterion that depends on the information ``A = W^T W + prior`` alone."""

    @abstractmethod
    def of_information(self, A: Floats) -> tuple[float, Floats]:
        """Value, and its symmetric derivative (b, b), for a positive definite A; `np.linalg.LinAlgError` otherwise."""

    def value_and_gradient(self, W: Floats, prior: Floats | None = None) -> tuple[float, Floats]:
        """Value, and its derivative (m, b) with respect to W."""
        A = W.T @ W
        try:
            value, G = self.of_information(A if prior is None else A + prior)
        except np.linalg.LinAlgError:
            return np.inf, np.zeros_like(W)
        return value, W @ (2.0 * G)

    def as_information(self) -> InformationCriterion | None:
        """This criterion."""
        return self


def require_criterion(value: object) -> Criterion:
    """The value itself, a criterion; anything else is refused.

    Raises:
        ArgumentError: The value is no criterion.
    """
    if not isinstance(value, Criterion):
        raise ArgumentError(f"{value!r} is no criterion", remedy="Give an object, such as ConditionNumber().")
    return value


def _spectrum(A: Floats) -> tuple[Floats, Floats]:
    """All eigenvalues (b,), ascending, and eigenvectors (b, b) of a positive definite matrix."""
    eigenvalues, vectors = eigh(A)
    _refuse_singular(eigenvalues)
    return eigenvalues, vectors


def _extremes(A: Floats) -> tuple[Floats, Floats]:
    """The smallest and the largest eigenvalue (2,) and their eigenvectors (b, 2): half the time of all of them."""
    if not np.isfinite(A).all():
        raise np.linalg.LinAlgError("the information matrix is not finite")
    ends = [dsyevr(A, range="I", il=place, iu=place) for place in (1, len(A))]
    eigenvalues = np.array([values[0] for values, *_ in ends])
    _refuse_singular(eigenvalues)
    return eigenvalues, np.hstack([vectors for _, vectors, *_ in ends])


def _refuse_singular(eigenvalues: Floats) -> None:
    if not eigenvalues[0] > _SINGULAR * eigenvalues[-1]:
        raise np.linalg.LinAlgError("the information matrix is singular")


def _inverse(A: Floats) -> Floats:
    """Inverse of a positive definite matrix."""
    factor = np.linalg.inv(np.linalg.cholesky(A))
    return np.asarray(factor.T @ factor)


@dataclass(frozen=True)
class ConditionNumber(InformationCriterion):
    """Condition number of W in the Schatten norm of an order: the ratio of singular values for infinite order.

    Finite orders p are smooth upper bounds, ``(sum s^p)^(1/p) (sum s^-p)^(1/p)`` of the singular values s, that tend to
    it as p grows.
    """

    order: float = np.inf
    """Order p of the norm, positive."""

    def of_information(self, A: Floats) -> tuple[float, Floats]:
        """Value and derivative for a positive definite A (b, b)."""
        eigenvalues, V = _extremes(A) if np.isinf(self.order) else _spectrum(A)
        if np.isinf(self.order):
            value = float(np.sqrt(eigenvalues[1] / eigenvalues[0]))  # [GautierKhalil1992] eq. (16)
            rate = np.array([-0.5, 0.5]) / eigenvalues
        else:
            up = (eigenvalues / eigenvalues[-1]) ** (self.order / 2)
            down = (eigenvalues[0] / eigenvalues) ** (self.order / 2)
            scale = np.sqrt(eigenvalues[-1] / eigenvalues[0])
            value = float(scale * (up.sum() * down.sum()) ** (1 / self.order))
            rate = 0.5 * (up / up.sum() - down / down.sum()) / eigenvalues
        return value, (V * (value * rate)) @ V.T

    def stages(self) -> Sequence[Criterion]:
        """Orders 4, 8, ... up to this one: the condition number itself has no gradient where singular values meet."""
        return (*(ConditionNumber(p) for p in _STAGES if p < self.order), self)


@dataclass(frozen=True)
class FrobeniusCondition(InformationCriterion):
    """``||A||_F ||A^-1||_F``: the square of the condition number of order 4 of W."""

    def of_information(self, A: Floats) -> tuple[float, Floats]:
        """Value and derivative for a positive definite A (b, b)."""
        root, G = ConditionNumber(4.0).of_information(A)
        return root * root, 2.0 * root * G  # [GautierKhalil1992] eq. (21)


@dataclass(frozen=True)
class QRCondition(InformationCriterion):
    """Ratio of the first to the last diagonal entry of R in the QR decomposition of W with column pivoting.

    It is the second of the three measures in [GautierKhalil1992] section 4.1.
    """

    def of_information(self, A: Floats) -> tuple[float, Floats]:
        """Value and derivative for a positive definite A (b, b)."""
        first, last = _first_and_last_pivot(A)
        inverse = _inverse(A)
        # r_11^2 = A_ff; r_bb^2 = 1 / (A^-1)_ll whatever the order of the columns before l
        value = float(np.sqrt(A[first, first] * inverse[last, last]))
        G = -0.5 * value / inverse[last, last] * np.outer(inverse[last], inverse[last])
        G[first, first] += 0.5 * value / A[first, first]
        return value, G


def _first_and_last_pivot(A: Floats) -> tuple[int, int]:
    """Columns that QR with column pivoting takes first and last, by pivoted Cholesky elimination of A."""
    _, order, rank, _ = dpstrf(A)
    if rank < len(A):
        raise np.linalg.LinAlgError("the information matrix is singular")
    return int(order[0]) - 1, int(order[-1]) - 1


@dataclass(frozen=True)
class DOptimality(InformationCriterion):
    """Minus the logarithm of det(A): volume of the confidence ellipsoid, whatever the parameters' units."""

    positive: ClassVar[bool] = False

    def of_information(self, A: Floats) -> tuple[float, Floats]:
        """Value and derivative for a positive definite A (b, b)."""
        factor = np.linalg.cholesky(A)
        inverse = np.linalg.inv(factor)
        return float(-2.0 * np.log(np.diag(factor)).sum()), -(inverse.T @ inverse)


@dataclass(frozen=True)
class AOptimality(InformationCriterion):
    """trace(A^-1): the sum of the parameters' variances."""

    def of_information(self, A: Floats) -> tuple[float, Floats]:
        """Value and derivative for a positive definite A (b, b)."""
        inverse = _inverse(A)
        return float(np.trace(inverse)), -(inverse @ inverse)


@dataclass(frozen=True)
class EOptimality(InformationCriterion):
    """Largest eigenvalue of A^-1: the variance along the worst direction."""

    def of_information(self, A: Floats) -> tuple[float, Floats]:
        """Value and derivative for a positive definite A (b, b)."""
        eigenvalues, V = _extremes(A)
        return float(1.0 / eigenvalues[0]), -np.outer(V[:, 0], V[:, 0]) / eigenvalues[0] ** 2


@dataclass(frozen=True)
class PredictedDeviation(InformationCriterion):
    """Root mean square of the predicted standard deviations of chosen parameters, each over its scale."""

    chosen: tuple[int, ...]
    """Positions among the b parameters."""
    scales: tuple[float, ...] | None = None
    """One per chosen parameter, in its unit: a typical value or the accuracy wanted; 1 by default."""

    def of_information(self, A: Floats) -> tuple[float, Floats]:
        """Value and derivative for a positive definite A (b, b)."""
        inverse = _inverse(A)
        rows = list(self.chosen)
        weight = np.ones(len(rows)) if self.scales is None else 1.0 / np.square(self.scales)
        variance = float(weight @ inverse[rows, rows]) / len(rows)
        value = float(np.sqrt(variance))
        columns = inverse[:, rows]
        return value, -(columns * weight) @ columns.T / (2.0 * value * len(rows))


@dataclass(frozen=True)
class ColumnScaled(InformationCriterion):
    """Another criterion of W with every column divided by its norm, so that units and sizes do not matter."""

    criterion: InformationCriterion

    @property
    def positive(self) -> bool:
        """Whether the other criterion is positive."""
        return self.criterion.positive

    def of_information(self, A: Floats) -> tuple[float, Floats]:
        """Value and derivative for a positive definite A (b, b)."""
        diagonal = np.diag(A)
        if not np.all(diagonal > 0.0):
            raise np.linalg.LinAlgError("a parameter is not excited at all")
        d = 1.0 / np.sqrt(diagonal)
        scaled = A * np.outer(d, d)
        value, G = self.criterion.of_information(scaled)
        through_scale = (G * scaled).sum(axis=1)
        return value, (G - np.diag(through_scale)) * np.outer(d, d)

    def stages(self) -> Sequence[Criterion]:
        """The other criterion's stages with every column divided by its norm."""
        return tuple(ColumnScaled(c) for c in self.criterion.stages() if isinstance(c, InformationCriterion))


@dataclass(frozen=True)
class Equilibrium(Criterion):
    """Ratio S of the largest to the smallest absolute entry of W, or its smooth bound by norms of an order."""

    order: float = np.inf
    """Order of the norms, positive; infinite for S itself."""

    def __post_init__(self) -> None:
        """Refuse an order without a meaning."""
        if not (isinstance(self.order, int | float) and self.order > 0.0):
            raise ArgumentError(f"order is {self.order!r}", remedy="Give a positive number, or numpy.inf.")

    def value_and_gradient(self, W: Floats, prior: Floats | None = None) -> tuple[float, Floats]:
        """Value, and its derivative (m, b) with respect to W; earlier experiments do not enter."""
        size = np.abs(W)
        low, high = float(size.min()), float(size.max())
        if low == 0.0:
            return np.inf, np.zeros_like(W)
        if np.isinf(self.order):
            # [GautierKhalil1992] eq. (19)
            value, rate = high / low, (size == high) / high - (size == low) / low
            return value, value * rate * np.sign(W)
        up, down = (size / high) ** self.order, (low / size) ** self.order
        value = high / low * float(up.sum() * down.sum()) ** (1 / self.order)
        return value, value * (up / up.sum() - down / down.sum()) / W

    def stages(self) -> Sequence[Criterion]:
        """Orders 1/2, 1, 2, ... up to this one: low orders lift all small entries, not the smallest alone."""
        return (*(Equilibrium(p) for p in (0.5, 1.0, 2.0, *_STAGES) if p < self.order), self)


@dataclass(frozen=True)
class WeightedCost(Criterion):
    """Weighted sum of criteria, for example ``lambda_1 Cond(W) + lambda_2 S`` of [GautierKhalil1992]."""

    terms: tuple[tuple[float, Criterion], ...]
    """Weights, zero or larger and one of them above zero, and criteria; terms of weight zero are left out."""

    def __post_init__(self) -> None:
        """Refuse what has no minimum that means anything."""
        object.__setattr__(self, "terms", _checked_terms("weight", self.terms))

    @property
    def positive(self) -> bool:
        """Whether all terms are positive."""
        return all(criterion.positive for _, criterion in self.terms)

    def value_and_gradient(self, W: Floats, prior: Floats | None = None) -> tuple[float, Floats]:
        """Value, and its derivative (m, b) with respect to W."""
        return self.combine([(weight, *criterion.value_and_gradient(W, prior)) for weight, criterion in self.terms])

    def combine(self, parts: Parts) -> tuple[float, Floats]:
        """The sum of parts and its gradient."""
        value = sum(weight * part for weight, part, _ in parts)  # [GautierKhalil1992] eq. (18)
        return float(value), np.asarray(sum(weight * gradient for weight, _, gradient in parts))

    def stages(self) -> Sequence[Criterion]:
        """The terms' stages side by side, the last ones together."""
        return tuple(WeightedCost(terms) for terms in _side_by_side(self.terms))

    def as_information(self) -> InformationCriterion | None:
        """The sum as a function of the information alone; None where a term needs every entry of W."""
        terms = _information_terms(self.terms)
        return None if terms is None else _OfInformation(self, terms)


@dataclass(frozen=True)
class _OfInformation(InformationCriterion):
    """A sum or a product of criteria of the information alone."""

    cost: WeightedCost | GeometricCost
    """The same for any criteria."""
    terms: tuple[tuple[float, InformationCriterion], ...]
    """Its weights or exponents, and criteria."""

    @property
    def positive(self) -> bool:
        return self.cost.positive

    def of_information(self, A: Floats) -> tuple[float, Floats]:
        return self.cost.combine([(number, *criterion.of_information(A)) for number, criterion in self.terms])

    def stages(self) -> Sequence[Criterion]:
        return tuple(stage for cost in self.cost.stages() if (stage := cost.as_information()) is not None)


@dataclass(frozen=True)
class GeometricCost(Criterion):
    """Product of powers of positive criteria.

    It is the weighted sum of [GautierKhalil1992] eq. (18) over the criteria's logarithms, which suits criteria of
    different sizes.
    """

    terms: tuple[tuple[float, Criterion], ...]
    """Exponents, zero or larger and one of them above zero, and positive criteria; exponents of zero are left out."""

    def __post_init__(self) -> None:
        """Refuse what has no minimum that means anything, and powers of numbers that may be negative."""
        object.__setattr__(self, "terms", _checked_terms("exponent", self.terms))
        for _, criterion in self.terms:
            if not criterion.positive:
                raise ArgumentError(
                    f"{criterion} may be negative, and a product of powers needs positive criteria",
                    remedy="Use WeightedCost, or AOptimality() in place of DOptimality().",
                )

    def value_and_gradient(self, W: Floats, prior: Floats | None = None) -> tuple[float, Floats]:
        """Value, and its derivative (m, b) with respect to W."""
        return self.combine([(power, *criterion.value_and_gradient(W, prior)) for power, criterion in self.terms])

    def combine(self, parts: Parts) -> tuple[float, Floats]:
        """The product of parts and its gradient."""
        if not all(np.isfinite(part) for _, part, _ in parts):
            return np.inf, np.zeros_like(parts[0][2])
        value = float(np.prod([part**power for power, part, _ in parts]))
        return value, np.asarray(value * sum(power / part * gradient for power, part, gradient in parts))

    def stages(self) -> Sequence[Criterion]:
        """The terms' stages side by side, the last ones together."""
        return tuple(GeometricCost(terms) for terms in _side_by_side(self.terms))

    def as_information(self) -> InformationCriterion | None:
        """The product as a function of the information alone; None where a factor needs every entry of W."""
        terms = _information_terms(self.terms)
        return None if terms is None else _OfInformation(self, terms)


def _checked_terms(what: str, terms: object) -> tuple[tuple[float, Criterion], ...]:
    """Pairs of a number and a criterion, those with the number zero left out.

    Raises:
        ArgumentError: There is none, or one is not such a pair.
    """
    try:
        pairs = [(number, criterion) for number, criterion in terms]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{terms!r} are no pairs of {what} and criterion", remedy=f"Give (({what}, ConditionNumber()), ...)."
        ) from None
    checked = [(as_number(what, number, least=0.0), require_criterion(criterion)) for number, criterion in pairs]
    kept = tuple((number, criterion) for number, criterion in checked if number > 0.0)
    if not kept:
        raise ArgumentError(f"no criterion has a {what} above zero", remedy=f"Give one of them a {what} above zero.")
    return kept


def _side_by_side(terms: tuple[tuple[float, Criterion], ...]) -> list[tuple[tuple[float, Criterion], ...]]:
    """The stages of several terms; a term with fewer stages stays at its first one until the others catch up."""
    ladders = [(weight, criterion.stages()) for weight, criterion in terms]
    longest = max(len(ladder) for _, ladder in ladders)
    return [tuple((w, ladder[max(0, i + len(ladder))]) for w, ladder in ladders) for i in range(-longest, 0)]


def _information_terms(
    terms: tuple[tuple[float, Criterion], ...],
) -> tuple[tuple[float, InformationCriterion], ...] | None:
    """The terms as criteria of the information alone; None where one of them is not."""
    found = [(weight, criterion.as_information()) for weight, criterion in terms]
    kept = tuple((weight, criterion) for weight, criterion in found if criterion is not None)
    return kept if len(kept) == len(found) else None
