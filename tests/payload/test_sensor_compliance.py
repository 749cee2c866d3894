"""A load that swings on a compliant sensor ([Atkeson1986] Fig. 9), against an integrated spring, mass and damper."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.ndimage import gaussian_filter1d

import dynid
from dynid.compiled import wrench_regressor
from dynid.errors import DataError, EstimationError
from dynid.payload import sensor_search
from dynid.payload.load import Load
from dynid.payload.sensing import Sensing
from dynid.payload.sensor_search import Swinging, find_compliance, resonances
from dynid.payload.wrench_equations import WrenchData
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


def test_channels_that_yield_clearly_swing_each_at_its_own_frequency() -> None:
    body = Inertia.from_com(2.0, np.zeros(3), np.diag([0.008, 0.03, 0.07]))
    k, damping_s = np.array([1e-5, 2e-5, 5e-6, 1e-3, 2e-3, 3e-3]), 1e-4 * np.arange(1.0, 7.0)
    numbers = {"compliance": k, "compliance_stderr": k / [4.9, 5.1, 9.0, 9.0, 9.0, 9.0], "damping_s": damping_s}
    omega = (1.0 / np.sqrt(np.diag(spatial_mass(body)) * k))[1:]
    order = np.argsort(omega)
    expected = (omega / (2.0 * np.pi), omega * damping_s[1:] / 2.0)
    for found, own in zip(resonances(numbers, body.vector), expected, strict=True):
        np.testing.assert_allclose(found, own[order])


@pytest.mark.parametrize(("hz", "passes"), [(1.0, [1.5, 20.0]), (10.0, [1.5, None]), (500.0, [1.5]), (0.0, [1.5])])
def test_the_wrench_is_smoothed_as_much_as_the_highest_resonance_allows(
    monkeypatch: pytest.MonkeyPatch, hz: float, passes: list[float | None]
) -> None:
    """Three times above the highest resonance the power is halved."""
    time, widths = np.arange(4000) / RATE_HZ, []

    def one_pass(_: Any, __: Any, width: float) -> tuple[dict[str, Floats], Any]:
        widths.append(width)
        found = {"compliance": np.ones(6), "compliance_stderr": np.zeros(6) if hz else np.ones(6)}
        return {**found, "damping_s": np.zeros(6)}, SimpleNamespace(values=np.zeros(10))

    monkeypatch.setattr(sensor_search, "_find_compliance", one_pass)
    monkeypatch.setattr(sensor_search, "resonances", lambda *_: (np.array([0.5 * hz, hz])[: 2 * bool(hz)], None))
    find_compliance(SimpleNamespace(time=time), Sensing())  # type: ignore[arg-type]
    if passes[-1] is None:
        smoothed = gaussian_filter1d(np.sin(2.0 * np.pi * 3.0 * hz * time), widths[1])
        assert np.mean(smoothed[500:-500] ** 2) == pytest.approx(0.25, rel=1e-3)  # of a half
    else:
        assert widths == passes


def test_a_smoothed_wrench_has_the_rates_of_a_polynomial_and_the_share_of_its_noise() -> None:
    width, step, reach = 3.0, 0.01, 18
    time = step * np.arange(-1000.0, 1000.0)
    noise = np.random.default_rng(0).normal(size=(2000, 6))
    curve = np.stack([time**2 - 3.0 * time] * 6, axis=1)

    def rigid(wrench: Floats, rows: slice = slice(None)) -> Swinging:
        """A stretch of 36 samples, which is too short, and a long one."""
        data = WrenchData(matrix=np.stack([wrench] * 10, axis=2), wrench=wrench, time=time,
                          log=np.zeros(2000, dtype=np.int64), stretch=np.where(np.arange(2000) < 36, 0, 1),
                          R_frame_base=np.tile(np.eye(3), (2000, 1, 1)), gravity=np.zeros(3))  # fmt: skip
        return Swinging.rigid(data.rows(rows), width)

    plain, alone = rigid(curve), rigid(noise)
    inner = time[36 + reach : -reach]
    np.testing.assert_array_equal(plain.data.time, inner)
    smoothed = inner**2 - 3.0 * inner + (width * step) ** 2  # by the variance of the Gaussian
    found = (plain.data.wrench, plain.data.matrix[:, :, 7], plain.rate, plain.second_rate)
    for one, expected in zip(found, (smoothed, smoothed, 2.0 * inner - 3.0, 2.0 + 0.0 * inner), strict=True):
        np.testing.assert_allclose(one, np.stack([expected] * 6, axis=1), atol=5e-3)
    half = 0.5 * np.sqrt(np.mean(alone.second_rate**2, axis=0))  # the curve's second rate is then as large
    for state, share in ((plain, 0.0), (alone, 1.0), (rigid(noise + half * curve), 0.5)):
        assert np.mean(state.noise_share) == pytest.approx(share, abs=0.07)
    with pytest.raises(DataError, match="no stretch"):
        rigid(curve, slice(36))


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
