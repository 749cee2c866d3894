"""The noise of the torques, estimated from frequencies above the band of the motion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dynid.processing.delay import known_stretches
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Smoothing

__all__ = ["filtered_noise", "noise_through"]

Floats = NDArray[np.float64]

HIGHEST_START = 0.35
"""Largest lower end of that band, as a share of the sampling rate (convention)."""
ABOVE = (1.5, 4.0)
"""Multiples of the low-pass's cutoff between which the noise is measured (convention: at higher frequencies drives
often filter it)."""
FEWEST = 64
"""Smallest number of samples for a spectrum (convention)."""


def filtered_noise(experiment: Experiment, smoothing: Smoothing | None) -> Floats:
    """Estimate the standard deviation (n,) of the torque noise after a low-pass [N m or N].

    Args:
        experiment: An experiment with unfiltered torques.
        smoothing: The low-pass; None if the torques are not filtered.
    """
    if smoothing is None:
        return noise_through(experiment, None, np.ones_like)
    return noise_through(experiment, smoothing.cutoff_hz, smoothing.gain)


def noise_through(experiment: Experiment, cutoff_hz: float | None, gain: Callable[[Floats], Floats]) -> Floats:
    """Estimate the standard deviation (n,) of the torque noise after a filter [N m or N].

    Args:
        experiment: An experiment with unfiltered torques.
        cutoff_hz: Upper end of the band of the motion [Hz]; None if it is unknown.
        gain: Gain of the filter at each frequency [Hz].

    We assume the same density of the noise within the band of the motion as just above it. Dry friction contributes
    there too, with less than a tenth of its size, which does not matter where noise prevails.
    """
    part = known_stretches(experiment)
    part = part.rows(np.flatnonzero(part.segment == np.argmax(np.bincount(part.segment, minlength=1))))
    if part.samples < FEWEST:
        return np.zeros(part.q.shape[1])
    rate = part.rate_hz
    cutoff = rate if cutoff_hz is None else cutoff_hz
    window = np.hanning(part.samples)[:, None]
    around = part.effort - part.effort.mean(axis=0)
    density = 2.0 * np.abs(np.fft.rfft(window * around, axis=0)) ** 2 / (rate * float(np.sum(window**2)))
    frequency = np.asarray(np.fft.rfftfreq(part.samples, 1.0 / rate), dtype=np.float64)
    band = (frequency > min(ABOVE[0] * cutoff, HIGHEST_START * rate)) & (frequency < min(ABOVE[1] * cutoff, 0.5 * rate))
    level = np.median(density[band], axis=0) / np.log(2.0)  # a periodogram's values are exponentially distributed
    return np.asarray(np.sqrt(level * float(np.sum(gain(frequency) ** 2)) * frequency[1]))
