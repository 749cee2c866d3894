"""How noisy measured positions are, and how that noise spreads into velocities and accelerations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.data.cutoff import choose_cutoff
from dynid.data.differentiation import CentralDifferences, Differentiation
from dynid.data.filters import Butterworth, Smoothing
from dynid.data.recording import Experiment

__all__ = ["impulse_responses", "position_noise"]

Floats = NDArray[np.float64]


def position_noise(runs: Sequence[Experiment]) -> float:
    """Standard deviation of white noise on the positions of experiments that were not low-passed [rad or m].

    From the floor of their spectrum; the root mean square over the joints.
    """
    squares = []
    for run in runs:
        pieces = np.split(run.q, np.flatnonzero(np.diff(run.segment)) + 1)
        choice = choose_cutoff(pieces, run.rate_hz, differentiation=CentralDifferences(), low_pass=Butterworth())
        squares.append(np.mean(choice.signal_noise**2))
    return float(np.sqrt(np.mean(squares)))


def impulse_responses(differentiation: Differentiation, rate_hz: float, reach: int) -> Floats:
    """(3, 2 reach + 1) by how much position k + o enters position, velocity and acceleration k, o from -reach to reach.

    Args:
        differentiation: A linear strategy that needs no cutoff.
        rate_hz: Sampling rate [Hz].
        reach: Largest distance of samples that act on one another.
    """
    size = 8 * reach + 1
    centre = size // 2
    impulse = np.zeros((size, 1))
    impulse[centre] = 1.0
    smoothing = Smoothing(rate_hz=rate_hz, cutoff_hz=None, low_pass=Butterworth())
    motion = differentiation.motion(impulse, None, smoothing)
    # the response k samples after the impulse is the weight of the sample k before
    return np.stack([x[centre - reach : centre + reach + 1, 0][::-1] for x in motion])
