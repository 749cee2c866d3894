"""Intervals hold on planted truth: with wrong priors, active constraints, known bodies, and by the block bootstrap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.estimators.equations import build_equations
from dynid.estimators.linear.least_squares import WLS
from dynid.estimators.physical.feasible import FeasibleWLS
from dynid.identifiability.base import base_parameters
from dynid.identification.identify import identify
from dynid.identification.recipe import Recipe
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia
from estimators.planted import SCARA as TRUTH
from estimators.planted import covered, planted_run

RUNS = 20
BASE = base_parameters(TRUTH)


@pytest.mark.parametrize("off", [0.1, 0.6])
def test_intervals_survive_a_wrong_prior(off: float) -> None:
    """Every body's density, and every friction, is off by a random factor."""
    scale = np.exp(off * np.random.default_rng(0).normal(size=TRUTH.parameter_vector.size))
    scale[: 10 * TRUTH.dof] = np.repeat(scale[: 10 * TRUTH.dof : 10], 10)
    prior, hits = TRUTH.with_parameters(TRUTH.parameter_vector * scale), []
    for seed in range(RUNS):
        equations = build_equations(prior, planted_run(TRUTH, samples=300, noise=0.5, seed=seed), base=BASE)
        hits.append(covered(replace(equations, robot=TRUTH), FeasibleWLS().solve(equations)))
    assert np.mean(hits) > 0.94
    assert np.mean(hits, axis=0).min() >= 0.75, "no parameter is left out in the cold"


def test_intervals_survive_active_constraints() -> None:
    """The second link is a rod of no thickness, its friction zero: the truth lies on the border of what is possible."""
    theta = TRUTH.parameter_vector.copy()
    theta[10:20] = [0.0, 0.0, 0.0, 0.1, 0.0, 0.1, 0.3, 0.0, 0.0, 1.0]
    theta[10 * TRUTH.dof :] = 0.0
    robot = TRUTH.with_parameters(theta)
    held, found = 0, []
    for seed in range(RUNS):
        equations = build_equations(robot, planted_run(robot, samples=300, noise=0.3, seed=seed), base=BASE)
        estimate = FeasibleWLS(prior_weight=1e-3).solve(equations)
        found.append(covered(equations, estimate))
        held += bool(estimate.at_bound)
    assert held > 0.9 * RUNS
    assert np.mean(found) > 0.94


def test_what_the_prior_says_is_flagged() -> None:
    run = planted_run(TRUTH, samples=400, noise=0.5)
    weak = identify(TRUTH, run, Recipe.bare(), estimator=FeasibleWLS(prior_weight=1e-4))
    strong = identify(TRUTH, run, Recipe.bare(), estimator=FeasibleWLS(prior_weight=1e8))
    assert weak.estimate.prior_dominated == ()
    links = {n for n in strong.estimate.names if not n.startswith(("FV", "FC", "OFF"))}
    assert links <= set(strong.estimate.prior_dominated)
    assert set(weak.prior_dominated) < set(strong.prior_dominated)


def test_what_the_data_know_alone_is_never_the_priors() -> None:
    """Noise of long memory, rotor inertias unknown before and found: a prior on links does not make them its own.

    Plain least squares, which has never heard of the prior, finds the same values with the same spread.
    """
    usual = (RotorInertia(0.5), Viscous(0.5), Coulomb(0.4), Offset(0.1))
    truth = zoo.puma560().with_terms(*usual)
    theta = truth.parameter_vector.copy()
    theta[:60], theta[60:] = 1.3 * theta[:60], 0.0
    run = planted_run(truth, samples=1000)
    white = np.random.default_rng(3).normal(size=(run.samples + 20, truth.dof))
    slow = np.apply_along_axis(lambda x: np.convolve(x, np.ones(21) / 21.0, mode="valid"), 0, white)
    equations = build_equations(truth.with_parameters(theta), replace(run, effort=run.effort + 0.3 * slow))
    plain, drawn = WLS().solve(equations), FeasibleWLS(prior_weight=100.0).solve(equations)
    named = set(drawn.prior_dominated)
    assert named.isdisjoint({"ZZR1", *(f"{kind}{j}" for kind in ("IA", "FV", "FC", "OFF") for j in range(3, 7))})
    assert {"XY6", "XXR6"} <= named, "the last link's inertia is far below what such torques show"
    sharp = plain.stderr < 0.05 * np.abs(plain.values)
    assert named.isdisjoint(name for name, known in zip(plain.names, sharp, strict=True) if known)
