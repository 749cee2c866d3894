"""Faults of the set-up that stay in a result: terms that stand for one are warnings, causes that stay are no pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid import runs
from dynid.cli.screen import show_finding
from dynid.estimation.equations import build_equations
from dynid.estimation.linear.least_squares import WLS
from dynid.findings import Finding
from dynid.links.common.kept_faults import check_kept_terms, unmended
from dynid.links.identify import identify_equations
from dynid.processing.experiment import Experiment
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot.model import Robot
from dynid.robot.term_names import add_terms
from dynid.terms.base import Reference, Term
from dynid.terms.load_dependent import BaseTilt, CrossTalk, DriveGain

GAIN = 1.2


@pytest.fixture(scope="module")
def robot() -> Robot:
    """Three joints with friction."""
    return add_terms(dynid.robots.ddarm())


@pytest.fixture(scope="module")
def run(robot: Robot) -> Experiment:
    """A motion whose last torque is measured too large."""
    motion = sum_of_sines(3, seed=4)
    log = simulate_experiment(robot, motion, rate_hz=100, duration_s=12, noise=Noise(effort=0.02), seed=4)
    assert log.effort is not None
    return process(replace(log, effort=log.effort * np.array([1.0, 1.0, GAIN])))


def _findings(robot: Robot, run: Experiment, *terms: Term) -> list[Finding]:
    equations = build_equations(robot, [run], terms=terms)
    return [f for f in identify_equations(equations, WLS()).estimate.findings if f.code == "kept-fault"]


def test_a_kept_gain_is_a_warning_with_its_value(robot: Robot, run: Experiment) -> None:
    reference = Reference(robot.parameter_vector)
    found = _findings(robot, run, DriveGain(joint=2, reference=reference))
    assert [finding.severity for finding in found] == ["warning"]
    name = robot.joint_names[2]
    assert f"the torque of '{name}' is measured too large by" in found[0].message
    assert found[0].evidence["KG3 [%]"] == pytest.approx(100.0 * (GAIN - 1.0), abs=3.0)


def test_each_kind_has_its_own_finding(robot: Robot, run: Experiment) -> None:
    reference = Reference(robot.parameter_vector)
    terms = (
        DriveGain(joint=2, reference=reference),
        BaseTilt(axis=0, reference=reference),
        CrossTalk(joint=0, source=1, reference=reference),
    )
    found = {finding.remedy.split(",")[0]: finding for finding in _findings(robot, run, *terms)}
    assert set(found) == {
        "Measure how the robot stands",
        "Check the gain",
        "Check the sensors and the order of the joints; a spring or a cable may look the same.",
    }
    assert found["Check the gain"].severity == "warning"
    for kind in (
        "Measure how the robot stands",
        "Check the sensors and the order of the joints; a spring or a cable may look the same.",
    ):  # nothing of this was planted
        (value,) = found[kind].evidence.values()
        assert abs(value) < 1.0


def test_no_finding_without_such_terms(robot: Robot, run: Experiment) -> None:
    assert _findings(robot, run) == []


def _named(code: str, severity: str = "warning") -> Finding:
    return Finding(code=code, severity=severity, where="effort", message=f"there is {code}", remedy="x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "code",
    ["unsynchronised", "late-joint", "drifting-offset", "change", "push", "clock-scale", "run-drifts"],
)
def test_causes_that_stay_are_doubts(code: str) -> None:
    assert unmended([_named(code), _named(code)], ()) == (f"there is {code}",)
    of_log = replace(_named(code), where="second.csv: model", joint="joint2")
    assert unmended([of_log], ()) == (f"second.csv: joint2: there is {code}",)
    assert unmended([_named(code, "note")], ()) == ()
    mended = () if "drift" in code else (f"there is {code}",)
    assert unmended([_named(code)], ("trend",)) == mended


def test_a_delay_that_is_named_and_not_mended_is_not_called_passed(robot: Robot) -> None:
    noise = Noise(effort=0.05)
    logs = [simulate_experiment(robot, sum_of_sines(3, seed=s), rate_hz=100, duration_s=12, noise=noise, seed=s)
            for s in (1, 2)]  # fmt: skip
    late = [replace(log, effort=np.roll(log.effort, 2, axis=0)) for log in logs if log.effort is not None]  # 20 ms
    recipe = dynid.Recipe(selection=None, estimator="wls", limit_percent=30.0)
    prior = dynid.robots.ddarm()
    prior = prior.with_parameters(1.3 * prior.parameter_vector)
    found = runs.run(runs.Identify(prior, late[:1], recipe, late[1:])).validation
    assert found is not None
    assert found.relative_error < found.limit
    assert not found.passed
    assert found.verdict.startswith("not passed: ")
    assert "the torques are delayed by" in found.verdict
    mended = runs.run(runs.Identify(prior, late[:1], replace(recipe, delay_s=0.02), late[1:])).validation
    assert mended is not None
    assert mended.passed


def test_a_value_far_below_its_error_is_not_printed(robot: Robot, run: Experiment) -> None:
    term = DriveGain(joint=2, reference=Reference(robot.parameter_vector))
    estimate = identify_equations(build_equations(robot, [run], terms=(term,)), WLS()).estimate
    vague = replace(estimate, covariance=estimate.covariance * 1e8)
    (found,) = check_kept_terms(robot, (term,), vague)
    assert found.severity == "note"
    assert found.message.startswith("the model holds a wrong gain of a torque, which the logs do not surely show")
    assert "+-" not in found.message


def test_a_note_names_its_log(capsys: pytest.CaptureFixture[str]) -> None:
    note = Finding(code="change", severity="note", where="b.csv: model", message="the load on axis6 changes")
    show_finding(note)
    show_finding(replace(note, where="model", joint="axis6"))
    assert capsys.readouterr().err.splitlines() == [
        "note: b.csv: the load on axis6 changes",
        "note: axis6: the load on axis6 changes",
    ]


def test_runs_with_different_loads_do_not_pass() -> None:
    load = Finding(code="run-load", severity="warning", where="b.csv", message="b.csv differs: as if it held 1 kg more")
    assert unmended([load], ()) == (load.message,)
    assert unmended([replace(load, code="runs-differ")], ()) == ()
