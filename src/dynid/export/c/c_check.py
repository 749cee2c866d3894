"""Comparison of generated code with Python: random states, results for the original robot, programs that run the code.

`reference` draws states and computes what the code should return. A `CheckProgram` is a C program that reads states and
writes the results of the code; `compare_results` finds errors and refuses too large ones. `selftest_text` writes a C
program that does the same without Python, from stored results. `dynid.export.c.c_package.CPackage.check` calls the
first three.
"""

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

from dynid.array_types import Floats
from dynid.compiled import energy_regressor, regressor
from dynid.errors import ExportError
from dynid.export.c.c_functions import PARAMETERS, TORQUES, columns_of, record_function
from dynid.export.c.c_model import LOAD_OF_TESTS, CodeModel
from dynid.export.c.c_printer import Precision
from dynid.export.c.c_source import TOLERANCE, CodeText
from dynid.identifiability.numeric import slow_down
from dynid.spatial import TINY
from dynid.tape import compile_tape


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpectedResults:
    """N samples of inputs, and the results that the code should return for them."""

    theta: Floats
    """(N, p) standard parameters of the robot, load included, for each sample."""
    inputs: dict[str, Floats]
    """``q dq ddq torque`` (N, n), the run-time parameters ``values`` (N, k) and ``load`` (N, 10); side by side, in this
    order, they are the rows that the C programs read."""
    expected: dict[str, Floats]
    """Name of each function -> its result (N, size)."""
    scale: dict[str, Floats]
    """Name of each function -> (N, 1) or (1, 1): size of the summands of the result, to which errors are relative. For
    torques it is the largest sum of |regressor| |theta| over the joints, for other results their largest entry."""

    @property
    def rows(self) -> Floats:
        """(N, inputs) numbers that the programs read."""
        return np.hstack([*self.inputs.values()])

    @property
    def answers(self) -> Floats:
        """(N, outputs) numbers that the programs should write."""
        return np.hstack([*self.expected.values()])

    def split(self, found: Floats) -> dict[str, Floats]:
        """Split the numbers (N, outputs) that a program wrote: name of each function -> its result (N, size)."""
        ends = np.cumsum([values.shape[1] for values in self.expected.values()])
        return dict(zip(self.expected, np.split(found, ends[:-1], axis=1), strict=True))


def reference(
    model: CodeModel, functions: Sequence[str], samples: int, seed: int = 0, *, varied: bool = True
) -> ExpectedResults:
    """Draw random states and compute the results that the functions must return.

    The results are those of the robot as the user gave it, with its standard parameters; the C code may compute with
    fewer, regrouped ones.

    Args:
        model: The robot in the frames and with the parameters of the code.
        functions: Names of the functions; ``two_rate`` is the torque by background and synchronous tasks.
        samples: Number of states N.
        seed: Seed of the random states: positions within +-pi, velocities and accelerations with a standard deviation
            of 2, slower ones where terms need them, torques of that motion.
        varied: Whether loads and parameter values that can be changed at run time are random, too.
    """
    rng = np.random.default_rng(seed)
    robot = model.robot
    n = robot.dof
    q = rng.uniform(-np.pi, np.pi, (samples, n))
    dq, ddq = rng.normal(0.0, 2.0, (2, samples, n))
    dq = slow_down(robot, dq, rng)
    theta = np.tile(robot.parameter_vector, (samples, 1))
    load = np.zeros((samples, 10))
    if varied and model.load:
        load = LOAD_OF_TESTS * rng.uniform(0.8, 1.2, load.shape)
    elif varied and model.runtime.columns:
        theta = theta * rng.uniform(0.8, 1.2, theta.shape)
    values = theta @ model.runtime.grouping.T  # (N, k) regrouped, before the load is added: the code adds it
    theta[:, 10 * (n - 1) : 10 * n] += load  # the parameters of the last body
    Y = regressor(robot, q, dq, ddq)
    torque = np.einsum("nij,nj->ni", Y, theta)
    inputs = {"q": q, "dq": dq, "ddq": ddq, "torque": torque, "values": values, "load": load}
    expected = {name: _answer(model, name, {**inputs, PARAMETERS: theta}) for name in functions}
    if "energy" in expected and model.runtime.columns:  # regrouped values count the potential energy from another zero
        difference = theta - model.theta(values + load @ model.load_map.T)
        energy_rows = energy_regressor(robot, *np.zeros((2, samples, n)))  # at q = 0 and at rest
        expected["energy"][:, 1] -= np.einsum("ni,ni->n", energy_rows, difference[:, : 10 * n])
    scale = {name: np.full((1, 1), np.abs(answer).max()) for name, answer in expected.items()}
    # (N, 1) |Y| |theta| of each sample, at the joint where it is largest
    torque_size = np.einsum("nij,nj->ni", np.abs(Y), np.abs(theta)).max(axis=1, keepdims=True)
    scale |= dict.fromkeys(TORQUES, torque_size)
    return ExpectedResults(
        theta=theta, inputs=inputs, expected=expected, scale={k: np.maximum(s, TINY) for k, s in scale.items()}
    )


