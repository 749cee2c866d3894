"""The inner loops of processing as machine code: a cascade of second-order sections, central differences, extents.

All take rows of all joints side by side, as logs have them: one vector per row for the recursion, flat memory for the
others. Without llvmlite, or for very many joints, callers use SciPy or NumPy code, which computes the same numbers.
docs/decisions.md has the measurement against both.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.arrays import Floats

MOST_JOINTS = 16
"""Largest number of columns whose rows fit into registers (convention)."""
LANES = 8
"""Numbers per round of the differences (convention: the width of a vector register, or a multiple of it)."""


class Cascade:
    """Second-order sections run over rows, forwards or backwards, keeping their state from call to call."""

    def __init__(self, function: Callable[..., None], sections: Floats) -> None:
        self._function = function
        ratio = sections / sections[:, 3:4]
        self._numbers = np.ascontiguousarray(np.hstack([ratio[:, :3], -ratio[:, 4:]]))  # b0 b1 b2 -a1 -a2

    def run(self, x: Floats, y: Floats, state: Floats, *, backwards: bool = False) -> None:
        """Filter x (N, k) into y (N, k), which may be x; the state (sections, 2, k) is updated."""
        rows, width = x.shape
        first = 8 * width * (rows - 1) if backwards else 0
        self._function(
            x.ctypes.data + first,
            y.ctypes.data + first,
            rows,
            -width if backwards else width,
            self._numbers.ctypes.data,
            state.ctypes.data,
        )


def cascade(sections: Floats, width: int) -> Cascade | None:
    """The sections (m, 6), as SciPy writes them, for rows of `width` numbers; None where there is no machine code."""
    code = _code(_cascade_text, width, len(sections)) if width <= MOST_JOINTS else None
    if code is None:
        return None
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 2)
    return Cascade(_callable(code, kind), np.asarray(sections, dtype=float))


def differences(x: Floats, first: Floats, second: Floats, dx: Floats, ddx: Floats) -> bool:
    """Fill rows h to N - h of dx and ddx with the differences of x, h = len(second) - 1; all are (N, k), C order.

    Args:
        x: The signal.
        first: (m,) weights of x[i + j] - x[i - j], j = 1 .. m.
        second: (h + 1,) weights of x[i], and of x[i + j] + x[i - j], j = 1 .. h.
        dx: First differences.
        ddx: Second differences.

    Returns:
        False without machine code; then nothing is filled.
    """
    rows, width = x.shape
    half = len(second) - 1
    count = (rows - 2 * half) * width
    code = _code(_differences_text, width, len(first), half) if count >= LANES and half >= len(first) else None
    if code is None:
        return False
    weights = np.concatenate([first, second])
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_void_p)
    places = [array.ctypes.data + 8 * width * half for array in (x, dx, ddx)]
    _callable(code, kind)(*places, count, weights.ctypes.data)
    return True


def extent(x: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Smallest and largest value and largest step from row to row of each column of x (N, k), C order.

    None without machine code, for fewer than three rows, and where a number is not finite.
    """
    rows, width = x.shape
    pairs = (rows - 1) // 2
    code = _code(_extent_text, width) if pairs > 0 and 0 < width <= MOST_JOINTS else None
    if code is None:
        return None
    found = np.empty(6 * width + 2)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    _callable(code, kind)(x.ctypes.data, pairs, found.ctypes.data)
    rest = x[2 * pairs :]
    if not np.isfinite(found[-2:]).all() or not np.isfinite(rest).all():
        return None
    low, high, step = found[:-2].reshape(3, 2, width)
    last = np.abs(rest[1:] - rest[:-1])
    return (
        np.minimum(low.min(axis=0), rest.min(axis=0)),
        np.maximum(high.max(axis=0), rest.max(axis=0)),
        np.maximum(step.max(axis=0), last.max(axis=0, initial=0.0)),
    )


@functools.cache
@functools.cache
def _code(text: Callable[..., str], *numbers: int) -> Any:
    """Machine code of a module, or None; looked for once."""
    try:
        from dynid.tape.llvm.engine import load_code

        printed = text(*numbers)
        return load_code(f"data {hashlib.sha256(printed.encode()).hexdigest()}", lambda: (printed, 2))
    except (ImportError, OSError, RuntimeError):
        return None


