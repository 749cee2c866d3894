"""A tape as a fast C function: an order that keeps few values live, and sines and cosines computed together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from dynid.tape import Tape
from dynid.tape.c_backend import CStyle, c_declaration, c_function, idle_inputs
from dynid.tape.count import OperationCount, count
from dynid.tape.lower import Instruction, lower
from dynid.tape.operations import Operation

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

_EXPRESSIONS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "fma": "({0} * {1}) + {2}",
    "fms": "({0} * {1}) - {2}",
    "fnma": "{2} - ({0} * {1})",
    "sqrt": "sqrt{f}({0})",
    "abs": "fabs{f}({0})",
    "sign": "{package}_sign({0})",
}

_SIGN = """/* 1, -1, or x itself if it is zero or not a number. A separate function, because analysers follow every
 * condition through all the code after it. */
static {precision} {name}_sign({precision} x)
{{
    return (x > 0.0{f}) ? 1.0{f} : ((x < 0.0{f}) ? (-1.0{f}) : x);
}}
"""


def called_functions(name: str, tapes: Iterable[Tape], precision: str) -> list[str]:
    """Write the static functions that these tapes call, after the headers they need."""
    plain = [tape for tape in tapes if _is_plain(tape)]
    counts = {len(_angles(tape)) for tape in plain if precision == "double"} - {0}
    functions = [_SINCOS.format(name=name, n=n) for n in sorted(counts)]
    if any(code == Operation.SIGN for tape in plain for _, code, _, _ in tape.steps()):
        functions.append(_SIGN.format(name=name, precision=precision, f="f" if precision == "float" else ""))
    return ["#include <float.h>\n#include <stdint.h>\n", *functions] if counts else functions


def fast_function(tape: Tape, symbol: str, *, precision: str, linkage: str, package: str) -> str:
    """Write the definition of a function; outputs are stored last, so they may be the same arrays as inputs.

    Args:
        tape: The program.
        symbol: Name of the function.
        precision: ``double`` or ``float``.
        linkage: Storage class before ``void``: ``static`` or nothing.
        package: Prefix of the names of the called functions.
    """
    style = CStyle(precision="float" if precision == "float" else "double", linkage=linkage)
    if not _is_plain(tape):
        return c_function(tape, symbol, style)
    suffix = "f" if precision == "float" else ""
    names = {number: _element(tape, number) for number in range(tape.input_size)}
    names |= {~k: _literal(value, suffix) for k, value in enumerate(tape.constants.tolist())}
    lines = [c_declaration(tape, symbol, style), "{", *idle_inputs(tape, style)]
    lines += _library_lines(tape, names) if suffix else _sincos_lines(tape, names, package)
    targets = _targets(tape)
    stores = []
    for step in _lowered(tape):
        if step.name == "store":
            stores.append((step.result, step.operands[0]))
            continue
        operands = (names[operand] for operand in step.operands)
        expression = _EXPRESSIONS[step.name].format(*operands, f=suffix, package=package)
        lines.append(f"    const {precision} t{step.result} = {expression};")
        names[step.result] = f"t{step.result}"
    stores += [(slot, target) for slot, target in enumerate(targets) if target < 0]
    lines += _store_lines(tape, dict(stores), names, precision)
    return "\n".join([*lines, "}", ""])


def printed_count(tape: Tape) -> OperationCount:
    """Count the operations in the text of `fast_function`, where signs may be at other places than on the tape."""
    recorded = count(tape)
    if not _is_plain(tape):
        return recorded
    found = Counter(step.name for step in _lowered(tape))
    fused = found["fma"] + found["fms"] + found["fnma"]
    return replace(
        recorded,
        multiplications=found["mul"] + fused,
        additions=found["add"] + found["sub"] + fused,
        divisions=found["div"],
        negations=found["neg"],
    )


def _targets(tape: Tape) -> list[int]:
    return [e for output in tape.outputs for e in output.elements.ravel().tolist()]


def _lowered(tape: Tape) -> list[Instruction]:
    """Lower the tape with every product once: compilers fuse it into several sums by themselves."""
    return lower(tape, _targets(tape), repeated=False)


def _store_lines(tape: Tape, stores: dict[int, int], names: dict[int, str], precision: str) -> Iterable[str]:
    copied = {operand for operand in stores.values() if 0 <= operand < tape.input_size}
    yield from (f"    const {precision} kept{operand} = {names[operand]};" for operand in sorted(copied))
    places: list[str] = []
    for output in tape.outputs:
        rows, columns = output.shape if len(output.shape) == 2 else (1, output.size)
        if rows > 1:  # static analysers compare every element with all earlier ones: shorter arrays
            yield from (
                f"    {precision} *const {output.name}_row{r} = &{output.name}[{columns * r}];" for r in range(rows)
            )
        arrays = [f"{output.name}_row{r}" for r in range(rows)] if rows > 1 else [output.name]
        places += [f"{array}[{k}]" for array in arrays for k in range(columns)]
    for slot, operand in sorted(stores.items()):
        yield f"    {places[slot]} = {f'kept{operand}' if operand in copied else names[operand]};"


def _is_plain(tape: Tape) -> bool:
    """Whether its only functions are sines and cosines of one input, so that the plain printer is not needed."""
    owner = [entry.name for entry in tape.inputs for _ in range(entry.size)]
    turned = [left for _, code, left, _ in tape.steps() if code in (Operation.SIN, Operation.COS)]
    if any(code in (Operation.TANH, Operation.EXP) for _, code, _, _ in tape.steps()):
        return False
    return all(0 <= angle < tape.input_size for angle in turned) and len({owner[angle] for angle in turned}) <= 1


def _angles(tape: Tape) -> range:
    """Inputs whose sines and cosines are computed: those in use and all between; an even number if possible."""
    used = [left for _, code, left, _ in tape.steps() if code in (Operation.SIN, Operation.COS)]
    if not used:
        return range(0)
    first, last, begin = min(used), max(used), 0
    for entry in tape.inputs:
        if begin <= first < begin + entry.size and (last - first) % 2 == 0:
            first, last = (first - 1, last) if first > begin else (first, min(last + 1, begin + entry.size - 1))
        begin += entry.size
    return range(first, last + 1)


def _sincos_lines(tape: Tape, names: dict[int, str], package: str) -> list[str]:
    angles = _angles(tape)
    used = {value: (code, angle) for value, code, angle, _ in tape.steps() if code in (Operation.SIN, Operation.COS)}
    if not used:
        return []
    n = len(angles)
    lines = [
        f"    double sines[{n}];",
        f"    double cosines[{n}];",
        f"    {package}_sincos{n}(&{names[angles.start]}, sines, cosines);",
    ]
    for value, (
        code,
        angle,
    ) in used.items():  # analysers would follow an array from its declaration to every use
        name, place = "sine" if code == Operation.SIN else "cosine", angle - angles.start
        names[value] = f"{name}{place}"
        lines.append(f"    const double {name}{place} = {name}s[{place}];")
    return lines


def _library_lines(tape: Tape, names: dict[int, str]) -> Iterable[str]:
    """Write calls of the C library's sines and cosines in single precision."""
    for value, code, angle, _ in tape.steps():
        if code in (Operation.SIN, Operation.COS):
            function, name = ("sinf", "sine") if code == Operation.SIN else ("cosf", "cosine")
            yield f"    const float {name}{angle} = {function}({names[angle]});"
            names[value] = f"{name}{angle}"


def _element(tape: Tape, number: int) -> str:
    for entry in tape.inputs:
        if number < entry.size:
            return f"{entry.name}[{number}]"
        number -= entry.size
    raise IndexError(number)


def _literal(value: float, suffix: str) -> str:
    digits = f"{value:.17g}"
    digits = digits if any(mark in digits for mark in ".en") else f"{digits}.0"
    return f"({digits}{suffix})" if value < 0 else f"{digits}{suffix}"


def static_functions(package: str, tapes: Mapping[str, Tape], precision: str) -> str:
    """The text of tapes as static functions ``package_NAME_values`` of one file, after what they call."""
    own = [
        fast_function(tape, f"{package}_{name}_values", precision=precision, linkage="static", package=package)
        for name, tape in tapes.items()
    ]
    return "\n".join([*called_functions(package, tapes.values(), precision), *own])