def _answer(model: CodeModel, name: str, known: Mapping[str, Floats]) -> Floats:
    """Compute the results (N, size) of a function for the robot as it was given, with NumPy.

    The recorded function of that robot runs on all samples; its results are flattened, row after row.

    Args:
        model: The robot in the frames and with the parameters of the code.
        name: Name of the function.
        known: Name of each input of the function -> its values, one row per sample.
    """
    tape = record_function(model.as_given, "inverse_dynamics" if name == "two_rate" else name)
    answer = compile_tape(tape, "numpy")(*(known[entry.name] for entry in tape.inputs))
    if name == "regressor":
        answer = columns_of(model, answer)
    return np.asarray(answer).reshape(len(known["q"]), -1)


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
{loop}
        if (fwrite(out, sizeof(out[0]), {outputs}, stdout) != {outputs}) {{
            return 1;
        }}
    }}
    return 0;
}}
"""
"""C program of a `CheckProgram`."""
_TIME_LIMIT_S = 600
"""Longest time that a compiler or a driver may run [s] (convention)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckProgram:
    """A C program that reads rows of numbers, calls generated code, and writes rows of results."""

    header: str
    """Name of the header file of the code."""
    declarations: Sequence[str]
    """Lines that declare and prepare variables."""
    loop: Sequence[str]
    """Lines for one row: they read from ``in`` and write to ``out``."""
    inputs: int
    """Numbers in a row that it reads."""
    outputs: int
    """Numbers in a row that it writes."""
    precision: Precision = "double"
    """Type of the numbers."""

    def build(self, files: Mapping[str, str], folder: str, flags: Sequence[str] = FLAGS) -> str:
        """Write the code and the program into a folder and compile them; returns the path of the program.

        Raises:
            ExportError: There is no compiler, or it refuses the code.
        """
        text = _DRIVER.format(
            header=self.header, type=self.precision, inputs=self.inputs, outputs=self.outputs,
            declarations="\n".join(f"    {line}" for line in self.declarations),
            loop="\n".join(f"        {line}" for line in self.loop),
        )  # fmt: skip
        for name, content in {**files, "driver.c": text}.items():
            Path(folder, name).write_text(content)
        compiler = _compiler_command()
        if not compiler:
            raise ExportError(
                "there is no C compiler to check the code with", remedy="Install gcc or clang, or set CC."
            )
        sources = [name for name in (*files, "driver.c") if name.endswith(".c") and "selftest" not in name]
        remedy = "Set CC to a C99 compiler such as gcc or clang; if it is one, report this robot."
        _execute([*compiler, *flags, *sources, "-o", "driver", "-lm"], b"", folder, remedy)
        return str(Path(folder, "driver"))

    def run(self, program: str, rows: Floats) -> Floats:
        """Run the program on rows (N, inputs); returns what it wrote (N, outputs)."""
        kind = np.float64 if self.precision == "double" else np.float32
        output = _execute([program], rows.astype(kind).tobytes())
        return np.frombuffer(output, dtype=kind).astype(float).reshape(len(rows), self.outputs)

    def answer(self, files: Mapping[str, str], rows: Floats, flags: Sequence[str] = FLAGS) -> Floats:
        """Compile the code in a temporary folder and run it on rows (N, inputs); returns (N, outputs)."""
        with tempfile.TemporaryDirectory(prefix="dynid_") as folder:
            return self.run(self.build(files, folder, flags), rows)


def find_compiler() -> str | None:
    """Find the C compiler of ``$CC``, else cc, gcc or clang; None if there is none."""
    command = _compiler_command()
    return command[0] if command else None


def _compiler_command() -> list[str]:
    """Path of the compiler, then the options in ``$CC``; empty if there is none."""
    name, *options = shlex.split(os.environ.get("CC", "")) or [""]
    if name and shutil.which(name) is None:
        raise ExportError(
            f"CC names '{name}', which is not a program on this machine",
            remedy="Set CC to a C compiler, or unset it.",
        )
    candidates = [name] if name else ["cc", "gcc", "clang"]
    path = next(filter(None, map(shutil.which, candidates)), None)
    return [path, *options] if path else []


def _execute(command: list[str], stdin: bytes, folder: str | None = None, remedy: str | None = None) -> bytes:
    """Run a command in a folder and return its output; an error has the beginning of its messages and the remedy."""
    done = subprocess.run(command, input=stdin, cwd=folder, capture_output=True, timeout=_TIME_LIMIT_S, check=False)
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip()[:2000]
        raise ExportError(f"{Path(command[0]).name} failed ({done.returncode}): {message}", remedy=remedy)
    return done.stdout


def package_driver(text: CodeText, answers: ExpectedResults) -> CheckProgram:
    """Make the program that computes the results of all functions of a package, one after another, for each row."""
    return CheckProgram(
        header=text.header,
        declarations=text.declarations(),
        loop=text.call_statements(_widths(answers.inputs), _widths(answers.expected)),
        inputs=answers.rows.shape[1],
        outputs=answers.answers.shape[1],
        precision=text.precision,
    )


