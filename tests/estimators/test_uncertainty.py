"""Intervals hold on planted truth with wrong priors."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimators.equations import build_equations
from dynid.estimators.estimate import Estimator
from dynid.estimators.physical.feasible import FeasibleWLS
from dynid.identifiability.base import base_parameters
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset
from estimators.planted import planted_run

TRUTH = zoo.scara().with_terms(Viscous(0.5), Coulomb(0.4), Offset(0.1))
RUNS = 20
BASE = base_parameters(TRUTH)


def wrong_prior(off: float, seed: int = 0) -> Robot:
    """The robot with every body's density, and every friction, off by a random factor."""
    rng = np.random.default_rng(seed)
    scale = np.exp(off * rng.normal(size=TRUTH.parameter_vector.size))
    for j in range(TRUTH.dof):
        scale[10 * j : 10 * j + 10] = scale[10 * j]
    return TRUTH.with_parameters(TRUTH.parameter_vector * scale)


def hits(prior: Robot, estimator: Estimator, noise: float) -> np.ndarray:
    """(runs, b) whether the 95 % interval held the planted value."""
    found = []
    for seed in range(RUNS):
        equations = build_equations(prior, planted_run(TRUTH, samples=300, noise=noise, seed=seed), base=BASE)
        interval, planted = estimator.solve(equations).interval(), equations.base.project(TRUTH.parameter_vector)
        found.append((interval[:, 0] <= planted) & (planted <= interval[:, 1]))
    return np.array(found)


@pytest.mark.parametrize("off", [0.1, 0.6])
def test_intervals_survive_a_wrong_prior(off: float) -> None:
    share = hits(wrong_prior(off), FeasibleWLS(), noise=0.5)
    assert share.mean() > 0.94
    assert share.mean(axis=0).min() >= 0.75, "no parameter is left out in the cold"
