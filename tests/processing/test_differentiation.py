"""The low-pass, the differentiation and the automatic cutoff, on planted truth."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ArgumentError, DataError
from dynid.excitation import QuinticTrajectory
from dynid.logs.recording import Recording
from dynid.processing.filters import Butterworth, CentralDifferences, MeasuredVelocity, continuation
from dynid.processing.process import process
from dynid.processing.simulation import sum_of_sines

STRATEGIES = [CentralDifferences(), CentralDifferences(accuracy=2), MeasuredVelocity()]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize("frequency", [3.0, 9.0, 12.0, 15.0])
def test_stated_gains_are_the_measured_ones_and_phases_zero(strategy, frequency):
    smoothing = Butterworth(400.0, 12.0)
    time, w, inner = np.arange(4000)[:, None] / 400.0, 2 * np.pi * frequency, slice(1000, 3000)
    wave = np.sin(w * time)
    motion = strategy.motion(wave, w * np.cos(w * time), smoothing)
    gain = strategy.gains(np.array([frequency]), 400.0, np.array([5.0, 12.0]))[1, 0]
    np.testing.assert_allclose(motion.ddq[inner], -gain * w**2 * wave[inner], atol=0.003 * w**2)
    passed = smoothing.gain(np.array([frequency]))[0]
    np.testing.assert_allclose(smoothing.apply(wave)[inner], passed * wave[inner], atol=2e-4)
    if frequency == 12.0:
        assert passed == pytest.approx(0.5)


def test_two_point_differences_are_those_of_the_paper():
    smoothing = Butterworth(1 / 0.028, None)
    assert smoothing.settling_s == 0.0
    q = np.random.default_rng(1).normal(size=(50, 3))
    motion = CentralDifferences(accuracy=2).motion(q, None, smoothing)
    np.testing.assert_allclose(motion.dq[1:-1], (q[2:] - q[:-2]) / 0.056, atol=1e-9)
    np.testing.assert_allclose(motion.ddq[2:-2], (motion.dq[3:-1] - motion.dq[1:-3]) / 0.056, atol=1e-7)


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_a_signal_goes_on_without_a_kink_at_its_ends(shift):
    wave = np.sin(0.3 * np.arange(60)[:, None] + shift)
    before, after = continuation(wave, 20, 40)
    bend = np.diff(np.concatenate([before, wave, after]), 2, axis=0)
    assert np.abs(bend).max() < 2.0 * np.abs(np.diff(wave, 2, axis=0)).max()
    cubic = np.polynomial.Polynomial([1.0, -2.0, 0.5, 0.1])(np.arange(-20.0, 80.0))[:, None]
    np.testing.assert_allclose(np.concatenate(continuation(cubic[20:80], 20, 40)), np.delete(cubic, np.s_[20:80], 0))


def test_what_cannot_work_is_refused():
    for cutoff in (0.0, -1.0, 250.0, 1e3):
        with pytest.raises(ArgumentError, match="half the sampling rate"):
            Butterworth(500.0, cutoff).apply(np.zeros((100, 1)))
    with pytest.raises(ArgumentError):
        CentralDifferences(accuracy=3)
    with pytest.raises(DataError, match="no measured velocities"):
        process(Recording(time=np.arange(500) / 100, q=np.zeros((500, 1))), differentiation=MeasuredVelocity())


GOALS = np.random.default_rng(3).normal(size=(22, 3))
MOVES = QuinticTrajectory(q=GOALS, dq=0.0 * GOALS, durations=np.ones(21))
MOTIONS = {
    "slow sines": sum_of_sines(3, period_s=10.0, harmonics=5, seed=1),
    "fast sines": sum_of_sines(3, period_s=10.0, harmonics=30, seed=2),
    "quintic moves": lambda time: [MOVES.derivative(time, order) for order in range(3)],
}
CUTOFFS = """
slow sines 100 1e-3
fast sines 250 1e-4
quintic moves 250 1e-4
quintic moves 1000 1e-3
fast sines 5000 1e-6
"""
"""Motion, sampling rate [Hz] and noise [rad]."""


@pytest.mark.parametrize("case", CUTOFFS.strip().splitlines())
def test_the_automatic_cutoff_is_within_ten_percent_of_the_best(case):
    name, rate, noise = case.rsplit(maxsplit=2)
    time = np.arange(20.0 * float(rate)) / float(rate)
    q, _, ddq = MOTIONS[name](time)
    log = Recording(time=time, q=q + float(noise) * np.random.default_rng(11).normal(size=q.shape))
    default = process(log, rest=None)
    (inside,) = np.nonzero((time > default.time[0] - 1e-9) & (time < default.time[-1] + 1e-9))

    def error(run):
        return np.linalg.norm((run.ddq[: inside.size] - ddq[inside]) / ddq[inside].std(axis=0))

    cutoffs = np.geomspace(0.8, min(0.42 * float(rate), 120.0), 16)
    trials = [process(log, cutoff_hz=hz, trim_s=float(default.time[0]), rest=None) for hz in cutoffs]
    assert error(default) < 1.1 * min(map(error, trials))
