"""A tape as a C99 function: one statement per operation, every constant exact, no library but ``math.h``.

A `dynid.tape.Tape` is a recorded function: the straight-line list of its operations, called steps. It numbers its
values: inputs from zero on, then the results of the steps; constants have the negative numbers ``~0, ~1, ...``. A step
is (number of its result, code of the `Operation`, numbers of the left and the right operand). The modules of
`dynid.export.c` call `CPrinter.functions` and `CPrinter.declaration`.

Text to be filled by `str.format`: braces of C are doubled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from dynid.tape import Tape
from dynid.tape.operations import Operation

Precision = Literal["double", "float"]

_SINCOS = """/* Sines and cosines of {n} angles [rad], with an error of at most 2.5e-16 each: reduction by multiples of
 * pi/2 in two parts (Cody and Waite), then the polynomials of fdlibm. Adding 1.5 * 2^52 rounds to an integer, which
 * is then in the last bits. The constant is volatile because some compilers would cancel the addition and the
 * subtraction. The C library handles angles beyond 1e5 rad and processors with extended precision. */
static void {name}_sincos{n}(const double *restrict angle, double *restrict sine, double *restrict cosine)
{{
    const volatile double shift = 6755399441055744.0;
    const double up = shift;
    const double down = shift;
    uint64_t turns[{n}]; /* quarter turns, counted from 65536 */
    uint64_t size = 0u;
    int i;
    for (i = 0; i < {n}; i++) {{
        union {{
            double value;
            uint64_t bits;
        }} turn;
        turn.value = (angle[i] * 6.36619772367581382433e-01) + up;
        turns[i] = turn.bits - 0x4337FFFFFFFF0000u;
        size |= turns[i];
        sine[i] = turn.value - down;
    }}
    if (((size >> 17) != 0u) || (FLT_EVAL_METHOD == 2)) {{
        for (i = 0; i < {n}; i++) {{
            sine[i] = sin(angle[i]);
            cosine[i] = cos(angle[i]);
        }}
        return;
    }}
    for (i = 0; i < {n}; i++) {{
        const double k = sine[i];
        const double r = (angle[i] - (k * 1.57079632673412561417e+00)) - (k * 6.07710050650619224932e-11);
        const double z = r * r;
        sine[i] = r + ((r * z) * ((-1.66666666666666324348e-01) + (z * (8.33333333332248946124e-03
            + (z * ((-1.98412698298579493134e-04) + (z * (2.75573137070700676789e-06
            + (z * ((-2.50507602534068634195e-08) + (z * 1.58969099521155010221e-10)))))))))));
        cosine[i] = 1.0 + (z * ((-0.5) + (z * (4.16666666666666019037e-02 + (z * ((-1.38888888888741095749e-03)
            + (z * (2.48015872894767294178e-05 + (z * ((-2.75573143513906633035e-07)
            + (z * (2.08757232129817482790e-09 + (z * (-1.13596475577881948265e-11))))))))))))));
    }}
    for (i = 0; i < {n}; i++) {{
        const double s = ((turns[i] & 1u) != 0u) ? cosine[i] : sine[i];
        const double c = ((turns[i] & 1u) != 0u) ? (-sine[i]) : cosine[i];
        sine[i] = ((turns[i] & 2u) != 0u) ? (-s) : s;
        cosine[i] = ((turns[i] & 2u) != 0u) ? (-c) : c;
    }}
}}
"""
"""C function that computes all sines and cosines of a function at once, in loops that compilers vectorise."""

_SIGN = """/* 1, -1, or x itself if it is zero or not a number. A separate function, because analysers follow every
 * condition through all the code after it. */
