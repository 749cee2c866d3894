"""From the steps of a tape (a recorded program) to instructions as processors have them: *lowering*.

The printers of LLVM code (`dynid.tape.llvm`) call `stages` and `lower`. A tape's values are numbered from 0: the input
elements, then the results of its steps; its constant k is ``~k = -1 - k``. An *operand* is the number of either.
Results of instructions get the numbers behind the tape's values.

A sum that only one other sum reads is merged into that, so that ``a*b + c*d - (e*f + g)`` is one signed sum of four
terms and costs one instruction per term. A product that only sums read is not computed by itself: each of these sums
*absorbs* it in a fused multiply-add, ``a*b + c`` in one instruction. An instruction may compute minus a value instead
of the value, where that saves an instruction that only changes a sign; the value is then called *negated*.

Sines, cosines, exponentials and hyperbolic tangents are no instructions. They are computed by *passes*, loops over many
samples, which `stages` lists. The arithmetic between two passes is a *piece* of instructions, which `lower` makes, with
the results of passes as given values. Instructions keep the order of the tape: link after link, so that few values are
needed at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dynid.tape.operations import TRANSCENDENTAL, Operation, is_binary
from dynid.tape.tape import Tape


class Instruction(NamedTuple):
    """One instruction: ``result = name(operands)``, or ``store`` of its operand to output slot ``result``."""

    name: str
    """Name of an `Operation` in lower case, ``fma`` (a*b + c), ``fnma`` (c - a*b) or ``store``."""
    operands: tuple[int, ...]
    """Operands of the tape, or results of earlier instructions."""
    result: int
    """Number of the result, above all value numbers of the tape; of a ``store`` the output slot."""


_SUMS = frozenset({Operation.ADD, Operation.SUB, Operation.NEG})
_PRODUCTS = frozenset({Operation.MUL, Operation.DIV})
_NAMES = {int(operation): operation.name.lower() for operation in Operation}
"""Number of an operation -> name of its instruction."""


@dataclass(frozen=True, slots=True)
class FunctionPass:
    """A function that is applied to several values at once, between two pieces of arithmetic."""

    name: str
    """``sincos``, ``tanh`` or ``exp``."""

    arguments: tuple[int, ...]
    """Operands of the tape that the function is applied to."""

    results: tuple[dict[int, int], ...]
    """For each function that the pass computes (``sincos``: sine, then cosine; others: one): value of the tape that it
    gives -> position of its argument in `arguments`."""


def stages(tape: Tape) -> list[FunctionPass]:
    """The transcendental functions of a tape as passes; each needs only the results of earlier ones."""
    depth: dict[int, int] = {}  # value -> number of passes that must run before it can be computed
    calls: dict[int, dict[int, tuple[int, int]]] = {}  # depth -> value -> (code, argument)
    for value, code, left, right in tape.steps():
        depth[value] = max(depth.get(left, 0), depth.get(right, 0) if is_binary(code) else 0)
        if code in TRANSCENDENTAL:
            calls.setdefault(depth[value], {})[value] = (code, left)
            depth[value] += 1
    return [entry for level in sorted(calls) for entry in _passes(calls[level])]


def _passes(calls: dict[int, tuple[int, int]]) -> Iterable[FunctionPass]:
    """Group function calls (value -> code and argument) of one depth into passes."""
    groups = {
        "sincos": (Operation.SIN, Operation.COS),
        "tanh": (Operation.TANH,),
        "exp": (Operation.EXP,),
    }
    for name, operations in groups.items():
        arguments = sorted({argument for code, argument in calls.values() if code in operations})
        if arguments:
            positions = {argument: position for position, argument in enumerate(arguments)}
            results = tuple(
                {value: positions[argument] for value, (code, argument) in calls.items() if code == operation}
                for operation in operations
            )
            yield FunctionPass(name, tuple(arguments), results)


def lower(tape: Tape, targets: Sequence[int], fused: bool = True) -> list[Instruction]:
    """Instructions that compute some values of a tape and store each as soon as it is computed.

    Args:
        tape: the program.
        targets: operands of the tape to compute; number k of them is stored to output slot k.
        fused: form fused multiply-adds; without them every product is an instruction of its own.

    Returns:
        The instructions in order, a ``store`` for every target among them.
    """
    lowering = _Lowering(tape, targets, fused)
    stores: dict[int, list[Instruction]] = {}  # result -> the instructions that store it
    for slot, target in enumerate(targets):
        result = lowering.positive(target)
        stores.setdefault(result, []).append(Instruction("store", (result,), slot))
    computed = {instruction.result for instruction in lowering.instructions}
    # inputs, constants and results of passes are stored at once, the others behind their instruction
    lowered = [store for result, group in stores.items() if result not in computed for store in group]
    for instruction in lowering.instructions:
        lowered += [instruction, *stores.get(instruction.result, ())]
    return lowered


class _Lowering:
    """Makes the instructions of one piece of a tape, in the order of the tape."""

    def __init__(self, tape: Tape, targets: Sequence[int], fused: bool) -> None:
        self.instructions: list[Instruction] = []
        self._result_of: dict[int, int] = {}  # tape value -> result of the instruction that computes it
        self._negated: set[int] = set()  # tape values whose instruction computes minus the value
        self._next = tape.input_size + len(tape.opcodes)  # number of the next result
        self._fused = fused
        self._steps = {value: (code, left, right) for value, code, left, right in tape.steps()}
        needed = self._list_needed(targets)
        self._readers = Counter(targets)  # operand -> number of steps and targets that read it
        self._direct_readers = Counter(targets)  # the same without sums: these readers need the value itself
        for value in needed:
            for operand in self._operands(value):
                self._readers[operand] += 1
                if self._steps[value][0] not in _SUMS:
                    self._direct_readers[operand] += 1
        for value in needed:
            self._compute(value)

    def positive(self, operand: int) -> int:
        """Number of the result that is an operand of the tape; if only minus it was computed, its sign is changed."""
        if operand in self._negated:
            self._result_of[operand] = self._emit("neg", operand)
            self._negated.remove(operand)
        return self._number(operand)

    def _number(self, operand: int) -> int:
        """Number of the result that is an operand of the tape or minus it; inputs and constants keep their numbers."""
        return self._result_of.get(operand, operand)

    def _list_needed(self, targets: Sequence[int]) -> list[int]:
        """The values to compute for the targets, in order, without results of passes and what these need."""
        found: set[int] = set()
        waiting = list(targets)
        while waiting:
            value = waiting.pop()
            if value in self._steps and value not in found and self._steps[value][0] not in TRANSCENDENTAL:
                found.add(value)
                waiting.extend(self._operands(value))
        return sorted(found)

    def _operands(self, value: int) -> tuple[int, ...]:
        """The one or two operands of the step that computes a value."""
        code, left, right = self._steps[value]
        return (left, right) if is_binary(code) else (left,)

    def _compute(self, value: int) -> None:
        """Emit the instructions of a value, unless it becomes part of a sum that reads it.

        So values are computed in the order of the tape, and absorbed products and merged sums by their readers.
        """
        code = self._steps[value][0]
        if code in _SUMS:
            if self._direct_readers[value] or self._readers[value] > 1:  # else it is merged into its only reader, a sum
                self._sum(value)
        elif code in _PRODUCTS:
            if not self._is_absorbed(value):
                self._product(value)
        else:
            self._result_of[value] = self._emit(_NAMES[code], *map(self.positive, self._operands(value)))

    def _emit(self, name: str, *operands: int) -> int:
        """Append an instruction; returns the number of its result."""
        self.instructions.append(Instruction(name, tuple(map(self._number, operands)), self._next))
        self._next += 1
        return self._next - 1

    def _is_absorbed(self, operand: int) -> bool:
        """Whether an operand is a product that becomes part of fused multiply-adds in the sums that read it."""
        is_product = operand in self._steps and self._steps[operand][0] == Operation.MUL
        only_sums_read_it = not self._direct_readers[operand]
        return self._fused and is_product and only_sums_read_it and operand not in self._result_of

    def _terms(self, value: int) -> list[tuple[bool, int]]:
        """The signed terms (is negative, operand) of a sum; sums that only this one reads are merged into it."""
        terms: list[tuple[bool, int]] = []
        waiting = [(False, value)]
        while waiting:
            is_negative, operand = waiting.pop()
            code = self._steps[operand][0] if operand in self._steps else None
            is_merged = operand == value or (self._readers[operand] == 1 and not self._direct_readers[operand])
            if code in _SUMS and is_merged:
                _, left, right = self._steps[operand]
                if code != Operation.NEG:
                    waiting.append((is_negative != (code == Operation.SUB), right))
                waiting.append((is_negative != (code == Operation.NEG), left))
            else:
                terms.append((is_negative, operand))
        return terms

    def _product(self, value: int) -> None:
        """Compute a product or quotient, or minus that where just one of its operands is negated."""
        if self._signs_differ(value):
            self._negated.add(value)
        self._result_of[value] = self._emit(_NAMES[self._steps[value][0]], *self._operands(value))

    def _signs_differ(self, product: int) -> bool:
        """Whether just one of the operands of a product or quotient is negated."""
        left, right = self._operands(product)
        return (left in self._negated) != (right in self._negated)

    def _is_negated(self, operand: int) -> bool:
        """Whether instructions compute minus the operand, or would if it were not absorbed."""
        return self._signs_differ(operand) if self._is_absorbed(operand) else operand in self._negated

    def _sum(self, value: int) -> None:
        """Compute a sum, with one instruction per term after the first; minus the sum if the first is negative."""
        terms = [(is_negative != self._is_negated(operand), operand) for is_negative, operand in self._terms(value)]
        # begin with a value rather than a product, with a positive term rather than a negative one
        first = min(terms, key=lambda term: (self._is_absorbed(term[1]), term[0]))
        first_is_negative, first_operand = first
        if first_is_negative:
            self._negated.add(value)
        if self._is_absorbed(first_operand):
            self._product(first_operand)
        total = self._number(first_operand)
        terms.remove(first)
        for is_negative, operand in terms:
            is_subtracted = is_negative != first_is_negative
            if self._is_absorbed(operand):
                total = self._emit("fnma" if is_subtracted else "fma", *self._operands(operand), total)
            else:
                total = self._emit("sub" if is_subtracted else "add", total, operand)
        self._result_of[value] = total
