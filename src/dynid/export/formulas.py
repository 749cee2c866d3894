"""Joint torques and coefficients of a robot as formulas in text, LaTeX and Python.

Regressor, inertia matrix, gravity torques and Christoffel coefficients are recorded as a *tape*, the straight-line list
of their operations on symbols, and the tape is multiplied out (`expand_tape`) into polynomials: sums of products of
*atoms*, an atom being an element of an input, such as q2, or a function of a polynomial, such as sin(q2). A *monomial*
is a product of powers of atoms, coded as one integer; a polynomial is a dictionary, monomial -> coefficient. An atom's
*place* is its index in `Expansion.atoms`. `Language` says how factors are written, `PolynomialPrinter` writes
polynomials, `torque_expressions` and `coefficient_expressions` make the formulas of a robot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.compiled import record_quantity
from dynid.dynamics.christoffel import christoffel_coefficients
from dynid.dynamics.inertia_matrix import composite_inertia_matrix, gravity_torque
from dynid.errors import ArgumentError
from dynid.identifiability.base import base_parameters, choose_base
from dynid.identifiability.base_set import BaseParameters
from dynid.robot.model import Robot, require_robot
from dynid.safe_text import c_comment
from dynid.tape import record
from dynid.tape.expansion import Atom, Expansion, expand_tape

_FACTOR_ORDER = ("ddq", "dq", "q", "sin", "cos")
"""Factors of a product are written in this order, then other functions: the order of [Atkeson1986] appendix I."""


@dataclass(frozen=True, slots=True)
class Language:
    """How products, powers, elements, functions and numbers are written; braces stand for parts, as in `str.format`."""

    name: str
    """Name of the language, such as "latex"."""
    element: str
    """An element of an input: {name}, {index} counted from 0, {number} counted from 1."""
    power: str
    """A power: {x} is the factor, {n} the exponent."""
    times: str = "*"
    """What stands between two factors."""
    digits: int | None = None
    """Digits of a number; None for as many as the number needs."""

    def call(self, function: str, argument: str) -> str:
        """Write a function of an argument."""
        if self.name == "latex":
            return f"\\{function}\\left({argument}\\right)"
        if self.name == "python" and function == "sign":
            return f"(1.0 if ({argument}) > 0.0 else -1.0 if ({argument}) < 0.0 else 0.0)"
        return (
            f"math.{function}({argument})" if self.name == "python" and function != "abs" else f"{function}({argument})"
        )

    def raise_power(self, factor: str, power: int) -> str:
        """Write a factor to a power of at least one."""
        return factor if power == 1 else self.power.format(x=factor, n=power)

    def number(self, value: float) -> str:
        """Write a number that is not negative."""
        text = repr(value).removesuffix(".0") if self.digits is None else f"{value:.{self.digits}g}"
        if self.name == "latex" and "e" in text:
            mantissa, exponent = text.split("e")
            return f"{mantissa} \\cdot 10^{{{int(exponent)}}}"
        return text


TEXT = Language("text", "{name}{number}", "{x}^{n}", digits=6)
LATEX = Language("latex", "{name}_{{{number}}}", "{x}^{{{n}}}", times=" ", digits=6)
FORMULA = Language("formula", "{name}{number}", "{x}**{n}", digits=12)
PYTHON = Language("python", "{name}[{index}]", "{x}**{n}")
"""The languages: for people, LaTeX, formulas that other programs read, and Python code with all digits."""
_LATEX_INPUTS = {"q": "q", "dq": "\\dot{q}", "ddq": "\\ddot{q}"}
"""Input -> how LaTeX writes it."""


class PolynomialPrinter:
    """Writes the polynomials of an expansion in one language."""

    def __init__(
        self, expansion: Expansion, language: Language, names: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Prepare the text of every atom, and its rank in a product.

        Args:
            expansion: The expanded tape that the polynomials belong to.
            language: How they are written.
            names: Name of an input -> names of its elements, for inputs whose elements are not called by number.
        """
        self.expansion = expansion
        self.language = language
        self._names = names or {}
        self.factors = [self._factor(place, atom) for place, atom in enumerate(expansion.atoms)]
        self._rank = [self._place_in_product(place, atom) for place, atom in enumerate(expansion.atoms)]

    def polynomial(self, polynomial: Mapping[int, float]) -> str:
        """Write a polynomial, monomial -> coefficient, as a sum of products; "0" for an empty one."""
        products = sorted((self._product(monomial), value) for monomial, value in polynomial.items())
        text = ""
        for (_, product), value in products:
            size = abs(value)
            number = "" if size == 1.0 and product else self.language.number(size)  # "1*x" is written "x"
            sign = ("-" if value < 0.0 else "") if not text else (" - " if value < 0.0 else " + ")
            text += sign + self.language.times.join(filter(None, (number, product)))
        return text or "0"

    def definitions(self, polynomials: list[Mapping[int, float]]) -> list[tuple[str, str]]:
        """List (short name, value) of the functions in polynomials, such as s2 = sin(q2), each after those it needs."""
        needed = {place for polynomial in polynomials for monomial in polynomial for place in self._places(monomial)}
        # atoms are in order of need: an argument has only earlier ones
        for place in reversed(range(len(self.factors))):
            if place in needed:
                needed |= {
                    inner for monomial, _ in self.expansion.atoms[place].argument for inner in self._places(monomial)
                }
        return [
            (self.factors[place], self.language.call(atom.name, self.polynomial(dict(atom.argument))))
            for place, atom in enumerate(self.expansion.atoms)
            if place in needed and atom.index < 0  # a function; elements of inputs have an index
        ]

    def _places(self, monomial: int) -> list[int]:
        """List the indices of the atoms of a monomial."""
        return [place for place, _ in self.expansion.powers(monomial)]

    def _product(self, monomial: int) -> tuple[list[tuple[tuple[int, int], int]], str]:
        """Write a monomial; returns the key by which products are sorted, and the text."""
        powers = sorted(self.expansion.powers(monomial), key=lambda item: self._rank[item[0]])
        key = [(self._rank[place], -power) for place, power in powers]
        return key, self.language.times.join(self.language.raise_power(self.factors[p], n) for p, n in powers)

    def _place_in_product(self, place: int, atom: Atom) -> tuple[int, int]:
        """Make the key by which factors are sorted: order of the names (`_FACTOR_ORDER`), then joint or place."""
        rank = _FACTOR_ORDER.index(atom.name) if atom.name in _FACTOR_ORDER else len(_FACTOR_ORDER)
        return rank, atom.index if atom.index >= 0 else place

    def _factor(self, place: int, atom: Atom) -> str:
        """Write an atom: an element of an input; s2 and c2 for sine and cosine of q2; f7 for another function."""
        if atom.name in self._names:
            return self._names[atom.name][atom.index]
        if atom.index >= 0:
            name = _LATEX_INPUTS.get(atom.name, atom.name) if self.language is LATEX else atom.name
            return self.language.element.format(name=name, index=atom.index, number=atom.index + 1)
        joint = self._joint_of(atom)
        letter = "f" if joint is None else atom.name[0]
        number = place if joint is None else joint + 1
        return f"{letter}_{{{number}}}" if self.language is LATEX else f"{letter}{number}"

    def _joint_of(self, atom: Atom) -> int | None:
        """Find the joint whose position alone, not a sum or a multiple, is the argument of a sine or cosine.

        Returns:
            Index of the joint; None for other functions.
        """
        if atom.name not in ("sin", "cos") or len(atom.argument) != 1:
            return None
        monomial, coefficient = atom.argument[0]
        powers = self.expansion.powers(monomial)
        if coefficient != 1.0 or len(powers) != 1:
            return None
        place, power = powers[0]
        inner = self.expansion.atoms[place]
        return inner.index if power == 1 and inner.name == "q" else None


