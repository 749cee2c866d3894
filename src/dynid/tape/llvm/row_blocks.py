"""Moving samples between rows in the caller's arrays and columns of a block, printed as LLVM code.

A compiled tape (recorded program) works on blocks of B samples. A caller's array has a row per sample; a block stores
each element of the B samples as a column, so that one vector register loads the same element of several samples, one
per *lane*. Moving is therefore a transposition: of ``lanes`` rows, pieces of ``lanes`` elements are loaded into as many
registers, a *square*, and exchanged between the registers, which then hold pieces of columns; or the other way round.

`print_load` prints the way into a block, `print_store` the way out of it, `print_clear` zeros for missing samples.
``lanes`` rows are moved at a time. The last rows of a block that do not fill this number are moved together with some
of the rows before, a second time, so that only blocks with fewer rows than lanes need a loop over single rows.

In the printed functions ``table`` is an array of pointers to the caller's inputs, then outputs; ``start`` is the
block's first sample, and ``count`` the number of its samples.

LLVM's text: a name with ``%`` is a register, assigned once, and one with ``@`` a function or table. Code is divided
into blocks that begin with a label and end with a branch (``br``). ``phi [a, %x], [b, %y]`` is a if control came from
block x, and b if it came from block y: so loop variables get their next value. ``getelementptr`` adds an offset to a
pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dynid.tape.llvm.ir import Writer, number
from dynid.tape.tape import Tape

MOST_STREAMED_LANES = 2
"""With so many lanes or fewer, rows are written one after the other, see `print_store` (experiment)."""

PREFETCH_SQUARES = 4
"""Number of squares between the one that is written and the one whose memory is fetched (experiment: 2 to 6 are best;
with more, the first-level cache loses lines again before they are written)."""


class RowElement(NamedTuple):
    """One element of an output's rows."""

    column: int
    """Number of its column in a block."""

    constant: float | None
    """Its value, if it is the same in all rows; None if it is not."""


