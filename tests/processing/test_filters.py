"""Zero-phase low-passes and parallel decimation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from dynid.errors import ArgumentError, DataError
from dynid.processing import filters
from dynid.processing.filters import Butterworth, Decimation, Fir, Smoothing, filter_there_and_back
from dynid.processing.process import process
from dynid.processing.simulation import simulate_experiment, sum_of_sines
from dynid.robot import zoo

RATE = 500.0


@pytest.mark.parametrize("low_pass", [Butterworth(), Butterworth(order=2), Fir()], ids=str)
@pytest.mark.parametrize("frequency", [2.0, 10.0, 18.0])
def test_gain_is_what_the_filter_does_and_phase_is_zero(low_pass, frequency):
    time = np.arange(5000) / RATE
    x = np.column_stack([np.sin(2 * np.pi * frequency * time), np.cos(2 * np.pi * frequency * time)])
    gain = low_pass.gain(np.array([frequency]), RATE, 10.0)[0]
    inner = slice(1000, -1000)
    np.testing.assert_allclose(low_pass.apply(x, RATE, 10.0)[inner], gain * x[inner], atol=2e-4)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 7, 12])
@pytest.mark.parametrize("share", [0.002, 0.02, 0.3])
def test_sections_and_their_steady_state_are_those_of_scipy(order, share):
    ours = filters._butterworth_sections(order, share)
    frequency = np.linspace(0.0, 0.5, 200)
    expected = signal.freqz_sos(signal.butter(order, share, fs=1.0, output="sos"), frequency, fs=1.0)[1]
    np.testing.assert_allclose(signal.freqz_sos(ours, frequency, fs=1.0)[1], expected, atol=1e-9)
    np.testing.assert_allclose(filters._steady_state(ours), signal.sosfilt_zi(ours), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("low_pass", [Butterworth(), Fir()], ids=str)
def test_half_the_amplitude_passes_at_the_cutoff(low_pass):
    assert low_pass.gain(np.array([7.0]), RATE, 7.0)[0] == pytest.approx(0.5, abs=1e-3)


def test_the_ends_follow_a_smooth_motion():
    time = np.arange(1000)[:, None] / RATE
    x = 1.0 + 2.0 * time - 3.0 * time**2 + 0.5 * time**3
    assert np.abs(Butterworth().apply(x, RATE, 5.0) - x).max() < 1e-3


@pytest.mark.parametrize("cutoff", [0.0, -1.0, 250.0, 1e3])
def test_impossible_cutoffs_are_refused(cutoff):
    with pytest.raises(ArgumentError, match="half the sampling rate"):
        Butterworth().apply(np.zeros((100, 1)), RATE, cutoff)


def test_stretches_shorter_than_the_memory_are_refused():
    with pytest.raises(DataError, match="shorter"):
        Fir().apply(np.zeros((20, 1)), RATE, 2.0)


@pytest.mark.parametrize("share", [0.05, 0.15, 0.3, 0.4, 0.45])
def test_accelerations_are_accurate_from_the_sampled_settling_time_on(share):
    """Near half the sampling rate the filter forgets more slowly than its analogue."""
    motion = sum_of_sines(3, seed=1)
    log = simulate_experiment(zoo.gautier_khalil_3r(), motion, rate_hz=200.0, duration_s=20.0)
    run = process(log, cutoff_hz=share * 200.0)
    settled_s = run.derivation.smoothing.sampled_settling_s
    inner = (run.time >= settled_s) & (run.time <= log.time[-1] - settled_s)
    expected = motion(run.time[inner])[2]
    assert np.abs(run.ddq[inner] - expected).max() < 0.02 * expected.std()


def test_no_cutoff_changes_nothing():
    x = np.random.default_rng(0).normal(size=(30, 2))
    smoothing = Smoothing(rate_hz=RATE, cutoff_hz=None, low_pass=Butterworth())
    assert smoothing.apply(x) is x
    assert smoothing.settling_s == 0.0


@pytest.mark.parametrize("factor", [1, 2, 5, 8])
def test_a_stream_is_decimated_like_the_whole(factor):
    x = np.random.default_rng(1).normal(size=(3000, 2, 3))
    decimation = Decimation(factor)
    whole = decimation.apply(x)
    blocks = list(decimation.stream(np.split(x, [7, 400, 401, 1700])))
    np.testing.assert_allclose(np.concatenate(blocks), whole, atol=1e-14)
    assert len(whole) == decimation.kept(3000).size


def test_decimation_is_the_filter_at_the_kept_samples():
    x = np.random.default_rng(2).normal(size=(2000, 1))
    decimation = Decimation(6)
    full = np.convolve(x[:, 0], decimation.taps, mode="same")
    np.testing.assert_allclose(decimation.apply(x)[:, 0], full[decimation.kept(2000)], atol=1e-12)


def test_parallel_decimation_leaves_parameters_alone_and_removes_noise():
    rng = np.random.default_rng(3)
    time = np.arange(20_000) / 1000.0
    Y = np.column_stack([np.sin(time), np.sign(np.sin(0.7 * time)), np.ones_like(time)])
    theta = np.array([2.0, -1.0, 0.5])
    ripple = 3.0 * np.sin(2 * np.pi * 300.0 * time)
    decimation = Decimation(20)
    tau = (Y @ theta + ripple + 0.1 * rng.normal(size=time.size))[:, None]
    small_Y, small_tau = decimation.apply(Y), decimation.apply(tau)[:, 0]
    estimate = np.linalg.lstsq(small_Y, small_tau, rcond=None)[0]
    np.testing.assert_allclose(estimate, theta, atol=5e-3)
    assert np.std(small_tau - small_Y @ estimate) < 0.05


@pytest.mark.parametrize("rows", [16, 40, 3000])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.4])
def test_the_usual_low_pass_is_scipys(rows, share):
    x = np.cumsum(np.random.default_rng(0).normal(size=(rows, 3)), axis=0)
    expected = signal.sosfiltfilt(signal.butter(4, share, fs=1.0, output="sos"), x, axis=0)
    np.testing.assert_allclose(filter_there_and_back(x, share), expected, rtol=0, atol=1e-9)
