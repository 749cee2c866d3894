"""Bands, tails and alarms against noise whose law is known, and against planted pushes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

import dynid
from dynid.errors import ArgumentError, DataError
from dynid.monitor.alarm_tails import Tail, find_peaks, fit_tail
from dynid.monitor.alarms import Alarm, find_alarms, watch_experiment
from dynid.monitor.bands import fit_band
from dynid.monitor.calibration import KINDS, Calibration, calibrate, calibrate_stretches, follow
from dynid.monitor.jumps import fit_whitening, project_steps
from dynid.monitor.watched_signals import WatchedStretch, common_rate, find_stale, watched_stretches
from dynid.processing.experiment import Experiment
from dynid.processing.simulation import sum_of_sines
from support.small_fit import small_fit

RATE = 100.0


def stretch(seconds: float, seed: int, *, memory: float = 0.9, at_rest: float = 0.0) -> WatchedStretch:
    """Two joints with coloured noise of standard deviation one; near rest its variance grows by ``at_rest``."""
    rng = np.random.default_rng(seed)
    count = round(seconds * RATE)
    white = rng.normal(size=(count, 2)) * np.sqrt(1.0 - memory**2)
    white[0] = rng.normal(size=2)
    noise = lfilter([1.0], [1.0, -memory], white, axis=0)
    time = np.arange(count) / RATE
    dq = np.column_stack([np.sin(time), np.cos(0.7 * time)])
    noise *= np.sqrt(1.0 + at_rest * np.exp(-((dq / 0.1) ** 2)))
    zeros = np.zeros_like(dq)
    return WatchedStretch(
        time=time,
        rate_hz=RATE,
        raw=noise,
        dq=dq,
        torque=10.0 + zeros,
        spread=zeros,
        spread_without_offsets=zeros,
        friction=np.sign(dq),
        expected=np.sign(dq),
        stale=np.zeros(count, dtype=bool),
    )


class Named:
    """What a calibration reads of an identification: the names of the joints."""

    robot = small_fit()[0].robot


@cache
def calibration() -> Calibration:
    clean = [stretch(120.0, seed=1)]
    return replace(calibrate_stretches(Named, clean), joint_names=("joint1", "joint2"))


OFFSETS = (20.0, -15.0, 2.0, -9.0, 8.0)
"""Offsets of the first joint in five runs, twenty times the noise."""


def offset_stretch(seconds: float, seed: int, offset: float) -> WatchedStretch:
    """Two joints, the first one with an offset of its run."""
    one = stretch(seconds, seed)
    unknown = np.array([100.0, 0.0])  # variance that the fit gives to its offset
    return replace(one, raw=one.raw + np.array([offset, 0.0]), spread=one.spread + unknown)


@cache
def calibration_of_runs(offsets: tuple[float, ...] = OFFSETS, *, of_fit: bool = True) -> Calibration:
    clean = [replace(offset_stretch(40.0, 10 + run, offset), run=run) for run, offset in enumerate(offsets)]
    known = calibrate_stretches(Named, clean, of_fit=of_fit)
    return replace(known, joint_names=("joint1", "joint2"))


def alarms_in(known: Calibration, one: WatchedStretch, per_hour: float = 1.0) -> list[Alarm]:
    return list(find_alarms(known.statistics(one), known.joint_names, known.levels(per_hour)))


def test_offsets_that_differ_between_runs_do_not_blind_a_watch() -> None:
    """The band is that within a run, a slow push below the offsets is seen, and what pushes is no offset."""
    known = calibration_of_runs()
    np.testing.assert_array_equal(known.offsets.differ, [True, False])
    usual = np.std(OFFSETS, ddof=1) * np.sqrt(1.0 + 1.0 / len(OFFSETS))
    widest = usual * np.sqrt(4.0 / 0.297)  # chi square of four degrees of freedom, 1 % below
    np.testing.assert_allclose(np.sqrt(known.offsets.variance[0]), widest, rtol=0.01)
    np.testing.assert_allclose(known.typical_std, 1.0, rtol=0.3)
    clean = offset_stretch(60.0, 3, 17.0)
    found = known.statistics(clean)
    np.testing.assert_allclose(found.external[-1000:, 0].mean(), 0.0, atol=0.3)
    assert np.median(found.std[1000:, 0]) < 1.5
    assert not alarms_in(known, clean)
    push = 10.0 * np.sin(np.pi * np.clip((clean.time - 30.0) / 1.0, 0.0, 1.0))
    pushed = replace(clean, raw=clean.raw + push[:, None] * [1.0, 0.0])
    (alarm,) = alarms_in(known, pushed)
    assert (alarm.joint, 30.0 < alarm.time_s < 30.5) == ("joint1", True)
    np.testing.assert_allclose(known.statistics(pushed).external[-1000:, 0].mean(), 0.0, atol=0.3)


def test_runs_that_agree_have_no_offsets_of_their_own() -> None:
    """Then nothing is learnt, and a torque that is there from the beginning on stays a disturbance."""
    known = calibration_of_runs((0.0,) * 5)
    assert not known.offsets.differ.any()
    assert not list(known.sight(1.0).findings)
    found = known.statistics(offset_stretch(10.0, 3, 0.0))
    np.testing.assert_array_equal(found.external, follow(found.stretch.raw, np.exp(-100.0 / RATE)))
    (alarm,) = alarms_in(known, replace(found.stretch, raw=found.stretch.raw + np.array([90.0, 0.0])))
    assert alarm.time_s < 0.1


def test_pushes_that_a_watch_says_to_see_are_seen() -> None:
    """Nineteen of twenty of the stated size, and hardly any of a third of it."""
    known = calibration_of_runs()
    sight, levels = known.sight(60.0), known.levels(60.0)
    assert "on joint1" in sight.sentence
    (finding,) = sight.findings
    assert finding.code == "watch-offsets"
    assert finding.evidence.keys() == {"joint1"}
    assert 200.0 < finding.evidence["joint1"] < 800.0  # before anything is learnt
    clean = offset_stretch(400.0, 4, -12.0)
    for factor, least, most in ((1.0, 0.8, 1.0), (1.0 / 3.0, 0.0, 0.25)):
        raw = clean.raw.copy()
        onsets = np.arange(1000, len(raw) - 100, 400)
        for k in onsets:
            raw[k : k + 100] += factor * sight.sudden
        excess = known.statistics(replace(clean, raw=raw)).excess(levels)["contact"]
        seen = np.mean([(excess[k : k + 3] > 1.0).any(axis=0) for k in onsets])
        assert least <= seen <= most
    calm = np.abs(clean.dq) > 0.2
    for j in range(2):
        push = sight.slow[j] * np.eye(2)[j]
        slow = (
            np.abs(known.statistics(clean).external[10000:, j] + push[j])
            > levels.band * (known.level_scale * known.typical_std)[j]
        )
        assert slow[calm[10000:, j]].mean() > 0.9


def test_false_alarms_stay_within_the_stated_rate() -> None:
    """Twenty minutes of noise that the calibration has not seen, at one alarm a minute."""
    known = calibration()
    clean = stretch(1200.0, seed=2)
    assert len(alarms_in(known, clean, 60.0)) <= 2 * 20
    often = 0.2  # [1/s] within the calibrated data, so that the law must hold in both directions
    for excess in known.statistics(clean).excess(known.levels(KINDS * often * 3600.0)).values():
        assert 0.5 < len(find_peaks(excess.max(axis=1), RATE, 1.0)) / (often * 1200.0) < 2.0


def test_the_band_is_wider_near_rest_where_the_noise_is() -> None:
    seen = stretch(120.0, seed=4, at_rest=24.0)
    band = fit_band([seen])
    std = band.std(replace(seen, friction=0.0 * seen.friction))
    resting, moving = np.abs(seen.dq[:, 0]) < 0.03, np.abs(seen.dq[:, 0]) > 0.5
    assert 3.0 < np.median(std[resting, 0]) < 7.0
    assert 0.7 < np.median(std[moving, 0]) < 1.4


def test_friction_that_may_change_at_rest_is_no_contact_but_more_is() -> None:
    """Until a joint moves at a tenth of its speed, friction goes from end to end at once; a push goes beyond it."""
    known, seen = calibration(), stretch(20.0, seed=10, memory=0.0)
    assert known.band.largest_friction_step == pytest.approx([2.0, 2.0])
    for size, share, is_found in ((2.0, 0.0, False), (2.0, 0.05, False), (2.0, 0.2, True), (12.0, 0.0, True)):
        raw = 0.02 * seen.raw
        raw[1000:, 0] += size
        speed = np.where(np.arange(len(raw)) < 980, 0.0, share)[:, None] * known.band.high_speed
        resting = replace(seen, raw=raw, dq=speed, expected=np.zeros_like(raw))
        assert any(a.kind == "contact" for a in alarms_in(known, resting, 60.0)) == is_found


def test_a_break_of_the_expected_torque_widens_the_news_of_every_joint_it_reaches() -> None:
    """Errors of a drive that moves two joints come when the drive turns, whatever the joints themselves do."""
    rng = np.random.default_rng(4)
    seen = stretch(120.0, seed=11)
    expected = np.zeros_like(seen.dq)
    turns = np.arange(50, len(expected), 130)
    for k in turns:
        expected[k:, 0] = 1.0 - expected[k - 1, 0]
        seen.raw[k, 0] += 8.0 * rng.normal()
    known = calibrate_stretches(Named, [replace(seen, expected=expected)])
    std = known.innovation_std(replace(seen, expected=expected))
    assert np.median(std[turns, 0]) > 4.0 * np.median(std[turns - 20, 0])
    assert np.median(std[turns, 1]) < 2.0 * np.median(std[turns - 20, 1])


def test_whitened_noise_is_white() -> None:
    residual = stretch(300.0, seed=6).sudden
    new = fit_whitening([residual], RATE).innovations(residual)
    assert np.abs((new[1:] * new[:-1]).mean(axis=0)).max() < 0.03
    assert np.allclose(new.var(axis=0), 1.0, atol=0.05)


def test_the_projection_on_pure_noise_has_unit_variance() -> None:
    whitening = fit_whitening([stretch(300.0, seed=7).sudden], RATE)
    residual = stretch(100.0, seed=8).sudden
    one = replace(whitening, rate_hz=40.0)  # a window of one period
    projected, _ = project_steps(one, residual, np.ones_like(residual))
    assert np.mean(projected[:, one.settling :] ** 2, axis=(1, 2)) == pytest.approx([1.0], abs=0.1)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.5, 5.0), st.floats(0.1, 2.0), st.floats(-0.2, 0.5, allow_subnormal=False), st.floats(1e-4, 0.9))
def test_level_and_rate_are_inverse(threshold: float, scale: float, shape: float, rate_hz: float) -> None:
    laws = np.array([scale, 1.5 * scale]), np.array([shape, 0.0]), np.array([0.4, 0.6])
    tail = Tail(threshold, 1.0, *laws)
    assert tail.rate(tail.level(rate_hz)) == pytest.approx(rate_hz, rel=1e-6)


def test_rates_hold_on_average_over_short_calibrations() -> None:
    """A minute of exponential values, one a second: their true rate above a level is ``exp(-level)``."""
    rng = np.random.default_rng(0)
    for rate_hz in (0.1, 0.01):  # within a minute, and beyond it
        levels = [fit_tail([rng.exponential(size=(60, 1))], 1.0).level(rate_hz) for _ in range(40)]
        assert 0.5 < np.exp(-np.array(levels)).mean() / rate_hz < 2.0


def test_heavy_tails_are_told_from_light_ones() -> None:
    rng = np.random.default_rng(1)
    heavy = fit_tail([rng.pareto(3.0, size=(2000, 1))], 1.0)
    light = fit_tail([rng.uniform(size=(2000, 1))], 1.0)
    assert heavy.shapes @ heavy.weights > 0.15
    assert light.shapes @ light.weights < -0.15
    with pytest.raises(DataError, match="too short"):
        fit_tail([np.ones((3, 1))], 1.0)


def test_lost_samples_of_a_moving_arm_are_no_push() -> None:
    time = np.arange(60) / RATE
    torque = np.column_stack([np.sin(9.0 * time), np.cos(9.0 * time)])
    repeated, filled = torque.copy(), torque.copy()
    repeated[30:34] = repeated[29]
    filled[30:34] = filled[29] + np.arange(1, 5)[:, None] / 5.0 * (filled[34] - filled[29])
    moving = np.ones_like(torque)
    assert not find_stale(torque, moving).any()
    assert np.flatnonzero(find_stale(repeated, moving)).tolist() == list(range(30, 37))
    assert np.flatnonzero(find_stale(filled, moving)).tolist() == list(range(31, 38))
    assert not find_stale(repeated, 0.0 * moving).any()  # a robot at rest repeats itself


def test_a_watch_over_a_pushed_experiment_names_joint_time_and_kind() -> None:
    fit, run = small_fit()
    known = calibrate(fit)
    assert watch_experiment(fit, run, known, per_hour=1.0).alarms == ()
    pushed = np.array(run.effort)
    pushed[300:, 1] -= 3.0  # the drive yields by what pushes: 3 N m from outside
    found = watch_experiment(fit, replace(run, effort=pushed), known, per_hour=1.0)
    first = found.alarms[0]
    assert (first.joint, first.kind) == ("joint2", "contact")
    assert run.time[300] <= first.time_s <= run.time[300] + 0.03
    slow = np.array(run.effort)
    slow[:, 2] -= np.linspace(0.0, 3.0, len(slow))
    kinds = {(a.joint, a.kind) for a in watch_experiment(fit, replace(run, effort=slow), known, per_hour=1.0).alarms}
    assert ("joint3", "disturbance") in kinds
    assert ("joint3", "contact") not in kinds
    assert found.to_json()["alarms"]
    assert "expected" in found.summary()


def alarms_of(*pushes: Callable[[np.ndarray], np.ndarray]) -> list[Alarm]:
    """The alarms of a stretch with a push on joint 1 over time, and perhaps one on joint 2."""
    clean = stretch(30.0, seed=5)
    pushed = replace(clean, raw=clean.raw.copy())
    for joint, push in enumerate(pushes):
        pushed.raw[:, joint] += push(clean.time)
    return alarms_in(calibration(), pushed)


def test_letting_go_is_the_end_of_a_contact_and_no_other_one() -> None:
    (alarm,) = alarms_of(lambda time: 15.0 * ((time >= 10.0) & (time < 12.0)))
    assert (alarm.kind, alarm.joint) == ("contact", "joint1")
    assert alarm.until_s == pytest.approx(12.0, abs=0.05)
    assert alarm.torque == pytest.approx(15.0, abs=1.0)
    assert alarm.excess > 1.5


def test_what_pushes_on_or_pushes_back_is_no_end() -> None:
    (held,) = alarms_of(lambda time: 15.0 * (time >= 10.0))
    assert held.until_s is None
    turned = alarms_of(lambda time: 15.0 * ((time >= 10.0) & (time < 12.0)) - 15.0 * ((time >= 12.0) & (time < 14.0)))
    assert [(round(alarm.time_s), np.sign(alarm.torque)) for alarm in turned] == [(10, 1.0), (12, -1.0)]
    assert turned[1].until_s == pytest.approx(14.0, abs=0.05)


def test_a_verdict_says_what_was_not_watched() -> None:
    fit, run = small_fit()
    known = calibrate(fit)
    lost = np.array(run.effort)
    lost[200:260, 0] = np.nan
    lost[300:, 1] -= 3.0
    found = watch_experiment(fit, replace(run, effort=lost, valid=np.isfinite(lost)), known)
    ((begin, end),) = found.gaps
    assert begin == pytest.approx(run.time[199])
    assert run.time[260] <= end <= run.time[262]
    assert f"without {begin:.2f} to {end:.2f} s" in found.verdict
    assert watch_experiment(fit, run.rows(slice(0, 10)), known).verdict.startswith("nothing was watched")


def test_a_watch_runs_at_the_rate_of_its_calibration() -> None:
    fit, run = small_fit()
    quick = replace(run, time=run.time / 2.0, rate_hz=2.0 * run.rate_hz)  # only clock and rate are looked at
    assert common_rate([run, quick]) == run.rate_hz
    assert common_rate([replace(run, rate_hz=1001.0)]) == 1001.0  # a clock that was read from stamps
    assert common_rate([replace(run, rate_hz=3000.0)]) == 1000.0
    known = calibrate(fit)
    (own,), (halved,) = (list(watched_stretches(fit, one, known.rate_hz)) for one in (run, quick))
    assert own.rate_hz == halved.rate_hz == known.rate_hz
    assert len(halved.time) == len(own.time) // 2
    with pytest.raises(DataError, match=r"samples a second, and the watch was calibrated at .* Hz"):
        watch_experiment(fit, replace(run, rate_hz=0.7 * run.rate_hz), known)


def test_the_noise_of_a_quicker_log_is_that_of_the_calibration() -> None:
    fit, _ = small_fit()

    def clean(rate_hz: float, seed: int) -> Experiment:
        noise = dynid.Noise(effort=0.1)
        log = dynid.simulate_experiment(
            fit.robot.with_parameters(fit.standard), sum_of_sines(3, seed=seed), rate_hz=rate_hz, duration_s=30,
            noise=noise, seed=seed,
        )  # fmt: skip
        return dynid.process(log, cutoff_hz=10, filter_effort=False)

    known = calibrate(fit, [clean(100.0, 3)])
    for rate_hz in (100.0, 200.0, 400.0):
        (one,) = watched_stretches(fit, clean(rate_hz, 4), known.rate_hz)
        assert one.rate_hz == known.rate_hz
        # the means of two or four samples have 1.4 to 1.8
        np.testing.assert_allclose(known.whitening.innovations(one.sudden).std(axis=0), 1.0, atol=0.15)


def test_a_push_beyond_the_first_joint_ends_with_the_last_one() -> None:
    """One joint's share passes through zero, the other pushes on."""
    found = alarms_of(
        lambda time: 15.0 * ((time >= 10.0) & (time < 11.0)), lambda time: 15.0 * ((time >= 10.0) & (time < 13.0))
    )
    assert found[0].until_s == pytest.approx(13.0, abs=0.05)
    assert not [alarm for alarm in found if alarm.time_s > 12.0]


def test_a_result_from_a_file_has_nothing_to_calibrate_from(tmp_path) -> None:
    fit, _ = small_fit()
    saved = dynid.read_result(dynid.write_result(fit, tmp_path / "result.json")).identification()
    with pytest.raises(ArgumentError, match="no samples"):
        calibrate(saved)