def print_load(tape: Tape, columns: Mapping[int, int], block: int, lanes: int) -> str:
    """The function ``load(table, start, count, work)``: rows of inputs into columns of the work area.

    Where the block has fewer than B samples, the work area is set to zero before, so that no lane is undefined.

    Args:
        tape: the program.
        columns: column of each used input element.
        block: samples per block.
        lanes: samples per register.
    """
    w = Writer(lanes)
    w.line("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    w.line("define internal void @load(ptr %table, i64 %start, i64 %count, ptr noalias %work) {\nentry:")
    # per used input: pointer to its first row, elements of a row, and element -> column
    sources: list[tuple[str, int, dict[int, int]]] = []
    first = 0  # number of the input's first element among those of all inputs
    for place, entry in enumerate(tape.inputs):
        used = {position: columns[first + position] for position in range(entry.size) if first + position in columns}
        if used:
            sources.append((rows_of(w, place, entry.size), entry.size, used))
        first += entry.size
    w.line(f"%partial = icmp ult i64 %count, {block}\nbr i1 %partial, label %zero, label %full\nzero:")
    w.line(f"call void @llvm.memset.p0.i64(ptr %work, i8 0, i64 {8 * block * len(columns)}, i1 false)")
    w.line("br label %full\nfull:")

    def move() -> None:
        """Print the code that moves as many rows as there are lanes."""
        to = w.value("getelementptr inbounds double, ptr %work, i64 %row")
        for pointer, size, used in sources:
            _load_rows(w, _row_pointers(w, pointer, size), used, size, to, 8 * block)

    _wide_loop(w, move)
    w.line("br label %one\none:\n%single = phi i64 [ 0, %narrow ], [ %following, %one ]")
    to = w.value("getelementptr inbounds double, ptr %work, i64 %single")
    for pointer, size, used in sources:
        _load_rows(w, [_row_pointer(w, pointer, size, "%single")], used, size, to, 8 * block)
    w.line("%following = add i64 %single, 1\n%others = icmp ult i64 %following, %count")
    w.line("br i1 %others, label %one, label %end\n}\n")
    return w.text()


def _load_rows(w: Writer, rows: Sequence[str], used: Mapping[int, int], size: int, to: str, stride: int) -> None:
    """Print the code that moves the used elements of some rows to their columns.

    Args:
        w: the function to append to.
        rows: pointers to the rows, as many as lanes, or one.
        used: element of a row -> its column.
        size: elements of a row.
        to: pointer to the first row's place in the first column.
        stride: bytes from one column to the next.
    """
    lanes = len(rows)
    square = size - size % lanes if lanes > 1 else 0  # elements that are moved in squares
    for start in range(0, square, lanes):  # element start + lane of the rows becomes register number ``lane``
        if any(position in used for position in range(start, start + lanes)):
            registers = _transpose(w, [w.load(row, 8 * start) for row in rows])
            for lane, register in enumerate(registers):
                if start + lane in used:
                    w.store(register, to, stride * used[start + lane])
    for position in range(square, size):
        if position in used:
            for lane, row in enumerate(rows):
                value = w.value(f"load double, ptr {w.address(row, 8 * position)}, align 8")
                w.line(f"store double {value}, ptr {w.address(to, stride * used[position] + 8 * lane)}, align 8")


def print_store(tape: Tape, columns: Mapping[int, int], block: int, lanes: int) -> str:
    """The function ``store(table, start, count, block)``: columns of a finished block into rows of the outputs.

    With two lanes each row is written from its beginning to its end, and then the next: processors see such a stream
    and do not read the memory that is about to be overwritten; two rows at a time would take more than twice as long.
    With more lanes as many rows are written together, by transposing squares of registers. No processor sees a stream
    in that, so each square fetches the memory of a later one.

    Args:
        tape: the program.
        columns: column of each output element; constants have columns, too, which ``fill(block)`` fills.
        block: samples per block.
        lanes: numbers per register.
    """
    constants: list[float] = tape.constants.tolist()
    # operand ~k stands for constant k
    parts = [_print_fill({column: constants[~e] for e, column in columns.items() if e < 0}, block, lanes)]
    w = Writer(lanes)
    w.line("define internal void @store(ptr %table, i64 %start, i64 %count, ptr noalias %block) {")
    for place, output in enumerate(tape.outputs, len(tape.inputs)):
        elements = [RowElement(columns[e], None if e >= 0 else constants[~e]) for e in output.elements.ravel().tolist()]
        if elements:
            parts.append(_store_output(place, elements, block, lanes))
            w.line(f"call void @store{place}(ptr %table, i64 %start, i64 %count, ptr %block)")
    w.line("ret void\n}\n")
    return "\n".join([*parts, w.text()])


def _print_fill(constants: Mapping[int, float], block: int, lanes: int) -> str:
    """The function ``fill(block)``: writes constants to all samples of their columns.

    Args:
        constants: column -> value.
        block: samples per block.
        lanes: numbers per register.
    """
    w = Writer(lanes)
    w.line("define internal void @fill(ptr noalias %block) {")
    for column, value in constants.items():
        for lane in range(0, block, lanes):
            w.store(w.constant(value), "%block", 8 * (block * column + lane))
    w.line("ret void\n}\n")
    return w.text()


def _store_output(place: int, elements: Sequence[RowElement], block: int, lanes: int) -> str:
    """The function ``store<place>``, which `print_store` calls for one output.

    Args:
        place: number of the output's array in the table of arrays.
        elements: the elements of a row.
        block: samples per block.
        lanes: numbers per register.
    """
    w = Writer(lanes)
    size = len(elements)
    stride = 8 * block  # bytes from one column to the next
    is_square = lanes > MOST_STREAMED_LANES and size >= lanes
    w.line(_integers(f"@columns{place}", [stride * element.column for element in elements]))
    if is_square:
        w.line(_integers(f"@squares{place}", _plan_squares(elements, stride, lanes)))
    w.line(f"define internal void @store{place}(ptr %table, i64 %start, i64 %count, ptr noalias %block) {{\nentry:")
    pointer = rows_of(w, place, size)

    def move() -> None:
        """Print the code that moves as many rows as there are lanes."""
        source = w.value("getelementptr inbounds double, ptr %block, i64 %row")
        if is_square:
            _store_squares(w, f"@squares{place}", _row_pointer(w, pointer, size), source, size)
            return
        for lane, row in enumerate(_row_pointers(w, pointer, size)):
            _store_row(w, row, lane, elements, source, stride)

    _wide_loop(w, move, "rows_done" if is_square else "wide")
    w.line("br label %one\none:\n%single = phi i64 [ 0, %narrow ], [ %following, %stored_one ]")
    source = w.value("getelementptr inbounds double, ptr %block, i64 %single")
    row = _row_pointer(w, pointer, size, "%single")
    w.line("br label %element\nelement:\n%position = phi i64 [ 0, %one ], [ %position_next, %element ]")
    column = w.value(f"load i64, ptr {w.value(f'getelementptr i64, ptr @columns{place}, i64 %position')}, align 8")
    value = w.value(f"load double, ptr {w.value(f'getelementptr i8, ptr {source}, i64 {column}')}, align 8")
    w.line(f"store double {value}, ptr {w.value(f'getelementptr double, ptr {row}, i64 %position')}, align 8")
    w.line(f"%position_next = add i64 %position, 1\n%more_elements = icmp ult i64 %position_next, {size}")
    w.line("br i1 %more_elements, label %element, label %stored_one\nstored_one:")
    w.line("%following = add i64 %single, 1\n%others = icmp ult i64 %following, %count")
    w.line("br i1 %others, label %one, label %end\n}\n")
    return w.text()


def _plan_squares(elements: Sequence[RowElement], stride: int, lanes: int) -> list[int]:
    """The table that `_store_squares` follows: 2 + lanes numbers for each square.

    These are the place of the square in a row [bytes]; the place of the square whose memory is to be fetched, from the
    same row [bytes]; the offsets of its columns in a block [bytes], or -1 for all of them if the square is zero. Where
    the last elements of a row do not fill a register, the last square overlaps the one before.
    """
    size = len(elements)
    starts = [min(start, size - lanes) for start in range(0, size, lanes)]
    plan: list[int] = []
    for square, start in enumerate(starts):
        # the square to fetch is in one of the next groups of rows if the row ends before it
        turns, later = divmod(square + PREFETCH_SQUARES, len(starts))
        group = elements[start : start + lanes]
        is_zero = all(e.constant is not None and number(e.constant) == number(0.0) for e in group)
        plan += [8 * start, 8 * (turns * lanes * size + starts[later])]
        plan += [-1 if is_zero else stride * e.column for e in group]
    return plan


def _store_squares(w: Writer, plan: str, row: str, source: str, size: int) -> None:
    """Print a loop over the squares of as many consecutive rows as lanes; unrolled code would take longer to compile.

    Args:
        w: the function to append to.
        plan: name of the table of `_plan_squares`.
        row: pointer to the first row.
        source: pointer to the first row's place in the first column.
        size: elements of a row.
    """
    offsets = [8 * size * lane for lane in range(w.lanes)]
    step = 8 * (2 + w.lanes)
    w.line("br label %square\nsquare:\n%at = phi i64 [ 0, %wide ], [ %at_next, %stored ]")
    w.line(f"%at_next = add i64 %at, {step}\n%entry_at = getelementptr i8, ptr {plan}, i64 %at")

    def plan_pointer(place: int, base: str) -> str:
        """Pointer at an offset from the base: number ``place`` of the square's entry in the plan."""
        offset = w.value(f"load i64, ptr {w.address('%entry_at', 8 * place)}, align 8")
        return w.value(f"getelementptr i8, ptr {base}, i64 {offset}")

    later = plan_pointer(1, row)
    for offset in offsets:
        w.line(f"call void @llvm.prefetch.p0(ptr {w.address(later, offset)}, i32 1, i32 3, i32 1)")
    column = w.value(f"load i64, ptr {w.address('%entry_at', 16)}, align 8")
    w.line(f"%is_zero = icmp slt i64 {column}, 0\nbr i1 %is_zero, label %zeros, label %values\nzeros:")
    to = plan_pointer(0, row)
    for offset in offsets:
        w.store("zeroinitializer", to, offset)
    w.line("br label %stored\nvalues:")
    registers = [w.load(plan_pointer(2 + lane, source), 0) for lane in range(w.lanes)]
    to = plan_pointer(0, row)
    for register, offset in zip(_transpose(w, registers), offsets, strict=True):
        w.store(register, to, offset)
    w.line(f"br label %stored\nstored:\n%more_squares = icmp ult i64 %at_next, {step * -(-size // w.lanes)}")
    w.line("br i1 %more_squares, label %square, label %rows_done\nrows_done:")


def _integers(name: str, values: Sequence[int]) -> str:
    """The definition of a constant table of integers."""
    return (
        f"{name} = private constant [{len(values)} x i64] [{', '.join(f'i64 {value}' for value in values)}], align 64"
    )


def _store_row(w: Writer, row: str, lane: int, elements: Sequence[RowElement], source: str, stride: int) -> None:
    """Print the code that fills one row from one lane of the columns.

    Args:
        w: the function to append to.
        row: pointer to the row.
        lane: number of the row among those of the register.
        elements: the elements of a row.
        source: pointer to the register's place in the first column.
        stride: bytes from one column to the next.
    """
    # with two lanes two columns are combined to two elements of the row; what is left over is moved singly
    whole = len(elements) - len(elements) % w.lanes if w.lanes == MOST_STREAMED_LANES else 0
    for start in range(0, whole, w.lanes):
        group = elements[start : start + w.lanes]
        if any(constant is None for _, constant in group):  # load both columns, and take this row's lane of each
            pair = [w.load(source, stride * at) if value is None else w.constant(value) for at, value in group]
            register = _shuffle(w, (pair[0], pair[1]), (lane, w.lanes + lane))
        else:  # both elements are constants
            register = f"<{', '.join(f'double {number(value)}' for _, value in group if value is not None)}>"
        w.store(register, row, 8 * start)
    for position in range(whole, len(elements)):
        value = w.value(f"load double, ptr {w.address(source, stride * elements[position].column + 8 * lane)}, align 8")
        w.line(f"store double {value}, ptr {w.address(row, 8 * position)}, align 8")


def print_clear(columns: int, block: int) -> str:
    """The function ``clear(count, block)``: zeros in the lanes of a block that hold no sample."""
    return f"""
define internal void @clear(i64 %count, ptr noalias %block) {{
entry:
%partial = icmp ult i64 %count, {block}
br i1 %partial, label %rows, label %end
rows:
%column = phi i64 [ 0, %entry ], [ %column_next, %next_column ]
%base = mul i64 %column, {block}
br label %lanes
lanes:
%lane = phi i64 [ %count, %rows ], [ %lane_next, %lanes ]
%place = add i64 %base, %lane
%pointer = getelementptr inbounds double, ptr %block, i64 %place
store double 0.0, ptr %pointer, align 8
%lane_next = add i64 %lane, 1
%more_lanes = icmp ult i64 %lane_next, {block}
br i1 %more_lanes, label %lanes, label %next_column
next_column:
%column_next = add i64 %column, 1
%more = icmp ult i64 %column_next, {columns}
br i1 %more, label %rows, label %end
end:
ret void
}}
"""


def rows_of(w: Writer, place: int, size: int) -> str:
    """Pointer to the block's first row in array ``place`` of the table; ``size`` is the number of elements of a row."""
    slot = w.address("%table", 8 * place)
    return _row_pointer(w, w.value(f"load ptr, ptr {slot}, align 8"), size, "%start")


def _row_pointer(w: Writer, array: str, size: int, row: str = "%row") -> str:
    """Pointer to row number ``row`` (a register) of an array with ``size`` elements per row."""
    elements = w.value(f"mul i64 {row}, {size}")
    return w.value(f"getelementptr inbounds double, ptr {array}, i64 {elements}")


def _row_pointers(w: Writer, array: str, size: int) -> list[str]:
    """Pointers to row ``%row`` and those that follow, one per lane."""
    first = _row_pointer(w, array, size)
    return [w.address(first, 8 * size * row) for row in range(w.lanes)]


def _wide_loop(w: Writer, move: Callable[[], None], end: str = "wide") -> None:
    """Print a loop over ``%row`` with the body of ``move``, which handles as many rows as there are lanes.

    A block with fewer rows goes to the label ``narrow`` instead, where the caller prints a loop over single rows::

        for i in range(0, count, lanes):
            row = min(i, count - lanes)  # the last rows overlap those before
            move(row)

    Args:
        w: the function to append to.
        move: prints the instructions for some rows.
        end: label of the last block of code that it prints.
    """
    lanes = w.lanes
    w.line(
        f"br label %ready\nready:\n%enough = icmp uge i64 %count, {lanes}\nbr i1 %enough, label %wide, label %narrow"
    )
    w.line(f"wide:\n%i = phi i64 [ 0, %ready ], [ %next, %{end} ]\n%next = add i64 %i, {lanes}")
    w.line(f"%fits = icmp ule i64 %next, %count\n%last = sub i64 %count, {lanes}")
    w.line("%row = select i1 %fits, i64 %i, i64 %last")
    move()
    w.line("%more = icmp ult i64 %next, %count\nbr i1 %more, label %wide, label %end\nend:\nret void\nnarrow:")


def _transpose(w: Writer, registers: list[str]) -> list[str]:
    """Transpose a square of registers: exchange halves between registers, then quarters, and so on."""
    lanes = len(registers)
    distance = lanes // 2
    while distance:
        result = list(registers)
        for i in range(lanes):
            if not i & distance:  # registers i and i + distance exchange half of their numbers
                pair = (registers[i], registers[i + distance])
                low = [j if not j & distance else lanes + j - distance for j in range(lanes)]
                high = [j + distance if not j & distance else lanes + j for j in range(lanes)]
                result[i], result[i + distance] = (_shuffle(w, pair, low), _shuffle(w, pair, high))
        registers = result
        distance //= 2
    return registers


def _shuffle(w: Writer, pair: tuple[str, str], order: Sequence[int]) -> str:
    """A register of numbers of two others; ``order`` has their places in the two registers put one after the other."""
    mask = ", ".join(f"i32 {place}" for place in order)
    return w.value(f"shufflevector {w.kind} {pair[0]}, {w.kind} {pair[1]}, <{len(order)} x i32> <{mask}>")
