"""How many operations a tape costs, in the terms in which papers count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
    """Sign changes that no sum could absorb."""

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
    return _count_codes(tape.opcodes.tolist())


def count_by_output(tape: Tape, result: str) -> dict[str, OperationCount]:
    """Count for every output the operations that it adds to those of the outputs before it.

    Args:
        tape: The program.
        result: Name of the output whose operations are counted; what it does not need counts nowhere.
    """
    needed = _reach(tape, tape.output(result).elements.ravel().tolist(), set())
    seen: set[int] = set()
    costs = {}
    for output in tape.outputs:
        added = _reach(tape, output.elements.ravel().tolist(), seen)
        seen |= added
        costs[output.name] = _count_codes([int(tape.opcodes[step]) for step in added & needed])
    return costs


def _reach(tape: Tape, values: list[int], known: set[int]) -> set[int]:
    """Steps that compute these values, without known ones."""
    first, found = tape.input_size, set()
    while values:
        step = values.pop() - first
        if step >= 0 and step not in known and step not in found:
            found.add(step)
            values += tape.operands[step].tolist()
    return found


def _count_codes(codes: Sequence[int]) -> OperationCount:
    found = Counter(codes)
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
