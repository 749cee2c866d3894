"""Estimators compared on simulated loops: a tiny case with known truth."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.estimators import FRICTION_SPEED, Condition, Question, compare, make_trial, run_method
from dynid.compiled import inverse_dynamics


def test_without_noise_a_trial_obeys_the_model_and_the_same_rows_count() -> None:
    question = Question("gautier_khalil_3r", ())
    trial = make_trial(question, Condition(noise=0.0, torque_noise=0.0, start_error=0.0), 0, seconds=3.0)
    other = trial.other
    counts = np.abs(other.dq) > FRICTION_SPEED
    expected = inverse_dynamics(trial.robot, other.q, other.dq, other.ddq)
    assert np.where(counts, other.torque - expected, 0.0) == pytest.approx(np.zeros_like(expected), abs=1e-9)
    assert trial.torque_error(trial.truth) < 1e-10
    assert trial.torque_error(1.1 * trial.truth) == pytest.approx(10.0, rel=1e-6)
    assert trial.raw.valid.sum() == trial.filtered.valid.sum()


def test_noise_spoils_least_squares_and_not_filtered_or_simulated_motion() -> None:
    question = Question("gautier_khalil_3r", [Condition(noise=1e-3)], ("ols", "wls+f", "didim"))
    trial = make_trial(question, question.conditions[0], 0, seconds=6.0)
    errors = {name: run_method(name, trial)[0] for name in question.methods}
    assert errors["ols"] > 5.0 * max(errors["wls+f"], errors["didim"])
    assert "didim" in compare(question, runs=1, seconds=3.0).to_text()
