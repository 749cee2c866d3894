"""The one triangle of all estimators on line: rows are rotated into it as they come ([GautierKhalil1992] section 2).

What is known is a triangle R of the rows ``[W, y]`` so far, with ``|R x - z|^2`` the sum of all squared residuals: the
square-root information form that the paper recommends after Bierman. A new row is appended by Householder reflections,
one per column. No inverse is propagated, so nothing has to be known at the start, and rounding cannot destroy positive
definiteness. `dynid.export` prints the same reflections in C.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from dynid.arrays import Bools, Floats, Ints
from dynid.information import Factor
from dynid.information.triangular import append_many_rows, join_triangles
from dynid.tape.llvm.ir import number
from dynid.tape.program import compiles

RESOLUTION = 1e-11
"""Relative size below which a direction of the scaled columns is rounding (convention: that of triangular factors)."""
SMALLEST_SQUARE = 1e-280
"""Squares of a column below which it is zero (derivation: far below, squares have fewer digits)."""
MOST_BLOCKS = 20
"""Number of blocks at which neighbours are joined (derivation: ten are left, as many as a log in memory has)."""


class RowTriangle:
    """The triangle of all rows so far, changed in place."""

    __slots__ = ("R", "_append", "_work")

    R: Floats
    """(w, w) upper triangle with a diagonal from zero on; the last column is the right side."""

    def __init__(self, width: int) -> None:
        """Start without rows of so many columns, the right side among them."""
        self.R, self._work = np.zeros((width, width)), np.empty(max(width, 1))
        self._append = _compiled() if compiles("auto") else _append_by_lapack

    def update(self, rows: Floats, keep: float = 1.0) -> None:
        """Append rows (m, w), which are overwritten; all that is older is multiplied by ``keep`` first."""
        if keep != 1.0:
            self.R *= keep
        if rows.size:
            self._append(self.R, np.ascontiguousarray(rows), self._work)

    def factor(self, columns: Sequence[int], rows: int) -> Factor:
        """The equations so far, of so many rows, as a `dynid.information.Factor`."""
        return Factor(
            columns=tuple(columns),
            R=self.R[:-1, :-1].copy(),
            z=self.R[:-1, -1].copy(),
            residual=float(self.R[-1, -1] ** 2),
            samples=rows,
            resolution=RESOLUTION,
        )


class GrowingBlocks:
    """For each of some groups of equations, a triangle per block of time, few blocks however many rows arrive.

    Blocks of time tell how errors are correlated (`dynid.estimation.noise`). The length of a log is not known on line,
    so blocks begin with one sample each; when there are `MOST_BLOCKS`, neighbours are joined and the next ones are
    twice as long.
    """

    __slots__ = ("_counts", "_filled", "_length", "_triangles")

    def __init__(self, widths: Sequence[int]) -> None:
        """Start with one block without equations; each group has so many columns, the right side among them."""
        self._triangles = [[RowTriangle(width) for width in widths]]
        self._counts = [np.zeros(len(widths), dtype=np.int64)]
        self._length, self._filled = 1, 0

    @property
    def triangles(self) -> tuple[tuple[Floats, ...], ...]:
        """For each block and group the triangle (w, w)."""
        return tuple(tuple(triangle.R for triangle in block) for block in self._triangles)

    @property
    def counts(self) -> Ints:
        """(blocks, groups) number of equations."""
        return np.array(self._counts)

    def total(self, group: int) -> Floats:
        """(w, w) triangle of all blocks of a group."""
        rows = np.concatenate([block[group].R for block in self._triangles])
        return append_many_rows(np.zeros((rows.shape[1],) * 2), rows)

    def append(self, rows: Sequence[Floats], valid: Bools) -> None:
        """Add the equations of consecutive instants.

        Args:
            rows: For each group (m, w), one row per instant, zero where it does not count.
            valid: (m, groups) whether the group's equation of the instant counts.
        """
        start = 0
        while start < len(valid):
            if self._filled == self._length:
                self._begin_block()
            stop = min(len(valid), start + self._length - self._filled)
            for triangle, mine in zip(self._triangles[-1], rows, strict=True):
                triangle.update(mine[start:stop].copy())
            self._counts[-1] = self._counts[-1] + valid[start:stop].sum(axis=0)
            self._filled += stop - start
            start = stop

    def _begin_block(self) -> None:
        if len(self._triangles) == MOST_BLOCKS:
            for first, second in zip(self._triangles[::2], self._triangles[1::2], strict=True):
                for a, b in zip(first, second, strict=True):
                    a.R[:] = join_triangles(a.R, b.R)
            self._counts = [a + b for a, b in zip(self._counts[::2], self._counts[1::2], strict=True)]
            self._triangles = self._triangles[::2]
            self._length *= 2
        self._triangles.append([RowTriangle(len(triangle.R)) for triangle in self._triangles[-1]])
        self._counts.append(np.zeros_like(self._counts[-1]))
        self._filled = 0


def _append_by_lapack(R: Floats, rows: Floats, work: Floats) -> None:
    R[:] = append_many_rows(R, rows)


@cache
def _compiled() -> Callable[[Floats, Floats, Floats], None]:
    """The reflections in machine code, for any number of rows and columns."""
    from dynid.tape.llvm.backend import address
    from dynid.tape.llvm.engine import load_code, optimise_text

    text = _module()
    code = load_code(f"triangle {text}", lambda: (optimise_text(text), 2))
    entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2)(code.address("append"))

    def append(R: Floats, rows: Floats, work: Floats) -> None:
        entry(address(R), address(rows), address(work), len(R), len(rows))

    append.code = code  # type: ignore[attr-defined]
    return append


def _module() -> str:
    """``append(R, rows, pull, w, m)``: for each column j the reflection that makes rows[:, j] zero.

    With ``norm = |(R[j, j], rows[:, j])|`` and ``head = R[j, j] + norm`` (no cancellation: diagonals stay positive) the
    row ``pull = (head R[j] + rows[:, j]^T rows) / (norm head)`` is taken from both: ``R[j] = head pull - R[j]``,
    ``rows -= rows[:, j] pull``.
    """

    def at(base: str, row: str, column: str, name: str) -> str:
        return (
            f"%{name}_row = mul i64 {row}, %w\n%{name}_at = add i64 %{name}_row, {column}\n"
            f"%{name} = getelementptr inbounds double, ptr {base}, i64 %{name}_at"
        )

    def loop(name: str, first: str, stop: str, body: str) -> str:
        return f"""{name}_head:
