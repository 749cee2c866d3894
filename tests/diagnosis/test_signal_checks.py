"""Checks of single signals: each planted number is told, and where a threshold is crossed the word changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynid
from dynid.array_types import Floats
from dynid.diagnosis.log_check import check_recording
from dynid.diagnosis.signals import check_clock, check_limits, check_signals, quantisation_step
from dynid.findings import Finding
from dynid.logs import recording
from dynid.robot.parts import JointLimits

TIME = np.arange(1000) / 100.0
WAVE = np.sin(2.0 * TIME)
NOISE = 1e-3 * np.random.default_rng(0).normal(size=TIME.size)


def recorded(q: Floats = WAVE + NOISE, **channels: Any) -> dynid.Recording:
    return dynid.Recording(**{"time": TIME, "q": q, "effort": np.cos(3.0 * TIME) + NOISE, **channels})


def told(findings: list[Finding], *names: str) -> list[tuple[str, str, list[float]]]:
    """Code and severity of each finding, and the evidence of these names."""
    return [(one.code, one.severity, [one.evidence[name] for name in names]) for one in findings]


def spiked(count: int) -> Floats:
    effort = np.cos(3.0 * TIME) + NOISE
    effort[np.linspace(20, 980, count, dtype=int)] = 9.0
    return effort


def clipped(limit: float) -> Floats:
    return np.clip(10.0 * np.sin(3.0 * TIME) + NOISE, -limit, limit)


def missing(share: float) -> Floats:
    return np.where(np.arange(1000) < 1000 * share, np.nan, WAVE + NOISE)


CHANNELS = """
q = WAVE + NOISE ->
q = missing(0.04) -> not-finite warning, share 0.04
q = missing(0.06) -> not-finite error, share 0.06
q = 9e-4 * WAVE -> frozen warning, range 1.8e-3
q = 1.1e-3 * WAVE + 1e-6 * NOISE ->
q = np.round(WAVE + NOISE) -> frozen warning, range 2
q = np.round(2.0 * WAVE) / 2.0 -> quantised warning, step 0.5, share of range 0.25
q = np.round(WAVE, 2) -> quantised warning, step 0.01, share of range 0.005
q = np.round(WAVE, 3) -> quantised note, step 1e-3, share of range 5e-4
q = np.mod(3.0 * TIME + NOISE + np.pi, 2 * np.pi) - np.pi -> wrapped note, jumps 5
effort = np.full(1000, 7.0) -> frozen error, value 7
effort = clipped(9.7) -> saturated warning, at 9.7
effort = clipped(9.0) -> saturated error, at 9
effort = spiked(10) -> spikes warning, count 10, share 0.01, largest 9
effort = spiked(60) -> spikes error, count 60, share 0.06, largest 9
effort = np.round(6.0 * np.sin(TIME) + 800.0 * NOISE) / 2.0 ->
effort = np.abs(np.sin(3.0 * TIME)) -> unsigned-effort error
effort = np.abs(np.sin(3.0 * TIME)); q = TIME + NOISE ->
effort = None -> missing error
effort = None; wrench = np.ones((1000, 6)) -> missing warning
effort = None; commands = Commands(time=TIME, position=np.sin(2.0 * TIME + 0.1)) -> missing note
"""
"""Channels of a log -> code, severity and evidence of the one finding."""


@pytest.mark.parametrize("case", CHANNELS.strip().splitlines())
def test_a_planted_fault_of_a_channel_is_told_with_its_amount(case: str) -> None:
    planted, _, wanted = case.partition(" ->")
    channels = dict(one.split(" = ") for one in planted.split("; "))
    found = check_signals(
        recorded(**{name: eval(text, vars(recording) | globals()) for name, text in channels.items()})
    )
    word, *evidence = wanted.strip().split(", ")
    assert " ".join(f"{one.code} {one.severity}" for one in found) == word
    for name, _, amount in (text.rpartition(" ") for text in evidence):
        assert found[0].evidence[name] == pytest.approx(float(amount), rel=0.02)


def test_faults_of_clocks_are_told() -> None:
    for rate_hz, wanted in ((4.9, ["unit"]), (5.1, []), (0.99e5, []), (1.01e5, ["unit"])):
        assert [f.code for f in check_clock(recorded(time=TIME * 100.0 / rate_hz))] == wanted
    gap = TIME + 0.5 * (TIME > 5.0)
    ((code, severity, (count, longest)),) = told([*check_clock(recorded(time=gap))], "count", "longest step [s]")
    assert (code, severity, count, longest) == ("gap", "warning", 1, pytest.approx(0.51))
    steps = np.random.default_rng(1).uniform(-1.0, 1.0, 1000)
    for amount, words in ((5e-4, []), (7e-4, ["jitter"])):  # the steps scatter by sqrt(2 / 3) of it
        found = list(check_clock(recorded(time=TIME + amount * steps)))
        assert [one.code for one in found] == words
    assert found[0].evidence["share of a period"] == pytest.approx(np.diff(TIME + 7e-4 * steps).std() / 0.01, rel=0.01)
    (found,) = check_clock(recorded(time=TIME[::-1]))
    assert (found.code, found.severity) == ("backward-time", "error")


def test_copies_are_counted() -> None:
    rows = np.r_[0:1000, 100:300]
    log = recorded(np.column_stack([WAVE, NOISE])[rows], effort=np.cos(np.outer(TIME, [3.0, 5.0]))[rows],
                   time=np.arange(1200) / 100.0)  # fmt: skip
    (copied,) = (found for found in check_signals(log) if found.code == "repeated-samples")
    assert copied.evidence["share"] == pytest.approx(185 / 1185)  # of stretches of 16 rows
    assert copied.evidence["first copy [row]"] == 1000
    assert copied.message.startswith(
        "16 % of the samples are copies of earlier ones, to the last digit: row 1000 repeats row 100"
    )
    few = np.r_[0:1000, 100:140]
    log = recorded((WAVE + NOISE)[few], effort=None, time=np.arange(1040) / 100.0, wrench=np.ones((1040, 6)))
    assert "repeated-samples" not in {found.code for found in check_signals(log)}


def test_the_step_of_an_encoder() -> None:
    assert quantisation_step(np.round(1000.0 * WAVE) * 3e-3) == pytest.approx(3e-3)
    assert quantisation_step(WAVE + NOISE) == 0.0


LIMITS = """
q revolute lower=-1, upper=0.7 -> 1.5 5
q revolute lower=-0.1, upper=0.1 -> 0.75 2.5
q continuous lower=-1, upper=1 -> 9.4248 31.4159
q continuous lower=-9, upper=9 -> 13.5 45
q prismatic lower=-0.1, upper=0.1 -> 0.15 0.5
effort revolute effort=10 -> 50 50
"""
"""Limits of a joint -> positions or torques from which on they are beyond it, and in another unit."""


@pytest.mark.parametrize("case", LIMITS.strip().splitlines())
def test_values_beyond_the_limits(case: str) -> None:
    given, _, wanted = case.partition(" -> ")
    where, kind, limits = given.split(" ", 2)
    most, far = map(float, wanted.split())
    joint = dynid.Joint(name="j", kind=kind, parent="a", child="b", limits=eval(f"JointLimits({limits})"))  # type: ignore[arg-type]
    robot = dynid.Robot(name="r", links=[dynid.Link(name="a"), dynid.Link(name="b")], joints=[joint])
    for value, codes in ((0.99 * most, []), (0.99 * far, ["beyond-limits"] * (most < far)),
                         (1.01 * far, ["unit"])):  # fmt: skip
        values = np.where(np.arange(1000) % 8 == 0, 0.0, -value)  # seven of eight samples are so far
        found = list(check_limits(robot, recorded(**{where: values})))
        assert [one.code for one in found] == codes
        assert {one.evidence["90th percentile"] for one in found} <= {value}
        assert {one.severity for one in found} == {"error" if code == "unit" else "warning" for code in codes}
    for absent in ({}, {"effort": 0.0}):
        slide = dynid.Joint(name="j", kind="prismatic", parent="a", child="b", limits=JointLimits(**absent))
        free = dynid.Robot(name="r", links=robot.links, joints=[slide])
        assert not list(check_limits(free, recorded(1e3 * WAVE)))


TWO = np.column_stack([np.sin(2.0 * TIME), np.cos(3.0 * TIME + 1.0)])
RATES = np.column_stack([2.0 * np.cos(2.0 * TIME), -3.0 * np.sin(3.0 * TIME + 1.0)])


VELOCITIES = """
RATES ->
RATES[:, ::-1] -> swapped 1.5
-RATES -> flipped 1
5.1 * RATES -> unit 5.1
RATES / 5.1 -> unit 0.196
4.9 * RATES -> inconsistent 4.9
1.06 * RATES -> inconsistent 1.06
1.04 * RATES ->
0.96 * RATES ->
0.94 * RATES -> inconsistent 0.94
np.sin(np.outer(TIME, [5.0, 7.0])) -> inconsistent 0.5
"""
"""Velocities -> code, and how many times the derivatives of the positions they are."""


@pytest.mark.parametrize("case", VELOCITIES.strip().splitlines())
def test_velocities_are_compared_with_the_derivatives_of_the_positions(case: str) -> None:
    dq, _, wanted = case.partition(" ->")
    found = [f for f in check_signals(recorded(TWO, dq=eval(dq), effort=None)) if f.where == "dq"]
    code, *ratio = wanted.split() or [""]
    assert [one.code for one in found] == [code] * 2 * len(ratio)
    for one in found:
        assert one.severity == ("warning" if code == "inconsistent" else "error")
        assert one.joint == "joint2" or one.evidence["measured / derived"] == pytest.approx(float(ratio[0]), rel=0.03)


@pytest.mark.parametrize(("rows", "is_told"), [(40, True), (20, False)])
def test_an_encoder_that_hangs(rows: int, is_told: bool) -> None:
    held = TWO.copy()
    held[300 : 300 + rows, 1] = held[300, 1]
    found = [f for f in check_signals(recorded(held, dq=RATES, effort=None))
             if f.code == "frozen" and f.where == "q"]  # fmt: skip
    assert [one.joint for one in found] == ["joint2"] * is_told
    for one in found:
        missed = np.abs(RATES[300 : 299 + rows, 1]).sum() / 100.0
        assert one.evidence["motion missed [rad or m]"] == pytest.approx(missed, rel=0.01)


def test_lost_rows_are_told_with_their_places_and_number() -> None:
    rows = np.delete(np.arange(1000), np.r_[300:305, 700:702])
    found = [f for f in check_signals(recorded(TWO[rows], time=TIME[: rows.size], effort=None)) if f.where == "time"]
    (told_rows,) = told(found, "places", "rows lost", "first at [s]")
    assert told_rows == ("missing", "warning", [2, 7, pytest.approx(2.99)])


def test_what_looks_like_lost_rows_is_none() -> None:
    """Positions that are held and caught up, and a spike of one encoder; a lost row beside them is seen."""
    late = TWO.copy()
    late[500:503] = TWO[499]
    spike = TWO + 0.2 * (np.arange(1000) == 600)[:, None] * [0.0, 1.0]
    for q in (TWO, late, spike):
        noisy = q + 1e-5 * np.random.default_rng(3).normal(size=q.shape)
        for rows, places in ((np.arange(1000), []), (np.delete(np.arange(1000), np.r_[800:803]), [(1, 3, 7.99)])):
            log = recorded(noisy[rows], time=TIME[: rows.size], effort=None)
            found = told([f for f in check_signals(log) if f.where == "time"], "places", "rows lost", "first at [s]")
            assert [tuple(numbers) for _, _, numbers in found] == [pytest.approx(place) for place in places]


SHORT = slice(0, 15)
LOGS = """
->
q = np.where(TIME < 5.4978, WAVE, np.sin(10.9956)) + 1e-3 * NOISE -> rest note
q = 0.01 * NOISE -> frozen error, frozen warning
q = np.full(1000, np.nan) -> not-finite error
q = missing(0.5) -> not-finite error, unusable error
effort = np.full(1000, np.nan) -> not-finite error
time = TIME[::-1] -> backward-time error
isolated = True -> no-acceleration warning
time = TIME[SHORT]; q = WAVE[SHORT]; effort = WAVE[SHORT] -> unusable error
"""
"""Channels of a log -> code and severity of every finding: none is added where another explains the refusal."""


@pytest.mark.parametrize("case", LOGS.strip().splitlines())
def test_logs_that_stand_still_or_cannot_be_processed(case: str) -> None:
    planted, _, wanted = case.partition("->")
    channels = dict(one.split(" = ") for one in planted.strip().split("; ") if one)
    found = check_recording(recorded(**{name: eval(text, globals()) for name, text in channels.items()})).findings
    assert ", ".join(f"{one.code} {one.severity}" for one in found) == wanted.strip()
    for one in found:
        if one.code == "rest":
            assert one.evidence["seconds, mean over joints"] == pytest.approx(4.5, abs=0.1)
