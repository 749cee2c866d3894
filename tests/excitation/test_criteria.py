"""Criteria: definitions against NumPy and SciPy, gradients against central differences."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from dynid.errors import ArgumentError
from dynid.excitation.criteria import (
    AOptimality,
    ColumnScaled,
    ConditionNumber,
    Criterion,
    DOptimality,
    EOptimality,
    Equilibrium,
    FrobeniusCondition,
    GeometricCost,
    PredictedDeviation,
    QRCondition,
    WeightedCost,
)

ALL = [
    ConditionNumber(),
    ConditionNumber(6.0),
    FrobeniusCondition(),
    QRCondition(),
    DOptimality(),
    AOptimality(),
    EOptimality(),
    PredictedDeviation((1, 3)),
    PredictedDeviation((0, 2), scales=(0.1, 3.0)),
    ColumnScaled(ConditionNumber()),
    ColumnScaled(DOptimality()),
    ColumnScaled(AOptimality()),
    Equilibrium(),
    Equilibrium(5.0),
    WeightedCost(((0.7, ConditionNumber()), (0.02, Equilibrium()))),
    GeometricCost(((0.7, ConditionNumber(8.0)), (0.2, Equilibrium(4.0)))),
]

ROUNDING = 1e-12
"""Relative difference that may be rounding: high orders equal their limit up to the last digits."""


def matrix(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(12, 5)) * [1, 0.3, 2, 5, 0.7]


@pytest.mark.parametrize("criterion", ALL, ids=str)
@pytest.mark.parametrize("with_prior", [False, True])
def test_gradient(criterion: Criterion, with_prior: bool) -> None:
    W = matrix()
    prior = matrix(1).T @ matrix(1) if with_prior else None
    _, G = criterion.value_and_gradient(W, prior)
    rng = np.random.default_rng(2)
    for _ in range(5):
        D = rng.normal(size=W.shape)
        h = 1e-6
        difference = (criterion.value(W + h * D, prior) - criterion.value(W - h * D, prior)) / (2 * h)
        assert np.vdot(G, D) == pytest.approx(difference, rel=1e-6, abs=1e-7)


def test_definitions() -> None:
    W = matrix(3)
    A = W.T @ W
    s = np.linalg.svd(W, compute_uv=False)
    assert ConditionNumber().value(W) == pytest.approx(s[0] / s[-1])
    assert FrobeniusCondition().value(W) == pytest.approx(np.linalg.norm(A) * np.linalg.norm(np.linalg.inv(A)))
    R = scipy.linalg.qr(W, pivoting=True, mode="r")[0]
    assert QRCondition().value(W) == pytest.approx(abs(R[0, 0] / R[4, 4]))
    assert DOptimality().value(W) == pytest.approx(-np.linalg.slogdet(A)[1])
    assert AOptimality().value(W) == pytest.approx(np.trace(np.linalg.inv(A)))
    assert EOptimality().value(W) == pytest.approx(1 / s[-1] ** 2)
    assert PredictedDeviation((2,)).value(W) == pytest.approx(np.sqrt(np.linalg.inv(A)[2, 2]))
    assert Equilibrium().value(W) == pytest.approx(abs(W).max() / abs(W).min())
    scaled = W / np.linalg.norm(W, axis=0)
    assert ColumnScaled(ConditionNumber()).value(W) == pytest.approx(np.linalg.cond(scaled))


def test_scaled_criteria_do_not_depend_on_units() -> None:
    W = matrix(4)
    criterion = ColumnScaled(ConditionNumber())
    assert criterion.value(W * [1e3, 1, 1e-3, 1, 7]) == pytest.approx(criterion.value(W))


def test_stages_tend_to_the_criterion_from_above() -> None:
    W = matrix(5)
    for criterion in (ConditionNumber(), Equilibrium(), ColumnScaled(ConditionNumber())):
        values = np.array([stage.value(W) for stage in criterion.stages()])
        assert np.all(np.diff(values) <= ROUNDING * values[-1])
        assert values[-1] == criterion.value(W)
    cost = WeightedCost(((1.0, ConditionNumber()), (0.1, DOptimality())))
    assert len(cost.stages()) == len(ConditionNumber().stages())
    assert cost.stages()[-1] == cost


@pytest.mark.parametrize("criterion", ALL[:12], ids=str)
def test_what_is_not_excited_costs_infinitely_much(criterion: Criterion) -> None:
    W = matrix(6)
    W[:, 2] = 0.0
    value, gradient = criterion.value_and_gradient(W)
    assert value == np.inf
    assert not gradient.any()


SUMS = [
    WeightedCost(((0.7, ConditionNumber()), (0.02, AOptimality()))),
    WeightedCost(((1.0, ConditionNumber()), (0.1, DOptimality()))),
    GeometricCost(((0.7, QRCondition()), (0.2, FrobeniusCondition()))),
]


@pytest.mark.parametrize("cost", SUMS, ids=str)
def test_a_cost_of_information_criteria_is_a_function_of_the_information(cost: Criterion) -> None:
    W = matrix(7)
    form = cost.as_information()
    assert form is not None
    value, G = form.of_information(W.T @ W)
    expected, gradient = cost.value_and_gradient(W)
    assert value == pytest.approx(expected)
    assert pytest.approx(gradient) == W @ (2.0 * G)
    assert form.positive == cost.positive
    assert [stage.value(W) for stage in form.stages()] == pytest.approx([stage.value(W) for stage in cost.stages()])


def test_a_cost_with_the_equilibrium_needs_every_entry() -> None:
    assert Equilibrium().as_information() is None
    assert WeightedCost(((1.0, ConditionNumber()), (0.1, Equilibrium()))).as_information() is None
    assert GeometricCost(((1.0, ConditionNumber()), (0.1, Equilibrium()))).as_information() is None


@pytest.mark.parametrize("kind", [WeightedCost, GeometricCost])
@pytest.mark.parametrize(
    "terms",
    [
        (),
        ((1.0, "a"),),
        ((1.0, ConditionNumber),),
        ((np.nan, ConditionNumber()),),
        ((np.inf, ConditionNumber()),),
        ((-1.0, ConditionNumber()), (0.05, Equilibrium())),
        ((0.0, ConditionNumber()), (0.0, Equilibrium())),
        (1.0, ConditionNumber()),
        None,
    ],
)
def test_costs_without_a_meaning_are_refused(kind: type, terms: object) -> None:
    with pytest.raises(ArgumentError):
        kind(terms)


@pytest.mark.parametrize(
    "criterion", [DOptimality(), ColumnScaled(DOptimality()), WeightedCost(((1.0, DOptimality()),))]
)
def test_powers_of_criteria_that_may_be_negative_are_refused(criterion: Criterion) -> None:
    with pytest.raises(ArgumentError, match="may be negative"):
        GeometricCost(((1.0, criterion),))
