"""Recognise numbers as short expressions in geometric constants, so that numerical groupings can be read.

A coefficient such as 0.2094 is shown as ``D3^2 + D4^2 + R3^2`` when that is its value to nine digits. Only short
expressions are tried; a number that is none of them stays a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement, product

import numpy as np

from dynid.arrays import Floats
from dynid.parameters.expression import Combination, Polynomial, Term
from dynid.parameters.layout import Parameter, ParameterLayout

Product = tuple[str, ...]
"""Symbols multiplied together."""

_LENGTHS = {"inertia": 2, "first moment": 1, "mass": 0}
"""Kind of parameter -> power of length in its unit."""
_FACTORS = (1.0, -1.0, 2.0, -2.0)
"""Factors of products of lengths that occur when inertias are moved to another frame."""
_HALF = 1e-10
"""Distance of twice a number without unit from a whole number that is rounding (convention)."""
_RELATIVE, _ABSOLUTE = 1e-9, 1e-12
"""Relative and absolute difference within which an expression has a number's value (convention: nine digits)."""
_MOST_ANGLES, _MOST_PRODUCTS, _MOST_SQUARES = 8, 4000, 6
"""Cosines and sines beyond which products of two are not tried; most products; most squares in a signed sum
(convention: they bound the time of a search)."""
_MANY = 150
"""With more candidates than this, a sum of two would be found by accident, and slowly (convention)."""


class _Candidates:
    """Products of ``degree`` lengths with at most two cosines or sines."""

    def __init__(self, degree: int, geometry: Mapping[str, float]) -> None:
        lengths = [name for name in geometry if name[0] in "DRP"]
        angles = [name for name in geometry if name[0] in "CS"]
        powers = list(combinations_with_replacement(lengths, degree)) if degree >= 0 else []
        turns: list[Product] = [()]
        turns += [(a,) for a in angles]
        turns += combinations_with_replacement(angles, 2) if len(angles) <= _MOST_ANGLES else []
        self.products: list[Product] = [power + turn for turn in turns for power in powers][:_MOST_PRODUCTS]
        self.sizes = np.array([math.prod(geometry[name] for name in names) for names in self.products])
        self.weighted = np.concatenate([factor * self.sizes for factor in _FACTORS])
        self.order = np.argsort(self.weighted, kind="stable")
        self.squares = [k for k, names in enumerate(self.products) if degree == 2 and names == names[:1] * 2][
            :_MOST_SQUARES
        ]
        # few terms first; of equally many, those nearest to the base
        patterns = product((1.0, -1.0, 0.0), repeat=len(self.squares))
        signs = sorted(patterns, key=lambda s: (sum(map(abs, s)), [x == 0.0 for x in s]))
        self.signs = np.array(signs).reshape(len(signs), len(self.squares))


class Recogniser:
    """Finds expressions in given geometric symbols, and remembers those it found."""

    def __init__(self, geometry: Mapping[str, float]) -> None:
        self._geometry = geometry
        self._candidates: dict[tuple[int, int, int], _Candidates] = {}
        self._known: dict[tuple[float, int, int, int], Polynomial] = {}

    def __call__(self, value: float, degree: int, after: int, last: int) -> Polynomial:
        """The number as a polynomial of that degree in lengths of the joints beyond ``after`` up to ``last``."""
        key = (round(value, 12), degree, after, last)
        if key not in self._known:
            self._known[key] = self._search(value, degree, after, last)
        return self._known[key]

    def _search(self, value: float, degree: int, after: int, last: int) -> Polynomial:
        if degree == 0 and abs(2.0 * value - round(2.0 * value)) < _HALF:
            return Polynomial.constant(round(2.0 * value) / 2.0)
        if (degree, after, last) not in self._candidates:
            near = {n: v for n, v in self._geometry.items() if after < int(n.lstrip("PXYZDRCSAT")) <= last}
            self._candidates[degree, after, last] = _Candidates(degree, near)
        found = _match(self._candidates[degree, after, last], value, _RELATIVE * abs(value) + _ABSOLUTE)
        return Polynomial.constant(value) if found is None else found


def _match(candidates: _Candidates, value: float, tolerance: float) -> Polynomial | None:
    """One candidate, a signed sum of squares, or a sum of two candidates, each once or twice; None if several fit."""
    sizes, products = candidates.sizes, candidates.products
    single = [
        (factor, products[k])
        for factor in _FACTORS
        for k in np.flatnonzero(np.abs(factor * sizes - value) <= tolerance).tolist()
    ]
    if single:  # where several fit (0.1 is a length, and twice 0.05), nobody can tell which is meant
        return _build_polynomial(single) if len(single) == 1 else None
    sums = candidates.signs @ sizes[candidates.squares] if candidates.squares else np.zeros(0)
    hits = np.flatnonzero(np.abs(sums - value) <= tolerance)
    if len(hits):
        counts = np.abs(candidates.signs[hits]).sum(axis=1)
        if np.count_nonzero(counts == counts[0]) > 1:
            return None
        signs = candidates.signs[int(hits[0])].tolist()
        return _build_polynomial([(sign, products[k]) for sign, k in zip(signs, candidates.squares, strict=True)])
    return _match_pair(candidates, value, tolerance) if 0 < len(products) <= _MANY else None


def _match_pair(candidates: _Candidates, value: float, tolerance: float) -> Polynomial | None:
    weighted, order = candidates.weighted, candidates.order
    ascending = weighted[order]
    rest = value - weighted
    place = np.minimum(np.searchsorted(ascending, rest - tolerance), len(ascending) - 1)
    hits = np.flatnonzero(np.abs(ascending[place] - rest) <= tolerance)
    if len(hits) == 0:
        return None
    count = len(candidates.products)
    pairs = {tuple(sorted((int(hit), int(order[place[hit]])))) for hit in hits.tolist()}
    if len({frozenset(k % count for k in pair) for pair in pairs}) > 1:
        return None
    return _build_polynomial([(_FACTORS[k // count], candidates.products[k % count]) for k in min(pairs)])


def _build_polynomial(terms: Sequence[tuple[float, Product]]) -> Polynomial:
    total = Polynomial()
    for factor, names in terms:
        term = Polynomial.constant(factor)
        for name in names:
            term = term * Polynomial.symbol(name)
        total = total + term
    return total


def readable_combinations(
    layout: ParameterLayout, columns: Sequence[int], grouping: Floats, geometry: Mapping[str, float]
) -> tuple[Combination, ...]:
    """Every base parameter as a combination whose coefficients are recognised where they can be.

    Args:
        layout: The parameters.
        columns: (b,) kept columns.
        grouping: (b, p) numerical coefficients.
        geometry: Values of the geometric symbols.
    """
    recognise = Recogniser(geometry)
    found = []
    for column, row in zip(columns, grouping, strict=True):
        kept = layout[column]
        others = [layout[k] for k in np.flatnonzero(row).tolist() if k != column]
        terms = [Term(Polynomial.constant(1.0), kept.name)]
        for other in others:
            coefficient = recognise(float(row[layout.index(other.name)]), *_degree_and_range(kept, other))
            terms.append(Term(coefficient, other.name))
        found.append(Combination(kept.regrouped_name if others else kept.name, tuple(terms)))
    return tuple(found)


def _degree_and_range(kept: Parameter, dropped: Parameter) -> tuple[int, int, int]:
    """Power of length in the coefficient, and the joints (after, up to) whose geometry may stand in it."""
    degree = _LENGTHS.get(kept.kind, 0) - _LENGTHS.get(dropped.kind, 0)
    return degree, min(kept.number, dropped.number), max(kept.number, dropped.number)
