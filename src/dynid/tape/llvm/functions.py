"""Sine, cosine, hyperbolic tangent and exponential of many numbers at a time, printed as LLVM code.

`functions_module` prints the *passes*: loops that compute a function of every number of an array (a column).
`pass_call` prints a call of one. `print_function` prints a whole tape (a recorded program) for a single sample, with
such calls.

Sine and cosine are our own, because the C library computes one number at a time. With k the integer nearest to 2x/pi,
the remainder ``r = x - k pi/2`` is in [-pi/4, pi/4]; pi/2 is subtracted in two parts with fused multiply-adds (Cody and
Waite). Sine and cosine of r are the polynomials of Sun's fdlibm, and k modulo 4, the quadrant, says which of
the two, and with which sign, are those of x. The error stays below 1.5 units in the last place, 1.7e-16, for arguments
up to :data:`LIMIT` (the last bit would cost a quarter of the time); larger ones, infinities and NaN are computed one by
one with the C library afterwards. The hyperbolic tangent is ``e / (e + 2)`` with ``e = exp(2 |x|) - 1``; its error
stays below 2 units in the last place.

LLVM's text: a name with ``%`` is a register, assigned once, and one with ``@`` a function or table. Code is divided
into blocks that begin with a label and end with a branch (``br``). ``phi [a, %x], [b, %y]`` is a if control came from
block x, and b if it came from block y: so loop variables get their next value. ``getelementptr`` adds an offset to a
pointer. A register here has several lanes, each with a number of its own, on which an instruction works at once.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from dynid.tape.llvm.ir import Writer, constant_table, declarations, integer, number, print_piece, vector
from dynid.tape.lower import lower, stages
from dynid.tape.tape import Tape

LIBRARY = ("sin", "cos", "tanh", "exp")
"""Functions of the C library that the printed code may call, under the names ``dynid_sin`` and so on."""

LIMIT = 2**20 * math.pi / 2 - 1.0
"""Largest argument of the polynomial sine and cosine, in radians."""

_SHIFT = 6755399441055744.0
"""1.5 * 2^52: adding it rounds to an integer, whose bits are then the lowest of the sum."""
_MOST_QUARTERS = 2**20
"""Largest number of quarter turns that the reduction handles; see `LIMIT`."""
_LOWEST_BITS = struct.unpack("<q", struct.pack("<d", _SHIFT))[0] - _MOST_QUARTERS
"""Bits of `_SHIFT` less `_MOST_QUARTERS`, as an integer: those of the sum for the most negative number of quarters."""
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
"""pi / 2 as the sum of two doubles."""
_SINE: tuple[float, ...] = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
"""Coefficients of ``(sin(x) - x) / x^3`` in powers of x^2, between -pi/4 and pi/4, from fdlibm."""
_COSINE: tuple[float, ...] = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)
"""Coefficients of ``(cos(x) - 1 + x^2 / 2) / x^4`` in powers of x^2, between -pi/4 and pi/4, from fdlibm."""
_LN_2 = (0.6931471805599453, 2.3190468138462996e-17)
"""ln 2 as the sum of two doubles."""
_SATURATED = 40.0
"""Value of 2 |x| above which tanh(x) is 1 or -1 to the last bit."""
_EXPONENTIAL_SERIES: tuple[float, ...] = tuple(1.0 / math.factorial(n) for n in range(2, 14))
"""Coefficients of ``(exp(r) - 1 - r) / r^2``."""


GROUP = 8
"""Numbers that a pass computes in one round of its loop; passes take multiples of it."""


def functions_module(fused: bool) -> str:
    """The module of all passes: ``sincos_pass(x, sine, cosine, n)``, ``tanh_pass(x, y, n)`` and ``exp_pass(x, y, n)``.

    The arguments are pointers to n numbers. The module depends on the processor only, so one copy serves every tape.

    Args:
        fused: whether the processor has fused multiply-add; without it all functions come from the C library.
    """
    declared = "".join(f"declare double @dynid_{name}(double)\n" for name in LIBRARY)
    sincos = _sincos() if fused else _sincos_by_library()
    tanh = _tanh() if fused else _library_pass("tanh")
    passes = [tanh, _library_pass("exp"), _repair(everywhere=not fused), sincos]
    return "\n".join([declared, declarations(1), declarations(GROUP), *passes])


PASSES = """
declare void @sincos_pass(ptr, ptr, ptr, i64)
declare void @tanh_pass(ptr, ptr, i64)
declare void @exp_pass(ptr, ptr, i64)
"""
"""Declarations for modules that call the passes."""


def pass_call(name: str, columns: Sequence[int], stride: int, count: int) -> str:
    """The call of a pass on columns of the work area, the array ``%work``.

    Args:
        name: the pass.
        columns: number of the column of the arguments, then that of the results of each function: sine and cosine
            have two.
        stride: bytes from one column to the next.
        count: numbers to process, a multiple of :data:`GROUP`; they may be in several columns behind one another.
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
    """A loop that computes sine and cosine with the C library where |x| is beyond `LIMIT` or a NaN, or everywhere."""
    limit = number(-1.0 if everywhere else LIMIT)  # no absolute value is below -1
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
    """The pass of sine and cosine for processors without fused multiply-add."""
    return """
define void @sincos_pass(ptr %x, ptr %sine, ptr %cosine, i64 %n) {
  call void @sincos_repair(ptr %x, ptr %sine, ptr %cosine, i64 %n)
  ret void
}
"""


