"""Text of the header and the source file of a C package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from dynid.export.c.c_functions import FUNCTIONS, TWO_RATE
from dynid.export.c.c_model import CodeModel
from dynid.export.c.c_printer import called_functions, fast_function, printed_count
from dynid.links.rich.models import Model
from dynid.monitor.observer import ObserverModel
from dynid.parameters.layout import parameter_layout
from dynid.safe_text import c_comment, c_identifier, unique_identifiers
from dynid.tables import Table
from dynid.tape import Tape
from dynid.tape.c_backend import CStyle, c_declaration

PARAMETERS = "parameters"
"""Name of the tapes' input that holds the run-time parameters."""
TOLERANCE = {"double": 1e-12, "float": 2e-4}
"""Largest error against Python, relative to the size of the terms of the sum; some thousand times the rounding of each
type, held on random robots by tests/campaigns/c_robots.py."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodeText:
    """Everything that the files of a package are made from."""

    name: str
    """Identifier that every symbol begins with."""
    precision: Literal["double", "float"]
    model: CodeModel
    tapes: Mapping[str, Tape]
    """The public functions by name, without the prefix of the package."""
    setters: Mapping[str, Tape]
    """``set_parameters`` and ``set_load``; empty without run-time parameters."""
    tasks: Mapping[str, Tape]
    """The two background tasks and the synchronous one; empty without the two-rate structure."""
    whole: Model | None = None
    """The whole identified model, where it has terms that the functions cannot carry."""
    observer: ObserverModel | None = None
    """The momentum observer, where it was asked for; it computes with the values as constants."""
    notes: tuple[str, ...] = ()
    """Further lines for the header: pruned parameters and missing terms."""

    @property
    def answered(self) -> tuple[str, ...]:
        """Names of everything that can be checked: the functions, and the torque by the two-rate structure."""
        return (*self.tapes, "two_rate") if self.tasks else tuple(self.tapes)

    def declaration(self, function: str, tape: Tape) -> str:
        """Declaration of a function, without semicolon; run-time parameters are passed as a struct."""
        plain = c_declaration(tape, f"{self.name}_{function}", CStyle(precision=self.precision))
        return self._with_struct(plain)

    def definition(self, function: str, tape: Tape) -> str:
        """Definition of a function."""
        return self._with_struct(self._function(tape, function, ""))

    def _with_struct(self, code: str) -> str:
        own = f"const {self.precision} {PARAMETERS}[{len(self.model.columns)}]"
        whole = code.replace(own, f"const {self.name}_parameters *{PARAMETERS}")
        return whole.replace(f"{PARAMETERS}[", f"{PARAMETERS}->value[")

    def _function(self, tape: Tape, function: str, linkage: str) -> str:
        symbol = f"{self.name}_{function}"
        return fast_function(tape, symbol, precision=self.precision, linkage=linkage, package=self.name)

    def called(self, tapes: Iterable[Tape]) -> list[str]:
        """The static functions that the functions of these tapes call."""
        return called_functions(self.name, tapes, self.precision)

    def setter(self, function: str, *, body: bool) -> str:
        """Declaration or definition of ``set_parameters`` or ``set_load``."""
        tape = self.setters[function]
        inputs = [f"const {self.precision} {entry.name}[{entry.size}]" for entry in tape.inputs]
        head = f"void {self.name}_{function}({', '.join([*inputs, f'{self.name}_parameters *{PARAMETERS}'])})"
        if not body:
            return head
        arguments = ", ".join([*(entry.name for entry in tape.inputs), f"{PARAMETERS}->value"])
        call = f"    {self.name}_{function}_values({arguments});"
        return f"{self._function(tape, f'{function}_values', 'static')}\n{head}\n{{\n{call}\n}}\n"

    def declarations(self) -> list[str]:
        """The variables that `calls` needs, ready for use."""
        lines = [f"{self.name}_parameters {PARAMETERS};"] if self.setters else []
        if self.tasks:
            lines += [f"static {self.name}_exchange exchange;", f"{self.name}_coefficients coefficients;"]
            lines += [f"{self.name}_exchange_init(&exchange);"]
        return lines

    def calls(self, inputs: Mapping[str, str], results: Mapping[str, str]) -> list[str]:
        """Statements that compute everything in `answered`.

        Args:
            inputs: Pointers to q, dq, ddq and torque.
            results: Pointers to the result of each function.
        """
        known = {**inputs, PARAMETERS: f"&{PARAMETERS}", "inertia": "coefficients.inertia"}
        known |= {part: f"coefficients.{part}" for part in ("gravity", "velocity")}

        def call(function: str, tape: Tape, *answer: str) -> str:
            return f"{self.name}_{function}({', '.join([*(known[e.name] for e in tape.inputs), *answer])});"

        lines = [call(function, tape, results[function]) for function, tape in self.tapes.items()]
        if self.tasks:
            for task, parts in (("inertia", ("inertia", "gravity")), ("velocity", ("velocity",))):
                place = [known[part] for part in parts]
                lines.append(call(f"background_{task}", self.tasks[f"background_{task}"], *place))
                lines.append(f"{self.name}_publish_{task}(&exchange, {', '.join(place)});")
            lines += [f"if ({self.name}_collect(&exchange, &coefficients) != 0) {{", "    return 1;", "}"]
            lines.append(call("synchronous", self.tasks["synchronous"], results["two_rate"]))
        return lines


def header_text(text: CodeText) -> str:
    """Write the header: the model, the functions and their cost."""
    guard = f"{text.name.upper()}_H"
    lines = ["/*", *(f" * {line}".rstrip() for line in _about(text)), " */", f"#ifndef {guard}", f"#define {guard}", ""]
    lines += [f"#define {text.name.upper()}_DOF {text.model.robot.dof}", "", *_joint_numbers(text)]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", "", *_parameter_section(text)]
    for function, tape in text.tapes.items():
        lines += [*_function_comment(text, function, tape), f"{text.declaration(function, tape)};", ""]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */", ""])


def source_text(text: CodeText) -> str:
    """Write the source file."""
    parts = [
        f'/* Generated by dynid; see {text.name}.h. */\n#include "{text.name}.h"\n\n#include <math.h>\n',
        *text.called(text.tapes.values()),
    ]
    if text.setters:
        values = text.model.runtime_values.tolist()
        suffix = "f" if text.precision == "float" else ""
        rows = [f"    values[{k}] = {_literal(value)}{suffix};" for k, value in enumerate(values)]
        parts.append("\n".join([_defaults_declaration(text), "{", *rows, "}", ""]))
        parts += [text.setter(function, body=True) for function in text.setters]
    parts += [text.definition(function, tape) for function, tape in text.tapes.items()]
    return "\n".join(parts)


def _literal(value: float) -> str:
    digits = f"{value:.17g}"
    return digits if any(mark in digits for mark in ".en") else f"{digits}.0"


def _about(text: CodeText) -> Iterable[str]:
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
    """Table of the operations of each function."""
    rows = []
    for function, tape in [*text.tapes.items(), *text.setters.items()]:
        cost = printed_count(tape)
        others = cost.negations + cost.others
        rows.append((function, cost.multiplications, cost.additions, cost.divisions, cost.trigonometric, others))
    return Table.of(["function", "mul", "add", "div", "sin/cos", "other"], rows)


def _joint_numbers(text: CodeText) -> list[str]:
    joints = text.model.robot.joint_names
    exact_first = sorted(joints, key=lambda joint: c_identifier(joint, "joint") != joint)  # these keep their names
    found = dict(zip(exact_first, unique_identifiers(exact_first, "joint"), strict=True))
    names = [found[joint] for joint in joints]
    entries = [f"    {text.name.upper()}_JOINT_{name.upper()} = {j}," for j, name in enumerate(names)]
    entries[-1] = entries[-1].rstrip(",")
    return ["/* Joints by name: index into q, dq, ddq and torque. */", "enum {", *entries, "};", ""]


def _defaults_declaration(text: CodeText) -> str:
    return f"void {text.name}_default_values({text.precision} values[{len(text.model.columns)}])"


def _parameter_section(text: CodeText) -> list[str]:
    if not text.setters:
        return []
    model, upper = text.model, text.name.upper()
    names = unique_identifiers(model.runtime_names, "parameter")
    entries = [
        f"    {upper}_{name.upper()} = {k}, /* [{c_comment(unit)}] */"
        for k, (name, unit) in enumerate(zip(names, model.runtime_units, strict=True))
    ]
    lines = ["/* Parameters that can be changed at run time: index into values. */", "enum {", *entries]
    lines += [f"    {upper}_PARAMETERS = {len(entries)}", "};", ""]
    lines += ["/* The values that the functions compute with. */"]
    lines += [f"typedef struct {{\n    {text.precision} value[{len(entries)}];\n}} {text.name}_parameters;", ""]
    lines += ["/* The values the model was generated with. */", f"{_defaults_declaration(text)};", ""]
    lines += ["/* Set the values. */", f"{text.setter('set_parameters', body=False)};", ""]
    if "set_load" in text.setters:
        frame = c_comment(model.robot.bodies[-1].joint.child)
        lines += [
            f"/* Set the values with a load on link '{frame}': XX XY XZ YY YZ ZZ [kg m^2] about the origin of",
            " * the link's frame, MX MY MZ [kg m], mass [kg], along the link's axes; zeros remove the load. */",
            f"{text.setter('set_load', body=False)};",
            "",
        ]
    return lines


def _function_comment(text: CodeText, function: str, tape: Tape) -> Iterable[str]:
    entry = FUNCTIONS[function]
    units = {"q": "[rad or m]", "dq": "[rad/s or m/s]", "ddq": "[rad/s^2 or m/s^2]", "torque": "[N m or N]"}
    yield f"/* {entry.description} {printed_count(tape)}."
    yield f" * In: {', '.join(f'{state} {units[state]}' for state in entry.states)}."
    yield f" * Out: {', '.join(f'{o.name} {list(o.shape)} {entry.outputs[o.name]}' for o in tape.outputs)}."
    if function == "energy" and text.model.columns and text.model.regrouped:
        yield " * The values are regrouped and count the potential energy from a zero of their own; loads may move it."
    if function == "regressor":
        base = text.model.base
        names = parameter_layout(text.model.robot).names if base is None else base.names
        yield f" * Columns: {c_comment(' '.join(names), 4000)}."
    yield " */"


_HEADER = """/*
 * Two-rate dynamics of the robot of {name}.h, generated by dynid. Do not edit.
 *
 * Background tasks, at any pace, in any order, each in one task only:
 *     {name}_background_inertia(...);  {name}_publish_inertia(&exchange, inertia, gravity);
 *     {name}_background_velocity(...); {name}_publish_velocity(&exchange, velocity);
 * Synchronous task, every control period:
 *     if ({name}_collect(&exchange, &coefficients) == 0) {{
 *         {name}_synchronous(coefficients.inertia, coefficients.gravity, coefficients.velocity, ddq, torque);
 *     }} else {{
 *         (a background task has not published yet: there is no torque, keep the brakes on)
 *     }}
 *
 * Exchange without locks: two double buffers per background task (Simpson's four slots). Writer and reader never
 * touch the same slot at the same time, so no task waits, no data are mixed, and the reader gets the newest complete
 * values however often it is interrupted. One task may publish inertias, one velocities, one may collect. With GCC
 * and Clang (any standard) and with C11 compilers the tasks may run on several cores; with others on one core.
 *
 * Operations: background_inertia {inertia}; background_velocity {velocity};
 * synchronous {synchronous}.
 */
