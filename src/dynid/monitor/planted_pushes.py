"""Pushes planted into clean data: which share a watch finds in time, for sizes of pushes and rates of false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.checks import as_whole
from dynid.monitor.calibration import Calibration, Levels, Statistics
from dynid.monitor.jumps import WINDOW_S, project_steps, sudden_part
from dynid.monitor.watched_signals import WatchedStretch

SIZES = (1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)
"""Sizes of the planted steps, in standard deviations of the band (convention)."""
RATES = (3600.0, 60.0, 1.0)
"""Rates of false alarms of the whole arm [1/h]: one a second, a minute, an hour."""
BEST_INSTANTS, BEST_DRAWS = 30, 4000
"""Instants and random numbers that `best_share` takes (convention: shares to a per cent)."""
LEAD_S = 0.5
"""Time before a push from which the statistic is computed again [s] (derivation: five times that of the average)."""


@dataclass(frozen=True, slots=True, eq=False)
class PushCurve:
    """Shares of planted pushes that were found within the window."""

    sizes: tuple[float, ...]
    """Sizes of the pushes, in standard deviations of the band."""
    rates: tuple[float, ...]
    """Rates of false alarms [1/h]."""
    found: Floats
    """(rates, sizes, n) share that was found."""
    torque: Floats
    """(n,) median of one standard deviation [N m or N]."""
    needed: Floats
    """(rates, pushes, n, 2) smallest push of either sign that is found at each instant [N m or N]."""
    pushes: int
    """Instants of pushes, for each joint."""


def plant_pushes(
    calibration: Calibration,
    clean: Sequence[Statistics],
    *,
    sizes: Sequence[float] = SIZES,
    rates: Sequence[float] = RATES,
    pushes: int = 50,
    seed: int = 0,
) -> PushCurve:
    """Add steps of torque to clean stretches, one joint and instant at a time, and count those found in time.

    A step counts as found if its jump statistic exceeds the level within `dynid.monitor.jumps.WINDOW_S`, at least at
    the first period after its onset. Projections are linear in the push, so that the smallest one that is found at an
    instant follows at once.
    """
    rng = np.random.default_rng(seed)
    lead = max(32, round(LEAD_S * calibration.whitening.rate_hz))
    count = as_whole("pushes", pushes, least=1)
    window = max(1, round(WINDOW_S * calibration.whitening.rate_hz))
    joints = len(calibration.joint_names)
    levels = [calibration.levels(rate) for rate in rates]
    usable = [one for one in clean if len(one.std) > lead + window]
    lengths = np.array([len(one.std) - lead - window for one in usable], dtype=float)
    needed, std = np.zeros((len(rates), count, joints, 2)), np.zeros((count, joints))
    for place, chosen in enumerate(rng.choice(len(usable), size=count, p=lengths / lengths.sum())):
        one = usable[chosen]
        onset = int(rng.integers(lead, len(one.std) - window))
        needed[:, place] = _smallest_found(
            calibration, one.stretch.cut(slice(onset - lead, onset + window)), lead, levels
        )
        std[place] = one.std[onset]
    signs = rng.choice([0, 1], (1, count, joints, 1))
    smallest = np.take_along_axis(needed, np.broadcast_to(signs, (len(rates), count, joints, 1)), axis=3)[..., 0]
    found = np.stack([(smallest < size * std).mean(axis=1) for size in sizes], axis=1)
    torque = np.median(np.concatenate([one.std for one in clean]), axis=0)
    return PushCurve(tuple(sizes), tuple(rates), found, torque, needed, count)


def _smallest_found(calibration: Calibration, stretch: WatchedStretch, onset: int, levels: Sequence[Levels]) -> Floats:
    """(rates, n, 2) smallest steps up and down from a period on that exceed the levels within the stretch."""
    whitening, std = calibration.whitening, calibration.news_std(stretch)
    step = np.zeros_like(stretch.raw)
    step[onset:] = 1.0
    clean, sharp = project_steps(whitening, stretch.sudden, std)
    # all joints are pushed at once, and each is judged as if it were pushed alone
    pushed, _ = project_steps(whitening.uncoupled, sudden_part(step, stretch.rate_hz), std, stretch.sudden)
    excused = calibration.excuse(stretch, sharp)
    clean, pushed, excused = (part[:, onset:] for part in (clean, pushed, excused))
    turning = calibration.band.turning(stretch.dq, stretch.rate_hz)[onset:]
    needed = np.array([np.where(turning, one.turn, one.jump) for one in levels])
    level = needed[:, None] * calibration.scale_at(turning) + excused
    with np.errstate(divide="ignore", invalid="ignore"):
        each = [np.where(np.abs(pushed) > 0.0, (level - sign * np.sign(pushed) * clean) / np.abs(pushed), np.inf)
                for sign in (1.0, -1.0)]  # fmt: skip
    return np.asarray(np.maximum(np.stack(each, axis=-1).min(axis=(1, 2)), 0.0))


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
