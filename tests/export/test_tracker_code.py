"""The load tracker in C: equal to Python, with and without forgetting, and with the same jumps of the load."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.errors import ExportError
from dynid.export.c.c_check import FLAGS, find_compiler
from dynid.monitor.load_tracker import LoadTracker
from dynid.processing.simulation import sum_of_sines
from support.c_drivers import run_tracker

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")
RATE = 100.0
NOISE = np.array([0.3, 0.2, 0.1])


def arm() -> dynid.Robot:
    return dynid.robots.gautier_khalil_3r().with_terms(dynid.Viscous(0.4), dynid.Coulomb(0.6))


def samples(gripped: slice = slice(0, 0)) -> np.ndarray:
    motion = sum_of_sines(3, period_s=4.0, seed=2)(np.arange(300) / RATE)
    torque = dynid.inverse_dynamics(arm(), *motion) + NOISE * np.random.default_rng(0).normal(size=motion[0].shape)
    load = dynid.Inertia.from_com(2.0, [0.1, 0.0, 0.0], 1e-3 * np.eye(3))
    holding = arm().with_body("load", parent=arm().bodies[-1].joint.child, inertia=load)
    torque[gripped] += (dynid.inverse_dynamics(holding, *motion) - dynid.inverse_dynamics(arm(), *motion))[gripped]
    return np.hstack([*motion, torque])


@pytest.mark.parametrize(("memories", "gripped"), [((0.0, 0.0), slice(0, 0)), ((2.0, 20.0), slice(100, 200))])
def test_c_and_python_agree(memories: tuple[float, float], gripped: slice) -> None:
    rows = samples(gripped)
    infinite = [memory or np.inf for memory in memories]
    tracker = LoadTracker(
        arm(), noise_std=NOISE, rate_hz=RATE, load_memory_s=infinite[0], friction_memory_s=infinite[1]
    )
    jumped = []
    for k, row in enumerate(rows):
        before = tracker.jumps
        tracker.update(*row.reshape(4, 3))
        jumped += [k] * (tracker.jumps - before)
    flags = [*FLAGS, "-fsanitize=address,undefined"] if memories[0] else FLAGS
    values, variances, jumps = run_tracker(arm(), rows, NOISE, RATE, memories_s=memories, flags=flags)
    now = tracker.now()
    np.testing.assert_allclose(values[:10], now.parameters, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(values[10:], now.friction.ravel(), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(variances[:10], now.stderr**2, rtol=1e-8)
    assert jumps == jumped
    grips = [] if not memories[0] else [100, 200]  # gripped after a second, dropped after two
    assert len(jumps) == len(grips)
    assert all(0 <= jump - grip <= 30 for jump, grip in zip(jumps, grips, strict=True))


@pytest.mark.parametrize("broken", [np.nan, np.inf, 1e13])
def test_a_broken_sample_changes_nothing(broken: float) -> None:
    rows = samples()
    spoilt = np.insert(rows, [50, 120, 121, 200], rows[:4], axis=0)
    for at, column in zip((50, 121, 123, 203), (0, 4, 7, 11), strict=True):  # q, dq, ddq, torque
        spoilt[at, column] = broken
    whole, left = (run_tracker(arm(), given, NOISE, RATE) for given in (rows, spoilt))
    np.testing.assert_array_equal(left[0], whole[0])
    np.testing.assert_array_equal(left[1], whole[1])
    assert left[2] == []


@pytest.mark.parametrize(
    ("noise", "rate", "memory"),
    [(0.0, RATE, 0.0), (np.nan, RATE, 0.0), (0.1, 0.0, 0.0), (0.1, np.nan, 0.0), (0.1, RATE, -1.0)],
)
def test_unusable_arguments_are_refused(noise: float, rate: float, memory: float) -> None:
    with pytest.raises(ExportError):
        run_tracker(arm(), samples(), np.full(3, noise), rate, memories_s=(memory, 0.0))
