"""A tape as one function of scalar C99: no heap, no library but ``math.h``, every constant exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dynid.errors import ArgumentError
from dynid.tape.operations import SYMBOLS, Operation, is_binary
from dynid.tape.tape import Tape

_FUNCTIONS = {
    Operation.SIN: "sin",
    Operation.COS: "cos",
    Operation.SQRT: "sqrt",
    Operation.TANH: "tanh",
    Operation.EXP: "exp",
    Operation.ABS: "fabs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CStyle:
    """How the function is written."""

    precision: Literal["double", "float"] = "double"
    """Type of every number."""

    linkage: str = ""
    """What stands before ``void``, for example ``static``."""

    temporary: str = "t"
    """Temporaries are called this with a number behind."""

    names: Mapping[str, str] | None = None
    """Names of the arguments by the tape's names of inputs and outputs, where they should differ."""


def c_declaration(tape: Tape, name: str, style: CStyle | None = None) -> str:
    """The function's declaration, without a semicolon.

    Args:
        tape: the program; every input and output becomes an array argument, row-major, inputs first.
        name: the function's name.
        style: how it is written.
    """
    style = style or CStyle()
    arguments = [
        f"const {style.precision} {_argument(entry.name, style)}[{max(entry.size, 1)}]" for entry in tape.inputs
    ]
    arguments += [f"{style.precision} {_output_argument(tape, o.name, style)}[{max(o.size, 1)}]" for o in tape.outputs]
    linkage = f"{style.linkage} " if style.linkage else ""
    return f"{linkage}void {name}({', '.join(arguments)})"


def c_function(tape: Tape, name: str, style: CStyle | None = None) -> str:
    """The function's definition. Outputs are written after everything is computed, so they may be inputs too.

    Args:
        tape: the program.
        name: the function's name.
        style: how it is written.
    """
    style = style or CStyle()
    operands = _Operands(tape, style)
    lines = [c_declaration(tape, name, style), "{"]
    lines += idle_inputs(tape, style)
    for value, code, left, right in tape.steps():
        expression = _expression(Operation(code), operands, left, right)
        lines.append(f"    const {style.precision} {style.temporary}{value} = {expression};")
    copied = [o for output in tape.outputs for o in output.elements.ravel().tolist() if 0 <= o < tape.input_size]
    kept = {o: f"{style.temporary}{o}" for o in dict.fromkeys(copied)}
    lines += [f"    const {style.precision} {kept_as} = {operands.text(o)};" for o, kept_as in kept.items()]
    for output in tape.outputs:
        target = _output_argument(tape, output.name, style)
        for position, element in enumerate(output.elements.ravel().tolist()):
            lines.append(f"    {target}[{position}] = {kept.get(element) or operands.text(element)};")
    return "\n".join([*lines, "}", ""])


def idle_inputs(tape: Tape, style: CStyle | None = None) -> list[str]:
    """Statements that name each input that nothing reads, so that compilers do not warn."""
    read = {element for output in tape.outputs for element in output.elements.ravel().tolist()}
    for _, code, left, right in tape.steps():
        read.update((left, right) if is_binary(code) else (left,))  # a function's second operand is no operand
    lines, first = [], 0
    for entry in tape.inputs:
        if read.isdisjoint(range(first, first + entry.size)):
            lines.append(f"    (void){_argument(entry.name, style or CStyle())};")
        first += entry.size
    return lines


class _Operands:
    """The text of operands."""

    def __init__(self, tape: Tape, style: CStyle) -> None:
        self.suffix = "f" if style.precision == "float" else ""
        self._constants: list[float] = tape.constants.tolist()
        self._inputs: list[str] = []
        self._temporary = style.temporary
        for entry in tape.inputs:
            self._inputs += [f"{_argument(entry.name, style)}[{position}]" for position in range(entry.size)]

    def text(self, operand: int) -> str:
        """One operand."""
        if operand < 0:
            return self.constant(self._constants[~operand])
        return self._inputs[operand] if operand < len(self._inputs) else f"{self._temporary}{operand}"

    def constant(self, value: float) -> str:
        """A constant with all its digits."""
        digits = f"{value:.17g}"
        if not any(mark in digits for mark in ".en"):
            digits += ".0"
        return f"({digits}{self.suffix})" if value < 0 else f"{digits}{self.suffix}"


def _expression(operation: Operation, operands: _Operands, left: int, right: int) -> str:
    first = operands.text(left)
    if operation in SYMBOLS:
        return f"({first} {SYMBOLS[operation]} {operands.text(right)})"
    if operation is Operation.NEG:
        return f"(-{first})"
    if operation is Operation.SIGN:
        zero, one = operands.constant(0.0), operands.constant(1.0)
        return f"(({first} > {zero}) ? {one} : (({first} < {zero}) ? (-{one}) : {first}))"
    return f"{_FUNCTIONS[operation]}{operands.suffix}({first})"


def _argument(name: str, style: CStyle) -> str:
    chosen = (style.names or {}).get(name, name)
    if not (chosen.isascii() and chosen.isidentifier()):
        raise ArgumentError(f"{chosen!r} cannot be the name of a C argument", remedy="Give another one in CStyle.names")
    return chosen


def _output_argument(tape: Tape, name: str, style: CStyle) -> str:
    """The output's argument; ``_out`` is added where an input has the same name, as in gradients."""
    chosen = _argument(name, style)
    return f"{chosen}_out" if chosen in {_argument(entry.name, style) for entry in tape.inputs} else chosen
