"""From a tape to instructions in an order that keeps values in registers.

Lowering: a sum that only another sum reads is merged into it, so that ``a*b + c*d - (e*f + g)`` is one signed sum of
four terms and costs one instruction per term; each product that only sums read becomes a fused multiply-add.
Transcendental functions are left to separate passes over whole columns; their results are leaves here.

Scheduling: the order keeps few values alive at a time.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dynid.tape.operations import TRANSCENDENTAL, Operation, is_binary
from dynid.tape.tape import Tape

FAR = 30
"""Operands touched this many instructions ago have probably left the registers (convention: 16 to 32 registers)."""


class Instruction(NamedTuple):
    """One instruction: ``result = name(operands)``, or ``store`` of its operand to output slot ``result``.

    Beside the tape's own operations there are ``fma`` (a*b + c) and ``fnma`` (c - a*b).
    """

    name: str
    operands: tuple[int, ...]
    result: int


def schedule(instructions: Sequence[Instruction], targets: Sequence[int]) -> list[Instruction]:
    """The instructions in a good order, each target stored as soon as it is known.

    Args:
        instructions: in an order that computes operands before their readers.
        targets: the values wanted; number k of them goes to output slot k.
    """
    slots: dict[int, list[int]] = {}
    for slot, target in enumerate(targets):
        slots.setdefault(target, []).append(slot)
    computed = {instruction.result for instruction in instructions}
    given = [_store(target, slot) for target in slots if target not in computed for slot in slots[target]]
    orders = [_Backwards(instructions).order(), _target_after_target(instructions, targets)]
    complete = [
        [*given, *(i for k in order for i in (instructions[k], *_stores(instructions[k].result, slots)))]
        for order in orders
    ]
    return min(complete, key=_distant_uses)


def _store(value: int, slot: int) -> Instruction:
    return Instruction("store", (value,), slot)


def _stores(value: int, slots: dict[int, list[int]]) -> list[Instruction]:
    return [_store(value, slot) for slot in slots.get(value, ())]


def _distant_uses(instructions: Iterable[Instruction]) -> int:
    """How often an operand was last touched long ago."""
    touched: dict[int, int] = {}
    count = 0
    for place, step in enumerate(instructions):
        for operand in step.operands:
            count += place - touched.get(operand, -FAR) > FAR
            touched[operand] = place
        if step.name != "store":
            touched[step.result] = place
    return count


def _target_after_target(instructions: Sequence[Instruction], targets: Sequence[int]) -> list[int]:
    """Positions in an order that computes one target after the other, each value just before its first reader."""
    producer = {instruction.result: place for place, instruction in enumerate(instructions)}
    done: set[int] = set()
    order: list[int] = []
    waiting = [(producer[target], 0) for target in reversed(targets) if target in producer]
    while waiting:
        place, known = waiting.pop()
        if place not in done:
            operands = instructions[place].operands
            if known < len(operands):
                waiting.append((place, known + 1))
                if operands[known] in producer:
                    waiting.append((producer[operands[known]], 0))
            else:
                done.add(place)
                order.append(place)
    return order


class _Backwards:
    """List scheduling from the end: of those that could stand last, the one before which the fewest values are alive.

    It suits programs with few results, gradients above all: what only the last steps need is computed late. Ties
    follow the recorded order: it comes from people who wrote link after link.
    """

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        producer = {instruction.result: place for place, instruction in enumerate(instructions)}
        self._operands = [{producer[o] for o in step.operands if o in producer} for step in instructions]
        self._readers: list[list[int]] = [[] for _ in instructions]
        for place, operands in enumerate(self._operands):
            for operand in operands:
                self._readers[operand].append(place)
        self._waiting = [len(readers) for readers in self._readers]  # readers not placed yet
        self._born = [len(operands) for operands in self._operands]  # operands that nothing placed so far reads
        self._placed = [False] * len(instructions)
        self._ready: list[tuple[int, int]] = []

    def order(self) -> list[int]:
        """Positions in scheduled order."""
        for place in range(len(self._placed)):
            self._offer(place)
        last_first: list[int] = []
        while self._ready:
            place = -heapq.heappop(self._ready)[1]
            if not self._placed[place]:
                self._placed[place] = True
                last_first.append(place)
                self._update(place)
        return last_first[::-1]

    def _offer(self, place: int) -> None:
        """Make an instruction a candidate if its readers are placed, scored by how many live values it adds."""
        if not self._waiting[place] and not self._placed[place]:
            heapq.heappush(self._ready, (self._born[place] - bool(self._readers[place]), -place))

    def _update(self, place: int) -> None:
        """The operands of a placed instruction are alive from now on: their other readers add fewer values."""
        for operand in self._operands[place]:
            if self._waiting[operand] == len(self._readers[operand]):
                for reader in self._readers[operand]:
                    self._born[reader] -= 1
                    self._offer(reader)
            self._waiting[operand] -= 1
            self._offer(operand)


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
    calls: dict[int, dict[int, tuple[int, int]]] = {}
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


def lower(tape: Tape, targets: Sequence[int], fused: bool = True, repeated: bool = True) -> list[Instruction]:
    """Instructions that compute some values of a tape, in the order in which they should be printed.

    Operands are numbered like the tape's.

    Args:
        tape: the program.
        targets: the operands wanted; number k of them goes to output slot k.
        fused: form fused multiply-adds; without them every product is an instruction of its own.
        repeated: a product that several sums read becomes part of each; otherwise it is computed once.
    """
    lowering = _Lowering(tape, targets, fused, repeated)
    numbers = [lowering.plain(target) for target in targets]
    return schedule(lowering.instructions, numbers)


class _Lowering:
    """The instructions of one piece of a tape, in the order of the tape."""

    def __init__(self, tape: Tape, targets: Sequence[int], fused: bool, repeated: bool) -> None:
        self.instructions: list[Instruction] = []
        self._numbers: dict[int, int] = {}  # tape value -> result of the instruction that computes it
        self._flipped: set[int] = set()  # tape values whose instruction computes minus the value
        self._next = tape.input_size + len(tape.opcodes)
        self._fused, self._repeated = fused, repeated
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
            self._numbers[operand] = self._emit("neg", operand)
            self._flipped.remove(operand)
        return self._number(operand)

    def _number(self, operand: int) -> int:
        """What the instructions call an operand of the tape, whatever its sign."""
        return self._numbers.get(operand, operand)

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
            self._numbers[value] = self._emit(_NAMES[code], *map(self.plain, self._operands(value)))

    def _emit(self, name: str, *operands: int) -> int:
        self.instructions.append(Instruction(name, tuple(map(self._number, operands)), self._next))
        self._next += 1
        return self._next - 1

    def _is_absorbed(self, operand: int) -> bool:
        """Whether the operand is a product that only sums read, and that no instruction has computed."""
        is_product = operand in self._steps and self._steps[operand][0] == Operation.MUL
        is_free = not self._materialised[operand] and (self._repeated or self._readers[operand] == 1)
        return self._fused and is_product and is_free and operand not in self._numbers

    def _terms(self, value: int) -> list[tuple[bool, int]]:
        """The signed terms (negative, operand) of a sum; sums that only this one reads are merged."""
        terms: list[tuple[bool, int]] = []
        waiting = [(False, value)]
        while waiting:
            negative, operand = waiting.pop()
            code = self._steps[operand][0] if operand in self._steps else 0
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
        """Compute a product or quotient, up to the signs of its operands."""
        if self._signs_differ(value):
            self._flipped.add(value)
        self._numbers[value] = self._emit(_NAMES[self._steps[value][0]], *self._operands(value))

    def _signs_differ(self, product: int) -> bool:
        """Whether just one of the factors is known by its negative."""
        left, right = self._operands(product)
        return (left in self._flipped) != (right in self._flipped)

    def _is_negative(self, operand: int) -> bool:
        """Whether an operand, or the product that it stands for, is known by its negative."""
        return self._signs_differ(operand) if self._is_absorbed(operand) else operand in self._flipped

    def _sum(self, value: int) -> None:
        """Compute a sum, or minus that, with one instruction per term after the first, which is a positive one."""
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
        self._numbers[value] = total

    def _opening(self, terms: list[tuple[bool, int]]) -> tuple[bool, int]:
        """Where a sum begins: with a value rather than a product, with a positive term rather than a negative one."""
        return min(terms, key=lambda term: (self._is_absorbed(term[1]), term[0]))
