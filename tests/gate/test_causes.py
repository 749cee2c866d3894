"""Causes within a log: named for the right joint with the right value; what the log cannot show is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from campaigns import hypotheses as campaign
from dynid.findings import Finding
from dynid.gate import causes, quality
from dynid.gate.causes import Cause
from dynid.gate.measured_samples import measured_samples
from dynid.gate.profiled_fit import Amounts, ProfiledFit, orthonormal
from dynid.gate.quality import check_recording
from dynid.gate.quick_fit import Samples, free_rows
from dynid.processing.experiment import Experiment
from dynid.processing.process import process


@pytest.mark.parametrize(
    ("kind", "seed"), [("nothing", 0), ("length", 7), ("zero", 3), ("gain", 3), ("tilt", 4), ("spring", 5), ("late", 7)]
)
def test_the_planted_cause_is_named_for_its_joint(kind, seed):
    case = campaign.make_case(kind, "rail", seed)
    word, off, text = campaign.judge(kind, case)
    assert word == "named", (case.joint, case.amount, case.ratio, text)
    assert np.isnan(off) or abs(off) < 4.0, (case.amount, text)


@pytest.mark.parametrize(("amount", "seed"), [(4.30, 320001), (5.69, 320016)])
def test_a_large_tilt_is_exact(amount, seed):
    """Parameters that were fitted without the tilt made it 3 % too large, and its error three times as large."""
    case = campaign.make_case("tilt", "snake", seed)
    assert case.amount == pytest.approx(amount, abs=0.01)
    (found,) = check_recording(case.log, case.robot).about("gravity-direction")
    value, error = list(found.evidence.values())[:2]
    assert abs(value - case.amount) < 3.0 * error < 0.01 * case.amount * 3.0


def test_friction_that_sticks_in_a_loop_is_no_late_joint_and_a_late_one_is_found():
    pytest.importorskip("mujoco")
    from campaigns import late_joints

    robot, table = late_joints.user_robot(), late_joints.table_of(1001)
    assert not late_joints.causes(robot, late_joints.recording(table))
    (found,) = late_joints.causes(robot, late_joints.recording(table, 0, 0.0105))
    assert (found.code, found.joint) == ("late-joint", "waist")
    value, error = list(found.evidence.values())[:2]
    assert abs(value - 10.5) < 3.0 * error < 3.0


@pytest.mark.parametrize(("kind", "name", "seed"), [("tilt", "rail", 50130), ("angle", "snake", 50206)])
def test_neither_a_changing_load_nor_a_delay_stands_for_another_cause(kind, name, seed):
    case = campaign.make_case(kind, name, seed)
    word, off, text = campaign.judge(kind, case)
    assert word == "named", (case.joint, case.amount, case.ratio, text)
    assert np.isnan(off) or abs(off) < 3.0
    assert "change" not in text


@pytest.mark.parametrize(
    ("kind", "rival", "deviations", "severity"),
    [
        ("zero", None, 8.0, "warning"), ("zero", "angle", 8.0, "note"), ("zero", "angle", 15.0, "warning"),
        ("zero", "spring", 15.0, "note"), ("tilt", "angle", 15.0, "note"),
    ],
)  # fmt: skip
def test_a_rival_makes_a_note_unless_a_joint_is_displaced_one_way_or_the_other(
    kind, rival, deviations, severity, monkeypatch
):
    monkeypatch.setattr(causes, "_shows_at_reversals", lambda *_: True)
    case = campaign.make_case("nothing", "rail", 1)
    samples = Samples.of(case.robot, process(case.log))
    pair = [Cause(kind, 1, np.zeros(1), np.zeros(6)), Cause(rival or "angle", 2, np.zeros(1), np.zeros(6))]
    value = np.array([0.05, samples.effort[:, 2].std() / samples.q[:, 2].std() if rival == "spring" else 0.05])
    gain = np.array([200.0, 190.0 if rival else 10.0])
    (found,) = causes.name_causes(case.robot, samples, pair, Amounts(value, value / deviations, gain))
    assert (found.code, found.severity) == (causes.KINDS[kind].code, severity)
    assert ("of joint3" in found.remedy) == (rival is not None)


def test_a_gain_that_only_reversals_tell_from_friction_is_noted():
    case = campaign.make_case("gain", "snake", 70039)
    word, off, text = campaign.judge("gain", case)
    assert word == "named", text
    assert abs(off) < 3.0
    assert all(f.severity == "note" for f in check_recording(case.log, case.robot).about("wrong-gain"))


def test_what_the_log_cannot_show_is_listed():
    case = campaign.make_case("nothing", "rail", 1)
    (note,) = check_recording(case.log, case.robot).about("untestable")
    # a turned zero of the last joint is another inertia of the last link, a longer first link another load on the rail
    assert "link1" in note.message
    assert "zero of joint4, joint5" in note.message
    assert note.severity == "note"
    assert "at the zero of 2 joints" in note.brief
    assert "joint4" not in note.brief


def test_a_gain_below_what_the_log_surely_shows_is_listed_with_that_size():
    case = campaign.make_case("gain", "rail", 140102)
    (note,) = check_recording(case.log, case.robot).about("untestable")
    assert f"gain of {case.joint}" in note.message
    assert abs(case.amount) < note.evidence[f"smallest error of the gain of {case.joint} [%]"]


def test_amounts_are_those_of_least_squares_with_all_columns():
    case = campaign.make_case("drift", "rail", 3)
    samples = measured_samples(case.robot, process(case.log), 600)
    fit = ProfiledFit.of(case.robot, samples)
    columns = np.stack([fit.at_joint(place, samples.q[:, place]) for place in range(2)], axis=1)
    found = fit.judge(columns)
    for k in range(2):
        joined = np.column_stack([fit.basis, columns[:, k] * fit.counted])
        expected = np.linalg.lstsq(joined, fit.residual, rcond=None)[0][-1]
        assert found.value[k] == pytest.approx(expected, rel=1e-6)
    hidden = fit.judge(fit.basis[:, :1])
    assert np.isnan(hidden.value[0])
    assert np.isinf(hidden.error[0])


@pytest.mark.parametrize("with_reversals", [True, False])
def test_a_fit_joint_by_joint_is_that_of_all_rows(with_reversals):
    case = campaign.make_case("drift", "rail", 3)
    samples = measured_samples(case.robot, process(case.log), 600)
    samples = replace(samples, jerk=None) if with_reversals else samples
    fit = ProfiledFit.of(case.robot, samples)
    assert (fit.slope is None) is with_reversals
    rows, torque = free_rows(case.robot, samples)
    rows, torque = rows * fit.counted[:, None], torque * fit.counted
    theta = np.linalg.lstsq(rows, torque, rcond=1e-8)[0]
    left = (torque - rows @ theta).reshape(len(samples.q), -1)
    spread = np.sqrt(np.sum(left**2, axis=0) / fit.counted.reshape(left.shape).sum(axis=0))
    np.testing.assert_allclose(fit.scale, samples.weight[samples.used] / np.maximum(spread, 1e-3), rtol=1e-6)
    weighted, tau = rows / np.tile(spread, len(left))[:, None], torque / np.tile(spread, len(left))
    theta = np.linalg.lstsq(weighted, tau, rcond=1e-8)[0]
    torques = (weighted @ theta).reshape(left.shape) / fit.scale
    np.testing.assert_allclose(fit.explained, torques, atol=1e-6 * np.abs(torques).max())
    np.testing.assert_allclose(fit.left(weighted), 0.0, atol=1e-6 * np.abs(weighted).max())


def test_orthonormal_columns_come_from_the_given_ones():
    rows = np.random.default_rng(0).normal(size=(50, 4)) @ np.diag([1.0, 1e-3, 1e3, 1.0])
    rows = np.column_stack([rows, rows[:, 0] + rows[:, 1]])
    Q, back = orthonormal(rows)
    assert Q.shape == (50, 4)
    assert np.allclose(Q.T @ Q, np.eye(4), atol=1e-9)
    assert np.allclose(rows @ back, Q, atol=1e-9)


def test_local_cubics_keep_torques_and_reduce_noise():
    case = campaign.make_case("nothing", "rail", 5)
    run = process(case.log)
    plain, fine = Samples.of(case.robot, run), measured_samples(case.robot, run, 600)
    rest = [ProfiledFit.of(case.robot, s) for s in (plain, fine)]
    spread = [np.sqrt(np.mean((f.residual.reshape(-1, 5) / f.scale) ** 2, axis=0)) for f in rest]
    assert (spread[1] < 0.8 * spread[0]).all()


@pytest.mark.parametrize(("samples", "step"), [(800, 1), (1380, 2), (3380, 4), (9100, 11)])
def test_picked_samples_tell_what_all_samples_tell(samples, step):
    robot, rng = campaign.believed("rail"), np.random.default_rng(step)
    time = np.arange(samples) / campaign.RATE_HZ
    slow = 0.1 * np.sin(0.3 * time)[:, None] * np.ones(robot.dof)
    noise = rng.normal(size=slow.shape)
    run = Experiment(
        time=time, q=slow, dq=0.3 * slow, ddq=-0.09 * slow, effort=noise, valid=np.ones(slow.shape, dtype=bool),
        segment=np.zeros(samples, dtype=np.int64), rate_hz=campaign.RATE_HZ,
    )  # fmt: skip
    picked = measured_samples(robot, run, 900)
    m = 2 * step + 1
    share = 1.0 if step == 1 else 3 * (3 * m**2 - 7) / (4 * m * (m**2 - 4))  # three samples: a parabola meets them all
    assert picked.effort.var() == pytest.approx(share, rel=0.08)
    assert len(picked.q) / share > 0.85 * samples


def _noted(code: str, severity: str) -> Finding:
    return Finding(code=code, severity=severity, where="model", message="the log fits better so", joint="joint2")


@pytest.mark.parametrize(("severity", "is_named"), [("note", True), ("warning", False), ("error", False)])
def test_a_note_of_a_unit_does_not_end_the_search_for_causes(severity, is_named, monkeypatch):
    """A motion that hardly shows another unit excludes no other cause; one that shows it makes the others worthless."""
    case = campaign.make_case("gain", "rail", 3)
    monkeypatch.setattr(quality, "check_hypotheses", lambda *_: iter([_noted("unit", severity)]))
    report = check_recording(case.log, case.robot)
    assert {f.severity for f in report.about("unit")} == {severity}
    assert ([f.joint for f in report.about("wrong-gain")] == [case.joint]) is is_named


@pytest.mark.parametrize("kind", ["gain", "nothing"])
def test_a_change_ends_the_search_unless_a_lasting_cause_explains_it(kind, monkeypatch):
    case = campaign.make_case(kind, "rail", 3)
    monkeypatch.setattr(quality, "check_changes", lambda *_: iter([_noted("change", "warning")]))
    codes = check_recording(case.log, case.robot).codes
    assert ("change" in codes, "wrong-gain" in codes) == ((True, False) if kind == "nothing" else (False, True))
