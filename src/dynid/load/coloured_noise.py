"""Noise that is correlated in time, and what it does to the uncertainty of least squares.

    covariance = C (W^H S W) C        C = (W^T W)^-1, S the spectrum of the residuals over that of white noise

S is smoothed over neighbouring frequencies, and what the fit has removed from the residuals, frequency by frequency, is
made good: the long-run covariance of every unknown by itself, since slow and quick columns see different noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from dynid.kernels import regressor
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

__all__ = ["coloured", "coloured_gram", "run_gram", "student"]

Floats = NDArray[np.float64]
FEW = 32
"""Samples that show nothing of serial correlation."""
STRETCH = 1 << 14
"""Samples of a joint whose spectrum is taken at once: memory stays bounded, and noise forgets sooner."""


def coloured_gram(W: Floats, residual: Floats, covariance: Floats) -> Floats:
    """(k, k) ``W^H S W``, with one spectrum S common to all channels; ``W^T W`` where samples are few.

    Args:
        W: (N, c, k) equations of c channels, each over its standard deviation.
        residual: (N, c) likewise; zero, with its equation, where a sample does not count.
        covariance: (k, k) of the unknowns under white noise.
    """
    seen = np.flatnonzero(np.any(W, axis=(0, 1)))
    whole = np.zeros_like(covariance)
    whole[np.ix_(seen, seen)] = _gram(W[:, :, seen], residual, covariance[np.ix_(seen, seen)])
    return whole


def _gram(W: Floats, residual: Floats, covariance: Floats) -> Floats:
    count, counted = len(W), float(np.count_nonzero(np.any(W, axis=2)))
    if count < FEW or not np.any(residual):
        return np.asarray(np.einsum("ncj,nck->jk", W, W))
    spectra = np.fft.rfft(W, axis=0)
    noise = (np.abs(np.fft.rfft(residual, axis=0)) ** 2).sum(axis=1)
    taken = np.real(np.einsum("fck,fck->f", spectra @ covariance, spectra.conj()))
    white = np.maximum(_smoothed(counted - taken, count), 0.1 * counted)
    shape = _smoothed(noise, count) / white
    twice = np.full(len(shape), 2.0)  # of positive and negative frequencies
    twice[0], twice[-1] = 1.0, 1.0 if count % 2 == 0 else 2.0
    flat_spectra = (spectra * np.sqrt(twice * shape / count)[:, None, None]).reshape(-1, W.shape[2])
    return np.asarray(np.real(flat_spectra.conj().T @ flat_spectra))


def _smoothed(power: Floats, count: int) -> Floats:
    """Means over neighbouring frequencies, mirrored at both ends."""
    reach = max(4, int(np.sqrt(count) / 4))
    mirrored = np.concatenate([power[reach:0:-1], power, power[-2 : -reach - 2 : -1]])
    return np.convolve(mirrored, np.full(2 * reach + 1, 1.0 / (2 * reach + 1)), mode="valid")


def coloured(covariance: Floats, gram: Floats) -> tuple[Floats, float]:
    """Covariance (k, k) under the noise of a gram, and its growth over that under white noise, at least one."""
    grown = np.asarray(covariance @ gram @ covariance)
    spread = np.diag(covariance)
    scale = np.sqrt(np.where(spread > 0.0, spread, 1.0))
    growth = float(np.trace(grown / np.outer(scale, scale)) / max(1, np.count_nonzero(spread)))
    return (grown, growth) if growth > 1.0 else (covariance, 1.0)


def student(spare: float) -> float:
    """Factor of standard deviations whose noise was judged by few samples: 1.96 of them then hold 95 %."""
    return max(1.0, float(stdtrit(max(spare, 1.0), 0.975)) / 1.96) if np.isfinite(spare) else 1.0


def run_gram(
    robot: Robot,
    run: Experiment,
    design: Floats,
    values: Floats,
    covariance: Floats,
    std: Floats,
    *,
    known: Floats | None = None,
) -> Floats:
    """(k, k) the gram of a run's joint torques, every joint with a spectrum of its own.

    Args:
        robot: Geometry and joint models.
        run: Its samples and torques.
        design: (p, k) from the unknowns to the robot's parameters in this run.
        values: (k,) the unknowns as estimated.
        covariance: (k, k) of them under white noise.
        std: (n,) of each joint's noise; infinite for joints that do not count.
        known: (p,) parameters that are not estimated; none by default.
    """
    theta = design @ values + (0.0 if known is None else known)
    needed = np.flatnonzero(np.any(design, axis=1) | (theta != 0.0))
    total = np.zeros_like(covariance)
    for first in range(0, run.samples, STRETCH):
        rows = slice(first, first + STRETCH)
        Y = regressor(robot, run.q[rows], run.dq[rows], run.ddq[rows], columns=needed.tolist())
        residual = np.where(run.valid[rows], run.effort[rows] - Y @ theta[needed], 0.0) / std
        for joint in np.flatnonzero(np.isfinite(std)):
            counts = run.valid[rows, joint, None] / std[joint]
            W = (Y[:, joint] * counts) @ design[needed]
            total += coloured_gram(W[:, None, :], residual[:, [joint]], covariance)
    return total