LINE_WIDTH = 110
"""Longest line of text and code [characters]; convention."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TorqueExpressions:
    """Closed-form torques of a robot in terms of its base parameters."""

    robot: Robot
    """The robot; its lengths [m] and its gravity [m/s^2] are numbers in the expressions."""
    base: BaseParameters
    """The parameters p, in the order of the code's argument."""
    expansion: Expansion
    """The regressor (n, b), multiplied out."""

    @property
    def values(self) -> Floats:
        """(b,) values of the base parameters of the robot itself, for the argument p of the code."""
        return self.base.project(self.robot.parameter_vector)

    def coefficient(self, joint: str, parameter: str) -> str:
        """Write the torque of a joint per unit of a base parameter as text; "0" where it has no effect.

        Raises:
            ArgumentError: There is no such joint or base parameter.
        """
        for given, known in ((joint, self.robot.joint_names), (parameter, self.base.names)):
            if given not in known:
                raise ArgumentError(f"there is no '{given}'", remedy=f"Choose one of {', '.join(known)}.")
        row_and_column = self.robot.joint_names.index(joint), self.base.names.index(parameter)
        return PolynomialPrinter(self.expansion, TEXT).polynomial(self._columns[row_and_column])

    def text(self) -> str:
        """Write the torques for people: ``tau1 = ZZR1*(ddq1) + ...``, with s2 and c2 for sine and cosine of q2."""
        printer = PolynomialPrinter(self.expansion, TEXT)
        lines = [f"Joint torques of robot '{self.robot.name}'", ""]
        for joint, torque in enumerate(self._torques(printer, self.base.names), 1):
            whole = f"tau{joint} = {' + '.join(torque) or '0'}"
            lines += [*wrap(whole, LINE_WIDTH, subsequent_indent="    ", break_long_words=False), ""]
        lines += [f"{name} = {value}" for name, value in self._definitions(printer)]
        return "\n".join([*lines, "", *self.base.expressions]) + "\n"

    def latex(self) -> str:
        """Write the torques as an ``align*`` environment of amsmath, one line per parameter."""
        printer = PolynomialPrinter(self.expansion, LATEX)
        names = [_latex_name(name) for name in self.base.names]
        torques = [
            f"\\tau_{{{joint}}} ={{}}& " + " \\\\\n  &+ ".join(torque or ["0"])
            for joint, torque in enumerate(self._torques(printer, names), 1)
        ]
        return "\\begin{align*}\n" + " \\\\\n".join(torques) + "\n\\end{align*}\n"

    def python(self) -> str:
        """Write a Python function ``joint_torques(q, dq, ddq, p)`` that returns a list; it needs ``math`` alone."""
        printer = PolynomialPrinter(self.expansion, PYTHON)
        lines = ["import math", "", "", "def joint_torques(q, dq, ddq, p):"]
        lines += [f'    """Joint torques of robot {c_comment(self.robot.name)}.', ""]
        lines += [
            *wrap(f"p: {', '.join(self.base.names)}.", LINE_WIDTH, initial_indent="    ", subsequent_indent="        "),
            '    """',
        ]
        lines += [f"    {short} = {value}" for short, value in self._definitions(printer)]
        for joint, torque in enumerate(self._torques(printer, [f"p[{k}]" for k in range(self.base.rank)]), 1):
            whole = " + ".join(torque) or "0.0"
            folded = wrap(whole, LINE_WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8, break_long_words=False)
            lines += [f"    tau{joint} = (", *folded, "    )"]
        lines.append(f"    return [{', '.join(f'tau{joint + 1}' for joint in range(self.robot.dof))}]")
        return "\n".join(lines) + "\n"

    @property
    def _columns(self) -> NDArray[np.object_]:
        """(n, b) polynomials of the regressor."""
        return self.expansion.outputs["output"]

    def _definitions(self, printer: PolynomialPrinter) -> list[tuple[str, str]]:
        """List (short name, value) of all functions in the torques."""
        return printer.definitions(list(self._columns.ravel()))

    def _torques(self, printer: PolynomialPrinter, names: Sequence[str]) -> list[list[str]]:
        """Write, for every joint, the products of a parameter and its polynomial that are not zero."""
        left, right = ("\\left(", "\\right)") if printer.language is LATEX else ("(", ")")
        return [
            [
                f"{name}{printer.language.times}{left}{printer.polynomial(column)}{right}"
                for name, column in zip(names, row, strict=True)
                if column
            ]
            for row in self._columns
        ]


