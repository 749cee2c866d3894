"""The robot file of another robot, and torques whose gains differ from joint to joint: told by the equations alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from campaigns import gate_evidence
from dynid.findings import Finding
from dynid.gate.profiled_fit import relative_gains
from dynid.gate.quick_fit import Samples
from dynid.gate.within_log import check_together
from dynid.information.displacements import displace
from dynid.links.common.kept_faults import unmended
from dynid.logs.recording import Recording
from dynid.processing.process import process
from dynid.processing.simulation import simulate_experiment, sum_of_sines
from dynid.robot.model import Robot

RATED = np.array([330.0, 330.0, 150.0, 56.0, 56.0, 56.0])
"""Rated torques of a UR10 [N m]."""


@pytest.fixture(scope="module")
def log() -> Recording:
    """A faultless log of a UR10 with some friction that no equation holds."""
    return gate_evidence.clean_log("ur10", 2001, size=0.6, friction=0.3)


def _wrong(log: Recording, robot: Robot) -> list[Finding]:
    found = dynid.check_recording(replace(log, joint_names=robot.joint_names), robot).findings
    return [finding for finding in found if finding.severity != "note"]


@pytest.mark.parametrize(("other", "severity"), [("puma260", "error"), ("tx40", "warning")])
def test_the_model_of_another_robot_is_named(log: Recording, other: str, severity: str) -> None:
    """It is refused where it is beyond doubt; a warning keeps the result from passing."""
    (found,) = _wrong(log, dynid.robots.get(other).with_terms())
    assert (found.code, found.severity) == ("other-robot", severity)
    assert f"do not fit the geometry of {other}" in found.message
    assert "right robot file" in found.remedy


def test_the_right_robot_and_one_of_the_same_geometry_are_not_accused(log: Recording) -> None:
    for name in ("ur10", "ur10e"):
        assert _wrong(log, dynid.robots.get(name).with_terms()) == []


@pytest.mark.parametrize("share", [0.05, 0.1])
def test_a_wrong_length_is_a_length_and_no_other_robot(log: Recording, share: float) -> None:
    robot = dynid.robots.ur10().with_terms()
    place = max(range(1, robot.dof), key=lambda k: float(np.linalg.norm(robot.bodies[k].p_parent_joint)))
    longer = displace(
        robot, {robot.joint_names[place]: np.r_[share * robot.bodies[place].p_parent_joint, 0.0, 0.0, 0.0]}
    )
    assert "other-robot" not in [finding.code for finding in dynid.check_recording(log, longer).findings]


def test_logs_together_show_another_robot_and_do_not_pass() -> None:
    robot = dynid.robots.puma560().with_terms()
    logs = [gate_evidence.clean_log("ur10", seed, size=0.6, friction=0.3) for seed in (2001, 2101)]
    runs = [process(replace(log, joint_names=robot.joint_names)) for log in logs]
    ((place, found),) = check_together(robot, runs, [(), ()])
    assert place is None
    assert (found.code, found.severity) == ("other-robot", "warning")
    assert unmended([found], ()) == (found.message,)


def test_torques_in_percent_of_each_rating_are_refused(log: Recording) -> None:
    robot = dynid.robots.ur10().with_terms()
    assert log.effort is not None
    (found,) = _wrong(replace(log, effort=100.0 * log.effort / RATED), robot)
    assert (found.code, found.severity, found.joint) == ("unit", "error", None)
    assert "percent of each joint's rated torque" in found.message
    factor = {name: found.evidence[f"factor of {name}"] for name in robot.joint_names[:5]}
    for name, rated in zip(robot.joint_names[:5], RATED, strict=False):
        assert factor[name] / factor["joint3"] == pytest.approx(rated / 150.0, rel=0.25)


def test_percent_is_told_without_the_masses_of_the_model(log: Recording) -> None:
    robot = gate_evidence.believed("ur10", "copied 1 kg")
    assert log.effort is not None
    found = _wrong(replace(log, effort=100.0 * log.effort / RATED), robot)
    assert [(f.code, f.severity) for f in found] == [("unit", "error")]
    assert _wrong(log, robot) == []


def test_relative_gains_are_those_planted() -> None:
    robot = dynid.robots.puma560().with_terms(dynid.Viscous(1.0), dynid.Coulomb(1.0))
    planted = np.array([0.4, 2.0, 1.0, 5.0, 0.3, 1.0])
    log = simulate_experiment(robot, sum_of_sines(6, seed=3), rate_hz=200, duration_s=10)
    run = process(log, filter_effort=True)
    samples = Samples.of(robot, replace(run, effort=run.effort * planted))
    assert samples is not None
    factors, errors = relative_gains(robot, samples)
    known = errors < 0.05
    assert known[:3].all()
    assert factors[known] * planted[known] / (factors[2] * planted[2]) == pytest.approx(1.0, abs=0.02)
