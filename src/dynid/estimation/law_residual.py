"""Does what the law leaves of the measured torque follow the commanded motion?

Where law and reference are right, only noise is left (see `dynid.estimation.controller_check`), and that knows nothing
of the motion. A reference that is not the commanded one (another unit, gain, sign, delay or joint), and terms of the
law that are not stated (feed-forward, compensation of gravity or friction), leave what follows it instead. So the
residual is explained by shapes of the commanded motion, at the frequencies of the motion only, and what they explain is
held against what they leave at the same frequencies. And whatever its shape, the residual at the frequencies of the
motion is held against that at frequencies beyond, where noise is rather more than less: encoders' is white, and
differentiated. No noise level has to be known for either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtri

from dynid.estimation.loop_start import taken_out

__all__ = ["LawResidual", "followed_shares"]

Floats = NDArray[np.float64]
MOST = 0.999
"""Share of the squares of the commanded velocities up to which frequencies are those of the motion."""
BEYOND = 3.0
"""How far beyond them noise is looked at."""
NEIGHBOURS = 2
"""Frequencies of a tapered spectrum beside a single one that it spreads over."""
RED = 4.0
"""How much more of noise there may be at the frequencies of the motion than beyond."""
PASSED = 0.7
"""Of a low-pass's cutoff, up to which frequencies count, ..."""
HIGHEST = 0.25
"""... and of the sampling rate."""
OWN = 4
"""Of the shapes, those of the joint's commanded motion itself."""
FREEDOM = 0.5
"""Independent values per real number of a tapered spectrum."""
SPARE = 8
"""Independent values that must be left over, at least."""
TURNING = 0.05
"""Share of the largest commanded speed below which a joint's sign is that of one that turns round."""


@dataclass(frozen=True, slots=True, eq=False)
class LawResidual:
    """What the law leaves of one run's torques, and what was commanded."""

    rest: Floats
    """(N, n), zero where samples do not count"""
    commanded: tuple[Floats, Floats, Floats]
    """(N, n) positions, velocities and accelerations"""
    counts: NDArray[np.bool_]
    """(N, n)"""
    rate_hz: float
    cutoff_hz: float | None
    """Of the low-pass that it went through [Hz]"""
    bases: tuple[Floats, ...] = ()
    """(K, r) of each joint: orthonormal directions that the rest was freed of"""

    @property
    def motion_hz(self) -> float:
        """Up to which frequency there is motion, tapered [Hz]."""
        dq = self.commanded[1]
        power = (np.abs(np.fft.rfft(dq * np.hanning(len(dq))[:, None], axis=0)) ** 2).sum(axis=1)
        place = int(np.searchsorted(np.cumsum(power), MOST * power.sum()))
        return float((place + NEIGHBOURS) * self.rate_hz / len(dq))

    @property
    def highest_hz(self) -> float:
        """Up to which frequency residuals are noise as it was [Hz]."""
        return HIGHEST * self.rate_hz if self.cutoff_hz is None else PASSED * self.cutoff_hz

    def spectra(self, top_hz: float) -> tuple[Floats, list[Floats]]:
        """(F, n) of the rest, and of each joint (F, k) of its shapes: real and imaginary parts up to a frequency.

        Shapes of a joint are its own commanded 1, q, dq, ddq; sign, sine and cosine; and the others' q and dq.
        """
        N, n = self.rest.shape
        taper = np.hanning(N)[:, None] * np.sqrt(
            16.0 / (3.0 * N)
        )  # squares of the spectrum sum up to those of the rest
        inside = slice(0, max(2, int(top_hz * N / self.rate_hz) + 1))

        def real(x: Floats) -> Floats:
            z = np.fft.rfft(x * taper, axis=0)[inside]
            return np.concatenate([z.real, z.imag])

        q, dq, ddq = self.commanded
        turning = np.tanh(dq / (TURNING * np.maximum(np.abs(dq).max(axis=0), 1e-12)))
        own = (q, dq, ddq, turning, np.sin(q), np.cos(q))
        signals = np.concatenate([np.ones((N, 1)), *own], axis=1)
        whole, shapes = real(signals), []
        for joint in range(n):
            others = np.delete(np.arange(n), joint)
            columns = np.concatenate([[0], 1 + joint + n * np.arange(len(own)), 1 + others, 1 + n + others])
            if self.counts[:, joint].all() and not self.bases:
                shapes.append(whole[:, columns])
                continue
            seen = signals[:, columns] * self.counts[:, joint : joint + 1]
            shapes.append(real(taken_out(seen[:, None], self.bases[joint : joint + 1])[:, 0] if self.bases else seen))
        return real(self.rest), shapes


