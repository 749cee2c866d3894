"""Every back end computes what plain Python computes."""

from __future__ import annotations

import builtins
import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dynid.errors import ArgumentError
from dynid.tape import Scalar, compile_single, compile_tape, numpy_backend, program, record
from dynid.tape.llvm.backend import BlockKernel

BACKENDS = ("numpy", "llvm")
TAILS = (0, 1, 2, 3, 15, 16, 17, 23, 24, 25, 119, 120, 121, 1000)

constants = st.floats(-3.0, 3.0).map(lambda c: round(c, 3))
step = st.tuples(st.integers(0, 14), st.integers(0, 40), st.integers(0, 40), constants)
programs = st.lists(step, min_size=1, max_size=30)

STEPS = """
a + b
a - b
a * b
c * a
a + c
c - a
-a
a / (b * b + 1.0)
f.sin(a)
f.cos(a)
f.sqrt(a * a + 0.5)
f.tanh(a)
f.exp(f.sin(a))
abs(a)
f.sign(x) if f is np else float((x > 0) - (x < 0))
"""
RULES: list[Any] = [eval(f"lambda f, a, b, c, x: {step}") for step in STEPS.strip().splitlines()]


def run_program(steps: list[Any], inputs: list[Any], f: Any) -> list[Any]:
    """Interpret a random program on floats (with ``math``) or on recorded scalars (with NumPy)."""
    values = list(inputs)
    for kind, i, j, c in steps:
        a, b = values[i % len(values)], values[j % len(values)]
        if f is np and not isinstance(a, Scalar):  # folded to a constant while recording
            a = np.float64(a)
        values.append(RULES[kind](f, a, b, c, inputs[i % len(inputs)]))
    return values[len(inputs) :]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=programs, seed=st.integers(0, 2**31))
def test_random_programs(steps: list[Any], seed: int) -> None:
    samples = np.random.default_rng(seed).uniform(-2.0, 2.0, size=(5, 3))
    samples[0] = 0.0
    expected = np.array([run_program(steps, [float(x) for x in row], math) for row in samples])
    scale = max(1.0, float(np.abs(expected).max()))
    assume(scale < 100.0)
    tape = record(lambda x: np.array(run_program(steps, list(x), np), dtype=object), x=(3,))
    for backend in BACKENDS:
        found = compile_tape(tape, backend)(samples)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * scale**2)
    single = compile_single(tape, "llvm")
    np.testing.assert_allclose(single(samples[1].copy()), expected[1], rtol=1e-12, atol=1e-12 * scale**2)


@pytest.fixture(scope="module")
def workload(puma: Any) -> Any:
    return record(puma.regressor, q=(6,), dq=(6,), ddq=(6,))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("samples", TAILS)
