"""What the best detector could find: planted steps in normal noise with the memory that a watch was fitted with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Floats
from dynid.monitor.calibration import Calibration, Statistics
from dynid.monitor.planted_pushes import RATES, SIZES

BEST_INSTANTS, BEST_DRAWS = 30, 4000
"""Instants and random numbers that `best_share` takes (convention: shares to a per cent)."""


def best_share(
    calibration: Calibration,
    clean: Sequence[Statistics],
    *,
    sizes: Sequence[float] = SIZES,
    rates: Sequence[float] = RATES,
    seed: int = 0,
) -> Floats:
    """The share of steps that the best detector finds within the window, if the noise is normal as it was fitted.

    No detector with this rate of false alarms finds more of them on average over joints and signs, even if it is told
    when a push may begin: by Neyman and Pearson the best one compares the mean likelihood ratio of all joints and signs
    with a level that is exceeded with the probability ``rate * window`` while nothing pushes.

    Args:
        calibration: Memory, correlation and size of the noise.
        clean: Stretches whose bands count.
        sizes: Sizes of the steps, in standard deviations of the band.
        rates: Rates of false alarms of the whole arm [1/h].
        seed: Of the random numbers.

    Returns:
        (rates, sizes) shares.
    """
    rng = np.random.default_rng(seed)
    whitening = calibration.whitening
    window = whitening.windows[-1]
    shapes = np.column_stack([whitening.shape(j, window) for j in range(len(calibration.joint_names))])
    chances = [min(rate / 3600.0 * window / whitening.rate_hz, 1.0) for rate in rates]
    std = np.concatenate([one.std for one in clean])
    noise = np.concatenate([calibration.news.noise(one.stretch) for one in clean])
    picked = rng.integers(len(std), size=BEST_INSTANTS)
    shares = [
        [
            _best_power(whitening.precision * (A.T @ A), size * std[k], chances, rng)
            for k in picked
            for A in [shapes / np.sqrt(noise[k])]
        ]
        for size in sizes
    ]
    return np.asarray(np.mean(shares, axis=1)).T


def _best_power(information: Floats, push: Floats, chances: Sequence[float], rng: np.random.Generator) -> Floats:
    """(rates,) probability that the mean likelihood ratio of pushes of +- one joint exceeds its level.

    Args:
        information: (n, n) covariance of the best projections on unit pushes while nothing pushes; column j is their
            mean with a unit push on joint j.
        push: (n,) size of the push on each joint.
        chances: Probabilities of a false alarm.
        rng: For the draws.
    """
    count, n = BEST_DRAWS, push.size
    pushed = rng.integers(n, size=count)
    z = rng.normal(size=(count, n)) @ np.linalg.cholesky(information).T
    z += push[pushed, None] * information[pushed]
    exponents = np.abs(z * push) - 0.5 * push**2 * np.diag(information) + np.log1p(np.exp(-2.0 * np.abs(z * push)))
    top = exponents.max(axis=1)
    ratio = top + np.log(np.exp(exponents - top[:, None]).mean(axis=1) / 2.0)
    # while nothing pushes, a ratio r is exp(-r) times as likely as while something does
    order = np.sort(ratio)[::-1]
    alarm = np.cumsum(np.exp(-order)) / count
    return np.asarray(np.searchsorted(alarm, chances) / count)
