"""Text of the header and the source file of a C package, from the recorded functions that `CodeText` holds.

`dynid.export.c.c_package.generate_c` fills a `CodeText` with *tapes*: each is the straight-line list of operations of
one function. `header_text` and `source_text` write them as C, with comments on units and cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from dynid.export.c.c_functions import FUNCTIONS, PARAMETERS, SETTERS, TWO_RATE, UNITS
from dynid.export.c.c_model import CodeModel
from dynid.export.c.c_printer import CPrinter, Precision
from dynid.export.c.state_code import StateCode
from dynid.identifiability.layout import parameter_layout
from dynid.safe_text import c_comment, unique_identifiers
from dynid.tables import Table
from dynid.tape import Tape, count

TOLERANCE = {"double": 1e-12, "float": 2e-4}
"""Type of numbers -> largest error against Python, relative to the largest term of the sum that makes up a result; some
thousand times the rounding of the type, which the self-test of every package holds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodeText:
    """The contents of a package, from which all its files are written."""

    name: str
    """Identifier that every symbol begins with."""
    precision: Precision
    """Type of all numbers."""
    model: CodeModel
    """The robot, and the frames and parameters that the code computes with."""
    tapes: Mapping[str, Tape]
    """Functions of `FUNCTIONS`, by name without the prefix of the package."""
    setters: Mapping[str, Tape]
    """Functions of `SETTERS`, which fill the struct of parameters that the functions read at run time; empty where all
    parameters are constants."""
    tasks: Mapping[str, Tape]
    """Functions of `TWO_RATE`, empty without it. Two slow background tasks compute coefficients (inertia and gravity;
    velocity) and publish them; the fast synchronous task collects the latest and makes the torque of them."""
    parts: tuple[StateCode, ...] = ()
    """Functions that keep a state, each part in files of its own."""
    notes: tuple[str, ...] = ()
    """Further lines for the header: pruned parameters and missing terms."""

    @property
    def printer(self) -> CPrinter:
        """The writer of the functions."""
        return CPrinter(self.name, self.precision)

    @property
    def header(self) -> str:
        """Name of the header file that declares everything in `checkable`."""
        return f"{self.name}_two_rate.h" if self.tasks else f"{self.name}.h"

    @property
    def checkable(self) -> tuple[str, ...]:
        """Names of what can be checked: the functions, and ``two_rate``, the torque by background and fast tasks."""
        return (*self.tapes, "two_rate") if self.tasks else tuple(self.tapes)

    def declaration(self, function: str, tape: Tape) -> str:
        """Write the declaration of a function with its comment; run-time parameters are passed as a struct."""
        declared = self._with_struct(self.printer.declaration(tape, f"{self.name}_{function}"))
        return "\n".join([*_function_comment(self, function, tape), f"{declared};", ""])

    def definitions(self, tapes: Mapping[str, Tape]) -> str:
        """Write the definitions of functions, after the static functions that they call."""
        return self._with_struct(self.printer.functions({f"{self.name}_{key}": tape for key, tape in tapes.items()}))

    def _with_struct(self, code: str) -> str:
        """Put a struct in place of the array of run-time parameters, which the printer writes like any other array."""
        array = f"{self.precision} {PARAMETERS}[{len(self.model.runtime.columns)}]"
        return code.replace(array, f"{self.name}_parameters *{PARAMETERS}").replace(
            f"{PARAMETERS}[", f"{PARAMETERS}->value["
        )

    def declarations(self) -> list[str]:
        """Write C lines that declare and initialise the variables that `call_statements` use."""
        lines = [f"{self.name}_parameters {PARAMETERS};"] if self.setters else []
        if self.tasks:
            lines += [f"static {self.name}_exchange exchange;", f"{self.name}_coefficients coefficients;"]
            lines += [f"{self.name}_exchange_init(&exchange);"]
        return lines

    def call_statements(self, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> list[str]:
        """Write statements that compute everything in `checkable` from an array ``in`` into an array ``out``.

        Args:
            inputs: Name (``q dq ddq torque``, and ``values load`` that are set at run time) -> its size, in the order
                of the array ``in``.
            outputs: Name of each function -> size of its result, in the order of the array ``out``.
        """
        argument_of = {**_pointers("in", inputs), PARAMETERS: f"&{PARAMETERS}"}
        argument_of |= {part: f"coefficients.{part}" for part in ("inertia", "gravity", "velocity")}
        result_of = _pointers("out", outputs)

        def call(function: str, tape: Tape, *results: str) -> str:
            return f"{self.name}_{function}({', '.join([*(argument_of[e.name] for e in tape.inputs), *results])});"

        # the last setter alone: it sets all that the others do
        lines = [call(setter, tape, argument_of[PARAMETERS]) for setter, tape in [*self.setters.items()][-1:]]
        lines += [call(function, tape, result_of[function]) for function, tape in self.tapes.items()]
        if self.tasks:  # as a controller does: compute and publish coefficients, collect them, make the torque
            for task, parts in (("inertia", ("inertia", "gravity")), ("velocity", ("velocity",))):
                arrays = [argument_of[part] for part in parts]
                lines.append(call(f"background_{task}", self.tasks[f"background_{task}"], *arrays))
                lines.append(f"{self.name}_publish_{task}(&exchange, {', '.join(arrays)});")
            lines += [f"if ({self.name}_collect(&exchange, &coefficients) != 0) {{", "    return 1;", "}"]
            lines.append(call("synchronous", self.tasks["synchronous"], result_of["two_rate"]))
        return lines


def _pointers(array: str, widths: Mapping[str, int]) -> dict[str, str]:
    """Name -> C pointer into an array that holds parts of these widths one after another."""
    return {
        name: f"&{array}[{end - width}]"
        for (name, width), end in zip(widths.items(), accumulate(widths.values()), strict=True)
    }


def header_text(text: CodeText) -> str:
    """Write the header file: the model, the functions and their cost."""
    guard = f"{text.name.upper()}_H"
    lines = ["/*", *(f" * {line}".rstrip() for line in _about(text)), " */", f"#ifndef {guard}", f"#define {guard}", ""]
    lines += [f"#define {text.name.upper()}_DOF {text.model.robot.dof}", "", *_joint_numbers(text)]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", "", *(_parameter_struct(text) if text.setters else [])]
    lines += [text.declaration(function, tape) for function, tape in {**text.setters, **text.tapes}.items()]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */", ""])


def source_text(text: CodeText) -> str:
    """Write the source file."""
    name = text.name
    begin = (
        f"/* Generated by dynid; see {name}.h.\n * gcc -std=c99 -O3 -ffp-contract=fast -c {name}.c (link with -lm) */"
        f'\n#include "{name}.h"\n\n#include <math.h>\n\n'
    )
    return begin + text.definitions({**text.setters, **text.tapes})


def _about(text: CodeText) -> Iterable[str]:
    """Yield the lines of the comment at the head of the header file."""
    robot = text.model.robot
    yield f"Dynamics of robot '{c_comment(robot.name)}', generated by dynid. Do not edit."
    yield ""
    yield f"Model hash (SHA-256): {text.model.model_hash}"
    yield f"Precision: {text.precision}. SI units throughout: rad, m, s, kg, N m (revolute joints) or N (prismatic)."
    gravity = ", ".join(f"{value:.6g}" for value in robot.gravity)
    yield f"Rounding errors are at most {TOLERANCE[text.precision]:.0e} of the largest term of a sum on random states."
    yield "Compile without -ffast-math and -Ofast: they break this bound and hide NaN and infinity."
    yield f"Gravity, in the frame of base link '{c_comment(robot.root)}': ({gravity}) m/s^2."
    yield "Joint positions are zero where the robot's description has them zero. Functions keep no state and do"
    yield "not allocate; they may be called from several threads."
    yield ""
    kinds = [
        (j, c_comment(b.joint.name, 40), b.joint.kind, c_comment(b.joint.child, 40)) for j, b in enumerate(robot.bodies)
    ]
    yield from Table.of(["index", "joint", "kind", "moves link"], kinds).to_text().splitlines()
    yield ""
    yield "Operations of one call:"
    yield from operation_table(text).to_text().splitlines()
    if text.notes:
        yield ""
        yield from (c_comment(note, 110) for note in text.notes)


def operation_table(text: CodeText) -> Table:
    """Make a table of the operations of one call of each function."""
    rows = []
    for function, tape in [*text.tapes.items(), *text.setters.items()]:
        cost = count(tape)
        others = cost.negations + cost.others
        rows.append((function, cost.multiplications, cost.additions, cost.divisions, cost.trigonometric, others))
    return Table.of(["function", "mul", "add", "div", "sin/cos", "other"], rows)


def _joint_numbers(text: CodeText) -> list[str]:
    """Write an enumeration of the joints."""
    names = unique_identifiers(text.model.robot.joint_names, "joint")
    entries = [f"    {text.name.upper()}_JOINT_{name.upper()} = {j}," for j, name in enumerate(names)]
    entries[-1] = entries[-1].rstrip(",")
    return ["/* Joints by name: index into q, dq, ddq and torque. */", "enum {", *entries, "};", ""]


def _parameter_struct(text: CodeText) -> list[str]:
    """Write an enumeration of the run-time parameters, and the struct that holds them."""
    values = text.model.runtime
    upper = text.name.upper()
    names = unique_identifiers(values.names, "parameter")
    entries = [
        f"    {upper}_{name.upper()} = {k}, /* [{c_comment(unit)}] */"
        for k, (name, unit) in enumerate(zip(names, values.units, strict=True))
    ]
    lines = ["/* Parameters that can be changed at run time: index into values. */", "enum {", *entries]
    lines += [f"    {upper}_PARAMETERS = {len(entries)}", "};", ""]
    lines += ["/* The values that the functions compute with. */"]
    return [*lines, f"typedef struct {{\n    {text.precision} value[{len(entries)}];\n}} {text.name}_parameters;", ""]


def _function_comment(text: CodeText, function: str, tape: Tape) -> Iterable[str]:
    """Yield the lines of the comment above a function's declaration: cost, inputs and outputs with units."""
    entry = (FUNCTIONS | SETTERS | TWO_RATE)[function]
    link = c_comment(text.model.robot.bodies[-1].joint.child)
    yield f"/* {entry.description.format(link=link)} {count(tape)}."
    if entry.inputs:
        yield f" * In: {', '.join(f'{name} {UNITS[name]}' for name in entry.inputs)}."
    yield f" * Out: {', '.join(f'{o.name} {list(o.shape)} {entry.outputs[o.name]}' for o in tape.outputs)}."
    if function == "energy" and text.model.runtime.columns and text.model.is_regrouped:
        yield " * The values are regrouped and count the potential energy from a zero of their own; loads may move it."
    if function == "regressor":
        base = text.model.base
        names = parameter_layout(text.model.robot).names if base is None else base.names
        yield f" * Columns: {c_comment(' '.join(names), 4000)}."  # some compilers read no longer lines
    yield " */"
