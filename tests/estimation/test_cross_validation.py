"""Errors on left-out folds against fits of the samples themselves, one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimation.cross_validation import WEIGHTS, Folds
from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.rows import torque_of_terms
from dynid.kernels import kernel
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, QuadraticViscous, SaturatingViscous, Viscous
from estimation.planted import planted_run

ROBOT = zoo.scara().with_terms(Viscous(0.5), Coulomb(0.4))
FURTHER = tuple(kind(joint=joint) for kind in (SaturatingViscous, QuadraticViscous) for joint in range(ROBOT.dof))
BLOCKS = 6


@pytest.fixture(scope="module")
def equations() -> Samples:
    """Equations of a noisy run with more terms than it has."""
    return build_equations(ROBOT, planted_run(ROBOT, samples=1200, noise=0.2), terms=FURTHER, blocks=BLOCKS)


def plain_errors(equations: Samples, folds: Folds, terms, prior_weight: float) -> np.ndarray:
    """(folds,) squared error of every block, predicted by a ridge regression of the others' samples."""
    (run,), robot = equations.experiments, equations.robot
    # columns of the samples: the torque of every scaled unknown by itself
    scale = folds.coordinates.from_scaled
    standard = len(equations.base.layout)
    evaluate = kernel(robot, "inverse_dynamics", symbolic_parameters=True)
    columns = [evaluate(run.q, run.dq, run.ddq, scale[:standard, k]) for k in range(standard)]
    places = [standard + FURTHER.index(term) for term in terms]
    columns += [torque_of_terms(robot, [FURTHER[k - standard]], scale[k, k, None], run) for k in places]
    A = np.stack(columns, axis=-1)  # (samples, joints, unknowns)
    unknowns = [*range(standard), *places]
    pull, centre = prior_weight * folds.coordinates.pull[unknowns], folds.coordinates.centre[unknowns]
    blocks = np.array_split(np.arange(run.samples), BLOCKS)
    squares = []
    for left_out in blocks:
        rest = np.setdiff1d(np.arange(run.samples), left_out)
        W = (A[rest] * np.sqrt(folds.weights)[:, None]).reshape(-1, len(unknowns))
        side = (run.effort[rest] * np.sqrt(folds.weights)).ravel()
        stacked = np.vstack([W, np.diag(np.sqrt(pull))])
        x = np.linalg.lstsq(stacked, np.concatenate([side, np.sqrt(pull) * centre]), rcond=None)[0]
        squares.append(np.sum((run.effort[left_out] - A[left_out] @ x) ** 2))
    return np.array(squares)


@pytest.mark.parametrize("prior_weight", [WEIGHTS[1], 1.0])
def test_errors_are_those_of_plain_fits(equations: Samples, prior_weight: float) -> None:
    folds = Folds(equations, np.array([1.0, 2.0, 5.0, 3.0])[: ROBOT.dof], (BLOCKS,))
    first, second = FURTHER[: ROBOT.dof], FURTHER[ROBOT.dof :]
    old, new = folds.errors(first, [second, second[:2], second[2:]], prior_weight)
    np.testing.assert_allclose(old, plain_errors(equations, folds, first, prior_weight), rtol=1e-7)
    for group, row in zip((second, second[:2], second[2:]), new, strict=True):
        np.testing.assert_allclose(row, plain_errors(equations, folds, (*first, *group), prior_weight), rtol=1e-7)
    # later models reuse what the first one eliminated, also for some of the folds
    some, _ = folds.errors((*second, first[1]), [], prior_weight, np.array([4, 1]))
    expected = plain_errors(equations, folds, (*second, first[1]), prior_weight)[[4, 1]]
    np.testing.assert_allclose(some, expected, rtol=1e-7)


def test_absent_parameters_are_zero(equations: Samples) -> None:
    folds = Folds(equations, np.ones(ROBOT.dof), (BLOCKS,))
    layout = list(equations.base.layout)
    friction = [place for place, name in enumerate(layout) if place >= 10 * ROBOT.dof]
    assert friction
    assert folds.best_weight((), friction) in WEIGHTS
    base, _ = folds._fit(np.arange(len(folds)), np.zeros(0, dtype=np.int64), friction, [1.0])
    of_friction = [k for k, column in enumerate(equations.base.columns) if column in friction]
    np.testing.assert_allclose(base[:, 0, of_friction], 0.0, atol=1e-12)


