"""Noise with a memory: autoregressive models, fitted to autocovariances, their order chosen by a criterion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Autoregression:
    """``e_k + a_1 e_(k-1) + ... + a_p e_(k-p)`` is white."""

    taps: Floats
    """(p + 1,) one, then a_1 to a_p"""
    variance: float
    """Of the white noise that drives it."""

    @classmethod
    def white(cls, variance: float) -> Autoregression:
        """No memory."""
        return cls(np.ones(1), variance)

    @classmethod
    def fit(cls, covariances: Floats, samples: int) -> Autoregression:
        """From autocovariances (P + 1,) of ``samples`` samples, of the order up to P with the smallest BIC.

        Levinson's recursion; it ends where the covariances can be those of no process (they may be differences).
        """
        best = cls.white(float(covariances[0]))
        lowest = samples * np.log(max(best.variance, 1e-300))
        taps, variance = np.ones(1), float(covariances[0])
        for order in range(1, covariances.size):
            if not variance > 0.0:
                break
            reflection = -float(taps @ covariances[order:0:-1][: taps.size]) / variance
            if not abs(reflection) < 1.0:
                break
            taps = np.append(taps, 0.0) + reflection * np.append(taps, 0.0)[::-1]
            variance *= 1.0 - reflection**2
            criterion = samples * np.log(variance) + order * np.log(max(samples, 2))
            if criterion < lowest:
                best, lowest = cls(taps, variance), criterion
        return best

    @property
    def order(self) -> int:
        """Samples that it remembers."""
        return self.taps.size - 1

    def whiten(self, x: Floats) -> Floats:
        """(N - p, ...) the filtered rows of x (N, ...)."""
        p, rows = self.order, len(x) - self.order
        result = x[p:].copy()
        for lag in range(1, p + 1):
            result += self.taps[lag] * x[p - lag : p - lag + rows]
        return np.asarray(result)


def autocovariance(x: Floats, valid: NDArray[np.bool_], most: int) -> tuple[Floats, int]:
    """(most + 1,) autocovariances of a zero-mean signal (N,), and the number of samples that count."""
    e = np.where(valid, x, 0.0)
    known = valid.astype(float)
    size = len(e)
    sums = [float(e[lag:] @ e[: size - lag]) for lag in range(most + 1)]
    counts = [float(known[lag:] @ known[: size - lag]) for lag in range(most + 1)]
    count = max(counts[0], 1.0)
    # divided by the number of pairs over the number of samples, so that gaps do not weaken the correlation
    return np.array([s / max(c, 1.0) * (c / count) for s, c in zip(sums, counts, strict=True)]), int(counts[0])
