"""Logs of which neither the control law nor the commanded motion is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.estimators.closed_loop.added_loops import SplinedMotion
from support.closed_loops import scene

CHOSEN = scene("puma560", friction_speed=None)


def quiet(seed: int) -> dynid.estimators.Samples:
    """Of a robot that a PD law moved, which is not told."""
    run = CHOSEN.noisy(seed, position=1e-5)
    return dynid.estimators.build_equations(CHOSEN.prior, replace(run, loop=None), base=CHOSEN.base)


def error(equations: dynid.estimators.Samples, estimate: dynid.Estimate) -> float:
    """Of the torques along the true motion, relative to their spread."""
    motion = scene("puma560").clean()
    fitted, true = (equations.torque(values, motion) for values in (estimate.values, CHOSEN.values))
    return float(np.sqrt(np.mean(((fitted - true) / true.std(axis=0)) ** 2)))


def test_an_assumed_loop_is_better_than_least_squares_where_positions_are_good() -> None:
    equations = quiet(0)
    plain = error(equations, dynid.WLS().solve(equations))
    for estimator in (dynid.estimators.InstrumentalVariables(), dynid.estimators.DIDIM()):
        found = estimator.solve(equations)
        assert error(equations, found) < 0.3 * plain
        assert np.mean(np.abs(found.values - CHOSEN.values) < 1.96 * found.stderr) > 0.75
        assert any("commanded motion" in f.message for f in found.findings)
        assert any(f.code == "assumed-loop" and "8 Hz" in f.message for f in found.findings)


def test_without_the_law_torques_are_compared_along_the_measured_motion() -> None:
    equations, motion = quiet(0), CHOSEN.loop.reference
    time = np.arange(len(motion.q)) / motion.rate_hz
    commanded = (SplinedMotion([(time, motion.q)]),)
    found = dynid.estimators.DIDIM(motions=commanded).solve(equations)
    np.testing.assert_array_equal(found.values, dynid.estimators.DIDIM().solve(equations).values)
    assert any(f.code == "assumed-loop" and "does not help" in f.message for f in found.findings)


def test_a_commanded_motion_of_another_sign_is_refused() -> None:
    motion = CHOSEN.loop.reference
    wrong = SplinedMotion([(np.arange(len(motion.q)) / motion.rate_hz, motion.q * [1, 1, -1, 1, 1, 1])])
    with pytest.raises(dynid.errors.ArgumentError, match="commanded positions of 'joint3' are"):
        dynid.estimators.InstrumentalVariables(motions=(wrong,)).solve(quiet(0))
