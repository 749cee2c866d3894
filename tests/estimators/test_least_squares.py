"""Least squares: exact without noise, honest where parameters stay open, refusing where nothing is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.compiled import inverse_dynamics
from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimators.equations import build_equations
from dynid.estimators.estimate import Estimator
from dynid.estimators.linear.least_squares import OLS, WLS
from dynid.estimators.physical.feasible import FeasibleWLS
from dynid.processing.experiment import Experiment
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia
from estimators.planted import planted_run

ROBOT = zoo.puma560().with_terms(RotorInertia(0.2), Viscous(0.5), Coulomb(0.4), Offset(0.1))
ESTIMATORS: list[Estimator] = [OLS(), WLS(), FeasibleWLS()]


def with_motion(run: Experiment, joint: int | None) -> Experiment:
    """The same with one joint held, or with all of them at rest."""
    still = slice(None) if joint is None else [joint]
    q, dq, ddq = run.q.copy(), run.dq.copy(), run.ddq.copy()
    q[:, still], dq[:, still], ddq[:, still] = q[0, still], 0.0, 0.0
    noise = 0.01 * np.random.default_rng(0).normal(size=q.shape)
    return replace(run, q=q, dq=dq, ddq=ddq, effort=inverse_dynamics(ROBOT, q, dq, ddq) + noise)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_exact_without_noise(estimator: Estimator) -> None:
    equations = build_equations(ROBOT, planted_run(ROBOT))
    truth = equations.base.project(ROBOT.parameter_vector)
    np.testing.assert_allclose(estimator.solve(equations).values, truth, atol=2e-4)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_a_robot_at_rest_reveals_next_to_nothing(estimator: Estimator) -> None:
    estimate = estimator.solve(build_equations(ROBOT, with_motion(planted_run(ROBOT), None)))
    assert np.count_nonzero(np.isfinite(estimate.stderr)) <= 1
    assert np.isfinite(estimate.values).all()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_too_few_samples_are_refused(estimator: Estimator) -> None:
    with pytest.raises(IdentifiabilityError, match="18 equations cannot determine 58"):
        estimator.solve(build_equations(ROBOT, planted_run(ROBOT, samples=3)))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_zero_torques_are_refused(estimator: Estimator) -> None:
    run = planted_run(ROBOT)
    with pytest.raises(IdentifiabilityError, match="all torques are zero"):
        estimator.solve(build_equations(ROBOT, replace(run, effort=np.zeros(run.q.shape))))


def test_nothing_valid_is_refused() -> None:
    run = planted_run(ROBOT)
    with pytest.raises(IdentifiabilityError, match="no valid sample"):
        build_equations(ROBOT, replace(run, valid=np.zeros(run.q.shape, dtype=bool)))


def test_joints_must_match() -> None:
    with pytest.raises(ArgumentError, match="moving joints"):
        build_equations(zoo.scara(), planted_run(ROBOT))


def test_dependent_columns_are_reported() -> None:
    robot = zoo.scara().with_terms(Viscous(0.5), Coulomb(0.4), Offset(0.1))
    run = planted_run(robot, noise=0.01)
    from dynid.terms.friction import SaturatingViscous

    twice = build_equations(robot, run, terms=[SaturatingViscous(joint=0), SaturatingViscous(joint=0)])
    estimate = WLS().solve(twice)
    assert estimate.undetermined[-2:].all()
    assert np.isfinite(estimate.stderr[:-2]).all()
