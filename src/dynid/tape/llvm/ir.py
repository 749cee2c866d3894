"""Print instructions in LLVM's text form, for one sample or for several at a time.

The other modules of `dynid.tape.llvm` collect the text of functions in a `Writer`; `print_piece` prints the arithmetic
of a tape (a recorded program), which `dynid.tape.lower` has turned into instructions.

A vector register holds one number of several samples; the place of a sample in it is a *lane*. Every instruction works
on all lanes at once. LLVM's text: a name with ``%`` is a register, assigned once, and one with ``@`` a function or
table. Code is divided into blocks that begin with a label and end with a branch (``br``). ``phi [a, %x], [b, %y]`` is a
if control came from block x, and b if it came from block y: so loop variables get their next value. ``getelementptr``
adds an offset to a pointer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence

from dynid.tape.lower import Instruction

Place = tuple[str, int]
"""Address of a value in memory: name of a base pointer, and byte offset."""

_PLAIN = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "neg": "fneg"}
"""Name of an instruction of `dynid.tape.lower` -> LLVM instruction that does the same."""


def vector(lanes: int, element: str = "double") -> str:
    """LLVM's type of one value in every lane: ``double``, or ``<4 x double>`` for four lanes."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def number(value: float, lanes: int = 1) -> str:
    """A floating-point constant, repeated in every lane; written in bits, so exactly."""
    text = f"0x{struct.pack('>d', value).hex().upper()}"
    return text if lanes == 1 else f"<{', '.join([f'double {text}'] * lanes)}>"


def integer(value: int, lanes: int = 1) -> str:
    """An integer constant, repeated in every lane."""
    return str(value) if lanes == 1 else f"<{', '.join([f'i64 {value}'] * lanes)}>"


def _suffix(lanes: int) -> str:
    """End of the name of an intrinsic (a function that LLVM knows), which says the type of its operands."""
    return "f64" if lanes == 1 else f"v{lanes}f64"


def declarations(lanes: int) -> str:
    """Declarations of the intrinsics that the printed instructions call."""
    kind, suffix = vector(lanes), _suffix(lanes)
    unary = "".join(f"declare {kind} @llvm.{name}.{suffix}({kind})\n" for name in ("sqrt", "fabs"))
    return f"{unary}declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})\n"


class Writer:
    """Collects the text of one function, line by line; operands and results are names of registers such as ``%r7``."""

    def __init__(self, lanes: int) -> None:
        """Begin with no text.

        Args:
            lanes: number of samples that one instruction computes.
        """
        self.lanes = lanes
        self.kind = vector(lanes)
        self._lines: list[str] = []
        self._names = 0

    def line(self, text: str) -> None:
        """Append an instruction without a result, a label or a brace."""
        self._lines.append(text)

    def value(self, text: str) -> str:
        """Append an instruction; returns the name of its result."""
        self._names += 1
        name = f"%r{self._names}"
        self._lines.append(f"{name} = {text}")
        return name

    def address(self, base: str, offset: int) -> str:
        """A pointer ``offset`` bytes behind another one."""
        return self.value(f"getelementptr inbounds i8, ptr {base}, i64 {offset}") if offset else base

    def load(self, base: str, offset: int) -> str:
        """Load one value in every lane."""
        return self.value(f"load {self.kind}, ptr {self.address(base, offset)}, align 8")

    def store(self, value: str, base: str, offset: int) -> None:
        """Store one value of every lane."""
        self.line(f"store {self.kind} {value}, ptr {self.address(base, offset)}, align 8")

    def binary(self, name: str, left: str, right: str) -> str:
        """An instruction of two floating-point operands."""
        return self.value(f"{name} {self.kind} {left}, {right}")

    def negate(self, operand: str) -> str:
        """Sign change."""
        return self.value(f"fneg {self.kind} {operand}")

    def fma(self, left: str, right: str, addend: str) -> str:
        """Fused left * right + addend."""
        arguments = ", ".join(f"{self.kind} {operand}" for operand in (left, right, addend))
        return self.value(f"call {self.kind} @llvm.fma.{_suffix(self.lanes)}({arguments})")

    def unary(self, intrinsic: str, operand: str) -> str:
        """An intrinsic function of one operand."""
        return self.value(f"call {self.kind} @llvm.{intrinsic}.{_suffix(self.lanes)}({self.kind} {operand})")

    def choose(self, condition: str, yes: str, no: str) -> str:
        """In every lane ``yes`` where the condition holds there, else ``no``."""
        return self.value(f"select {vector(self.lanes, 'i1')} {condition}, {self.kind} {yes}, {self.kind} {no}")

    def constant(self, value: float) -> str:
        """A floating-point constant in every lane."""
        return number(value, self.lanes)

    def text(self) -> str:
        """Everything written so far."""
        return "\n".join(self._lines)


def constant_table(constants: Sequence[float], lanes: int) -> str:
    """The global ``@constants``: each constant once per lane, so that using it is a plain load.

    A zero follows them, so that the table is never empty.
    """
    values = ", ".join(f"double {number(value)}" for value in [*constants, 0.0] for _ in range(lanes))
    return f"@constants = private constant [{lanes * (len(constants) + 1)} x double] [{values}], align 64\n"


def print_piece(
    writer: Writer,
    lowered: Iterable[Instruction],
    source: Callable[[int], Place],
    destination: Callable[[int], Place],
) -> None:
    """Print instructions without branches; LLVM chooses what is kept in registers.

    Args:
        writer: the function to append to; its lanes are the samples computed at once.
        lowered: the instructions.
        source: base pointer and byte offset of an operand that the instructions do not compute.
        destination: base pointer and byte offset of an output slot.
    """
    names: dict[int, str] = {}  # number of an operand or a result -> name of its register
    for name, operands, result in lowered:
        for value in operands:
            if value not in names:
                names[value] = writer.load(*source(value))
        if name == "store":
            writer.store(names[operands[0]], *destination(result))
        else:
            names[result] = print_instruction(writer, name, [names[value] for value in operands])


def print_instruction(writer: Writer, name: str, operands: list[str]) -> str:
    """Print one instruction of `dynid.tape.lower`; returns the name of its result."""
    if name in _PLAIN:
        return writer.value(f"{_PLAIN[name]} {writer.kind} {', '.join(operands)}")
    if name == "fma":
        return writer.fma(*operands)
    if name == "fnma":
        return writer.fma(writer.negate(operands[0]), operands[1], operands[2])
    if name == "sign":
        return _sign(writer, operands[0])
    return writer.unary({"abs": "fabs", "sqrt": "sqrt"}[name], operands[0])


def _sign(writer: Writer, operand: str) -> str:
    """Print the sign: 1, -1, or the operand itself where it is zero or NaN."""
    zero = writer.constant(0.0)
    below = writer.value(f"fcmp olt {writer.kind} {operand}, {zero}")
    above = writer.value(f"fcmp ogt {writer.kind} {operand}, {zero}")
    return writer.choose(above, writer.constant(1.0), writer.choose(below, writer.constant(-1.0), operand))
