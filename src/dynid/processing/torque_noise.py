"""The noise of measured torques, from frequencies above the band of the motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dynid.arrays import Floats
from dynid.processing.cutoff import LONGEST, SHORTEST
from dynid.processing.experiment import Experiment

HIGHEST_START = 0.35
"""Largest lower end of that band, as a share of the sampling rate (convention)."""
ABOVE = (1.5, 4.0)
"""Multiples of the low-pass's cutoff between which the noise is measured (convention: at higher frequencies drives
often filter it)."""


def noise_through(experiment: Experiment, cutoff_hz: float | None, gain: Callable[[Floats], Floats]) -> Floats:
    """Estimate the standard deviation (n,) of the torque noise after a filter [N m or N].

    Args:
        experiment: An experiment with unfiltered torques.
        cutoff_hz: Upper end of the band of the motion [Hz]; None if it is unknown.
        gain: Gain of the filter at each frequency [Hz].

    We assume the same density of the noise within the band of the motion as just above it. Dry friction contributes
    there too, with less than a tenth of its size, which does not matter where noise prevails.
    """
    part = _known_stretches(experiment)
    part = part.rows(np.flatnonzero(part.segment == np.argmax(np.bincount(part.segment, minlength=1))))
    if part.samples < SHORTEST:
        return np.zeros(part.q.shape[1])
    middle = max(part.samples - LONGEST, 0) // 2
    part, rate = part.rows(slice(middle, middle + LONGEST)), part.rate_hz
    cutoff = rate if cutoff_hz is None else cutoff_hz
    window = np.hanning(part.samples)[:, None]
    around = part.effort - part.effort.mean(axis=0)
    density = 2.0 * np.abs(np.fft.rfft(window * around, axis=0)) ** 2 / (rate * float(np.sum(window**2)))
    frequency = np.asarray(np.fft.rfftfreq(part.samples, 1.0 / rate), dtype=np.float64)
    band = (frequency > min(ABOVE[0] * cutoff, HIGHEST_START * rate)) & (frequency < min(ABOVE[1] * cutoff, 0.5 * rate))
    level = np.median(density[band], axis=0) / np.log(2.0)  # a periodogram's values are exponentially distributed
    return np.asarray(np.sqrt(level * float(np.sum(gain(frequency) ** 2)) * frequency[1]))


def _known_stretches(experiment: Experiment) -> Experiment:
    """The samples at which all torques are known; the segments are their gap-free stretches."""
    known = np.asarray(np.isfinite(experiment.effort).all(axis=1))
    borders = (np.diff(experiment.segment) != 0) | (known[1:] != known[:-1])
    stretch = np.cumsum(np.concatenate([[0], borders])[: known.size])
    return replace(experiment, segment=stretch).rows(np.flatnonzero(known))
