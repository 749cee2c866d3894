"""Transcendental functions over whole columns, as LLVM's text.

Sine and cosine are our own: reduction by pi/2 in three parts with fused multiply-adds (Cody and Waite; the remainder is
kept in two numbers), then the polynomials of Sun's fdlibm on [-pi/4, pi/4]. The error stays below one unit in the last
place for arguments up to :data:`LIMIT`; larger ones, infinities and NaN are repaired one by one with the C library.
"""

from __future__ import annotations

from collections.abc import Sequence

from dynid.tape.llvm_ir import Writer, declarations, integer, number, vector

__all__ = ["LIBRARY", "GROUP", "LIMIT", "PASSES", "functions_module", "pass_call"]

LIBRARY = ("sin", "cos", "tanh", "exp")
"""Functions of the C library that the printed code may call, under the names ``dynid_sin`` and so on."""

LIMIT = 1048576.0
"""Largest argument of the polynomial sine and cosine, in radians."""

_SHIFT = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, whose bits are then the lowest of the sum
_TWO_OVER_PI = 0.6366197723675814
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
_SINE: tuple[float, ...] = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
_COSINE: tuple[float, ...] = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)


GROUP = 8
"""Numbers that one round of the vector loop processes; passes take multiples of it."""


def functions_module(fused: bool) -> str:
    """The module of all passes: ``sincos_pass(x, sine, cosine, n)``, ``tanh_pass(x, y, n)`` and ``exp_pass(x, y, n)``.

    It depends on the processor only, so one optimised copy serves every tape.

    Args:
        fused: whether the processor has fused multiply-add; without it sine and cosine come from the C library.
    """
    declared = "".join(f"declare double @dynid_{name}(double)\n" for name in LIBRARY)
    sincos = _sincos() if fused else _sincos_by_library()
    passes = [_library_pass("tanh"), _library_pass("exp"), _repair(everywhere=not fused), sincos]
    return "\n".join([declared, declarations(1), declarations(GROUP), *passes])


PASSES = """
declare void @sincos_pass(ptr, ptr, ptr, i64)
declare void @tanh_pass(ptr, ptr, i64)
declare void @exp_pass(ptr, ptr, i64)
"""
"""Declarations for modules that call the passes."""


def pass_call(name: str, columns: Sequence[int], stride: int, count: int) -> str:
    """The call of a pass on columns of the work area.

    Args:
        name: the pass.
        columns: numbers of the first argument's column and of the first result's column of each function.
        stride: bytes from one column to the next.
        count: numbers to process, a multiple of :data:`GROUP`.
    """
    names = [f"%pass{columns[-1]}_{place}" for place in range(len(columns))]
    lines = [
        f"{name} = getelementptr inbounds i8, ptr %work, i64 {stride * column}"
        for name, column in zip(names, columns, strict=True)
    ]
    pointers = ", ".join(f"ptr {name}" for name in names)
    return "\n".join([*lines, f"call void @{name}_pass({pointers}, i64 {count})"])


def _library_pass(name: str) -> str:
    """A loop that calls the C library for each element."""
    return f"""
define void @{name}_pass(ptr %x, ptr %y, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr inbounds double, ptr %x, i64 %i
  %to = getelementptr inbounds double, ptr %y, i64 %i
  %argument = load double, ptr %from, align 8
  %result = call double @dynid_{name}(double %argument)
  store double %result, ptr %to, align 8
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""


def _repair(everywhere: bool) -> str:
    """A loop that recomputes sine and cosine where the polynomial does not hold (or everywhere)."""
    limit = number(-1.0 if everywhere else LIMIT)
    return f"""
define internal void @sincos_repair(ptr %x, ptr %sine, ptr %cosine, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %join ]
  %from = getelementptr inbounds double, ptr %x, i64 %i
  %argument = load double, ptr %from, align 8
  %size = call double @llvm.fabs.f64(double %argument)
  %fine = fcmp ole double %size, {limit}
  br i1 %fine, label %join, label %library
library:
  %to_sine = getelementptr inbounds double, ptr %sine, i64 %i
  %to_cosine = getelementptr inbounds double, ptr %cosine, i64 %i
  %s = call double @dynid_sin(double %argument)
  store double %s, ptr %to_sine, align 8
  %c = call double @dynid_cos(double %argument)
  store double %c, ptr %to_cosine, align 8
  br label %join
join:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""


def _sincos_by_library() -> str:
    return """
define void @sincos_pass(ptr %x, ptr %sine, ptr %cosine, i64 %n) {
  call void @sincos_repair(ptr %x, ptr %sine, ptr %cosine, i64 %n)
  ret void
}
"""