def torque_expressions(robot: Robot, base: BaseParameters | None = None) -> TorqueExpressions:
    """Write a robot's joint torques in closed form.

    Args:
        robot: Geometry, gravity and kinds of terms; lengths and gravity become numbers in the expressions.
        base: Base parameters in which the torques are written; by default those of `dynid.base_parameters`.

    Raises:
        ArgumentError: The expressions are too long to be of use, or the base parameters are not the robot's.

    Example:
        >>> type(dynid.export.torque_expressions(dynid.robots.ddarm())).__name__
        'TorqueExpressions'
    """
    require_robot(robot)
    chosen = choose_base(robot, base, every_motion=True)
    columns = list(chosen.columns)  # columns of the regressor that represent the base parameters
    tape = record_quantity(robot, "regressor").select({"output": np.s_[..., columns]})
    expansion = expand_tape(tape)
    # standard parameters in these columns alone give beta = grouping[:, columns] theta, so that the regressor of beta
    # is Y[:, columns] times the inverse; it is the identity unless base parameters combine columns, as those of
    # Lin (1995)
    mix = np.linalg.inv(chosen.grouping[:, columns])
    if not np.array_equal(mix, np.eye(chosen.rank)):
        expansion = expansion.mix("output", np.asarray(mix, dtype=np.float64))
    return TorqueExpressions(robot=robot, base=chosen, expansion=expansion)


