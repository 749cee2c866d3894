"""Short logs: what a search for loads gains by luck is no change of the load, and limits alone tell no unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

import dynid
from dynid.gate.profiled_fit import ProfiledFit
from dynid.logs.recording import Recording
from dynid.processing.simulation import sum_of_sines
from dynid.robot.model import Robot

SLIDE = """<robot name="slide"><link name="base"/><link name="car"><inertial><mass value="5"/>
<origin xyz="0.01 0 0.02"/>
<inertia ixx="0.05" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="x" type="KIND"><parent link="base"/><child link="car"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="500" velocity="9"/></joint></robot>"""


def read(tmp_path, kind: str) -> Robot:
    path = tmp_path / "slide.urdf"
    path.write_text(SLIDE.replace("KIND", kind))
    return dynid.read_urdf(path)


def record(robot: Robot, seed: int, amplitude: float = 0.4) -> Recording:
    """Eight seconds of a robot a third heavier than its model, with friction and noise."""
    heavy = robot.with_terms(dynid.RotorInertia(0.5), dynid.Viscous(3.0), dynid.Coulomb(4.0), dynid.Offset(1.0))
    theta = heavy.parameter_vector.copy()
    theta[:10] *= 1.3
    path = sum_of_sines(1, period_s=8.0, amplitude=amplitude, seed=100 + seed)
    noise = dynid.Noise(position=1e-5, effort=0.5)
    return dynid.simulate_experiment(
        heavy.with_parameters(theta), path, rate_hz=200, duration_s=8.0, noise=noise, seed=seed
    )


def test_a_clean_log_of_one_slide_shows_no_change_of_its_load(tmp_path) -> None:
    """Before luck was counted, most of these logs had a note or a warning."""
    robot = read(tmp_path, "prismatic")
    found = [dynid.check_recording(record(robot, seed), robot).codes for seed in range(8)]
    assert all("change" not in codes for codes in found)


def test_a_load_that_is_taken_up_is_still_named(tmp_path) -> None:
    robot = read(tmp_path, "prismatic")
    log = record(robot, 1)
    motion = dynid.process(log, cutoff_hz=5.0)
    held = motion.time > 4.0
    torque = 3.0 * (motion.ddq[:, 0] + 9.81) * held  # 3 kg
    heavier = np.interp(log.time, motion.time, torque)[:, None]
    assert "change" in dynid.check_recording(replace(log, effort=log.effort + heavier), robot).codes


@pytest.mark.parametrize(("share", "expected"), [(1.0, 4000.0), (0.1, 400.0)])
def test_a_residual_has_as_many_independent_values_as_its_band_holds(share: float, expected: float) -> None:
    rng = np.random.default_rng(1)
    spectrum = np.fft.rfft(rng.normal(size=(2000, 2)), axis=0)
    spectrum[int(share * len(spectrum)) :] = 0.0
    noise = np.fft.irfft(spectrum, 2000, axis=0)
    fit = ProfiledFit(
        basis=np.zeros((4000, 0)), residual=noise.ravel(), explained=np.zeros((2000, 2)), scale=np.ones(2),
        joints=[0, 1], theta=np.zeros(0), counted=np.ones(4000), slope=None,
    )  # fmt: skip
    assert fit.freedom == pytest.approx(expected, rel=0.1)


def test_positions_a_little_beyond_the_limits_of_a_file_are_no_unit(tmp_path) -> None:
    robot = read(tmp_path, "revolute")
    log = record(robot, 2, amplitude=1.2)
    assert np.mean(np.abs(log.q) > 1.5) > 0.05
    report = dynid.check_recording(log, robot)
    assert "beyond-limits" in report.codes
    assert "unit" not in report.codes
    degrees = dynid.check_recording(replace(log, q=np.rad2deg(log.q)), robot)
    assert any(f.code == "unit" and f.severity == "error" for f in degrees.findings)


def test_a_slow_motion_with_correlated_noise_does_not_tell_a_delay() -> None:
    """The scatter between few blocks of time is small by chance; the curvature of the costs is not."""
    robot = dynid.robots.ur10().with_terms(dynid.Viscous(5.0), dynid.Coulomb(8.0), dynid.Offset(0.5))
    for seed in range(6):
        path = sum_of_sines(6, period_s=12.0, harmonics=6, amplitude=0.8, seed=seed)
        log = dynid.simulate_experiment(robot, path, rate_hz=100, duration_s=12.0, noise=dynid.Noise(position=1e-5))
        white = np.random.default_rng(seed).normal(size=log.effort.shape)
        noise = lfilter([np.sqrt(1.0 - 0.98**2)], [1.0, -0.98], white, axis=0)
        report = dynid.check_recording(replace(log, effort=log.effort + noise), robot)
        warned = {finding.code for finding in report.findings if finding.severity != "note"}
        assert not warned & {"unsynchronised", "late-joint", "joint-spring", "wrong-gain", "change"}, seed
