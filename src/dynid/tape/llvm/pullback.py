"""Gradients of functions of cross products ``W.T @ W`` with respect to the motion that W is computed from.

The design of excitations uses them: W has rows of the regressor, and a criterion depends on ``W.T @ W``. A tape (a
recorded program) computes one row per sample; each output, over all N samples, is a matrix W (N, w), called a *panel*.
If the criterion's gradient with respect to ``W.T @ W`` is C (w, w), that with respect to W is the *cotangent*
``W @ M`` with ``M = C + C.T``, and the tape of the gradient (`vjp`) carries it on to the inputs.

The machine code does all of this block by block (a block is a few samples, stored by columns), so that W and the
cotangents never leave the cache: the forward kernel computes the rows W, `PullbackPrinter` prints the product with M,
and the backward kernel runs the tape of the gradient on the products.
`dynid.data_reduction.cross_products.NumpyPullback` computes the same with NumPy.

LLVM's text: a name with ``%`` is a register, assigned once, and one with ``@`` a function or table. Code is divided
into blocks that begin with a label and end with a branch (``br``). ``phi [a, %x], [b, %y]`` is a if control came from
block x, and b if it came from block y: so loop variables get their next value. ``getelementptr`` adds an offset to a
pointer. The docstrings give each printed function in Python.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

import numpy as np

from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.tape.adjoint import vjp
from dynid.tape.llvm.backend import BlockKernel, address, pointer_table
from dynid.tape.llvm.engine import Host, MachineCode, host, load_code
from dynid.tape.llvm.gram import element, multiply_add, pointers, splats
from dynid.tape.llvm.ir import Writer, declarations
from dynid.tape.tape import Tape, drop_unused

BLOCK = 24
"""Samples per block: rows and cotangents of a robot with seven joints fit into the first-level cache (experiment)."""


def join_outputs(tape: Tape) -> Tape:
    """The same program with all outputs in one vector, called ``output``."""
    elements = np.concatenate([output.elements.ravel() for output in tape.outputs])
    return drop_unused(tape.opcodes, tape.operands, tape.constants, tape.inputs, {"output": elements})


class LlvmPullback:
    """Runs one tape, whose outputs are vectors without constants, and the tape of its gradient."""

    def __init__(self, tape: Tape, wrt: Sequence[str]) -> None:
        """Compile.

        Args:
            tape: the program.
            wrt: names of the inputs to differentiate with respect to.
        """
        self._forward = BlockKernel(tape, BLOCK)
        column_of = {value: column for column, value in enumerate(self._forward.columns)}
        elements = [element for output in tape.outputs for element in output.elements.ravel().tolist()]
        if any(element not in column_of for element in elements):
            raise ArgumentError("an output that is constant has no column in a block")
        self._backward = BlockKernel(vjp(join_outputs(tape), "output", wrt), BLOCK, dense=True, tiled=("cotangent",))
        self._widths = np.array([output.size for output in tape.outputs], dtype=np.int64)
        # byte offset of each element's column in a block
        self._offsets = np.array([8 * BLOCK * column_of[element] for element in elements], dtype=np.int64)
        self._code = _code()  # kept, because the entry may be called only as long as the code exists
        self._entry = self._code.entry("pull", 17)

    def run(self, inputs: Sequence[Floats], matrices: Sequence[Floats], gradients: Sequence[Floats]) -> None:
        """Fill the gradients.

        Args:
            inputs: one C-contiguous (N, size) array per input of the tape.
            matrices: for each output the matrix M (w, w) that its rows are multiplied by.
            gradients: one C-contiguous (N, size) array per differentiated input, written in place.
        """
        cotangents = np.empty((len(self._offsets), BLOCK))
        all_matrices = np.concatenate([np.ravel(matrix) for matrix in matrices])
        forward_table = pointer_table(inputs)
        backward_table = pointer_table([*inputs, cotangents, *gradients])
        with self._forward.memory() as forward_memory, self._backward.memory() as backward_memory:
            self._entry(  # the arguments of `PullbackPrinter._pull`
                self._forward.address,
                self._backward.address,
                forward_table,
                backward_table,
                0,
                len(inputs[0]),
                *map(address, (*forward_memory, *backward_memory)),
                len(self._widths),
                address(self._widths),
                address(self._offsets),
                address(all_matrices),
                address(cotangents),
                8 * len(self._offsets),
                ctypes.addressof(backward_table) + 8 * len(inputs),
            )


@functools.cache
def _code() -> MachineCode:
    """The machine code that joins two kernels; it is the same for all tapes."""
    key = f"pullback|lanes {host().lanes}|registers {host().registers}|block {BLOCK}|fused {host().fused}"
    return load_code(key, lambda: PullbackPrinter(host(), BLOCK).text())


class PullbackPrinter:
    """Prints the module that joins a forward and a backward kernel.

    Args:
        host: the processor.
        block: samples per block.
    """

    def __init__(self, host: Host, block: int) -> None:
        self._lanes = host.lanes
        self._block = block
        self._fused = host.fused
        # The product has so many columns (_tile) for so many registers of samples (_group) in registers at a time.
        self._tile = 3 if host.registers < 32 else 6
        self._group = next(size for size in (4, 3, 2, 1) if block // host.lanes % size == 0)

    def text(self) -> str:
        """The module. It is the same for all tapes: its entry calls the machine code of two kernels, block by block."""
        table = ", ".join(f"ptr @multiply{max(size, 1)}" for size in range(self._tile + 1))
        return "\n".join(
            [
                declarations(self._lanes),
                *(self._multiply(columns) for columns in range(1, self._tile + 1)),
                f"@multiplies = private constant [{self._tile + 1} x ptr] [{table}]\n",
                self._product(),
                self._pull(),
            ]
        )

    def _multiply(self, columns: int) -> str:
        """``void multiply(base, offsets, width, matrix, target)``: so many columns of ``W @ M`` for a block.

        ``base`` and ``offsets`` say where the columns of W are; ``matrix`` points to the first of the columns in the
        first row of M, which is row-major (width, width). In Python, with ``samples = slice(i, i + lanes * group)``::

            for i in range(0, block, lanes * group):
                t = zeros((lanes * group, columns))  # registers %s before and %t after each turn of the loop on j
                for j in range(width):
                    t += outer(W[samples, j], M[j, :columns])
                target[samples] = t
        """
        w = Writer(self._lanes)
        step = 8 * self._lanes
        cells = [(g, c) for g in range(self._group) for c in range(columns)]
        w.line(f"define internal void @multiply{columns}(ptr %base, ptr %offsets, i64 %width, ptr %matrix,")
        w.line("ptr noalias %target) {\nentry:\n%row_bytes = mul i64 %width, 8")
        w.line("br label %samples\nsamples:\n%i = phi i64 [ 0, %entry ], [ %i_next, %finish ]\nbr label %sum\nsum:")
        w.line("%j = phi i64 [ 0, %samples ], [ %j_next, %sum ]")
        w.line("%row = phi ptr [ %matrix, %samples ], [ %row_next, %sum ]")
        for g, c in cells:
            w.line(f"%s{g}_{c} = phi {w.kind} [ zeroinitializer, %samples ], [ %t{g}_{c}, %sum ]")
        w.line("%place = getelementptr inbounds i64, ptr %offsets, i64 %j")
        source = element(w, pointers(w, "%base", "%place", 1)[0], "%i")
        values = [w.load(source, step * g) for g in range(self._group)]
        factors = splats(w, "%row", columns)
        for g, c in cells:
            multiply_add(w, self._fused, f"%t{g}_{c}", values[g], factors[c], f"%s{g}_{c}")
        w.line("%j_next = add i64 %j, 1\n%row_next = getelementptr inbounds i8, ptr %row, i64 %row_bytes")
        w.line("%j_more = icmp ult i64 %j_next, %width\nbr i1 %j_more, label %sum, label %finish\nfinish:")
        to = element(w, "%target", "%i")
        for g, c in cells:
            w.store(f"%t{g}_{c}", to, 8 * (self._block * c + self._lanes * g))
        w.line(f"%i_next = add i64 %i, {self._lanes * self._group}\n%i_more = icmp ult i64 %i_next, {self._block}")
        w.line("br i1 %i_more, label %samples, label %end\nend:\nret void\n}\n")
        return w.text()

    def _product(self) -> str:
        """``void product(base, offsets, width, matrix, target)``: ``W @ M`` of a panel, `_tile` columns at a time.

        In Python::

            for k in range(0, width, tile):
                multiply[min(tile, width - k)](base, offsets, width, matrix[0, k:], target[:, k:])
        """
        return f"""
