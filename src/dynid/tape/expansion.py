"""Multiply out a tape (a recorded program): every output as a polynomial in atoms.

An atom is an element of an input, or a function, such as the sine, of a polynomial in earlier atoms. `dynid.export`
writes a robot's equations as formulas from this form. `expand_tape` makes an `Expansion`.

Polynomials are kept in a normal form in which ``sin^2`` is replaced by ``1 - cos^2``, so that equal expressions look
the same. A monomial is one integer that holds the powers of all atoms, eight bits each, the first atom in the lowest
bits: the product of two monomials is the sum of their integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.spatial import EXACT, ROUNDING
from dynid.tape.operations import BINARY, Operation
from dynid.tape.tape import Tape

BITS = 8
"""Bits per power in a monomial; no recorded product comes near a power of 256."""
MOST_TERMS = 400_000
"""Largest number of monomials in all polynomials together (convention: some hundred megabytes)."""

Expanded = dict[int, float]
"""A polynomial: monomial -> coefficient."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A variable of the polynomials: an element of an input, or a function of a polynomial."""

    name: str
    """Name of the input, or of the function: ``sin``, ``cos``, ``sign``, ``tanh``, ``exp``, ``abs`` or ``sqrt``."""
    index: int = -1
    """Element of the input, counted row by row; -1 for a function."""
    argument: tuple[tuple[int, float], ...] = ()
    """Argument of a function: (monomial, coefficient) of a polynomial in earlier atoms."""


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """All outputs of a tape, multiplied out."""

    atoms: tuple[Atom, ...]
    """A function stands behind the atoms of its argument."""
    outputs: Mapping[str, NDArray[np.object_]]
    """Each output in its own shape, with an `Expanded` polynomial as every element."""

    @property
    def terms(self) -> int:
        """Number of monomials of all outputs."""
        return sum(len(element) for output in self.outputs.values() for element in output.ravel())

    def mix(self, name: str, matrix: Floats) -> Expansion:
        """The same expansion with one output (..., k) replaced by its product with a matrix (k, m)."""
        old = self.outputs[name]
        new = np.empty((*old.shape[:-1], matrix.shape[1]), dtype=object)
        for place in np.ndindex(new.shape):
            total: Expanded = {}
            for polynomial, factor in zip(old[place[:-1]], matrix[:, place[-1]].tolist(), strict=True):
                scaled = {monomial: factor * value for monomial, value in polynomial.items() if factor}
                total = _sum(total, scaled, is_difference=False)
            new[place] = _tidy(total)
        return Expansion(self.atoms, {**self.outputs, name: new})

    def powers(self, monomial: int) -> tuple[tuple[int, int], ...]:
        """Atoms, by their place in `atoms`, and their powers in a monomial."""
        return tuple(_powers(monomial))


def expand_tape(tape: Tape, *, most_terms: int = MOST_TERMS) -> Expansion:
    """Multiply out all outputs of a tape.

    Args:
        tape: The program; quotients by anything but a constant are refused.
        most_terms: Largest number of monomials; more of them are an error.

    Raises:
        ArgumentError: The program divides by something that is not constant, or has too many terms.
    """
    ring = _Ring(most_terms)
    # the polynomial of every value of the tape: first of the input elements, then of the result of every step
    values: list[Expanded] = [ring.symbol(Atom(i.name, k)) for i in tape.inputs for k in range(i.size)]
    constants = tape.constants.tolist()

    def read(operand: int) -> Expanded:
        if operand >= 0:
            return values[operand]
        return {0: constants[~operand]} if constants[~operand] else {}  # 0 is the monomial without atoms

    for _, code, left, right in tape.steps():
        operation = Operation(code)
        if operation in BINARY:
            values.append(ring.combine(operation, read(left), read(right)))
        elif operation is Operation.NEG:
            values.append({monomial: -value for monomial, value in read(left).items()})
        else:
            values.append(ring.function(operation, read(left)))
    outputs = {}
    for output in tape.outputs:
        elements = np.empty(output.shape, dtype=object)
        for place, operand in np.ndenumerate(output.elements):
            elements[place] = _tidy(read(int(operand)))
        outputs[output.name] = elements
    return Expansion(tuple(ring.atoms), outputs)


