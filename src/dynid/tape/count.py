"""Count the operations of a tape (a recorded program), in the classes in which papers on dynamics count them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dynid.tape.operations import Operation
from dynid.tape.tape import Tape


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCount:
    """Operations of a tape for one sample, as recorded (before any fusing)."""

    multiplications: int
    """Products."""

    additions: int
    """Sums and differences."""

    divisions: int
    """Quotients."""

    negations: int
    """Sign changes that could not be made part of a sum or difference."""

    trigonometric: int
    """Sines and cosines."""

    others: int
    """Square roots, exponentials, hyperbolic tangents, absolute values, signs."""

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return self.multiplications + self.additions

    def __str__(self) -> str:
        return f"{self.multiplications} multiplications, {self.additions} additions"


def count(tape: Tape) -> OperationCount:
    """Count the operations of a tape."""
    found = Counter(tape.opcodes.tolist())
    return OperationCount(
        multiplications=found[Operation.MUL],
        additions=found[Operation.ADD] + found[Operation.SUB],
        divisions=found[Operation.DIV],
        negations=found[Operation.NEG],
        trigonometric=found[Operation.SIN] + found[Operation.COS],
        others=sum(
            found[code] for code in (Operation.SQRT, Operation.TANH, Operation.EXP, Operation.ABS, Operation.SIGN)
        ),
    )
