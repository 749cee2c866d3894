"""Moving samples between rows in the caller's arrays and columns of a block, as LLVM's text.

Registers hold the same element of several rows, and several elements of a row, in turn. The last rows of a block
overlap the ones before them, so that only blocks shorter than a register need the scalar loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from dynid.tape.llvm.ir import Writer, number
from dynid.tape.tape import Tape

__all__ = ["print_clear", "print_load", "print_store", "rows_of"]

STREAMED = 2
"""Most lanes with which rows are written one after the other."""

AHEAD = 4
"""Squares from the one that is written to the one whose memory is fetched (experiment: 2 to 6 are best; farther on, the
first-level cache loses lines again before they are written)."""


def print_load(tape: Tape, columns: Mapping[int, int], block: int, lanes: int) -> str:
    """The function ``load(table, start, count, work)``: rows of inputs into columns; lanes beyond count become zero.

    Args:
        tape: the program.
        columns: column of each used input element.
        block: samples per block.
        lanes: samples per register.
    """
    w = Writer(lanes)
    w.line("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    w.line("define internal void @load(ptr %table, i64 %start, i64 %count, ptr noalias %work) {\nentry:")
    sources: list[tuple[str, int, dict[int, int]]] = []
    first = 0
    for place, entry in enumerate(tape.inputs):
        used = {position: columns[first + position] for position in range(entry.size) if first + position in columns}
        if used:
            sources.append((rows_of(w, place, entry.size), entry.size, used))
        first += entry.size
    w.line(f"%partial = icmp ult i64 %count, {block}\nbr i1 %partial, label %zero, label %full\nzero:")
    w.line(f"call void @llvm.memset.p0.i64(ptr %work, i8 0, i64 {8 * block * len(columns)}, i1 false)")
    w.line("br label %full\nfull:")

    def move() -> None:
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
    """Move the used elements of some rows to their columns."""
    lanes = len(rows)
    square = size - size % lanes if lanes > 1 else 0
    for start in range(0, square, lanes):
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
        columns: column of each computed output element.
        block: samples per block.
        lanes: numbers per register.
    """
    constants: list[float] = tape.constants.tolist()
    parts = []
    for place, output in enumerate(tape.outputs, len(tape.inputs)):
        elements = [columns[e] if e >= 0 else constants[~e] for e in output.elements.ravel().tolist()]
        parts.append(_store_output(f"store{place}", place, elements, block, lanes))
    w = Writer(lanes)
    w.line("define internal void @store(ptr %table, i64 %start, i64 %count, ptr noalias %block) {")
    for place in range(len(tape.inputs), len(tape.inputs) + len(tape.outputs)):
        w.line(f"call void @store{place}(ptr %table, i64 %start, i64 %count, ptr %block)")
    w.line("ret void\n}\n")
    return "\n".join([*parts, w.text()])


def _store_output(name: str, place: int, elements: Sequence[int | float], block: int, lanes: int) -> str:
    """The same for one output; each of its elements is a column (int), or a value (float) where it is constant."""
    w = Writer(lanes)
    w.line(f"define internal void @{name}(ptr %table, i64 %start, i64 %count, ptr noalias %block) {{\nentry:")
    pointer = rows_of(w, place, len(elements))

    def move() -> None:
        source = w.value("getelementptr inbounds double, ptr %block, i64 %row")
        rows = _row_pointers(w, pointer, len(elements))
        if lanes > STREAMED and len(elements) >= lanes:
            _store_squares(w, rows, elements, source, 8 * block)
            return
        for lane, row in enumerate(rows):
            _store_row(w, row, lane, elements, source, 8 * block)

    _wide_loop(w, move)
    w.line("br label %one\none:\n%single = phi i64 [ 0, %narrow ], [ %following, %one ]")
    source = w.value("getelementptr inbounds double, ptr %block, i64 %single")
    _store_numbers(w, _row_pointer(w, pointer, len(elements), "%single"), enumerate(elements), source, 8 * block)
    w.line("%following = add i64 %single, 1\n%others = icmp ult i64 %following, %count")
    w.line("br i1 %others, label %one, label %end\n}\n")
    return w.text()


def _store_squares(w: Writer, rows: Sequence[str], elements: Sequence[int | float], source: str, stride: int) -> None:
    """Fill consecutive rows; where the last elements do not fill a register, it takes some before them once more."""
    starts = [min(start, len(elements) - w.lanes) for start in range(0, len(elements), w.lanes)]
    for square, start in enumerate(starts):
        group = elements[start : start + w.lanes]
        turns, later = divmod(square + AHEAD, len(starts))
        fetched = 8 * (turns * w.lanes * len(elements) + starts[later])
        for row, register in zip(rows, _square(w, group, source, stride), strict=True):
            w.line(f"call void @llvm.prefetch.p0(ptr {w.address(row, fetched)}, i32 1, i32 3, i32 1)")
            w.store(register, row, 8 * start)


