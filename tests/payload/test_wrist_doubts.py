"""Loads from a wrist sensor with little data, strange poses and settings, and zeros that move."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.payload.load import Load
from dynid.payload.load_solver import solve_minimum_norm
from dynid.payload.sensing import Sensing
from dynid.payload.sensor_faults import _fit, check_wrench
from dynid.payload.sensor_search import calibrate_sensor
from dynid.payload.wrench_equations import wrench_data
from dynid.payload.wrist import identify_load, identify_load_from_poses, is_negative
from dynid.workflows.load_run import LoadRecipe, _proposed_settings
from payload.test_wrist import BIAS, LINK, ROBOT, TRUTH, poses_of, run_of


def codes(load: Load) -> set[str]:
    return {finding.code for finding in load.findings}


def test_a_drift_and_a_zero_between_logs_are_proposed() -> None:
    drift = np.array([0.2, -0.1, 0.2, 0.01, 0.01, -0.01])
    (proposal,) = check_wrench(ROBOT, run_of(noise=0.1, bias=BIAS, drift=drift), sensor_frame=LINK)
    assert proposal.sensing == Sensing(find=("drift",))
    found = identify_load(ROBOT, run_of(noise=0.1, bias=BIAS, drift=drift), sensor_frame=LINK, sensing=proposal.sensing)
    assert abs(found.mass - TRUTH.mass) < 3.0 * found.mass_stderr < 0.01
    np.testing.assert_allclose(found.drift, drift, atol=0.02)
    logs = [run_of(noise=0.1, bias=BIAS), run_of(noise=0.1, seed=1)]
    (proposal,) = check_wrench(ROBOT, logs, sensor_frame=LINK)
    assert proposal.sensing == Sensing(find=("bias_per_log",))
    assert _proposed_settings((proposal,), Sensing()) == ["Try: --set find=bias_per_log."]
    assert LoadRecipe(sensor=LINK, find=("bias_per_log",))._sensing() == proposal.sensing
    load = identify_load(ROBOT, logs, sensor_frame=LINK, sensing=proposal.sensing)
    assert abs(load.mass - TRUTH.mass) < 4 * load.mass_stderr < 0.02
    np.testing.assert_allclose(load.bias, BIAS, atol=0.2)


def test_fewer_equations_than_unknowns_leave_them_open() -> None:
    assert solve_minimum_norm(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]), np.array([1.0, 2.0]))[2].all()
    R, wrench = poses_of(1, 0, 0.1)
    with pytest.raises(IdentifiabilityError):
        identify_load_from_poses(R, wrench)
    run = run_of(noise=0.1)
    with pytest.raises(IdentifiabilityError):
        identify_load(ROBOT, run.rows(slice(0, 1)), sensor_frame=LINK)
    with pytest.raises(IdentifiabilityError):
        calibrate_sensor(ROBOT, [(run.rows(slice(0, 300, 100)), TRUTH)], sensor_frame=LINK)


def test_turns_about_one_axis_do_not_reveal_the_orientation() -> None:
    R = Rotation.from_rotvec(np.outer(np.arange(0.0, 6.0, 0.2), [1.0, 0.0, 0.0])).as_matrix()
    wrench = np.hstack([R[:, 2], 0.0 * R[:, 2]])
    with pytest.raises(IdentifiabilityError, match="do not reveal the orientation"):
        identify_load_from_poses(R, wrench, sensing=Sensing(find=("orientation",)))


def test_signs_of_poses_are_named() -> None:
    R, wrench = poses_of(30, 1, 0.1)
    assert "wrench-frame" in codes(identify_load_from_poses(R, -wrench))
    for count in (4, 10, 12, 30):
        for seed in range(20):
            said = codes(identify_load_from_poses(*poses_of(count, 100 + seed, 0.3)))
            assert "drift" not in said
            assert "wrench-frame" not in said


@pytest.mark.parametrize(("noise", "metres", "stds"), [(1.9, 2.9, 4.9), (2.3, 3.1, 5.1)])
def test_poses_are_doubted_from_a_limit_on(noise: float, metres: float, stds: float) -> None:
    """A fifth of the weight is not explained; the centre is three metres away; the mass is below zero."""
    R, wrench = poses_of(1000, 1, noise)
    share = 100.0 * noise * 3.0**0.5 / (9.81 * TRUTH.mass)
    told = [
        finding.message for finding in identify_load_from_poses(R, wrench).findings if finding.code != "load-uncertain"
    ]
    assert told == [f"the residual is {share:.0f} % of the weight of the load"] * (share > 20.0)
    R, wrench = poses_of(1000, 1, 1e-3)
    scale = np.repeat([1.0, metres / np.linalg.norm(TRUTH.com)], 3)
    assert ("unit" in codes(identify_load_from_poses(R, wrench * scale))) == (metres > 3.0)
    load = Load.of(TRUTH, LINK, stderr=0.1)
    assert is_negative(replace(load, vector=-0.1 * stds * np.eye(10)[9])) == (stds > 5.0)


def test_poses_that_are_none_are_refused_and_strange_ones_named() -> None:
    R, wrench = poses_of(30, 1, 0.1)
    turns = Rotation.from_matrix(R).as_quat()  # x, y, z, w
    right = np.roll(turns, 1, axis=1)
    for fine in (right, 1.0005 * right, 1.0003 * R):
        assert "wrench-frame" not in codes(identify_load_from_poses(fine, wrench))
    for wrong in (turns, np.swapaxes(R, 1, 2)):
        assert "wrench-frame" in codes(identify_load_from_poses(wrong, wrench))
    far = identify_load_from_poses(R, wrench * np.repeat([1.0, 1000.0], 3))
    assert "unit" in codes(far)
    refused: list[tuple[Any, dict[str, Any]]] = [
        (1.0015 * right, {}),
        (np.nan * right, {}),
        (-R, {}),
        (1.0007 * R, {}),
        (R, {"gravity": 9.81}),
        (R, {"time": np.arange(5.0)}),
    ]
    for orientation, options in refused:
        with pytest.raises(ArgumentError):
            identify_load_from_poses(orientation, wrench, **options)


def test_columns_of_faults_are_the_changes_of_the_wrench() -> None:
    """Zeros move by one standard deviation of their channel; a delay of the wrench makes its past appear."""
    logs = [run_of(noise=0.01, rate=100.0), run_of(noise=0.01, rate=100.0, seed=1)]
    data = wrench_data(ROBOT, logs, LINK, Sensing())
    true = data.matrix @ TRUTH.vector
    columns: dict[str, list[Any]] = {}
    for suspect in _fit(data, LINK, Sensing())[1]:
        columns.setdefault(suspect.find or suspect.code, []).append(suspect.columns.reshape(1200, 6, -1))
    assert list(columns) == ["delay", "orientation", "gravity", "drift", "bias_per_log", "gain"]
    for log in (slice(0, 600), slice(600, 1200)):
        rate = CubicSpline(data.time[log], true[log])(data.time[log], 1)
        np.testing.assert_allclose(columns["delay"][0][log, :, 0][1:-1], -rate[1:-1], atol=0.02 * np.ptp(rate))
    for channel, spread in enumerate(true.std(axis=0)):
        drift, step, gain = (columns[name][channel][..., 0] for name in ("drift", "bias_per_log", "gain"))
        np.testing.assert_allclose(np.polyfit(data.time - data.time.mean(), drift[:, channel], 1)[1], 0.0, atol=1e-9)
        assert drift[:, channel].std() == pytest.approx(spread, rel=1e-3)
        assert np.ptp(np.diff(drift[:600, channel])) < 1e-9
        np.testing.assert_allclose(step[:, channel], spread * data.log, rtol=1e-3)
        np.testing.assert_allclose(gain[:, channel], true[:, channel], atol=5e-3)
        assert not any(np.any(np.delete(one, channel, axis=1)) for one in (drift, step, gain))


@pytest.mark.parametrize("percent", [4.0, 15.0])
def test_a_gain_is_told_with_its_amount_from_a_twentieth_on(percent: float) -> None:
    run = run_of(lambda w, q: w * [1.0, 1.0, 1.0 + percent / 100.0, 1.0, 1.0, 1.0], noise=0.05)
    told = [proposal.finding for proposal in check_wrench(ROBOT, run, sensor_frame=LINK)]
    assert [finding.message[:31] for finding in told] == ["Fz is measured too large by +15"] * (percent > 5.0)
    for numbers in (finding.evidence for finding in told):
        assert abs(numbers["amount"] - percent) < numbers["half of the 95 % interval"] < 1.0
