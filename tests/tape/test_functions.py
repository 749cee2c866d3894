"""Our own sine and cosine, held against a reference of higher precision."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from typing import Any

import numpy as np
import pytest

from dynid.tape import compile_tape, record

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")


def exact(x: float) -> tuple[float, float, Decimal, Decimal]:
    """Sine and cosine of a double by Taylor series in sixty digits."""
    getcontext().prec = 60
    angle = Decimal(x) % (2 * PI)
    term, sine, cosine = Decimal(1), Decimal(0), Decimal(0)
    for n in range(60):
        if n % 2:
            sine += term if n % 4 == 1 else -term
        else:
            cosine += term if n % 4 == 0 else -term
        term = term * angle / (n + 1)
    return float(sine), float(cosine), sine, cosine


@pytest.fixture(scope="module")
def sincos() -> Any:
    return compile_tape(record(lambda x: {"sin": np.sin(x), "cos": np.cos(x)}, x=(1,)), "llvm")


def points() -> list[float]:
    rng = np.random.default_rng(0)
    found = [
        float(x)
        for size in (1e-300, 1e-9, 1e-3, 0.5, 1.0, 3.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e6)
        for x in rng.uniform(-size, size, 60)
    ]
    found += [k * math.pi / 4 for k in range(-40, 41)]
    found += [math.nextafter(k * math.pi / 2, 1e9) for k in (1, 2, 3, 100, 12345, 600000)]
    return [*found, 1e6, -1e6, 1048576.0, 1048577.0, 1e7, 1e15, 1e22]


def test_error_is_below_one_and_a_half_units_in_the_last_place(sincos: Any) -> None:
    x = points()
    found = sincos(np.array(x)[:, None])
    worst = absolute = 0.0
    for k, value in enumerate(x):
        sine, cosine, true_sine, true_cosine = exact(value)
        errors = [abs(Decimal(float(found[f][k, 0])) - true) for f, true in (("sin", true_sine), ("cos", true_cosine))]
        worst = max(worst, float(errors[0]) / math.ulp(sine), float(errors[1]) / math.ulp(cosine))
        absolute = max(absolute, *map(float, errors))
    assert worst < 1.5
    assert absolute < 1.7e-16


def test_not_finite(sincos: Any) -> None:
    found = sincos(np.array([[np.nan], [np.inf], [-np.inf], [0.25]]))
    assert np.isnan(found["sin"][:3]).all()
    assert np.isnan(found["cos"][:3]).all()
    assert found["sin"][3, 0] == pytest.approx(math.sin(0.25), abs=1e-16)


def test_a_large_neighbour_changes_nothing(sincos: Any) -> None:
    x = np.linspace(-3.0, 3.0, 48)[:, None]
    alone = sincos(x)
    x[7], x[30] = 1e9, np.nan
    beside = sincos(x)
    rest = np.delete(np.arange(48), [7, 30])
    np.testing.assert_array_equal(alone["sin"][rest], beside["sin"][rest])
    assert beside["sin"][7, 0] == math.sin(1e9)


def test_hyperbolic_tangent() -> None:
    tanh = compile_tape(record(lambda x: np.tanh(x), x=(1,)), "llvm")
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-size, size, 300) for size in (1e-300, 1e-8, 0.1, 0.5, 1.0, 3.0, 20.0, 300.0)])
    found = tanh(x[:, None])[:, 0]
    getcontext().prec = 60
    for value, ours in zip(x.tolist(), found.tolist(), strict=True):
        e = (2 * abs(Decimal(value))).exp() - 1
        true = (e / (e + 2)).copy_sign(Decimal(value)) if abs(value) > 1e-20 else Decimal(value)
        assert abs(Decimal(ours) - true) <= 2 * Decimal(math.ulp(float(true)))
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308])
    np.testing.assert_array_equal(tanh(special[:, None])[:, 0], np.tanh(special))
    assert np.signbit(tanh([-0.0]))[0]
