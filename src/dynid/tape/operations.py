"""The operations that a tape, a recorded program, is made of, and their algebraic properties."""

from __future__ import annotations

from enum import IntEnum


class Operation(IntEnum):
    """What one step of a tape does.

    The numbers are part of a tape's fingerprint, the key of compiled code on disk, and never change their meaning.
    """

    ADD = 1
    SUB = 2
    MUL = 3
    DIV = 4
    NEG = 5
    SIN = 6
    COS = 7
    SQRT = 8
    TANH = 9
    EXP = 10
    ABS = 11
    SIGN = 12


BINARY = frozenset({Operation.ADD, Operation.SUB, Operation.MUL, Operation.DIV})
"""Operations that read two operands; all others read one."""

COMMUTATIVE = frozenset({Operation.ADD, Operation.MUL})
"""Operations whose operands may be exchanged."""

ODD = frozenset({Operation.SIN, Operation.TANH, Operation.SIGN})
"""Functions with f(-x) = -f(x): a recorder moves the sign of the operand to the result.

NEG is odd too, but is no function here: a recorder keeps signs beside its values and adds a NEG step only where a
negative value is needed as such."""

EVEN = frozenset({Operation.COS, Operation.ABS})
"""Functions with f(-x) = f(x)."""

TRANSCENDENTAL = frozenset({Operation.SIN, Operation.COS, Operation.TANH, Operation.EXP})
"""Functions that no processor instruction computes."""


def is_binary(operation: int) -> bool:
    """Whether the operation with this number reads two operands."""
    return operation in BINARY
