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


def test_a_sum_of_sines_has_the_size_of_one_sine_and_its_derivatives():
    time, step, sizes = np.linspace(0.0, 4.0, 200, endpoint=False), 1e-4, np.tile([0.3, 0.9], 400)
    path = sum_of_sines(800, period_s=4.0, harmonics=3, amplitude=sizes, seed=1)
    before, (q, dq, ddq), after = (path(time + shift) for shift in (-step, 0.0, step))
    np.testing.assert_allclose((after[0] - before[0]) / (2.0 * step), dq, atol=1e-5)
    np.testing.assert_allclose((after[1] - before[1]) / (2.0 * step), ddq, atol=1e-4)
    np.testing.assert_allclose(path(time + 4.0)[0], q, atol=1e-9)
    assert np.sqrt(np.mean((q / sizes) ** 2)) == pytest.approx(np.sqrt(0.5), rel=0.05)


def test_quantisation_delay_and_noise():
    late = simulate_experiment(ROBOT, PATH, rate_hz=200.0, duration_s=5.0, delay_s=0.01)
    prompt = simulate_experiment(ROBOT, PATH, rate_hz=200.0, duration_s=5.0)
    np.testing.assert_allclose(late.effort[2:], prompt.effort[:-2], atol=1e-9)
    step = 0.001 * np.arange(6)  # of the first joint none
    log = simulate_experiment(ROBOT, PATH, rate_hz=200.0, duration_s=5.0, quantisation=step)
    rest = np.remainder(prompt.q + 0.5 * step, np.where(step, step, np.inf)) - 0.5 * step
    np.testing.assert_allclose(log.q, prompt.q - np.where(step, rest, 0.0), atol=1e-12)
    spread = {"position": 1e-3, "velocity": 0.1, "effort": np.arange(1.0, 7.0)}
    noisy, again = (
        simulate_experiment(ROBOT, PATH, rate_hz=200.0, duration_s=5.0, noise=Noise(**spread)) for _ in "12"
    )
    for name, std in zip(("q", "dq", "effort"), spread.values(), strict=True):
        np.testing.assert_array_equal(getattr(noisy, name), getattr(again, name))
        np.testing.assert_allclose((getattr(noisy, name) - getattr(prompt, name)).std(axis=0), std, rtol=0.1)


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
