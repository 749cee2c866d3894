"""Formulas of base parameters, such as ``ZZR1 = ZZ1 + YY2 + (D3^2 + R3^2)*M3``.

A base parameter is a linear combination of the standard inertial parameters, and its coefficients are polynomials in
the lengths and angles of a modified DH table (`Polynomial`, `Combination`). `closed_form`, `minimal_combinations` and
`regrouping` compute with these polynomials; `base_set` and the export of formulas print them. `dh_symbols` gives the
symbols of a DH table: ``D3 R3`` for its lengths [m], ``CA3 SA3 CT3 ST3`` for cosine and sine of alpha and theta.

Polynomials have a normal form, so that equal ones compare equal: ``SA^2`` is written ``1 - CA^2``, and terms that
cancel vanish.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dynid.robot.formats.dh import DH
from dynid.spatial import EXACT, ROUNDING

Monomial = tuple[tuple[str, int], ...]
"""A product of symbols: (symbol, power) each, in alphabetical order; empty for the number one."""

_DENOMINATOR = 12
"""Largest denominator of a coefficient that is written as a fraction (convention)."""


def _cosine_of(sine: str) -> str | None:
    """The cosine's symbol if this is a sine (SA3 -> CA3, ST3 -> CT3)."""
    return "C" + sine[1:] if sine[:2] in ("SA", "ST") else None


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A polynomial in named quantities with float coefficients; the default is zero, which is false in a condition."""

    terms: tuple[tuple[Monomial, float], ...] = ()
    """Monomials with their factors, in a fixed order; none of the factors is zero."""

    @classmethod
    def constant(cls, value: float) -> Self:
        """A number."""
        return cls._normalised({(): float(value)})

    @classmethod
    def symbol(cls, name: str) -> Self:
        """A single symbol."""
        return cls._normalised({((name, 1),): 1.0})

    @classmethod
    def _normalised(cls, terms: Mapping[Monomial, float]) -> Self:
        """Sort terms by falling degree, then by name, and drop those whose factor is zero within rounding."""
        kept = {monomial: value for monomial, value in terms.items() if abs(value) > ROUNDING}
        if len(kept) < 2:
            return cls(tuple(kept.items()))
        # monomials of the highest degree, the sum of the powers, come first
        return cls(tuple(sorted(kept.items(), key=lambda item: (-sum(power for _, power in item[0]), item[0]))))

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __add__(self, other: Polynomial | float) -> Polynomial:
        total = dict(self.terms)
        for monomial, value in _as_polynomial(other).terms:
            total[monomial] = total.get(monomial, 0.0) + value
        return Polynomial._normalised(total)

    __radd__ = __add__

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple((monomial, -value) for monomial, value in self.terms))

    def __sub__(self, other: Polynomial | float) -> Polynomial:
        return self + -_as_polynomial(other)

    def __rsub__(self, other: Polynomial | float) -> Polynomial:
        return _as_polynomial(other) - self

    def __mul__(self, other: Polynomial | float) -> Polynomial:
        if not isinstance(other, Polynomial):
            scaled = tuple((monomial, value * other) for monomial, value in self.terms)
            return Polynomial(scaled if other else ())
        if other.terms == ONE.terms:  # a frequent case, worth the shortcut
            return self
        total: dict[Monomial, float] = {}
        for a, x in self.terms:
            for b, y in other.terms:
                for monomial, value in _replace_squared_sines(_product(a, b), x * y):
                    total[monomial] = total.get(monomial, 0.0) + value
        return Polynomial._normalised(total)

    __rmul__ = __mul__

    def value(self, symbols: Mapping[str, float]) -> float:
        """The number that the polynomial is when its symbols have these values."""
        total = 0.0
        for monomial, factor in self.terms:
            for name, power in monomial:
                factor *= symbols[name] ** power
            total += factor
        return total

    def rounded(self, tolerance: float) -> Polynomial:
        """Replace factors that are within ``tolerance`` of a multiple of one half by that multiple."""
        halves = {monomial: round(2.0 * value) / 2.0 for monomial, value in self.terms}
        near = {m: halves[m] if abs(value - halves[m]) <= tolerance else value for m, value in self.terms}
        return Polynomial._normalised(near)

    @property
    def symbols(self) -> set[str]:
        """Names of the symbols that occur."""
        return {name for monomial, _ in self.terms for name, _ in monomial}

    @property
    def is_negative(self) -> bool:
        """Whether every term is negative, so that the sign can be put in front."""
        return bool(self.terms) and all(value < 0.0 for _, value in self.terms)

    def __str__(self) -> str:
        """As a sum: ``D3^2 + R3^2``."""
        positive_first = sorted(self.terms, key=lambda term: term[1] < 0.0)
        return _signed_sum([(value, _monomial_text(m, abs(value))) for m, value in positive_first]) or "0"


ONE = Polynomial.constant(1.0)
"""The factor of a parameter that stands alone."""


def _as_polynomial(value: Polynomial | float) -> Polynomial:
    return value if isinstance(value, Polynomial) else Polynomial.constant(value)


def _product(a: Monomial, b: Monomial) -> Monomial:
    """The product of two monomials, with its symbols in alphabetical order."""
    powers = dict(a)
    for name, power in b:
        powers[name] = powers.get(name, 0) + power
    return tuple(sorted(powers.items()))


def _replace_squared_sines(monomial: Monomial, value: float) -> list[tuple[Monomial, float]]:
    """``value * monomial`` as terms without squared sines: each is replaced by one minus the squared cosine."""
    for name, power in monomial:
        cosine = _cosine_of(name)
        if power >= 2 and cosine is not None:
            # the monomial divided by the squared sine
            rest = tuple((n, p - 2 if n == name else p) for n, p in monomial if n != name or p > 2)
            return _replace_squared_sines(rest, value) + _replace_squared_sines(_product(rest, ((cosine, 2),)), -value)
    return [(monomial, value)]


def _monomial_text(monomial: Monomial, size: float) -> str:
    """A monomial times a positive factor as text: ``3/2*D3^2``; the factor 1 is left out."""
    factors = [name if power == 1 else f"{name}^{power}" for name, power in monomial]
    fraction = Fraction(size).limit_denominator(_DENOMINATOR)
    number = str(fraction) if abs(float(fraction) - size) <= EXACT * size else f"{size:.6g}"
    return "*".join([number] * (size != 1.0 or not factors) + factors)


def _signed_sum(parts: Iterable[tuple[float, str]]) -> str:
    """Texts joined by plus and minus signs: (-1, "M3"), (1, "M4") give ``-M3 + M4``.

    Args:
        parts: A number and a text each; only the sign of the number is used.
    """
    text = ""
    for sign, part in parts:
        text += (" - " if sign < 0 else " + ") + part if text else ("-" if sign < 0 else "") + part
    return text


@dataclass(frozen=True, slots=True)
class Summand:
    """A standard parameter with its coefficient."""

    coefficient: Polynomial
    parameter: str
    """Its name, such as ``MX3``."""


@dataclass(frozen=True, slots=True)
class Combination:
    """A base parameter as a linear combination of standard ones; the one that names it comes first."""

    name: str
    terms: tuple[Summand, ...]

    @property
    def is_regrouped(self) -> bool:
        """Whether more than one standard parameter takes part."""
        return len(self.terms) > 1

    def right_side(self) -> str:
        """``ZZ1 + YY2 + 2*R3*MZ3 + (D3^2 + R3^2)*(M3 + M4)``: terms with the same coefficient are put together."""
        groups: dict[Polynomial, list[tuple[float, str]]] = {}  # coefficient -> sign and name of its parameters
        for term in self.terms:
            coefficient, sign = (-term.coefficient, -1.0) if term.coefficient.is_negative else (term.coefficient, 1.0)
            if -coefficient in groups:  # the same coefficient up to its sign
                coefficient, sign = -coefficient, -sign
            groups.setdefault(coefficient, []).append((sign, term.parameter))
        parts: list[tuple[float, str]] = []
        for coefficient, members in groups.items():
            if coefficient == ONE:
                parts.extend(members)
            else:
                parts.append(_product_text(coefficient, members))
        return _signed_sum(parts)

    def __str__(self) -> str:
        """``ZZR1 = ZZ1 + YY2 + ...``, or the bare name of a parameter that stands alone."""
        right = self.right_side()
        return self.name if right == self.name else f"{self.name} = {right}"


def _product_text(coefficient: Polynomial, members: list[tuple[float, str]]) -> tuple[float, str]:
    """Text of a coefficient times a sum of parameters, after the sign of the first parameter, which goes in front.

    Args:
        coefficient: The common coefficient.
        members: Sign and name of each parameter.
    """
    lead = members[0][0]
    inner = _signed_sum([(sign * lead, text) for sign, text in members])
    factor = str(coefficient)
    if len(coefficient.terms) > 1:
        factor = f"({factor})"
    return lead, f"{factor}*({inner})" if len(members) > 1 else f"{factor}*{inner}"


class DHSymbols(NamedTuple):
    """One row of a modified DH table as polynomials: numbers where they are 0 or 1, symbols otherwise."""

    sigma: int
    """0 for a revolute joint, 1 for a prismatic one."""
    d: Polynomial
    """Distance from axis j - 1 to axis j along x of frame j - 1 [m]."""
    T_previous_joint: NDArray[np.object_]
    """(4, 4) pose of frame j in frame j - 1 at joint position zero ([GautierKhalil1990] eq. (A7)).

    There a revolute joint has theta = 0, and a prismatic joint r = 0: offsets of joint positions have no effect on base
    parameters.
    """


def dh_symbols(rows: Sequence[DH]) -> tuple[list[DHSymbols], dict[str, float]]:
    """The rows of a DH table in symbols, and the values of the symbols ``D3 R3 CA3 SA3 CT3 ST3`` that occur.

    Lengths of 0, and cosines and sines of 0, 1 or -1, become numbers instead of symbols.
    """
    table, values = [], dict[str, float]()

    def symbol_for(name: str, value: float) -> Polynomial:
        """The symbol of that name (its value is noted), or a number."""
        exact = round(value)
        if abs(value - exact) < EXACT and (exact == 0 or (exact in (-1, 1) and name[0] in "CS")):
            return Polynomial.constant(exact)
        values[name] = value
        return Polynomial.symbol(name)

    for j, row in enumerate(rows, start=1):
        d, r = symbol_for(f"D{j}", row.d), Polynomial() if row.sigma else symbol_for(f"R{j}", row.r)
        ca, sa = symbol_for(f"CA{j}", float(np.cos(row.alpha))), symbol_for(f"SA{j}", float(np.sin(row.alpha)))
        angle = row.theta if row.sigma else 0.0  # theta of a revolute joint is its position, here zero
        ct, st = symbol_for(f"CT{j}", float(np.cos(angle))), symbol_for(f"ST{j}", float(np.sin(angle)))
        T = [[ct, -st, 0, d], [ca * st, ca * ct, -sa, -r * sa], [sa * st, sa * ct, ca, r * ca], [0, 0, 0, 1]]
        table.append(DHSymbols(row.sigma, d, np.array(T, dtype=object)))
    return table, values
