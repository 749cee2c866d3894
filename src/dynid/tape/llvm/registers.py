"""Instructions of a straight-line piece printed so that no more values are alive than there are vector registers.

LLVM's quick register allocator spills badly and its thorough one takes half a second for a long piece. The future of a
straight line is known, so Belady's rule decides here: where a register is needed, the value whose next use is furthest
away leaves. Inputs, constants and results that have been stored leave for nothing; others are stored once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dynid.tape.llvm.ir import Writer, print_instruction
from dynid.tape.lower import Instruction

STORED = 4
"""A value that is in memory already leaves first, unless the next use of another is this many times further away."""

USES = 6
"""After this many uses a value is loaded once more: LLVM's quick allocator stores whatever has eight uses or more."""

Place = tuple[str, int]


def print_allocated(
    writer: Writer,
    lowered: Sequence[Instruction],
    source: Callable[[int], Place],
    destination: Callable[[int], Place],
    spill: Callable[[int], Place],
    registers: int,
) -> int:
    """Print a straight-line piece.

    Args:
        writer: the function to append to; its lanes are the samples computed at once.
        lowered: the instructions.
        source: base pointer and byte offset of an operand that the instructions do not compute.
        destination: base pointer and byte offset of an output slot.
        spill: base pointer and byte offset of the given slot for values that found no register.
        registers: how many values may be alive in registers.

    Returns:
        The number of slots used.
    """
    allocation = _Allocation(writer, lowered, source, spill, registers)
    for place, (name, operands, result) in enumerate(lowered):
        if name == "store":
            allocation.store(place, operands[0], destination(result))
        else:
            allocation.compute(place, name, operands, result)
    return allocation.slots


class _Allocation:
    """Which value is where."""

    def __init__(
        self,
        writer: Writer,
        lowered: Sequence[Instruction],
        source: Callable[[int], Place],
        spill: Callable[[int], Place],
        registers: int,
    ) -> None:
        self.slots = 0
        self._writer, self._source, self._spill, self._registers = writer, source, spill, registers
        self._uses: dict[int, list[int]] = {}  # of each value, those to come; the next is the last
        for place in reversed(range(len(lowered))):
            for operand in lowered[place].operands:
                self._uses.setdefault(operand, []).append(place)
        self._computed = {step.result for step in lowered if step.name != "store"}
        self._names: dict[int, str] = {}  # values in registers
        self._count: dict[int, int] = {}  # uses since the value came into its register
        self._homes: dict[int, Place] = {}  # computed values in memory
        self._slot: dict[int, int] = {}
        self._free: list[int] = []

    def store(self, place: int, value: int, to: Place) -> None:
        """Store a value; from then on it can be loaded from there."""
        self._writer.store(self._fetch(value, place, ()), *to)
        if value in self._computed:
            self._homes.setdefault(value, to)
        self._pass(place, value)

    def compute(self, place: int, name: str, operands: tuple[int, ...], result: int) -> None:
        """Print an instruction."""
        names = [self._fetch(value, place, operands) for value in operands]
        for value in operands:
            self._pass(place, value)
        if len(operands) == 3 and self._home(operands[2]) is not None:
            # The sum takes over its register; a copy would occupy the units that compute, loading it again does not.
            self._names.pop(operands[2], None)
        self._make_room(place, ())
        self._names[result] = print_instruction(self._writer, name, names)
        self._count[result] = 0

    def _fetch(self, value: int, place: int, keep: tuple[int, ...]) -> str:
        """The name of a value in a register."""
        home = self._home(value)
        if home is not None and self._count.get(value, 0) >= USES:
            self._names.pop(value, None)
        if value not in self._names:
            assert home is not None
            self._make_room(place, keep)
            self._names[value] = self._writer.load(*home)
            self._count[value] = 0
        self._count[value] += 1
        return self._names[value]

    def _home(self, value: int) -> Place | None:
        """Where the value is in memory, if it is."""
        return self._homes.get(value) if value in self._computed else self._source(value)

    def _pass(self, place: int, value: int) -> None:
        """Note that the uses of a value up to this place are over."""
        uses = self._uses[value]
        while uses and uses[-1] <= place:
            uses.pop()
        if not uses:
            self._names.pop(value, None)
            if value in self._slot:
                self._free.append(self._slot.pop(value))

    def _make_room(self, place: int, keep: tuple[int, ...]) -> None:
        """Let a value leave if all registers are taken."""
        if len(self._names) >= self._registers:
            leaving = max((value for value in self._names if value not in keep), key=lambda v: self._distance(v, place))
            if self._home(leaving) is None:
                self._homes[leaving] = self._new_home(leaving)
                self._writer.store(self._names[leaving], *self._homes[leaving])
            del self._names[leaving]

    def _distance(self, value: int, place: int) -> int:
        """How far away the next use is, weighted by what it costs to let the value leave."""
        return (self._uses[value][-1] - place) * (1 if self._home(value) is None else STORED)

    def _new_home(self, value: int) -> Place:
        if not self._free:
            self._free.append(self.slots)
            self.slots += 1
        self._slot[value] = self._free.pop()
        return self._spill(self._slot[value])
