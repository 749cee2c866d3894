"""From recording to experiment: rest, trimming, masks, thinning, periods, streams, isolated rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import ArgumentError, DataError
from dynid.logs.recording import Recording
from dynid.processing.outliers import run_lengths, saturated_samples
from dynid.processing.process import PreparedLog, Processing, process, share_cutoff
from dynid.processing.simulation import sum_of_sines
from dynid.processing.streaming import process_stream

PATH = sum_of_sines(2, period_s=4.0, harmonics=4, amplitude=0.8, seed=2)


def make(rate_hz: float = 200.0, duration_s: float = 12.0, noise: float = 1e-5, seed: int = 0) -> Recording:
    time = np.arange(int(duration_s * rate_hz)) / rate_hz
    q, dq, ddq = PATH(time)
    rng = np.random.default_rng(seed)
    effort = ddq + 2.0 * dq + np.sin(q) + 0.01 * rng.normal(size=q.shape)
    return Recording(time=time, q=q + noise * rng.normal(size=q.shape), dq=dq, effort=effort)


def test_an_experiment_tells_every_step():
    log = make()
    log = replace(log, time=log.time + 5e-5 * (-1.0) ** np.arange(log.time.size))  # steps scatter by 2 % of 5 ms
    run = process(log, effort_delay_s=0.003, dead_band=0.05, rate_hz=100.0, cutoff_hz=8.0)
    steps = " | ".join(run.processing_steps)
    for word in (" Hz, step scatter 2 % of a period, 1 gap-free stretch |", "cutoff 8 Hz", "CentralDifferences",
                 "(Butterworth, order 4) on positions, torques and wrenches", "moved back by 3 ms", "0.24 s trimmed",
                 "every 2th sample kept", "rest longer than 0.5 s", "rows slower than 0.05"):  # fmt: skip
        assert word in steps
    whole = process(make(), cutoff_hz=8.0)
    assert whole.dropped["filter transient"] == 2 * (make().time.size - whole.samples) > 0


def test_final_rest_is_left_out_and_counted():
    moving = make()
    stop = np.repeat(moving.q[-1:], 400, axis=0)
    time = np.arange(len(moving.time) + 400) / 200.0
    log = Recording(time=time, q=np.vstack([moving.q, stop]), effort=np.vstack([moving.effort, 0 * stop]))
    experiment = process(log, cutoff_hz=8.0)
    resting = experiment.time > 12.3
    assert resting.any()
    assert not experiment.valid[resting].any()
    assert experiment.valid[experiment.time < 11.5].mean() > 0.95
    assert experiment.dropped["at rest"] == pytest.approx(2 * 400, rel=0.2)
    assert process(log, cutoff_hz=8.0, rest=None).valid.all()
    assert process(log, cutoff_hz=8.0, rest=5.0).valid.all()


@pytest.mark.parametrize("std", [1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("cutoff", ["auto", 8.0, None])
def test_noise_is_no_motion(std, cutoff):
    moving, rng = make(), np.random.default_rng(0)
    q = moving.q + std * rng.normal(size=moving.q.shape)
    q[:, 1] = 0.3 + std * rng.normal(size=len(q))
    experiment = process(replace(moving, q=q), cutoff_hz=cutoff)
    assert experiment.valid[:, 0].mean() > 0.95
    assert not experiment.valid[:, 1].any()


def test_a_stream_waits_for_the_first_motion():
    moving, rng = make(), np.random.default_rng(0)
    q = moving.q + 1e-4 * rng.normal(size=moving.q.shape)
    q[:1600, 1] = q[1600, 1] + 1e-4 * rng.normal(size=1600)
    log = replace(moving, q=q)
    chunks = (log.rows(slice(k, k + 400)) for k in range(0, len(q), 400))
    parts = list(process_stream(chunks, Processing(cutoff_hz=8.0)))
    time = np.concatenate([part.time for part in parts])
    valid = np.concatenate([part.valid for part in parts])
    assert valid[:, 0].mean() > 0.95
    assert not valid[time < 5.0, 1].any()
    assert valid[time > 8.5, 1].mean() > 0.9


def test_a_slow_drift_and_a_small_motion_in_loud_noise_are_motion():
    """A straight line has no band of its own in the spectrum, and the joint moves all the same."""
    moving, noise = make(), 1e-4 * np.random.default_rng(0).normal(size=(2400, 2))
    for slow in (0.05 * moving.time, 3e-4 * np.sin(2.0 * np.pi * 0.7 * moving.time)):
        q = np.column_stack([moving.q[:, 0], slow]) + noise
        assert process(replace(moving, q=q)).valid.mean() > 0.95


def test_slow_rows_fall_into_the_dead_band():
    experiment = process(make(), cutoff_hz=8.0, dead_band=0.1)
    assert not experiment.valid[np.abs(experiment.dq) < 0.1].any()
    assert experiment.dropped["velocity dead band"] == np.count_nonzero(np.abs(experiment.dq) < 0.1)


def test_spikes_and_clipped_torques_are_dropped_and_counted():
    log = make()
    q, effort = log.q.copy(), log.effort.copy()
    q[700, 0] = -4.7e226
    q[900, 1] += 2.0
    effort[500, 0] = 1e9
    effort[:, 1] = np.clip(effort[:, 1], -100.0, np.percentile(effort[:, 1], 93.0))
    experiment = process(replace(log, q=q, effort=effort), cutoff_hz=8.0)
    clean = process(log, cutoff_hz=8.0)
    assert experiment.dropped["position spike"] == 4
    assert experiment.dropped["torque spike"] == 1
    assert experiment.dropped["torque saturated"] == pytest.approx(0.07 * 2400, rel=0.1)
    np.testing.assert_allclose(experiment.q, clean.q, atol=1e-4)
    close = experiment.valid[:, 0]
    np.testing.assert_allclose(experiment.effort[close, 0], clean.effort[close, 0], atol=0.05)


@pytest.mark.parametrize("case", ["q: np.nan: not finite", "effort: np.inf: not finite", "time: 0.0: never increase"])
def test_useless_logs_are_refused(case):
    log, (name, value, message) = make(), case.split(": ")
    with pytest.raises(DataError, match=message):
        process(replace(log, **{name: np.full_like(getattr(log, name), eval(value))}))


def test_impossible_rates_and_cutoffs_are_refused():
    assert process(make(), cutoff_hz=8.0, rate_hz=110.0).rate_hz == pytest.approx(100.0)
    with pytest.raises(ArgumentError, match="cannot hold"):
        process(make(), cutoff_hz=60.0, rate_hz=100.0)
    with pytest.raises(DataError, match=r"20 samples \(0.1 s\).* least 786 samples \(3.93 s at 200 Hz\)"):
        process(make(duration_s=0.1), cutoff_hz=1.0)


def test_isolated_rows_are_taken_as_they_are():
    q, dq, effort = np.random.default_rng(0).normal(size=(3, 50, 2))
    holes, gone = q.copy(), effort.copy()
    holes[7, 0], gone[9] = np.nan, np.nan
    log = Recording(time=np.arange(50) * 0.004, q=holes, dq=dq, effort=gone, isolated=True)
    found = process(log, dead_band=0.5)
    np.testing.assert_array_equal(found.q, np.delete(q, 7, axis=0))
    np.testing.assert_array_equal(found.dq, np.delete(dq, 7, axis=0))
    np.testing.assert_array_equal(found.ddq, 0.0)
    slow, missing = np.abs(dq) < 0.5, np.arange(50)[:, None] == 9
    np.testing.assert_array_equal(found.valid, np.delete(~(slow | missing), 7, axis=0))
    lost = int(np.delete(slow & ~missing, 7, axis=0).sum())
    assert found.dropped == {"position not finite": 2, "torque not finite": 2, "velocity dead band": lost}
    assert (len(set(found.segment)), found.rate_hz) == (49, pytest.approx(250.0))
    with pytest.raises(DataError, match="fewer than two rows"):
        process(log.rows(slice(6, 8)))


@pytest.mark.parametrize("rows", [900, 2500])
def test_a_stream_gives_what_the_whole_log_gives(rows):
    log = make(duration_s=60.0)
    options = Processing(cutoff_hz=6.0)
    blocks = list(process_stream((log.rows(slice(k, k + rows)) for k in range(0, len(log.time), rows)), options))
    whole = process(log, cutoff_hz=6.0)
    assert len(blocks) > 3
    time = np.concatenate([block.time for block in blocks])
    np.testing.assert_allclose(time, whole.time, atol=1e-9)
    inner = (time > 2.0) & (time < 58.0)
    for name, tolerance in (("q", 1e-8), ("dq", 1e-7), ("ddq", 1e-5), ("effort", 1e-6)):
        joined = np.concatenate([getattr(block, name) for block in blocks])
        assert np.abs(joined - getattr(whole, name))[inner].max() < tolerance


def test_several_logs_share_the_cutoff_that_leaves_the_smallest_error_in_all():
    slow, quick = (make(noise=1e-4, seed=seed) for seed in (1, 2))
    quick = replace(quick, q=PATH(3.0 * quick.time)[0] + 1e-4 * np.random.default_rng(2).normal(size=quick.q.shape))
    prepared_logs = [PreparedLog.start(log, Processing()) for log in (slow, quick)]
    own = [float(prepared.options.cutoff_hz) for prepared in prepared_logs]
    assert share_cutoff(prepared_logs[:1])[0] == pytest.approx(own[0])
    hz, reason = share_cutoff(prepared_logs)
    assert own[0] < hz < 1.1 * own[1]
    assert "of all 2 logs" in reason


def test_a_plateau_is_clipping_only_where_a_signal_does_not_rest_elsewhere():
    wave = np.sin(np.arange(400) / 20.0) + 0.01 * np.random.default_rng(0).normal(size=400)
    clipped = np.minimum(wave, 0.7)
    top = clipped == 0.7
    assert np.array_equal(saturated_samples(clipped[:, None])[:, 0], top)
    longest = int(run_lengths(top).max())
    for length, count, is_clipped in ((longest // 2 - 2, 6, True), (longest, 2, True), (longest, 4, False)):
        resting = clipped.copy()
        for start in (60, 185, 310, 230, 105, 355)[:count]:  # stands still elsewhere, too; there are three plateaus
            resting[start : start + length] = resting[start]
        assert saturated_samples(resting[:, None])[resting == 0.7].all() == is_clipped
