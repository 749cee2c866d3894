"""The pooled estimate beside one large least-squares problem that knows nothing of elimination."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.estimators.equations import build_equations
from dynid.fleet.pooling import ArmEquations, own_values, pool_arms
from dynid.identifiability.base import base_parameters
from dynid.processing.process import Processing, process
from fleet.small_fleet import ROBOT, arm, record

BASE = base_parameters(ROBOT)
OWN = [place for place, column in enumerate(BASE.columns) if column >= 10 * ROBOT.dof]
SHARED = [place for place in range(BASE.rank) if place not in OWN]


@pytest.fixture(scope="module")
def arms() -> list[ArmEquations]:
    made = []
    for number in range(4):
        equations = build_equations(ROBOT, process(record(arm(number), number), Processing(cutoff_hz=15.0)), base=BASE)
        made.append(ArmEquations.of(f"arm{number}", [equations], ["log"], [[0]]))
    return made


def whole_problem(arms: list[ArmEquations]) -> tuple[np.ndarray, np.ndarray]:
    """All equations of all arms side by side: shared columns, then the own ones of every arm."""
    blocks, side = [], []
    for number, one in enumerate(arms):
        rows = one.rows()
        block = np.zeros((len(rows), len(SHARED) + len(OWN) * len(arms)))
        block[:, : len(SHARED)] = rows[:, SHARED]
        first = len(SHARED) + len(OWN) * number
        block[:, first : first + len(OWN)] = rows[:, OWN]
        blocks.append(block)
        side.append(rows[:, -1])
    return np.vstack(blocks), np.concatenate(side)


def test_elimination_gives_the_solution_of_the_whole_problem(arms: list[ArmEquations]) -> None:
    pool = pool_arms(arms, OWN)
    A, b = whole_problem(arms)
    solution = np.linalg.lstsq(A, b, rcond=None)[0]
    covariance = np.linalg.inv(A.T @ A)
    np.testing.assert_allclose(pool.shared, solution[: len(SHARED)], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(pool.std, np.sqrt(np.diagonal(covariance))[: len(SHARED)], rtol=1e-6)
    for number, own in enumerate(pool.own):
        mine = slice(len(SHARED) + len(OWN) * number, len(SHARED) + len(OWN) * (number + 1))
        np.testing.assert_allclose(own.values, solution[mine], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(own.std, np.sqrt(np.diagonal(covariance))[mine], rtol=1e-6)


def test_shared_parameters_lie_within_their_intervals_and_are_known_better_than_by_one_arm(
    arms: list[ArmEquations],
) -> None:
    pool = pool_arms(arms, OWN)
    truth = (BASE.grouping @ ROBOT.parameter_vector)[SHARED]
    assert np.all(np.abs(pool.shared - truth) < 4.5 * pool.std)
    alone = pool_arms(arms[:1], OWN)
    assert not alone.undetermined.any()
    assert np.median(alone.std / pool.std) > 1.5


def test_own_unknowns_without_equations_stay_open(arms: list[ArmEquations]) -> None:
    """An arm that never ran has no own values; the fleet does not suffer."""
    log = arms[0].logs[0]
    empty = replace(arms[0], logs=(log.only(),), weights=np.ones(ROBOT.dof))
    pool = pool_arms([*arms, empty], OWN)
    assert np.all(np.isinf(pool.own[-1].std))
    np.testing.assert_allclose(pool.shared, pool_arms(arms, OWN).shared, rtol=1e-9)


def test_own_values_of_a_part_and_shared_ones_of_some(arms: list[ArmEquations]) -> None:
    pool = pool_arms(arms, OWN)
    again = own_values(arms[1], pool, [0])
    np.testing.assert_allclose(again.values, pool.own[1].values, rtol=1e-9)
    assert np.all(again.std <= pool.own[1].std * (1.0 + 1e-9))
    three = pool_arms(arms, OWN, [0, 1, 2])
    np.testing.assert_allclose(three.shared, pool_arms(arms[:3], OWN).shared, rtol=1e-8)
    assert len(three.own) == 4
