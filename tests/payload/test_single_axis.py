"""Each moment of inertia by itself: a motion about one axis shows three of them, and the others stay open."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.compiled import wrench_regressor
from dynid.errors import DataError
from dynid.payload.load import NAMES, Load, make_possible
from dynid.payload.load_motions import wrist_test_motion
from dynid.payload.load_study import LoadStudy
from dynid.payload.wrist import identify_load
from dynid.processing.experiment import Experiment
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from support.exact_runs import exact_run
from support.single_axis_loads import RATE_HZ, arm_with_sensor, sensor_trial, torque_trial, turning_run

BAR = Inertia.from_com(1.2, [0.0, 0.01, 0.04], np.diag([0.0244, 0.0007, 0.0242]))
"""The bar of [Atkeson1986] Table 2; its mass and place are not printed."""
NOISE = np.repeat([0.1, 0.01], 3)
"""Standard deviations of the simulated sensor [N, N m]."""
ARM = dynid.robots.puma560()
LAST = ARM.bodies[-1].joint.child


def measured(run: Experiment, robot: Robot, seed: int = 0, link: str = "sensor") -> Experiment:
    wrench = wrench_regressor(robot, link, run.q, run.dq, run.ddq) @ BAR.vector
    noisy = wrench + NOISE * np.random.default_rng(seed).normal(size=wrench.shape)
    return replace(run, wrench=noisy)


def bar_about_z(robot: Robot) -> Load:
    return identify_load(robot, measured(turning_run(robot, np.random.default_rng(3)), robot), sensor_frame="sensor")


@pytest.mark.parametrize("trial", [sensor_trial, torque_trial])
def test_random_loads_show_the_moments_of_the_axis_with_intervals_that_cover(trial: Any) -> None:
    trials = [trial(seed) for seed in range(1000, 1012)]
    for one in trials:
        np.testing.assert_array_equal(one.determined, one.expected)
        assert one.is_physical
    covered = np.concatenate([one.covered[:6][one.determined] for one in trials])
    assert covered.mean() >= 30 / 36  # 95 % expected; fewer than 30 of 36 has a chance of one in a thousand


def test_a_turn_about_one_axis_gives_its_moment_although_others_stay_open() -> None:
    load = bar_about_z(arm_with_sensor(2))
    assert load.open_moments == ("XX", "XY", "YY")
    truth = BAR.vector[5]
    assert load.vector[5] == pytest.approx(truth, abs=3.0 * load.stderr[5])
    assert load.stderr[5] < 0.02 * truth
    assert np.isfinite(load.about_com_stderr[[2, 4, 5]]).all()
    assert load.inertia_about_com[2, 2] == pytest.approx(0.0242, abs=4.0 * load.about_com_stderr[5])
    assert np.isnan(load.inertia_about_com[[0, 0, 1], [0, 1, 1]]).all()
    lines = load.table().splitlines()
    assert any(line.startswith("ZZ ") and "kg m^2" in line for line in lines)
    assert any(line.startswith("XX, XY, YY") and "not identifiable" in line for line in lines)
    assert load.findings[0].code == "load-uncertain"


def test_a_vertical_axis_shows_moments_although_the_mass_stays_open() -> None:
    load = bar_about_z(arm_with_sensor(2).with_gravity([0.0, 0.0, 0.0]))
    assert np.isnan(load.mass)
    assert np.isinf(load.mass_stderr)
    assert load.vector[5] == pytest.approx(BAR.vector[5], abs=4.0 * load.stderr[5])
    assert load.open_moments == ("XX", "XY", "YY")
    assert np.isinf(load.about_com_stderr).all()
    assert "mass" in load.table()


def special_motion(joint: str, seed: int) -> Experiment:
    """A single joint turns, 2 s each move ([Atkeson1986] section 3.1.3)."""
    motion = wrist_test_motion(ARM, [0.3, -0.8, 0.4, 0.0, np.pi / 2, 0.0], joints=[joint], sweep=1.5)
    time = np.arange(0.0, motion.duration, 1.0 / RATE_HZ)
    return measured(exact_run(time, motion.evaluate(time)), ARM, seed, LAST)


def test_special_motions_of_the_paper() -> None:
    """Joints 4 and 6 alone, as the paper moved them, leave one moment open; joint 5 adds it."""
    four, five, six = ARM.joint_names[3:]
    only_six = identify_load(ARM, special_motion(six, 1), sensor_frame=LAST)
    assert only_six.open_moments == ("XX", "XY", "YY")
    both = identify_load(ARM, [special_motion(j, k) for k, j in enumerate((four, six))], sensor_frame=LAST)
    assert len(both.open_moments) == 1
    all_three = [special_motion(j, k) for k, j in enumerate((four, five, six))]
    whole = identify_load(ARM, all_three, sensor_frame=LAST)
    assert whole.has_inertia
    np.testing.assert_array_less(np.abs(whole.vector - BAR.vector), 4.0 * whole.stderr)


def test_files_and_summaries_never_bound_an_open_moment(tmp_path: Path) -> None:
    robot = arm_with_sensor(2)
    study = LoadStudy(robot=robot, load=bar_about_z(robot))
    written = json.loads(json.dumps(study.to_dict()))
    variances = dict(zip(NAMES, np.diagonal(written["covariance"]), strict=True))
    for told in (written["parameters"], written["parameters_stderr"], variances):
        assert [name for name in NAMES if told[name] is None] == ["XX", "XY", "YY"]
    assert written["inertia_about_com_stderr_kg_m2"][0] == [None, None, pytest.approx(study.load.about_com_stderr[2])]
    (tmp_path / "load.json").write_text(json.dumps(written))
    again = Load.read(tmp_path / "load.json")
    assert again.open_moments == ("XX", "XY", "YY")
    np.testing.assert_array_equal(again.stderr, study.load.stderr)
    for column, wrong in ((9, -1.0), (8, None)):
        covariance = [[*row] for row in written["covariance"]]
        covariance[9][column] = wrong
        (tmp_path / "load.json").write_text(json.dumps(written | {"covariance": covariance}))
        with pytest.raises(DataError, match="covariance"):
            Load.read(tmp_path / "load.json")
    assert study.verdict == written["verdict"] == "mass, centre of mass and some moments"
    assert written["known_moments"] == ["XZ", "YZ", "ZZ"]
    assert "Verdict: mass, centre of mass and the moments XZ, YZ, ZZ; not determined: XX, XY, YY." in str(study)
    assert "assumed values for XX, XY, YY" in str(study)
    assert "about x and y of 'sensor'" in study.advice[0].remedy
    assert study.robot_with_load.link("load").inertia.is_physical


def test_moments_that_no_body_has_give_way_and_open_ones_stay_open() -> None:
    """ZZ of a body is at least the mass times the squared distance of its centre from the axis."""
    body = Inertia.from_com(2.0, [0.1, 0.0, 0.0], np.zeros((3, 3)))
    vector = body.vector
    vector[5] -= 0.004  # below 2 kg * 0.01 m^2
    spread = np.array([1e-3] * 6 + [1e-4] * 3 + [1e-3])
    given = Load.of(Inertia.from_vector(vector), "tool", stderr=spread)
    load = replace(given, undetermined=np.isin(NAMES, ["XX", "XY", "YY"]))
    found = make_possible(load)
    assert found.findings[0].code == "impossible-estimate"
    assert found.vector[5] >= 2.0 * found.com[0] ** 2
    assert found.open_moments == load.open_moments
    assert found.inertia.is_physical
