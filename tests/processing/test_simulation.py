"""Simulated experiments: the planted truth comes back."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.errors import ArgumentError
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

ROBOT = dynid.robots.puma560().with_terms(RotorInertia(0.2), Viscous(2.0), Coulomb(3.0), Offset(0.4))
PATH = sum_of_sines(6, period_s=5.0, amplitude=0.7, seed=4)


def test_without_noise_the_log_is_the_truth():
    log = simulate_experiment(ROBOT, PATH, rate_hz=100.0, duration_s=2.0)
    q, dq, ddq = PATH(np.arange(201) / 100.0)
    np.testing.assert_array_equal(log.q, q)
    np.testing.assert_array_equal(log.dq, dq)
    np.testing.assert_allclose(log.effort, dynid.inverse_dynamics(ROBOT, q, dq, ddq), atol=1e-12)
    assert log.joint_names == ROBOT.joint_names


def test_seeds_repeat_and_differ():
    options = {"rate_hz": 50.0, "duration_s": 2.0, "noise": Noise(position=1e-3, effort=1.0)}
    first, again = (simulate_experiment(ROBOT, PATH, seed=5, **options) for _ in range(2))
    np.testing.assert_array_equal(first.effort, again.effort)
    assert not np.array_equal(first.effort, simulate_experiment(ROBOT, PATH, seed=6, **options).effort)


def test_quantisation_and_delay():
    log = simulate_experiment(ROBOT, PATH, rate_hz=200.0, duration_s=5.0, quantisation=1e-3, seed=1)
    np.testing.assert_allclose(log.q / 1e-3, np.round(log.q / 1e-3), atol=1e-6)
    late = simulate_experiment(ROBOT, PATH, rate_hz=200.0, duration_s=5.0, delay_s=0.01)
    prompt = simulate_experiment(ROBOT, PATH, rate_hz=200.0, duration_s=5.0)
    np.testing.assert_allclose(late.effort[2:], prompt.effort[:-2], atol=1e-9)


def test_trajectories_are_taken_too():
    coefficients = 0.2 * np.random.default_rng(0).normal(size=(7, 6))
    trajectory = FourierTrajectory(coefficients=coefficients, period_s=4.0)
    log = simulate_experiment(ROBOT, trajectory, rate_hz=100.0)
    assert log.duration == pytest.approx(trajectory.duration)
    with pytest.raises(ArgumentError, match="ends after"):
        simulate_experiment(ROBOT, trajectory, rate_hz=100.0, duration_s=50.0)
    with pytest.raises(ArgumentError, match="duration_s"):
        simulate_experiment(ROBOT, PATH, rate_hz=100.0)
    with pytest.raises(ArgumentError, match="shape"):
        simulate_experiment(ROBOT, sum_of_sines(3), rate_hz=100.0, duration_s=1.0)
