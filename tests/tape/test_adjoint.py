"""Derivatives against central differences and complex steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynid.tape import compile_tape, count, jvp, record, vjp
from dynid.tape.llvm.backend import BlockKernel


def central(function: Any, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Jacobian of a function of a vector, last axis the vector's."""
    columns = []
    for k in range(x.size):
        move = np.zeros_like(x)
        move[k] = step * max(1.0, abs(x[k]))
        columns.append((function(x + move) - function(x - move)) / (2 * move[k]))
    return np.stack(columns, axis=-1)


def everything(x: Any) -> Any:
    """One expression with each operation."""
    return np.array(
        [
            np.sin(x[0]) * np.cos(x[1]) / (x[2] * x[2] + 1.0),
            np.sqrt(x[0] * x[0] + 0.3) - np.tanh(x[1] * x[2]) + np.exp(-x[0]),
            np.abs(x[1]) * x[0] + np.sign(x[2]) * x[1] - 2.0,
            0.0,
            x[2] / x[0] - (-x[1]) ** 3,
        ],
        dtype=object,
    )


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(x=st.lists(st.floats(0.2, 2.0), min_size=3, max_size=3), signs=st.integers(0, 7), seed=st.integers(0, 1000))
def test_every_operation(x: list[float], signs: int, seed: int) -> None:
    point = np.array([value if signs >> k & 1 else -value for k, value in enumerate(x)])
    tape = record(everything, x=(3,))
    run = compile_tape(tape, "numpy")
    jacobian = central(run, point)
    weights = np.random.default_rng(seed).normal(size=5)
    backward = compile_tape(vjp(tape, "output"), "numpy")(point, weights)
    np.testing.assert_allclose(backward, weights @ jacobian, atol=1e-6)
    direction = np.random.default_rng(seed + 1).normal(size=3)
    forward = compile_tape(jvp(tape, "output"), "numpy")(point, direction)
    np.testing.assert_allclose(forward, jacobian @ direction, atol=1e-6)


def test_the_gradient_of_a_regressor_costs_less_than_three_of_it(puma: Any) -> None:
    tape = record(puma.regressor, q=(6,), dq=(6,), ddq=(6,))
    assert count(vjp(tape, "output")).flops <= 2.6 * count(tape).flops


@pytest.mark.parametrize("samples", [1, 15, 16, 17, 100])
def test_cotangents_in_blocks_against_complex_step(puma: Any, samples: int) -> None:
    tape = record(puma.regressor, q=(6,), dq=(6,), ddq=(6,))
    packed = tape.select({"output": tape.sparsity("output")})
    kernel = BlockKernel(vjp(packed, "output"), 16, dense=True, tiled=("cotangent",))
    rng = np.random.default_rng(samples)
    x, weights = rng.normal(size=(3, samples, 6)), rng.normal(size=(samples, 6, 60))
    blocks = np.full((-(-samples // 16), packed.output("output").size, 16), np.nan)
    for sample in range(samples):
        blocks[sample // 16, :, sample % 16] = weights[sample][tape.sparsity("output")]
    found = np.empty((3, samples, 6))
    kernel.run([*x, blocks, *found], 0, samples, kernel.new_work(), kernel.new_block())
    step = 1e-30
    for sample in {0, samples // 2, samples - 1}:
        for place in np.ndindex(3, 6):
            moved = x[:, sample].astype(complex)
            moved[place] += 1j * step
            expected = np.sum(weights[sample] * puma.regressor(*moved)).imag / step
            np.testing.assert_allclose(found[place[0], sample, place[1]], expected, rtol=1e-11, atol=1e-11)


def test_second_derivatives() -> None:
    tape = record(lambda x: np.sin(x[0]) * x[1] ** 2, x=(2,))
    hessian_row = compile_tape(jvp(vjp(tape, "output"), "x", wrt=["x"]), "numpy")
    np.testing.assert_allclose(hessian_row([0.3, 2.0], 1.0, [0.0, 1.0]), [2 * 2.0 * np.cos(0.3), 2 * np.sin(0.3)])
