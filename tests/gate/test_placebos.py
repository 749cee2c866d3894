"""Errors that are correlated in time for long: many a smooth column explains them, so that none accuses anything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.gate import causes, within_log
from dynid.gate.quality import check_recording
from dynid.logs.recording import Recording
from dynid.processing.simulation import sum_of_sines

CORRELATION = 0.98
"""Correlation of the noise of torques from one sample to the next, 10 ms later."""


def correlated_log(seed: int) -> Recording:
    """A faultless log of 12 s."""
    robot = dynid.robots.ur10().with_terms(
        dynid.RotorInertia(0.3), dynid.Viscous(8.0), dynid.Coulomb(6.0), dynid.Offset()
    )
    motion, noise = sum_of_sines(robot.dof, seed=seed), dynid.Noise(position=2e-5)
    log = dynid.simulate_experiment(robot, motion, rate_hz=100, duration_s=12.0, noise=noise, seed=seed)
    assert log.effort is not None
    white = np.random.default_rng(seed + 1).normal(size=log.effort.shape)
    slow = np.zeros_like(white)
    for row in range(1, len(white)):
        slow[row] = CORRELATION * slow[row - 1] + np.sqrt(1.0 - CORRELATION**2) * white[row]
    return replace(log, effort=log.effort + 0.8 * slow)


@pytest.mark.parametrize(("seed", "code"), [(0, "other-robot"), (53, "late-joint")])
def test_what_columns_of_wrong_times_explain_as_well_is_no_warning(seed, code, monkeypatch):
    log, robot = correlated_log(seed), dynid.robots.ur10()
    warned = {finding.code for finding in check_recording(log, robot).findings if finding.severity != "note"}
    assert code not in warned
    monkeypatch.setattr(causes, "BEYOND_PLACEBOS", 0.0)
    monkeypatch.setattr(within_log, "OTHER_PLACEBOS", 0.0)
    before = {finding.code for finding in check_recording(log, robot).findings if finding.severity != "note"}
    assert code in before


def test_placebos_are_the_columns_of_wrong_times():
    """A fit of one joint: the same values in another order, never in their own."""
    rows = np.random.default_rng(0).normal(size=(40, 2))
    fit = within_log.ProfiledFit(
        np.zeros((40, 0)), rows[:, 0], np.zeros((40, 1)), np.ones(1), [0], np.zeros(0), np.ones(40), None
    )
    for moved in fit.placebos(rows):
        assert not np.array_equal(moved, rows)
        np.testing.assert_array_equal(np.sort(moved, axis=0), np.sort(rows, axis=0))
    assert fit.explained_by(rows[:, :1]) == pytest.approx(float(rows[:, 0] @ rows[:, 0]))
