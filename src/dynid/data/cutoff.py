"""Which cutoff gives the best accelerations: the smallest predicted sum of lost signal and passed noise.

The spectrum of the positions is split into signal and a white noise floor. A differentiation strategy of gain G(f) then
leaves the mean square acceleration error ``sum (2 pi f)^4 ((1 - G)^2 S_signal + G^2 S_noise)``; the cutoff minimises
it, each joint weighted by its own acceleration power.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.data.differentiation import Differentiation
from dynid.data.filters import LowPass, Smoothing

__all__ = ["CutoffChoice", "choose_cutoff"]

Floats = NDArray[np.float64]

LONGEST = 2**18
"""Samples of the longest stretch that are looked at."""
CLEAR = 16.0
"""A band holds signal when its mean exceeds the noise floor by this many standard deviations of such a mean;
neighbouring Fourier bins are correlated, and one chance peak at a high frequency would outweigh all signal."""
SLACK = 1.01
"""Among cutoffs predicted equally good within this factor the lowest is taken."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CutoffChoice:
    """A cutoff and why it was chosen."""

    hz: float
    """[Hz]"""
    relative_error: float
    """Predicted rms acceleration error over rms acceleration, all joints that move."""
    bias: float
    """Part of it that is lost signal."""
    noise: float
    """Part of it that is passed noise."""
    signal_noise: Floats
    """(n,) standard deviation of the white noise of the differentiated signal [rad, m, or per s]."""

    @property
    def reason(self) -> str:
        """One sentence for the recipe."""
        if not np.isfinite(self.relative_error):
            return f"cutoff {self.hz:.3g} Hz: no motion above the noise floor, a tenth of the sampling rate is used"
        return (
            f"cutoff {self.hz:.3g} Hz, chosen from the spectrum: predicted acceleration error "
            f"{100 * self.relative_error:.2g} % (lost signal {100 * self.bias:.2g} %, noise {100 * self.noise:.2g} %), "
            f"noise floor {np.min(self.signal_noise):.2g} to {np.max(self.signal_noise):.2g} rms"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Spectrum:
    """Power of a signal in bands that widen with frequency."""

    frequency_hz: Floats  # (b,) centres
    bins: Floats  # (b,) Fourier bins per band
    signal: Floats  # (b, n) mean power per bin, noise taken off
    noise: Floats  # (n,) mean power per bin


def choose_cutoff(
    stretches: Sequence[Floats], rate_hz: float, *, differentiation: Differentiation, low_pass: LowPass
) -> CutoffChoice:
    """Choose the cutoff for a strategy from the measured signal it differentiates.

    Args:
        stretches: Gap-free pieces (N_i, n) of positions, or of velocities for a strategy that differentiates those.
        rate_hz: Sampling rate [Hz].
        differentiation: The strategy.
        low_pass: The filter it works with.
    """
    longest = max(stretches, key=len)
    middle = max(0, (len(longest) - LONGEST) // 2)
    spectrum = _spectrum(longest[middle : middle + LONGEST], rate_hz)
    noise_std = np.sqrt(spectrum.noise)
    order = 2 if differentiation.source == "q" else 1
    weight = spectrum.bins[:, None] * (2.0 * np.pi * spectrum.frequency_hz[:, None]) ** (2 * order)
    power = (weight * spectrum.signal).sum(axis=0)
    moves = power > (weight * spectrum.noise).sum(axis=0) * 1e-12
    moves &= spectrum.signal.max(axis=0) > 20.0 * spectrum.noise
    if not moves.any():
        return CutoffChoice(hz=0.1 * rate_hz, relative_error=np.inf, bias=np.inf, noise=np.inf, signal_noise=noise_std)
    scale = weight / power[moves]
    lost, passed = scale * spectrum.signal[:, moves], scale * spectrum.noise[moves]
    candidates = np.geomspace(min(3.0 * rate_hz / len(longest), 0.1 * rate_hz), 0.45 * rate_hz, 160)
    errors = []
    for hz in candidates:
        smoothing = Smoothing(rate_hz=rate_hz, cutoff_hz=float(hz), low_pass=low_pass)
        gain = differentiation.gain(spectrum.frequency_hz, smoothing)[:, None]
        errors.append((((1.0 - gain) ** 2 * lost).sum(), (gain**2 * passed).sum()))
    table = np.array(errors) / np.count_nonzero(moves)
    total = table.sum(axis=1)
    best = int(np.flatnonzero(total <= SLACK * total.min())[0])
    bias, noise = np.sqrt(np.maximum(table[best], 0.0))
    return CutoffChoice(
        hz=float(candidates[best]),
        relative_error=float(np.hypot(bias, noise)),
        bias=float(bias),
        noise=float(noise),
        signal_noise=noise_std,
    )


def _spectrum(x: Floats, rate_hz: float) -> _Spectrum:
    """Banded spectrum of one stretch; the window's side lobes fall fast enough to keep slow motion out of the rest."""
    samples = x.shape[0]
    line = np.linspace(0.0, 1.0, samples)[:, None]
    window = np.sin(np.pi * (np.arange(samples) + 0.5) / samples) ** 4
    window /= np.sqrt(np.mean(window**2))
    transform = np.fft.rfft((x - x[0] - line * (x[-1] - x[0])) * window[:, None], axis=0)[1:]
    power = np.abs(transform) ** 2 / samples  # of white noise: its variance in every bin
    frequency = np.arange(1, power.shape[0] + 1) * rate_hz / samples
    top = (frequency > 0.3 * rate_hz) & (frequency < 0.48 * rate_hz)
    floor = np.median(power[top], axis=0) / np.log(2.0)  # periodogram values are exponentially distributed
    edges = np.unique(np.geomspace(1, power.shape[0] + 1, 500).astype(int)) - 1
    bins = np.diff(edges).astype(float)
    mean = np.add.reduceat(power, edges[:-1], axis=0)[: bins.size] / bins[:, None]
    centre = np.add.reduceat(frequency, edges[:-1])[: bins.size] / bins
    return _Spectrum(centre, bins, _above_floor(mean, floor, bins), floor)


def _above_floor(power: Floats, floor: Floats, bins: Floats) -> Floats:
    """Power less the floor in the bands that clearly rise above it; chance peaks at high frequencies must not count."""
    return np.where(power > floor * (1.0 + CLEAR / np.sqrt(bins[:, None])), power - floor, 0.0)
