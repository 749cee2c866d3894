"""Several logs of one robot judged together: what one log does not show is named, clean logs are not accused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from campaigns import fault_injection, faults_within
from dynid.findings import Finding, QualityReport
from dynid.gate import causes as gate_causes
from dynid.gate.measured_samples import measured_samples
from dynid.gate.profiled_fit import ProfiledFit, logs_of
from dynid.gate.within_log import LOAD_BLOCKS, _gain_in, _joined, _of_most_groups, _parts, check_together
from dynid.links.log_reader import LogReader
from dynid.links.recipe import Recipe
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.processing.process import Chain, Processing, process
from dynid.robot.model import Robot

NAME = "puma560"


def logs(*, seeds=(660000, 660001)) -> list[Recording]:
    return [fault_injection.clean_log(NAME, seed) for seed in seeds]


def together(recordings: list[Recording], told: list[list[Finding]] | None = None) -> list[tuple[int | None, Finding]]:
    runs: list[Experiment | None] = [process(log) for log in recordings]
    return check_together(fault_injection.believed(NAME), runs, told or [[] for _ in runs])


def scaled(log: Recording, joint: int, factor: float) -> Recording:
    return replace(log, effort=log.effort * np.where(np.arange(log.q.shape[1]) == joint, factor, 1.0))


def drifting(log: Recording, joint: int, share: float) -> Recording:
    effort = np.array(log.effort)
    effort[:, joint] += share * effort[:, joint].std() * np.linspace(0.0, 1.0, len(effort))
    return replace(log, effort=effort)


def test_clean_logs_are_not_accused():
    assert together(logs()) == []


def test_offsets_and_delays_of_their_own_are_no_fault():
    first, second = logs()
    other = replace(second, effort=second.effort + 3.0)
    late = fault_injection.clean_log(NAME, 660001, delay_s=0.002)
    assert together([first, other]) == []
    assert together([first, late]) == []


def test_one_log_says_nothing():
    assert together([scaled(logs()[0], 1, 0.7)]) == []
    robot = fault_injection.believed(NAME)
    assert check_together(robot, [process(scaled(logs()[0], 1, 0.7)), None], [[], []]) == []


def test_a_gain_is_one_value_for_all_logs():
    ((place, found),) = together([scaled(log, 1, 0.8) for log in logs()])
    assert (place, found.code, found.joint) == (None, "wrong-gain", "joint2")
    value, error = list(found.evidence.values())[:2]
    assert abs(value + 20.0) < 3.0 * error < 3.0
    assert found.evidence["logs"] == 2


def test_a_drift_belongs_to_its_log():
    first, second = logs()
    ((place, found),) = together([drifting(first, 2, 0.5), second])
    assert (place, found.code, found.joint) == (0, "drifting-offset", "joint3")
    value, error = list(found.evidence.values())[:2]
    planted = 0.5 * first.effort[:, 2].std() * 60.0 / (first.time[-1] - first.time[0])
    assert abs(value - planted) < 4.0 * error


def test_a_load_of_a_whole_log_and_one_that_comes_and_goes_are_told_apart():
    first, second = logs()
    third = fault_injection.clean_log(NAME, 660002)
    case = faults_within.Case(fault_injection.believed(NAME), [second], None)
    extra = faults_within._with_loads(case, 1.0, np.random.default_rng(3)).logs[0]
    ((place, found),) = together([first, extra, third])
    assert (place, found.code) == (1, "change")
    assert "changes during the log" in found.message
    whole = replace(second, effort=second.effort + _load_torque(second, 3.0))
    ((place, found),) = together([first, whole, third])
    assert (place, found.code) == (1, "change")
    assert "another one than in the other logs" in found.message


def _load_torque(log: Recording, mass: float) -> np.ndarray:
    arm = fault_injection.believed(NAME).with_terms()
    inertia = dynid.Inertia.from_com(mass, (0.0, 0.0, 0.1), 0.01 * mass * np.eye(3))
    loaded = arm.with_body("load", parent=arm.moving_joints[-1].child, inertia=inertia)
    states = [np.ascontiguousarray(x) for x in fault_injection.path_of(NAME, 660001)(np.asarray(log.time))]
    return dynid.inverse_dynamics(loaded, *states) - dynid.inverse_dynamics(arm, *states)


def test_many_logs_are_judged_in_groups():
    """More than eight: a gain that all have is said once, and a load of one log is found among its group."""
    many = logs(seeds=range(660000, 660010))
    ((place, found),) = together([scaled(log, 1, 0.8) for log in many])
    assert (place, found.code, found.joint, found.evidence["logs"]) == (None, "wrong-gain", "joint2", 5)
    loaded = replace(many[1], effort=many[1].effort + _load_torque(many[1], 3.0))
    ((place, found),) = together([many[0], *many[2:], loaded])
    assert (place, found.code) == (9, "change")


def test_what_few_groups_show_of_the_robot_is_not_said():
    def found(place: int | None, joint: str) -> tuple[int | None, Finding]:
        return place, Finding(code="wrong-gain", severity="note", where="effort", message="", joint=joint)

    named = [found(None, "joint2"), found(4, "joint3"), found(None, "joint2"), found(None, "joint5")]
    assert _of_most_groups(named, groups=3) == named[:2]


def test_what_a_log_was_found_to_have_is_not_said_again():
    wrong = [scaled(log, 1, 0.8) for log in logs()]
    ((_, found),) = together(wrong)
    assert together(wrong, [[], [replace(found, evidence={})]]) == []


def test_a_property_that_differs_between_logs_is_none():
    first, second = logs()
    found = together([scaled(first, 1, 0.8), scaled(second, 1, 1.2)])
    assert not any(finding.code == "wrong-gain" and finding.joint == "joint2" for _, finding in found)


def test_a_property_counts_by_its_standard_errors_per_log():
    robot = fault_injection.believed(NAME)
    parts = [measured_samples(robot, process(log), 300) for log in logs()]
    samples = _joined(parts)
    fit = ProfiledFit.of(robot, samples)
    causes, amounts = gate_causes.find_causes(robot, samples, fit)
    plain = np.abs(np.nan_to_num(amounts.value)) / amounts.error
    scale = np.array([1.0 if cause.kind == "drift" else np.sqrt(2.0) for cause in causes])
    np.testing.assert_allclose(gate_causes._deviations(samples, causes, amounts), plain / scale)
    assert sorted({cause.log for cause in causes if cause.kind == "drift"}) == [0, 1]
    assert {cause.log for cause in causes if cause.kind != "drift"} == {None}


def test_the_gain_of_a_load_is_that_of_all_columns():
    robot = fault_injection.believed(NAME)
    samples = _joined([measured_samples(robot, process(log), 300) for log in logs()])
    fit = ProfiledFit.of(robot, samples)
    own = np.random.default_rng(0).normal(size=(len(fit.residual), 4))
    rows = np.flatnonzero(np.repeat(logs_of(samples)[1], len(fit.joints)))
    gain, held = _gain_in(_parts(rows, len(fit.joints)), own * fit.counted[:, None], fit)
    ends = rows[0] + len(fit.joints) * np.linspace(0, len(rows) // len(fit.joints), LOAD_BLOCKS + 1).astype(int)
    mine = np.zeros(len(fit.residual))
    for k in np.flatnonzero(held):
        mine[ends[k] : ends[k + 1]] = 1.0
    joined = np.column_stack([fit.basis, own * (mine * fit.counted)[:, None]])
    rest = fit.residual - joined @ np.linalg.lstsq(joined, fit.residual, rcond=None)[0]
    assert gain == pytest.approx(fit.residual @ fit.residual - rest @ rest, rel=1e-6)


def _check_nothing(recording: Recording, options: Processing, _: Robot) -> tuple[QualityReport, Chain]:
    return QualityReport.of(recording.source, []), Chain.start(recording, options)


@pytest.mark.parametrize("gate", [True, False])
def test_an_identification_reports_what_its_logs_show_together(gate):
    """The gate of each log is silenced: what is told comes from all logs."""
    told: list[Finding] = []
    first, second = logs()
    recipe = replace(Recipe.bare(), gate=gate)
    reader = LogReader(robot=fault_injection.planted(NAME), recipe=recipe, notice=told.append, check=_check_nothing)
    reader.training_and_proof([first, drifting(second, 2, 0.5)])
    found = [(finding.code, finding.joint) for finding in told if finding.code == "drifting-offset"]
    assert found == ([("drifting-offset", "joint3")] if gate else [])
