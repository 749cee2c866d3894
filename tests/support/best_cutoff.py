"""Accelerations from noisy positions: the default choice of cutoff against the best one, on planted truth.

The error is the rms acceleration error over the rms acceleration, averaged over the joints in the mean square, on the
samples that the default choice returns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.processing.process import process
from dynid.processing.simulation import sum_of_sines

Floats = NDArray[np.float64]
Path = Callable[[Floats], tuple[Floats, Floats, Floats]]


def quintic_moves(joints: int, *, seed: int) -> Path:
    """Point-to-point moves of minimum jerk, 1 s each: smooth, but not band-limited."""
    goals = np.random.default_rng(seed).normal(size=(200, joints))

    def path(t: Floats) -> tuple[Floats, Floats, Floats]:
        leg, s = np.divmod(t, 1.0)
        s = s[:, None]
        start, way = goals[leg.astype(int)], np.diff(goals, axis=0)[leg.astype(int)]
        q = start + way * (10 * s**3 - 15 * s**4 + 6 * s**5)
        dq = way * (30 * s**2 - 60 * s**3 + 30 * s**4)
        return q, dq, way * (60 * s - 180 * s**2 + 120 * s**3)

    return path


MOTIONS: dict[str, Path] = {
    "slow sines": sum_of_sines(3, period_s=10.0, harmonics=5, seed=1),
    "fast sines": sum_of_sines(3, period_s=10.0, harmonics=30, seed=2),
    "quintic moves": quintic_moves(3, seed=3),
}


def acceleration_error(experiment: Experiment, path: Path, window: tuple[float, float]) -> float:
    """Relative rms error within a window of time [s]."""
    inside = (experiment.time >= window[0] - 1e-9) & (experiment.time <= window[1] + 1e-9)
    truth = path(experiment.time[inside])[2]
    square = ((experiment.ddq[inside] - truth) ** 2).mean(axis=0) / (truth**2).mean(axis=0)
    return float(np.sqrt(square.mean()))


def compare(path: Path, rate_hz: float, noise: float) -> tuple[float, float]:
    """Error of the default cutoff, and of the best one."""
    time = np.arange(int(20.0 * rate_hz)) / rate_hz
    positions = path(time)[0]
    measured = positions + noise * np.random.default_rng(11).normal(size=positions.shape)
    recording = Recording(time=time, q=measured)
    default = process(recording, rest=None)
    window = (float(default.time[0]), float(default.time[-1]))
    # the same samples for all; what the others would trim is no excuse
    trials = (
        process(recording, cutoff_hz=float(cutoff), trim_s=window[0], rest=None)
        for cutoff in np.geomspace(0.8, min(0.42 * rate_hz, 120.0), 16)
    )
    best = min(acceleration_error(trial, path, window) for trial in trials)
    return acceleration_error(default, path, window), best
