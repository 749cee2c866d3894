"""From the last link to the first ([Lin1995] section IV)."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimators.linear.least_squares import WLS
from dynid.estimators.linear.link_by_link import LinkByLink, resolve_columns
from dynid.estimators.online.online_links import excitation_table
from dynid.robot import zoo
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot

from .planted import arm, equations_of, still, truth, with_friction


def chain(name: str, *rows: DH, gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)) -> Robot:
    """A robot with the same plausible body on every joint."""
    body = Inertia.from_com(2.0, [0.1, -0.05, 0.08], np.diag([0.05, 0.06, 0.04]))
    return from_dh(rows, degrees=True, name=name, inertias=[body] * len(rows), gravity=gravity)


FOUR_CASES = [
    zoo.ddarm(),
    zoo.stanford(),  # rotational and translational joints beyond s
    zoo.scara(),  # both before s
    chain("gantry", DH(sigma=1), DH(sigma=1, alpha=90), DH(sigma=1, alpha=90), DH(), DH(alpha=90)),  # before r
    chain("oblique", DH(), DH(sigma=1, alpha=60), DH(alpha=50, d=0.3), gravity=(1.0, -2.0, -9.0)),
]


@pytest.mark.parametrize("robot", FOUR_CASES, ids=lambda r: r.name)
def test_agrees_with_the_batch_fit_without_noise(robot: Robot) -> None:
    for model in (robot, with_friction(robot)):
        equations = equations_of(model)
        estimate = LinkByLink().solve(equations)
        assert not estimate.undetermined.any()
        assert estimate.values == pytest.approx(WLS().solve(equations).values, abs=1e-8)
        assert estimate.values == pytest.approx(truth(equations), abs=1e-8)


def test_steps_report_condition_and_excitation() -> None:
    equations = equations_of(zoo.stanford())
    steps = LinkByLink().steps(equations)
    assert [step.joint for step in steps] == list(reversed(equations.robot.joint_names))
    assert sorted(name for step in steps for name in step.parameters) == sorted(equations.names)
    assert [len(step.parameters) for step in steps] == [7, 7, 7, 4, 7, 1]  # [Lin1995] Theorem 2
    assert all(step.is_persistently_exciting and 1.0 <= step.condition < 1e4 for step in steps)
    table = excitation_table(equations)
    assert [row[:2] for row in table.rows] == [(name, "yes") for name in equations.robot.joint_names]
    assert LinkByLink().solve(equations).extras["condition joint6"] == steps[0].condition


def test_a_locked_joint_is_not_persistently_excited() -> None:
    equations = still(arm(), [2])
    steps = {step.joint: step for step in LinkByLink().steps(equations)}
    last = steps[equations.robot.joint_names[2]]
    assert not last.is_persistently_exciting
    assert last.condition == np.inf
    stderr = LinkByLink().solve(equations).stderr
    assert np.isinf(stderr).any()
    assert np.isfinite(stderr).any()


S = 1e-3
WEAK = [[1.0, 1.0], [S, -S]]  # the direction (1, -1) is S times as long as (1, 1)


@pytest.mark.parametrize(
    ("A", "errors", "determined", "inverse", "condition"),
    [
        (WEAK, None, [True, True], [[0.5, 0.5 / S], [0.5, -0.5 / S]], 1.0 / S),
        ([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]], None, [False, False, True],
         [[0.25, 0.25, 0.0], [0.25, 0.25, 0.0], [0.0, 0.0, 0.5]], np.inf),
        ([[1.0, 0.0], [0.0, 2.1e-11]], None, [True, True], [[1.0, 0.0], [0.0, 1.0 / 2.1e-11]], 1.0),
        ([[1.0, 0.0], [0.0, 0.9e-12]], None, [True, False], [[1.0, 0.0], [0.0, 0.0]], np.inf),
        ([[2.0, 0.0], [0.0, 5.0]], [[0.39, 0.0], [0.0, 1.01]], [True, False], [[0.5, 0.0], [0.0, 0.0]], np.inf),
        (WEAK, [[0.19 * S, -0.19 * S], [0.0, 0.0]], [True, True], [[0.5, 0.5 / S], [0.5, -0.5 / S]], 1.0 / S),
        (WEAK, [[0.21 * S, -0.21 * S], [0.0, 0.0]], [False, False], [[0.5, 0.0], [0.5, 0.0]], np.inf),
        (np.zeros((2, 0)), None, [], np.zeros((0, 2)), 1.0),
    ],
)  # fmt: skip
def test_what_equations_determine(
    A: object, errors: object, determined: list[bool], inverse: object, condition: float
) -> None:
    """Five times as long as its errors, in columns and in directions; longer than rounding of the longest column."""
    found = resolve_columns(np.array(A), 1e-9, 2.0, None if errors is None else np.array(errors))
    assert found.determined.tolist() == determined
    np.testing.assert_allclose(found.inverse, inverse, rtol=1e-9, atol=1e-9)
    assert found.condition == pytest.approx(condition, rel=1e-5)
