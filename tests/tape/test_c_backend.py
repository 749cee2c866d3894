"""The C function: accepted by a strict compiler, and computing what the tape computes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.tape import compile_tape, record, vjp
from dynid.tape.c_backend import CStyle, c_declaration, c_function, idle_inputs

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
FLAGS = ["-std=c99", *WARNINGS, "-O1", "-ffp-contract=off", "-shared", "-fPIC"]
needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")


def build(tape: Any, folder: Path, style: CStyle) -> Any:
    source = folder / "program.c"
    text = f"#include <math.h>\n{c_declaration(tape, 'program', style)};\n{c_function(tape, 'program', style)}"
    source.write_text(text)
    library = folder / "program.so"
    subprocess.run(["gcc", *FLAGS, str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library)).program


def call(function: Any, arrays: list[np.ndarray]) -> None:
    function(*(array.ctypes.data_as(ctypes.c_void_p) for array in arrays))


@needs_compiler
@pytest.mark.parametrize(("precision", "tolerance"), [("double", 1e-12), ("float", 3e-4)])
def test_regressor_and_gradient(puma: Any, tmp_path: Path, precision: Any, tolerance: float) -> None:
    regressor = record(puma.regressor, q=(6,), dq=(6,), ddq=(6,))
    rng = np.random.default_rng(0)
    for name, tape in (("forward", regressor), ("backward", vjp(regressor, "output"))):
        folder = tmp_path / name
        folder.mkdir()
        function = build(tape, folder, CStyle(precision=precision))
        kind = np.float64 if precision == "double" else np.float32
        inputs = [rng.normal(size=entry.shape).astype(kind) for entry in tape.inputs]
        outputs = [np.full(output.shape, np.nan, dtype=kind) for output in tape.outputs]
        call(function, [*inputs, *outputs])
        expected = compile_tape(tape, "numpy")(*inputs)
        for output, found in zip(tape.outputs, outputs, strict=True):
            reference = expected[output.name] if isinstance(expected, dict) else expected
            np.testing.assert_allclose(found, reference, atol=tolerance * max(1.0, np.abs(reference).max()))


@needs_compiler
def test_every_operation_and_shared_memory(tmp_path: Path) -> None:
    def function(x: Any, unused: Any) -> Any:
        a, b, c = x
        return np.array(
            [np.sign(a) + abs(b), np.exp(-c) / np.tanh(b), np.sqrt(a * a) - 1e-7, b, -3.0, 1e22 * c], dtype=object
        )

    tape = record(function, x=(3,), unused=(2,))
    run = build(tape, tmp_path, CStyle(linkage="extern", temporary="value_", names={"x": "state", "output": "result"}))
    for x in ([0.0, 1.0, 2.0], [-1.5, -0.5, 0.25], [np.nan, 1.0, 1.0]):
        shared = np.array([*x, 0.0, 0.0, 0.0])
        call(run, [shared, np.zeros(2), shared])
        np.testing.assert_allclose(shared, compile_tape(tape, "numpy")(x, [0.0, 0.0]), rtol=1e-14)


def test_names_must_be_names() -> None:
    tape = record(lambda x: {"dq/dt": x}, x=(1,))
    with pytest.raises(ArgumentError, match="C argument"):
        c_function(tape, "f")
    assert "rate[0]" in c_function(tape, "f", CStyle(names={"dq/dt": "rate"}))


def test_an_input_that_nothing_reads_is_named_once():
    tape = record(lambda a, b: {"y": [b[0].sin()]}, a=(1,), b=(1,))  # a function's second operand is no operand
    assert idle_inputs(tape) == ["    (void)a;"]
    assert "(void)a;" in c_function(tape, "f")
    assert idle_inputs(record(lambda a, b: {"y": [a[0] * b[0]]}, a=(1,), b=(1,))) == []
