"""The order of instructions: few values alive at a time, and none waiting for the one just before it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["Instruction", "scheduled"]

FAR = 30
"""Operands touched this many instructions ago have probably left the registers."""

WINDOW = 24
"""Instructions among which to look for one that need not wait: more would keep too many values alive."""

LATENCY = {"fma": 4, "fnma": 4, "mul": 3, "store": 0}
"""Cycles until a result can be used; 2 for all others, which are hardly worth distinguishing."""

PER_CYCLE = 2
"""Instructions that begin in one cycle."""


class Instruction(NamedTuple):
    """One instruction: ``result = name(operands)``, or ``store`` of its operand to output slot ``result``.

    Beside the tape's own operations there are ``fma`` (a*b + c) and ``fnma`` (c - a*b).
    """

    name: str
    operands: tuple[int, ...]
    result: int


def scheduled(instructions: Sequence[Instruction], targets: Sequence[int]) -> list[Instruction]:
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
    return _spread(min(complete, key=_distant_uses))


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


def _spread(instructions: Sequence[Instruction]) -> list[Instruction]:
    """Nearly the same order, but an instruction that would have to wait lets later ones pass that need not.

    Processors do so themselves, but see only a few dozen instructions ahead.
    """
    known_at = {step.result: float("inf") for step in instructions if step.name != "store"}
    following = iter(instructions)
    waiting = [step for _, step in zip(range(WINDOW), following, strict=False)]
    order: list[Instruction] = []
    now = 0.0
    while waiting:
        starts = [max((known_at.get(operand, 0.0) for operand in step.operands), default=0.0) for step in waiting]
        chosen = next((k for k, start in enumerate(starts) if start <= now), starts.index(min(starts)))
        step = waiting.pop(chosen)
        waiting.extend(step for _, step in zip(range(1), following, strict=False))
        now = max(now, starts[chosen]) + 1.0 / PER_CYCLE
        if step.name != "store":
            known_at[step.result] = now + LATENCY.get(step.name, 2)
        order.append(step)
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
