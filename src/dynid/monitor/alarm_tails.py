"""How often a statistic exceeds a level: the law of its peaks above a threshold, and the uncertainty of this law.

Peaks over a high threshold follow a generalised Pareto law, whatever the noise is. A clean log of some seconds holds
few of them, so its scale and shape are not known well. The rate at a level is therefore the mean over all laws that
are plausible after the peaks: with few peaks the level of a rate is higher, so that alarms come at the stated rate on
average over calibrations. For times that are longer than the log this is an extrapolation, and stated as such.

The peaks of all joints are one sample of this law, and the rate of the arm is the sum of theirs: what reaches several
joints at once is one alarm, so that the sum is an upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import genpareto

from dynid.arrays import Floats
from dynid.errors import DataError

CLEAR_S = 0.25
"""Time without excess after which a new excess is a new event [s] (convention)."""
THRESHOLD = 0.7
"""Quantile of a joint's largest values in blocks of `CLEAR_S` above which peaks count (convention: many peaks, and yet
a tail; chosen with figures of the real logs in view)."""
MOST_PEAKS = 100
"""Most peaks that the law is fitted to, the highest ones (convention: the law is that of high peaks; more of them are
no longer a tail)."""
FEWEST_S = 5.0
"""Shortest clean data from which a tail is fitted [s] (convention)."""
SHAPES = np.linspace(-0.3, 0.8, 45)
"""Shapes of the law that are considered [-]: negative for a finite end, zero exponential, positive heavy."""
SHAPE_PRIOR = 0.1
"""Standard deviation of the shape before any peak, about zero (convention: about exponential)."""
SCALES = np.geomspace(0.2, 5.0, 61)
"""Scales that are considered, over the mean excess."""


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """The law of the peaks of a statistic above a threshold."""

    threshold: float
    events_hz: float
    """Rate of events above the threshold, of all joints together [1/s]."""
    scales: Floats
    """(K,) scales of plausible laws."""
    shapes: Floats
    """(K,) their shapes."""
    weights: Floats
    """(K,) their probabilities after the peaks."""

    def rates(self, level: float) -> Floats:
        """(K,) rate of events above a level by each plausible law [1/s]; above the threshold only."""
        excess = max(level - self.threshold, 0.0) / self.scales
        return np.asarray(self.events_hz * genpareto.sf(excess, self.shapes))

    def rate(self, level: float) -> float:
        """The rate of events above a level, on average over the plausible laws [1/s]."""
        return float(self.rates(level) @ self.weights)

    def level(self, rate_hz: float) -> float:
        """The level that events exceed at a rate [1/s]; the threshold for all rates above its own."""
        if rate_hz >= self.events_hz:
            return self.threshold
        high = self.threshold + float(self.scales.max())
        while self.rate(high) > rate_hz:
            high += high - self.threshold
        return float(brentq(lambda level: self.rate(level) - rate_hz, self.threshold, high))


def find_peaks(statistic: Floats, rate_hz: float, threshold: float) -> Floats:
    """(M,) largest value of each event above a threshold; events are `CLEAR_S` apart."""
    places = np.flatnonzero(statistic > threshold)
    if not places.size:
        return np.zeros(0)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(places) > CLEAR_S * rate_hz) + 1])
    return np.asarray(np.maximum.reduceat(statistic[places], starts))


def usual_peaks(statistics: Sequence[Floats], rate_hz: float) -> Floats:
    """(n,) mean of the largest values in blocks of `CLEAR_S`, of each column; one where nothing counts."""
    blocks = np.concatenate([_block_peaks(one, rate_hz) for one in statistics])
    counts = blocks > 0.0
    return np.asarray(np.where(counts.any(axis=0), blocks.sum(axis=0) / np.maximum(counts.sum(axis=0), 1), 1.0))


def _block_peaks(statistic: Floats, rate_hz: float) -> Floats:
    """(M, n) largest values in blocks of `CLEAR_S`."""
    length = max(1, round(CLEAR_S * rate_hz))
    rows = len(statistic) // length
    return np.asarray(statistic[: rows * length].reshape(rows, length, statistic.shape[1]).max(axis=1))


def fit_tail(statistics: Sequence[Floats], rate_hz: float) -> Tail:
    """Fit the law of the peaks.

    Args:
        statistics: (N, n) along each clean stretch, one column per joint; zero where they do not count.
        rate_hz: Samples per second.

    Raises:
        DataError: The stretches are too short.
    """
    seconds = sum(len(one) for one in statistics) / rate_hz
    if seconds < FEWEST_S:
        raise DataError(
            f"{seconds:.1f} s are too short for a rate of false alarms",
            remedy=f"Calibrate from logs of at least {FEWEST_S:g} s in which nothing touches the robot.",
        )
    columns = [column for one in statistics for column in one.T]
    largest = np.concatenate([_block_peaks(one, rate_hz).ravel() for one in statistics])
    threshold = float(np.quantile(largest[largest > 0.0], THRESHOLD)) if np.any(largest > 0.0) else 0.0
    peaks = np.concatenate([find_peaks(one, rate_hz, threshold) for one in columns])
    if peaks.size > MOST_PEAKS:
        threshold = float(np.sort(peaks)[-MOST_PEAKS - 1])
        peaks = peaks[peaks > threshold]
    excess = np.sort(peaks) - threshold
    mean = max(float(excess.mean()), 1e-12) if excess.size else max(threshold, 1e-12)
    scale, shape = (grid.ravel() for grid in np.meshgrid(mean * SCALES, SHAPES, indexing="ij"))
    likely = genpareto.logpdf(excess, shape[:, None], scale=scale[:, None]).sum(axis=1)
    likely -= 0.5 * (shape / SHAPE_PRIOR) ** 2
    weights = np.exp(likely - likely.max())
    kept = weights > 1e-8 * weights.max()
    return Tail(
        threshold, max(excess.size, 0.5) / seconds, scale[kept], shape[kept], weights[kept] / weights[kept].sum()
    )  # fmt: skip
