"""Recursive least squares in C: equal to Python, with and without forgetting; broken samples change nothing."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.export.c.c_check import find_compiler
from dynid.processing.simulation import sum_of_sines
from support.c_drivers import run_recursive

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")
STD = np.array([1.0, 0.5, 0.2, 0.1, 0.1, 0.05])


def arm() -> dynid.Robot:
    return dynid.robots.puma560().with_terms(dynid.Viscous(0.4), dynid.Coulomb(0.6))


def samples(count: int = 400) -> np.ndarray:
    motion = sum_of_sines(6, period_s=4.0, seed=2)(np.arange(count) / 100.0)
    torque = dynid.inverse_dynamics(arm(), *motion) + STD * np.random.default_rng(0).normal(size=motion[0].shape)
    return np.hstack([*motion, torque])


@pytest.mark.parametrize("forgetting", [1.0, 0.995])
def test_c_and_python_agree(forgetting: float) -> None:
    rows = samples()
    tracker = dynid.estimation.OnlineLeastSquares(arm(), forgetting=forgetting, torque_std=STD)
    for row in rows:
        tracker.update(*row.reshape(4, 6))
    values, known, refused = run_recursive(arm(), rows, STD, forgetting)
    assert (known, refused) == (len(values), 0)
    np.testing.assert_allclose(values, tracker.estimate().values, rtol=1e-9, atol=1e-9)


def test_broken_samples_are_refused_and_few_tell_little() -> None:
    rows = samples(60)
    spoilt = np.insert(rows, [10, 20, 30], rows[:3], axis=0)
    for at, column, value in ((10, 0, np.nan), (21, 8, np.inf), (32, 20, -1e14)):
        spoilt[at, column] = value
    whole, left = (run_recursive(arm(), given, STD) for given in (rows, spoilt))
    np.testing.assert_array_equal(left[0], whole[0])
    assert left[2] == 3
    assert run_recursive(arm(), rows[:2], STD)[1] <= 12
