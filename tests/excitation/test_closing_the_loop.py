"""Predicted standard deviations against errors observed on planted truth."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.excitation.design import design_excitation
from dynid.excitation.design_settings import DesignGoal, SearchSettings
from dynid.excitation.measured import JointTorques
from dynid.kernels import regressor
from dynid.parameters.base import base_parameters
from dynid.robot.model import Robot


def observed_errors(plan, robot: Robot, noise: np.ndarray, runs: int, rate_hz: float = 100.0) -> np.ndarray:
    """Errors (runs, b) of weighted least squares on torques with planted noise."""
    base = base_parameters(robot)
    start, end = plan.trajectory.recorded
    t = start + np.arange(round((end - start) * rate_hz)) / rate_hz
    Y = regressor(robot, *plan.trajectory.evaluate(t), columns=base.columns)
    W = (Y / noise[None, :, None]).reshape(-1, base.rank)
    pseudo_inverse = np.linalg.pinv(W)
    white = np.random.default_rng(0).normal(size=(runs, len(W)))
    return white @ pseudo_inverse.T


def test_errors_have_the_predicted_size(robot: Robot) -> None:
    noise = np.linspace(0.3, 1.0, robot.dof)
    plan = design_excitation(
        robot,
        goal=DesignGoal(observation=JointTorques.of(robot, noise=noise)),
        settings=SearchSettings(starts=1, iterations=20, outer=3),
    )
    errors = observed_errors(plan, robot, noise, runs=200)
    ratio = errors.std(axis=0) / plan.predicted_deviation
    assert np.all(np.abs(ratio - 1) < 0.2)
    assert ratio.mean() == pytest.approx(1.0, abs=0.03)