define internal void @product(ptr %base, ptr %offsets, i64 %width, ptr %matrix, ptr %target) {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %rest = sub i64 %width, %k
  %full = icmp uge i64 %rest, {self._tile}
  %breadth = select i1 %full, i64 {self._tile}, i64 %rest
  %slot = getelementptr inbounds ptr, ptr @multiplies, i64 %breadth
  %multiply = load ptr, ptr %slot, align 8
  %columns = getelementptr inbounds double, ptr %matrix, i64 %k
  %place = mul i64 %k, {8 * self._block}
  %to = getelementptr inbounds i8, ptr %target, i64 %place
  call void %multiply(ptr %base, ptr %offsets, i64 %width, ptr %columns, ptr %to)
  %next = add i64 %k, {self._tile}
  %more = icmp ult i64 %next, %width
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""

    def _pull(self) -> str:
        """The entry ``pull``.

        In Python::

            for start in range(first, stop, block_samples):
                until = min(start + block_samples, stop)
                forward(inputs, start, until, work, block)
                for width, offsets, matrix, target in panels:
                    product(block, offsets, width, matrix, target)  # target: the panel's place in the cotangents
                slot[0] = cotangents - start * bytes
                backward(table, start, until, back_work, back_block)

        ``slot`` is where the backward kernel's table of pointers has that to the cotangents. For a block that begins at
        sample ``start``, this kernel reads them ``start * bytes`` behind the pointer. As the cotangents of every block
        are written to the same place, the pointer is set back by so much before each block.
        """
        return f"""
define void @pull(ptr %forward, ptr %backward, ptr %inputs, ptr %table, i64 %first, i64 %stop, ptr %work, ptr %block,
    ptr %back_work, ptr %back_block, i64 %panels, ptr %widths, ptr %offsets, ptr %matrices, ptr %cotangents,
    i64 %bytes, ptr %slot) {{
entry:
  %some = icmp ult i64 %first, %stop
  br i1 %some, label %blocks, label %end
blocks:
  %start = phi i64 [ %first, %entry ], [ %next, %block_end ]
  %next = add i64 %start, {self._block}
  %whole = icmp ult i64 %next, %stop
  %until = select i1 %whole, i64 %next, i64 %stop
  call void %forward(ptr %inputs, i64 %start, i64 %until, ptr %work, ptr %block)
  br label %panel
panel:
  %p = phi i64 [ 0, %blocks ], [ %p_next, %panel ]
  %columns = phi ptr [ %offsets, %blocks ], [ %columns_next, %panel ]
  %matrix = phi ptr [ %matrices, %blocks ], [ %matrix_next, %panel ]
  %target = phi ptr [ %cotangents, %blocks ], [ %target_next, %panel ]
  %width_slot = getelementptr inbounds i64, ptr %widths, i64 %p
  %width = load i64, ptr %width_slot, align 8
  call void @product(ptr %block, ptr %columns, i64 %width, ptr %matrix, ptr %target)
  %columns_next = getelementptr inbounds i64, ptr %columns, i64 %width
  %entries = mul i64 %width, %width
  %matrix_next = getelementptr inbounds double, ptr %matrix, i64 %entries
  %size = mul i64 %width, {8 * self._block}
  %target_next = getelementptr inbounds i8, ptr %target, i64 %size
  %p_next = add i64 %p, 1
  %p_more = icmp ult i64 %p_next, %panels
  br i1 %p_more, label %panel, label %block_end
block_end:
  %ahead = mul i64 %start, %bytes
  %back = sub i64 0, %ahead
  %origin = getelementptr i8, ptr %cotangents, i64 %back
  store ptr %origin, ptr %slot, align 8
  call void %backward(ptr %table, i64 %start, i64 %until, ptr %back_work, ptr %back_block)
  br i1 %whole, label %blocks, label %end
end:
  ret void
}}
"""
