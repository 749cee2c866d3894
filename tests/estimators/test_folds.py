"""Errors of cross-validation from cross products, against fits to the samples themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from dynid.compiled import regressor
from dynid.errors import ArgumentError
from dynid.estimators.equations import build_equations
from dynid.estimators.folds import Folds
from dynid.estimators.physical.feasible import FeasibleWLS, feasible_parameters
from dynid.robot import zoo
from dynid.terms.friction import AsymmetricViscous, SmoothSign, Viscous

from .planted import planted_run

ROBOT = zoo.scara().with_terms(Viscous(0.5))
PRIOR = ROBOT.with_parameters(1.2 * ROBOT.parameter_vector)
WEIGHTS = np.array([1.0, 4.0, 0.5, 2.0])


@pytest.mark.parametrize("strength", [1e-12, 1e-2, 1e6])
def test_a_fold_is_predicted_from_all_others(strength: float) -> None:
    """By the prior, by the estimator feasible, or by plain least squares with friction that is not negative."""
    run = planted_run(ROBOT, noise=0.2, samples=300)
    run = replace(run, effort=run.effort - 1.5 * np.tanh(run.dq / 0.5) * [0.0, 1.0, 0.0, -1.0])
    terms = [SmoothSign(joint=1, scale=0.5), SmoothSign(joint=3, scale=0.5), AsymmetricViscous(joint=0)]
    equations = build_equations(PRIOR, run, terms=terms)
    folds = Folds(equations, strength * WEIGHTS)
    base = equations.base
    Y = regressor(ROBOT, run.q, run.dq, run.ddq, columns=base.columns)
    columns = np.zeros((300, 4, 3))
    columns[:, 1, 0], columns[:, 3, 1] = np.tanh(run.dq[:, [1, 3]] / 0.5).T
    columns[:, 0, 2] = np.abs(run.dq[:, 0])
    least = np.array([0.0 if name.startswith("FV") else -np.inf for name in base.names])
    for chosen in ((), (1,), (0, 1, 2))[: 1 if strength == 1e-12 else 3]:
        expected = []
        for fold in np.array_split(np.arange(300), 10):
            others = np.delete(np.arange(300), fold)
            W = np.concatenate([Y, columns[:, :, chosen]], axis=2)
            if strength == 1e6:
                X = W[others] * np.sqrt(WEIGHTS)[:, None]
                low = np.append(least, [(0.0, 0.0, -np.inf)[k] for k in chosen])
                found = lsq_linear(
                    X.reshape(-1, X.shape[2]), (run.effort[others] * np.sqrt(WEIGHTS)).ravel(), (low, np.inf)
                ).x
            else:
                rest = build_equations(PRIOR, run.rows(others), terms=[terms[k] for k in chosen], base=base)
                factor = rest.information.weight(strength * WEIGHTS)
                found = rest.grouping @ feasible_parameters(rest, factor, FeasibleWLS()).theta
            expected.append(np.sum((run.effort[fold] - W[fold] @ found) ** 2))
        np.testing.assert_allclose(
            folds.errors([terms[k] for k in chosen]), expected, rtol=1e-2 if strength == 1e-2 else 1e-4
        )


def test_one_block_of_time_is_not_enough() -> None:
    with pytest.raises(ArgumentError, match="two blocks of time or more"):
        Folds(build_equations(ROBOT, planted_run(ROBOT, samples=200), blocks=1), WEIGHTS)
