"""A tape as a fast C function: an order that keeps few values alive, sines and cosines computed together."""

from __future__ import annotations

from collections.abc import Iterable

from dynid.tape import Tape
from dynid.tape.c_backend import CStyle, c_declaration, c_function
from dynid.tape.lower import FunctionPass, Instruction, lower, stages
from dynid.tape.operations import Operation, is_binary

__all__ = ["fast_function", "sincos_text", "uses_sincos"]

_SINCOS = """/* Sine and cosine together, to the last digit or two: reduction by multiples of pi/2 in three parts
 * (Cody and Waite), then the polynomials of fdlibm. Angles beyond 1e5 rad are left to the C library. */
static inline void {name}_sincos(double x, double *sine, double *cosine)
{{
    if (!(fabs(x) <= 1e5)) {{
        *sine = sin(x);
        *cosine = cos(x);
    }} else {{
        const int n = (int)((x * 6.36619772367581382433e-01) + ((x < 0.0) ? (-0.5) : 0.5));
        const unsigned int quadrant = (unsigned int)n;
        const double k = (double)n;
        const double r = ((x - (k * 1.57079632673412561417e+00)) - (k * 6.07710050630396597660e-11))
            - (k * 2.02226624879595063154e-21);
        const double z = r * r;
        const double s = r + ((r * z) * ((-1.66666666666666324348e-01) + (z * (8.33333333332248946124e-03
            + (z * ((-1.98412698298579493134e-04) + (z * (2.75573137070700676789e-06
            + (z * ((-2.50507602534068634195e-08) + (z * 1.58969099521155010221e-10)))))))))));
        const double c = (1.0 - (0.5 * z)) + ((z * z) * (4.16666666666666019037e-02
            + (z * ((-1.38888888888741095749e-03) + (z * (2.48015872894767294178e-05
            + (z * ((-2.75573143513906633035e-07) + (z * (2.08757232129817482790e-09
            + (z * (-1.13596475577881948265e-11))))))))))));
        const double a = ((quadrant & 1u) != 0u) ? c : s;
        const double b = ((quadrant & 1u) != 0u) ? s : c;
        *sine = ((quadrant & 2u) != 0u) ? (-a) : a;
        *cosine = (((quadrant + 1u) & 2u) != 0u) ? (-b) : b;
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
    "sqrt": "sqrt({0})",
    "abs": "fabs({0})",
    "sign": "({0} > 0.0) ? 1.0 : (({0} < 0.0) ? (-1.0) : {0})",
}


def sincos_text(name: str) -> str:
    """The static function that `fast_function` calls."""
    return _SINCOS.format(name=name)


def uses_sincos(tapes: Iterable[Tape]) -> bool:
    """Whether any of these functions calls it, printed by `fast_function`."""
    return any(_is_plain(tape) and _angles(tape) for tape in tapes)


def fast_function(tape: Tape, symbol: str, *, precision: str, linkage: str, package: str) -> str:
    """The function's definition; outputs are written last, so they may be inputs too.

    Args:
        tape: The program.
        symbol: The function's name.
        precision: ``double`` or ``float``.
        linkage: What stands before ``void``.
        package: What the name of the sine and cosine function begins with.
    """
    style = CStyle(precision="float" if precision == "float" else "double", linkage=linkage)
    if precision == "float" or not _is_plain(tape):
        return _with_idle(tape, c_function(tape, symbol, style))
    names = {number: _element(tape, number) for number in range(tape.input_size)}
    names |= {~k: _literal(value) for k, value in enumerate(tape.constants.tolist())}
    lines = [c_declaration(tape, symbol, style), "{"]
    lines += _sincos_lines(tape, names, package)
    targets = [e for output in tape.outputs for e in output.elements.ravel().tolist()]
    places = [f"{o.name}[{k}]" for o in tape.outputs for k in range(o.size)]
    stores = []
    for step in lower(tape, targets, fused=True).instructions:
        if step.name == "store":
            stores.append((step.result, step.operands[0]))
            continue
        lines.append(f"    const double t{step.result} = {_expression(step, names)};")
        names[step.result] = f"t{step.result}"
    stores += [(slot, target) for slot, target in enumerate(targets) if target < 0]
    lines += _store_lines(tape, dict(stores), places, names)
    return _with_idle(tape, "\n".join([*lines, "}", ""]))


def _store_lines(tape: Tape, stores: dict[int, int], places: list[str], names: dict[int, str]) -> Iterable[str]:
    copied = {operand for operand in stores.values() if 0 <= operand < tape.input_size}
    yield from (f"    const double kept{operand} = {names[operand]};" for operand in sorted(copied))
    for slot, operand in sorted(stores.items()):
        yield f"    {places[slot]} = {f'kept{operand}' if operand in copied else names[operand]};"


def _is_plain(tape: Tape) -> bool:
    """Whether its functions are sines and cosines of inputs, and nothing is left that only the plain printer knows."""
    for _, code, left, _ in tape.steps():
        if code in (Operation.SIN, Operation.COS) and not 0 <= left < tape.input_size:
            return False
        if code in (Operation.TANH, Operation.EXP):
            return False
    return True


def _angles(tape: Tape) -> list[FunctionPass]:
    return [entry for entry in stages(tape) if entry.name == "sincos"]


def _sincos_lines(tape: Tape, names: dict[int, str], package: str) -> list[str]:
    lines = []
    for entry in _angles(tape):
        for place, argument in enumerate(entry.arguments):
            lines += [f"    double s{argument};", f"    double c{argument};"]
            for letter, results in zip("sc", entry.results, strict=True):
                names.update({value: f"{letter}{argument}" for value, at in results.items() if at == place})
    calls = [f"    {package}_sincos({names[a]}, &s{a}, &c{a});" for entry in _angles(tape) for a in entry.arguments]
    unused = [
        f"    (void){letter}{argument};"
        for entry in _angles(tape)
        for place, argument in enumerate(entry.arguments)
        for letter, results in zip("sc", entry.results, strict=True)
        if place not in results.values()
    ]
    return [*lines, *calls, *unused]


def _expression(step: Instruction, names: dict[int, str]) -> str:
    return _EXPRESSIONS[step.name].format(*(names[operand] for operand in step.operands))


def _element(tape: Tape, number: int) -> str:
    for entry in tape.inputs:
        if number < entry.size:
            return f"{entry.name}[{number}]"
        number -= entry.size
    raise IndexError(number)


def _literal(value: float) -> str:
    digits = f"{value:.17g}"
    digits = digits if any(mark in digits for mark in ".en") else f"{digits}.0"
    return f"({digits})" if value < 0 else digits


def _with_idle(tape: Tape, text: str) -> str:
    """Name inputs that nothing reads once, for the compiler's sake."""
    read = {e for output in tape.outputs for e in output.elements.ravel().tolist()}
    for _, code, left, right in tape.steps():
        read.update((left, right) if is_binary(code) else (left,))
    idle, first = [], 0
    for entry in tape.inputs:
        if read.isdisjoint(range(first, first + entry.size)) and f"(void){entry.name};" not in text:
            idle.append(f"    (void){entry.name};")
        first += entry.size
    head, body = text.split("\n{\n", 1)
    return "\n".join([head, "{", *idle, body])
