"""How often a statistic exceeds a level: the distribution of its peaks above a threshold, and its uncertainty.

A statistic is a number per joint and sample that grows when something pushes the arm. `dynid.monitor.calibration` calls
`fit_tail` with its values (N, n) along clean logs, and chooses the level of alarms by `Tail.level`.

Peaks over a high threshold follow a generalised Pareto distribution, whatever the noise is. A clean log of some seconds
holds few of them, so that scale and shape of this distribution are uncertain. The rate at a level is therefore the mean
over the posterior of scale and shape, computed on a grid: with few peaks the level of a rate is higher, so that alarms
come at the stated rate on average over calibrations. For times longer than the log this is an extrapolation.

The peaks of all joints are one sample of one distribution, and the rate of the arm is the sum over its joints: what
reaches several joints at once is one alarm, so that the sum is an upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import genpareto

from dynid.array_types import Floats
from dynid.errors import DataError

CLEAR_S = 0.25
"""Time without excess after which a new excess is a new event [s] (convention)."""
THRESHOLD_QUANTILE = 0.7
"""Quantile of the largest values in blocks of `CLEAR_S`, over all joints, above which peaks count (convention: many
peaks, and yet a tail; chosen with figures of the real logs in view)."""
MOST_PEAKS = 100
"""Most peaks that the distribution is fitted to, the highest ones (convention: more of them are no longer a tail)."""
FEWEST_S = 5.0
"""Shortest clean data from which a tail is fitted [s] (convention)."""
SHAPES = np.linspace(-0.3, 0.8, 45)
"""Grid of shapes of the Pareto distribution [-]: negative for a finite end, zero exponential, positive heavy-tailed."""
SHAPE_PRIOR = 0.1
"""Standard deviation of the normal prior of the shape, about zero (convention: about exponential)."""
SCALES = np.geomspace(0.2, 5.0, 61)
"""Grid of scales of the Pareto distribution, over the mean excess (convention: both ends are far beyond the scales that
peaks allow; the prior of the scale is uniform in its logarithm)."""


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """The posterior distribution of the peaks of a statistic above a threshold, as K points of a grid."""

    threshold: float
    """Value of the statistic above which peaks count."""
    events_hz: float
    """Rate of events above the threshold, of all joints together [1/s]."""
    scales: Floats
    """(K,) scales, in units of the statistic."""
    shapes: Floats
    """(K,) shapes [-]."""
    weights: Floats
    """(K,) posterior probabilities; their sum is one."""

    def rates(self, level: float) -> Floats:
        """Compute the rate (K,) of events above a level by each point of the grid [1/s].

        A level below the threshold counts as the threshold.
        """
        excess = max(level - self.threshold, 0.0) / self.scales
        return np.asarray(self.events_hz * genpareto.sf(excess, self.shapes))

    def rate(self, level: float) -> float:
        """Posterior mean of the rate of events above a level [1/s]."""
        return float(self.rates(level) @ self.weights)

    def level(self, rate_hz: float) -> float:
        """Find the level that events exceed at a rate [1/s]: the threshold, if this many events exceed even that."""
        if rate_hz >= self.events_hz:
            return self.threshold
        high = self.threshold + float(self.scales.max())
        while self.rate(high) > rate_hz:
            high += high - self.threshold  # twice as far above the threshold
        return float(brentq(lambda level: self.rate(level) - rate_hz, self.threshold, high))


def find_peaks(statistic: Floats, rate_hz: float, threshold: float) -> Floats:
    """Find the peaks (M,) of a statistic (N,): the largest value of each event; events are `CLEAR_S` apart."""
    places = np.flatnonzero(statistic > threshold)
    if not places.size:
        return np.zeros(0)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(places) > CLEAR_S * rate_hz) + 1])
    return np.asarray(np.maximum.reduceat(statistic[places], starts))


def usual_peaks(statistics: Sequence[Floats], rate_hz: float) -> Floats:
    """Compute the mean (n,) over blocks of `CLEAR_S` of their largest value, for each column of statistics (N, n).

    Blocks of zeros do not count; a column without any other block has the mean one.
    """
    blocks = np.concatenate([_block_peaks(one, rate_hz) for one in statistics])
    counts = blocks > 0.0
    return np.asarray(np.where(counts.any(axis=0), blocks.sum(axis=0) / np.maximum(counts.sum(axis=0), 1), 1.0))


def _block_peaks(statistic: Floats, rate_hz: float) -> Floats:
    """Find the largest values (M, n) of a statistic (N, n) in M blocks of `CLEAR_S`, without an incomplete last one."""
    length = max(1, round(CLEAR_S * rate_hz))
    rows = len(statistic) // length
    return np.asarray(statistic[: rows * length].reshape(rows, length, statistic.shape[1]).max(axis=1))


def fit_tail(statistics: Sequence[Floats], rate_hz: float) -> Tail:
    """Fit the distribution of the peaks.

    Args:
        statistics: (N, n) statistic along each clean stretch, one column per joint; zero where it does not count.
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
    threshold = float(np.quantile(largest[largest > 0.0], THRESHOLD_QUANTILE)) if np.any(largest > 0.0) else 0.0
    peaks = np.concatenate([find_peaks(one, rate_hz, threshold) for one in columns])
    if peaks.size > MOST_PEAKS:
        threshold = float(np.sort(peaks)[-MOST_PEAKS - 1])
        peaks = peaks[peaks > threshold]
    excess = np.sort(peaks) - threshold
    mean = max(float(excess.mean()) if excess.size else threshold, 1e-12)  # a scale must be positive
    # all pairs of the grid (K,); their posterior is the likelihood of the excesses times the prior of the shape
    scale, shape = (grid.ravel() for grid in np.meshgrid(mean * SCALES, SHAPES, indexing="ij"))
    log_posterior = genpareto.logpdf(excess, shape[:, None], scale=scale[:, None]).sum(axis=1)
    log_posterior -= 0.5 * (shape / SHAPE_PRIOR) ** 2
    weights = np.exp(log_posterior - log_posterior.max())
    kept = weights > 1e-8 * weights.max()  # the others add nothing to any rate
    return Tail(
        threshold=threshold,
        events_hz=max(excess.size, 0.5) / seconds,  # none counts as half an event
        scales=scale[kept],
        shapes=shape[kept],
        weights=weights[kept] / weights[kept].sum(),
    )
