"""From a tape to the instructions of a processor, in the order of the tape.

Lowering: a sum that only another sum reads is merged into it, so that ``a*b + c*d - (e*f + g)`` is one signed sum of
four terms and costs one instruction per term; each product that only sums read becomes a fused multiply-add.
A value may be kept as its negative, so that no instruction only changes a sign. `stages` lists the transcendental
functions, which are passes over whole columns between pieces of straight-line code; `lower` makes such a piece, with
the results of passes as inputs. The order of the tape is kept: link after link, it needs few values at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dynid.tape.operations import TRANSCENDENTAL, Operation, is_binary
from dynid.tape.tape import Tape


class Instruction(NamedTuple):
    """One instruction: ``result = name(operands)``, or ``store`` of its operand to output slot ``result``.

    Beside the tape's own operations there are ``fma`` (a*b + c) and ``fnma`` (c - a*b).
    """

    name: str
    operands: tuple[int, ...]
    result: int


_SUMS = frozenset({Operation.ADD, Operation.SUB, Operation.NEG})
_PRODUCTS = frozenset({Operation.MUL, Operation.DIV})
_NAMES = {int(operation): operation.name.lower() for operation in Operation}


@dataclass(frozen=True, slots=True)
class FunctionPass:
    """A function to be applied to several values at once, between two pieces of straight-line code."""

    name: str
    """``sincos``, ``tanh`` or ``exp``."""

    arguments: tuple[int, ...]
    """The tape's operands it is applied to."""

    results: tuple[dict[int, int], ...]
    """For each function computed (sine, then cosine; or the only one): tape value -> position of its argument."""


def stages(tape: Tape) -> list[FunctionPass]:
    """The transcendental functions of a tape as passes; each needs only the results of earlier ones."""
    depth: dict[int, int] = {}
    calls: dict[int, dict[int, tuple[int, int]]] = {}  # depth -> value -> (code, argument)
    for value, code, left, right in tape.steps():
        depth[value] = max(depth.get(left, 0), depth.get(right, 0) if is_binary(code) else 0)
        if code in TRANSCENDENTAL:
            calls.setdefault(depth[value], {})[value] = (code, left)
            depth[value] += 1
    return [entry for level in sorted(calls) for entry in _passes(calls[level])]


def _passes(calls: dict[int, tuple[int, int]]) -> Iterable[FunctionPass]:
    groups = {
        "sincos": (Operation.SIN, Operation.COS),
        "tanh": (Operation.TANH,),
        "exp": (Operation.EXP,),
    }
    for name, operations in groups.items():
        arguments = sorted({argument for code, argument in calls.values() if code in operations})
        if arguments:
            place = {argument: position for position, argument in enumerate(arguments)}
            results = tuple(
                {value: place[argument] for value, (code, argument) in calls.items() if code == operation}
                for operation in operations
            )
            yield FunctionPass(name, tuple(arguments), results)


def lower(tape: Tape, targets: Sequence[int], fused: bool = True) -> list[Instruction]:
    """Instructions that compute some values of a tape and store each as soon as it is known.

    Operands are numbered like the tape's.

    Args:
        tape: the program.
        targets: the operands wanted; number k of them goes to output slot k.
        fused: form fused multiply-adds; without them every product is an instruction of its own.
    """
    lowering = _Lowering(tape, targets, fused)
    stores: dict[int, list[Instruction]] = {}
    for slot, target in enumerate(targets):
        value = lowering.plain(target)
        stores.setdefault(value, []).append(Instruction("store", (value,), slot))
    computed = {step.result for step in lowering.instructions}
    lowered = [store for value, group in stores.items() if value not in computed for store in group]
    for step in lowering.instructions:
        lowered += [step, *stores.get(step.result, ())]
    return lowered