def _sincos() -> str:
    """The vector loop; it notes whether any argument was beyond the limit and has those repaired at the end."""
    w = Writer(GROUP)  # LLVM splits this into several registers, whose operations then hide each other's latency
    integers = vector(GROUP, "i64")
    w.line("define void @sincos_pass(ptr %x, ptr %sine, ptr %cosine, i64 %n) {\nentry:\n  br label %loop\nloop:")
    w.line("%i = phi i64 [ 0, %entry ], [ %next, %loop ]")
    w.line(f"%strange = phi {integers} [ {integer(0, GROUP)}, %entry ], [ %strange_next, %loop ]")
    pointers = [w.value(f"getelementptr inbounds double, ptr {base}, i64 %i") for base in ("%x", "%sine", "%cosine")]
    x = w.load(pointers[0], 0)
    beyond = w.value(f"fcmp ugt {w.kind} {w.unary('fabs', x)}, {w.constant(LIMIT)}")
    mask = w.value(f"sext {vector(GROUP, 'i1')} {beyond} to {integers}")
    w.line(f"%strange_next = or {integers} %strange, {mask}")
    sine, cosine = _sine_and_cosine(w, x)
    w.store(sine, pointers[1], 0)
    w.store(cosine, pointers[2], 0)
    w.line(f"%next = add i64 %i, {GROUP}\n%more = icmp ult i64 %next, %n\nbr i1 %more, label %loop, label %end\nend:")
    flag = _any_lane(w, "%strange_next")
    w.line(f"%bad = icmp ne i64 {flag}, 0\nbr i1 %bad, label %repair, label %done\nrepair:")
    w.line("call void @sincos_repair(ptr %x, ptr %sine, ptr %cosine, i64 %n)\nbr label %done\ndone:\nret void\n}\n")
    return w.text()


def _any_lane(w: Writer, mask: str) -> str:
    """An integer that is not zero if any lane of the mask is not."""
    parts = [w.value(f"extractelement {vector(w.lanes, 'i64')} {mask}, i32 {lane}") for lane in range(w.lanes)]
    flag = parts[0]
    for part in parts[1:]:
        flag = w.value(f"or i64 {flag}, {part}")
    return flag


def _sine_and_cosine(w: Writer, x: str) -> tuple[str, str]:
    """Sine and cosine of one register of arguments."""
    integers = vector(w.lanes, "i64")
    shifted = w.fma(x, w.constant(_TWO_OVER_PI), w.constant(_SHIFT))
    k = w.binary("fsub", shifted, w.constant(_SHIFT))
    quadrant = w.value(f"bitcast {w.kind} {shifted} to {integers}")
    high, low = _reduced(w, x, k)
    sine, cosine = _polynomials(w, high, low)
    odd_bit = w.value(f"and {integers} {quadrant}, {integer(1, w.lanes)}")
    odd = w.value(f"icmp ne {integers} {odd_bit}, {integer(0, w.lanes)}")
    following = w.value(f"add {integers} {quadrant}, {integer(1, w.lanes)}")
    return (
        _flipped(w, w.choose(odd, cosine, sine), quadrant),
        _flipped(w, w.choose(odd, sine, cosine), following),
    )


def _reduced(w: Writer, x: str, k: str) -> tuple[str, str]:
    """The remainder x - k pi/2 as the sum of two numbers."""
    first = w.fma(w.negated(k), w.constant(_HALF_PI[0]), x)  # exact
    part = w.binary("fmul", k, w.constant(_HALF_PI[1]))
    part_error = w.fma(k, w.constant(_HALF_PI[1]), w.negated(part))
    high = w.binary("fsub", first, part)
    rest = w.binary("fsub", w.binary("fsub", first, high), part)
    return high, w.binary("fsub", rest, w.fma(k, w.constant(_HALF_PI[2]), part_error))


def _polynomials(w: Writer, high: str, low: str) -> tuple[str, str]:
    """Sine and cosine of high + low within [-pi/4, pi/4]."""
    z = w.binary("fmul", high, high)
    v = w.binary("fmul", z, high)
    inner = w.fma(w.negated(v), _horner(w, z, _SINE[1:]), w.binary("fmul", w.constant(0.5), low))
    outer = w.fma(z, inner, w.negated(low))
    sine = w.binary("fsub", high, w.fma(w.negated(v), w.constant(_SINE[0]), outer))
    p = w.binary("fmul", z, _horner(w, z, _COSINE))
    base = w.fma(z, w.constant(-0.5), w.constant(1.0))
    error = w.fma(z, w.constant(-0.5), w.binary("fsub", w.constant(1.0), base))
    tail = w.fma(z, p, w.fma(w.negated(high), low, error))
    return sine, w.binary("fadd", base, tail)


def _horner(w: Writer, z: str, coefficients: tuple[float, ...]) -> str:
    total = w.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = w.fma(z, total, w.constant(coefficient))
    return total


def _flipped(w: Writer, value: str, quadrant: str) -> str:
    """The value with its sign changed where the second bit of the quadrant is set."""
    integers = vector(w.lanes, "i64")
    moved = w.value(f"shl {integers} {quadrant}, {integer(62, w.lanes)}")
    sign = w.value(f"and {integers} {moved}, {integer(-(2**63), w.lanes)}")
    bits = w.value(f"bitcast {w.kind} {value} to {integers}")
    return w.value(f"bitcast {integers} {w.value(f'xor {integers} {bits}, {sign}')} to {w.kind}")
