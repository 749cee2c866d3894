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
from dynid.diagnosis.commands import EARLY_S, LATE_S, _Tracking, check_commands
from dynid.diagnosis.refinement import resolve_delay
from dynid.errors import ArgumentError
from dynid.logs.recording import Commands
from dynid.processing.process import Processing
from dynid.processing.simulation import sum_of_sines

PLANTED = """
torque flipped: panda 11
torques swapped: puma560 11
joints swapped: tx40 410004, where a drive of the wrist moves two joints
joints swapped: scara 410011, where one slides and one turns
torque unit of one joint: scara 441011, which no other joint feels
motion flipped: scara 426005, of the joint that lifts the load straight up
wall: iiwa14 11
wall: puma560 9520006, rival of joint2 upside down
degrees of one joint: ur10 41005
turns, or radians taken for degrees: panda 41000
turns, or radians taken for degrees: ur10 41001
gravity compensated: panda 41006
torque unit: ur10 11
all torques flipped: panda 11
load: iiwa14 412015, held for half of the log
drift: ur10 11
delay: puma560 11
spring: scara 1260042, on the joint that lifts its load
"""
"""Fault: robot, and seed of the log."""


@pytest.mark.parametrize("case", PLANTED.strip().splitlines())
def test_a_planted_fault_is_named(case: str) -> None:
    fault, robot, seed = re.findall(r"(.+): (\w+) (\d+)", case)[0]
    word, found = campaign.judge(fault, campaign.FAULTS[fault][1](robot, int(seed)))
    assert word == ("rival" if "rival" in case else "named"), found


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


@pytest.mark.parametrize("case", ["gain 10 to 30 %: ur10 1236002", "joints swapped: puma560 440005"])
def test_what_a_log_cannot_show_is_said_to_be_untestable(case: str) -> None:
    """These joints move little but their rotors and their friction."""
    fault, robot, seed = re.findall(r"(.+): (\w+) (\d+)", case)[0]
    assert campaign.judge(fault, campaign.FAULTS[fault][1](robot, int(seed))) == ("untestable", [])


def test_a_delay_lies_in_its_interval_and_nothing_unsure_is_moved() -> None:
    robot, log, late = campaign.late_loop(2, 5)
    found = find_delay(robot, [dynid.process(log)])
    assert abs(found.seconds - late) <= 1.5 * found.half_width_s
    moved, note = resolve_delay(log, Processing(effort_delay_s="auto"), robot)
    assert moved.effort_delay_s == pytest.approx(found.seconds)
    told = [f"{1e3 * found.seconds:+.3g} +-", f"+- {1e3 * found.half_width_s:.2g} ms", "moved back"]
    assert all(part in note for part in told)
    still, note = resolve_delay(campaign.simulate("ur10", 3).log, Processing(effort_delay_s="auto"), None)
    assert (still.effort_delay_s, note) == (0.0, "")


def test_lengths_and_tilts_are_found_and_the_robot_has_them() -> None:
    case = campaign.FAULTS["length 5 %"][1]("ur10", 1236008)
    run = dynid.process(case.log)
    refined = refine_geometry(case.robot, [run], ["lengths"])
    (own,) = [quantity for quantity in refined.quantities if quantity.joint == case.joint]
    assert own.is_sure
    assert abs(abs(own.value) - np.linalg.norm(case.moved)) <= 2.0 * own.half_width
    before, after = (np.linalg.norm(arm.bodies[2].p_parent_joint) for arm in (case.robot, refined.robot))
    assert after - before == pytest.approx(own.value, abs=1e-9)
    level = refine_geometry(refined.robot.with_gravity((0.3, 0.0, -9.8)), [run], ["tilt"])
    np.testing.assert_allclose(level.robot.gravity[:2], 0.0, atol=0.1)
    with pytest.raises(ArgumentError, match="there is no 'colours'"):
        refine_geometry(case.robot, [], ["colours"])


AT = np.arange(2500) * 0.01
PATH = sum_of_sines(2, period_s=12.5, harmonics=6, amplitude=0.5, seed=4)
NOISE = np.random.default_rng(3).normal(0.0, 2e-3, (2500, 2))
SENT, WENT = PATH(AT)[0], 0.95 * PATH(AT - 0.1)[0] + NOISE
"""Two joints that follow their commands 0.1 s later and 5 % weaker."""
OFF = np.repeat(AT[:, None] >= 12.5, 2, axis=1)
REST = np.where(OFF, 0.1 * NOISE, WENT)
FIRST = np.arange(2) == 0

