"""Gains of drives from a weighed mass: intervals hold, stated gains count, and weak calibrations say so."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

import dynid
from dynid.compiled import inverse_dynamics
from dynid.logs.drives import CurrentGains
from dynid.payload.drive_gains import DriveGains, identify_drive_gains
from dynid.processing.experiment import Experiment
from dynid.processing.simulation import sum_of_sines
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from support.exact_runs import exact_run

GAINS = np.array([14.0, 13.5, 11.0, 8.0, 7.5, 7.2])
STD = 0.07
"""Relative standard deviation of the stated gains."""
LOAD = Inertia.from_com(2.0, [0.01, 0.03, 0.1], 0.002 * np.eye(3))
RUNS = 20


def arm() -> Robot:
    return dynid.robots.ur10().with_terms(dynid.Viscous(3.0), dynid.Coulomb(2.0), dynid.Offset(0.1))


def heavy() -> Robot:
    return arm().with_body("box", parent=arm().bodies[-1].joint.child, inertia=LOAD)


def run_of(robot: Robot, seed: int, noise: float = 0.05) -> Experiment:
    """Ten seconds of currents whose noise is correlated over ten samples."""
    time = np.arange(1000) / 100.0
    q, dq, ddq = sum_of_sines(6, period_s=10.0, amplitude=1.2, seed=7 + seed % 2)(time)
    torque = inverse_dynamics(robot, q, dq, ddq)
    white = np.random.default_rng(seed).normal(size=torque.shape)
    error = lfilter([np.sqrt(1.0 - 0.9**2)], [1.0, -0.9], white, axis=0) * noise * np.sqrt((torque**2).mean(axis=0))
    return exact_run(time, (q, dq, ddq), effort=(torque + error) / GAINS)


def stated_gains(seed: int) -> CurrentGains:
    value = GAINS * (1.0 + STD * np.random.default_rng(10_000 + seed).normal(size=6))
    return CurrentGains(value, stderr=STD * value)


def covered(results: list[DriveGains]) -> float:
    """Share of the known gains whose interval of 95 % holds the truth."""
    away = np.abs([found.gain - GAINS for found in results]) / [found.stderr for found in results]
    return float(np.mean(away[np.isfinite(away)] < 1.96))


def test_intervals_hold_under_correlated_noise() -> None:
    pairs = [(run_of(heavy(), 2 * k), run_of(arm(), 2 * k + 1)) for k in range(RUNS)]
    alone = [identify_drive_gains(arm(), loaded=a, unloaded=b, mass_kg=2.0) for a, b in pairs]
    assert covered(alone) >= 0.93  # 0.88 where each joint tells its noise alone
    assert {finding.code for found in alone for finding in found.findings} == {"drive-gains"}


def test_a_load_that_says_nothing_leaves_the_stated_gains_and_says_so() -> None:
    noisy = [run_of(robot, seed, noise=30.0) for seed, robot in enumerate([heavy(), arm()])]
    stated = stated_gains(0)
    found = identify_drive_gains(arm(), loaded=noisy[0], unloaded=noisy[1], mass_kg=2.0, stated=stated)
    np.testing.assert_allclose(found.gain, stated.gain, rtol=0.02)
    np.testing.assert_allclose(found.stderr, stated.stderr, rtol=0.05)
    [finding] = found.findings
    assert finding.code == "drive-gains"
    assert "--com" in finding.remedy


def test_a_given_centre_of_mass_does_not_make_a_box_a_point() -> None:
    wide = Inertia.from_com(4.0, [0.02, 0.05, 0.15], np.diag([0.1, 0.12, 0.08]))
    held = arm().with_body("box", parent=arm().bodies[-1].joint.child, inertia=wide)
    pairs = [(run_of(held, 2 * k, noise=0.01), run_of(arm(), 2 * k + 1, noise=0.01)) for k in range(RUNS)]
    found = [identify_drive_gains(arm(), loaded=a, unloaded=b, mass_kg=4.0, com=[0.02, 0.05, 0.15]) for a, b in pairs]
    assert covered(found) >= 0.9