#ifndef {upper}_TWO_RATE_H
#define {upper}_TWO_RATE_H

#include "{name}.h"

#ifdef __cplusplus
extern "C" {{
#endif

typedef struct {{
    {type} inertia[{packed}]; /* upper triangle, row after row [kg m^2, kg m or kg] */
    {type} gravity[{n}]; /* [N m or N] */
    {type} velocity[{n}]; /* velocity torques, friction, offsets [N m or N] */
}} {name}_coefficients;

typedef struct {{ /* state of four slots */
    volatile unsigned int ready; /* something was published */
    volatile unsigned int latest; /* pair last written */
    volatile unsigned int reading; /* pair being read */
    volatile unsigned int slot[2]; /* half last written of each pair */
}} {name}_channel;

typedef struct {{
    {name}_channel inertia_channel;
    {name}_channel velocity_channel;
    volatile {type} inertia[4][{first}];
    volatile {type} velocity[4][{n}];
}} {name}_exchange;

{declarations}
/* Before the tasks start. */
void {name}_exchange_init({name}_exchange *exchange);

void {name}_publish_inertia({name}_exchange *exchange, const {type} inertia[{packed}], const {type} gravity[{n}]);

void {name}_publish_velocity({name}_exchange *exchange, const {type} velocity[{n}]);

/* Copy the newest coefficients. Returns 0, or 1 if some were never published; then nothing is copied. */
int {name}_collect({name}_exchange *exchange, {name}_coefficients *coefficients);

#ifdef __cplusplus
}}
#endif

