"""Impulse and momentum: the integral form of the torque equations ([Atkeson1986] eqs. 25-27)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimation.equations import build_equations
from dynid.estimation.linear.least_squares import WLS
from dynid.estimation.linear.momentum import Momentum, lagrangian_slope
from dynid.kernels import energy_regressor
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.terms.motors import RotorInertia

from .planted import arm, coverage, equations_of, planted_run, silent, still, truth


@pytest.mark.parametrize("robot", [zoo.ddarm(), arm(), zoo.stanford()], ids=lambda r: r.name)
def test_the_truth_without_noise(robot: Robot) -> None:
    equations = equations_of(robot)
    estimate = Momentum().solve(equations)
    assert not estimate.undetermined.any()
    assert estimate.values == pytest.approx(truth(equations), abs=1e-6)


def test_the_slope_of_the_lagrangian() -> None:
    equations = equations_of(zoo.stanford(), samples=40)
    robot, run = equations.robot, equations.experiments[0]
    columns = list(equations.base.columns)
    still_there, step = np.zeros_like(run.dq), 1e-6

    def lagrangian(q: np.ndarray) -> np.ndarray:
        potential = energy_regressor(robot, q, still_there)
        return np.asarray(energy_regressor(robot, q, run.dq) - 2.0 * potential)[:, columns]

    slope = lagrangian_slope(equations, run.q, run.dq)
    for i, unit in enumerate(np.eye(robot.dof)):
        expected = (lagrangian(run.q + step * unit) - lagrangian(run.q - step * unit)) / (2.0 * step)
        assert slope[:, i] == pytest.approx(expected, abs=1e-7)


def test_accelerations_are_not_used() -> None:
    run = planted_run(arm())
    equations = build_equations(arm(), replace(run, ddq=np.zeros_like(run.ddq)))
    assert Momentum().solve(equations).values == pytest.approx(truth(equations), abs=1e-6)


def test_intervals_hold_with_noise_and_are_nearly_those_of_torques() -> None:
    covered = []
    for seed in range(8):
        equations = equations_of(arm(), noise=(1.0, 0.5, 0.2), seed=seed, motion=seed)
        estimate = Momentum().solve(equations)
        covered.append(coverage(equations, estimate))
    assert 0.9 < np.mean(covered) < 0.995
    assert estimate.noise_std == pytest.approx([1.0, 0.5, 0.2], rel=0.25)
    assert np.median(estimate.stderr / WLS().solve(equations).stderr) < 1.5


def test_masked_samples_and_gaps_are_left_out() -> None:
    run = planted_run(arm())
    valid = run.valid.copy()
    valid[500:600, 1] = False
    valid[800, 2] = False
    effort = np.where(valid, run.effort, np.nan)
    segment = (np.arange(len(effort)) > 700).astype(np.int64)
    equations = build_equations(arm(), replace(run, valid=valid, effort=effort, segment=segment))
    estimate = Momentum().solve(equations)
    assert estimate.values == pytest.approx(truth(equations), abs=1e-6)
    assert estimate.samples[1] < estimate.samples[2] < estimate.samples[0]


class Nonlinear(RotorInertia):
    """A torque with the square of the acceleration."""

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return ddq * ddq


def test_open_and_unsupported_data() -> None:
    estimate = Momentum().solve(still(arm(), [0], noise=0.1))
    assert estimate.undetermined.any()
    assert np.all(np.isinf(estimate.stderr[estimate.undetermined]))
    at_rest = Momentum().solve(still(arm(), [0, 1, 2], noise=0.1))
    assert at_rest.undetermined.sum() >= len(at_rest.names) - 3  # the offset of the vertical axis is all that shows
    with pytest.raises(IdentifiabilityError, match="all torques are zero"):
        Momentum().solve(silent(arm()))
    with pytest.raises(IdentifiabilityError):
        Momentum(interval_s=10.0).solve(equations_of(arm()))
    with pytest.raises(ArgumentError):
        Momentum(interval_s=float("nan"))
    with pytest.raises(ArgumentError, match="no momentum"):
        Momentum().solve(equations_of(zoo.ddarm().with_terms(Nonlinear())))
