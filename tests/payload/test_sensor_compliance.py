"""A load that swings on a compliant sensor ([Atkeson1986] Fig. 9), against an integrated spring, mass and damper."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

import dynid
from dynid.compiled import wrench_regressor
from dynid.errors import EstimationError
from dynid.payload.load import Load
from dynid.payload.sensing import Sensing
from dynid.payload.wrist import identify_load
from dynid.processing.experiment import Experiment
from dynid.processing.simulation import sum_of_sines
from dynid.robot.inertia import Inertia
from dynid.spatial import skew
from support.exact_runs import exact_run

Floats = NDArray[np.float64]
ARM, LINK, RATE_HZ = dynid.robots.puma560(), "link6", 1000.0
BODY = Inertia.from_com(1.2, [0.0, 0.01, 0.05], np.diag([0.0244, 0.0007, 0.0242]))
"""The bar of [Atkeson1986] Table 2."""
STIFFNESS = np.array([5e4, 5e4, 8e4, 600.0, 600.0, 400.0])
"""[N/m, N m/rad]; the load's lowest resonance is then near 20 Hz."""
DAMPING_S = 3e-5
"""Damping over stiffness [s]: the undamped record of Fig. 9."""
TAP = np.array([0.02, 0.03, 0.01, 0.4, 0.5, 0.3])
"""Velocity of the load after a tap [m/s, rad/s]."""


def spatial_mass(body: Inertia) -> Floats:
    """(6, 6) momentum about the frame's origin per velocity of that origin and angular velocity, by definition."""
    h = skew(body.first_moment)
    return np.block([[body.mass * np.eye(3), -h], [h, body.about_origin]])


@cache
def swinging() -> tuple[Experiment, Floats]:
    """Four seconds of motion; the strain of the springs is measured, and the wrench of a rigid sensor is known."""
    time = np.arange(0.0, 4.0, 1.0 / RATE_HZ)
    q, dq, ddq = sum_of_sines(ARM.dof, period_s=4.0, amplitude=1.0, seed=3)(time)
    rigid = wrench_regressor(ARM, LINK, q, dq, ddq) @ BODY.vector
    wanted, inverse = CubicSpline(time, rigid), np.linalg.inv(spatial_mass(BODY))

    def rate(t: float, y: Floats) -> Floats:
        on_load = -STIFFNESS * (y[:6] + DAMPING_S * y[6:])
        return np.concatenate([y[6:], inverse @ (on_load - wanted(t))])

    start = np.concatenate([-rigid[0] / STIFFNESS, TAP])
    found = solve_ivp(rate, (0.0, time[-1]), start, t_eval=time, rtol=1e-7, atol=1e-10, max_step=1.0 / RATE_HZ)
    strain = -(STIFFNESS * found.y[:6].T)
    return exact_run(time, (q, dq, ddq), wrench=strain), rigid


def with_noise(wrench: Floats, size: float, seed: int = 0) -> Experiment:
    noise = np.random.default_rng(seed).normal(size=wrench.shape) * np.repeat([size, 0.1 * size], 3)
    return replace(swinging()[0], wrench=wrench + noise)


def identify(run: Experiment) -> Load:
    return identify_load(ARM, run, sensor_frame=LINK, sensing=Sensing(find=("compliance",)), physical=False)


@cache
def exact() -> Load:
    return identify(swinging()[0])


def test_the_load_and_the_compliance_are_found_exactly_without_noise() -> None:
    load = exact()
    np.testing.assert_allclose(load.vector, BODY.vector, atol=2e-6)
    np.testing.assert_allclose(load.extras["compliance"] * STIFFNESS, 1.0, atol=1e-4)
    np.testing.assert_allclose(load.extras["damping_s"], DAMPING_S, rtol=1e-3)


def test_the_resonance_is_that_of_the_spring_and_mass() -> None:
    squares = np.linalg.eigvals(np.linalg.solve(spatial_mass(BODY), np.diag(STIFFNESS))).real
    expected = np.sort(np.sqrt(squares)) / (2.0 * np.pi)
    finding = next(finding for finding in exact().findings if finding.code == "sensor-yields")
    assert finding.evidence["frequency [Hz]"] == pytest.approx(expected[0], rel=1e-3)
    assert finding.evidence["damping ratio"] == pytest.approx(0.5 * DAMPING_S * 2 * np.pi * expected[0], rel=1e-2)


@pytest.mark.parametrize("size", [0.02, 0.1])
def test_intervals_of_the_compliance_hold_the_truth_although_noise_draws_it_to_zero(size: float) -> None:
    load = identify(with_noise(swinging()[0].wrench, size))
    error = np.abs(load.extras["compliance"] - 1.0 / STIFFNESS)
    np.testing.assert_array_less(error, 3.0 * load.extras["compliance_stderr"])


def test_a_rigid_sensor_has_no_resonance() -> None:
    load = identify(with_noise(swinging()[1], 0.05, seed=1))
    assert not [finding for finding in load.findings if finding.code == "sensor-yields"]
    np.testing.assert_array_less(np.abs(load.vector - BODY.vector), 4.0 * load.stderr)


def test_a_search_that_fails_says_that_the_sensor_may_be_rigid_and_what_to_leave_out() -> None:
    time = np.arange(0.0, 10.0, 0.01)
    q, dq, ddq = sum_of_sines(ARM.dof, period_s=10.0, amplitude=0.3, seed=3)(time)
    noise = np.random.default_rng(0).normal(size=(len(time), 6)) * np.repeat([1.0, 0.1], 3)
    wrench = wrench_regressor(ARM, LINK, q, dq, ddq) @ BODY.vector + noise
    run = exact_run(time, (q, dq, ddq), wrench=wrench)
    with pytest.raises(EstimationError, match="the sensor may be rigid") as refused:
        identify(run)
    assert "Leave compliance out" in (refused.value.remedy or "")
    assert identify_load(ARM, run, sensor_frame=LINK, physical=False).mass == pytest.approx(BODY.mass, abs=0.05)
