"""Torques as measured: samples of a log, each a local fit to its neighbours, and the noise of the torques.

The noise is estimated from frequencies above the band of the motion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import pinv
from dynid.gate.quick_fit import FEWEST, Samples, pick, sense_of_motion
from dynid.processing.delay import known_stretches, near_reversals
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Smoothing
from dynid.robot.model import Robot

WINDOW = 0.5
"""Half the width of a window of local cubics times the highest rms frequency [rad] of a joint's motion (derivation: a
cubic changes the torque of twice that frequency by less than 1 %, that of the frequency itself by less than 0.1 %)."""
HIGHEST_START = 0.35
"""Largest lower end of that band, as a share of the sampling rate (convention)."""
ABOVE = (1.5, 4.0)
"""Multiples of the low-pass's cutoff between which the noise is measured (convention: at higher frequencies drives
often filter it)."""
FEWEST_FOR_SPECTRUM, MOST_FOR_SPECTRUM = 64, 2**17
"""Smallest and largest number of samples for a spectrum (convention: the noise of longer logs is that of their middle
part)."""


def measured_samples(robot: Robot, experiment: Experiment, rows: int) -> Samples | None:
    """Pick samples of an experiment whose torques are as measured; each is a local fit to its neighbours.

    A low-pass that removes noise changes torques by several percent at their highest frequencies. Cubics fitted to
    short windows use the same neighbours and keep the torques; signs of velocities are smoothed alike.
    """
    rows = _whole_steps(experiment, rows)
    plain = Samples.of(robot, experiment, rows)
    if plain is None or plain.slope is None:
        return plain
    picked = pick(experiment, plain.used, rows)
    half = _half_width(experiment, int(picked[-1] - picked[0]) // max(len(picked) - 1, 1))
    windows = _windows(experiment, picked, half)
    value, rate = _cubic_weights(half)
    good = (np.all(experiment.valid[windows], axis=1) | ~plain.used).all(axis=1)
    if good.sum() < FEWEST:
        return plain
    windows = windows[good]
    measured = np.where(experiment.valid[windows] & plain.used, experiment.effort[windows], 0.0)
    kept = {name: np.ascontiguousarray(getattr(plain, name)[good]) for name in ("q", "dq", "ddq", "time")}
    return replace(
        plain,
        **kept,
        effort=np.einsum("w,mwj->mj", value, measured),
        sign=np.einsum("w,mwj->mj", value, sense_of_motion(experiment.dq)[windows]),
        slope=plain.slope[good] if half < 2 else experiment.rate_hz * np.einsum("w,mwj->mj", rate, measured),
        jerk=_jerk(experiment, picked[good]),
        far_from_reversals=~near_reversals(experiment)[picked[good]],
    )


def _whole_steps(experiment: Experiment, rows: int) -> int:
    """Number of samples, at most ``rows``, between which a whole number of steps lies, so that windows use them all."""
    return experiment.samples // max(-(-experiment.samples // max(rows, 1)), 1)


def _jerk(experiment: Experiment, picked: NDArray[np.int64]) -> Floats:
    """(M, n) rate of the accelerations at picked samples, by differences; zero for samples without neighbours."""
    before, after = np.maximum(picked - 1, 0), np.minimum(picked + 1, experiment.samples - 1)
    before = np.where(experiment.segment[before] == experiment.segment[picked], before, picked)
    after = np.where(experiment.segment[after] == experiment.segment[picked], after, picked)
    steps = np.maximum(after - before, 1)[:, None]
    return np.asarray(experiment.rate_hz * (experiment.ddq[after] - experiment.ddq[before]) / steps)


def _half_width(experiment: Experiment, step: int) -> int:
    """Half the width of the windows of local cubics [samples]: no more than a step, nor than the motion allows."""
    speed, change = experiment.dq.std(axis=0), experiment.ddq.std(axis=0)
    fastest = float(np.max(change / np.maximum(speed, 1e-300), initial=0.0, where=speed > 0.0))  # rad/s
    allowed = WINDOW * experiment.rate_hz / max(fastest, 1e-300)
    return int(min(max(step, 0), allowed, experiment.samples // 4))


def _windows(experiment: Experiment, picked: NDArray[np.int64], half: int) -> NDArray[np.int64]:
    """(M, 2 half + 1) neighbours of picked samples; the sample itself where the window would leave its segment."""
    windows = picked[:, None] + np.arange(-half, half + 1)
    inside = np.clip(windows, 0, experiment.samples - 1)
    same = (inside == windows) & (experiment.segment[inside] == experiment.segment[picked][:, None])
    return np.asarray(np.where(same.all(axis=1)[:, None], inside, picked[:, None]))


def _cubic_weights(half: int) -> tuple[Floats, Floats]:
    """(2 half + 1,) weights of values in a window that give a cubic in its middle, and its slope per sample."""
    place = np.arange(-half, half + 1) / max(half, 1)
    middle = pinv(np.vander(place, min(4, 2 * half + 1), increasing=True))
    return middle[0], (middle[1] if half else np.zeros(1)) / max(half, 1)


def move_back(experiment: Experiment, delay_s: float) -> Experiment:
    """The experiment with late torques moved back by whole samples; the rest is left to the fit's column of a delay."""
    rows = np.arange(experiment.samples)
    source = np.clip(rows + round(delay_s * experiment.rate_hz), 0, experiment.samples - 1)
    inside = (source - rows == round(delay_s * experiment.rate_hz)) & (experiment.segment[source] == experiment.segment)
    valid = experiment.valid[source] & inside[:, None]
    return replace(experiment, effort=np.ascontiguousarray(experiment.effort[source]), valid=valid)


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
    if part.samples < FEWEST_FOR_SPECTRUM:
        return np.zeros(part.q.shape[1])
    middle = max(part.samples - MOST_FOR_SPECTRUM, 0) // 2
    part, rate = part.rows(slice(middle, middle + MOST_FOR_SPECTRUM)), part.rate_hz
    cutoff = rate if cutoff_hz is None else cutoff_hz
    window = np.hanning(part.samples)[:, None]
    around = part.effort - part.effort.mean(axis=0)
    density = 2.0 * np.abs(np.fft.rfft(window * around, axis=0)) ** 2 / (rate * float(np.sum(window**2)))
    frequency = np.asarray(np.fft.rfftfreq(part.samples, 1.0 / rate), dtype=np.float64)
    band = (frequency > min(ABOVE[0] * cutoff, HIGHEST_START * rate)) & (frequency < min(ABOVE[1] * cutoff, 0.5 * rate))
    level = np.median(density[band], axis=0) / np.log(2.0)  # a periodogram's values are exponentially distributed
    return np.asarray(np.sqrt(level * float(np.sum(gain(frequency) ** 2)) * frequency[1]))