class _Lowering:
    """The instructions of one piece of a tape, in the order of the tape."""

    def __init__(self, tape: Tape, targets: Sequence[int], fused: bool) -> None:
        self.instructions: list[Instruction] = []
        self._result_of: dict[int, int] = {}  # tape value -> result of the instruction that computes it
        self._flipped: set[int] = set()  # tape values whose instruction computes minus the value
        self._next = tape.input_size + len(tape.opcodes)
        self._fused = fused
        self._steps = {value: (code, left, right) for value, code, left, right in tape.steps()}
        needed = self._cone(targets)
        self._readers = Counter(targets)
        self._materialised = Counter(targets)  # readers that need the value itself, not as a term of a sum
        for value in needed:
            for operand in self._operands(value):
                self._readers[operand] += 1
                self._materialised[operand] += self._steps[value][0] not in _SUMS
        for value in needed:
            self._compute(value)

    def plain(self, operand: int) -> int:
        """What the instructions call an operand of the tape, after a change of sign where they computed minus that."""
        if operand in self._flipped:
            self._result_of[operand] = self._emit("neg", operand)
            self._flipped.remove(operand)
        return self._number(operand)

    def _number(self, operand: int) -> int:
        """What the instructions call an operand of the tape, whatever its sign."""
        return self._result_of.get(operand, operand)

    def _cone(self, targets: Sequence[int]) -> list[int]:
        """The values the targets need, in order; the results of functions are given."""
        found: set[int] = set()
        waiting = list(targets)
        while waiting:
            value = waiting.pop()
            if value in self._steps and value not in found and self._steps[value][0] not in TRANSCENDENTAL:
                found.add(value)
                waiting.extend(self._operands(value))
        return sorted(found)

    def _operands(self, value: int) -> tuple[int, ...]:
        code, left, right = self._steps[value]
        return (left, right) if is_binary(code) else (left,)

    def _compute(self, value: int) -> None:
        """Emit a value, unless a sum absorbs it."""
        code = self._steps[value][0]
        if code in _SUMS:
            if self._materialised[value] or self._readers[value] > 1:
                self._sum(value)
        elif code in _PRODUCTS:
            if not self._is_absorbed(value):
                self._product(value)
        else:
            self._result_of[value] = self._emit(_NAMES[code], *map(self.plain, self._operands(value)))

    def _emit(self, name: str, *operands: int) -> int:
        self.instructions.append(Instruction(name, tuple(map(self._number, operands)), self._next))
        self._next += 1
        return self._next - 1

    def _is_absorbed(self, operand: int) -> bool:
        """Whether the operand is a product that only sums read, and that no instruction has computed."""
        is_product = operand in self._steps and self._steps[operand][0] == Operation.MUL
        is_free = not self._materialised[operand]
        return self._fused and is_product and is_free and operand not in self._result_of

    def _terms(self, value: int) -> list[tuple[bool, int]]:
        """The signed terms (negative, operand) of a sum; sums that only this one reads are merged."""
        terms: list[tuple[bool, int]] = []
        waiting = [(False, value)]
        while waiting:
            negative, operand = waiting.pop()
            code = self._steps[operand][0] if operand in self._steps else None
            merged = operand == value or (self._readers[operand] == 1 and not self._materialised[operand])
            if code in _SUMS and merged:
                _, left, right = self._steps[operand]
                if code != Operation.NEG:
                    waiting.append((negative != (code == Operation.SUB), right))
                waiting.append((negative != (code == Operation.NEG), left))
            else:
                terms.append((negative, operand))
        return terms

    def _product(self, value: int) -> None:
        """Compute a product or quotient, or minus that where one operand is kept as its negative."""
        if self._signs_differ(value):
            self._flipped.add(value)
        self._result_of[value] = self._emit(_NAMES[self._steps[value][0]], *self._operands(value))

    def _signs_differ(self, product: int) -> bool:
        """Whether just one of the factors is known by its negative."""
        left, right = self._operands(product)
        return (left in self._flipped) != (right in self._flipped)

    def _is_negative(self, operand: int) -> bool:
        """Whether an operand, or the product that it stands for, is known by its negative."""
        return self._signs_differ(operand) if self._is_absorbed(operand) else operand in self._flipped

    def _sum(self, value: int) -> None:
        """Compute a sum with one instruction per term after the opening one; minus the sum if that one is negative."""
        terms = [(negative != self._is_negative(operand), operand) for negative, operand in self._terms(value)]
        opening = self._opening(terms)
        if opening[0]:
            self._flipped.add(value)
        if self._is_absorbed(opening[1]):
            self._product(opening[1])
        total = self._number(opening[1])
        terms.remove(opening)
        for negative, operand in terms:
            is_subtracted = negative != opening[0]
            if self._is_absorbed(operand):
                total = self._emit("fnma" if is_subtracted else "fma", *self._operands(operand), total)
            else:
                total = self._emit("sub" if is_subtracted else "add", total, operand)
        self._result_of[value] = total

    def _opening(self, terms: list[tuple[bool, int]]) -> tuple[bool, int]:
        """Where a sum begins: with a value rather than a product, with a positive term rather than a negative one."""
        return min(terms, key=lambda term: (self._is_absorbed(term[1]), term[0]))
