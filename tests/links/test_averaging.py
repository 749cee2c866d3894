"""Averaged models: the mean by name, still a possible robot with passive friction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.physical.feasible import FeasibleWLS
from dynid.estimation.physical.passivity import Passivity
from dynid.estimation.rows import torque_of_terms
from dynid.estimation.selection import Candidate, ForwardSelection, Selection
from dynid.export.result_file import result_json
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


@pytest.mark.parametrize("shares", [(), (0.1, 0.2, 0.4, 0.3)])
def test_every_parameter_is_the_mean_over_the_models(equations: Samples, shares: tuple[float, ...]) -> None:
    estimator = FeasibleWLS(prior_weight=1.0)
    selection = Selection(terms=(*ROOTS, *SIGNS), steps=(), models=MODELS, shares=shares)
    fit = identify_equations(equations, estimator, selection)
    expected = dict.fromkeys(equations.names, 0.0)
    for model, share in zip(MODELS, shares or (0.25,) * 4, strict=True):
        alone = identify_equations(equations.keep(model), estimator)
        for name, value in zip(alone.estimate.names, alone.estimate.values.tolist(), strict=True):
            expected[name] += share * value
    # alone, each model has weights of its own, from its own residuals
    spread = np.maximum(fit.estimate.stderr, 1e-9)
    assert np.max(np.abs(fit.estimate.values - list(expected.values())) / spread) < 0.3
    assert any("3 sets of further terms predict left-out parts" in f.message for f in fit.estimate.findings)


def test_the_result_file_lists_the_printed_terms_with_their_shares(equations: Samples) -> None:
    selection = Selection(terms=(*ROOTS, *SIGNS), steps=(), models=MODELS, shares=(0.1, 0.2, 0.4, 0.3))
    fit = identify_equations(equations, FeasibleWLS(prior_weight=1.0), selection)
    listed = result_json(fit)["selected_terms"]
    assert [entry["term"] for entry in listed] == [term.name for term in fit.terms]
    by_kind = {entry["kind"]: entry["share"] for entry in listed}
    assert by_kind == pytest.approx({"SaturatingViscous": 0.8, "SmoothSign": 0.4})
    alone = Selection(terms=ROOTS, steps=())
    assert {entry["share"] for entry in alone.terms_to_json()} == {1.0}


def test_the_same_terms_in_another_order_are_the_same_model(equations: Samples) -> None:
    estimator = FeasibleWLS(prior_weight=1.0)
    turned = tuple(reversed(ROOTS))
    twice, once = (
        identify_equations(
            equations,
            estimator,
            Selection(terms=(*ROOTS, *SIGNS), steps=(), models=models, shares=shares, chances=shares),
        ).estimate
        for models, shares in (((ROOTS, (), turned), (0.3, 0.5, 0.2)), ((ROOTS, ()), (0.5, 0.5)))
    )
    assert any("2 sets of further terms predict left-out parts" in f.message for f in twice.findings)
    np.testing.assert_array_equal(twice.values, once.values)
    np.testing.assert_array_equal(twice.covariance, once.covariance)


def test_the_spread_of_the_models_counts_among_the_errors(equations: Samples) -> None:
    """Each model may be the right one by its chance: the moments of the mixture of their errors."""
    estimator, chances = FeasibleWLS(prior_weight=1.0), (0.3, 0.3, 0.2, 0.2)
    selection = Selection(terms=(*ROOTS, *SIGNS), steps=(), models=MODELS, chances=chances)
    fit = identify_equations(equations, estimator, selection).estimate
    guesses, squares = (np.zeros((len(MODELS), len(equations.names))) for _ in range(2))
    for guess, square, model in zip(guesses, squares, MODELS, strict=True):
        found = identify_equations(equations.keep(model), estimator).estimate
        places = [equations.names.index(name) for name in found.names]
        assert found.bias is not None
        guess[places] = found.values - found.bias
        square[places] = np.diagonal(found.covariance) - found.bias**2
    expected = chances @ (squares + (guesses - fit.values) ** 2)
    counted = np.array([source == "data" for source in fit.sources])
    # alone, each model has weights of its own, from its own residuals
    np.testing.assert_allclose(np.diagonal(fit.covariance)[counted], expected[counted], rtol=0.3)
    assert np.any(expected > 1.3 * (chances @ squares))  # the spread of the models is a clear part of some


def test_a_model_that_is_clearly_worse_has_no_chance() -> None:
    run = planted_run(ROBOT, samples=1200, noise=0.02)
    torque = torque_of_terms(ROBOT, ROOTS, np.full(ROBOT.dof, 0.5), run)
    equations = build_equations(ROBOT, replace(run, effort=run.effort + torque), terms=ROOTS, blocks=24)
    selection = ForwardSelection().run(equations, (Candidate("roots", ROOTS),))
    assert selection.models[-1] == ()
    assert selection.chances[-1] < 1e-3 < selection.shares[-1]
    assert sum(selection.chances) == pytest.approx(1.0)


def test_models_count_by_how_well_they_predict() -> None:
    runs = [planted_run(ROBOT, samples=600, noise=0.02, seed=seed) for seed in (1, 2)]
    planted = [torque_of_terms(ROBOT, ROOTS, np.full(ROBOT.dof, 0.5), run) for run in runs]
    runs = [replace(run, effort=run.effort + torque) for run, torque in zip(runs, planted, strict=True)]
    candidates = (Candidate("roots", ROOTS), Candidate("signs", SIGNS))
    equations = build_equations(ROBOT, runs, terms=(*ROOTS, *SIGNS), blocks=24)
    selection = ForwardSelection().run(equations, candidates)
    assert len(selection.models) == 7  # the rule, three partitions, half of the folds, whole runs, no terms
    assert selection.models[-1] == ()
    assert set(ROOTS) <= set(selection.models[-2])
    assert sum(selection.shares) == pytest.approx(1.0)
    # each run predicted by a fit of the other one, written out with NumPy
    errors = []
    for terms in (selection.models[0], ()):
        kept = equations.keep(terms)
        ratio = []
        for left_out, used in (kept.blocks, kept.blocks[::-1]):
            squares = kept.information.only(*left_out).per_joint_residual(
                kept.information.only(*used).weight().solve(minimum_norm=True)
            )
            ratio.append(np.log(squares.sum()))
        errors.append(np.exp(np.mean(ratio)))
    assert selection.shares[0] / selection.shares[-1] == pytest.approx(errors[1] / errors[0], rel=0.3)
    assert selection.shares[0] > 5.0 * selection.shares[-1]


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


def test_no_combination_of_parameters_has_a_negative_variance(equations: Samples) -> None:
    heavy = replace(equations, robot=ROBOT.with_parameters(1.5 * ROBOT.parameter_vector))
    selection = Selection(terms=(*ROOTS, *SIGNS), steps=(), models=MODELS, shares=(0.1, 0.2, 0.4, 0.3))
    found = identify_equations(heavy, FeasibleWLS(prior_weight=100.0), selection).estimate
    scale = 1.0 / np.sqrt(np.diagonal(found.covariance))
    assert np.linalg.eigvalsh(found.covariance * np.outer(scale, scale))[0] > -1e-9
