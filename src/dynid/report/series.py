"""The numbers behind the plots of a report: measured and predicted torques, and statistics of the residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from dynid.array_types import Floats
from dynid.estimators.rows import torque_along
from dynid.identification.identify import Identification
from dynid.processing.experiment import Experiment
from dynid.spatial import TINY

MOST_POINTS = 4000
"""Most points of one curve (convention: a few per pixel of a wide screen). `thin` keeps the extremes of longer ones."""
FEWEST = 32
"""Fewest samples of a joint whose residuals are drawn (convention)."""
BINS = 40
"""Bins of a histogram of residuals, and classes of speed over which they are averaged (convention)."""
TAIL_PERCENT = 0.2
"""Share of the residuals that a histogram leaves out at each end [%] (convention: outliers do not stretch it)."""


@dataclass(frozen=True, slots=True, eq=False)
class JointTorque:
    """Measured and predicted torques of one joint in one run; NaN at samples that do not count."""

    name: str
    unit: str
    """Unit of the torques: ``N m`` or ``N``."""
    speed_unit: str
    """``rad/s`` or ``m/s``."""
    time: Floats
    """(N,) [s]"""
    measured: Floats
    """(N,) measured torque."""
    identified: Floats
    """(N,) prediction of the identified robot."""
    prior: Floats
    """(N,) prediction of the prior model."""
    speed: Floats
    """(N,) velocity of the joint."""

    @property
    def residual(self) -> Floats:
        """(N,) measured torque minus the prediction of the identified robot."""
        return self.measured - self.identified

    @property
    def counted(self) -> NDArray[np.bool_]:
        """(N,) whether each sample counts."""
        return np.isfinite(self.measured)


def joint_torques(fit: Identification, run: Experiment) -> tuple[JointTorque, ...]:
    """Collect measured and predicted torques of every joint of a run."""
    run = run.matched(fit.robot)
    identified = fit.torque(run)
    prior = torque_along(fit.robot, fit.robot.parameter_vector, run)
    measured = np.where(run.valid, run.effort, np.nan)
    return tuple(
        JointTorque(
            name=name,
            unit="N" if body.is_prismatic else "N m",
            speed_unit="m/s" if body.is_prismatic else "rad/s",
            time=run.time,
            measured=measured[:, j],
            identified=identified[:, j],
            prior=prior[:, j],
            speed=run.dq[:, j],
        )
        for j, (name, body) in enumerate(zip(fit.robot.joint_names, fit.robot.bodies, strict=True))
    )


def thin(*channels: Floats) -> list[Floats]:
    """Select at most `MOST_POINTS` rows, so that the peaks of the second and of the last channel stay visible.

    Args:
        channels: Arrays (N,); time comes first.
    """
    if channels[0].size <= MOST_POINTS:
        return list(channels)
    kept = {
        int(part[find_extreme(np.nan_to_num(channel[part]))])
        for part in np.array_split(np.arange(channels[0].size), MOST_POINTS // 4)  # four rows of each part stay
        for channel in (channels[1], channels[-1])
        for find_extreme in (np.argmin, np.argmax)
    }
    return [channel[sorted(kept)] for channel in channels]


def bin_residuals(e: Floats) -> tuple[Floats, Floats]:
    """Count the residuals e (N,) in `BINS` bins; returns the centres of the bins and the counts."""
    low, high = np.percentile(e, [TAIL_PERCENT, 100.0 - TAIL_PERCENT])
    counts, edges = np.histogram(e, bins=BINS, range=(float(low), float(high)))
    return 0.5 * (edges[1:] + edges[:-1]), counts.astype(float)


def autocorrelate(e: Floats, rate_hz: float) -> tuple[Floats, Floats]:
    """Compute the autocorrelation of the residuals e (N,); returns lags up to one second [s] and its values."""
    lags = max(2, min(e.size // 2, int(rate_hz)))
    size = next_fast_len(e.size + lags, real=True)  # zeros behind the residuals: the Fourier transform is cyclic
    e = e - e.mean()
    correlation = irfft(np.abs(rfft(e, size)) ** 2, size)[:lags] / max(float(e @ e), TINY)
    return np.arange(lags) / rate_hz, correlation


def mean_over_speed(e: Floats, speed: Floats) -> tuple[Floats, Floats]:
    """Average speed and residual, each (N,), in `BINS` classes of similar speed; missing friction shows here.

    Returns:
        Mean speed and mean residual of each class.
    """
    parts = [part for part in np.array_split(np.argsort(speed), BINS) if part.size]
    return np.array([speed[part].mean() for part in parts]), np.array([e[part].mean() for part in parts])
