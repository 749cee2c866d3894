"""The numbers behind the pictures: torques and statistics of the residuals; what reports draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from dynid.arrays import Floats
from dynid.estimation.rows import torque_along
from dynid.identification.identify import Identification
from dynid.processing.experiment import Experiment

MOST_POINTS = 4000
"""Points of one curve; a convention, a few per pixel of a wide screen. `thin` keeps the extremes of longer curves."""
FEWEST = 32
"""Samples of a joint below which its residuals are not drawn; a convention."""
BINS = 40
"""Bins of a histogram of residuals, and classes of speed over which they are averaged; a convention."""
TAIL_PERCENT = 0.2
"""Share of the residuals that a histogram leaves out at each end [%], so that single outliers do not stretch it."""


@dataclass(frozen=True, slots=True, eq=False)
class JointTorque:
    """Measured and predicted torques of one joint in one run; NaN at samples that do not count."""

    name: str
    unit: str
    """``N m`` or ``N``."""
    speed_unit: str
    time: Floats
    measured: Floats
    identified: Floats
    """Prediction of the identified robot."""
    prior: Floats
    """Prediction of the prior model."""
    speed: Floats

    @property
    def residual(self) -> Floats:
        """Measured torque minus the prediction of the identified robot."""
        return self.measured - self.identified

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Whether each sample counts."""
        return np.isfinite(self.measured)


def joint_torques(fit: Identification, run: Experiment) -> tuple[JointTorque, ...]:
    """Measured and predicted torques of every joint of a run."""
    run = run.matched(fit.robot)
    identified = fit.torque(run)
    prior = torque_along(fit.robot, fit.robot.parameter_vector, run)
    measured = np.where(run.valid, run.effort, np.nan)
    return tuple(
        JointTorque(
            name,
            "N" if body.is_prismatic else "N m",
            "m/s" if body.is_prismatic else "rad/s",
            run.time,
            measured[:, j],
            identified[:, j],
            prior[:, j],
            run.dq[:, j],
        )
        for j, (name, body) in enumerate(zip(fit.robot.joint_names, fit.robot.bodies, strict=True))
    )


def thin(*channels: Floats) -> list[Floats]:
    """Select the same rows of several channels so that the peaks of the second and of the last one stay visible.

    Args:
        channels: Arrays of equal length; time comes first.
    """
    if channels[0].size <= MOST_POINTS:
        return list(channels)
    kept = {
        int(part[pick(np.nan_to_num(channel[part]))])
        for part in np.array_split(np.arange(channels[0].size), MOST_POINTS // 4)
        for channel in (channels[1], channels[-1])
        for pick in (np.argmin, np.argmax)
    }
    return [channel[sorted(kept)] for channel in channels]


def bin_residuals(e: Floats) -> tuple[Floats, Floats]:
    """Count the residuals in `BINS` bins; returns the centres of the bins and the counts."""
    low, high = np.percentile(e, [TAIL_PERCENT, 100.0 - TAIL_PERCENT])
    counts, edges = np.histogram(e, bins=BINS, range=(float(low), float(high)))
    return 0.5 * (edges[1:] + edges[:-1]), counts.astype(float)


def autocorrelate(e: Floats, rate_hz: float) -> tuple[Floats, Floats]:
    """Compute the autocorrelation of the residuals; returns lags of up to one second [s] and the values there."""
    lags = max(2, min(e.size // 2, int(rate_hz)))
    size = next_fast_len(e.size + lags, real=True)  # with zeros for the lags
    e = e - e.mean()
    correlation = irfft(np.abs(rfft(e, size)) ** 2, size)[:lags] / max(float(e @ e), 1e-300)
    return np.arange(lags) / rate_hz, correlation


def mean_over_speed(e: Floats, speed: Floats) -> tuple[Floats, Floats]:
    """Average speed and residual in classes of similar speed; friction that the model lacks shows here."""
    parts = [part for part in np.array_split(np.argsort(speed), BINS) if part.size]
    return np.array([speed[part].mean() for part in parts]), np.array([e[part].mean() for part in parts])
