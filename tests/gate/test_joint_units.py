"""A wrong unit of one joint's torque is named with its factor, without effort limits; clean logs are not accused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from campaigns import hypotheses, joint_units
from dynid.gate.model_checks import check_torque_sizes, likely_unit
from dynid.gate.quality import check_recording
from dynid.gate.quick_fit import Samples
from dynid.logs.recording import Recording
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.terms import usual_terms


@cache
def clean(name: str) -> tuple[Robot, Recording]:
    case = hypotheses.make_case("nothing", name, 1)
    return case.robot, case.log


@pytest.mark.parametrize("name", hypotheses.TABLES)
def test_a_clean_log_is_not_accused(name: str) -> None:
    robot, log = clean(name)
    assert not np.isfinite([joint.limits.effort for joint in robot.moving_joints]).any()
    for model in (robot, joint_units.placeholders(robot)):
        report = check_recording(log, model)
        assert "unit" not in report.codes
        assert report.ok


@pytest.mark.parametrize(
    ("name", "joint", "factor"),
    [
        ("elbow", 1, 1000.0), ("elbow", 3, 0.001), ("elbow", 4, 10.0), ("elbow", 0, 0.1),
        ("snake", 6, 1000.0), ("snake", 2, 0.001), ("snake", 1, 10.0), ("snake", 5, 0.1),
        ("rail", 0, 1000.0), ("rail", 4, 0.001), ("rail", 2, 10.0), ("rail", 3, 0.1),
    ],
)  # fmt: skip
def test_the_joint_is_named_with_its_factor(name: str, joint: int, factor: float) -> None:
    robot, log = clean(name)
    word, found = joint_units.judge(robot, joint_units.scaled(log, joint, factor), robot.joint_names[joint], factor)
    assert word == "named", [f.sentence for f in found]
    assert [f.code for f in found] == ["unit"]  # neither a link's length nor a spring stands beside it


@pytest.mark.parametrize(("joint", "factor"), [(2, 10.0), (3, 0.1), (4, 0.001)])
def test_equations_alone_show_it_where_masses_are_placeholders(joint: int, factor: float) -> None:
    robot, log = clean("elbow")
    model = joint_units.placeholders(robot)
    assert (
        joint_units.judge(model, joint_units.scaled(log, joint, factor), robot.joint_names[joint], factor)[0] == "named"
    )


@pytest.mark.parametrize(
    ("name", "joint", "factor", "words"),
    [
        ("rail", 0, 0.1, "multiplied by 10, as if centimetres were declared as millimetres"),
        ("rail", 0, 10.0, "divided by 10, as if millimetres were declared as centimetres"),
        ("rail", 4, np.pi / 180.0, "multiplied by 57.3, as if radians were declared as degrees"),
        ("elbow", 5, np.pi / 180.0, "multiplied by 57.3, as if radians were declared as degrees"),
        ("elbow", 2, 0.5 / np.pi, "multiplied by 6.283, as if turns were declared as radians"),
    ],
)  # fmt: skip
def test_the_unit_of_one_position_is_named_and_no_spring_or_change_stands_for_it(
    name: str, joint: int, factor: float, words: str
) -> None:
    robot, log = clean(name)
    report = check_recording(joint_units.moved(log, joint, factor), robot)
    (found,) = (f for f in report.findings if f.severity != "note")
    assert (found.code, found.joint, found.severity) == ("unit", robot.joint_names[joint], "error")
    assert words in found.message
    assert found.evidence["factor of the position"] == pytest.approx(1.0 / factor)


def test_a_factor_that_is_no_unit_is_a_missing_gear() -> None:
    robot, log = clean("rail")
    (found,) = check_recording(joint_units.scaled(log, 2, 36.0), robot).about("unit")
    assert found.evidence["factor"] == pytest.approx(36.0, rel=0.05)
    assert "a gear, a torque constant or a rated torque" in found.message


def test_all_torques_in_another_unit_are_told_from_one_joint() -> None:
    robot, log = clean("elbow")
    (found,) = check_recording(joint_units.scaled(log, slice(None), 1000.0), robot).about("unit")
    assert found.joint is None
    assert "N mm or mN m" in found.message


@pytest.mark.parametrize(
    ("factor", "words"),
    [(0.5 / np.pi, "taken for radians and are turns"), (np.pi / 180.0, "taken for degrees and are radians")],
)
@pytest.mark.parametrize("name", ["elbow", "snake"])
def test_positions_in_a_larger_unit_are_told_from_large_torques(name: str, factor: float, words: str) -> None:
    robot, log = clean(name)
    (found,) = check_recording(replace(log, q=log.q * factor, dq=None), robot).about("unit")
    assert (found.joint, found.severity) == (None, "error")
    assert words in found.message


def test_a_small_motion_names_both_channels_that_may_be_wrong() -> None:
    robot = zoo.puma560().with_terms(*usual_terms())
    path = sum_of_sines(6, period_s=20.0, amplitude=0.1, seed=2)
    log = simulate_experiment(robot, path, rate_hz=200.0, duration_s=20.0, noise=Noise(position=1e-6, effort=0.2))
    assert check_recording(log, robot).ok
    (found,) = check_recording(replace(log, q=log.q * (0.5 / np.pi), dq=None), robot).about("unit")
    assert found.where == "effort"
    assert "or positions are turns that were taken for radians" in found.message


def test_a_log_that_cannot_be_tested_says_so() -> None:
    robot, log = clean("elbow")
    few = replace(log.rows(slice(0, 60)), effort=np.ones((60, robot.dof)))
    assert "untested" in check_recording(few, robot).codes


def test_units_are_named_by_their_factor() -> None:
    assert likely_unit(990.0) == "N mm or mN m"
    assert likely_unit(9.6) == "kgf cm"
    assert likely_unit(0.1, slide=True) == "kgf"
    assert likely_unit(36.0) == ""


@pytest.mark.parametrize(("factor", "words"), [(1e4, "at most at any joint"), (1e-4, "masses of the model need 0.06")])
def test_friction_alone_cannot_be_that_large_or_small(factor: float, words: str) -> None:
    """The last joint shows nothing but friction: no equation tells its gain, but its size does."""
    robot, log = clean("elbow")
    assert log.effort is not None
    motion = process(log)
    effort = np.array(motion.effort)
    effort[:, 5] = 5.0 * np.sign(motion.dq[:, 5]) * factor
    samples = Samples.of(robot, replace(motion, effort=effort))
    assert samples is not None
    (found,) = check_torque_sizes(robot, samples)
    assert found.joint == "joint6"
    assert words in found.message
    effort[:, 5] /= factor
    plain = Samples.of(robot, replace(motion, effort=effort))
    assert plain is not None
    assert not list(check_torque_sizes(robot, plain))
