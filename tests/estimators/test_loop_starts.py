"""Logs that begin in the middle of a motion: noisy first velocities, and laws that remember what was before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import dynid
from dynid.estimators.closed_loop.added_loops import with_loop
from dynid.processing.simulation import sum_of_sines
from support.closed_loops import EVERY, scene

CHOSEN = scene("gautier_khalil_3r", friction_speed=None)
MOTION = sum_of_sines(3, amplitude=0.8, seed=0)
REMEMBERING = dynid.control_loop.PID(CHOSEN.loop.law.kp, 2.0 * np.asarray(CHOSEN.loop.law.kp), CHOSEN.loop.law.kd)  # type: ignore[attr-defined]


@cache
def truth(integral: bool) -> dynid.control_loop.simulator.LoopSimulation:
    law = REMEMBERING if integral else CHOSEN.loop.law
    return dynid.control_loop.simulate_loop(CHOSEN.robot, replace(CHOSEN.loop, law=law), every=EVERY)


def cut_log(seed: int, integral: bool, first: int = 150) -> dynid.estimators.Samples:
    """A log without its first 1.5 s, in no loop."""
    rng, run = np.random.default_rng(seed), truth(integral)
    q = run.q + 1e-3 * rng.normal(size=run.q.shape)
    effort = run.torque + 0.5 * rng.normal(size=run.q.shape)
    log = dynid.Recording(time=run.time[first:], q=q[first:], effort=effort[first:])
    return dynid.estimators.build_equations(
        CHOSEN.prior, dynid.process(log, cutoff_hz=20.0, rest=None), base=CHOSEN.base
    )


def brought(make: Callable[..., dynid.estimators.Estimator], integral: bool) -> dynid.estimators.Estimator:
    law = REMEMBERING if integral else CHOSEN.loop.law
    return make(law=law, rate_hz=500.0, motions=(MOTION,))


@pytest.mark.parametrize(
    ("make", "integral"),
    [(dynid.estimators.InstrumentalVariables, True), (dynid.estimators.DIDIM, False)],
    ids=["iv-pid", "didim-pd"],
)
def test_intervals_hold_where_a_log_begins_in_the_middle(
    make: Callable[..., dynid.estimators.Estimator], integral: bool
) -> None:
    """The robot has no offset of its torques, so that positions tell of all its parameters."""
    found = [brought(make, integral).solve(cut_log(seed, integral)) for seed in range(4)]
    away = np.array([(estimate.values - CHOSEN.values) / estimate.stderr for estimate in found])
    assert np.abs(away.mean(axis=0)).max() < 2.0  # of four: four standard deviations
    assert np.mean(np.abs(away) < 1.96) > 0.88
    assert not any("controller" in estimate.codes for estimate in found)


def test_the_memory_at_the_start_is_found_from_torques() -> None:
    run = truth(True)
    log = dynid.Recording(time=run.time[150:], q=run.q[150:], effort=run.torque[150:])
    (part,) = with_loop(dynid.process(log, cutoff_hz=None, rest=None), MOTION, law=REMEMBERING, rate_hz=500.0)
    assert part.loop is not None
    errors = MOTION(np.arange(round(part.loop.start_s * 500.0)) / 500.0)[0]
    whole = dynid.control_loop.simulate_loop(CHOSEN.robot, replace(CHOSEN.loop, law=REMEMBERING))
    wanted = (errors - whole.q[: len(errors)]).sum(axis=0) / 500.0
    np.testing.assert_allclose(part.loop.start_memory, wanted, atol=0.02 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("motions", "reason"),
    [
        ((MOTION, MOTION), "2 commanded motions for 1 logs"),
        ((lambda t: tuple(x[:, :2] for x in MOTION(t)),), "of the log's 3 joints"),
    ],
)
def test_motions_that_are_none_are_refused(motions: tuple[Callable[..., object], ...], reason: str) -> None:
    estimator = dynid.estimators.DIDIM(law=CHOSEN.loop.law, rate_hz=500.0, motions=motions)  # type: ignore[arg-type]
    with pytest.raises(dynid.errors.ArgumentError, match=reason):
        estimator.solve(cut_log(0, False))