def followed_shares(runs: list[LawResidual], levels: Floats, level: float) -> Floats:
    """(n, 2) root mean square of what follows the commanded motion and of what noise would seem to, over the torques'.

    Zeros where it is no more than noise does.

    Args:
        runs: All of them.
        levels: (n,) root mean square torques.
        level: Chance that noise is taken for more.
    """
    motion_hz = max(run.motion_hz for run in runs)
    top_hz = min(BEYOND * motion_hz, *(run.highest_hz for run in runs))
    parts = [run.spectra(top_hz) for run in runs]
    moving = np.concatenate(
        [np.tile(_frequencies(run, len(rest)) <= motion_hz, 2) for run, (rest, _) in zip(runs, parts, strict=True)]
    )
    found, samples = np.zeros((levels.size, 2)), sum(len(run.rest) for run in runs)
    for joint in np.flatnonzero(levels > 0.0).tolist():
        y = np.concatenate([rest[:, joint] for rest, _ in parts])
        X = np.concatenate([shapes[joint] for _, shapes in parts])
        seen = _explained(X[:, :OWN], y, level) or _explained(X, y, level) or _raised(moving, y, level)
        if seen is not None:
            found[joint] = np.sqrt(np.array(seen) / samples) / levels[joint]
    return found


def _frequencies(run: LawResidual, count: int) -> Floats:
    """Of a spectrum with so many real and imaginary parts [Hz]."""
    return np.asarray(np.arange(count // 2) * (run.rate_hz / len(run.rest)), dtype=np.float64)


def _explained(X: Floats, y: Floats, level: float) -> tuple[float, float] | None:
    """Sum of squares that columns (F, k) explain of values (F,), and that they would of noise; None for no more."""
    sizes = np.linalg.norm(X, axis=0)
    U, s, _ = np.linalg.svd(X[:, sizes > 0.0] / sizes[sizes > 0.0], full_matrices=False)
    U = U[:, s > 1e-6 * s.max(initial=0.0)]
    k, free = U.shape[1], FREEDOM * len(y) - U.shape[1]
    if k == 0 or free < SPARE:
        return None
    whole = float((U.T @ y) @ (U.T @ y))
    noise = (float(y @ y) - whole) * FREEDOM / free  # of one independent value
    explained = whole * FREEDOM
    if explained <= k * noise * fdtri(k, free, 1.0 - level):
        return None
    return whole, k * noise / FREEDOM


def _raised(moving: NDArray[np.bool_], y: Floats, level: float) -> tuple[float, float] | None:
    """The same of values (F,) at the frequencies of the motion, beside those beyond; None for no more than noise."""
    inside, beyond = FREEDOM * np.count_nonzero(moving), FREEDOM * np.count_nonzero(~moving)
    if beyond < SPARE or inside == 0.0:
        return None
    whole, noise = float((y[moving] ** 2).sum()), FREEDOM * float((y[~moving] ** 2).sum()) / beyond
    if whole * FREEDOM <= RED * inside * noise * fdtri(inside, beyond, 1.0 - level):
        return None
    return whole, inside * noise / FREEDOM
