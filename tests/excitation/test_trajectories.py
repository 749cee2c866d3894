"""Exact properties of every trajectory family."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.errors import ArgumentError
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.excitation.trajectories.quintic import (
    QuinticTrajectory,
    minimum_jerk,
    quintic_coefficients,
    segment_peaks,
    shortest_segment,
)
from dynid.excitation.trajectories.trajectory import Trajectory

seeds = st.integers(0, 2**32 - 1)


def fourier(seed: int, dof: int = 3) -> FourierTrajectory:
    rng = np.random.default_rng(seed)
    return FourierTrajectory(
        coefficients=rng.normal(size=(1 + 2 * rng.integers(1, 6), dof)),
        period_s=rng.uniform(2, 20),
    )


def sequence(seed: int, dof: int = 3) -> QuinticTrajectory:
    rng = np.random.default_rng(seed)
    q, dq = rng.normal(size=(2, 6, dof))
    return QuinticTrajectory(q=q, dq=dq, durations=rng.uniform(0.5, 3, 5))


def at_rest(trajectory: Trajectory, tolerance: float = 1e-9) -> bool:
    _, dq, ddq = trajectory.evaluate([0.0, trajectory.duration])
    return bool(np.abs(dq).max() < tolerance and np.abs(ddq).max() < tolerance)


@given(seeds)
@settings(max_examples=8, deadline=None)
def test_derivatives_agree_with_differences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for trajectory in (fourier(seed), sequence(seed)):
        t = rng.uniform(0.01, 0.99, 40) * trajectory.duration
        h = 1e-5 * trajectory.duration
        for order in range(3):
            if order == 2 and not isinstance(trajectory, FourierTrajectory):
                continue  # the jerk of the others jumps at knots
            up, down = trajectory.derivative(t + h, order), trajectory.derivative(t - h, order)
            exact = trajectory.derivative(t, order + 1)
            scale = 1 + np.abs(exact).max()
            # a knot inside the difference costs first order
            assert np.median(np.abs((up - down) / (2 * h) - exact)) < 1e-6 * scale
            assert np.abs((up - down) / (2 * h) - exact).max() < 2e-2 * scale


@given(seeds)
@settings(max_examples=8, deadline=None)
def test_rest_to_rest(seed: int) -> None:
    series = fourier(seed)
    assert at_rest(series)
    assert np.allclose(series.evaluate([0.0, series.duration])[0], series.coefficients[0])
    start, end = series.recorded
    for first, last in zip(series.evaluate(start), series.evaluate(end), strict=True):
        assert np.allclose(first, last, atol=1e-9)


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_quintic_segments_meet_their_points_without_acceleration(seed: int) -> None:
    path = sequence(seed)
    ends = np.concatenate([[0.0], np.cumsum(path.durations)])
    q, dq, ddq = path.evaluate(np.minimum(ends, path.duration))
    assert np.allclose(q, path.q, atol=1e-9)
    assert np.allclose(dq, path.dq, atol=1e-8)
    assert np.allclose(ddq, 0.0, atol=1e-7)


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_quintic_extrema_are_exact(seed: int) -> None:
    path = sequence(seed)
    t = np.linspace(0, path.duration, 40001)
    q, dq, ddq = path.evaluate(t)
    moved = path.extremes
    low, high = moved.q.min(axis=0), moved.q.max(axis=0)
    velocity, acceleration = np.abs(moved.dq).max(axis=0), np.abs(moved.ddq).max(axis=0)
    peaks = (velocity, abs(dq).max(0)), (acceleration, abs(ddq).max(0))
    for exact, sampled in ((high, q.max(0)), (-low, -q.min(0)), *peaks):
        assert np.all(sampled <= exact + 1e-9)
        assert np.all(sampled >= exact - 1e-4 * (1 + abs(exact)))


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_shortest_segment_keeps_the_limits_and_reaches_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 4
    velocity, acceleration = rng.uniform(0.5, 2, n), rng.uniform(1, 10, n)
    q, dq = rng.uniform(-2, 2, (2, n)), rng.uniform(-1, 1, (2, n)) * velocity
    T = shortest_segment((q[0], q[1]), (dq[0], dq[1]), velocity, acceleration)
    speeds, rates = segment_peaks(quintic_coefficients(q[0], q[1], dq[0], dq[1], T), T)
    assert np.all(speeds <= velocity * (1 + 1e-8))
    assert np.all(rates <= acceleration * (1 + 1e-8))
    shorter = 0.998 * T
    speeds, rates = segment_peaks(quintic_coefficients(q[0], q[1], dq[0], dq[1], shorter), shorter)
    assert np.any(speeds > velocity) or np.any(rates > acceleration) or T <= 1e-3


def test_minimum_jerk_is_the_shortest_within_limits() -> None:
    move = minimum_jerk([0.0, 1.0], [1.0, -1.0], velocity=1.5, acceleration=[4.0, 8.0])
    velocity, acceleration = np.abs(move.extremes.dq).max(axis=0), np.abs(move.extremes.ddq).max(axis=0)
    assert max(np.max(velocity / 1.5), np.max(acceleration / [4.0, 8.0])) == pytest.approx(1.0)
    assert at_rest(move)
    s = np.linspace(0, 1, 11)
    assert np.allclose(move.evaluate(s * move.duration)[0][:, 0], 10 * s**3 - 15 * s**4 + 6 * s**5)


def test_a_joint_that_rests_in_a_segment_has_its_position_as_range() -> None:
    motion = QuinticTrajectory.through([[0.3, 0.0], [0.3, 1.0]], np.zeros((2, 2)), velocity=1.0, acceleration=2.0)
    np.testing.assert_allclose(
        [motion.extremes.q.min(axis=0), motion.extremes.q.max(axis=0)], [[0.3, 0.0], [0.3, 1.0]], atol=1e-12
    )


def test_times_outside_are_refused() -> None:
    series = fourier(1)
    with pytest.raises(ArgumentError, match="outside"):
        series.evaluate(series.duration + 1.0)
    q, dq, ddq = series.evaluate(0.5 * series.duration)
    assert q.shape == dq.shape == ddq.shape == (3,)
