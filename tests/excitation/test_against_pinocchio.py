"""Torques of designs, judged by Pinocchio."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.excitation.design import design_excitation
from dynid.excitation.limits import MotionLimits
from dynid.excitation.search import SearchSettings
from dynid.robot.zoo import puma560
from support.pinocchio_oracle import pinocchio_model

pin = pytest.importorskip("pinocchio")


def test_torque_limit_is_active_and_kept() -> None:
    robot = puma560()
    limits = MotionLimits.from_robot(robot, scale=0.35, acceleration=20.0)
    limits = replace(limits, velocity=6 * limits.velocity, lower=-np.ones(6), upper=np.ones(6))
    settings = SearchSettings(starts=1, iterations=30, outer=6)
    plan = design_excitation(robot, limits, period_s=5, criterion="d-optimality", settings=settings)
    model = pinocchio_model(robot)
    data = model.createData()
    times, _ = plan.trajectory.grid(3000)
    states = zip(*plan.trajectory.evaluate(times), strict=True)
    torque = np.array([pin.rnea(model, data, q, dq, ddq) for q, dq, ddq in states])
    share = np.abs(torque).max(axis=0) / limits.torque
    assert share.max() < 1 + 1e-4
    assert share.max() > 0.98
