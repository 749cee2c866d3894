"""The cutoff of the low-pass that gives the best accelerations, and the noise of torques behind a filter.

`dynid.processing.process` calls `choose_common_cutoff` with raw positions (N, n) on a uniform clock, before they are
filtered and differentiated. The power spectrum of the positions is split into signal S_signal(f) and noise S_noise(f).
A low-pass with differentiation has a gain G(f), the ratio of the computed to the true acceleration, and leaves the mean
square acceleration error

    sum over f of (2 pi f)^4 ((1 - G)^2 S_signal + G^2 S_noise) = lost signal + passed noise.

The cutoff minimises it, each joint divided by its own acceleration power.

How signal and noise are told apart: torque is finite, so the acceleration spectrum of a true motion falls with
frequency. Above the last valley of that spectrum there is only noise (encoder steps, jitter, vibration), and at lower
frequencies there is noise of the same level. Powers are averaged over *bands* of Fourier bins that widen with
frequency. `shows_motion` uses the same split for resting joints; `noise_through` measures the noise of torques.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from dynid.array_types import Floats
from dynid.processing.experiment import Experiment
from dynid.processing.filters import CentralDifferences

SHORTEST, LONGEST = 64, 2**18
"""Smallest number of samples for a spectrum that separates motion from noise, and largest number that is used
(convention)."""
CLEAR_SIGMAS = 16.0
"""A band contains signal if its mean power exceeds the noise by this many standard deviations of the mean of as many
bins of noise (convention). The number is large because neighbouring Fourier bins are correlated, and because one random
peak at a high frequency would outweigh all signal."""
COARSE_SIGMAS = 6.0
"""The same for bands of a third of an octave, and for the narrow band of the noise floor. It is smaller, because a
spectrum has few of these (convention; the window correlates two bins)."""
VALLEY_RATIO = 3.0
"""Ratio by which the acceleration spectrum must rise below its valley to show a motion, and below which the spectrum
above the valley is white noise (convention)."""
MOTION_TO_NOISE = 20.0
"""Ratio of a band's signal to the noise floor, and of a joint's travel to its noise, above which the joint moves
(convention)."""
HIGHEST_CUTOFF = 0.45
"""Highest automatic cutoff as a share of the sampling rate; convention, just below the Nyquist frequency."""
STILL_CUTOFF = 0.1
"""Cutoff of a log without motion, as a share of the sampling rate (convention)."""
FEWEST_PERIODS = 3.0
"""Smallest cutoff, as the number of its periods in the longest stretch (convention)."""
CANDIDATES = 160
"""Number of cutoffs that are tried; they are evenly spaced on a logarithmic scale (convention: steps of 3 %)."""
BANDS = 500
"""Largest number of bands of a spectrum (convention)."""
FLOOR_TOP, FLOOR_WIDE = 0.49, 0.30
"""Common upper end of the two bands that show the noise floor, and lower end of the wide one, as shares of the sampling
rate (convention); the narrow one begins at `HIGHEST_CUTOFF`."""
ALIKE = 1.01
"""Ratio up to which two errors count as equal (convention: 1 %, where chance decides which is larger). Of the cutoffs
whose squared errors equal the smallest one, the lowest is chosen ..."""
LARGEST_STEP_DOWN = 1.3
"""... but none that is lower than the best cutoff by more than this factor (convention)."""

NOISE_BAND = (1.5, 4.0)
"""Ends of the band in which `noise_through` measures the noise, as multiples of the low-pass's cutoff (convention: at
higher frequencies drives often filter it)."""
HIGHEST_NOISE_BAND_START = 0.35
"""Largest lower end of that band, as a share of the sampling rate (convention)."""


@dataclass(frozen=True, slots=True, eq=False)
class _Spectrum:
    """Power of n signals in b bands that widen with frequency."""

    frequency_hz: Floats
    """(b,) centres of the bands [Hz]."""
    bins: Floats
    """(b,) number of Fourier bins in each band."""
    signal: Floats
    """(b, n) mean power of the motion per bin [rad^2 or m^2]."""
    noise: Floats
    """(b, n) mean power of the noise per bin [rad^2 or m^2]: white noise of standard deviation s has s^2 in each."""


def choose_common_cutoff(
    logs: Sequence[tuple[Sequence[Floats], float]], *, differentiation: CentralDifferences
) -> tuple[float, str, float]:
    """Choose one cutoff for several logs: the one with the smallest mean of their squared acceleration errors.

    Args:
        logs: For each log its stretches without a gap, (N_i, n) each, and its sampling rate [Hz]. The values are
            positions, or velocities if the differentiation starts from those.
        differentiation: The way of differentiation; it knows its own gain.

    Returns:
        The cutoff [Hz], the reason as text, and the predicted acceleration error (root mean square, relative to the
        acceleration); infinite if nothing moves.
    """
    # of each log at most `LONGEST` samples in the middle of its longest stretch
    longest = [max(stretches, key=len) for stretches, _ in logs]
    starts = [max(0, (len(x) - LONGEST) // 2) for x in longest]
    rates = [rate for _, rate in logs]
    slowest = min(rates)
    spectra = [_spectrum(x[k : k + LONGEST], rate) for x, k, rate in zip(longest, starts, rates, strict=True)]
    noise_std = np.sqrt(np.mean([spectrum.noise[0] for spectrum in spectra], axis=0))
    lowest = min(FEWEST_PERIODS * rate / len(x) for x, rate in zip(longest, rates, strict=True))
    candidates = np.geomspace(min(lowest, STILL_CUTOFF * slowest), HIGHEST_CUTOFF * slowest, CANDIDATES)
    tables = [  # (c, 2) lost signal and passed noise at each of the c candidates, for each log that moves
        _errors(spectrum, rate, candidates, differentiation)
        for spectrum, rate in zip(spectra, rates, strict=True)
        if _moves(spectrum).any()
    ]
    if not tables:
        hz = STILL_CUTOFF * slowest
        return hz, f"cutoff {hz:.3g} Hz: no motion above the noise floor, a tenth of the sampling rate is used", np.inf
    squares = np.mean(tables, axis=0)
    total = squares.sum(axis=1)
    # the lowest candidate that is hardly worse than the best one, and not far below it
    is_near = candidates >= candidates[np.argmin(total)] / LARGEST_STEP_DOWN
    best = int(np.flatnonzero(is_near & (total <= ALIKE * total.min()))[0])
    bias, noise = np.sqrt(np.maximum(squares[best], 0.0))
    hz = float(candidates[best])
    error = float(np.hypot(bias, noise))
    reason = (
        f"cutoff {hz:.3g} Hz, chosen from the spectrum: predicted acceleration error {100 * error:.2g} % "
        f"(lost signal {100 * bias:.2g} %, noise {100 * noise:.2g} %), "
        f"noise floor {noise_std.min():.2g} to {noise_std.max():.2g} rms"
    )
    return hz, reason, error


def _errors(spectrum: _Spectrum, rate_hz: float, cutoffs_hz: Floats, differentiation: CentralDifferences) -> Floats:
    """Predict the squared relative acceleration error at c cutoffs (c,) [Hz], as the mean over the joints that move.

    Returns:
        (c, 2) error by lost signal, error by passed noise.
    """
    moves = _moves(spectrum)
    # power of a derivative, but for a factor: f^4 for positions, f^2 for velocities, in all bins of a band
    weight = spectrum.bins[:, None] * spectrum.frequency_hz[:, None] ** (2 * differentiation.times)
    scale = weight / (weight * spectrum.signal).sum(axis=0)[moves]  # over the acceleration power of each joint
    lost = scale * spectrum.signal[:, moves]
    passed = scale * spectrum.noise[:, moves]
    gains = differentiation.gains(spectrum.frequency_hz, rate_hz, cutoffs_hz)  # (c, b)
    errors = [(1.0 - gains) ** 2 @ lost.sum(axis=1), gains**2 @ passed.sum(axis=1)]
    return np.array(errors).T / np.count_nonzero(moves)


def shows_motion(x: Floats, rate_hz: float) -> NDArray[np.bool_]:
    """Test for each column of a gap-free x (N, n) whether a band of its spectrum is far above its noise, (n,)."""
    return _moves(_spectrum(x, rate_hz))


def _moves(spectrum: _Spectrum) -> NDArray[np.bool_]:
    """Test for each signal whether some band of it is far above the noise of the lowest band, (n,)."""
    return np.asarray(spectrum.signal.max(axis=0) > MOTION_TO_NOISE * spectrum.noise[0])


def _spectrum(x: Floats, rate_hz: float) -> _Spectrum:
    """Split the spectrum of one stretch (N, n) into signal and noise, in bands."""
    samples = x.shape[0]
    # without mean and straight line, under a sin^4 window, slow motion does not leak into high frequencies
    line = np.linspace(-1.0, 1.0, samples)[:, None]
    centred = x - x.mean(axis=0)
    centred = centred - line * ((line * centred).sum(axis=0) / (line**2).sum())
    window = signal.windows.cosine(samples) ** 4
    window /= np.sqrt(np.mean(window**2))
    transform = np.fft.rfft(centred * window[:, None], axis=0)[1:]
    power = np.abs(transform) ** 2 / samples  # (f, n); white noise has its variance in every bin
    frequency = np.arange(1, power.shape[0] + 1) * rate_hz / samples
    floor = _floor(power, frequency / rate_hz)
    # bands from edge to edge, of one bin each at low frequencies
    edges = np.unique(np.geomspace(1, power.shape[0] + 1, BANDS).astype(int)) - 1
    bins = np.diff(edges).astype(float)
    mean = np.add.reduceat(power, edges[:-1], axis=0)[: bins.size] / bins[:, None]
    centre = np.add.reduceat(frequency, edges[:-1])[: bins.size] / bins
    noise = np.column_stack(
        [_noise(centre, bins, column, float(low)) for column, low in zip(mean.T, floor, strict=True)]
    )
    return _Spectrum(centre, bins, _signal(centre, bins, mean, noise), noise)


def _floor(power: Floats, frequency: Floats) -> Floats:
    """Estimate the noise level (n,) at the top of a spectrum: the median power in a wide or in a narrow band.

    A fast motion may reach into the wide band; then the level of the narrow band is clearly lower, and is taken.
    Otherwise that of the wide band is taken: the smaller of two scattering levels would be too low.

    Args:
        power: (f, n) power of each bin.
        frequency: (f,) frequencies of the bins, as shares of the sampling rate.
    """
    top = (power[(frequency > low) & (frequency < FLOOR_TOP)] for low in (FLOOR_WIDE, HIGHEST_CUTOFF))
    wide, narrow = (part if len(part) else power[-1:] for part in top)  # a handful of samples has no such band
    # the power of noise is exponentially distributed: its median is log(2) times its mean
    levels = [np.median(part, axis=0) / np.log(2.0) for part in (wide, narrow)]
    wide_level, narrow_level = levels
    scatter = COARSE_SIGMAS / np.sqrt(max(len(narrow), COARSE_SIGMAS**2 + 1.0))  # below 1 for few bins, too
    return np.asarray(np.where(narrow_level < wide_level * (1.0 - scatter), narrow_level, wide_level))


def _signal(frequency: Floats, bins: Floats, mean: Floats, noise: Floats) -> Floats:
    """Compute the signal power per bin (b, n), the excess of power over noise.

    In bands that are clearly above the noise it is the excess of the band. A motion that is not band-limited continues
    in bands that are not clearly above it: each is too narrow to show its signal. Those within a third of an octave are
    taken together, and all get their common excess if that is significant, otherwise zero.

    Args:
        frequency: (b,) centres of the bands [Hz].
        bins: (b,) Fourier bins per band.
        mean: (b, n) mean power per bin.
        noise: (b, n) mean power of the noise per bin.
    """
    clear = mean > noise * (1.0 + CLEAR_SIGMAS / np.sqrt(bins[:, None]))
    starts = _thirds(frequency)
    hidden = np.where(clear, 0.0, bins[:, None])  # bins of the bands that are not clear
    # for each third of an octave: number of hidden bins, their mean excess, its scatter by chance, mean noise
    count = np.maximum(np.add.reduceat(hidden, starts, axis=0), 1.0)
    excess = np.add.reduceat(hidden * (mean - noise), starts, axis=0) / count
    scatter = np.sqrt(np.add.reduceat(hidden * noise**2, starts, axis=0)) / count
    level = np.add.reduceat(hidden * noise, starts, axis=0) / count
    # relative uncertainty of the noise floor, from the number of bins in the wide band that shows it
    unsure = COARSE_SIGMAS / np.sqrt((FLOOR_TOP - FLOOR_WIDE) * bins.sum() * 2.0)
    found = excess > COARSE_SIGMAS * scatter + unsure * level
    third = np.repeat(np.where(found, excess, 0.0), np.diff([*starts, bins.size]), axis=0)
    return np.where(clear, mean - noise, third)


def _thirds(frequency: Floats) -> NDArray[np.int64]:
    """Find the indices of the bands at which thirds of an octave begin."""
    return np.unique(np.floor(3.0 * np.log2(frequency / frequency[0])), return_index=True)[1]


def _noise(frequency: Floats, bins: Floats, power: Floats, floor: float) -> Floats:
    """Compute the noise power per bin (b,) of one joint.

    Above the valley of the acceleration spectrum all power is noise; below it, noise has the level of the valley.

    Args:
        frequency: (b,) centres of the bands [Hz].
        bins: (b,) Fourier bins per band.
        power: (b,) mean power per bin.
        floor: Noise level at the top of the spectrum.
    """
    # mean power in thirds of an octave, and power of the acceleration in each
    starts = _thirds(frequency)
    total = np.add.reduceat(power * bins, starts) / np.add.reduceat(bins, starts)
    acceleration = total * frequency[starts] ** 5  # f^4 for two derivatives, f for the width of a third of an octave
    valley = acceleration.size - 1  # sought from the top down
    for k in reversed(range(acceleration.size)):
        if acceleration[k] > VALLEY_RATIO * acceleration[valley]:
            break  # here the motion begins
        valley = k if acceleration[k] < acceleration[valley] else valley
    beyond = total[valley + 3 :]  # from an octave above the valley
    if beyond.max(initial=0.0) < VALLEY_RATIO * floor:  # flat: white noise
        return np.full_like(power, floor)
    above = np.arange(power.size) >= starts[valley]
    # at the valley signal and noise are equal
    return np.where(above, power, max(floor, 0.5 * float(total[valley])))


def noise_through(experiment: Experiment, cutoff_hz: float | None, gain: Callable[[Floats], Floats]) -> Floats:
    """Estimate the standard deviation (n,) of the torque noise after a filter [N m or N].

    The density of the noise is measured just above the band of the motion, and taken to be the same within it. Dry
    friction contributes there too, with less than a tenth of its size, which does not matter where noise prevails.

    Args:
        experiment: An experiment with unfiltered torques.
        cutoff_hz: Upper end of the band of the motion [Hz]; None if it is unknown.
        gain: Gains (f,) of the filter at frequencies (f,) [Hz].

    Returns:
        Standard deviations; zeros if no stretch is long enough.
    """
    # the longest stretch with known torques of all joints, and at most `LONGEST` samples in its middle
    known = np.asarray(np.isfinite(experiment.effort).all(axis=1))
    borders = (np.diff(experiment.segment) != 0) | (known[1:] != known[:-1])
    stretch = np.cumsum(np.concatenate([[0], borders])[: known.size])  # (N,) number of the stretch of each sample
    part = replace(experiment, segment=stretch).rows(np.flatnonzero(known))
    part = part.rows(np.flatnonzero(part.segment == np.argmax(np.bincount(part.segment, minlength=1))))
    if part.samples < SHORTEST:
        return np.zeros(part.q.shape[1])
    middle = max(part.samples - LONGEST, 0) // 2
    part = part.rows(slice(middle, middle + LONGEST))
    rate = part.rate_hz
    cutoff = rate if cutoff_hz is None else cutoff_hz
    frequency, density = signal.periodogram(part.effort, rate, window=np.hanning(part.samples), axis=0)
    low = min(NOISE_BAND[0] * cutoff, HIGHEST_NOISE_BAND_START * rate)
    band = (frequency > low) & (frequency < NOISE_BAND[1] * cutoff)
    level = np.median(density[band], axis=0) / np.log(2.0)  # mean density from the median, as in `_floor`
    # variance: sum of the filtered density over the frequencies, which are frequency[1] apart
    return np.asarray(np.sqrt(level * float(np.sum(gain(frequency) ** 2)) * frequency[1]))