def _latex_name(name: str) -> str:
    """Write the name of a parameter in LaTeX: its letters in italics, its number as an index."""
    letters = name.rstrip("0123456789")
    number = name[len(letters) :]
    shown = letters.replace("_", "\\_")
    return f"\\mathit{{{shown}}}" + (f"_{{{number}}}" if number else "")


_COEFFICIENT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "inertia": composite_inertia_matrix,
    "gravity": gravity_torque,
    "christoffel": christoffel_coefficients,
}
"""Kind of coefficients -> function of (robot, standard parameters, joint positions)."""


def coefficient_expressions(
    robot: Robot, kind: Literal["inertia", "gravity", "christoffel"] = "christoffel"
) -> dict[str, str]:
    """Write the coefficients that are not zero in joint positions q1, q2, ... and base parameters.

    Args:
        robot: The robot; only its geometry, gravity and kinds of terms matter.
        kind: ``inertia`` for D_ij (rotors included), ``gravity`` for D_i, ``christoffel`` for D_ijk.

    Returns:
        Name -> formula, such as ``D112``; joints are counted from 1, and of coefficients that are equal by symmetry
        only that with increasing indices is listed (of D_ijk in j and k). Lines such as ``s2 = sin(q2)`` come first.

    Raises:
        ArgumentError: There are no coefficients of this kind.

    Example:
        >>> len(dynid.export.coefficient_expressions(robot, "gravity")) > 0
        True
    """
    require_robot(robot)
    if kind not in tuple(_COEFFICIENT_FUNCTIONS):
        raise ArgumentError(f"kind is {kind!r}", remedy=f"Choose from {', '.join(_COEFFICIENT_FUNCTIONS)}.")
    base = base_parameters(robot)
    function = _COEFFICIENT_FUNCTIONS[kind]

    def coefficients(q: Any, beta: Any) -> Any:
        # standard parameters with the same torques: beta in the kept columns, zeros elsewhere
        theta = np.zeros(len(base.layout), dtype=object)
        theta[list(base.columns)] = beta
        return function(robot, theta, q)

    expansion = expand_tape(record(coefficients, q=(robot.dof,), beta=(base.rank,)))
    printer = PolynomialPrinter(expansion, FORMULA, {"beta": base.names})
    found = {}
    for index, polynomial in np.ndenumerate(expansion.outputs["output"]):
        # D_ij and D_ijk are symmetric in the last two indices: only increasing ones
        if polynomial and list(index[-2:]) == sorted(index[-2:]):
            name = "D" + ("" if robot.dof < 10 else "_").join(str(i + 1) for i in index)
            lines = [*printer.definitions([polynomial]), (name, printer.polynomial(polynomial))]
            found[name] = "\n".join(f"{left} = {right}" for left, right in lines)
    return found
