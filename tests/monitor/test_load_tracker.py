"""The load tracker against all samples at once, and with a gripped load."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.errors import ArgumentError, DataError
from dynid.monitor.load_tracker import FRICTION, LOAD, PRIOR, LoadTracker
from dynid.processing.simulation import sum_of_sines

RATE = 100.0
NOISE = 0.3
BODY = dynid.Inertia.from_com(1.0, [0.02, -0.03, 0.06], 1e-3 * np.eye(3))


def arm() -> dynid.Robot:
    return dynid.robots.ur10().with_terms(dynid.Viscous(2.0), dynid.Coulomb(3.0))


def holding() -> dynid.Robot:
    return arm().with_body("load", parent=arm().bodies[-1].joint.child, inertia=BODY)


def samples(robot: dynid.Robot, seconds: float, seed: int = 0):
    time = np.arange(round(seconds * RATE)) / RATE
    q, dq, ddq = sum_of_sines(6, period_s=6.0, amplitude=0.6, seed=3)(time)
    torque = dynid.inverse_dynamics(robot, q, dq, ddq)
    return q, dq, ddq, torque + NOISE * np.random.default_rng(seed).normal(size=q.shape)


def rows(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """Equations of samples, or of one: ten parameters of the load, then viscous and dry friction of every joint."""
    load = dynid.regressor(arm(), q, dq, ddq)[..., 50:60]
    friction = np.eye(6)[:, :, None] * np.stack([dq, np.sign(dq)], axis=-1)[..., None, :]
    return np.concatenate([load, friction.reshape(*q.shape, 12)], axis=-1)


def test_without_forgetting_it_is_least_squares_on_all_samples() -> None:
    q, dq, ddq, torque = samples(holding(), 3.0)
    tracker = LoadTracker(arm(), noise_std=NOISE, rate_hz=RATE)
    tracker.update(q, dq, ddq, torque)
    missing = torque - dynid.inverse_dynamics(arm(), q, dq, ddq)
    prior = np.diag(1.0 / np.array([*PRIOR, *[FRICTION] * 12]))
    A = np.vstack([*rows(q, dq, ddq) / NOISE, prior])
    b = np.concatenate([missing.ravel() / NOISE, np.zeros(LOAD + 12)])
    wanted = np.linalg.lstsq(A, b, rcond=None)[0]
    found = tracker.estimate()
    np.testing.assert_allclose(found.parameters, wanted[:LOAD], atol=1e-9)
    np.testing.assert_allclose(found.friction.ravel(), wanted[LOAD:], atol=1e-9)
    np.testing.assert_allclose(found.stderr, np.sqrt(np.diag(np.linalg.inv(A.T @ A)))[:LOAD], rtol=1e-8)
    assert tracker.jumps == 0


def test_compiled_steps_are_the_plain_formulas() -> None:
    """Surprise by the covariance of the estimate; forgetting as larger standard deviations about the same estimate."""
    memory = 3.0
    tracker = LoadTracker(arm(), noise_std=NOISE, rate_hz=RATE, load_memory_s=memory, friction_memory_s=memory)
    data = samples(holding(), 2.0)
    last = [x[-1] for x in data]
    tracker.update(*data)
    before = tracker.triangle
    values = np.linalg.solve(before[:-1, :-1], before[:-1, -1])
    covariance = np.linalg.inv(before[:-1, :-1].T @ before[:-1, :-1])
    q, dq, ddq, torque = last
    Y = rows(q, dq, ddq)
    missing = torque - dynid.inverse_dynamics(arm(), q, dq, ddq)
    spread = np.diag(Y @ covariance @ Y.T) + NOISE**2
    wanted = np.mean((missing - Y @ values) ** 2 / spread)
    tracker.update(*last)
    assert tracker._errors[-1] == pytest.approx(wanted, rel=1e-9)
    grown = np.linalg.inv(covariance * np.exp(1.0 / (memory * RATE)))
    A = grown + Y.T @ Y / NOISE**2
    np.testing.assert_allclose(tracker.triangle[:-1, :-1].T @ tracker.triangle[:-1, :-1], A, rtol=1e-9, atol=1e-9)
    found = tracker.estimate()
    solution = np.linalg.solve(A, grown @ values + Y.T @ missing / NOISE**2)
    np.testing.assert_allclose([*found.parameters, *found.friction.ravel()], solution, atol=1e-9)


def test_a_gripped_kilogram_is_found_within_two_seconds_with_intervals_that_cover() -> None:
    inside, errors = 0, []
    for seed in range(4):
        tracker = LoadTracker(arm(), noise_std=NOISE, rate_hz=RATE, load_memory_s=60.0, friction_memory_s=60.0)
        tracker.update(*samples(arm(), 3.0, seed))
        assert tracker.jumps == 0
        low, high = tracker.estimate().mass_interval
        inside += low < 0.0 < high
        tracker.update(*samples(holding(), 2.0, seed + 10))
        assert tracker.jumps == 1
        low, high = tracker.estimate().mass_interval
        inside += low < 1.0 < high
        errors.append(abs(tracker.estimate().mass - 1.0))
    assert inside >= 6  # of eight 95 % intervals
    assert max(errors) < 0.15


@pytest.mark.parametrize(
    "torque", [5.0, [5.0], [1.0, 2.0], np.zeros((6, 1)), None, "x", np.full(6, 1e300), np.full(6, np.nan)]
)
def test_a_sample_that_no_robot_has_is_refused_and_leaves_no_trace(torque) -> None:
    tracker = LoadTracker(arm(), noise_std=NOISE, rate_hz=RATE)
    before = tracker.triangle
    with pytest.raises((ArgumentError, DataError), match="tau"):
        tracker.update(np.zeros(6), np.zeros(6), np.zeros(6), torque)
    assert np.array_equal(before, tracker.triangle)
