"""One sample through the built-in function: fast arguments, other arguments, wrong arguments."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.tape import compile_single, record
from dynid.tape.llvm import single_call as module


@pytest.fixture(params=["numpy", "llvm"])
def function(request: pytest.FixtureRequest) -> Any:
    tape = record(lambda x, m: np.stack([np.sin(m @ x), x[:2] + 1.0]), x=(3,), m=(2, 3))
    return compile_single(tape, request.param)


X, M = np.array([0.1, -0.2, 0.3]), np.arange(6.0).reshape(2, 3)
EXPECTED = np.stack([np.sin(M @ X), X[:2] + 1.0])


def test_new_and_given_output(function: Any) -> None:
    found = function(X, M)
    np.testing.assert_allclose(found, EXPECTED, rtol=1e-15)
    assert found.flags.owndata
    out = np.empty((2, 2))
    assert function(X, M, out) is out
    np.testing.assert_allclose(out, EXPECTED, rtol=1e-15)


def test_other_arguments_are_converted(function: Any) -> None:
    others = [
        (X.tolist(), M.tolist()),
        (np.repeat(X, 2)[::2], np.asfortranarray(M)),
        (X.astype(">f8"), M.astype(np.int64)),
        (X.view(np.recarray), np.ma.masked_array(M)),
        (np.frombuffer(b"\0" + X.tobytes(), dtype=np.uint8)[1:].view(np.float64), M),
    ]
    for x, m in others:
        np.testing.assert_allclose(function(x, m), EXPECTED, rtol=1e-15)
    batch = function(np.stack([X, X]), M)
    np.testing.assert_allclose(batch, np.stack([EXPECTED, EXPECTED]), rtol=1e-15)


@pytest.mark.parametrize("samples", [0, 1, 2, module.FEW, module.FEW + 1])
def test_batches_equal_their_samples(function: Any, samples: int) -> None:
    rng = np.random.default_rng(samples)
    x, m = rng.normal(size=(samples, 3)), rng.normal(size=(samples, 2, 3))
    found = function(x, m)
    expected = np.stack([np.sin(np.einsum("nij,nj->ni", m, x)), x[:, :2] + 1.0], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)
    out = np.empty((samples, 2, 2))
    assert function(x, m, out) is out
    np.testing.assert_allclose(out, found, rtol=1e-13, atol=1e-15)


def test_wrong_arguments(function: Any) -> None:
    frozen = np.empty((2, 2))
    frozen.setflags(write=False)
    wrong = [(), (X,), (X[:2], M), (M, X), (X, M.T), (X, M, np.empty(4)), (X, M, frozen), (X, M, EXPECTED, EXPECTED)]
    for arguments in wrong:
        with pytest.raises(ArgumentError):
            function(*arguments)
    with pytest.raises((ArgumentError, TypeError, ValueError)):
        function(None, M)


def test_the_output_may_be_an_input() -> None:
    function = compile_single(record(lambda x: np.array([x[1], x[0] * x[2], x[0]], dtype=object), x=(3,)), "llvm")
    x = np.array([2.0, 3.0, 4.0])
    function(x, x)
    assert x.tolist() == [3.0, 8.0, 2.0]


def test_references_are_balanced() -> None:
    function = compile_single(record(lambda x: x * 2.0, x=(3,)), "llvm")
    x, out, few, kind = np.ones(3), np.empty(3), np.ones((4, 3)), np.dtype(np.float64)
    function(x, out)
    before = [sys.getrefcount(thing) for thing in (x, out, few, kind)]
    for _ in range(1000):
        function(x)
        function(x, out)
        function(few)
    after = [sys.getrefcount(thing) for thing in (x, out, few, kind)]
    assert all(abs(a - b) < 10 for a, b in zip(after, before, strict=True))


def test_the_function_outlives_everything_it_was_made_from() -> None:
    functions = [compile_single(record(lambda x, k=k: np.sin(x) + k, x=(2,)), "llvm") for k in range(5)]
    gc.collect()
    for k, function in enumerate(functions):
        np.testing.assert_allclose(function(np.zeros(2)), [k, k])
    del functions, function
    gc.collect()


def test_an_unknown_numpy_takes_the_ordinary_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_has_known_fields", lambda: False)
    function = compile_single(record(lambda x: x * 2.0, x=(2,)), "llvm")
    assert function(np.ones(2)).tolist() == [2.0, 2.0]


def test_names_of_inputs_are_refused_with_their_order(function: Any) -> None:
    with pytest.raises(ArgumentError, match=r"'x' cannot be given by its name. Give x, m in this order"):
        function(x=X, m=M)
