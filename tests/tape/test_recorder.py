"""Recording: folding, signs, sharing, NumPy's functions, and what a tape tells about itself."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.compiled import record_quantity
from dynid.errors import ArgumentError
from dynid.robot import zoo
from dynid.tape import Scalar, compile_tape, count, record
from dynid.tape.operations import Operation


def codes(tape: Any) -> list[str]:
    return [Operation(code).name for code in tape.opcodes]


def one(function: Any) -> Any:
    return record(lambda x: np.array([function(x[0], x[1])], dtype=object), x=(2,))


FOLDED = """
a * 0.0 + b ->
a * 1 + 0 * b ->
a + 0 ->
a - a ->
a - (a + b) -> NEG
a - (a - b) ->
(a + b) - a ->
(a - b) + b ->
b - (a + b) -> NEG
a - (a + 2.0) ->
(a + 2.0) + 3.0 -> ADD
(a + 2.0) - 2.0 ->
-(a - 2.0) - 2.0 -> NEG
a / a ->
a**0 ->
a**1 ->
2.0 * (3.0 * a) -> MUL
a / 4.0 -> MUL
-a * b -> MUL NEG
a + -b -> SUB
-(a - b) -> SUB
-a + b -> SUB
(-a) * (-b) -> MUL
(a - b) * (b - a) -> SUB MUL NEG
a * b + b * a -> MUL ADD
np.sin(-a) + np.sin(a) ->
np.cos(-a) - np.cos(a) ->
abs(-a) - abs(a) ->
(-a) ** 3 -> MUL MUL NEG
a**-2 -> MUL DIV
np.exp(-a) -> NEG EXP
a**0.5 -> SQRT
"""
"""What is recorded -> the operations that are left of it."""


@pytest.mark.parametrize("case", FOLDED.strip().splitlines())
def test_folding(case: str) -> None:
    text, _, expected = case.partition(" ->")
    assert codes(one(eval(f"lambda a, b: {text}"))) == expected.split()


def test_counts() -> None:
    tape = record(lambda x: {"y": [x[0] * x[1] + x[2] * 3.0 - 1.0, -np.sin(x[0]), x[1] / x[2], abs(x[2])]}, x=(3,))
    found = count(tape)
    assert (found.multiplications, found.additions, found.divisions, found.negations) == (2, 2, 1, 1)
    assert (found.trigonometric, found.others, found.flops) == (1, 1, 4)
    assert str(found) == "2 multiplications, 2 additions"


def test_dead_code_is_removed() -> None:
    def function(x: Any) -> Any:
        _ = np.exp(x[0]) * x[1]
        return x[0] + x[1]

    assert codes(record(function, x=(2,))) == ["ADD"]


def test_numpy_functions_on_scalars_and_arrays() -> None:
    def function(x: Any) -> Any:
        a = x[0]
        assert isinstance(np.float64(2.0) * a, Scalar)
        assert isinstance(a * np.float64(2.0), Scalar)
        assert (np.ones(3) * a).shape == (3,)
        assert (np.eye(2) @ np.array([a, 1.0], dtype=object)).shape == (2,)
        mixed = np.sign(np.concatenate([x, [0.0, -2.0]]).view(type(x)))
        return np.array([*np.sign(x), *np.tanh(x), *np.abs(x), np.sqrt(a), np.sign(a), *mixed], dtype=object)

    tape = record(function, x=(2,))
    assert sorted(set(codes(tape))) == ["ABS", "SIGN", "SQRT", "TANH"]
    assert tape.constants.tolist() == [0.0, -1.0]


def test_scalars_have_no_order_but_identity() -> None:
    def function(x: Any) -> Any:
        assert x[0] * x[1] == x[1] * x[0]
        assert x[0] != x[1]
        assert x[0] != 0.0
        assert len({x[0] + 1.0, x[0] + 1.0, x[0]}) == 2
        for wrong in (lambda: x[0] < 1.0, lambda: bool(x[0]), lambda: max(x[0], x[1])):
            with pytest.raises(ArgumentError, match="no order"):
                wrong()
        return x

    record(function, x=(2,))


def test_refused_programs() -> None:
    for wrong in (lambda x: x * np.inf, lambda x: x / 0.0, lambda x: x**2.5):
        with pytest.raises(ArgumentError):
            record(wrong, x=(1,))
    other: list[Any] = []
    record(lambda x: other.append(x[0]) or x, x=(1,))
    with pytest.raises(ArgumentError, match="another recording"):
        record(lambda x: [other[0]], x=(1,))


def test_sparsity_select_and_constants() -> None:
    tape = record(lambda x: {"a": [[x[0], 0.0], [2.0, x[0] * x[1]]], "b": [np.sin(x[1])]}, x=(2,))
    assert tape.sparsity("a").tolist() == [[True, False], [True, True]]
    part = tape.select({"a": np.s_[:, 1]})
    assert [output.name for output in part.outputs] == ["a"]
    assert part.output("a").shape == (2,)
    assert codes(part) == ["MUL"]
    assert codes(tape.select({"b": ...})) == ["SIN"]
    with pytest.raises(KeyError, match="'a', 'b'"):
        tape.output("c")


def test_fingerprint_is_the_same_in_another_process() -> None:
    program = (
        "import numpy as np\nfrom dynid.tape import record\n"
        "print(record(lambda x: np.sin(x) * 0.1 + x[0], x=(3,)).fingerprint)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    tape = record(lambda x: np.sin(x) * 0.1 + x[0], x=(3,))
    assert run.stdout.strip() == tape.fingerprint
    assert record(lambda x: np.sin(x) * 0.2 + x[0], x=(3,)).fingerprint != tape.fingerprint
    assert record(lambda y: np.sin(y) * 0.1 + y[0], y=(3,)).fingerprint != tape.fingerprint


@pytest.mark.parametrize("function", [np.arctan, np.log])
@pytest.mark.parametrize("pick", [lambda x: x, lambda x: x[0]])
def test_functions_that_the_tape_lacks_are_named_with_those_it_has(function: np.ufunc, pick: Any) -> None:
    with pytest.raises(ArgumentError, match=f"np.{function.__name__} cannot be recorded.*") as caught:
        record(lambda x: function(pick(x)), x=(2,))
    assert "np.tanh" in str(caught.value)


def test_the_cost_of_a_recorded_regressor(puma: Any) -> None:
    tape = record(puma.regressor, q=(6,), dq=(6,), ddq=(6,))
    found = count(tape)
    assert found.multiplications <= 485
    assert found.flops <= 867
    assert tape.sparsity("output").sum() == 185


def cancelling(tape: Any) -> list[int]:
    """Numbers of sums that contain the same value with both signs, as ``x - (x + c)`` does."""
    signs = {Operation.ADD: (1, 1), Operation.SUB: (1, -1)}
    parts = {
        n: dict(zip((left, right), signs[code], strict=True)) for n, code, left, right in tape.steps() if code in signs
    }
    return [
        number
        for number, own in parts.items()
        for inner, sign in own.items()
        for value, inner_sign in parts.get(inner, {}).items()
        if value >= 0 and own.get(value) == -sign * inner_sign
    ]


@pytest.mark.parametrize("name", ["puma260", "scara", "panda"])
def test_recorded_dynamics_adds_nothing_that_cancels(name: str) -> None:
    for quantity in ("inverse_dynamics", "inertia_matrix", "gravity_torque", "velocity_torque", "regressor"):
        assert cancelling(record_quantity(zoo.get(name), quantity)) == []


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("+-"), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_random_sums_keep_their_value(steps: list[tuple[str, int, int]]) -> None:
    def chain(x: Any) -> Any:
        values = [x[0], x[1], 2.0, -1.5]
        for sign, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            values.append(a + b if sign == "+" else a - b)
        return values[-1]

    x = np.array([0.3, -1.7])
    tape = record(lambda x: np.array([chain(x)], dtype=object), x=(2,))
    assert compile_tape(tape)(x)[0] == pytest.approx(chain(x), rel=1e-12, abs=1e-12)
    assert cancelling(tape) == []
