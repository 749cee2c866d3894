"""Gram matrices ``W.T @ W`` of a tape's outputs, computed block by block, so that the rows W never leave the cache.

`dynid.data_reduction` sums the normal equations of long logs with it: the tape (a recorded program) computes one row of
a regressor and torques for every sample, and W (N, w) has these rows. `LlvmGram` is what others use; `TilePrinter`
prints the LLVM code. Terms:

- *block*: B samples of all values of the compiled tape that are needed, stored as columns, [column][B].
- *panel*: the columns of one output of the tape, a vector that is a row of the matrix W.
- *tile*: T x T products of columns, whose sums stay in registers; a *corner* is a tile on the diagonal, of which only
  the upper triangle is computed.
- *lane*: one number of a vector register.

The machine code that multiplies columns does not depend on the tape. Its entry is::

    void reduce(run, table, start, stop, work, block, panels, widths, offsets, solvers, scratch, straight, sums)

For each block of samples it calls ``run`` (see :mod:`~dynid.tape.llvm.blocks`), which leaves zeros behind the last
sample, so that products may always cover whole blocks; then, for each panel, whose columns lie
at the byte ``offsets`` in the block, it adds the products of its columns to the ``sums``, one sum per lane, tile by
tile in registers. Where ``solvers`` is not null, the columns are first turned into those of ``Z = W @ inv(R0)`` (R0 is
an upper triangular preconditioner). They are written to ``scratch``, at the consecutive offsets ``straight``.

LLVM's text: a name with ``%`` is a register, assigned once, and one with ``@`` a function or table. Code is divided
into blocks that begin with a label and end with a branch (``br``). ``phi [a, %x], [b, %y]`` is a if control came from
block x, and b if it came from block y: so loop variables get their next value. ``getelementptr`` adds an offset to a
pointer. The docstrings give each printed function in Python.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.tape.llvm.backend import REDUCE_BLOCK, BlockKernel, address, pointer_table
from dynid.tape.llvm.engine import MachineCode, host, load_code
from dynid.tape.llvm.ir import Writer, declarations
from dynid.tape.tape import Tape


class TilePrinter:
    """Prints the LLVM module with the entry ``reduce`` and the functions that it calls, the innermost first.

    Args:
        lanes: samples per register.
        tile: columns per tile, T.
        block: samples per block.
        fused: whether the processor has fused multiply-add.
    """

    def __init__(self, lanes: int, tile: int, block: int, fused: bool) -> None:
        self._lanes = lanes
        self._tile = tile
        self._block = block
        self._fused = fused
        # Number of registers of samples that a solve handles together; their number must divide that of a block.
        self._group = next(size for size in (tile, 5, 3, 2, 1) if block // lanes % size == 0)

    def text(self) -> str:
        """The text of the module."""
        sizes = range(1, self._tile + 1)
        return "\n".join(
            [
                declarations(self._lanes),
                *(self._products(f"corner{c}", c, c, corner=True) for c in sizes),
                *(self._products(f"tile{c}", self._tile, c, corner=False) for c in sizes),
                *(self._solve(c) for c in sizes),
                *(self._choices(name) for name in ("corner", "tile", "solve")),
                self._gram(),
                self._solve_panel(),
                self._reduce(),
            ]
        )

    def _choices(self, name: str) -> str:
        """Table of pointers to the functions ``name1`` to ``nameT`` for 1 to T columns; its entry 0 is never called."""
        entries = ", ".join(f"ptr @{name}{max(size, 1)}" for size in range(self._tile + 1))
        return f"@{name}s = private constant [{self._tile + 1} x ptr] [{entries}]\n"

    def _products(self, name: str, rows: int, columns: int, corner: bool) -> str:
        """``void name(base, left, right, sums)``: add the products of left and right columns of a block to the sums.

        In Python, with the columns of the block at the byte offsets in ``left`` and ``right``::

            for i in range(0, block, lanes):
                for place, (r, c) in enumerate(pairs):
                    sums[place] += left[r][i : i + lanes] * right[c][i : i + lanes]

        Args:
            name: Name of the function.
            rows: Number of left columns.
            columns: Number of right columns.
            corner: Whether left and right columns are the same; each pair is then multiplied once.
        """
        w = Writer(self._lanes)
        size = 8 * self._lanes
        pairs = [(r, c) for r in range(rows) for c in range(columns) if not corner or c >= r]
        w.line(f"define internal void @{name}(ptr %base, ptr %left, ptr %right, ptr noalias %sums) {{\nentry:")
        left = pointers(w, "%base", "%left", rows)
        right = left if corner else pointers(w, "%base", "%right", columns)
        opening = [w.load("%sums", size * place) for place in range(len(pairs))]
        w.line("br label %loop\nloop:\n%i = phi i64 [ 0, %entry ], [ %next, %loop ]")
        for place, start in enumerate(opening):
            w.line(f"%sum{place} = phi {w.kind} [ {start}, %entry ], [ %new{place}, %loop ]")
        a = [w.load(element(w, pointer, "%i"), 0) for pointer in left]
        b = a if corner else [w.load(element(w, pointer, "%i"), 0) for pointer in right]
        for place, (r, c) in enumerate(pairs):
            multiply_add(w, self._fused, f"%new{place}", a[r], b[c], f"%sum{place}")
        w.line(f"%next = add i64 %i, {self._lanes}\n%more = icmp ult i64 %next, {self._block}")
        w.line("br i1 %more, label %loop, label %end\nend:")
        for place in range(len(pairs)):
            w.store(f"%new{place}", "%sums", size * place)
        w.line("ret void\n}\n")
        return w.text()

    def _solve(self, columns: int) -> str:
        """``void solve(base, offsets, solver, k, width, scratch)``: columns k to k + columns - 1 of ``W @ inv(R0)``.

        ``solver`` is row-major (width, width): minus R0, with the reciprocals of its diagonal. Forward substitution, in
        Python, with Z in the scratch, where the columns before k are known already::

            for i in range(0, block, lanes * group):  # registers %s, %t, %u: t, before, during and after the loop on j
                t = W[i : i + lanes * group, k : k + columns]
                for j in range(k):
                    t += outer(Z[i : i + lanes * group, j], solver[j, k : k + columns])
                _finish(t)
        """
        w = Writer(self._lanes)
        group = range(self._group)
        step = 8 * self._lanes  # bytes of a register
        cells = [(g, c) for g in group for c in range(columns)]
        w.line(f"define internal void @solve{columns}(ptr %base, ptr %offsets, ptr %solver, i64 %k, i64 %width,")
        w.line("ptr noalias %scratch) {\nentry:")
        sources = pointers(w, "%base", "%offsets", columns)
        w.line(f"%row_bytes = mul i64 %width, 8\n%place = mul i64 %k, {8 * self._block}")
        w.line("%target = getelementptr inbounds i8, ptr %scratch, i64 %place")
        w.line("%above = getelementptr inbounds double, ptr %solver, i64 %k\n%skip = mul i64 %k, %row_bytes")
        w.line("%corner = getelementptr inbounds i8, ptr %above, i64 %skip\n%some = icmp ugt i64 %k, 0")
        w.line("br label %samples\nsamples:\n%i = phi i64 [ 0, %entry ], [ %i_next, %finish ]")
        here = [element(w, pointer, "%i") for pointer in sources]
        opening = {(g, c): w.load(here[c], step * g) for g, c in cells}
        w.line("br i1 %some, label %earlier, label %finish\nearlier:")
        w.line("%j = phi i64 [ 0, %samples ], [ %j_next, %earlier ]")
        w.line("%row = phi ptr [ %above, %samples ], [ %row_next, %earlier ]")
        w.line("%from = phi ptr [ %scratch, %samples ], [ %from_next, %earlier ]")
        for g, c in cells:
            w.line(f"%s{g}_{c} = phi {w.kind} [ {opening[g, c]}, %samples ], [ %t{g}_{c}, %earlier ]")
        z = [w.load(element(w, "%from", "%i"), step * g) for g in group]
        factors = splats(w, "%row", columns)
        for g, c in cells:
            multiply_add(w, self._fused, f"%t{g}_{c}", z[g], factors[c], f"%s{g}_{c}")
        w.line("%j_next = add i64 %j, 1\n%row_next = getelementptr inbounds i8, ptr %row, i64 %row_bytes")
        w.line(f"%from_next = getelementptr inbounds i8, ptr %from, i64 {8 * self._block}")
        w.line("%j_more = icmp ult i64 %j_next, %k\nbr i1 %j_more, label %earlier, label %finish\nfinish:")
        for g, c in cells:
            w.line(f"%u{g}_{c} = phi {w.kind} [ {opening[g, c]}, %samples ], [ %t{g}_{c}, %earlier ]")
        self._finish(w, columns)
        w.line(f"%i_next = add i64 %i, {self._lanes * self._group}\n%i_more = icmp ult i64 %i_next, {self._block}")
        w.line("br i1 %i_more, label %samples, label %end\nend:\nret void\n}\n")
        return w.text()

    def _finish(self, w: Writer, columns: int) -> None:
        """Print the substitution among the columns of the tile itself, whose values t are ``%u``, and the stores.

        In Python::

        for p in range(columns):
            Z[..., k + p] = t[:, p] * solver[k + p, k + p]
            t[:, p + 1 :] += outer(Z[..., k + p], solver[k + p, k + p + 1 : k + columns])
        """
        values = {(g, c): f"%u{g}_{c}" for g in range(self._group) for c in range(columns)}
        to = element(w, "%target", "%i")
        row = "%corner"
        for pivot in range(columns):
            factors = splats(w, row, columns, first=pivot)
            for g in range(self._group):
                values[g, pivot] = w.binary("fmul", values[g, pivot], factors[0])
                w.store(values[g, pivot], to, 8 * (self._block * pivot + self._lanes * g))
                for c in range(pivot + 1, columns):
                    name = f"%v{g}_{pivot}_{c}"
                    multiply_add(w, self._fused, name, values[g, pivot], factors[c - pivot], values[g, c])
                    values[g, c] = name
            if pivot + 1 < columns:
                row = w.value(f"getelementptr inbounds i8, ptr {row}, i64 %row_bytes")

    def _gram(self) -> str:
        """``ptr gram(base, offsets, width, sums)``: all products of a panel's columns; returns the end of its sums.

        In Python, where ``size`` counts the sums that a call added to::

            for a in range(0, width, T):
                height = min(T, width - a)
                corner[height](base, offsets[a:], offsets[a:], sums)
                sums += size
                for b in range(a + T, width, T):  # only where a has all T columns
                    tile[min(T, width - b)](base, offsets[a:], offsets[b:], sums)
                    sums += size
            return sums
        """
        T, size = self._tile, 8 * self._lanes
        return f"""
