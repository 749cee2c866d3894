"""Gears, currents and the calibration of torque constants."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.errors import DataError
from dynid.load.drive_gains import identify_drive_gains
from dynid.logs.drives import CurrentGains, ThreePhase
from dynid.logs.recording import Recording
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.terms.friction import Coulomb, Viscous


def test_three_phases_make_the_torque_of_equation_22():
    angle = np.linspace(0.0, 6.0, 50)
    phases = np.sin(angle[:, None] + np.deg2rad([0.0, 120.0, 240.0]))
    np.testing.assert_allclose(ThreePhase(2.0).torque(4.0 * phases, angle), 2.0 * 4.0 * 1.5, atol=1e-12)


def test_currents_become_torques():
    recording = Recording(time=np.arange(3.0), q=np.zeros((3, 2)), current=np.ones((3, 2)))
    converted = CurrentGains(np.array([2.0, 3.0])).apply(recording)
    np.testing.assert_array_equal(converted.effort, [[2.0, 3.0]] * 3)
    assert "torques from currents" in converted.notes[-1]
    with pytest.raises(DataError, match="no currents"):
        CurrentGains(np.array([1.0, 1.0])).apply(Recording(time=np.arange(3.0), q=np.zeros((3, 2))))


def test_a_loaded_and_an_unloaded_run_calibrate_without_knowing_the_robot():
    friction = dynid.robots.ur10().with_terms(Viscous(5.0), Coulomb(8.0))
    load = dynid.Inertia.from_com(6.0, (0.0, 0.05, 0.1), 0.02 * np.eye(3))
    link = friction.moving_joints[-1].child
    path = sum_of_sines(6, period_s=5.0, amplitude=0.8, seed=1)
    options = {"rate_hz": 200.0, "duration_s": 10.0, "noise": Noise(position=1e-6, effort=0.2)}
    gains = np.array([13.6, 14.3, 11.4, 11.2, 11.8, 11.8])
    runs = [
        simulate_experiment(robot, path, seed=seed, **options)
        for seed, robot in enumerate([friction.with_body("load", parent=link, inertia=load), friction])
    ]
    loaded, unloaded = (
        process(Recording(time=run.time, q=run.q, effort=run.effort / gains), cutoff_hz=10.0) for run in runs
    )
    unknown = friction.with_parameters(0.0 * friction.parameter_vector)
    result = identify_drive_gains(unknown, loaded=loaded, unloaded=unloaded, link=link, known=load)
    np.testing.assert_allclose(result.gain[1:4], gains[1:4], rtol=0.02)
