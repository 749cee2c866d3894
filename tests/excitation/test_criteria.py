"""Criteria: definitions against NumPy and SciPy, gradients against central differences."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from dynid.errors import ArgumentError
from dynid.excitation.criteria import Criterion

from .conftest import slope

ONE = [
    *(Criterion(name) for name in ("condition", "scaled-condition", "frobenius", "qr")),
    *(Criterion(name) for name in ("d-optimality", "a-optimality", "e-optimality")),
    Criterion("condition", order=6.0),
    Criterion("a-optimality", weights=(0.0, 2.0, 0.5, 0.0, 1.0)),
    Criterion({"condition": 1.0, "d-optimality": 0.1}),
    Criterion({"qr": 0.7, "frobenius": 0.2}, product=True),
]
"""Criteria of the information alone."""
ALL = [
    *ONE,
    Criterion("equilibrium"),
    Criterion("equilibrium", order=5.0),
    Criterion({"condition": 0.7, "equilibrium": 0.02}),
    Criterion({"condition": 0.7, "equilibrium": 0.2}, product=True, order=8.0),
]


def matrix(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(12, 5)) * [1, 0.3, 2, 5, 0.7]


@pytest.mark.parametrize("criterion", ALL, ids=str)
def test_gradient(criterion: Criterion) -> None:
    W = matrix()
    _, G = criterion.value_and_gradient(W)
    rng = np.random.default_rng(2)
    for _ in range(5):
        D = rng.normal(size=W.shape)
        assert np.vdot(G, D) == pytest.approx(slope(criterion.value, W, D), rel=1e-6, abs=1e-7)


def test_definitions() -> None:
    W = matrix(3)
    A = W.T @ W
    inverse, s = np.linalg.inv(A), np.linalg.svd(W, compute_uv=False)
    R = scipy.linalg.qr(W, pivoting=True, mode="r")[0]
    expected = {
        "condition": s[0] / s[-1],
        "scaled-condition": np.linalg.cond(W / np.linalg.norm(W, axis=0)),
        "frobenius": np.linalg.norm(A) * np.linalg.norm(inverse),
        "qr": abs(R[0, 0] / R[4, 4]),
        "d-optimality": -np.linalg.slogdet(A)[1],
        "a-optimality": np.trace(inverse),
        "e-optimality": 1 / s[-1] ** 2,
        "equilibrium": abs(W).max() / abs(W).min(),
    }
    for name, value in expected.items():
        assert Criterion(name).value(W) == pytest.approx(value)
    assert Criterion("a-optimality", weights=(0, 0, 4.0, 0, 0)).value(W) == pytest.approx(4.0 * inverse[2, 2])
    both = {"condition": 2.0, "equilibrium": 0.5}
    assert Criterion(both).value(W) == pytest.approx(2.0 * expected["condition"] + 0.5 * expected["equilibrium"])
    product = expected["condition"] ** 2 * expected["equilibrium"] ** 0.5
    assert Criterion(both, product=True).value(W) == pytest.approx(product)


@pytest.mark.parametrize("terms", ["condition", "equilibrium", "scaled-condition", {"condition": 1, "equilibrium": 1}])
def test_stages_tend_to_the_criterion_from_above(terms: object) -> None:
    W, criterion = matrix(5), Criterion(terms)
    values = np.array([stage.value(W) for stage in criterion.stages()])
    assert len(values) > 4
    assert np.all(np.diff(values) <= 1e-12 * values[-1])
    assert values[-1] == criterion.value(W)


@pytest.mark.parametrize("criterion", ONE, ids=str)
def test_criteria_of_the_information(criterion: Criterion) -> None:
    W = matrix(7)
    value, G = criterion.of_information(W.T @ W)
    expected, gradient = criterion.value_and_gradient(W)
    assert value == pytest.approx(expected)
    assert pytest.approx(gradient) == W @ (2.0 * G)
    W[:, 2] = 0.0  # what is not excited costs infinitely much
    value, gradient = criterion.value_and_gradient(W)
    assert value == np.inf
    assert not gradient.any()


@pytest.mark.parametrize(
    "terms",
    [{}, "D", None, {"condition": np.nan}, {"condition": -1.0, "equilibrium": 0.1}, {"condition": 0.0}],
)
def test_criteria_without_a_meaning_are_refused(terms: object) -> None:
    with pytest.raises(ArgumentError):
        Criterion(terms)
