"""The LLVM module that runs a tape over many samples, block after block.

A block holds B samples as ``[column][B]``: the used input elements, the arguments and results of the functions, and
apart from these the computed output elements. Strides are compile-time constants. Inputs are transposed from rows into
the block, everything is computed within it while it stays in the first-level cache, then the result is copied out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dynid.tape.host import Host
from dynid.tape.llvm_functions import PASSES, pass_call
from dynid.tape.llvm_ir import Writer, constant_table, declarations
from dynid.tape.llvm_registers import print_allocated
from dynid.tape.llvm_rows import print_clear, print_load, print_store
from dynid.tape.lower import FunctionPass, lower, stages
from dynid.tape.operations import is_binary
from dynid.tape.tape import Tape

__all__ = ["BlockLayout", "BlockPrinter"]


SPARE = 2
"""Registers left to LLVM, for copies."""


class PlacedPass(NamedTuple):
    """A function pass and its columns in the work area."""

    entry: FunctionPass
    arguments: int
    results: int
    in_place: bool


class BlockLayout:
    """Which column holds what.

    Attributes:
        tape: the program.
        inputs: column, in the work area, of each used input element.
        work: column, in the work area, of each used input element and each function result.
        passes: the function passes in order, with their columns.
        work_columns: number of columns of the work area.
        outputs: column, in the output block, of each computed output element.
    """

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.inputs = {value: column for column, value in enumerate(_used_inputs(tape))}
        self.work = dict(self.inputs)
        self.passes: list[PlacedPass] = []
        self.work_columns = len(self.inputs)
        for entry in stages(tape):
            self._place(entry)
        elements = (element for output in tape.outputs for element in output.elements.ravel().tolist())
        computed = dict.fromkeys(element for element in elements if element >= 0)
        self.outputs = {value: column for column, value in enumerate(computed)}

    def _place(self, entry: FunctionPass) -> None:
        """Give a pass its columns; arguments that already stand side by side are read where they are."""
        size = len(entry.arguments)
        columns = [self.work.get(argument, -1) for argument in entry.arguments]
        in_place = columns[0] >= 0 and columns == list(range(columns[0], columns[0] + size))
        arguments = columns[0] if in_place else self.work_columns
        results = self.work_columns + (0 if in_place else size)
        self.passes.append(PlacedPass(entry, arguments, results, in_place))
        self.work_columns = results + len(entry.results) * size
        for place, values in enumerate(entry.results):
            for value, position in values.items():
                self.work[value] = results + place * size + position


class BlockPrinter:
    """Prints the module of a tape.

    Its entry is ``void run(ptr table, i64 start, i64 stop, ptr work, ptr block)``: samples start to stop of the
    row-major inputs in ``table`` go through ``work`` into ``block``.
    """

    def __init__(self, layout: BlockLayout, block: int, host: Host) -> None:
        self._layout, self._block, self._host = layout, block, host
        self._calls: list[str] = []

    def text(self, dense: bool) -> str:
        """The module.

        Args:
            dense: write each finished block as rows to the outputs, whose pointers follow the inputs' in the table.
                Otherwise the block is the result (of the last samples, if they fill several); its lanes without a
                sample are zero.
        """
        layout, block, lanes = self._layout, self._block, self._host.lanes
        finish = print_clear(len(layout.outputs), block)
        if dense:
            finish = print_store(layout.tape, layout.outputs, block, lanes)
        return "\n".join(
            [
                declarations(lanes),
                PASSES,
                constant_table(layout.tape.constants.tolist(), lanes),
                print_load(layout.tape, layout.inputs, block, lanes),
                *self._pieces(),
                finish,
                self._run(dense),
            ]
        )

    def _pieces(self) -> list[str]:
        """The straight-line pieces; notes the calls that run them and the function passes between them."""
        pieces = []
        for entry, arguments, results, in_place in self._layout.passes:
            if not in_place:
                pieces.append(self._piece(entry.arguments, "%work", arguments))
            size = len(entry.arguments)
            columns = [arguments, *(results + place * size for place in range(len(entry.results)))]
            self._calls.append(pass_call(entry.name, columns, 8 * self._block, size * self._block))
        pieces.append(self._piece(list(self._layout.outputs), "%block", 0))
        return pieces

    def _piece(self, targets: Sequence[int], base: str, first_column: int) -> str:
        """A function that computes some operands for every lane of a block."""
        name = f"piece{len(self._calls)}"
        self._calls.append(f"call void @{name}(ptr %work, ptr %block, ptr @constants)")
        lanes, stride, w = self._host.lanes, 8 * self._block, Writer(self._host.lanes)
        here = {p: w.value(f"getelementptr inbounds double, ptr {p}, i64 %i") for p in ("%work", "%block")}

        def source(value: int) -> tuple[str, int]:
            if value < 0:
                return "%constants", 8 * lanes * ~value
            return here["%work"], stride * self._layout.work[value]

        slots = print_allocated(
            w,
            lower(self._layout.tape, targets, self._host.fused),
            source,
            lambda slot: (here[base], stride * (first_column + slot)),
            lambda slot: ("%spilled", 8 * lanes * slot),
            self._host.registers - SPARE,
        )
        return f"""
define internal void @{name}(ptr noalias %work, ptr noalias %block, ptr %constants) {{
entry:
%spilled = alloca [{max(slots, 1)} x {w.kind}], align 16
br label %loop
loop:
%i = phi i64 [ 0, %entry ], [ %next, %loop ]
{w.text()}
%next = add i64 %i, {lanes}
%more = icmp ult i64 %next, {self._block}
br i1 %more, label %loop, label %end
end:
ret void
}}
"""

    def _run(self, dense: bool) -> str:
        """The function that goes from block to block."""
        finish = "@store(ptr %table, i64 %start, i64 %count, ptr %block)" if dense else "@clear(i64 %count, ptr %block)"
        calls = "\n".join(self._calls)
        return f"""
define void @run(ptr %table, i64 %first, i64 %stop, ptr %work, ptr %block) {{
entry:
%some = icmp ult i64 %first, %stop
br i1 %some, label %loop, label %end
loop:
%start = phi i64 [ %first, %entry ], [ %next, %loop ]
%left = sub i64 %stop, %start
%whole = icmp uge i64 %left, {self._block}
%count = select i1 %whole, i64 {self._block}, i64 %left
call void @load(ptr %table, i64 %start, i64 %count, ptr %work)
{calls}
call void {finish}
%next = add i64 %start, {self._block}
%more = icmp ult i64 %next, %stop
br i1 %more, label %loop, label %end
end:
ret void
}}
"""


def _used_inputs(tape: Tape) -> list[int]:
    """The input elements that some operation or output reads, in order."""
    read = {element for output in tape.outputs for element in output.elements.ravel().tolist()}
    for _, code, left, right in tape.steps():
        read.update((left, right) if is_binary(code) else (left,))
    return [value for value in range(tape.input_size) if value in read]
