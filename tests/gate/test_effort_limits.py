"""Torques far beyond the effort limit of the robot file are a wrong unit of that joint; those of real logs are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.gate.model_checks import BEYOND_EFFORT, check_effort_limits
from dynid.gate.quality import check_recording
from dynid.logs.recording import Recording
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot.model import Robot

ROOT = Path(__file__).parents[2]
DATASETS = ROOT.parent / "shared" / "datasets"
FINGERS = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
REAL: dict[str, tuple[str, dict[str, float]]] = {
    "panda_gaz": ("panda.urdf", FINGERS),
    "panda_unisa": ("panda.urdf", FINGERS),
    "ur10_unisa": ("ur10_robot.urdf", {}),
    "tx40": ("tx40_mdh_modified.urdf", {}),
}
"""Data set -> its robot file, which states limits, and the joints to hold."""


@cache
def log() -> Recording:
    motion = sum_of_sines(3, seed=4)
    return simulate_experiment(dynid.robots.ddarm(), motion, rate_hz=100, duration_s=8, noise=Noise(effort=0.02))


def limited(limits: Sequence[float]) -> Robot:
    """The arm with these effort limits."""
    robot = dynid.robots.ddarm()
    of = dict(zip(robot.joint_names, limits, strict=True))
    joints = (replace(j, limits=replace(j.limits, effort=of[j.name])) if j.name in of else j for j in robot.joints)
    return replace(robot, joints=tuple(joints))


def largest() -> np.ndarray:
    return np.abs(np.array(log().effort)).max(axis=0)


def test_newton_millimetres_in_one_joint_are_an_error_of_that_joint() -> None:
    robot = limited(3.0 * largest())
    assert "unit" not in check_recording(log(), robot).codes
    wrong = replace(log(), effort=np.array(log().effort) * [1.0, 1000.0, 1.0])
    report = check_recording(wrong, robot)
    assert not report.ok
    (found,) = report.about("unit")
    assert found.joint == robot.joint_names[1]
    assert found.evidence["limit [N m]"] == pytest.approx(3.0 * largest()[1])
    assert found.evidence["99th percentile [N m]"] > BEYOND_EFFORT * found.evidence["limit [N m]"]


@pytest.mark.parametrize("limit", [0.0, np.inf])
def test_a_limit_of_zero_or_none_is_no_limit(limit: float) -> None:
    wrong = replace(log(), effort=1000.0 * np.array(log().effort))
    assert list(check_effort_limits(limited([limit] * 3), wrong)) == []
    assert list(check_effort_limits(limited(largest()), replace(log(), effort=None))) == []


def test_single_spikes_are_no_wrong_unit() -> None:
    effort = np.array(log().effort)
    effort[100:110] *= 1e6
    assert list(check_effort_limits(limited(3.0 * largest()), replace(log(), effort=effort))) == []


@pytest.mark.skipif(not DATASETS.is_dir(), reason="the real logs are not there")
@pytest.mark.parametrize("name", REAL)
def test_real_logs_stay_near_the_limits_of_their_robot_files(name: str) -> None:
    file, hold = REAL[name]
    robot = dynid.read_urdf(DATASETS / name / file, hold=hold)
    recording = dynid.read_recording(DATASETS / name, channel_map=ROOT / "channel_maps" / f"{name}.toml")
    limits = np.array([joint.limits.effort for joint in robot.moving_joints])
    assert np.all((limits > 0.0) & np.isfinite(limits))
    assert recording.effort is not None
    peaks = np.nanpercentile(np.abs(recording.effort), 99.0, axis=0) / limits
    assert peaks.max() < 0.06 * BEYOND_EFFORT
    assert list(check_effort_limits(robot, recording)) == []
