"""Motions for loads, advice, and the study that the command line shows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import ArgumentError
from dynid.payload.load import Load
from dynid.payload.load_motions import wrist_test_motion
from dynid.payload.load_study import LoadStudy, check_load_log
from dynid.payload.recognition import KnownObject
from dynid.payload.wrist import identify_load
from dynid.processing.process import Processing
from dynid.robot.inertia import Inertia
from payload.test_wrist import LINK, ROBOT, TRUTH, run_of


def test_a_good_log_gets_all_ten_parameters() -> None:
    load = identify_load(ROBOT, run_of(noise=0.05), sensor_frame=LINK)
    study = LoadStudy(robot=ROBOT, load=load, library=[KnownObject(name="it", mass=TRUTH.mass)])
    assert study.verdict == "all ten parameters"
    assert study.recognition is not None
    assert study.recognition.names[0] == "it"
    said = json.loads(json.dumps(study.to_dict()))
    assert said["mass_kg"] == pytest.approx(1.8, abs=0.02)
    assert said["problems"] == []
    assert "Verdict: all ten parameters." in str(study)
    whole = study.robot_with_load.bodies[-1].inertia
    assert whole.mass == pytest.approx(ROBOT.bodies[-1].inertia.mass + study.load.mass)


def test_an_uncertain_inertia_is_left_out() -> None:
    noise = np.random.default_rng(0).normal(size=(300, 6)) * np.repeat([0.3, 0.8], 3)
    load = identify_load(ROBOT, run_of(lambda w, q: w + noise, amplitude=0.6), sensor_frame=LINK)
    study = LoadStudy(robot=ROBOT, load=load)
    assert study.load.has_inertia
    assert study.verdict == "mass and centre of mass"
    assert "the inertia is not determined" in str(dynid.export.payload_dialogs(study.load)[0])


def test_wrist_motion_turns_one_joint_at_a_time() -> None:
    start = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 2.0])
    motion = wrist_test_motion(ROBOT, start, joints=ROBOT.joint_names[3:6:2], sweep=1.5)
    dq = motion.derivative(np.linspace(0.0, motion.duration, 801), 1)
    assert motion.duration == 8.0
    assert np.all((np.abs(dq) > 1e-9).sum(axis=1) <= 1)
    assert set(np.flatnonzero(np.abs(dq).max(axis=0))) == {3, 5}
    np.testing.assert_allclose(motion.q[[0, 2, 4]], [start] * 3)
    np.testing.assert_allclose(
        motion.q[[1, 3]] - start, 1.5 * np.array([np.eye(6)[3], -np.eye(6)[5]])
    )  # the longer way
    with pytest.raises(ArgumentError, match="one per joint"):
        wrist_test_motion(ROBOT, np.zeros(3))


def test_wrist_motion_keeps_the_limits() -> None:
    robot = dynid.robots.panda()
    start = np.array([0.0, -0.3, 0.0, -2.0, 0.0, 1.5, 0.0])
    motion = wrist_test_motion(robot, start, sweep=3.0, duration_s=0.1)
    dq = motion.derivative(np.linspace(0.0, motion.duration, 4001), 1)
    fastest = np.array([joint.limits.velocity for joint in robot.moving_joints])
    assert np.all(np.abs(dq).max(axis=0) <= fastest * (1 + 1e-9))
    assert np.abs(dq).max() > 0.99 * fastest[-1]  # no slower than needed
    with pytest.raises(ArgumentError, match="outside"):
        wrist_test_motion(robot, np.full(7, 9.0))
    with pytest.raises(ArgumentError, match="no joint"):
        wrist_test_motion(robot, start, joints=["jonit"])
    with pytest.raises(ArgumentError, match="no joint"):
        wrist_test_motion(robot, start, joints=[])


@pytest.mark.parametrize(
    ("mass", "mass_std", "com_std", "said"),
    [
        (2.0, 0.19, 0.049, []),
        (2.0, 0.21, 0.01, ["the mass is uncertain: 1.59 to 2.41 kg hold it with 95 %"]),
        (2.0, 0.1, 0.0512, ["the centre of mass is uncertain by 5.1 cm"]),
        (-1.0, 0.6, 0.01, ["the mass is -1 kg: 0 to 0.176 kg hold it with 95 %"]),
        (np.nan, np.inf, 0.01, ["the data do not determine the mass"]),
    ],
)
def test_a_mass_and_its_centre_are_doubted_from_a_limit_on(
    mass: float, mass_std: float, com_std: float, said: list[str]
) -> None:
    vector = np.append(np.zeros(9), np.nan_to_num(mass))
    spread = np.append(np.full(9, com_std * abs(vector[9])), min(mass_std, 1.0))
    undetermined = np.arange(10) > (9 if np.isfinite(mass) else 8)
    load = Load(frame=LINK, vector=vector, covariance=np.diag(spread**2), undetermined=undetermined)
    study = LoadStudy(robot=ROBOT, load=load, library=[KnownObject(name="it", mass=1.0)])
    assert [finding.message for finding in study.problems] == said
    assert (study.recognition is None) == (not mass > 0.0)


@pytest.mark.parametrize(("std", "advice"), [(9e-4, ""), (2.4e-3, "2.4 times the angular accelerations, or 6 times")])
def test_advice_is_given_where_moments_are_uncertain(std: float, advice: str) -> None:
    load = Load.of(Inertia.from_com(2.0, np.zeros(3), np.diag([0.005, 0.008, 0.01])), LINK, stderr=std)
    told = LoadStudy(robot=ROBOT, load=load).advice
    assert "".join(finding.remedy for finding in told).count(advice or "U") == len(told) == bool(advice)
    assert "".join(finding.message for finding in told).endswith("24 % of the largest" if advice else "")


def test_logs_of_loads_pass_the_gate() -> None:
    run = run_of(noise=0.05, rate=250.0)
    fields: dict[str, Any] = {"time": run.time, "q": run.q, "joint_names": ROBOT.joint_names}
    dead = dynid.Recording(**fields, wrench=run.wrench, effort=run.effort)
    report, chain = check_load_log(dead, ROBOT, Processing(), by_sensor=True)
    assert report.ok
    assert chain is not None
    assert "frozen" not in report.codes  # joint torques do not matter to a wrist sensor
    by_torques, _ = check_load_log(dead, ROBOT, Processing(), by_sensor=False)
    assert not by_torques.ok
    assert "frozen" in by_torques.codes
    nothing, _ = check_load_log(dynid.Recording(**fields), ROBOT, Processing(), by_sensor=True)
    assert not nothing.ok
    assert [(finding.code, finding.where) for finding in nothing.findings if finding.severity == "error"] == [
        ("missing", "wrench")
    ]