#endif /* {upper}_TWO_RATE_H */
"""

_SOURCE = """/* Generated by dynid; see {name}_two_rate.h. */
#include "{name}_two_rate.h"

#include <math.h>

#if defined(__GNUC__)
#define {upper}_GET(flag) __atomic_load_n((flag), __ATOMIC_SEQ_CST)
#define {upper}_SET(flag, value) __atomic_store_n((flag), (value), __ATOMIC_SEQ_CST)
#else
#if defined(__STDC_VERSION__) && (__STDC_VERSION__ >= 201112L) && !defined(__STDC_NO_ATOMICS__)
#include <stdatomic.h>
#define {upper}_FENCE() atomic_thread_fence(memory_order_seq_cst)
#else
#define {upper}_FENCE() ((void)0) /* one core: volatile accesses stay in order */
#endif
static unsigned int {name}_get(const volatile unsigned int *flag)
{{
    const unsigned int value = *flag;
    {upper}_FENCE();
    return value;
}}
static void {name}_set(volatile unsigned int *flag, unsigned int value)
{{
    {upper}_FENCE();
    *flag = value;
    {upper}_FENCE();
}}
#define {upper}_GET(flag) {name}_get(flag)
#define {upper}_SET(flag, value) {name}_set((flag), (value))
#endif

