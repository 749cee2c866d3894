"""Instrumental variables in compliant loops, where the simulated motion follows the parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.estimation.closed_loop import instrument_noise as instrument_motion
from dynid.estimation.closed_loop import instrumental
from dynid.estimation.closed_loop.instrument_noise import REPEATED_SHARE, motion_slope, repeated_share
from dynid.estimation.closed_loop.instrumental import _Measured, _mix_blocks, _Round
from dynid.estimation.closed_loop.loop_runs import LoopRuns, Motions
from support.closed_loops import EVERY, Scene, scene


def compliant(bandwidth_hz: float, duration_s: float, every: int = EVERY) -> Scene:
    """The 3R arm under a soft law, logged every so many control periods."""
    stiff = scene("gautier_khalil_3r", duration_s)
    loop = replace(stiff.loop, law=dynid.loop.assumed_law(stiff.robot, bandwidth_hz), friction_speed=0.1)
    return replace(stiff, loop=loop, truth=dynid.loop.simulate_loop(stiff.robot, loop, every=every))


def test_the_slope_through_the_motion_is_that_of_simulations() -> None:
    chosen = compliant(1.0, 3.0, every=1)
    equations = chosen.equations(chosen.noisy(0, cutoff_hz=None))
    runs, beta, weights = LoopRuns.of(equations), chosen.values, np.array([1.0, 2.0, 0.5])
    measured = _Measured.of(runs, 200)

    def motions(values: np.ndarray) -> Motions:
        """Simulated again and again: a soft loop does not forget at once where a piece started."""
        found = runs.simulate(values)
        for _ in range(4):
            found = runs.simulate(values, found)
        return found

    found = _Round.of(runs, measured, beta, motions(beta), weights)
    slope = motion_slope(runs, beta, measured.blocks, found.instruments, weights)
    assert slope is not None
    pairs = runs.runs[0].acting
    models = np.array(equations.base.columns) >= 30

    def torques(values: np.ndarray) -> np.ndarray:
        """Z' W Y beta of the terms, Y along the motion of another robot."""
        total, mixed = np.zeros(beta.size), _mix_blocks(runs, measured, motions(values))
        for k, block in enumerate(measured.blocks):
            Y = mixed[k][0]
            Z = pairs.whole(found.instruments(k)[block.inner], weights)
            total += np.einsum("tjb,tj->b", Z, pairs.times(Y, np.where(models, beta, 0.0)))
        return total

    for k in range(0, beta.size, 3):
        step = np.zeros(beta.size)
        step[k] = 1e-3
        seen = (torques(beta + step) - torques(beta - step)) / 2e-3
        np.testing.assert_allclose(slope[:, k], seen, atol=0.01 * np.abs(seen).max())


def test_what_follows_is_told_from_what_does_not() -> None:
    slope = np.diag([1.0, 4.0])
    assert repeated_share(np.array([1.0, 0.0]), np.array([0.0, 0.25]), slope) == 0.5
    assert repeated_share(np.array([1.0, 1.0]), np.array([0.1, 0.1]), slope) < REPEATED_SHARE


def test_long_logs_say_that_it_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instrumental, "REPEATED_SHARE", 0.0)
    chosen = compliant(3.0, 5.0)
    equations = chosen.equations(chosen.noisy(0))
    counted = dynid.estimation.InstrumentalVariables().solve(equations)
    monkeypatch.setattr(instrument_motion, "LARGEST", 1000)
    plain = dynid.estimation.InstrumentalVariables().solve(equations)
    assert "motion-not-counted" not in counted.codes
    assert "motion-not-counted" in plain.codes
    assert np.abs((counted.values - plain.values) / counted.stderr).max() < 0.3
    np.testing.assert_allclose(counted.stderr, plain.stderr, rtol=0.5)
