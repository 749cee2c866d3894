"""Polynomials of an expanded tape as text, LaTeX and Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dynid.tape.expansion import Atom, Expansion

READ_DIGITS = 6
"""Digits of a coefficient in text and LaTeX, which people read; convention."""
_ORDER = ("ddq", "dq", "q", "sin", "cos")
"""Factors of a product are written in this order, then other functions: the order of [Atkeson1986] appendix I."""


@dataclass(frozen=True, slots=True)
class Language:
    """How products, powers, elements and functions are written."""

    name: str
    element: str
    """Element of an input, with {name}, {index} from 0 and {number} from 1."""
    power: str
    """Power of a factor, with {x} and {n}."""
    times: str = "*"
    """What stands between two factors."""
    digits: int | None = None
    """Digits of a number; None for as many as the number needs."""

    def call(self, function: str, argument: str) -> str:
        """A function of an argument."""
        if self.name == "latex":
            return f"\\{function}\\left({argument}\\right)"
        if self.name == "python" and function == "sign":
            return f"(1.0 if ({argument}) > 0.0 else -1.0 if ({argument}) < 0.0 else 0.0)"
        return (
            f"math.{function}({argument})" if self.name == "python" and function != "abs" else f"{function}({argument})"
        )

    def raise_power(self, factor: str, power: int) -> str:
        """A factor to a power of at least one."""
        return factor if power == 1 else self.power.format(x=factor, n=power)

    def number(self, value: float) -> str:
        """A number that is not negative."""
        text = repr(value).removesuffix(".0") if self.digits is None else f"{value:.{self.digits}g}"
        if self.name == "latex" and "e" in text:
            mantissa, exponent = text.split("e")
            return f"{mantissa} \\cdot 10^{{{int(exponent)}}}"
        return text


TEXT = Language("text", "{name}{number}", "{x}^{n}", digits=READ_DIGITS)
LATEX = Language("latex", "{name}_{{{number}}}", "{x}^{{{n}}}", times=" ", digits=READ_DIGITS)
PYTHON = Language("python", "{name}[{index}]", "{x}**{n}")
_LATEX_INPUTS = {"q": "q", "dq": "\\dot{q}", "ddq": "\\ddot{q}"}


class PolynomialPrinter:
    """Writes the polynomials of an expansion in one language."""

    def __init__(self, expansion: Expansion, language: Language) -> None:
        """Find a text for every atom.

        Args:
            expansion: The polynomials' atoms.
            language: How they are written.
        """
        self.expansion, self.language = expansion, language
        self.factors = [self._factor(place, atom) for place, atom in enumerate(expansion.atoms)]
        self._rank = [self._place_in_product(place, atom) for place, atom in enumerate(expansion.atoms)]

    def polynomial(self, polynomial: Mapping[int, float]) -> str:
        """A sum of products; "0" for an empty one."""
        products = sorted((self._product(monomial), value) for monomial, value in polynomial.items())
        text = ""
        for (_, product), value in products:
            size = abs(value)
            parts = [self.language.number(size)] * (size != 1.0 or not product) + [product] * bool(product)
            sign = ("-" if value < 0.0 else "") if not text else (" - " if value < 0.0 else " + ")
            text += sign + self.language.times.join(parts)
        return text or "0"

    def definitions(self, polynomials: list[Mapping[int, float]]) -> list[tuple[str, str]]:
        """Short names and values of the functions that the polynomials need, in the order in which they need them."""
        needed = {place for polynomial in polynomials for monomial in polynomial for place in self._places(monomial)}
        for place in reversed(range(len(self.factors))):
            if place in needed:
                needed |= {
                    inner for monomial, _ in self.expansion.atoms[place].argument for inner in self._places(monomial)
                }
        return [
            (self.factors[place], self.language.call(atom.name, self.polynomial(dict(atom.argument))))
            for place, atom in enumerate(self.expansion.atoms)
            if place in needed and atom.index < 0
        ]

    def _places(self, monomial: int) -> list[int]:
        return [place for place, _ in self.expansion.powers(monomial)]

    def _product(self, monomial: int) -> tuple[list[tuple[tuple[int, int], int]], str]:
        """What products are sorted by, and the product without its coefficient."""
        powers = sorted(self.expansion.powers(monomial), key=lambda item: self._rank[item[0]])
        key = [(self._rank[place], -power) for place, power in powers]
        return key, self.language.times.join(self.language.raise_power(self.factors[p], n) for p, n in powers)

    def _place_in_product(self, place: int, atom: Atom) -> tuple[int, int]:
        rank = _ORDER.index(atom.name) if atom.name in _ORDER else len(_ORDER)
        return rank, atom.index if atom.index >= 0 else place

    def _factor(self, place: int, atom: Atom) -> str:
        """An input's element; s2 and c2 for sine and cosine of q2; f7 for another function."""
        if atom.index >= 0:
            name = _LATEX_INPUTS.get(atom.name, atom.name) if self.language is LATEX else atom.name
            return self.language.element.format(name=name, index=atom.index, number=atom.index + 1)
        joint = self._joint_of(atom)
        short, number = (atom.name[0], joint + 1) if joint is not None else ("f", place)
        return f"{short}_{{{number}}}" if self.language is LATEX else f"{short}{number}"

    def _joint_of(self, atom: Atom) -> int | None:
        """Index of the joint whose position alone is the argument of a sine or cosine; None for other functions."""
        if atom.name not in ("sin", "cos") or len(atom.argument) != 1 or atom.argument[0][1] != 1.0:
            return None
        powers = self.expansion.powers(atom.argument[0][0])
        inner = self.expansion.atoms[powers[0][0]] if len(powers) == 1 and powers[0][1] == 1 else None
        return inner.index if inner is not None and inner.name == "q" else None
