"""The cutoff with the best accelerations: the smallest predicted sum of lost signal and passed noise.

The spectrum of the positions is split into signal and noise. Torque is finite, so the acceleration spectrum of a true
motion falls; above the last valley of that spectrum there is only noise (encoder steps, jitter, vibration), and the
lower frequencies hide noise of the same level. A differentiation strategy of gain G(f) then leaves the mean
square acceleration error ``sum (2 pi f)^4 ((1 - G)^2 S_signal + G^2 S_noise)``; the cutoff minimises it, each joint
weighted by its own acceleration power.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.processing.differentiation import Differentiation
from dynid.processing.filters import LowPass, Smoothing

__all__ = ["LONGEST", "CutoffChoice", "choose_cutoff", "shows_motion"]

Floats = NDArray[np.float64]

LONGEST = 2**18
"""Largest number of samples of the longest stretch that are used (convention)."""
CLEAR = 16.0
"""A band holds signal when its mean exceeds the noise floor by this many standard deviations of such a mean;
neighbouring Fourier bins are correlated, and one chance peak at a high frequency would outweigh all signal."""
CLEAR_THIRD = 6.0
"""The same number for thirds of an octave, of which there are few (convention; the window correlates about two
bins)."""
RISE = 3.0
"""Ratio by which the acceleration spectrum must rise below its valley to show a motion (convention)."""
SLACK = 1.01
"""Ratio of predicted errors within which the lowest cutoff is chosen ..."""
NEAR = 1.3
"""... but at most this factor below the best cutoff. Both are conventions."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CutoffChoice:
    """A cutoff and why it was chosen."""

    hz: float
    """[Hz]"""
    relative_error: float
    """Predicted rms acceleration error over rms acceleration, all joints that move."""
    bias: float
    """Part of the relative error that is lost signal."""
    noise: float
    """Part of the relative error that is passed noise."""
    signal_noise: Floats
    """(n,) standard deviation of the noise in the motion's band, as of white noise [rad, m, or per s]."""

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
    noise: Floats  # (b, n) mean power per bin


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
    noise_std = np.sqrt(spectrum.noise[0])
    order = 2 if differentiation.source == "q" else 1
    weight = spectrum.bins[:, None] * (2.0 * np.pi * spectrum.frequency_hz[:, None]) ** (2 * order)
    power = (weight * spectrum.signal).sum(axis=0)
    moves = _moves(spectrum)
    if not moves.any():
        return CutoffChoice(hz=0.1 * rate_hz, relative_error=np.inf, bias=np.inf, noise=np.inf, signal_noise=noise_std)
    scale = weight / power[moves]
    lost, passed = scale * spectrum.signal[:, moves], scale * spectrum.noise[:, moves]
    candidates = np.geomspace(min(3.0 * rate_hz / len(longest), 0.1 * rate_hz), 0.45 * rate_hz, 160)
    errors = []
    for hz in candidates:
        smoothing = Smoothing(rate_hz=rate_hz, cutoff_hz=float(hz), low_pass=low_pass)
        gain = differentiation.gain(spectrum.frequency_hz, smoothing)[:, None]
        errors.append((((1.0 - gain) ** 2 * lost).sum(), (gain**2 * passed).sum()))
    table = np.array(errors) / np.count_nonzero(moves)
    total = table.sum(axis=1)
    near = candidates >= candidates[np.argmin(total)] / NEAR
    best = int(np.flatnonzero(near & (total <= SLACK * total.min()))[0])
    bias, noise = np.sqrt(np.maximum(table[best], 0.0))
    return CutoffChoice(
        hz=float(candidates[best]),
        relative_error=float(np.hypot(bias, noise)),
        bias=float(bias),
        noise=float(noise),
        signal_noise=noise_std,
    )


def shows_motion(x: Floats, rate_hz: float) -> NDArray[np.bool_]:
    """(n,) whether some band of each column of a gap-free stretch (N, n) stands well above that column's noise."""
    return _moves(_spectrum(x, rate_hz))


def _moves(spectrum: _Spectrum) -> NDArray[np.bool_]:
    return np.asarray(spectrum.signal.max(axis=0) > 20.0 * spectrum.noise[0])


