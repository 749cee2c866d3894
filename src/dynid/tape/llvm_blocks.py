"""The LLVM module that runs a tape over many samples, block after block.

A block holds B samples as ``[column][B]``: the used input elements, the arguments and results of the functions, and apart
from these the computed output elements. Strides are compile-time constants. Inputs are transposed from rows into the
block, everything is computed within it while it stays in the first-level cache, and the finished block is copied out.
"""

from __future__ import annotations

from collections.abc import Sequence

from dynid.tape.llvm_functions import function_passes, pass_call
from dynid.tape.llvm_ir import Writer, declarations, print_instructions
from dynid.tape.llvm_rows import print_clear, print_load, print_store
from dynid.tape.lower import FunctionPass, lower, stages
from dynid.tape.operations import is_binary
from dynid.tape.tape import Tape

__all__ = ["BlockLayout", "BlockPrinter"]


class BlockLayout:
    """Which column holds what.

    Attributes:
        tape: the program.
        inputs: column, in the work area, of each used input element.
        work: column, in the work area, of each used input element and each function result.
        passes: the function passes in order, each with the first of its columns: arguments, then results.
        work_columns: number of columns of the work area.
        outputs: column, in the output block, of each computed output element.
    """

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.inputs = {value: column for column, value in enumerate(_used_inputs(tape))}
        self.work = dict(self.inputs)
        self.passes: list[tuple[FunctionPass, int]] = []
        self.work_columns = len(self.inputs)
        for entry in stages(tape):
            self.passes.append((entry, self.work_columns))
            size = len(entry.arguments)
            for place, results in enumerate(entry.results):
                for value, position in results.items():
                    self.work[value] = self.work_columns + (1 + place) * size + position
            self.work_columns += (1 + len(entry.results)) * size
        elements = (element for output in tape.outputs for element in output.elements.ravel().tolist())
        computed = dict.fromkeys(element for element in elements if element >= 0)
        self.outputs = {value: column for column, value in enumerate(computed)}


class BlockPrinter:
    """Prints the module of a tape.

    Its entry is ``void run(ptr table, i64 start, i64 stop, ptr work, ptr block)``: samples start to stop of the row-major
    inputs in ``table`` go through ``work`` into ``block``.
    """

    def __init__(self, layout: BlockLayout, block: int, lanes: int, fused: bool) -> None:
        self._layout, self._block, self._lanes, self._fused = layout, block, lanes, fused
        self._calls: list[str] = []
        self.pressure = 0
        """Most values alive at once in the last straight-line piece, once printed."""

    def text(self, dense: bool) -> str:
        """The module.

        Args:
            dense: write each finished block as rows to the outputs, whose pointers follow the inputs' in the table.
                Otherwise the block is the result (of the last samples, if they fill several); its lanes without a sample
                are zero.
        """
        layout, block, lanes = self._layout, self._block, self._lanes
        kinds = {entry.name for entry, _ in layout.passes}
        last = (
            print_store(layout.tape, layout.outputs, block, lanes) if dense else print_clear(len(layout.outputs), block)
        )
        return "\n".join(
            [
                declarations(lanes),
                function_passes(lanes, kinds, self._fused),
                print_load(layout.tape, layout.inputs, block, lanes),
                *self._pieces(),
                last,
                self._run(dense),
            ]
        )

    def _pieces(self) -> list[str]:
        """The straight-line pieces; notes the calls that run them and the function passes between them."""
        pieces = []
        for entry, base in self._layout.passes:
            pieces.append(self._piece(entry.arguments, "%work", base))
            self._calls.append(pass_call(entry, base, 8 * self._block, len(entry.arguments) * self._block))
        pieces.append(self._piece(list(self._layout.outputs), "%block", 0))
        return pieces

    def _piece(self, targets: Sequence[int], base: str, first_column: int) -> str:
        """A function that computes some operands for every lane of a block."""
        lowered = lower(self._layout.tape, targets, self._fused)
        self.pressure = lowered.pressure()
        writer = Writer(self._lanes)
        name = f"piece{len(self._calls)}"
        self._calls.append(f"call void @{name}(ptr %work, ptr %block)")
        writer.line(f"define internal void @{name}(ptr noalias %work, ptr noalias %block) {{\nentry:\nbr label %loop")
        writer.line("loop:\n%i = phi i64 [ 0, %entry ], [ %next, %loop ]")
        here = {p: writer.value(f"getelementptr inbounds double, ptr {p}, i64 %i") for p in ("%work", "%block")}
        stride = 8 * self._block
        print_instructions(
            writer,
            lowered,
            self._layout.tape.constants.tolist(),
            lambda value: (here["%work"], stride * self._layout.work[value]),
            lambda slot: (here[base], stride * (first_column + slot)),
        )
        writer.line(f"%next = add i64 %i, {self._lanes}\n%more = icmp ult i64 %next, {self._block}")
        writer.line("br i1 %more, label %loop, label %end\nend:\nret void\n}\n")
        return writer.text()

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