static {precision} {name}_sign({precision} x)
{{
    return (x > 0.0{f}) ? 1.0{f} : ((x < 0.0{f}) ? (-1.0{f}) : x);
}}
"""
"""C function of the sign of a number; ``{f}`` is the suffix of literals."""

_EXPRESSIONS = {
    Operation.ADD: "{0} + {1}",
    Operation.SUB: "{0} - {1}",
    Operation.MUL: "{0} * {1}",
    Operation.DIV: "{0} / {1}",
    Operation.NEG: "-{0}",
    Operation.SIN: "sin{f}({0})",
    Operation.COS: "cos{f}({0})",
    Operation.SQRT: "sqrt{f}({0})",
    Operation.TANH: "tanh{f}({0})",
    Operation.EXP: "exp{f}({0})",
    Operation.ABS: "fabs{f}({0})",
    Operation.SIGN: "{package}_sign({0})",
}
"""Operation -> its C expression of one or two operands; ``{f}`` is the suffix of functions for float."""
_ANGLE_ARRAYS = {Operation.SIN: "sines", Operation.COS: "cosines"}
"""Operation -> the C array that holds its results for all angles."""


@dataclass(frozen=True, slots=True)
class CPrinter:
    """Writes tapes as functions of one C file."""

    package: str
    """Prefix of the names of the static functions that the functions call."""
    precision: Precision = "double"
    """Type of every number."""

    @property
    def suffix(self) -> str:
        """Suffix of literals and of functions of the C library: ``f`` for float."""
        return "f" if self.precision == "float" else ""

    def literal(self, value: float) -> str:
        """Write a number with all its digits, as a literal of floating point."""
        digits = f"{value:.17g}"
        digits += self.suffix if any(mark in digits for mark in ".en") else f".0{self.suffix}"  # point, exponent, nan
        return f"({digits})" if value < 0.0 else digits

    def declaration(self, tape: Tape, symbol: str, linkage: str = "") -> str:
        """Write a function's declaration, without a semicolon: the tape's arrays, row-major, inputs first.

        Args:
            tape: The program.
            symbol: Name of the function.
            linkage: ``"static "`` or nothing.
        """
        arrays = [f"const {self.precision} {entry.name}[{max(entry.size, 1)}]" for entry in tape.inputs]
        arrays += [f"{self.precision} {output.name}[{output.size}]" for output in tape.outputs]
        return f"{linkage}void {symbol}({', '.join(arrays)})"

    def function(self, tape: Tape, symbol: str, linkage: str = "") -> str:
        """Write a function's definition; outputs are stored last, so they may be the same arrays as inputs.

        Args:
            tape: The program.
            symbol: Name of the function.
            linkage: ``"static "`` or nothing.
        """
        names = dict(enumerate(tape.input_labels()))  # number of a value -> its C expression
        names |= {~k: self.literal(value) for k, value in enumerate(tape.constants.tolist())}
        angles = self._angles(tape)
        lines = []
        if n := len(angles):
            lines += [f"    double sines[{n}];", f"    double cosines[{n}];"]
            lines += [f"    {self.package}_sincos{n}(&{names[angles[0]]}, sines, cosines);"]
        for value, code, left, right in tape.steps():
            if code in _ANGLE_ARRAYS and left in angles:  # computed above for all angles
                text = f"{_ANGLE_ARRAYS[Operation(code)]}[{left - angles[0]}]"
            else:  # an operation of one operand has no name for `right`
                text = _EXPRESSIONS[Operation(code)].format(
                    names[left], names.get(right), f=self.suffix, package=self.package
                )
            names[value] = f"t{value}"
            lines.append(f"    const {self.precision} t{value} = {text};")
        lines += self._stores(tape, names)
        body = "\n".join([*lines, "}", ""])
        # compilers would warn of arguments without use
        unused = [f"    (void){e.name};\n" for e in tape.inputs if not re.search(rf"\b{e.name}\[", body)]
        return f"{self.declaration(tape, symbol, linkage)}\n{{\n{''.join(unused)}{body}"

    def _stores(self, tape: Tape, names: Mapping[int, str]) -> Iterable[str]:
        """Yield lines that store the outputs.

        An output may be an input unchanged, and its array may overwrite that of the input: such inputs are copied
        first.

        Args:
            tape: The program.
            names: Number of a value -> its C expression.
        """
        stored = {element for output in tape.outputs for element in output.elements.ravel().tolist()}
        copies = {element: f"kept{element}" for element in sorted(stored) if 0 <= element < tape.input_size}
        yield from (f"    const {self.precision} {copy} = {names[element]};" for element, copy in copies.items())
        for output in tape.outputs:
            rows = output.elements.reshape(-1, output.shape[-1]).tolist()
            for r, row in enumerate(rows):
                array = output.name
                if len(rows) > 1:  # static analysers compare every element with all earlier ones: shorter arrays
                    array = f"{output.name}_row{r}"
                    yield f"    {self.precision} *const {array} = &{output.name}[{len(row) * r}];"
                yield from (f"    {array}[{k}] = {copies.get(e, names[e])};" for k, e in enumerate(row))

    def _angles(self, tape: Tape) -> range:
        """Numbers of the inputs whose sines and cosines are computed together: those in use and all between them.

        There are none for floats, and none where the angles belong to several arrays.
        """
        if self.precision == "float":
            return range(0)
        labels = tape.input_labels()
        used = [left for _, code, left, _ in tape.steps() if code in _ANGLE_ARRAYS and 0 <= left < len(labels)]
        is_one_array = len({labels[angle].partition("[")[0] for angle in used}) == 1
        return range(min(used), max(used) + 1) if is_one_array else range(0)

    def called(self, tapes: Iterable[Tape]) -> list[str]:
        """Write the static C functions (sines and cosines, sign) that these tapes call, after the headers they need.

        The C file needs one function of sines and cosines for each number of angles.
        """
        counts = {len(self._angles(tape)) for tape in tapes} - {0}
        functions = [_SINCOS.format(name=self.package, n=n) for n in sorted(counts)]
        if any(code == Operation.SIGN for tape in tapes for _, code, _, _ in tape.steps()):
            functions.append(_SIGN.format(name=self.package, precision=self.precision, f=self.suffix))
        return ["#include <float.h>\n#include <stdint.h>\n", *functions] if counts else functions

    def functions(self, tapes: Mapping[str, Tape], linkage: str = "") -> str:
        """Write tapes, by their symbols, as functions of one file, after the static functions that they call."""
        definitions = [self.function(tape, symbol, linkage) for symbol, tape in tapes.items()]
        return "\n".join([*self.called(tapes.values()), *definitions])
