"""The load tracker in C: equal to Python, with and without forgetting."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.export.c.c_check import FLAGS, find_compiler
from dynid.export.running.tracker_code import run_tracker, tracker_files
from dynid.monitor.load_tracker import LoadTracker
from dynid.processing.simulation import sum_of_sines

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")
RATE = 100.0
NOISE = np.array([0.3, 0.2, 0.1])


def arm() -> dynid.Robot:
    return dynid.robots.gautier_khalil_3r().with_terms(dynid.Viscous(0.4), dynid.Coulomb(0.6))


def samples() -> np.ndarray:
    motion = sum_of_sines(3, period_s=4.0, seed=2)(np.arange(300) / RATE)
    torque = dynid.inverse_dynamics(arm(), *motion) * 1.1
    return np.hstack([*motion, torque])


@pytest.mark.parametrize("memories", [(0.0, 0.0), (2.0, 20.0)])
def test_c_and_python_agree(memories: tuple[float, float]) -> None:
    rows = samples()
    infinite = [memory or np.inf for memory in memories]
    tracker = LoadTracker(
        arm(), noise_std=NOISE, rate_hz=RATE, load_memory_s=infinite[0], friction_memory_s=infinite[1]
    )
    tracker._errors = type(tracker._errors)(maxlen=10**9)  # the C version looks for no jumps
    for row in rows:
        tracker.update(*row.reshape(4, 3))
    flags = [*FLAGS, "-fsanitize=address,undefined"] if memories[0] else FLAGS
    values, variances = run_tracker(arm(), rows, NOISE, RATE, memories_s=memories, flags=flags)
    now = tracker.now()
    np.testing.assert_allclose(values[:10], now.parameters, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(values[10:], now.friction.ravel(), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(variances[:10], now.stderr**2, rtol=1e-8)


def test_no_allocation() -> None:
    assert not any(word in tracker_files(arm(), "arm")["arm_tracker.c"] for word in ("malloc", "calloc", "free("))