def test_tails(workload: Any, puma: Any, backend: Any, samples: int) -> None:
    x = np.random.default_rng(samples).normal(size=(3, samples, 6))
    found = compile_tape(workload, backend)(*x)
    assert found.shape == (samples, 6, 60)
    for k in {0, samples // 2, samples - 2, samples - 1} & set(range(samples)):
        np.testing.assert_allclose(found[k], puma.regressor(*x[:, k]), atol=1e-12)


def test_the_position_does_not_change_a_bit(workload: Any) -> None:
    x = np.random.default_rng(2).normal(size=(3, 9001, 6))
    run = compile_tape(workload, "llvm")
    reference = run(*x)
    for k in (0, 1, 4321, 9000):
        np.testing.assert_array_equal(run(*x[:, k]), reference[k])
    np.testing.assert_array_equal(run(*x[:, 5:77]), reference[5:77])


@pytest.mark.parametrize("backend", BACKENDS)
def test_special_values(backend: Any) -> None:
    functions = {"sin": np.sin, "sign": np.sign, "abs": np.abs, "sqrt": np.sqrt, "exp": np.exp}
    tape = record(lambda x: {name: f(x) for name, f in functions.items()} | {"div": 1 / x}, x=(1,))
    x = np.array([[0.0], [-0.0], [np.nan], [np.inf], [-np.inf], [-2.0], [1e300], [710.0]])
    found = compile_tape(tape, backend)(x)
    with np.errstate(all="ignore"):
        for name, function in functions.items():
            np.testing.assert_allclose(found[name], function(x), rtol=1e-14, err_msg=name)
        np.testing.assert_allclose(found["div"][2:], 1 / x[2:])


@pytest.mark.parametrize("backend", BACKENDS)
def test_outputs_that_are_inputs_or_constants(backend: Any) -> None:
    tape = record(lambda x, y: {"a": [x[1], 3.0, x[1], 0.0], "b": y, "c": [[1.0]], "d": x[0] * 1.0}, x=(2,), y=(2, 2))
    x, y = np.arange(10.0).reshape(5, 2), np.arange(20.0).reshape(5, 2, 2)
    found = compile_tape(tape, backend)(x, y)
    np.testing.assert_array_equal(found["a"], np.stack([x[:, 1], 0 * x[:, 1] + 3.0, x[:, 1], 0 * x[:, 1]], axis=1))
    np.testing.assert_array_equal(found["b"], y)
    np.testing.assert_array_equal(found["c"], np.ones((5, 1, 1)))
    np.testing.assert_array_equal(found["d"], x[:, 0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_calling(backend: Any) -> None:
    run = compile_tape(record(lambda x, y: x * y[0] + y, x=(2,), y=(2,)), backend)
    x, y = np.arange(6.0).reshape(3, 2), np.array([2.0, 5.0])
    expected = x * 2.0 + y
    np.testing.assert_array_equal(run(x, y), expected)
    np.testing.assert_array_equal(run(x[0].tolist(), y), expected[0])
    np.testing.assert_array_equal(run(x[::-1], y), expected[::-1])
    out = np.empty((3, 2))
    assert run(x, y, out=out) is out
    np.testing.assert_array_equal(out, expected)
    same = x.copy()
    np.testing.assert_array_equal(run(same, y, out=same), expected)
    for wrong in ((x,), (x, y[:1]), (x, np.zeros((4, 2))), (x[:, :1], y)):
        with pytest.raises(ArgumentError):
            run(*wrong)
    for bad in (np.empty((3, 3)), np.empty((3, 2), dtype=np.float32), np.empty((2, 3)).T, [1.0]):
        with pytest.raises(ArgumentError):
            run(x, y, out=bad)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("samples", [0, 1, 7, numpy_backend.BLOCK, 2 * numpy_backend.BLOCK + 5])
def test_one_sample_for_many_is_that_sample_repeated(backend: Any, samples: int) -> None:
    tape = record(lambda a, b: np.array([a[0] * b[0] + np.sin(a[1]), b[1] - a[0]]), a=(2,), b=(2,))
    run, rng = compile_tape(tape, backend), np.random.default_rng(0)
    many, one = rng.normal(size=(samples, 2)), rng.normal(size=2)
    repeated = np.tile(one, (samples, 1))
    np.testing.assert_array_equal(run(many, one), run(many, repeated))
    out = np.empty((samples, 2))
    assert run(one, many, out=out) is out
    np.testing.assert_array_equal(out, run(repeated, many))


def test_without_llvmlite_numpy_computes_and_one_warning_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *arguments: Any, **options: Any) -> Any:
        if name.startswith("llvmlite"):
            raise ImportError("no llvmlite here")
        return real(name, *arguments, **options)

    program.llvm_loads.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refuse)
    tape = record(lambda x: x * 2.0, x=(1,))
    with pytest.warns(RuntimeWarning, match="no llvmlite here") as caught:
        first = compile_tape(tape)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = compile_single(tape)
        assert compile_tape(tape).backend == "numpy"
    assert first([4.0]) == second([4.0]) == [8.0]
    program.llvm_loads.cache_clear()


def test_arrays_with_gaps_in_memory_are_refused() -> None:
    """Machine code reads row after row: it would read the numbers in between."""
    kernel = BlockKernel(record(lambda x: {"y": 2.0 * x}, x=(2,)), 16, dense=True)
    x, y = np.arange(16.0).reshape(4, 4)[:, ::2], np.zeros((4, 2))
    with kernel.memory() as (work, block):
        with pytest.raises(ArgumentError, match="not C-contiguous"):
            kernel.run([x, y], 0, 4, work, block)
        fixed = np.ascontiguousarray(x)
        fixed.flags.writeable = False
        kernel.run([fixed, y], 0, 4, work, block)
    np.testing.assert_array_equal(y, 2.0 * x)
