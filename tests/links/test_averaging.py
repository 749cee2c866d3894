"""Averaged models: the mean by name, still a possible robot with passive friction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.physical.feasible import FeasibleWLS
from dynid.estimation.physical.passivity import Passivity
from dynid.estimation.rows import torque_of_terms
from dynid.estimation.selection import ForwardSelection, Selection
from dynid.links.identify import identify, identify_equations
from dynid.links.recipe import Recipe
from dynid.robot import zoo
from dynid.terms.base import Term
from dynid.terms.friction import Coulomb, SaturatingViscous, SmoothSign, Viscous
from dynid.terms.motors import Offset
from estimation.planted import planted_run

ROBOT = zoo.scara().with_terms(Viscous(0.1), Coulomb(0.05), Offset(0.1))
ROOTS = tuple(SaturatingViscous(joint=joint) for joint in range(ROBOT.dof))
SIGNS = tuple(SmoothSign(joint=joint, scale=0.2) for joint in range(ROBOT.dof))
MODELS: tuple[tuple[Term, ...], ...] = (ROOTS, (), (*ROOTS, *SIGNS), ROOTS)


@pytest.fixture(scope="module")
def equations() -> Samples:
    run = planted_run(ROBOT, samples=1200, noise=0.1)
    torque = torque_of_terms(ROBOT, ROOTS, np.full(ROBOT.dof, -0.02), run)  # at the border of passive friction
    return build_equations(ROBOT, replace(run, effort=run.effort + torque), terms=(*ROOTS, *SIGNS))


def test_every_parameter_is_the_mean_over_the_models(equations: Samples) -> None:
    estimator = FeasibleWLS(prior_weight=1.0)
    fit = identify_equations(equations, estimator, Selection(terms=(*ROOTS, *SIGNS), steps=(), models=MODELS))
    expected = dict.fromkeys(equations.names, 0.0)
    for model in MODELS:
        alone = identify_equations(equations.keep(model), estimator)
        for name, value in zip(alone.estimate.names, alone.estimate.values.tolist(), strict=True):
            expected[name] += value / len(MODELS)
    # alone, each model has weights of its own, from its own residuals
    spread = np.maximum(fit.estimate.stderr, 1e-9)
    assert np.max(np.abs(fit.estimate.values - list(expected.values())) / spread) < 0.3
    assert any("mean of 4 models that selection found, 3 of them different" in f.message for f in fit.estimate.findings)


def test_the_mean_of_possible_robots_is_possible(equations: Samples) -> None:
    fit = identify_equations(equations, FeasibleWLS(), Selection(terms=(*ROOTS, *SIGNS), steps=(), models=MODELS))
    assert all(body.inertia.is_physical for body in fit.robot.with_parameters(fit.standard).bodies)
    passivity = Passivity.of(equations)
    unknowns = np.concatenate([fit.standard, fit.estimate.values[fit.base.rank :], np.zeros(passivity.shares)])
    assert (passivity.rows @ unknowns >= -passivity.allowed - 1e-6).all()
    np.testing.assert_allclose(fit.base.grouping @ fit.standard, fit.estimate.values[: fit.base.rank], atol=1e-9)


def test_one_model_is_fitted_as_before() -> None:
    run = planted_run(ROBOT, samples=1200, noise=0.1)
    plain, mean = (
        identify(ROBOT, run, Recipe.bare(selection=ForwardSelection(folds=(6,), average=average)))
        for average in (False, True)
    )
    assert plain.terms == mean.terms == ()
    np.testing.assert_array_equal(plain.estimate.values, mean.estimate.values)