def _spectrum(x: Floats, rate_hz: float) -> _Spectrum:
    """Banded spectrum of one stretch; the window's side lobes fall fast enough to keep slow motion out of the rest."""
    samples = x.shape[0]
    line = np.linspace(-1.0, 1.0, samples)[:, None]
    centred = x - x.mean(axis=0)
    centred = centred - line * ((line * centred).sum(axis=0) / (line**2).sum())
    window = np.sin(np.pi * (np.arange(samples) + 0.5) / samples) ** 4
    window /= np.sqrt(np.mean(window**2))
    transform = np.fft.rfft(centred * window[:, None], axis=0)[1:]
    power = np.abs(transform) ** 2 / samples  # of white noise: its variance in every bin
    frequency = np.arange(1, power.shape[0] + 1) * rate_hz / samples
    floor = _floor(power, frequency / rate_hz)
    edges = np.unique(np.geomspace(1, power.shape[0] + 1, 500).astype(int)) - 1
    bins = np.diff(edges).astype(float)
    mean = np.add.reduceat(power, edges[:-1], axis=0)[: bins.size] / bins[:, None]
    centre = np.add.reduceat(frequency, edges[:-1])[: bins.size] / bins
    noise = np.column_stack(
        [_noise(centre, bins, column, float(low)) for column, low in zip(mean.T, floor, strict=True)]
    )
    return _Spectrum(centre, bins, _signal(centre, bins, mean, noise), noise)


def _floor(power: Floats, frequency: Floats) -> Floats:
    """(n,) level of the noise at the top of a spectrum (f, n), whose frequencies are shares of the sampling rate.

    Where a fast motion reaches into the wide band, the narrow one is clearly lower; else its scatter would only make
    the lesser of both too low.
    """
    top = (power[(frequency > low) & (frequency < 0.49)] for low in (0.30, 0.45))
    wide, narrow = (part if len(part) else power[-1:] for part in top)  # a handful of samples has no such band
    levels = [np.median(part, axis=0) / np.log(2.0) for part in (wide, narrow)]  # power is exponentially distributed
    surely = levels[1] < levels[0] * (1.0 - 6.0 / np.sqrt(max(len(narrow), 37)))
    return np.asarray(np.where(surely, levels[1], levels[0]))


def _signal(frequency: Floats, bins: Floats, mean: Floats, noise: Floats) -> Floats:
    """Signal power per bin (b, n): a band's excess over the noise, or that of its third of an octave, where clear.

    A motion that is not band-limited continues below the noise of single bands. Each band is too narrow to show it; all
    unclear bands of a third of an octave together reveal it.
    """
    clear = mean > noise * (1.0 + CLEAR / np.sqrt(bins[:, None]))
    starts = _thirds(frequency)
    hidden = np.where(clear, 0.0, bins[:, None])
    count = np.maximum(np.add.reduceat(hidden, starts, axis=0), 1.0)
    excess = np.add.reduceat(hidden * (mean - noise), starts, axis=0) / count
    scatter = np.sqrt(np.add.reduceat(hidden * noise**2, starts, axis=0)) / count
    level = np.add.reduceat(hidden * noise, starts, axis=0) / count
    unsure = CLEAR_THIRD / np.sqrt(0.19 * bins.sum() * 2.0)  # of the floor: as many bins as it was taken from
    found = excess > CLEAR_THIRD * scatter + unsure * level
    third = np.repeat(np.where(found, excess, 0.0), np.diff([*starts, bins.size]), axis=0)
    return np.where(clear, mean - noise, third)


def _thirds(frequency: Floats) -> NDArray[np.int64]:
    """Indices at which thirds of an octave begin."""
    return np.flatnonzero(np.diff(np.floor(3.0 * np.log2(frequency / frequency[0])), prepend=-1))


def _noise(frequency: Floats, bins: Floats, power: Floats, floor: float) -> Floats:
    """Noise power per bin (b,) of one joint: all above the valley of the acceleration spectrum, its level below."""
    starts = _thirds(frequency)
    total = np.add.reduceat(power * bins, starts) / np.add.reduceat(bins, starts)
    acceleration = total * frequency[starts] ** 5  # per third of an octave
    valley = acceleration.size - 1
    for k in reversed(range(acceleration.size)):
        if acceleration[k] > RISE * acceleration[valley]:
            break
        valley = k if acceleration[k] < acceleration[valley] else valley
    beyond = total[valley + 3 :]
    if beyond.max(initial=0.0) < 3.0 * floor:  # flat from an octave above: white noise, and motion shows in the valley
        return np.full_like(power, floor)
    above = np.arange(power.size) >= starts[valley]
    return np.where(above, power, max(floor, 0.5 * float(total[valley])))