def _widths(arrays: Mapping[str, Floats]) -> dict[str, int]:
    """Name of each array (N, width) -> its width."""
    return {name: values.shape[1] for name, values in arrays.items()}


_SELFTEST = """/* Self-test of {name}, generated by dynid: tolerance {tolerance:.0e} of the largest term. */
#include <math.h>
#include <stdio.h>

#include "{header}"

/* Rows of {inputs}. */
static const {type} rows[{samples}][{width}] = {{
{rows}
}};

/* Rows of {outputs}. */
static const {type} expected[{samples}][{size}] = {{
{expected}
}};

static const char *const functions[{count}] = {{{names}}};
static const int ends[{count}] = {{{ends}}}; /* where the results of each function end in a row */
static const double scales[{count}] = {{{scales}}}; /* the largest terms */

int main(void)
{{
    static {type} out[{size}];
    double worst[{count}] = {{0}};
    int failures = 0;
    int s;
    int f;
    int k;
{declarations}
    for (s = 0; s < {samples}; s++) {{
        const {type} *in = rows[s];
{loop}
        for (f = 0, k = 0; f < {count}; f++) {{
            for (; k < ends[f]; k++) {{
                const double error = fabs((double)out[k] - (double)expected[s][k]) / scales[f];
                if (!(error <= worst[f])) {{
                    worst[f] = error;
                }}
            }}
        }}
    }}
    for (f = 0; f < {count}; f++) {{
        const int passed = (worst[f] <= {tolerance:.1e}) ? 1 : 0;
        printf("%-20s largest relative error %.1e%s\\n", functions[f], worst[f], (passed != 0) ? "" : "  FAILED");
        failures += 1 - passed;
    }}
    return failures;
}}
"""
"""C program of the self-test."""


def selftest_text(text: CodeText, answers: ExpectedResults) -> str:
    """Write a C program that compares the functions with stored results; its exit code is the number of failures."""
    driver = package_driver(text, answers)
    names = list(answers.expected)
    return _SELFTEST.format(
        name=text.name, type=text.precision, tolerance=TOLERANCE[text.precision], header=driver.header,
        inputs=", ".join(answers.inputs), rows=_rows(text, answers.rows), samples=len(answers.rows),
        outputs=", ".join(names), expected=_rows(text, answers.answers), width=driver.inputs, size=driver.outputs,
        count=len(names), names=", ".join(f'"{name}"' for name in names),
        ends=", ".join(str(end) for end in np.cumsum([*_widths(answers.expected).values()])),
        scales=", ".join(f"{answers.scale[name].max():.17e}" for name in names),
        declarations="\n".join(f"    {line}" for line in driver.declarations),
        loop="\n".join(f"        {line}" for line in driver.loop),
    )  # fmt: skip


def _rows(text: CodeText, table: Floats) -> str:
    """Write a table as the initialiser of a C array."""
    lines = [", ".join(map(text.printer.literal, row)) for row in table.tolist()]
    return ",\n".join(f"    {{{line}}}" for line in lines)


def compare_results(text: CodeText, found: Floats, answers: ExpectedResults, tolerance: float) -> dict[str, float]:
    """Compare what a driver wrote (N, outputs) with Python; returns the largest error of each function.

    Raises:
        ExportError: An error is beyond the tolerance; the message names the worst sample.
    """
    errors = {}
    for name, values in answers.split(found).items():
        error = _errors(text, name, values, answers)
        worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
        errors[name] = float(error[worst])
        if not errors[name] <= tolerance:
            state = ", ".join(f"{key} = {answers.inputs[key][worst].tolist()}" for key in ("q", "dq", "ddq"))
            raise ExportError(
                f"{text.name}_{name} differs by {errors[name]:.2e}, more than {tolerance:.0e}, at sample {worst}: "
                f"{state}",
                remedy="Report this robot: generated code must agree with Python.",
            )
    return errors


def _errors(text: CodeText, name: str, found: Floats, answers: ExpectedResults) -> Floats:
    """(N,) relative error of a function's results (N, size) in each sample.

    Accelerations are judged by the torques that they need: an ill-conditioned inertia matrix amplifies their rounding.
    """
    if name != "forward_dynamics":
        return np.asarray((np.abs(found - answers.expected[name]) / answers.scale[name]).max(axis=1))
    states = answers.inputs
    theta = answers.theta
    Y = regressor(text.model.robot, states["q"], states["dq"], np.nan_to_num(found, nan=1e300))  # NaN must fail
    # (N,) largest |Y theta - torque| over the joints, with Y at the found accelerations
    error = np.abs(np.einsum("nij,nj->ni", Y, theta) - states["torque"]).max(axis=1)
    return np.asarray(error / np.einsum("nij,nj->ni", np.abs(Y), np.abs(theta)).max(axis=1))