@dataclass(slots=True)
class _Ring:
    """Computes sums, products and functions of polynomials; its list of atoms grows on the way."""

    most_terms: int
    """Largest number of monomials that all sums and products may have together."""
    atoms: list[Atom] = field(default_factory=list)
    """The atoms so far."""
    places: dict[Atom, int] = field(default_factory=dict)
    """Atom -> its place in `atoms`."""
    squared_sines: int = 0
    """Bit mask: a monomial has one of these bits where a sine has power two (binary 10 in its eight bits)."""
    cosines: dict[int, int] = field(default_factory=dict)
    """Place of a sine -> place of the cosine of the same argument."""
    terms: int = 0
    """Number of monomials of all sums and products so far."""

    def symbol(self, atom: Atom) -> Expanded:
        """The polynomial that is one atom."""
        if atom not in self.places:
            self.places[atom] = len(self.atoms)
            self.atoms.append(atom)
        return {1 << (BITS * self.places[atom]): 1.0}

    def function(self, operation: Operation, argument: Expanded) -> Expanded:
        """The polynomial that is one atom, a function of a polynomial.

        Sines and cosines are made in pairs, because ``sin^2`` is replaced by ``1 - cos^2``.
        """
        key = tuple(sorted(_tidy(argument).items()))
        if operation not in (Operation.SIN, Operation.COS):
            return self.symbol(Atom(operation.name.lower(), argument=key))
        sine, cosine = (self.symbol(Atom(name, argument=key)) for name in ("sin", "cos"))
        place = self.places[Atom("sin", argument=key)]
        self.cosines[place] = self.places[Atom("cos", argument=key)]
        self.squared_sines |= 2 << (BITS * place)
        return sine if operation is Operation.SIN else cosine

    def combine(self, operation: Operation, a: Expanded, b: Expanded) -> Expanded:
        """Sum, difference, product, or quotient by a constant."""
        if operation is Operation.DIV:
            if set(b) != {0}:
                raise ArgumentError("the program divides by something that is not constant")
            return {monomial: value / b[0] for monomial, value in a.items()}
        if operation is Operation.MUL:
            result = self._product(a, b)
        else:
            result = _sum(a, b, is_difference=operation is Operation.SUB)
        self.terms += len(result)
        if self.terms > self.most_terms:
            raise ArgumentError(
                f"the expressions have more than {self.most_terms} terms when they are multiplied out",
                remedy="Generate code instead: dynid.generate_c keeps the factors.",
            )
        return result

    def _product(self, a: Expanded, b: Expanded) -> Expanded:
        """Product of two polynomials, in normal form."""
        result: Expanded = {}
        for left, x in a.items():
            for right, y in b.items():
                monomial = left + right
                value = x * y
                if monomial & self.squared_sines:
                    for part, sign in self._without_squares(monomial):
                        result[part] = result.get(part, 0.0) + sign * value
                else:
                    result[monomial] = result.get(monomial, 0.0) + value
        return {monomial: value for monomial, value in result.items() if value}

    def _without_squares(self, monomial: int) -> list[tuple[int, float]]:
        """The monomials and signs that a monomial becomes by ``sin^2 = 1 - cos^2`` for every sine of power two.

        Higher powers of a sine do not occur: both factors of a product are in normal form.
        """
        parts = [(monomial, 1.0)]
        for sine, cosine in self.cosines.items():
            square = 2 << (BITS * sine)  # the monomial sin^2
            if monomial & square:
                double = 2 << (BITS * cosine)  # the monomial cos^2
                # every part m sin^2 becomes m and -m cos^2
                parts = [new for m, sign in parts for new in ((m - square, sign), (m - square + double, -sign))]
        return parts


def _sum(a: Expanded, b: Expanded, *, is_difference: bool) -> Expanded:
    """Sum or difference of two polynomials, without monomials that cancel."""
    result = dict(a)
    sign = -1.0 if is_difference else 1.0
    for monomial, value in b.items():
        total = result.get(monomial, 0.0) + sign * value
        if total:
            result[monomial] = total
        else:
            result.pop(monomial, None)
    return result


def _tidy(polynomial: Expanded) -> Expanded:
    """The polynomial without monomials that rounding left, and with coefficients rounded to exact quarters."""
    largest = max((abs(value) for value in polynomial.values()), default=0.0)
    kept = {monomial: value for monomial, value in polynomial.items() if abs(value) > ROUNDING * largest}
    return {monomial: _exact(value) for monomial, value in kept.items()}


def _exact(value: float) -> float:
    """A coefficient that is a multiple of a quarter but for rounding as that multiple; any other unchanged."""
    quarter = round(4.0 * value) / 4.0
    return quarter if quarter and abs(value - quarter) <= EXACT * abs(value) else value


def _powers(monomial: int) -> Iterator[tuple[int, int]]:
    """Place and power of every atom in a monomial."""
    place = 0
    while monomial:
        if power := monomial & ((1 << BITS) - 1):
            yield place, power
        place += 1
        monomial >>= BITS