br label %{name}_test
{name}_test:
%{name} = phi i64 [ {first}, %{name}_head ], [ %{name}_next, %{name}_end ]
%{name}_more = icmp slt i64 %{name}, {stop}
br i1 %{name}_more, label %{name}_body, label %{name}_done
{name}_body:
{body}
br label %{name}_end
{name}_end:
%{name}_next = add i64 %{name}, 1
br label %{name}_test
{name}_done:"""

    def axpy(name: str, inner: str) -> str:
        """For each row: for each later column some change by ``rows[row, j]``."""
        body = f"""{at("%rows", f"%{name}", "%j", f"{name}_own")}
%{name}_x = load double, ptr %{name}_own
br label %{name}_c_head
{loop(f"{name}_c", "%first", "%w", inner)}"""
        return loop(name, "0", "%m", body)

    add = f"""{at("%rows", "%p", "%p_c", "p_other")}
%p_y = load double, ptr %p_other
%p_to = getelementptr inbounds double, ptr %pull, i64 %p_c
%p_old = load double, ptr %p_to
%p_more_y = fmul contract double %p_x, %p_y
%p_new = fadd contract double %p_old, %p_more_y
store double %p_new, ptr %p_to"""
    take = f"""{at("%rows", "%t", "%t_c", "t_other")}
%t_y = load double, ptr %t_other
%t_from = getelementptr inbounds double, ptr %pull, i64 %t_c
%t_p = load double, ptr %t_from
%t_less = fmul contract double %t_x, %t_p
%t_new = fsub contract double %t_y, %t_less
store double %t_new, ptr %t_other"""
    column = f"""{at("%R", "%j", "%j", "own")}
%first = add i64 %j, 1
%d = load double, ptr %own
%d2 = fmul double %d, %d
store double %d2, ptr %sum
br label %s_head
{
        loop(
            "s",
            "0",
            "%m",
            f'''{at("%rows", "%s", "%j", "s_at_")}
%s_x = load double, ptr %s_at_
%s_2 = fmul contract double %s_x, %s_x
%s_old = load double, ptr %sum
%s_new = fadd contract double %s_old, %s_2
store double %s_new, ptr %sum''',
        )
    }
%square = load double, ptr %sum
%norm = call double @llvm.sqrt.f64(double %square)
%head = fadd double %d, %norm
%live = fcmp ogt double %square, {number(SMALLEST_SQUARE)}
br i1 %live, label %b_head, label %skip
{
        loop(
            "b",
            "%first",
            "%w",
            f'''{at("%R", "%j", "%b", "b_from")}
%b_r = load double, ptr %b_from
%b_h = fmul double %b_r, %head
%b_to = getelementptr inbounds double, ptr %pull, i64 %b
store double %b_h, ptr %b_to''',
        )
    }
br label %p_head
{axpy("p", add)}
br label %r_head
{
        loop(
            "r",
            "%first",
            "%w",
            f'''{at("%R", "%j", "%r", "r_to")}
%r_from = getelementptr inbounds double, ptr %pull, i64 %r
%r_sum = load double, ptr %r_from
%r_unit = fdiv double %r_sum, %norm
%r_p = fdiv double %r_unit, %head
store double %r_p, ptr %r_from
%r_old = load double, ptr %r_to
%r_h = fmul contract double %r_p, %head
%r_new = fsub contract double %r_h, %r_old
store double %r_new, ptr %r_to''',
        )
    }
store double %norm, ptr %own
br label %t_head
{axpy("t", take)}
br label %skip
skip:"""
    return f"""declare double @llvm.sqrt.f64(double)
define void @append(ptr noalias %R, ptr noalias %rows, ptr noalias %pull, i64 %w, i64 %m) {{
entry:
%sum = alloca double
br label %j_head
{loop("j", "0", "%w", column)}
ret void
}}
"""
