"""Control with a model on a simulated arm: closed forms, and the papers' statements in kind."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.compiled import inverse_dynamics
from dynid.excitation import minimum_jerk
from dynid.robot import zoo
from dynid.terms.friction import Viscous
from dynid.terms.motors import RotorInertia
from papers.control import (
    bandwidths,
    bang_coast_bang,
    computed_torque,
    open_loop,
    track,
    two_rate_errors,
    with_wrong_parameters,
)

START = np.array([0.0, -0.5, 0.3, 0.0, 0.2, 0.0])


def test_the_simulated_arm_moves_as_its_model_says() -> None:
    move = minimum_jerk(START, START + 1.0, duration_s=0.8)
    assert np.abs(track(zoo.puma560(), open_loop(zoo.puma560()), move, rate_hz=4000.0).error).max() < 2e-3


def test_errors_of_control_grow_with_those_of_the_parameters() -> None:
    robot = zoo.puma560().with_terms(RotorInertia(0.5))
    move = minimum_jerk(START, START + 1.0, duration_s=0.8)
    errors = [track(robot, computed_torque(with_wrong_parameters(robot, share)), move).rms for share in (0, 0.05, 0.2)]
    assert 10.0 * errors[0] < errors[1] < errors[2]


def test_gravity_compensation_on_line_saves_slow_open_loop_moves() -> None:
    robot, end = zoo.puma260(), START + np.array([0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0])
    model = with_wrong_parameters(robot, 0.02, seed=1)  # as good as an identification
    slow, fast = (minimum_jerk(START, end, duration_s=duration) for duration in (4.0, 0.9))
    blind, held = (track(robot, open_loop(model, online_gravity=on), slow).relative[1] for on in (False, True))
    assert held < 0.2 * blind
    assert track(robot, open_loop(model), fast).relative[1] < 0.1


def test_the_background_lags_by_its_whole_period() -> None:
    """Inertia, gravity and velocity torques of the state one sample before, with the acceleration of now."""
    robot = zoo.puma560().with_terms(RotorInertia(0.5), Viscous(2.0))
    move = minimum_jerk(START, START + 1.0, duration_s=0.5)
    q, dq, ddq = move.evaluate(np.arange(101) / 200.0)
    before = np.maximum(np.arange(101) - 1, 0)
    expected = inverse_dynamics(robot, q[before], dq[before], ddq) - inverse_dynamics(robot, q, dq, ddq)
    np.testing.assert_allclose(two_rate_errors(robot, move, 0.005, rate_hz=200.0), expected, atol=1e-9)


@pytest.mark.parametrize(("share", "harmonic"), [(0.8, 1), (0.85, 3), (0.92, 5), (0.94, 7), (0.955, 9)])
def test_full_acceleration_and_braking_have_the_spectrum_of_a_square_wave(share: float, harmonic: int) -> None:
    """There and back, the accelerations are a square wave: 8 / (pi k)^2 of its power in each odd harmonic k."""
    odd = np.arange(1, 99, 2)
    assert odd[np.searchsorted(np.cumsum(8.0 / (np.pi * odd) ** 2), share)] == harmonic
    assert bandwidths(bang_coast_bang(np.ones(6), 100.0, 20.0), share)[::2] == [1, harmonic]
