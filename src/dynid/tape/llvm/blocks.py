"""Print the LLVM module that runs a tape (a recorded program) over many samples, block after block.

`dynid.tape.llvm.backend.BlockKernel` compiles and calls it. For B samples at a time there are two arrays
``[column][B]``: the work area, with the used input elements and the arguments and results of function passes, and the
block, with the computed output elements. A *function pass* computes the sine, say, of whole columns; between two passes
is a *piece* of arithmetic, printed as a function of its own. Inputs are transposed from rows into the work area,
everything is computed while it stays in the first-level cache, then the block is copied out as rows (a *dense* kernel),
or machine code of another module reads it. An input that is stored in such blocks itself (*tiled*:
``[block][element][B]``) is read in place.

A vector register holds one number of several samples, one per *lane*. LLVM's text: a name with ``%`` is a register,
assigned once, and one with ``@`` a function or table. Code is divided into blocks that begin with a label and end with
a branch (``br``). ``phi [a, %x], [b, %y]`` is a if control came from block x, and b if it came from block y: so loop
variables get their next value. ``getelementptr`` adds an offset to a pointer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynid.tape.llvm.engine import Host
from dynid.tape.llvm.functions import PASSES, pass_call
from dynid.tape.llvm.ir import Writer, constant_table, declarations, print_piece
from dynid.tape.llvm.row_blocks import print_clear, print_load, print_store, rows_of
from dynid.tape.lower import FunctionPass, lower, stages
from dynid.tape.operations import is_binary
from dynid.tape.tape import Tape

CACHE_LINE = 64
"""Size of a cache line [bytes], on recent x86 and most ARM processors."""

PREFETCH = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
"""Declaration of the instruction that fetches memory into the cache ahead of its use, for tiled inputs."""


class PlacedPass(NamedTuple):
    """A function pass and its columns in the work area."""

    entry: FunctionPass
    """The pass."""
    arguments: int
    """Column of the first argument; the others follow."""
    results: int
    """Column of the first result; the others follow, function after function."""
    in_place: bool
    """Whether the arguments are inputs or earlier results that stand there already and need not be copied."""


class BlockLayout:
    """Which column of the work area and of the block holds which value of the tape.

    Values are numbered as in the tape: input elements first, then results of operations; constants are negative.

    Attributes:
        tape: the program.
        inputs: column, in the work area, of each used input element.
        work: column, in the work area, of each used input element and each function result.
        passes: the function passes in order, with their columns.
        work_columns: number of columns of the work area.
        outputs: column, in the output block, of each computed output element.
        constants: column, behind these, of each constant output element; only dense blocks have them.
        tiles: for each element of a tiled input, (number of the input, number of the element in it).
    """

    def __init__(self, tape: Tape, tiled: Sequence[str] = ()) -> None:
        self.tape = tape
        self.tiles = _tile_places(tape, tiled)
        read = [value for value in _used_inputs(tape) if value not in self.tiles]
        self.inputs = {value: column for column, value in enumerate(read)}
        self.work = dict(self.inputs)
        self.passes: list[PlacedPass] = []
        self.work_columns = len(self.inputs)
        for entry in stages(tape):
            self._place(entry)
        elements = (element for output in tape.outputs for element in output.elements.ravel().tolist())
        distinct = dict.fromkeys(elements)
        self.outputs = {value: column for column, value in enumerate(e for e in distinct if e >= 0)}
        constants = (e for e in distinct if e < 0)
        self.constants = {value: column for column, value in enumerate(constants, len(self.outputs))}

    def _place(self, entry: FunctionPass) -> None:
        """Give a pass its columns; arguments that already stand side by side are not copied."""
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
        """Prepare to print.

        Args:
            layout: the columns.
            block: samples per block (B).
            host: the processor.
        """
        self._layout = layout
        self._block = block
        self._host = host
        self._calls: list[str] = []  # what the loop over blocks calls, in order; filled by `_pieces`
        self._tiles = {place: f"%tile{place}" for place, _ in layout.tiles.values()}

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
            finish = print_store(layout.tape, layout.outputs | layout.constants, block, lanes)
        return "\n".join(
            [
                declarations(lanes),
                PREFETCH,
                PASSES,
                constant_table(layout.tape.constants.tolist(), lanes),
                print_load(layout.tape, layout.inputs, block, lanes),
                *self._pieces(),
                finish,
                self._run(dense),
            ]
        )

    def _pieces(self) -> list[str]:
        """The pieces, one function each; `_calls` gets the calls of them and of the passes between them."""
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
        """A function that computes some operands for every sample of a block, ``lanes`` samples at a time.

        Args:
            targets: the operands of the tape.
            base: ``%work`` or ``%block``, where they are stored.
            first_column: column of the first of them; the others follow.
        """
        name = f"piece{len(self._calls)}"
        arrays = ["%work", "%block", *self._tiles.values()]
        self._calls.append(f"call void @{name}({', '.join(f'ptr {array}' for array in arrays)}, ptr @constants)")
        lanes = self._host.lanes
        stride = 8 * self._block  # bytes from column to column
        w = Writer(lanes)
        here = {array: w.value(f"getelementptr inbounds double, ptr {array}, i64 %i") for array in arrays}

        def source(value: int) -> tuple[str, int]:
            """Base pointer and byte offset at which a value is read."""
            if value < 0:
                return "%constants", 8 * lanes * ~value
            if value in self._layout.tiles:
                place, element = self._layout.tiles[value]
                return here[self._tiles[place]], stride * element
            return here["%work"], stride * self._layout.work[value]

        lowered = lower(self._layout.tape, targets, self._host.fused)
        print_piece(w, lowered, source, lambda slot: (here[base], stride * (first_column + slot)))
        return f"""
