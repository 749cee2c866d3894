"""Without noise all estimators of noisy positions find the same robot, in the same loop."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import dynid
from support.closed_loops import Scene, scene


@cache
def setting() -> Scene:
    return scene("gautier_khalil_3r", 2.0)


@pytest.mark.parametrize(
    "estimator",
    [
        dynid.OLS(),
        dynid.estimation.TLS(),
        dynid.estimation.TLS(position_std=1e-6),
        dynid.estimation.ML(position_std=0.0),
    ],
    ids=str,
)
def test_without_noise_all_agree(estimator: dynid.estimation.Estimator) -> None:
    found = estimator.solve(setting().equations(setting().clean())).values
    assert found == pytest.approx(setting().values, rel=1e-6, abs=1e-6)


def test_so_does_the_kalman_filter_on_held_torques() -> None:
    """Every control period is a sample, so that the filter's model is the simulation's."""
    here = setting()
    full = dynid.loop.simulate_loop(here.robot, here.loop, every=1)
    run = replace(
        here.clean(),
        time=full.time,
        q=full.q,
        dq=full.dq,
        ddq=full.ddq,
        effort=full.torque,
        valid=np.abs(full.dq) > here.loop.friction_speed,
        segment=np.zeros(len(full.q), dtype=np.int64),
        rate_hz=full.rate_hz,
    )
    start = here.robot.with_parameters(1.05 * here.robot.parameter_vector)
    equations = dynid.estimation.build_equations(start, run, base=here.base)
    filtered = dynid.estimation.Kalman(position_std=1e-6, torque_std=1e-3, start_std=0.1, passes=2).solve(equations)
    assert filtered.values == pytest.approx(here.values, rel=1e-6, abs=1e-6)