/* Slot that the writer may fill: in the pair that is not being read, the half that was not written last. */
static unsigned int {name}_free_slot(const {name}_channel *channel)
{{
    const unsigned int pair = 1u - {upper}_GET(&channel->reading);
    return (2u * pair) + (1u - {upper}_GET(&channel->slot[pair]));
}}

/* Publish a slot that is filled. */
static void {name}_offer({name}_channel *channel, unsigned int slot)
{{
    {upper}_SET(&channel->slot[slot / 2u], slot % 2u);
    {upper}_SET(&channel->latest, slot / 2u);
    {upper}_SET(&channel->ready, 1u);
}}

/* Slot that the reader may copy until it asks again. */
static unsigned int {name}_newest_slot({name}_channel *channel)
{{
    const unsigned int pair = {upper}_GET(&channel->latest);
    {upper}_SET(&channel->reading, pair);
    return (2u * pair) + {upper}_GET(&channel->slot[pair]);
}}

static void {name}_channel_init({name}_channel *channel)
{{
    channel->ready = 0u;
    channel->latest = 0u;
    channel->reading = 0u;
    channel->slot[0] = 0u;
    channel->slot[1] = 0u;
}}

{definitions}
void {name}_exchange_init({name}_exchange *exchange)
{{
    {name}_channel_init(&exchange->inertia_channel);
    {name}_channel_init(&exchange->velocity_channel);
}}

void {name}_publish_inertia({name}_exchange *exchange, const {type} inertia[{packed}], const {type} gravity[{n}])
{{
    const unsigned int slot = {name}_free_slot(&exchange->inertia_channel);
    int i;
    for (i = 0; i < {packed}; i++) {{
        exchange->inertia[slot][i] = inertia[i];
    }}
    for (i = 0; i < {n}; i++) {{
        exchange->inertia[slot][{packed} + i] = gravity[i];
    }}
    {name}_offer(&exchange->inertia_channel, slot);
}}

void {name}_publish_velocity({name}_exchange *exchange, const {type} velocity[{n}])
{{
    const unsigned int slot = {name}_free_slot(&exchange->velocity_channel);
    int i;
    for (i = 0; i < {n}; i++) {{
        exchange->velocity[slot][i] = velocity[i];
    }}
    {name}_offer(&exchange->velocity_channel, slot);
}}

int {name}_collect({name}_exchange *exchange, {name}_coefficients *coefficients)
{{
    unsigned int slot;
    int i;
    if (({upper}_GET(&exchange->inertia_channel.ready) == 0u)
        || ({upper}_GET(&exchange->velocity_channel.ready) == 0u)) {{
        return 1;
    }}
    slot = {name}_newest_slot(&exchange->inertia_channel);
    for (i = 0; i < {packed}; i++) {{
        coefficients->inertia[i] = exchange->inertia[slot][i];
    }}
    for (i = 0; i < {n}; i++) {{
        coefficients->gravity[i] = exchange->inertia[slot][{packed} + i];
    }}
    slot = {name}_newest_slot(&exchange->velocity_channel);
    for (i = 0; i < {n}; i++) {{
        coefficients->velocity[i] = exchange->velocity[slot][i];
    }}
    return 0;
}}
"""


def two_rate_header(text: CodeText) -> str:
    """Write the header of the two-rate structure."""
    declarations = []
    for task, tape in text.tasks.items():
        says = (
            TWO_RATE[task].description
            if task in TWO_RATE
            else "Synchronous task: torque = inertia ddq + gravity + velocity."
        )
        declarations += [f"/* {says} */", f"{text.declaration(task, tape)};", ""]
    costs = {"inertia": "background_inertia", "velocity": "background_velocity", "synchronous": "synchronous"}
    words = {short: str(printed_count(text.tasks[task])) for short, task in costs.items()}
    return _HEADER.format(declarations="\n".join(declarations), **words, **_sizes(text))


def two_rate_source(text: CodeText) -> str:
    """Write the source of the two-rate structure."""
    shared = text.called(text.tasks.values())
    definitions = "\n".join([*shared, *(text.definition(task, tape) for task, tape in text.tasks.items())])
    return _SOURCE.format(definitions=definitions, **_sizes(text))


def _sizes(text: CodeText) -> dict[str, object]:
    n = text.model.robot.dof
    packed = n * (n + 1) // 2
    sizes = {"n": n, "packed": packed, "first": packed + n}
    return {"name": text.name, "upper": text.name.upper(), "type": text.precision, **sizes}
