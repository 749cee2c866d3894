"""Compile generated code, run it and compare it with Python."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ExportError, GeneratedCodeMismatch
from dynid.export.c.c_preparation import PARAMETERS
from dynid.export.c.c_reference import Reference, reference
from dynid.export.c.c_source import CodeText
from dynid.export.c.c_two_rate_text import two_rate_call
from dynid.kernels import kernel

FLAGS = (
    "-std=c99",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wshadow",
    "-Wdouble-promotion",
    "-Wvla",
    "-Werror",
)
"""Compiler options for checking generated code: any warning is an error."""

_DRIVER = """#include <stdio.h>

#include "{header}"

int main(void)
{{
    static {type} in[{inputs}];
    static {type} out[{outputs}];
{declarations}
    while (fread(in, sizeof(in[0]), {inputs}, stdin) == {inputs}) {{
{calls}
        if (fwrite(out, sizeof(out[0]), {outputs}, stdout) != {outputs}) {{
            return 1;
        }}
    }}
    return 0;
}}
"""
_NAMES = ("q", "dq", "ddq", "torque", "values", "load")
"""Inputs of the driver program, in order."""
_TIME_LIMIT_S = 600
"""Longest time that a compiler or a driver may run [s]; a convention."""


def find_compiler() -> str | None:
    """Find the C compiler: that of ``$CC``, else cc, gcc or clang; None if there is none."""
    command = _compiler_command()
    return command[0] if command else None


def _compiler_command() -> list[str]:
    """The compiler with the options of ``$CC``; empty if there is none."""
    asked = shlex.split(os.environ.get("CC", ""))
    if asked and shutil.which(asked[0]) is None:
        raise ExportError(
            f"CC names '{asked[0]}', which is not a program on this machine",
            remedy="Set CC to a C compiler, or unset it.",
        )
    path = next((found for name in (asked[:1] or ("cc", "gcc", "clang")) if (found := shutil.which(name))), None)
    return [path, *asked[1:]] if path else []


def check_code(text: CodeText, files: Mapping[str, str], answers: Reference, tolerance: float) -> dict[str, float]:
    """Compile and run the code; return the largest error of each function, relative to the size of its terms.

    Args:
        text: The description that the code was generated from.
        files: The package's files.
        answers: States and the results of Python.
        tolerance: Largest error allowed.

    Raises:
        ExportError: There is no compiler, or it refuses the code.
        GeneratedCodeMismatch: An error is beyond the tolerance; the message names the worst sample.
    """
    with tempfile.TemporaryDirectory(prefix="dynid_") as folder:
        return compare(text, run_driver(text, build_driver(text, files, folder), answers), answers, tolerance)


def compare(text: CodeText, found: Mapping[str, Floats], answers: Reference, tolerance: float) -> dict[str, float]:
    """Compare results (N, size) with those of Python; returns the largest error of each function, see `check_code`."""
    errors = {}
    for name, values in found.items():
        error = _errors(text, name, values, answers)
        worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
        errors[name] = float(error[worst])
        if not errors[name] <= tolerance:
            state = ", ".join(f"{key} = {answers.inputs[key][worst].tolist()}" for key in ("q", "dq", "ddq"))
            much = f"{errors[name]:.2e}, more than {tolerance:.0e},"
            raise GeneratedCodeMismatch(
                f"{text.name}_{name} differs by {much} at sample {worst}: {state}",
                remedy="Report this robot: generated code must agree with Python.",
            )
    return errors


def _errors(text: CodeText, name: str, found: Floats, answers: Reference) -> Floats:
    """(N,) error of each sample."""
    if name != "forward_dynamics":
        return np.asarray((np.abs(found - answers.expected[name]) / answers.scale[name]).max(axis=1))
    # an ill-conditioned inertia matrix amplifies rounding of accelerations: the torque that they miss must be small
    states, theta = answers.inputs, answers.theta
    Y = kernel(text.model.robot, "regressor")(states["q"], states["dq"], np.nan_to_num(found, nan=1e300))
    missed = np.abs(np.einsum("nij,nj->ni", Y, theta) - states["torque"]).max(axis=1)
    terms = np.einsum("nij,nj->ni", np.abs(Y), np.abs(theta)).max(axis=1) + np.abs(states["torque"]).max(axis=1)
    return np.asarray(missed / terms)


def build_driver(text: CodeText, files: Mapping[str, str], folder: str, flags: Sequence[str] = FLAGS) -> str:
    """Write the package into a folder and compile a program that evaluates states; returns the path of the program."""
    answers = reference(text.model, text.answered, 1)
    for name, content in {**files, "driver.c": _driver(text, answers)}.items():
        Path(folder, name).write_text(content)
    sources = [name for name in files if name.endswith(".c") and "selftest" not in name]
    return compile_c(folder, [*sources, "driver.c"], "driver", flags)


def run_driver(text: CodeText, program: str, answers: Reference) -> dict[str, Floats]:
    """Run the program on N states; returns (N, size) results for each function."""
    precision = np.float64 if text.precision == "double" else np.float32
    stream = np.concatenate([answers.inputs[name] for name in _NAMES], axis=1).astype(precision)
    output = _execute([program], stream.tobytes())
    sizes = [answers.expected[name].shape[1] for name in text.answered]
    values = np.frombuffer(output, dtype=precision).astype(float).reshape(len(stream), sum(sizes))
    return dict(zip(text.answered, np.split(values, np.cumsum(sizes)[:-1], axis=1), strict=True))


def compile_c(folder: str, sources: Sequence[str], program: str, flags: Sequence[str] = FLAGS) -> str:
    """Compile C files of a folder into a program in it; returns the path of the program."""
    compiler = _compiler_command()
    if not compiler:
        raise ExportError("there is no C compiler to check the code with", remedy="Install gcc or clang, or set CC.")
    target = str(Path(folder, program))
    remedy = "Set CC to a C99 compiler such as gcc or clang; if it is one, report this robot."
    _execute([*compiler, *flags, *sources, "-o", target, "-lm"], b"", folder, remedy)
    return target


def run_sources(
    files: Mapping[str, str], driver: str, stdin: bytes, words: Sequence[str] = (), flags: Sequence[str] = FLAGS
) -> bytes:
    """Compile C files with a driver program in a temporary folder, run it on some bytes; returns what it wrote."""
    with tempfile.TemporaryDirectory(prefix="dynid_") as folder:
        for file, content in {**files, "driver.c": driver}.items():
            Path(folder, file).write_text(content)
        sources = [file for file in files if file.endswith(".c")]
        return _execute([compile_c(folder, [*sources, "driver.c"], "driver", flags), *words], stdin)


def _execute(command: list[str], stdin: bytes, folder: str | None = None, remedy: str | None = None) -> bytes:
    done = subprocess.run(command, input=stdin, cwd=folder, capture_output=True, timeout=_TIME_LIMIT_S, check=False)
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip()[:2000]
        raise ExportError(f"{Path(command[0]).name} failed ({done.returncode}): {message}", remedy=remedy)
    return done.stdout


def _driver(text: CodeText, answers: Reference) -> str:
    """A program that reads states from standard input and writes the results of all functions to standard output."""
    widths = [answers.inputs[name].shape[1] for name in _NAMES]
    place = dict(zip(_NAMES, np.concatenate([[0], np.cumsum(widths)]).tolist(), strict=False))
    calls, first = [], 0
    if "set_load" in text.setters:
        calls.append(f"        {text.name}_set_load(&in[{place['values']}], &in[{place['load']}], &parameters);")
    elif text.setters:
        calls.append(f"        {text.name}_set_parameters(&in[{place['values']}], &parameters);")
    for name, tape in text.tapes.items():
        inputs = ["&parameters" if e.name == PARAMETERS else f"&in[{place[e.name]}]" for e in tape.inputs]
        calls.append(f"        {text.name}_{name}({', '.join([*inputs, f'&out[{first}]'])});")
        first += answers.expected[name].shape[1]
    declarations = [f"    {text.name}_parameters parameters;"] if text.setters else []
    if text.tasks:
        pointers = {"parameters": "&parameters", **{state: f"&in[{place[state]}]" for state in ("q", "dq", "ddq")}}
        calls += [f"        {line}" for line in two_rate_call(text, pointers, f"&out[{first}]")]
        first += answers.expected["two_rate"].shape[1]
        declarations += [f"    static {text.name}_exchange exchange;", f"    {text.name}_coefficients coefficients;"]
        declarations += [f"    {text.name}_exchange_init(&exchange);"]
    return _DRIVER.format(
        name=text.name,
        header=f"{text.name}_two_rate.h" if text.tasks else f"{text.name}.h",
        type=text.precision,
        inputs=sum(widths),
        outputs=first,
        declarations="\n".join(declarations),
        calls="\n".join(calls),
    )
