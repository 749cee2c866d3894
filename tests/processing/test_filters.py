"""Zero-phase low-passes and parallel decimation."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ArgumentError, DataError
from dynid.processing.filters import Butterworth, Fir, Smoothing

RATE = 500.0


@pytest.mark.parametrize("low_pass", [Butterworth(), Butterworth(order=2), Fir()], ids=str)
@pytest.mark.parametrize("frequency", [2.0, 10.0, 18.0])
def test_gain_is_what_the_filter_does_and_phase_is_zero(low_pass, frequency):
    time = np.arange(5000) / RATE
    x = np.column_stack([np.sin(2 * np.pi * frequency * time), np.cos(2 * np.pi * frequency * time)])
    gain = low_pass.gain(np.array([frequency]), RATE, 10.0)[0]
    inner = slice(1000, -1000)
    np.testing.assert_allclose(low_pass.apply(x, RATE, 10.0)[inner], gain * x[inner], atol=2e-4)


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


def test_no_cutoff_changes_nothing():
    x = np.random.default_rng(0).normal(size=(30, 2))
    smoothing = Smoothing(rate_hz=RATE, cutoff_hz=None, low_pass=Butterworth())
    assert smoothing.apply(x) is x
    assert smoothing.settling_s == 0.0