def _sincos() -> str:
    """The pass of sine and cosine: a loop over groups of numbers, then the repair if any argument was beyond `LIMIT`.

    The loop collects in ``%seen``, by a bitwise or, how far the number of quarter turns is from the least one: a bit
    above those of ``2 * _MOST_QUARTERS`` shows that an argument was beyond the limit, or a NaN.
    """
    # LLVM splits vectors of GROUP numbers into several registers, whose operations then hide each other's latency
    w = _Loop(GROUP, "@sincos_addends")
    integers = vector(GROUP, "i64")
    pointers = [w.value(f"getelementptr inbounds double, ptr {base}, i64 %i") for base in ("%x", "%sine", "%cosine")]
    x = w.load(pointers[0], 0)
    shifted = w.fma(x, w.constant(2.0 / math.pi), w.addend(_SHIFT))  # k, rounded, in the lowest bits
    quadrant = w.value(f"bitcast {w.kind} {shifted} to {integers}")
    # the number of quarter turns plus _MOST_QUARTERS: as an unsigned integer too large if it is out of range or a NaN
    beyond = w.value(f"sub {integers} {quadrant}, {integer(_LOWEST_BITS, GROUP)}")
    w.line(f"%seen_next = or {integers} %seen, {beyond}")
    sine, cosine = _sine_and_cosine(w, x, shifted, quadrant)
    w.store(sine, pointers[1], 0)
    w.store(cosine, pointers[2], 0)
    body = w.text()
    end = Writer(GROUP)
    flag = _any_lane(end, "%seen_next")
    return f"""
{w.table()}
define void @sincos_pass(ptr %x, ptr %sine, ptr %cosine, i64 %n) {{
entry:
br label %loop
loop:
%i = phi i64 [ 0, %entry ], [ %next, %loop ]
%seen = phi {integers} [ {integer(0, GROUP)}, %entry ], [ %seen_next, %loop ]
{body}
%next = add i64 %i, {GROUP}
%more = icmp ult i64 %next, %n
br i1 %more, label %loop, label %end
end:
{end.text().replace("%r", "%e")}
%bad = icmp uge i64 {flag.replace("%r", "%e")}, {2 * _MOST_QUARTERS}
br i1 %bad, label %repair, label %done
repair:
call void @sincos_repair(ptr %x, ptr %sine, ptr %cosine, i64 %n)
br label %done
done:
ret void
}}
"""


def _tanh() -> str:
    """The pass of the hyperbolic tangent: ``e / (e + 2)`` with ``e = exp(2 |x|) - 1``, and the sign of x."""
    w = _Loop(GROUP, "@tanh_addends")
    source, target = (w.value(f"getelementptr inbounds double, ptr {base}, i64 %i") for base in ("%x", "%y"))
    integers = vector(GROUP, "i64")
    x = w.load(source, 0)
    size = w.unary("fabs", x)
    sign = w.value(f"xor {integers} {_bits(w, x)}, {_bits(w, size)}")
    doubled = w.binary("fadd", size, size)
    beyond = w.value(f"fcmp ogt {w.kind} {doubled}, {w.constant(_SATURATED)}")
    e = _exponential_less_one(w, w.choose(beyond, w.constant(_SATURATED), doubled))
    quotient = w.binary("fdiv", e, w.binary("fadd", e, w.constant(2.0)))
    signed = w.value(f"or {integers} {_bits(w, quotient)}, {sign}")
    w.store(w.value(f"bitcast {integers} {signed} to {w.kind}"), target, 0)
    return f"""
{w.table()}
define void @tanh_pass(ptr %x, ptr %y, i64 %n) {{
entry:
br label %loop
loop:
%i = phi i64 [ 0, %entry ], [ %next, %loop ]
{w.text()}
%next = add i64 %i, {GROUP}
%more = icmp ult i64 %next, %n
br i1 %more, label %loop, label %end
end:
ret void
}}
"""


