"""Reference for generated code: random states and the results that Python computes for the original robot."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ExportError, GeneratedCodeMismatch
from dynid.export.c.c_model import CodeModel
from dynid.export.c.c_source import CodeText
from dynid.kernels import energy_regressor, kernel, regressor
from dynid.parameters.numeric import slow_down


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reference:
    """N samples of inputs and of the results for them."""

    theta: Floats
    """(N, p) standard parameters of the robot, load included, for each sample."""
    inputs: dict[str, Floats]
    """``q dq ddq torque`` (N, n), ``load`` (N, 10), ``values`` (N, k) before and ``loaded`` (N, k) with the load."""
    expected: dict[str, Floats]
    """Result of each function (N, size)."""
    scale: dict[str, Floats]
    """(N, 1) or (1, 1): size of the terms whose sum is the result; errors are relative to it."""


def reference(
    model: CodeModel, functions: tuple[str, ...], samples: int, seed: int = 0, *, varied: bool = True
) -> Reference:
    """Draw random states and compute the results that the functions must return.

    Args:
        model: The customised robot.
        functions: Names of the functions; ``two_rate`` is the torque by background and synchronous tasks.
        samples: Number of states N.
        seed: Seed of the random states: positions within +-pi, velocities and accelerations with a standard deviation
            of 2, slower ones where terms need them, torques of that motion.
        varied: Whether loads and parameter values that can be changed at run time are random, too.
    """
    rng = np.random.default_rng(seed)
    robot, n = model.robot, model.robot.dof
    q, dq, ddq = rng.uniform(-np.pi, np.pi, (samples, n)), *rng.normal(0.0, 2.0, (2, samples, n))
    dq = slow_down(robot, dq, rng)
    theta, load = np.tile(model.robot.parameter_vector, (samples, 1)), np.zeros((samples, 10))
    if varied and model.load:
        load = _draw_loads(samples, rng)
    elif varied and model.columns:
        theta = theta * rng.uniform(0.8, 1.2, theta.shape)
    values = theta @ model.grouping.T
    theta[:, 10 * (n - 1) : 10 * n] += load
    loaded = values + load @ model.load_map.T
    Y = regressor(robot, q, dq, ddq)
    torque = np.einsum("nij,nj->ni", Y, theta)
    inputs = {"q": q, "dq": dq, "ddq": ddq, "torque": torque, "values": values, "load": load, "loaded": loaded}
    size = np.einsum("nij,nj->ni", np.abs(Y), np.abs(theta)).max(axis=1, keepdims=True)
    expected = {name: _result(model, name, inputs, theta, Y).reshape(samples, -1) for name in functions}
    scale = {name: np.full((1, 1), max(float(np.abs(expected[name]).max()), 1e-300)) for name in functions}
    for name in ("inverse_dynamics", "external_torque", "two_rate", "velocity_torque", "gravity", "friction"):
        scale[name] = np.maximum(size, 1e-300)
    return Reference(theta=theta, inputs=inputs, expected=expected, scale=scale)


def _draw_loads(samples: int, rng: np.random.Generator) -> Floats:
    """Parameters (N, 10) of loads: five point masses are a physically possible one."""
    points = rng.uniform(-0.2, 0.2, (samples, 5, 3)) + np.array([0.0, 0.0, 0.1])
    mass = rng.uniform(0.0, 1.0, (samples, 5))
    second = np.einsum("nk,nki,nkj->nij", mass, points, points)
    tensor = np.trace(second, axis1=1, axis2=2)[:, None, None] * np.eye(3) - second
    moments, first = tensor[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]], np.einsum("nk,nki->ni", mass, points)
    return np.column_stack([moments, first, mass.sum(axis=1)])


def _result(model: CodeModel, name: str, inputs: dict[str, Floats], theta: Floats, Y: Floats) -> Floats:
    robot, n = model.robot, model.robot.dof
    q, dq, ddq = inputs["q"], inputs["dq"], inputs["ddq"]
    if name == "regressor":
        if model.base is None:
            return Y
        kept = Y[:, :, list(model.base.columns)]
        return np.asarray(kept if model.base.mixing is None else kept @ model.base.mixing)
    if name == "external_torque":
        moving = kernel(robot, "inverse_dynamics", symbolic_parameters=True)(q, dq, ddq, theta)
        return np.asarray(moving - inputs["torque"])
    if name == "forward_dynamics":
        return ddq
    if name == "friction":
        at_constant_speed = regressor(robot, q, dq, np.zeros_like(q))[:, :, 10 * n :]
        return np.asarray(np.einsum("nij,nj->ni", at_constant_speed, theta[:, 10 * n :]))
    if name == "energy":
        return _energy(model, inputs, theta)
    quantity = {"gravity": "gravity_torque", "two_rate": "inverse_dynamics"}.get(name, name)
    states = {"inverse_dynamics": (q, dq, ddq), "two_rate": (q, dq, ddq), "velocity_torque": (q, dq)}.get(name, (q,))
    answer: Floats = kernel(robot, quantity, symbolic_parameters=True)(*states, theta)
    return answer


def _energy(model: CodeModel, inputs: dict[str, Floats], theta: Floats) -> Floats:
    """Kinetic and potential energy (N, 2); regrouped run-time values count the potential energy from another zero."""
    robot, links, q, dq = model.robot, slice(10 * model.robot.dof), inputs["q"], inputs["dq"]
    inertia = kernel(robot, "inertia_matrix", symbolic_parameters=True)(q, theta)
    rest = np.zeros_like(q)
    potential = np.einsum("ni,ni->n", energy_regressor(robot, q, rest), theta[:, links])
    if model.columns:
        used = np.tile(model.values, (len(q), 1))
        used[:, list(model.columns)] = model.in_columns(inputs["loaded"])
        potential -= np.einsum("ni,ni->n", energy_regressor(robot, rest, rest), (theta - used)[:, links])
    return np.column_stack([0.5 * np.einsum("ni,nij,nj->n", dq, inertia, dq), potential])


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
    inputs = {name: f"&in[{first}]" for name, first in zip(_NAMES, _starts(widths), strict=True)}
    sizes = [answers.expected[name].shape[1] for name in text.answered]
    results = {name: f"&out[{first}]" for name, first in zip(text.answered, _starts(sizes), strict=True)}
    given = inputs["values"] + (f", {inputs['load']}" if "set_load" in text.setters else "")
    setter = [f"{text.name}_{list(text.setters)[-1]}({given}, &parameters);"] if text.setters else []
    return _DRIVER.format(
        header=f"{text.name}_two_rate.h" if text.tasks else f"{text.name}.h",
        type=text.precision,
        inputs=sum(widths),
        outputs=sum(sizes),
        declarations="\n".join(f"    {line}" for line in text.declarations()),
        calls="\n".join(f"        {line}" for line in [*setter, *text.calls(inputs, results)]),
    )


def _starts(sizes: Sequence[int]) -> list[int]:
    """Where each of several rows begins that stand one after another."""
    return [sum(sizes[:k]) for k in range(len(sizes))]