def _square(w: Writer, group: Sequence[int | float], source: str, stride: int) -> list[str]:
    """Some elements of as many rows as there are lanes, each row's in a register."""
    if any(isinstance(e, int) for e in group):
        return _transpose(w, [w.load(source, stride * e) if isinstance(e, int) else w.constant(e) for e in group])
    return [_constants(group)] * w.lanes


def _constants(group: Sequence[float]) -> str:
    return f"<{', '.join(f'double {number(e)}' for e in group)}>"


def _store_row(w: Writer, row: str, lane: int, elements: Sequence[int | float], source: str, stride: int) -> None:
    """Fill one row from a lane of the columns."""
    whole = len(elements) - len(elements) % w.lanes if w.lanes == STREAMED else 0
    for start in range(0, whole, w.lanes):
        group = elements[start : start + w.lanes]
        value = _constants(group)
        if any(isinstance(e, int) for e in group):
            pair = [w.load(source, stride * e) if isinstance(e, int) else w.constant(e) for e in group]
            value = _shuffle(w, (pair[0], pair[1]), (lane, w.lanes + lane))
        w.store(value, row, 8 * start)
    rest = ((position, elements[position]) for position in range(whole, len(elements)))
    _store_numbers(w, row, rest, w.address(source, 8 * lane), stride)


def _store_numbers(w: Writer, row: str, elements: Iterable[tuple[int, int | float]], source: str, stride: int) -> None:
    """Store elements one by one at their positions in a row."""
    for position, element in elements:
        value = number(element)
        if isinstance(element, int):
            value = w.value(f"load double, ptr {w.address(source, stride * element)}, align 8")
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
    """Pointer to the block's first row in an array of the table."""
    slot = w.address("%table", 8 * place)
    array = w.value(f"load ptr, ptr {slot}, align 8")
    elements = w.value(f"mul i64 %start, {size}")
    return w.value(f"getelementptr inbounds double, ptr {array}, i64 {elements}")


def _row_pointer(w: Writer, array: str, size: int, row: str = "%row") -> str:
    """Pointer to a row."""
    elements = w.value(f"mul i64 {row}, {size}")
    return w.value(f"getelementptr inbounds double, ptr {array}, i64 {elements}")


def _row_pointers(w: Writer, array: str, size: int) -> list[str]:
    """Pointers to row ``%row`` and those that follow, one per lane."""
    first = _row_pointer(w, array, size)
    return [w.address(first, 8 * size * row) for row in range(w.lanes)]


def _wide_loop(w: Writer, move: Callable[[], None]) -> None:
    """Print ``move`` in a loop over ``%row``, a register of rows at a time; fewer rows continue at ``narrow``."""
    lanes = w.lanes
    w.line(
        f"br label %ready\nready:\n%enough = icmp uge i64 %count, {lanes}\nbr i1 %enough, label %wide, label %narrow"
    )
    w.line(f"wide:\n%i = phi i64 [ 0, %ready ], [ %next, %wide ]\n%next = add i64 %i, {lanes}")
    w.line(f"%fits = icmp ule i64 %next, %count\n%last = sub i64 %count, {lanes}")
    w.line("%row = select i1 %fits, i64 %i, i64 %last")
    move()
    w.line("%more = icmp ult i64 %next, %count\nbr i1 %more, label %wide, label %end\nend:\nret void\nnarrow:")


def _transpose(w: Writer, registers: list[str]) -> list[str]:
    """Transpose a square of registers by exchanging halves, quarters and so on."""
    lanes = len(registers)
    distance = lanes // 2
    while distance:
        result = list(registers)
        for i in range(lanes):
            if not i & distance:
                pair = (registers[i], registers[i + distance])
                low = [j if not j & distance else lanes + j - distance for j in range(lanes)]
                high = [j + distance if not j & distance else lanes + j for j in range(lanes)]
                result[i], result[i + distance] = (_shuffle(w, pair, low), _shuffle(w, pair, high))
        registers = result
        distance //= 2
    return registers


def _shuffle(w: Writer, pair: tuple[str, str], order: Sequence[int]) -> str:
    mask = ", ".join(f"i32 {place}" for place in order)
    return w.value(f"shufflevector {w.kind} {pair[0]}, {w.kind} {pair[1]}, <{len(order)} x i32> <{mask}>")