COMMANDS = """
->
q = WENT * [1, -1] -> flipped error joint2
position = SENT[:, ::-1] -> swapped error joint1
position = np.degrees(SENT) -> unit error joint1, unit error joint2
q = 0.05 * WENT / 0.95 ->
q = 0.035 * WENT / 0.95 -> unit error joint1, unit error joint2
q = 4.5 * WENT ->
q = 6 * WENT -> unit error joint1, unit error joint2
q = 9 * WENT; position = 9 * SENT -> unit warning joint1, unit warning joint2
q = SENT; position = WENT -> commands error None, lag [s] 0.1
position = PATH(AT + 0.9)[0] -> delay warning None, lag [s] 1.0
position = PATH(AT + 0.3)[0] ->
position = PATH(AT - 0.1)[1] -> commands error joint1, commands error joint2
position = WENT -> commands error None
position = SENT * FIRST -> commands warning joint2
position = 0 * SENT -> commands error None
q = WENT * FIRST -> frozen error joint2
enabled = OFF; q = REST -> drive-setting error joint1, drive-setting error joint2, while off 5e-5
enabled = ~OFF; q = REST ->
enabled = OFF & FIRST -> drive-setting error joint2
supply = np.full(2500, 0.9) -> drive-setting error None
supply = np.full(2500, 1.1) ->
supply = np.full(2500, 99.0) ->
supply = np.full(2500, 101.0) -> drive-setting error None
kp = 0.0 * SENT -> drive-setting error joint1, drive-setting error joint2
kp = FIRST + 0.0 * SENT; kd = 2.0 - 3.0 * FIRST + 0.0 * SENT -> drive-setting error joint2, drive-setting error joint1
kp = np.where(AT < 1.0, 0.0, 20.0)[:, None] + 0.0 * SENT ->
position = np.where(AT[:, None] < 10.0, np.nan, SENT) -> not-finite warning None, share 0.4
position = np.where(AT[:, None] < 15.0, np.nan, SENT) -> not-finite error None, share 0.6
time = np.where(AT == 1.0, 0.0, AT) -> backward-time error None
time = AT + 13.0 -> commands error None, commands from [s] 13
position = SENT[:1]; time = AT[:1] -> unusable error None
q = WENT[np.arange(2500) // 2 * 2] -> repeated-samples warning None, share 0.5
"""
"""Channels of commands and positions -> code, severity and joint of each finding, and evidence of the last one."""


@pytest.mark.parametrize("case", COMMANDS.strip().splitlines())
def test_commands_are_what_the_positions_follow(case: str) -> None:
    planted, _, wanted = case.partition("->")
    channels = {"q": WENT, "time": AT, "position": SENT}
    channels |= {
        name: eval(text, globals()) for name, text in (one.split(" = ") for one in planted.split("; ") if "=" in one)
    }
    found = list(check_commands(dynid.Recording(time=AT, q=channels.pop("q"), commands=Commands(**channels))))
    told = [f"{one.code} {one.severity} {one.joint}" for one in found]
    expected = [one for one in wanted.strip().split(", ") if one]
    assert told == expected[: len(told)]
    for name, _, amount in (text.rpartition(" ") for text in expected[len(told) :]):
        assert found[-1].evidence[name] == pytest.approx(float(amount), rel=0.05)


@pytest.mark.parametrize(("sign", "lags_s"), [(1.0, (0.0, 0.5)), (1.0, (-0.3, -0.05)), (-1.0, (0.0, 0.5))])
def test_following_is_regression_on_the_command_at_the_best_lag(sign: float, lags_s: tuple[float, float]) -> None:
    rng, on = np.random.default_rng(8), AT % 5.0 < 3.0
    command = SENT[:, 0]
    response = (
        sign * 0.7 * np.roll(command, 20) - sign * 0.3 * np.roll(command, -10) + 0.2 + 0.05 * rng.normal(size=2500)
    )
    tracking = _Tracking(0.01, sign * SENT, response[:, None], on[:, None], ("a", "b"))
    lag_s, left = tracking.follow(0, 0, lags_s)
    early, late = (round(abs(end) * 100) for end in (EARLY_S[0], LATE_S[1]))
    rows = np.flatnonzero(on[late : 2500 - early]) + late
    fits = {}
    for lag in range(round(100 * lags_s[0]), round(100 * lags_s[1]) + 1):
        X = np.column_stack([np.ones(rows.size), command[rows - lag]])
        values = np.linalg.lstsq(X, response[rows], rcond=None)[0]
        if values[1] * sign > 0.0:
            fits[lag] = (response[rows] - X @ values) ** 2
    best = min(fits, key=lambda lag: fits[lag].sum())
    assert lag_s == pytest.approx(0.01 * best)
    power = np.cumsum((response[rows] - response[rows].mean()) ** 2)
    ends = np.searchsorted(power, np.linspace(0.0, power[-1], len(left) + 1))
    wanted = len(left) / power[-1] * np.add.reduceat(fits[best], ends[:-1])
    np.testing.assert_allclose(left, wanted, rtol=1e-3)


def test_thresholds_are_few() -> None:
    """Numbers that decide: constants that are effects or levels, and other numbers in comparisons than 0, 1 and 2."""
    texts = [path.read_text() for path in Path(diagnosis.__file__).parent.glob("*.py")]
    deciding = re.findall(r'^([A-Z_, ]+) = [^\n]*\d[^\n]*\n"""[^"]*\((?:effect|level)\b', "\n".join(texts), re.M)
    assert 10 < sum(len(names.split(", ")) for names in deciding) <= 24
    comparisons = (node for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Compare))
    numbers = {part.value for node in comparisons for part in ast.walk(node) if isinstance(part, ast.Constant)}
    assert not {x for x in numbers if type(x) in (int, float)} - {0, 1, 2}
