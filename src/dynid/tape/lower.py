"""From a tape to instructions: signed sums flattened, products fused into them, few values alive at a time.

A sum that only another sum reads is merged into it, so that ``a*b + c*d - (e*f + g)`` is one signed sum of four terms
and costs one instruction per term: each product that only sums read becomes a fused multiply-add. Transcendental
functions are left to separate passes over whole columns; their results are leaves here.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dynid.tape.operations import TRANSCENDENTAL, Operation, is_binary
from dynid.tape.tape import Tape

__all__ = ["FunctionPass", "Instruction", "Lowered", "lower", "stages"]

_SUMS = frozenset({Operation.ADD, Operation.SUB, Operation.NEG})
_NAMES = {int(operation): operation.name.lower() for operation in Operation}


class Instruction(NamedTuple):
    """One instruction: ``result = name(operands)``, or ``store`` of its operand to output slot ``result``.

    Beside the tape's own operations there are ``fma`` (a*b + c), ``fms`` (a*b - c) and ``fnma`` (c - a*b).
    """

    name: str
    operands: tuple[int, ...]
    result: int


@dataclass(frozen=True, slots=True)
class Lowered:
    """A straight-line piece of a tape as instructions."""

    instructions: tuple[Instruction, ...]
    """In the order in which they should be printed; operands are numbered like the tape's."""

    @property
    def arithmetic(self) -> int:
        """Number of floating-point instructions, stores not counted."""
        return sum(instruction.name != "store" for instruction in self.instructions)

    def pressure(self) -> int:
        """Most computed values alive at once."""
        last = {operand: place for place, step in enumerate(self.instructions) for operand in step.operands}
        alive: set[int] = set()
        most = 0
        for place, step in enumerate(self.instructions):
            alive -= {operand for operand in step.operands if last[operand] == place}
            if step.name != "store" and step.result in last:
                alive.add(step.result)
            most = max(most, len(alive))
        return most


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


def lower(tape: Tape, targets: Sequence[int], fused: bool = True) -> Lowered:
    """Instructions that compute some values of a tape.

    Args:
        tape: the program.
        targets: the operands wanted; number k of them goes to output slot k.
        fused: form fused multiply-adds; without them every product is an instruction of its own.
    """
    lowering = _Lowering(tape, targets, fused)
    return Lowered(tuple(_scheduled(lowering.instructions, [lowering.number(target) for target in targets])))


class _Lowering:
    """The instructions of one piece of a tape, in the order of the tape."""

    def __init__(self, tape: Tape, targets: Sequence[int], fused: bool) -> None:
        self.instructions: list[Instruction] = []
        self._numbers: dict[int, int] = {}  # tape value -> result of the instruction that computes it
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

    def number(self, operand: int) -> int:
        """What the instructions call an operand of the tape."""
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
                self._numbers[value] = self._sum(self._terms(value))
        elif not self._is_absorbed(value):
            self._numbers[value] = self._emit(_NAMES[code], *self._operands(value))

    def _emit(self, name: str, *operands: int) -> int:
        self.instructions.append(Instruction(name, tuple(map(self.number, operands)), self._next))
        self._next += 1
        return self._next - 1

    def _is_absorbed(self, operand: int) -> bool:
        """Whether the operand is a product that only sums read, and that no instruction has computed."""
        is_product = operand in self._steps and self._steps[operand][0] == Operation.MUL
        return self._fused and is_product and not self._materialised[operand] and operand not in self._numbers

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

    def _sum(self, terms: list[tuple[bool, int]]) -> int:
        """One instruction per term after the first, which is a positive one."""
        if all(negative for negative, _ in terms):
            return self._emit("neg", self._sum([(False, operand) for _, operand in terms]))
        total, rest = self._opening(terms)
        for negative, operand in rest:
            if self._is_absorbed(operand):
                total = self._emit("fnma" if negative else "fma", *self._operands(operand), total)
            else:
                total = self._emit("sub" if negative else "add", total, operand)
        return total

    def _opening(self, terms: list[tuple[bool, int]]) -> tuple[int, list[tuple[bool, int]]]:
        """Where a sum begins, and what remains to be added: with a positive value, or else with a positive product."""
        plain = [term for term in terms if not self._is_absorbed(term[1])]
        start = min(plain, default=(True, 0), key=lambda term: term[0])
        if not start[0]:
            rest = list(terms)
            rest.remove(start)
            return start[1], rest
        product = next(term for term in terms if not term[0])
        rest = [term for term in terms if term is not product]
        if plain:
            rest.remove(start)
            return self._emit("fms", *self._operands(product[1]), start[1]), rest
        self._numbers[product[1]] = self._emit("mul", *self._operands(product[1]))
        return product[1], rest


def _scheduled(instructions: Sequence[Instruction], targets: Sequence[int]) -> Iterable[Instruction]:
    """The instructions in an order that keeps few values alive, each target stored as soon as it is known."""
    slots: dict[int, list[int]] = {}
    for slot, target in enumerate(targets):
        slots.setdefault(target, []).append(slot)
    computed = {instruction.result for instruction in instructions}
    for target in slots.keys() - computed:  # inputs and function results that are outputs themselves
        yield from (Instruction("store", (target,), slot) for slot in slots[target])
    for position in _Scheduler(instructions).order():
        result = instructions[position].result
        yield instructions[position]
        yield from (Instruction("store", (result,), slot) for slot in slots.get(result, ()))


class _Scheduler:
    """List scheduling: of the instructions that could come next, the one after which the fewest values are alive.

    Ties follow the recorded order: it comes from people who wrote link after link.
    """

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        producer = {instruction.result: place for place, instruction in enumerate(instructions)}
        self._operands = [{producer[o] for o in step.operands if o in producer} for step in instructions]
        self._readers: list[set[int]] = [set() for _ in instructions]  # those not scheduled yet
        for place, operands in enumerate(self._operands):
            for operand in operands:
                self._readers[operand].add(place)
        self._is_read = [bool(readers) for readers in self._readers]
        self._missing = [len(operands) for operands in self._operands]
        self._done = [False] * len(instructions)
        self._ready: list[tuple[int, int]] = []

    def order(self) -> Iterable[int]:
        """Positions in scheduled order."""
        for place in range(len(self._done)):
            self._offer(place)
        while self._ready:
            _, place = heapq.heappop(self._ready)
            if not self._done[place]:
                self._done[place] = True
                yield place
                self._update(place)

    def _offer(self, place: int) -> None:
        """Make an instruction a candidate if its operands are known, scored by how many live values it adds."""
        if not self._missing[place] and not self._done[place]:
            ended = sum(len(self._readers[operand]) == 1 for operand in self._operands[place])
            heapq.heappush(self._ready, (self._is_read[place] - ended, place))

    def _update(self, place: int) -> None:
        """Tell the readers of a scheduled instruction, and those who are now the last readers of its operands."""
        for reader in self._readers[place]:
            self._missing[reader] -= 1
            self._offer(reader)
        for operand in self._operands[place]:
            self._readers[operand].remove(place)
            if len(self._readers[operand]) == 1:
                self._offer(*self._readers[operand])
