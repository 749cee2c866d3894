"""Accelerations from noisy positions: the default choice of cutoff against the best one, on planted truth.

Run ``python tests/campaigns/differentiation_table.py``; it prints a table over sampling rates, noise levels and
motions. The error is the rms acceleration error over the rms acceleration, averaged over the joints in the mean square,
on the samples that the default choice returns.
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

RATES_HZ = (100.0, 250.0, 1000.0, 5000.0)
NOISE_RAD = (1e-6, 1e-5, 1e-4, 1e-3)


def quintic_moves(joints: int, *, seed: int, pause_s: float = 0.0, move_s: float = 1.0) -> Path:
    """Point-to-point moves of minimum jerk: smooth, but not band-limited."""
    goals = np.random.default_rng(seed).normal(size=(200, joints))

    def path(t: Floats) -> tuple[Floats, Floats, Floats]:
        leg, s = np.divmod(t / (move_s + pause_s), 1.0)
        s = np.minimum(s * (move_s + pause_s) / move_s, 1.0)[:, None]
        start, way = goals[leg.astype(int)], np.diff(goals, axis=0)[leg.astype(int)]
        q = start + way * (10 * s**3 - 15 * s**4 + 6 * s**5)
        dq = way * (30 * s**2 - 60 * s**3 + 30 * s**4) / move_s
        return q, dq, way * (60 * s - 180 * s**2 + 120 * s**3) / move_s**2

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


def compare(path: Path, rate_hz: float, noise: float, *, seed: int, candidates: int = 25) -> tuple[float, float, float]:
    """Default cutoff's error, the best cutoff's error, and the best cutoff [Hz]."""
    time = np.arange(int(20.0 * rate_hz)) / rate_hz
    positions = path(time)[0]
    measured = positions + noise * np.random.default_rng(seed).normal(size=positions.shape)
    recording = Recording(time=time, q=measured)
    default = process(recording, rest=None)
    window = (float(default.time[0]), float(default.time[-1]))
    errors = {}
    for cutoff in np.geomspace(0.8, min(0.42 * rate_hz, 120.0), candidates):
        # the same samples for all; what the others would trim is no excuse
        trial = process(recording, cutoff_hz=float(cutoff), trim_s=window[0], rest=None)
        errors[float(cutoff)] = acceleration_error(trial, path, window)
    best = min(errors, key=lambda hz: errors[hz])
    return acceleration_error(default, path, window), errors[best], best


def main() -> None:
    """Print the table."""
    print(f"{'motion':15s} {'rate Hz':>8s} {'noise rad':>10s} {'default':>9s} {'best':>9s} {'at Hz':>7s} {'ratio':>6s}")
    worst = 0.0
    for name, path in MOTIONS.items():
        for rate in RATES_HZ:
            for noise in NOISE_RAD:
                default, best, hz = compare(path, rate, noise, seed=7)
                worst = max(worst, default / best)
                print(
                    f"{name:15s} {rate:8.0f} {noise:10.0e} {default:9.2e} {best:9.2e} {hz:7.2f} {default / best:6.2f}"
                )
    print(f"worst ratio {worst:.3f}")


if __name__ == "__main__":
    main()
