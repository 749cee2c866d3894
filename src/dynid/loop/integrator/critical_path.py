"""The order of instructions for one evaluation after another: the longest chain of operations comes first.

`dynid.tape.lower` keeps few values alive, which suits code that runs over many samples at once. A simulation waits
for each evaluation before the next one begins, so the longest chain of operations decides its time. Among instructions
that can begin now, one that reads a value for the last time is preferred by :data:`RELIEF` cycles: a value that stays
alive may have to be stored, which occupies the units that compute.
"""

from __future__ import annotations

from collections.abc import Sequence

from dynid.tape.lower import PER_CYCLE, Instruction

LATENCY = {"fma": 4, "fnma": 4, "mul": 3, "div": 12, "sqrt": 15}
"""Cycles until a result can be used; 2 for all others. Convention."""
RELIEF = 10.0
"""Cycles by which an instruction that ends the life of a value is preferred. Convention."""


def by_critical_path(instructions: Sequence[Instruction], targets: Sequence[int]) -> list[Instruction]:
    """The instructions in order, each target stored as soon as it is known; as `dynid.tape.lower.schedule`."""
    slots: dict[int, list[int]] = {}
    for slot, target in enumerate(targets):
        slots.setdefault(target, []).append(slot)
    computed = {step.result for step in instructions}
    result = [_store(target, slot) for target in slots if target not in computed for slot in slots[target]]
    for place in _Graph(instructions).order():
        step = instructions[place]
        result += [step, *(_store(step.result, slot) for slot in slots.get(step.result, ()))]
    return result


def _store(value: int, slot: int) -> Instruction:
    return Instruction("store", (value,), slot)


class _Graph:
    """The instructions as a graph: which instruction reads the result of which."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        producer = {step.result: place for place, step in enumerate(instructions)}
        self._steps = instructions
        self._operands = [list({producer[o]: None for o in s.operands if o in producer}) for s in instructions]
        self._readers: list[list[int]] = [[] for _ in instructions]
        for place, operands in enumerate(self._operands):
            for operand in operands:
                self._readers[operand].append(place)
        self._height = [0] * len(instructions)
        for place in reversed(range(len(instructions))):
            above = (self._height[reader] for reader in self._readers[place])
            self._height[place] = self._wait(place) + max(above, default=0)

    def _wait(self, place: int) -> int:
        """Cycles from an instruction to its readers."""
        return LATENCY.get(self._steps[place].name, 2)

    def order(self) -> list[int]:
        """Positions in scheduled order."""
        waiting = [len(operands) for operands in self._operands]
        left = [len(readers) for readers in self._readers]
        start = [0.0] * len(self._steps)
        ready = [place for place, count in enumerate(waiting) if not count]
        order: list[int] = []
        now = 0.0

        def urgency(place: int) -> float:
            ended = sum(left[operand] == 1 for operand in self._operands[place]) - bool(self._readers[place])
            return self._height[place] + RELIEF * ended

        while ready:
            now = max(now, min(start[place] for place in ready))
            chosen = max((place for place in ready if start[place] <= now), key=urgency)
            ready.remove(chosen)
            order.append(chosen)
            for operand in self._operands[chosen]:
                left[operand] -= 1
            for reader in self._readers[chosen]:
                waiting[reader] -= 1
                start[reader] = max(start[reader], now + self._wait(chosen))
                if not waiting[reader]:
                    ready.append(reader)
            now += 1.0 / PER_CYCLE
        return order
