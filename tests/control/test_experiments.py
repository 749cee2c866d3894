"""Control that proves the model ([Izaguirre1992] section 7.2)."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.control.bang_coast_bang import BangCoastBang
from dynid.control.control_simulation import Imperfections
from dynid.control.controllers import ComputedTorque, FeedForward, OpenLoopTorque
from dynid.control.experiments import hold_still, robustness, track, tracking_table, with_wrong_parameters
from dynid.control.two_rate import bandwidths, two_rate_study
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.excitation.trajectories.quintic import minimum_jerk
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.kernels import inverse_dynamics
from dynid.robot import zoo
from dynid.terms.friction import Viscous
from dynid.terms.motors import RotorInertia

START = np.array([0.0, -0.5, 0.3, 0.0, 0.2, 0.0])


def geared_puma560():
    """With the reflected rotor inertias that Armstrong, Khatib and Burdick report."""
    robot = zoo.puma560()
    for name, inertia in zip(robot.joint_names, (1.14, 4.71, 0.827, 0.2, 0.179, 0.193), strict=True):
        robot = robot.with_terms(RotorInertia(inertia), joints=[name])
    return robot


def quarter_turn(joints, duration):
    end = START.copy()
    end[list(joints)] += np.pi / 2
    return minimum_jerk(START, end, duration_s=duration)


@pytest.mark.parametrize("flaws", [Imperfections(), Imperfections(encoder_step=2 * np.pi / 2**16, torque_noise=0.002)])
def test_computed_torque_needs_the_right_parameters(flaws):
    robot = geared_puma560()
    move = minimum_jerk(START, START + 1.0, duration_s=0.8)
    right = track(robot, ComputedTorque(robot, move), move, imperfections=flaws)
    wrong = track(robot, ComputedTorque(with_wrong_parameters(robot, 0.2), move), move, imperfections=flaws)
    assert np.linalg.norm(wrong.rms) > 10.0 * np.linalg.norm(right.rms)


def test_velocities_from_encoders_are_half_a_period_old():
    robot, flaws = geared_puma560(), Imperfections(encoder_step=2 * np.pi / 2**16, torque_noise=0.002)
    move = minimum_jerk(START, START + 1.0, duration_s=0.8)
    errors = [
        np.linalg.norm(track(robot, ComputedTorque(robot, move, velocity_age_s=age), move, imperfections=flaws).rms)
        for age in (0.0, 0.5e-3, 1e-3)
    ]
    assert errors[1] < 0.5 * min(errors[0], errors[2])
    for seed in range(6):
        wrong = ComputedTorque(with_wrong_parameters(robot, 0.2, seed), move, velocity_age_s=0.5e-3)
        assert np.linalg.norm(track(robot, wrong, move, imperfections=flaws).rms) > 10.0 * errors[1]


@pytest.mark.parametrize("joints", [(0,), (1,), (2,), (0, 1, 2)])
def test_open_loop_torque_of_a_fast_move_stays_under_ten_percent(joints):
    robot, move = zoo.puma260(), quarter_turn(joints, 0.9)  # 190 degrees per second at most
    model = with_wrong_parameters(robot, 0.02, seed=1)  # as good as an identification
    run = track(robot, OpenLoopTorque(model, move), move)
    assert (np.abs(run.error[-1, :3]) < 0.1 * np.pi / 2).all()


def test_gravity_compensation_on_line_saves_slow_open_loop_moves():
    robot, move = zoo.puma260(), quarter_turn((1,), 4.0)
    model = with_wrong_parameters(robot, 0.02, seed=1)
    blind = track(robot, OpenLoopTorque(model, move), move)
    compensated = track(robot, OpenLoopTorque(model, move, online_gravity=True), move)
    assert compensated.largest[1] < 0.2 * blind.largest[1]


def test_gravity_compensation_holds_the_arm_still():
    for robot in (zoo.puma560(), zoo.puma260()):
        assert hold_still(robot, robot, START, duration=0.5) < 1e-9
    assert hold_still(zoo.puma560(), with_wrong_parameters(zoo.puma560(), 0.2), START, duration=0.5) > 1e-2


def test_feed_forward_helps_a_pd_controller():
    robot, move = zoo.puma560(), quarter_turn((0, 1, 2), 0.8)
    gains = {"kp": [800, 800, 300, 10, 10, 4], "kd": [80, 80, 30, 0.5, 0.5, 0.02]}
    nothing = robot.with_parameters(1e-9 * robot.parameter_vector)
    runs = {
        "PD": track(robot, FeedForward(nothing, move, **gains), move),
        "PD and feed-forward": track(robot, FeedForward(robot, move, **gains), move),
    }
    assert (runs["PD and feed-forward"].rms[:3] < 0.1 * runs["PD"].rms[:3]).all()
    assert "feed-forward" in str(tracking_table(runs))


def test_error_grows_with_the_parameter_error():
    move = minimum_jerk(START, START + 1.0, duration_s=0.8)
    table = robustness(zoo.puma560(), move, (0.0, 0.05, 0.2), seeds=1)
    errors = [row[1] for row in table.rows]
    assert errors[0] < errors[1] < errors[2]


def test_two_rates_cost_little_while_the_background_is_quick():
    robot, move = zoo.puma560(), minimum_jerk(START, START + 1.2, duration_s=1.0)
    study = two_rate_study(robot, move, (0.001, 0.005, 0.02))
    share = (study.rms / study.largest_torque).max(axis=1)
    assert share[0] < share[1] < share[2]
    assert share[0] < 0.005
    assert "period" in str(study.to_table())


def test_the_background_lags_by_its_whole_period():
    """Inertia, gravity and velocity torques of the state one sample before, with the acceleration of now."""
    robot = zoo.puma560().with_terms(RotorInertia(0.5), Viscous(2.0))
    move = minimum_jerk(START, START + 1.0, duration_s=0.5)
    found = two_rate_study(robot, move, periods=(0.005,), rate_hz=200.0)
    q, dq, ddq = move.evaluate(np.arange(101) / 200.0)
    before = np.maximum(np.arange(101) - 1, 0)
    error = inverse_dynamics(robot, q[before], dq[before], ddq) - inverse_dynamics(robot, q, dq, ddq)
    np.testing.assert_allclose(found.largest[0], np.abs(error).max(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found.rms[0], np.sqrt(np.mean(error**2, axis=0)), rtol=1e-9)


def test_accelerations_need_more_bandwidth_than_positions():
    move = BangCoastBang.within(START, START + 1.5, velocity=np.full(6, 2.5), acceleration=np.full(6, 20.0))
    found = bandwidths(zoo.puma560(), move)
    assert found.ratio > 2.0
    assert found.hz["accelerations"] > found.hz["inertias"]
    assert "accelerations" in str(found)


def test_the_bandwidths_of_two_tones_are_their_frequencies():
    tones = np.zeros((21, 3))
    tones[1] = tones[10] = np.pi  # 1 rad at 0.5 Hz and 0.1 rad at 5 Hz: 1 % of the position's power, 99 % of the other
    move = FourierTrajectory(coefficients=tones, period_s=2.0, periods=10)
    found = bandwidths(zoo.gautier_khalil_3r(), move, rate_hz=200.0)
    assert found.hz["positions"] == pytest.approx(0.5, abs=0.1)  # the motion also has a start and an end
    assert found.hz["accelerations"] == pytest.approx(5.0, abs=0.1)
    assert found.ratio == pytest.approx(10.0, rel=0.2)


class HalfCosine(Trajectory):
    """From 0 to 1 rad by half a cosine: there and back it is one pure tone of 1 / (2 duration)."""

    duration, dof = 0.8, 6

    def derivative(self, t, order):
        rate = np.pi / self.duration
        value = -0.5 * rate**order * np.cos(rate * t + order * np.pi / 2) + (0.5 if order == 0 else 0.0)
        return np.repeat(value[:, None], self.dof, axis=1)


def test_one_way_of_a_cosine_is_a_pure_tone():
    found = bandwidths(zoo.puma560(), HalfCosine(), share=0.999)
    for signal in ("positions", "velocities", "accelerations"):
        assert found.hz[signal] == pytest.approx(1.0 / 1.6)


@pytest.mark.parametrize(("share", "harmonic"), [(0.8, 1), (0.85, 3), (0.92, 5), (0.94, 7), (0.955, 9)])
def test_full_acceleration_and_braking_have_the_spectrum_of_a_square_wave(share, harmonic):
    """There and back, the accelerations are a square wave: 8 / (pi k)^2 of its power in each odd harmonic k."""
    odd = np.arange(1, 99, 2)
    assert odd[np.searchsorted(np.cumsum(8.0 / (np.pi * odd) ** 2), share)] == harmonic
    move = BangCoastBang.within(START, START + 1.0, velocity=np.full(6, 100.0), acceleration=np.full(6, 20.0))
    found = bandwidths(zoo.puma560(), move, share=share)
    assert found.hz["positions"] == pytest.approx(0.5 / move.duration)
    assert found.ratio == pytest.approx(harmonic)


@pytest.mark.parametrize("duration", [0.3, 1.0, 5.0])
def test_one_smooth_move_has_the_harmonics_of_its_fourier_series(duration):
    """Cosine series of 60 s - 180 s^2 + 120 s^3, integrated numerically here: 95 % of the power up to the third."""
    s = (np.arange(20000) + 0.5) / 20000
    series = np.array([np.mean((60 * s - 180 * s**2 + 120 * s**3) * np.cos(k * np.pi * s)) for k in range(1, 40)]) ** 2
    harmonic = 1 + int(np.searchsorted(np.cumsum(series), 0.95 * series.sum()))
    found = bandwidths(zoo.puma560(), minimum_jerk(START, START + 1.0, duration_s=duration))
    assert found.hz["positions"] == pytest.approx(0.5 / duration)
    assert found.ratio == pytest.approx(harmonic)


def test_the_rms_error_over_all_joints_is_below_the_largest_of_one():
    robot = zoo.puma560()
    move = minimum_jerk(np.zeros(6), np.full(6, 0.2), duration_s=0.05)
    _, rms, largest = robustness(robot, move, shares=(0.2,), seeds=1).rows[0]
    error = track(robot, ComputedTorque(with_wrong_parameters(robot, 0.2), move), move).error
    assert rms == pytest.approx(np.sqrt(np.mean(error**2)))
    assert rms < largest == np.abs(error).max()


def test_studies_of_a_move_whose_duration_is_no_multiple_of_the_step():
    move = minimum_jerk(np.zeros(6), np.full(6, 0.5), duration_s=0.50033)
    assert bandwidths(zoo.puma560(), move).ratio > 0.5
    assert two_rate_study(zoo.puma560(), move, periods=(0.002,)).rms.shape == (1, 6)
