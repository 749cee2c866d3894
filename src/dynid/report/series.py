"""The numbers behind the pictures: torques, and what residuals look like. Reports and plots draw the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.kernels import inverse_dynamics
from dynid.links.identify import Identification
from dynid.processing.experiment import Experiment

__all__ = ["JointTorque", "autocorrelation", "histogram", "joint_torques", "over_speed", "relative_error", "thinned"]

Floats = NDArray[np.float64]
ALL_POINTS = 60_000
"""Samples per channel of a page, over all joints."""
MOST_POINTS = 5000
"""Points of one curve; more are thinned to the extremes of each stretch."""
FEWEST = 32
"""Samples of a joint from which residuals say anything."""


@dataclass(frozen=True, slots=True, eq=False)
class JointTorque:
    """What one joint of a run did: torques where they count, NaN elsewhere."""

    name: str
    unit: str
    """``N m`` or ``N``."""
    speed_unit: str
    time: Floats
    measured: Floats
    found: Floats
    """By the identified robot."""
    before: Floats
    """By the model before."""
    speed: Floats

    @property
    def residual(self) -> Floats:
        """Measured minus found."""
        return self.measured - self.found

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Whether each sample counts."""
        return np.isfinite(self.measured)


def joint_torques(fit: Identification, run: Experiment) -> tuple[JointTorque, ...]:
    """Measured and predicted torques of every joint of a run."""
    found = fit.torque(run)
    before = inverse_dynamics(fit.robot, run.q, run.dq, run.ddq)
    measured = np.where(run.valid, run.effort, np.nan)
    return tuple(
        JointTorque(
            name,
            "N" if body.prismatic else "N m",
            "m/s" if body.prismatic else "rad/s",
            run.time,
            measured[:, j],
            found[:, j],
            before[:, j],
            run.dq[:, j],
        )
        for j, (name, body) in enumerate(zip(fit.robot.joint_names, fit.robot.bodies, strict=True))
    )


def thinned(joints: int, *channels: Floats) -> list[Floats]:
    """The same rows of several channels, so many that peaks of the second and the last one stay visible."""
    most = min(MOST_POINTS, ALL_POINTS // max(1, joints))
    if channels[0].size <= most:
        return list(channels)
    kept: list[int] = []
    for part in np.array_split(np.arange(channels[0].size), most // 4):
        ends = [pick(np.nan_to_num(c[part])) for c in (channels[1], channels[-1]) for pick in (np.argmin, np.argmax)]
        kept += sorted({int(part[end]) for end in ends})
    return [channel[kept] for channel in channels]


def histogram(e: Floats) -> tuple[Floats, Floats]:
    """Middles of 60 classes, and how many residuals are in each; the outermost 0.4 % are left out."""
    low, high = np.percentile(e, [0.2, 99.8])
    counts, edges = np.histogram(e, bins=60, range=(float(low), float(high)))
    return 0.5 * (edges[1:] + edges[:-1]), counts.astype(float)


def autocorrelation(e: Floats, rate_hz: float) -> tuple[Floats, Floats]:
    """Lags of up to one second [s], and the residuals' correlation with themselves that much later."""
    spectrum = np.abs(np.fft.rfft(e - e.mean(), 2 * e.size)) ** 2
    lags = max(2, min(e.size // 2, int(rate_hz)))
    correlation = np.fft.irfft(spectrum)[:lags] / max(float(np.sum((e - e.mean()) ** 2)), 1e-300)
    step = -(-lags // 500)
    return np.arange(lags)[::step] / rate_hz, correlation[::step]


def over_speed(e: Floats, speed: Floats) -> tuple[Floats, Floats]:
    """Mean speed and mean residual of 40 equally large classes of speed: friction that the model lacks shows here."""
    parts = [part for part in np.array_split(np.argsort(speed), 40) if part.size]
    return np.array([speed[part].mean() for part in parts]), np.array([e[part].mean() for part in parts])


def relative_error(joints: Sequence[JointTorque], *, before: bool = False) -> float:
    """100 |measured - predicted| / |measured| over all of them together [%]."""
    wrong = sum(float(np.nansum((t.measured - (t.before if before else t.found)) ** 2)) for t in joints)
    total = sum(float(np.nansum(t.measured**2)) for t in joints)
    return 100.0 * float(np.sqrt(wrong / total)) if total > 0.0 else float("nan")
