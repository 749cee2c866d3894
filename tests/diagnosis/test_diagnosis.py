"""Planted faults are named with their amount and joint, clean logs are not accused, intervals hold what was planted."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import dynid
from campaigns import diagnosis as campaign
from dynid import diagnosis
from dynid.diagnosis import find_delay, refine_geometry
from dynid.diagnosis.commands import check_commands
from dynid.diagnosis.refinement import resolve_delay
from dynid.diagnosis.signals import check_signals
from dynid.errors import ArgumentError
from dynid.logs.recording import Commands
from dynid.processing.process import Processing
from dynid.processing.simulation import sum_of_sines


@pytest.mark.parametrize(
    ("fault", "robot", "seed"),
    [
        ("torque flipped", "panda", 11),
        ("torques swapped", "puma560", 11),
        ("joints swapped", "tx40", 410004),  # a drive of its wrist moves two joints
        ("joints swapped", "scara", 410011),  # one slides, one turns
        ("torque unit of one joint", "scara", 441011),  # no other joint feels it
        ("motion flipped", "scara", 426005),  # it lifts the load straight up
        ("wall", "iiwa14", 11),
        ("torque unit", "ur10", 11),
        ("all torques flipped", "panda", 11),
        ("load", "iiwa14", 412015),  # held for half of the log
        ("drift", "ur10", 11),
        ("delay", "puma560", 11),
        ("spring", "scara", 1260042),  # on the joint that lifts its load
    ],
)
def test_a_planted_fault_is_named(fault: str, robot: str, seed: int) -> None:
    word, found = campaign.judge(fault, campaign.FAULTS[fault][1](robot, seed))
    assert word == "named", found


@pytest.mark.parametrize(("robot", "seed"), [("ur10", 5), ("scara", 1234015)])  # its friction builds up slowly
def test_a_clean_log_is_not_accused(robot: str, seed: int) -> None:
    assert campaign.accusations(campaign.simulate(robot, seed)) == []


def test_a_gain_is_told_with_its_interval_and_joint() -> None:
    case = campaign.FAULTS["gain 10 to 30 %"][1]("ur10", 1236008)
    found = campaign.accusations(case)
    assert [(finding.code, finding.joint) for finding in found][:1] == [("gain", case.joint)]
    assert found[0].evidence["amount [%]"] == pytest.approx(100.0 * case.amount, abs=4.0)


def test_twice_the_amount_that_a_log_is_said_to_tell_is_named() -> None:
    words = [campaign.judge("twice", campaign.twice(arm, 1270000 + k))[0] for k, arm in enumerate(campaign.ROBOTS)]
    assert words.count("named") >= 5, words
    assert "silent" not in words


def test_a_gain_that_a_log_cannot_show_is_said_to_be_untestable() -> None:
    """The last joint moves little but its rotor and its friction."""
    fault = "gain 10 to 30 %"
    case = campaign.FAULTS[fault][1]("ur10", 1236002)
    assert campaign.judge(fault, case) == ("untestable", [])
    assert "gain of joint6" in campaign.told_amounts(case)[0]


def test_a_delay_lies_in_its_interval_and_nothing_unsure_is_moved() -> None:
    robot, log, late = campaign.late_loop(2, 5)
    found = find_delay(robot, [dynid.process(log)])
    assert abs(found.seconds - late) <= 1.5 * found.half_width_s
    moved, note = resolve_delay(log, Processing(effort_delay_s="auto"), robot)
    assert moved.effort_delay_s == pytest.approx(found.seconds)
    assert "moved back" in note
    still, note = resolve_delay(campaign.simulate("ur10", 3).log, Processing(effort_delay_s="auto"), None)
    assert (still.effort_delay_s, note) == (0.0, "")


def test_lengths_and_tilts_are_found_and_the_robot_has_them() -> None:
    case = campaign.FAULTS["length 5 %"][1]("ur10", 1236008)
    run = dynid.process(case.log)
    refined = refine_geometry(case.robot, [run], ["lengths"])
    (own,) = [quantity for quantity in refined.quantities if quantity.joint == case.joint]
    assert abs(abs(own.value) - np.linalg.norm(case.moved)) <= 2.0 * own.half_width
    before, after = (np.linalg.norm(arm.bodies[2].p_parent_joint) for arm in (case.robot, refined.robot))
    assert after - before == pytest.approx(own.value, abs=1e-9)
    level = refine_geometry(refined.robot.with_gravity((0.3, 0.0, -9.8)), [run], ["tilt"])
    np.testing.assert_allclose(level.robot.gravity[:2], 0.0, atol=0.1)
    with pytest.raises(ArgumentError, match="there is no 'colours'"):
        refine_geometry(case.robot, [], ["colours"])


def test_coarse_currents_are_no_spikes() -> None:
    rng, time = np.random.default_rng(0), np.arange(4000) / 250.0
    torque = np.round((3.0 * np.sin(time) + rng.normal(0.0, 0.4, 4000)) / 0.5) * 0.5
    log = dynid.Recording(time=time, q=np.sin(time)[:, None], effort=torque[:, None])
    assert "spikes" not in {finding.code for finding in check_signals(log)}


def commanded(fault: str) -> dynid.Recording:
    """Two joints that follow their commands 0.1 s later and 5 % weaker, with a fault in the columns."""
    time, rng = np.arange(2500) * 0.01, np.random.default_rng(3)
    path = sum_of_sines(2, period_s=12.5, harmonics=6, amplitude=0.5, seed=4)
    command, (q, dq, _) = path(time)[0], path(time - 0.1)
    q = 0.95 * q + rng.normal(0.0, 2e-3, q.shape)
    on = np.ones(q.shape, dtype=bool)
    match fault:
        case "flipped":
            q[:, 1] *= -1.0
        case "swapped":
            command = command[:, ::-1]
        case "unit":
            command = np.degrees(command)
        case "exchanged":
            q, command = command, q
        case "late":
            command = path(time + 0.9)[0]
        case "velocities":
            command = dq
        case "copied":
            command = q
        case "inverted":
            on[:1250] = False
            q[1250:] = q[1250] + 0.02 * np.sin(np.arange(1250.0))[:, None]
    return dynid.Recording(time=time, q=q, commands=Commands(time=time, position=command, enabled=on))


@pytest.mark.parametrize(
    ("fault", "code", "joint"),
    [
        ("", None, None),
        ("flipped", "flipped", 1),
        ("swapped", "swapped", 0),
        ("unit", "unit", 0),
        ("exchanged", "commands", None),
        ("late", "delay", None),
        ("velocities", "commands", 0),
        ("copied", "commands", None),
        ("inverted", "drive-setting", 0),
    ],
)
def test_commands_are_what_the_positions_follow(fault: str, code: str | None, joint: int | None) -> None:
    log = commanded(fault)
    found = list(check_commands(log))
    if code is None:
        assert not found
        return
    assert {finding.code for finding in found} == {code}
    assert found[0].joint == (None if joint is None else log.joint_names[joint])
    if fault == "late":
        assert found[0].evidence["lag [s]"] == pytest.approx(1.0, abs=0.03)


def test_thresholds_are_few() -> None:
    """Numbers that decide: constants that are effects or levels, and other numbers in comparisons than 0, 1 and 2."""
    named, compared = [], []
    for path in sorted(Path(diagnosis.__file__).parent.glob("*.py")):
        text = path.read_text()
        deciding = re.findall(r'^[A-Z_, ]+ = [^\n]*\d[^\n]*\n"""[^"]*\((?:effect|level)\b', text, re.MULTILINE)
        named += [name for line in deciding for name in line.split(" = ")[0].split(", ")]
        for node in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Compare)):
            numbers = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
            compared += [f"{path.name}: {x}" for x in numbers if type(x) in (int, float) and abs(x) not in (0, 1, 2)]
    assert len(named) <= 25, named
    assert not compared, compared