def _callable(code: Any, kind: Any) -> Callable[..., None]:
    function: Callable[..., None] = kind(code.address("run"))
    return function


def _cascade_text(width: int, sections: int) -> str:
    """``run(x, y, rows, step, numbers, state)``; transposed direct form II, section after section."""
    row = f"<{width} x double>"
    entry, phis, body, leave = [], [], [], []
    for s in range(sections):
        for c in range(5):
            entry += _splat(f"c{s}{c}", "%numbers", 5 * s + c, row)
        for z in range(2):
            entry.append(f"%p{s}{z} = getelementptr double, ptr %state, i64 {(2 * s + z) * width}")
            entry.append(f"%start{s}{z} = load {row}, ptr %p{s}{z}, align 8")
            phis.append(f"%z{s}{z} = phi {row} [ %start{s}{z}, %entry ], [ %next{s}{z}, %loop ]")
            leave.append(f"store {row} %next{s}{z}, ptr %p{s}{z}, align 8")
        x, y = f"%x{s}", f"%x{s + 1}"
        body.append(f"{y} = {_fma(row, f'%c{s}0', x, f'%z{s}0')}")
        body.append(f"%half{s} = {_fma(row, f'%c{s}1', x, f'%z{s}1')}")
        body.append(f"%next{s}0 = {_fma(row, f'%c{s}3', y, f'%half{s}')}")
        body.append(f"%late{s} = fmul {row} %c{s}4, {y}")
        body.append(f"%next{s}1 = {_fma(row, f'%c{s}2', x, f'%late{s}')}")
    lines = [
        f"declare {row} @llvm.fmuladd.v{width}f64({row}, {row}, {row})",
        "define void @run(ptr %x, ptr %y, i64 %rows, i64 %step, ptr %numbers, ptr %state) {",
        "entry:",
        *entry,
        "%some = icmp sgt i64 %rows, 0",
        "br i1 %some, label %loop, label %done",
        "loop:",
        "%i = phi i64 [ 0, %entry ], [ %j, %loop ]",
        "%px = phi ptr [ %x, %entry ], [ %nx, %loop ]",
        "%py = phi ptr [ %y, %entry ], [ %ny, %loop ]",
        *phis,
        f"%x0 = load {row}, ptr %px, align 8",
        *body,
        f"store {row} %x{sections}, ptr %py, align 8",
        "%nx = getelementptr double, ptr %px, i64 %step",
        "%ny = getelementptr double, ptr %py, i64 %step",
        "%j = add i64 %i, 1",
        "%more = icmp slt i64 %j, %rows",
        "br i1 %more, label %loop, label %leave",
        "leave:",
        *leave,
        "br label %done",
        "done:",
        "ret void",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _differences_text(width: int, reach: int, half: int) -> str:
    """``run(x, dx, ddx, count, weights)`` over flat memory; the last round overlaps the one before."""
    part = f"<{LANES} x double>"
    entry = [line for k in range(reach + half + 1) for line in _splat(f"w{k}", "%weights", k, part)]
    body = ["%at = getelementptr double, ptr %x, i64 %i", f"%x0 = load {part}, ptr %at, align 8"]
    dx, ddx = "zeroinitializer", "%a0"
    body.append(f"%a0 = fmul {part} %w{reach}, %x0")
    for k in range(1, half + 1):
        for name, sign in (("u", 1), ("d", -1)):
            body.append(f"%{name}p{k} = getelementptr double, ptr %at, i64 {sign * k * width}")
            body.append(f"%{name}{k} = load {part}, ptr %{name}p{k}, align 8")
        body.append(f"%s{k} = fadd {part} %u{k}, %d{k}")
        body.append(f"%a{k} = {_fma(part, f'%w{reach + k}', f'%s{k}', ddx)}")
        ddx = f"%a{k}"
        if k <= reach:
            body.append(f"%t{k} = fsub {part} %u{k}, %d{k}")
            body.append(f"%v{k} = {_fma(part, f'%w{k - 1}', f'%t{k}', dx)}")
            dx = f"%v{k}"
    for name, value in (("dx", dx), ("ddx", ddx)):
        body.append(f"%to{name} = getelementptr double, ptr %{name}, i64 %i")
        body.append(f"store {part} {value}, ptr %to{name}, align 8")
    lines = [
        f"declare {part} @llvm.fmuladd.v{LANES}f64({part}, {part}, {part})",
        "define void @run(ptr %x, ptr %dx, ptr %ddx, i64 %count, ptr %weights) {",
        "entry:",
        *entry,
        f"%last = sub i64 %count, {LANES}",
        "br label %loop",
        "loop:",
        "%i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *body,
        f"%far = add i64 %i, {LANES}",
        "%over = icmp sgt i64 %far, %last",
        "%next = select i1 %over, i64 %last, i64 %far",
        "%more = icmp slt i64 %i, %last",
        "br i1 %more, label %loop, label %done",
        "done:",
        "ret void",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _extent_text(width: int) -> str:
    """``run(x, pairs, found)``: lows, highs, steps of both rows of a pair (6 k,), then two numbers, NaN if any is."""
    two, infinite = "<2 x double>", "7FF0000000000000"
    kinds = (("low", "minnum", f"0x{infinite}"), ("high", "maxnum", f"0xF{infinite[1:]}"), ("step", "maxnum", "0.0"))
    phis, body, leave = [], [], []
    for k in range(width):  # k-th two numbers of the 2 k of a pair; the same place one row later is k numbers further
        for shift, name in ((2 * k, "x"), (2 * k + width, "y")):
            body.append(f"%p{name}{k} = getelementptr double, ptr %at, i64 {shift}")
            body.append(f"%{name}{k} = load {two}, ptr %p{name}{k}, align 8")
        body.append(f"%d{k} = fsub {two} %y{k}, %x{k}")
        body.append(f"%a{k} = call {two} @llvm.fabs.v2f64({two} %d{k})")
        body.append(f"%b{k} = {_fma(two, f'%x{k}', 'zeroinitializer', f'%b{k - 1}' if k else '%bad')}")
        for place, (name, function, start) in enumerate(kinds):
            value = f"%a{k}" if name == "step" else f"%x{k}"
            phis.append(f"%{name}{k} = phi {two} [ <double {start}, double {start}>, %entry ], [ %{name}n{k}, %loop ]")
            body.append(f"%{name}n{k} = call {two} @llvm.{function}.v2f64({two} %{name}{k}, {two} {value})")
            leave.append(f"%q{name}{k} = getelementptr double, ptr %found, i64 {2 * (place * width + k)}")
            leave.append(f"store {two} %{name}n{k}, ptr %q{name}{k}, align 8")
    lines = [
        *(f"declare {two} @llvm.{name}.v2f64({two}, {two})" for name in ("minnum", "maxnum")),
        f"declare {two} @llvm.fabs.v2f64({two})",
        f"declare {two} @llvm.fmuladd.v2f64({two}, {two}, {two})",
        "define void @run(ptr %x, i64 %pairs, ptr %found) {",
        "entry:",
        "br label %loop",
        "loop:",
        "%i = phi i64 [ 0, %entry ], [ %j, %loop ]",
        "%at = phi ptr [ %x, %entry ], [ %next, %loop ]",
        f"%bad = phi {two} [ zeroinitializer, %entry ], [ %b{width - 1}, %loop ]",
        *phis,
        *body,
        f"%next = getelementptr double, ptr %at, i64 {2 * width}",
        "%j = add i64 %i, 1",
        "%more = icmp slt i64 %j, %pairs",
        "br i1 %more, label %loop, label %leave",
        "leave:",
        *leave,
        f"%qbad = getelementptr double, ptr %found, i64 {6 * width}",
        f"store {two} %b{width - 1}, ptr %qbad, align 8",
        "ret void",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _splat(name: str, source: str, index: int, kind: str) -> list[str]:
    """A number of an array in every place of a vector."""
    return [
        f"%{name}_p = getelementptr double, ptr {source}, i64 {index}",
        f"%{name}_1 = load double, ptr %{name}_p, align 8",
        f"%{name}_v = insertelement {kind} poison, double %{name}_1, i32 0",
        f"%{name} = shufflevector {kind} %{name}_v, {kind} poison, <{kind[1:].split()[0]} x i32> zeroinitializer",
    ]


def _fma(kind: str, a: str, b: str, c: str) -> str:
    lanes = kind[1:].split()[0]
    return f"call {kind} @llvm.fmuladd.v{lanes}f64({kind} {a}, {kind} {b}, {kind} {c})"