def _exponential_less_one(w: _Loop, y: str) -> str:
    """exp(y) - 1 for y from 0 to :data:`_SATURATED`: with y = k ln 2 + r it is 2^k (exp(r) - 1) + (2^k - 1)."""
    integers = vector(w.lanes, "i64")
    shifted = w.fma(y, w.constant(1.0 / math.log(2.0)), w.addend(_SHIFT))
    minus_k = w.negate(w.binary("fsub", shifted, w.constant(_SHIFT)))
    r = w.fma(minus_k, w.constant(_LN_2[1]), w.fma(minus_k, w.constant(_LN_2[0]), y))
    exponent = w.value(f"shl {integers} {_bits(w, shifted)}, {integer(52, w.lanes)}")
    # 2^k: its exponent with the bias 1023, above the 52 bits of the mantissa
    power_bits = w.value(f"add {integers} {exponent}, {integer(1023 << 52, w.lanes)}")
    power = w.value(f"bitcast {integers} {power_bits} to {w.kind}")
    square = w.binary("fmul", r, r)
    less_one = w.fma(square, _polynomial(w, r, square, _EXPONENTIAL_SERIES), r)
    return w.fma(power, less_one, w.binary("fsub", power, w.constant(1.0)))


def _bits(w: Writer, value: str) -> str:
    """The bits of a register of doubles as integers."""
    return w.value(f"bitcast {w.kind} {value} to {vector(w.lanes, 'i64')}")


class _Loop(Writer):
    """Writer of a loop's body that loads a constant from memory each time a fused multiply-add adds to it.

    A fused multiply-add overwrites its addend. Copies of constants kept in registers would occupy the units that
    compute; loads do not. They are volatile so that LLVM leaves them where they are.
    """

    def __init__(self, lanes: int, name: str) -> None:
        super().__init__(lanes)
        self._name = name
        self._addends: list[float] = []

    def addend(self, value: float) -> str:
        """A constant that a fused multiply-add adds to."""
        if value not in self._addends:
            self._addends.append(value)
        place = self.address(self._name, 8 * self.lanes * self._addends.index(value))
        return self.value(f"load volatile {self.kind}, ptr {place}, align 8")

    def table(self) -> str:
        """The declaration of the constants that the loop loads."""
        values = ", ".join(f"{self.kind} {self.constant(value)}" for value in self._addends)
        return f"{self._name} = internal constant [{len(self._addends)} x {self.kind}] [{values}], align 64"


def _any_lane(w: Writer, mask: str) -> str:
    """The bitwise or of all lanes of a register of integers."""
    parts = [w.value(f"extractelement {vector(w.lanes, 'i64')} {mask}, i32 {lane}") for lane in range(w.lanes)]
    flag = parts[0]
    for part in parts[1:]:
        flag = w.value(f"or i64 {flag}, {part}")
    return flag


def _sine_and_cosine(w: _Loop, x: str, shifted: str, quadrant: str) -> tuple[str, str]:
    """Sine and cosine of one register of arguments.

    Args:
        w: the loop.
        x: the arguments.
        shifted: number of quarter turns, rounded, plus `_SHIFT`.
        quadrant: the bits of that sum; the lowest two are the quadrant.
    """
    integers = vector(w.lanes, "i64")
    sine, cosine = _polynomials(w, _reduce(w, x, w.binary("fsub", shifted, w.constant(_SHIFT))))
    odd_bit = w.value(f"and {integers} {quadrant}, {integer(1, w.lanes)}")
    odd = w.value(f"icmp ne {integers} {odd_bit}, {integer(0, w.lanes)}")
    # in an odd quadrant sine and cosine are exchanged; bit 1 of the quadrant is the sign of the sine, and bit 1 of the
    # following quadrant that of the cosine; both are shifted to bit 63, the sign of a double
    sign = w.value(f"shl {integers} {quadrant}, {integer(62, w.lanes)}")
    following = w.value(f"add {integers} {sign}, {integer(2**62, w.lanes)}")
    return (
        _flip_sign(w, w.choose(odd, cosine, sine), sign),
        _flip_sign(w, w.choose(odd, sine, cosine), following),
    )