define internal ptr @gram(ptr %base, ptr %offsets, i64 %width, ptr %first) {{
entry:
  br label %rows
rows:
  %a = phi i64 [ 0, %entry ], [ %a_next, %row_end ]
  %sums = phi ptr [ %first, %entry ], [ %after, %row_end ]
  %left = getelementptr inbounds i64, ptr %offsets, i64 %a
  %rest = sub i64 %width, %a
  %full = icmp uge i64 %rest, {T}
  %height = select i1 %full, i64 {T}, i64 %rest
  %corner_slot = getelementptr inbounds ptr, ptr @corners, i64 %height
  %corner = load ptr, ptr %corner_slot, align 8
  call void %corner(ptr %base, ptr %left, ptr %left, ptr %sums)
  %height_more = add i64 %height, 1
  %twice = mul i64 %height, %height_more
  %corner_bytes = mul i64 %twice, {size // 2}
  %beside = getelementptr inbounds i8, ptr %sums, i64 %corner_bytes
  %a_next = add i64 %a, {T}
  %any = icmp ult i64 %a_next, %width
  br i1 %any, label %tiles, label %row_end
tiles:
  %b = phi i64 [ %a_next, %rows ], [ %b_next, %tiles ]
  %here = phi ptr [ %beside, %rows ], [ %there, %tiles ]
  %right = getelementptr inbounds i64, ptr %offsets, i64 %b
  %b_rest = sub i64 %width, %b
  %b_full = icmp uge i64 %b_rest, {T}
  %breadth = select i1 %b_full, i64 {T}, i64 %b_rest
  %tile_slot = getelementptr inbounds ptr, ptr @tiles, i64 %breadth
  %tile = load ptr, ptr %tile_slot, align 8
  call void %tile(ptr %base, ptr %left, ptr %right, ptr %here)
  %tile_bytes = mul i64 %breadth, {T * size}
  %there = getelementptr inbounds i8, ptr %here, i64 %tile_bytes
  %b_next = add i64 %b, {T}
  %b_more = icmp ult i64 %b_next, %width
  br i1 %b_more, label %tiles, label %row_end
row_end:
  %after = phi ptr [ %beside, %rows ], [ %there, %tiles ]
  br i1 %any, label %rows, label %end
end:
  ret ptr %after
}}
"""

    def _solve_panel(self) -> str:
        """``void solve_panel(base, offsets, width, solver, scratch)``: ``W @ inv(R0)`` of a whole panel.

        In Python::

            for k in range(0, width, T):
                solve[min(T, width - k)](base, offsets[k:], solver, k, width, scratch)
        """
        T = self._tile
        return f"""
define internal void @solve_panel(ptr %base, ptr %offsets, i64 %width, ptr %solver, ptr %scratch) {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %rest = sub i64 %width, %k
  %full = icmp uge i64 %rest, {T}
  %breadth = select i1 %full, i64 {T}, i64 %rest
  %slot = getelementptr inbounds ptr, ptr @solves, i64 %breadth
  %solve = load ptr, ptr %slot, align 8
  %columns = getelementptr inbounds i64, ptr %offsets, i64 %k
  call void %solve(ptr %base, ptr %columns, ptr %solver, i64 %k, i64 %width, ptr %scratch)
  %next = add i64 %k, {T}
  %more = icmp ult i64 %next, %width
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""

    def _reduce(self) -> str:
        """The entry ``reduce``, see the module's docstring.

        In Python::

            for start in range(first, stop, block_samples):
                run(table, start, min(start + block_samples, stop), work, block)
                for width, offsets, solver, sums in panels:
                    if solvers:
                        solve_panel(block, offsets, width, solver, scratch)
                        gram(scratch, straight, width, sums)
                    else:
                        gram(block, offsets, width, sums)
        """
        return f"""
define void @reduce(ptr %run, ptr %table, i64 %first, i64 %stop, ptr %work, ptr %block, i64 %panels, ptr %widths,
    ptr %offsets, ptr %solvers, ptr %scratch, ptr %straight, ptr %sums) {{
entry:
  %some = icmp ult i64 %first, %stop
  %solved = icmp ne ptr %solvers, null
  br i1 %some, label %blocks, label %end
blocks:
  %start = phi i64 [ %first, %entry ], [ %next, %block_end ]
  %next = add i64 %start, {self._block}
  %whole = icmp ult i64 %next, %stop
  %until = select i1 %whole, i64 %next, i64 %stop
  call void %run(ptr %table, i64 %start, i64 %until, ptr %work, ptr %block)
  br label %panel
panel:
  %p = phi i64 [ 0, %blocks ], [ %p_next, %panel_end ]
  %columns = phi ptr [ %offsets, %blocks ], [ %columns_next, %panel_end ]
  %solver = phi ptr [ %solvers, %blocks ], [ %solver_next, %panel_end ]
  %into = phi ptr [ %sums, %blocks ], [ %into_next, %panel_end ]
  %width_slot = getelementptr inbounds i64, ptr %widths, i64 %p
  %width = load i64, ptr %width_slot, align 8
  br i1 %solved, label %solve, label %direct
solve:
  call void @solve_panel(ptr %block, ptr %columns, i64 %width, ptr %solver, ptr %scratch)
  %after_solved = call ptr @gram(ptr %scratch, ptr %straight, i64 %width, ptr %into)
  br label %panel_end
direct:
  %after_direct = call ptr @gram(ptr %block, ptr %columns, i64 %width, ptr %into)
  br label %panel_end
panel_end:
  %into_next = phi ptr [ %after_solved, %solve ], [ %after_direct, %direct ]
  %columns_next = getelementptr inbounds i64, ptr %columns, i64 %width
  %entries = mul i64 %width, %width
  %solver_next = getelementptr double, ptr %solver, i64 %entries
  %p_next = add i64 %p, 1
  %p_more = icmp ult i64 %p_next, %panels
  br i1 %p_more, label %panel, label %block_end
block_end:
  br i1 %whole, label %blocks, label %end
end:
  ret void
}}
"""


def multiply_add(w: Writer, fused: bool, name: str, left: str, right: str, addend: str) -> None:
    """Print ``name = left * right + addend`` in every lane, for names of registers."""
    if fused:
        suffix = "f64" if w.lanes == 1 else f"v{w.lanes}f64"
        w.line(f"{name} = call {w.kind} @llvm.fma.{suffix}({w.kind} {left}, {w.kind} {right}, {w.kind} {addend})")
    else:
        w.line(f"{name} = fadd {w.kind} {w.binary('fmul', left, right)}, {addend}")


def splats(w: Writer, row: str, columns: int, first: int = 0) -> list[str]:
    """Load the numbers ``first`` to ``columns - 1`` of a row, each into all lanes of a register of its own."""
    result = []
    place = first
    while place < columns:
        # With two lanes a pair is one load, and Arm multiplies by an element of a register at no cost.
        pair = w.lanes == 2 and place + 1 < columns
        kind = "<2 x double>" if pair else "<1 x double>"
        loaded = w.value(f"load {kind}, ptr {w.address(row, 8 * place)}, align 8")
        for lane in range(2 if pair else 1):
            mask = ", ".join([f"i32 {lane}"] * w.lanes)
            spread = f"shufflevector {kind} {loaded}, {kind} poison, <{w.lanes} x i32> <{mask}>"
            result.append(w.value(spread))
        place += 2 if pair else 1
    return result


def pointers(w: Writer, base: str, offsets: str, count: int) -> list[str]:
    """Print pointers to the columns at the first ``count`` byte offsets of a table; returns their names."""
    result = []
    for place in range(count):
        offset = w.value(f"load i64, ptr {w.address(offsets, 8 * place)}, align 8")
        result.append(w.value(f"getelementptr inbounds i8, ptr {base}, i64 {offset}"))
    return result


def element(w: Writer, pointer: str, index: str) -> str:
    """Pointer to element ``index`` of an array of doubles."""
    return w.value(f"getelementptr inbounds double, ptr {pointer}, i64 {index}")


Integers = npt.NDArray[np.int64]


class LlvmGram:
    """Computes the Gram matrices of the outputs of one tape; each output is a vector (w,), a row of a matrix (N, w)."""

    def __init__(self, tape: Tape) -> None:
        """Compile the tape; the code that multiplies is the same for all tapes.

        Raises:
            ArgumentError: An element of an output is constant.
        """
        kernel = BlockKernel(tape, REDUCE_BLOCK)
        column = {value: place for place, value in enumerate(kernel.columns)}  # value of the tape -> its column
        panels = [output.elements.ravel().tolist() for output in tape.outputs]
        if any(element not in column for panel in panels for element in panel):
            raise ArgumentError("an output that is constant has no column in a block")
        self._kernel = kernel
        self._columns = [[column[element] for element in panel] for panel in panels]
        self._widths: Integers = np.array([len(panel) for panel in panels], dtype=np.int64)
        column_bytes = 8 * kernel.block_samples
        self._offsets: Integers = np.array([column_bytes * c for cs in self._columns for c in cs], dtype=np.int64)
        self._straight: Integers = column_bytes * np.arange(self._widths.max(initial=0), dtype=np.int64)
        self._places = _places(self._widths.tolist(), _tile())
        self._code = _code()  # kept, so that the machine code is not freed
        self._reduce = self._code.entry("reduce", 13)  # 13 arguments

    def rows(self, inputs: Sequence[Floats]) -> list[Floats]:
        """For each output the matrix (N, w) of its values.

        Args:
            inputs: One C-contiguous (N, size) array per input of the tape.
        """
        samples, kernel = len(inputs[0]), self._kernel
        values = np.empty((len(kernel.columns), samples))
        with kernel.memory() as (work, block):
            for start in range(0, samples, kernel.block_samples):
                stop = min(start + kernel.block_samples, samples)
                kernel.run(inputs, start, stop, work, block)
                values[:, start:stop] = block[:, : stop - start]
        return [values[columns].T for columns in self._columns]

    def grams(self, inputs: Sequence[Floats], preconditioners: Sequence[Floats] | None = None) -> list[Floats]:
        """For each output ``W.T @ W`` (w, w), where W (N, w) has its values as rows; other threads may run meanwhile.

        Args:
            inputs: One C-contiguous (N, size) array per input of the tape.
            preconditioners: For each output an upper triangular R0 (w, w); W is then replaced by ``W @ inv(R0)``.
        """
        solvers = None if preconditioners is None else np.concatenate([_solver(R0) for R0 in preconditioners])
        lanes = host().lanes
        # of every panel one sum per lane and pair of columns, of which (i, j) and (j, i) are one
        sums = np.zeros(lanes * int(np.sum(self._widths * (self._widths + 1) // 2)))
        plan = (len(self._widths), address(self._widths), address(self._offsets))
        scratch = np.empty(self._straight.size * self._kernel.block_samples)
        solver = None if solvers is None else address(solvers)
        reduction = (solver, address(scratch), address(self._straight), address(sums))
        with self._kernel.memory() as areas:
            work, block = map(address, areas)
            table = pointer_table(inputs)
            self._reduce(self._kernel.address, table, 0, len(inputs[0]), work, block, *plan, *reduction)
        total = sums[::lanes].copy()  # the lanes of each sum are added
        for lane in range(1, lanes):
            total += sums[lane::lanes]
        flat = total[self._places]  # all Gram matrices, row-major and one after the other
        widths = self._widths.tolist()
        ends = list(itertools.accumulate(width * width for width in widths))
        return [flat[e - w * w : e].reshape(w, w) for w, e in zip(widths, ends, strict=True)]


def _places(widths: Sequence[int], tile: int) -> Integers:
    """For each element of all Gram matrices, row-major and one after the other, the number of the sum that holds it."""
    result = [np.zeros(0, dtype=np.int64)]
    first = 0
    for width in widths:
        rows, columns = _tile_order(width, tile)
        square = np.zeros((width, width), dtype=np.int64)
        square[rows, columns] = square[columns, rows] = first + np.arange(len(rows))
        result.append(square.ravel())
        first += len(rows)
    return np.concatenate(result)


def _solver(R0: Floats) -> Floats:
    """The table that `TilePrinter` solves with: minus R0, with the reciprocals of its diagonal; flat, row-major."""
    table = -R0
    np.fill_diagonal(table, 1.0 / np.diagonal(R0))
    return table.ravel()


@functools.lru_cache(maxsize=256)
def _tile_order(width: int, tile: int) -> tuple[Integers, Integers]:
    """Row and column in the Gram matrix of each sum, in the order in which the tiles are computed."""
    pairs = []
    for top in range(0, width, tile):
        rows = range(top, min(top + tile, width))
        pairs += [(row, column) for row in rows for column in rows if column >= row]
        for left in range(top + tile, width, tile):
            pairs += [(row, column) for row in rows for column in range(left, min(left + tile, width))]
    order = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return order[:, 0], order[:, 1]


def _tile() -> int:
    """Columns per tile: T * T sums and 2 T columns must fit into the vector registers."""
    return 3 if host().registers < 32 else 4


@functools.cache
def _code() -> MachineCode:
    """The machine code for this processor, compiled once."""
    lanes, tile = host().lanes, _tile()
    key = f"gram|lanes {lanes}|tile {tile}|block {REDUCE_BLOCK}"
    return load_code(key, lambda: TilePrinter(lanes, tile, REDUCE_BLOCK, host().fused).text())
