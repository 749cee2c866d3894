"""Clocks: order, repetitions, gaps, jitter, channels with clocks of their own, delays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynid
from dynid.errors import DataError, DynidError
from dynid.gate.model_delay import model_delay
from dynid.gate.quick_fit import with_friction, with_smooth_sign
from dynid.kernels import regressor
from dynid.logs.recording import Recording
from dynid.processing.delay import delay_rows, estimate_delay, orthonormal, timed_samples, unexplained_part
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.processing.timing import read_clock, resample, uniform_grid
from dynid.terms.friction import Coulomb, Viscous


def test_a_regular_clock_is_one_stretch():
    clock = read_clock(np.arange(500) / 250.0)
    assert clock.stretches == (slice(0, 500),)
    assert clock.rate_hz == pytest.approx(250.0)
    assert clock.faults == {}


def test_gaps_repetitions_and_jumps_are_counted_and_cut():
    time = np.arange(1000) / 100.0
    time[300] = time[299]
    time[600:] += 2.0
    time[800:] -= 5.0
    clock = read_clock(time)
    assert clock.faults == {"repeated-stamp": 1, "gap": 1, "backward-time": 1}
    assert len(clock.stretches) == 3
    assert all(np.all(np.diff(clock.time[piece]) > 0) for piece in clock.stretches)


def test_stamps_out_of_order_within_jitter_are_sorted():
    time = np.arange(400) / 100.0
    time[[50, 51]] = time[[51, 50]]
    clock = read_clock(time)
    assert clock.faults == {"stamp-order": 2}
    assert list(clock.rows[50:52]) == [51, 50]


def test_a_clock_that_often_runs_backwards_is_refused_unless_repaired():
    rng = np.random.default_rng(0)
    time = np.arange(400) / 100.0 + rng.normal(0, 0.02, 400)
    with pytest.raises(DataError, match="run backwards"):
        read_clock(time)
    repaired = read_clock(time, repair=True)
    assert repaired.monotone
    assert set(repaired.faults) <= {"stamp-order", "repeated-stamp", "gap"}


def test_time_that_never_increases_is_refused():
    with pytest.raises(DataError, match="never increase"):
        read_clock(np.zeros(10))


def test_a_clock_in_milliseconds_is_refused_with_the_likely_reason():
    recording = Recording(time=np.arange(300.0) * 4.0, q=np.zeros((300, 1)))
    with pytest.raises(DataError, match="milliseconds"):
        process(recording)


def test_samples_on_the_grid_are_not_touched():
    time = np.arange(50) / 10.0
    values = np.random.default_rng(1).normal(size=(50, 2))
    result, known = resample(time, values, uniform_grid(time, 0.1), max_gap_s=0.3)
    np.testing.assert_array_equal(result, values)
    assert known.all()


def test_interpolation_is_cubic_and_knows_its_gaps():
    time = np.delete(np.linspace(0.0, 2.0, 201), slice(100, 120))
    values = np.column_stack([np.sin(time), np.cos(time)])
    values[10, 0] = np.nan
    grid = np.linspace(0.005, 1.995, 200)
    result, known = resample(time, values, grid, max_gap_s=0.03)
    truth = np.column_stack([np.sin(grid), np.cos(grid)])
    assert np.abs(result - truth)[known].max() < 1e-6
    assert not known[(grid > 1.0) & (grid < 1.18)].any()


def test_nothing_is_filtered_across_a_gap():
    time = np.arange(4000) / 500.0
    q = np.sin(time)[:, None]
    jumped = q.copy()
    jumped[2000:] += 1.0  # the robot was moved by hand in between
    gap = replace(Recording(time=time, q=q), time=time + np.where(np.arange(4000) < 2000, 0.0, 3.0), q=jumped)
    experiment = process(gap, cutoff_hz=10.0)
    assert set(experiment.segment) == {0, 1}
    assert np.abs(experiment.ddq).max() < 1.5


def test_torques_with_a_clock_of_their_own_are_brought_to_the_positions():
    time, slow = np.arange(4000) / 1000.0, np.arange(900) / 240.0 + 0.1
    recording = Recording(time=time, q=np.sin(time), effort=np.cos(3.0 * slow), effort_time=slow)
    experiment = process(recording, cutoff_hz=20.0, rest=None)
    known = experiment.valid[:, 0]
    assert not known[experiment.time < 0.1].any()
    assert np.abs(experiment.effort[known, 0] - np.cos(3.0 * experiment.time[known])).max() < 1e-3


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0.0, 1.0), seed=st.integers(0, 10_000), bad=st.sampled_from([np.nan, np.inf, -np.inf]))
def test_missing_rows_give_what_a_log_without_them_gives(share, seed, bad):
    rng = np.random.default_rng(seed)
    time = np.arange(600) / 100.0
    q = np.column_stack([np.sin(2 * time), np.cos(3 * time)])
    effort = rng.normal(size=q.shape)
    lost = rng.random(600) < share**2
    holes, effort_holes = q.copy(), effort.copy()
    holes[lost, rng.integers(2)] = bad
    effort_holes[lost] = bad
    options = {"cutoff_hz": 8.0, "trim_s": 0.1, "rest": None}
    try:
        dirty = process(Recording(time=time, q=holes, effort=effort_holes), **options)
    except DynidError:
        assert lost.mean() > 0.03
        return
    clean = process(Recording(time=time[~lost], q=q[~lost], effort=effort[~lost]), **options)
    for name in ("time", "q", "dq", "ddq", "effort", "valid", "segment"):
        np.testing.assert_allclose(getattr(dirty, name), getattr(clean, name), rtol=1e-12, atol=1e-12)
    assert dirty.dropped.get("position not finite", 0) == 2 * lost.sum()


@pytest.mark.parametrize("delay_ms", [-50.0, -13.7, 0.0, 4.3, 50.0])
def test_delays_are_found_to_a_fifth_of_a_period(delay_ms):
    robot = dynid.robots.puma560().with_terms(Viscous(1.0), Coulomb(2.0))
    path = sum_of_sines(6, period_s=5.0, harmonics=5, amplitude=0.6, seed=3)
    recording = simulate_experiment(
        robot,
        path,
        rate_hz=500.0,
        duration_s=10.0,
        noise=Noise(position=1e-5, effort=0.1),
        delay_s=1e-3 * delay_ms,
        seed=1,
    )
    experiment = timed_samples(process(recording))
    rows = delay_rows(experiment, 0.1)
    states = [np.ascontiguousarray(x[rows]) for x in (experiment.q, experiment.dq, experiment.ddq)]
    sign = experiment.smooth(np.sign(experiment.dq))[rows]
    Y = with_smooth_sign(regressor(with_friction(robot), *states), sign)
    delay = estimate_delay(experiment, [Y[:, j] for j in range(6)])
    assert abs(delay.seconds - 1e-3 * delay_ms) < 0.2 / 500.0
    assert delay.clear == (delay_ms != 0.0)
    moved = process(recording, effort_delay_s=delay.seconds)
    assert any("moved back" in line for line in moved.processing_steps) == (delay.seconds != 0.0)


def test_a_delay_near_the_end_of_what_is_tried_is_not_sure():
    """The costs may be lower beyond the end; further inside the same delay is sure."""
    robot = dynid.robots.puma560().with_terms(Viscous(1.0), Coulomb(2.0))
    path = sum_of_sines(6, period_s=5.0, harmonics=5, amplitude=0.6, seed=3)
    log = simulate_experiment(
        robot, path, rate_hz=500.0, duration_s=10.0, noise=Noise(position=1e-5, effort=5.0), delay_s=0.020, seed=1
    )
    wide, narrow = (estimate_delay(process(log), max_delay_s=most) for most in (0.1, 0.023))
    assert wide.sure
    assert 0.020 < narrow.seconds < 0.022, "the lowest point itself lies inside"
    assert narrow.stderr_s == np.inf
    assert not narrow.sure


def test_every_stretch_of_a_log_tells_the_delay():
    """The longest stretch of this log stands still: what it says of time is worth nothing."""
    robot = dynid.robots.puma560().with_terms(Viscous(1.0), Coulomb(2.0))
    path = sum_of_sines(6, period_s=5.0, harmonics=5, amplitude=0.6, seed=3)
    log = simulate_experiment(
        robot, path, rate_hz=250.0, duration_s=30.0, noise=Noise(position=1e-5, effort=0.1), delay_s=0.013, seed=1
    )
    still = (log.time > 9.0) & (log.time < 21.0)
    rng = np.random.default_rng(0)
    q, effort = np.array(log.q), np.array(log.effort)
    q[still] = q[still][0] + 1e-5 * rng.standard_normal(q[still].shape)
    effort[still] = effort[still][0] + 0.1 * rng.standard_normal(q[still].shape)
    kept = np.ones(log.time.size, dtype=bool)
    for second in (3.0, 6.0, 9.0, 21.0, 24.0, 27.0):
        kept[np.abs(log.time - second) < 0.1] = False
    cut = Recording(time=log.time[kept], q=q[kept], effort=effort[kept])
    experiment = process(cut, cutoff_hz=10.0)
    assert np.unique(experiment.segment).size == 7
    delay, _ = model_delay(robot, experiment)
    assert delay.sure
    assert delay.seconds == pytest.approx(0.013, abs=max(4.0 * delay.stderr_s, 2e-4))
    assert delay.stderr_s < 1e-3


def test_auto_moves_torques_back_only_when_the_delay_is_sure():
    robot = dynid.robots.puma560().with_terms(Viscous(1.0), Coulomb(2.0))
    path = sum_of_sines(6, period_s=5.0, harmonics=5, amplitude=0.6, seed=3)
    common = {"rate_hz": 500.0, "duration_s": 20.0, "noise": Noise(position=1e-5, effort=0.1), "seed": 1}
    late = simulate_experiment(robot, path, delay_s=0.011, **common)
    told: list[tuple[float, str]] = []
    moved = process(late, effort_delay_s="auto", progress=lambda share, note: told.append((share, note)))
    assert [share for share, _ in told] == sorted(share for share, _ in told)
    assert told[-1][0] == 1.0
    said = next(line for line in moved.processing_steps if "delay of the torques" in line)
    assert float(said.split()[4]) == pytest.approx(11.0, abs=2.0)  # no model is known here
    assert said.endswith("moved back")
    assert not any("moved back" in line for line in process(late).processing_steps)
    still = process(simulate_experiment(robot, path, **common), effort_delay_s="auto")
    assert (
        any(line.endswith("left as they are") for line in still.processing_steps)
        or abs(float(next(line for line in still.processing_steps if "delay of the torques" in line).split()[4])) < 1.0
    )


def test_a_delay_beyond_the_largest_one_stays_at_the_end_of_the_range():
    """At this rate one step of the grid is longer than the margin of the rows: beyond the range nothing is known."""
    robot = dynid.robots.puma560().with_terms(Viscous(1.0), Coulomb(2.0))
    path = sum_of_sines(6, period_s=5.0, harmonics=5, amplitude=0.6, seed=3)
    log = simulate_experiment(robot, path, rate_hz=4000.0, duration_s=5.0, delay_s=0.101, seed=1)
    delay, _ = model_delay(robot, process(log, cutoff_hz=10.0), max_delay_s=0.1)
    assert delay.seconds <= 0.1
    assert delay.seconds == pytest.approx(0.1, abs=1e-5)
    assert not delay.likely


def test_functions_that_are_zero_throughout_explain_nothing():
    assert orthonormal(np.zeros((7, 3))).shape == (7, 0)
    assert orthonormal(np.zeros((7, 0))).shape == (7, 0)
    y = np.arange(7.0)
    np.testing.assert_array_equal(unexplained_part(y, orthonormal(np.zeros((7, 3)))), y)


@pytest.mark.parametrize("rank", [1, 4, 7])
def test_a_basis_spans_the_columns_in_fewer_rows_too(rank: int) -> None:
    rng = np.random.default_rng(rank)
    columns = rng.normal(size=(60, rank)) @ rng.normal(size=(rank, 7))
    fewer = (rng.uniform(size=(60, 1)) < 0.6).astype(float)
    torque = rng.normal(size=60)
    plain, narrow = orthonormal(columns * fewer), orthonormal(orthonormal(columns) * fewer)
    assert plain.shape == narrow.shape == (60, rank)
    np.testing.assert_allclose(unexplained_part(torque, narrow), unexplained_part(torque, plain), atol=1e-12)