def _reduce(w: _Loop, x: str, k: str) -> str:
    """The remainder x - k pi/2."""
    minus_k = w.negate(k)
    first = w.fma(minus_k, w.constant(_HALF_PI[0]), x)  # without rounding error
    return w.fma(minus_k, w.constant(_HALF_PI[1]), first)


def _polynomials(w: _Loop, x: str) -> tuple[str, str]:
    """Sine and cosine of x within [-pi/4, pi/4]: ``x + z x S(z)`` and ``1 - z/2 + z^2 C(z)`` with z = x^2."""
    z = w.binary("fmul", x, x)
    square = w.binary("fmul", z, z)
    base = w.fma(w.negate(z), w.constant(0.5), w.addend(1.0))
    sine = w.fma(w.binary("fmul", z, x), _polynomial(w, z, square, _SINE), x)
    return sine, w.fma(square, _polynomial(w, z, square, _COSINE), base)


def _polynomial(w: _Loop, z: str, square: str, coefficients: tuple[float, ...]) -> str:
    """A polynomial of z with an even number of coefficients, by Estrin's scheme: the pairs do not wait for each other.

    Args:
        w: the loop.
        z: the argument.
        square: its square.
        coefficients: the lowest first.
    """
    pairs = zip(coefficients[::2], coefficients[1::2], strict=True)
    *others, total = [w.fma(z, w.constant(upper), w.addend(lower)) for lower, upper in pairs]
    for pair in reversed(others):
        total = w.fma(square, total, pair)
    return total


def _flip_sign(w: Writer, value: str, sign: str) -> str:
    """The value with its sign changed where the highest bit of the integer ``sign`` is set."""
    integers = vector(w.lanes, "i64")
    bit = w.value(f"and {integers} {sign}, {integer(-(2**63), w.lanes)}")
    return w.value(f"bitcast {integers} {w.value(f'xor {integers} {_bits(w, value)}, {bit}')} to {w.kind}")


def print_function(name: str, tape: Tape, fused: bool) -> str:
    """Print a tape as a function ``name(input..., output...)`` of pointers, for one sample.

    The arithmetic is printed in pieces (`dynid.tape.lower`), with a call of a pass between two of them: the piece
    before stores the arguments of the pass in the work area, an array on the stack. Outputs must not overlap inputs;
    only an element that is read once may be overwritten with a result.
    """
    w = Writer(1)
    locations: dict[int, tuple[str, int]] = {}  # value of the tape -> name of its array, place in it [bytes]
    for place, entry in enumerate(tape.inputs):
        for position in range(entry.size):
            locations[len(locations)] = (f"%in{place}", 8 * position)

    def source(operand: int) -> tuple[str, int]:
        """The place of an operand, which is negative for a constant."""
        return (f"@constants_{name}", 8 * ~operand) if operand < 0 else locations[operand]

    def piece(targets: Sequence[int], place: Sequence[tuple[str, int]]) -> None:
        """Print the arithmetic that computes some values, and their stores to the given places."""
        print_piece(w, lower(tape, targets, fused), source, place.__getitem__)

    base = 0  # doubles of the work area that are in use
    for call in stages(tape):  # the passes in order
        count = len(call.arguments)
        size = count + -count % GROUP  # rounded up to a multiple of the group
        piece(call.arguments, [("%work", 8 * (base + k)) for k in range(count)])
        columns = [base + place * size for place in range(1 + len(call.results))]
        w.line(pass_call(call.name, columns, 8, size))
        for column, results in zip(columns[1:], call.results, strict=True):
            locations.update({value: ("%work", 8 * (column + k)) for value, k in results.items()})
        base = columns[-1] + size
    targets: list[int] = []  # operand of every output element
    destinations: list[tuple[str, int]] = []  # name of its array, and place in it [bytes]
    for k, output in enumerate(tape.outputs):
        targets += output.elements.ravel().tolist()
        destinations += [(f"%out{k}", 8 * position) for position in range(output.size)]
    piece(targets, destinations)
    arguments = [f"%in{k}" for k in range(len(tape.inputs))] + [f"%out{k}" for k in range(len(tape.outputs))]
    table = constant_table(tape.constants.tolist(), 1).replace("@constants", f"@constants_{name}")
    cleared = f"call void @llvm.memset.p0.i64(ptr %work, i8 0, i64 {8 * base}, i1 false)" if base else ""
    return f"""{table}
define internal void @{name}({", ".join(f"ptr {a}" for a in arguments)}) {{
entry:
%work = alloca [{max(base, 1)} x double], align 64
{cleared}
{w.text()}
ret void
}}
"""