@pytest.mark.parametrize("absent", [(), (3, 11, 41)])
def test_base_parameters_are_drawn_as_standard_ones_are(equations: Samples, absent: tuple[int, ...]) -> None:
    folds = Folds(equations, np.ones(ROBOT.dof), (BLOCKS,))
    rigid, rank = len(equations.base.layout), equations.base.rank
    kept, places = np.arange(len(FURTHER)), np.array([5, 2])
    standard = [k for k in range(rigid) if k not in absent]
    to_base, pull = folds._to_base[:, standard], folds.coordinates.pull
    used = [*standard, *(rigid + kept)]
    turn = np.zeros((rank + kept.size, len(used)))
    turn[:rank, : len(standard)] = to_base
    turn[range(rank, len(turn)), range(len(standard), len(used))] = 1.0
    base, unknowns = folds._fit(places, kept, absent, WEIGHTS)
    for row, fold in enumerate(places):
        rest = folds.products(int(fold))[0]
        for place, weight in enumerate(WEIGHTS):
            P = weight * pull[used]
            side = turn.T @ rest[:-1, -1] + P * folds.coordinates.centre[used]
            y = np.linalg.solve(turn.T @ rest[:-1, :-1] @ turn + np.diag(P), side)
            expected = to_base @ y[: len(standard)]
            np.testing.assert_allclose(base[row, place], expected, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(unknowns[row, place], y[len(standard) :], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kept", [(), (5, 0, 2)])
def test_shared_elimination_gives_the_parameters_of_each_fit(equations: Samples, kept: tuple[int, ...]) -> None:
    folds = Folds(equations, np.array([1.0, 2.0, 5.0, 3.0])[: ROBOT.dof], (BLOCKS, 3))
    terms = np.array(kept, dtype=np.int64)
    plain = folds._fit(np.arange(len(folds)), terms, (), WEIGHTS)
    for quick, expected in zip(folds._parameters(terms, WEIGHTS), plain, strict=True):
        np.testing.assert_allclose(quick, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max(initial=0.0))
    names = [FURTHER[place] for place in kept]
    assert folds.best_weight(names, near=1.0) == folds.best_weight(names)


def test_a_larger_model_starts_from_the_smaller_one(equations: Samples) -> None:
    kinds = [FURTHER[: ROBOT.dof], FURTHER[ROBOT.dof :]]
    candidates = [[kinds[1][0]], [kinds[1][1], kinds[0][3]], list(kinds[1][2:])]
    folds = Folds(equations, np.ones(ROBOT.dof), (BLOCKS,))
    folds.errors(kinds[0][:2], [kinds[0][2:3], *candidates], 0.1)
    old, new = folds.errors(kinds[0][:3], candidates, 0.1)
    fresh_old, fresh_new = Folds(equations, np.ones(ROBOT.dof), (BLOCKS,)).errors(kinds[0][:3], candidates, 0.1)
    np.testing.assert_allclose(old, fresh_old, rtol=1e-10)
    np.testing.assert_allclose(new, fresh_new, rtol=1e-10)


def test_some_of_the_terms_give_the_folds_of_equations_that_have_no_others(equations: Samples) -> None:
    kept = (FURTHER[5], FURTHER[0], FURTHER[2])
    whole, some = (Folds(each, np.ones(ROBOT.dof), (BLOCKS,), terms=kept) for each in (equations, equations.keep(kept)))
    np.testing.assert_allclose(whole._weighted, some._weighted, rtol=1e-9, atol=1e-9 * np.abs(some._weighted).max())
    assert whole.best_weight(kept, [3]) == some.best_weight(kept, [3])
    np.testing.assert_allclose(whole.errors(kept, [], 1.0)[0], some.errors(kept, [], 1.0)[0], rtol=1e-9)


def test_runs_that_are_folds_give_the_same_errors_however_many_blocks_they_have() -> None:
    runs = [planted_run(ROBOT, samples=600, noise=0.2, seed=seed) for seed in range(5)]
    weights = np.array([1.0, 2.0, 5.0, 3.0])[: ROBOT.dof]
    few, many = (Folds(build_equations(ROBOT, runs, blocks=blocks), weights) for blocks in (1, 7))
    assert len(few) == len(many) == 5
    np.testing.assert_allclose(few.errors((), [], 1.0)[0], many.errors((), [], 1.0)[0], rtol=1e-9)


def test_more_than_eight_experiments_have_fewer_blocks_each() -> None:
    runs = [planted_run(ROBOT, samples=200, noise=0.2, seed=seed) for seed in range(9)]
    assert [len(part) for part in build_equations(ROBOT, runs).blocks] == [5] * 9
    assert [len(part) for part in build_equations(ROBOT, runs[:8]).blocks] == [10] * 8
