"""Least squares: exact without noise, honest where parameters stay open, refusing where nothing is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimators.equations import build_equations
from dynid.estimators.estimate import Estimator
from dynid.estimators.linear.energy_differences import Energy
from dynid.estimators.linear.least_squares import OLS, WLS
from dynid.estimators.linear.link_by_link import LinkByLink
from dynid.estimators.linear.minimum_norm import Ridge
from dynid.estimators.linear.robust import Huber
from dynid.estimators.physical.feasible import FeasibleWLS
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, SaturatingViscous, Viscous
from dynid.terms.motors import Offset, RotorInertia
from estimators.planted import SCARA, arm, equations_of, held_run, planted_run, silent, still, truth

ROBOT = zoo.puma560().with_terms(RotorInertia(0.2), Viscous(0.5), Coulomb(0.4), Offset(0.1))
ESTIMATORS: list[Estimator] = [OLS(), WLS(), FeasibleWLS()]
ALL: list[Estimator] = [*ESTIMATORS, Huber(), Ridge(), LinkByLink(), Energy()]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_exact_without_noise(estimator: Estimator) -> None:
    equations = equations_of(ROBOT)
    np.testing.assert_allclose(estimator.solve(equations).values, truth(equations), atol=2e-4)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_a_robot_at_rest_reveals_next_to_nothing(estimator: Estimator) -> None:
    estimate = estimator.solve(build_equations(ROBOT, held_run(ROBOT, range(6), noise=0.01)))
    assert np.count_nonzero(np.isfinite(estimate.stderr)) <= 1
    assert np.isfinite(estimate.values).all()


@pytest.mark.parametrize("estimator", ALL, ids=lambda e: type(e).__name__)
def test_what_a_joint_at_rest_hides_is_open(estimator: Estimator) -> None:
    assert estimator.solve(still(arm(), [2], noise=0.1)).undetermined.any()


@pytest.mark.parametrize("estimator", ALL, ids=lambda e: type(e).__name__)
def test_data_without_support_are_refused(estimator: Estimator) -> None:
    with pytest.raises(IdentifiabilityError, match="all torques are zero"):
        estimator.solve(silent(arm()))
    with pytest.raises(IdentifiabilityError, match="9 equations cannot determine 25"):
        estimator.solve(equations_of(arm(), samples=3))


def test_nothing_valid_is_refused() -> None:
    run = planted_run(ROBOT)
    with pytest.raises(IdentifiabilityError, match="no valid sample"):
        build_equations(ROBOT, replace(run, valid=np.zeros(run.q.shape, dtype=bool)))


def test_joints_must_match() -> None:
    with pytest.raises(ArgumentError, match="moving joints"):
        build_equations(zoo.scara(), planted_run(ROBOT))


def test_dependent_columns_are_reported() -> None:
    run = planted_run(SCARA, noise=0.01)
    estimate = WLS().solve(build_equations(SCARA, run, terms=[SaturatingViscous(joint=0)] * 2))
    assert estimate.undetermined[-2:].all()
    assert np.isfinite(estimate.stderr[:-2]).all()
