"""A wandering zero of the force sensor is found, whatever the load and the sensor's pose; a steady one is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.gate.quality import check_recording
from dynid.gate.wrench_checks import check_drift
from dynid.logs.recording import Recording
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.spatial import rotation_about

ROBOT = dynid.robots.puma560()


def log(seed: int) -> Recording:
    """A wrist sensor, turned and shifted, that holds a random load."""
    rng = np.random.default_rng(seed)
    path = sum_of_sines(6, period_s=6.0, amplitude=0.7, seed=seed)
    noise = Noise(position=1e-5, effort=0.2)
    recording = simulate_experiment(ROBOT, path, rate_hz=250.0, duration_s=15.0, noise=noise, seed=seed)
    load = dynid.Inertia.from_com(rng.uniform(0.5, 3.0), rng.uniform(-0.1, 0.1, size=3), 0.01 * np.eye(3))
    states = [np.ascontiguousarray(x) for x in path(np.asarray(recording.time))]
    wrench = dynid.kernels.wrench_regressor(ROBOT, ROBOT.moving_joints[-1].child, *states) @ load.vector
    R = rotation_about(np.array([0.6, 0.0, 0.8]), rng.uniform(0.0, 3.0))
    force = wrench[:, :3] @ R.T
    moment = (wrench[:, 3:] + np.cross(wrench[:, :3], rng.uniform(-0.1, 0.1, size=3))) @ R.T
    scatter = rng.normal(size=wrench.shape) * np.repeat([0.3, 0.03], 3)
    bias = np.array([3.0, -2.0, 8.0, 0.2, 0.1, 0.0])
    return replace(recording, wrench=np.hstack([force, moment]) + bias + scatter)


@pytest.mark.parametrize("seed", range(4))
def test_only_the_channel_that_drifts_is_named(seed: int) -> None:
    steady = log(seed)
    assert not list(check_drift(ROBOT, process(steady)))
    assert steady.wrench is not None
    wrench = steady.wrench.copy()
    wrench[:, 2] += np.linspace(0.0, 3.0, len(wrench))
    experiment = process(replace(steady, wrench=wrench))
    findings = list(check_drift(ROBOT, experiment))
    assert [finding.joint for finding in findings] == ["fz"]
    planted = 3.0 * (experiment.time[-1] - experiment.time[0]) / steady.duration  # its ends are trimmed
    assert findings[0].evidence["drift [N or N m]"] == pytest.approx(planted, abs=0.1)


def test_the_gate_reports_it() -> None:
    steady = log(9)
    assert steady.wrench is not None
    wrench = steady.wrench + np.linspace(0.0, 2.0, len(steady.wrench))[:, None] * [0, 0, 0, 0, 0, 1.0]
    report = check_recording(replace(steady, wrench=wrench), ROBOT)
    assert [finding.joint for finding in report.about("drift")] == ["mz"]
