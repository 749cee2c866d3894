"""Compliant loops, where the simulated motion follows the parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from support.closed_loops import EVERY, Scene, scene


def compliant(bandwidth_hz: float, duration_s: float = 10.0) -> Scene:
    """The 3R arm under a soft law."""
    stiff = scene("gautier_khalil_3r", duration_s)
    loop = replace(stiff.loop, law=dynid.loop.assumed_law(stiff.robot, bandwidth_hz), friction_speed=0.1)
    return replace(stiff, loop=loop, truth=dynid.loop.simulate_loop(stiff.robot, loop, every=EVERY))


@pytest.mark.parametrize("make", [dynid.estimation.InstrumentalVariables, dynid.estimation.DIDIM], ids=["iv", "didim"])
def test_intervals_count_the_motion(make: type[dynid.estimation.Estimator]) -> None:
    chosen = compliant(1.0)
    away = []
    for seed in range(3):
        found = make().solve(chosen.equations(chosen.noisy(seed)))
        away.append((found.values - chosen.values) / found.stderr)
    assert np.mean(np.abs(away) < 1.96) > 0.85
    assert np.abs(away).max() < 6.0
