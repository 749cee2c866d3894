"""Clocks: order, repetitions, gaps, jitter, channels with clocks of their own, delays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.errors import DataError, DynidError
from dynid.logs.recording import Recording
from dynid.processing.process import process
from dynid.processing.timing import read_clock, resample, uniform_grid


def test_gaps_repetitions_and_jumps_are_counted_and_cut():
    time = np.arange(1000) / 100.0
    time[300] = time[299]
    time[600:] += 2.0
    time[800:] -= 5.0
    clock = read_clock(time)
    assert clock.faults == {"repeated-samples": 1, "gap": 1, "backward-time": 1}
    assert len(clock.stretches) == 3
    assert all(np.all(np.diff(clock.time[piece]) > 0) for piece in clock.stretches)


def test_stamps_out_of_order_within_jitter_are_sorted():
    time = np.arange(400) / 100.0
    time[[50, 51]] = time[[51, 50]]
    clock = read_clock(time)
    assert clock.faults == {"stamp-order": 2}
    assert list(clock.rows[50:52]) == [51, 50]


def test_a_clock_that_often_runs_backwards_is_refused():
    rng = np.random.default_rng(0)
    time = np.arange(400) / 100.0 + rng.normal(0, 0.02, 400)
    with pytest.raises(DataError, match="run backwards"):
        read_clock(time)


def test_samples_on_the_grid_are_not_touched():
    time = np.arange(50) / 10.0
    values = np.random.default_rng(1).normal(size=(50, 2))
    result, known = resample(time, values, uniform_grid(time, 0.1), max_gap_s=0.3)
    np.testing.assert_array_equal(result, values)
    assert known.all()
    off = resample(time + 0.0015, values, uniform_grid(time, 0.1), max_gap_s=0.3)[0]
    assert (off != values).any()  # 1.5 % of a period are interpolated


def test_interpolation_is_cubic_and_knows_its_gaps():
    # within one gap a sample, within the other one three, too few for a cubic
    time = np.delete(np.linspace(0.0, 2.0, 201), np.r_[100:110, 111:120, 150:160, 163:170])
    values = np.column_stack([np.sin(time), np.cos(time)])
    values[10, 0] = np.nan
    grid = np.concatenate([[-4e-5, -2e-5], np.linspace(0.005, 1.995, 200), [2.0 + 2e-5, 2.0 + 4e-5]])
    result, known = resample(time, values, grid, max_gap_s=0.03)
    truth = np.column_stack([np.sin(grid), np.cos(grid)])
    few = (grid > 1.6) & (grid < 1.62)
    np.testing.assert_allclose(result[few, 1], np.interp(grid[few], time, values[:, 1]), atol=1e-12)
    assert known[few].all()
    assert np.abs(result - truth)[2:-2][(known & ~few[:, None])[2:-2]].max() < 1e-6
    assert not known[(grid > 1.0) & (grid < 1.18)].any()
    assert known[[0, 1, -2, -1], 1].tolist() == [False, True, True, False]  # within rounding of the first and last


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
    time, slow = np.delete(np.arange(4000) / 1000.0, np.r_[2000:2500]), np.arange(900) / 240.0 + 0.1
    recording = Recording(time=time, q=np.sin(time), effort=np.cos(3.0 * slow), effort_time=slow)
    experiment = process(recording, cutoff_hz=20.0, rest=None)
    known = experiment.valid[:, 0]
    assert not known[experiment.time < 0.1].any()
    assert known[(experiment.time > 0.2) & (experiment.time < slow[-1] - 0.1)].all()
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
