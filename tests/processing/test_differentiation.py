"""Differentiation strategies and the automatic cutoff, on planted truth."""

from __future__ import annotations

import numpy as np
import pytest

from campaigns import differentiation_table as campaign
from dynid.errors import ArgumentError, DataError
from dynid.logs.recording import Recording
from dynid.processing.differentiation import (
    CentralDifferences,
    Fourier,
    MeasuredVelocity,
    QuasiStatic,
    SavitzkyGolay,
    SmoothingSpline,
)
from dynid.processing.filters import Butterworth, Fir, Smoothing
from dynid.processing.process import process
from dynid.processing.simulation import sum_of_sines

STRATEGIES = [CentralDifferences(), CentralDifferences(accuracy=2), SavitzkyGolay(), SmoothingSpline(), Fourier(4.0)]
PATH = sum_of_sines(2, period_s=4.0, harmonics=4, amplitude=0.7, seed=5)


def _recording(rate_hz: float, noise: float, duration_s: float = 16.0) -> Recording:
    time = np.arange(int(duration_s * rate_hz)) / rate_hz
    q, dq, _ = PATH(time)
    rng = np.random.default_rng(0)
    return Recording(time=time, q=q + noise * rng.normal(size=q.shape), dq=dq + noise * rng.normal(size=q.shape))


@pytest.mark.parametrize("strategy", [*STRATEGIES, MeasuredVelocity()], ids=str)
def test_every_strategy_finds_the_accelerations(strategy):
    experiment = process(_recording(500.0, 1e-5), differentiation=strategy, rest=None)
    q, dq, ddq = PATH(experiment.time)
    assert np.abs(experiment.q - q).max() < 2e-3
    assert np.abs(experiment.dq - dq).max() < 1e-2 * np.abs(dq).max()
    assert np.sqrt(np.mean((experiment.ddq - ddq) ** 2)) < 0.02 * ddq.std()


@pytest.mark.parametrize("strategy", STRATEGIES[:4], ids=str)
@pytest.mark.parametrize("low_pass", [Butterworth(), Fir()], ids=str)
def test_the_stated_gain_is_the_measured_one(strategy, low_pass):
    smoothing = Smoothing(rate_hz=400.0, cutoff_hz=12.0, low_pass=low_pass)
    time = np.arange(4000)[:, None] / 400.0
    for frequency in (3.0, 9.0, 15.0):
        wave = np.sin(2 * np.pi * frequency * time)
        ddq = strategy.motion(wave, None, smoothing).ddq[1000:3000]
        truth = -((2 * np.pi * frequency) ** 2) * wave[1000:3000]
        gain = float((ddq * truth).sum() / (truth**2).sum())
        assert gain == pytest.approx(strategy.gain(np.array([frequency]), smoothing)[0], abs=0.01)


@pytest.mark.parametrize("strategy", [*STRATEGIES, MeasuredVelocity()], ids=str)
@pytest.mark.parametrize("low_pass", [Butterworth(), Fir()], ids=str)
def test_gains_of_several_cutoffs_are_those_of_each(strategy, low_pass):
    frequencies, cutoffs = np.geomspace(0.1, 199.0, 20), np.array([3.0, 12.0, 60.0])
    each = [strategy.gain(frequencies, Smoothing(rate_hz=400.0, cutoff_hz=hz, low_pass=low_pass)) for hz in cutoffs]
    found = strategy.gains(frequencies, 400.0, cutoffs, low_pass)
    np.testing.assert_allclose(found, np.array(each), rtol=1e-12, atol=1e-12)


def test_two_point_differences_are_those_of_the_paper():
    smoothing = Smoothing(rate_hz=1 / 0.028, cutoff_hz=None, low_pass=Butterworth())
    q = np.random.default_rng(1).normal(size=(50, 3))
    motion = CentralDifferences(accuracy=2).motion(q, None, smoothing)
    np.testing.assert_allclose(motion.dq[1:-1], (q[2:] - q[:-2]) / 0.056, atol=1e-9)
    np.testing.assert_allclose(motion.ddq[2:-2], (motion.dq[3:-1] - motion.dq[1:-3]) / 0.056, atol=1e-7)


def test_what_cannot_work_is_refused():
    with pytest.raises(ArgumentError):
        CentralDifferences(accuracy=3)
    with pytest.raises(ArgumentError):
        SavitzkyGolay(degree=2)
    with pytest.raises(ArgumentError, match="needs a cutoff"):
        process(_recording(100.0, 0.0), cutoff_hz=None, differentiation=SmoothingSpline())
    with pytest.raises(DataError, match="no measured velocities"):
        process(Recording(time=np.arange(500) / 100, q=np.zeros((500, 1))), differentiation=QuasiStatic())
    with pytest.raises(DataError, match="no full period"):
        process(_recording(100.0, 0.0), differentiation=Fourier(60.0), cutoff_hz=5.0)


@pytest.mark.parametrize(
    ("motion", "rate", "noise"),
    [
        ("slow sines", 100.0, 1e-3),
        ("fast sines", 250.0, 1e-4),
        ("slow sines", 1000.0, 1e-5),
        ("quintic moves", 250.0, 1e-4),
        ("quintic moves", 1000.0, 1e-3),
        ("fast sines", 5000.0, 1e-6),
    ],
)
def test_the_automatic_cutoff_is_within_ten_percent_of_the_best(motion, rate, noise):
    default, best, _ = campaign.compare(campaign.MOTIONS[motion], rate, noise, seed=11, candidates=16)
    assert default < 1.1 * best


def test_the_reason_is_in_the_recipe():
    experiment = process(_recording(200.0, 1e-4))
    assert any("chosen from the spectrum: predicted acceleration error" in line for line in experiment.processing_steps)


def test_a_robot_at_rest_gets_a_cutoff_nevertheless():
    rng = np.random.default_rng(0)
    still = Recording(time=np.arange(1000) / 100.0, q=1e-4 * rng.normal(size=(1000, 2)))
    assert any("no motion above the noise" in line for line in process(still).processing_steps)