define internal void @{name}({", ".join(f"ptr noalias {array}" for array in arrays)}, ptr %constants) {{
entry:
br label %loop
loop:
%i = phi i64 [ 0, %entry ], [ %next, %loop ]
{self._with_prefetches(w.text())}
%next = add i64 %i, {lanes}
%more = icmp ult i64 %next, {self._block}
br i1 %more, label %loop, label %end
end:
ret void
}}
"""

    def _with_prefetches(self, body: str) -> str:
        """The body of a piece's loop, with instructions that prefetch the next block of every tiled input.

        The processor would not do so itself, because it sees reads of a few numbers from every column, all far apart.
        Each turn of the loop fetches its share of the next block. The instructions are spread evenly over the body,
        because only few cache lines can be on their way at a time.
        """
        block, lanes = self._block, self._host.lanes
        lines: list[str] = []
        fetched: list[str] = []
        for place, tile in self._tiles.items():
            size = 8 * self._layout.tape.inputs[place].size  # bytes per sample
            lines.append(f"%share{place} = mul i64 %i, {size}")
            lines.append(f"%line{place} = getelementptr i8, ptr {tile}, i64 %share{place}")
            for offset in range(size * block, size * (block + lanes), CACHE_LINE):
                address = f"%fetched{place}_{offset}"
                fetched.append(f"{address} = getelementptr i8, ptr %line{place}, i64 {offset}")
                fetched[-1] += f"\ncall void @llvm.prefetch.p0(ptr {address}, i32 0, i32 3, i32 1)"
        printed = body.splitlines()
        step = max(1, len(printed) // max(1, len(fetched)))
        for place, line in enumerate(printed):
            if place % step == 0 and fetched:
                lines.append(fetched.pop(0))
            lines.append(line)
        return "\n".join([*lines, *fetched])

    def _run(self, dense: bool) -> str:
        """The entry ``run``: for every block `load`, the pieces and passes, and `store` or `clear`."""
        finish = "@store(ptr %table, i64 %start, i64 %count, ptr %block)" if dense else "@clear(i64 %count, ptr %block)"
        begin = "call void @fill(ptr %block)" if dense else ""
        calls = "\n".join(self._calls)
        w, tape = Writer(1), self._layout.tape
        for place, name in self._tiles.items():
            w.line(f"{name} = bitcast ptr {rows_of(w, place, tape.inputs[place].size)} to ptr")
        return f"""
define void @run(ptr %table, i64 %first, i64 %stop, ptr %work, ptr %block) {{
entry:
{begin}
%some = icmp ult i64 %first, %stop
br i1 %some, label %loop, label %end
loop:
%start = phi i64 [ %first, %entry ], [ %next, %loop ]
%left = sub i64 %stop, %start
%whole = icmp uge i64 %left, {self._block}
%count = select i1 %whole, i64 {self._block}, i64 %left
call void @load(ptr %table, i64 %start, i64 %count, ptr %work)
{w.text()}
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
    # not by np.unique, which loads numpy.ma: that takes a quarter of the time of a first call
    binary = np.array([is_binary(code) for code in range(int(tape.opcodes.max(initial=0)) + 1)])
    operands = [
        tape.operands[:, 0],
        tape.operands[binary[tape.opcodes], 1],
        *(output.elements.ravel() for output in tape.outputs),
    ]
    places = np.concatenate(operands)
    read = np.zeros(tape.input_size, dtype=bool)
    read[places[(places >= 0) & (places < tape.input_size)]] = True
    return [int(place) for place in np.flatnonzero(read)]


def _tile_places(tape: Tape, tiled: Sequence[str]) -> dict[int, tuple[int, int]]:
    """Element among all inputs -> number of its input and of the element in it, for the tiled inputs."""
    places: dict[int, tuple[int, int]] = {}
    first = 0
    for place, entry in enumerate(tape.inputs):
        if entry.name in tiled:
            places |= {first + element: (place, element) for element in range(entry.size)}
        first += entry.size
    return places
