"""How often a statistic exceeds a level: the tail of its largest values per block of time, fitted by Gumbel's law.

The largest value x of a block follows ``exp(-exp(-(x^k - location) / scale))``, with k = 2 for noise with normal tails
and k = 1 for noise whose tails fall exponentially, as where friction breaks loose; the likelier one is taken. A level
that is exceeded once in a long time follows from it, also where the time is longer than the log: an extrapolation, and
stated as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError

__all__ = ["Tail", "block_maxima", "fit_tail"]

Floats = NDArray[np.float64]
BLOCK_S = 0.25
"""Length of the blocks [s] (convention: longer than the noise remembers most of itself, and many in a short log)."""
FEWEST = 20
"""Fewest blocks from which a tail is fitted (convention)."""


@dataclass(frozen=True, slots=True)
class Tail:
    """Gumbel's law of the largest value in a block of time."""

    location: float
    scale: float
    block_s: float
    """Length of a block [s]."""
    power: int = 1
    """The power k of the statistic: 2 for normal tails, 1 for exponential ones."""

    def level(self, rate_hz: float) -> float:
        """The level that is exceeded by blocks at a rate [1/s]."""
        share = -np.log1p(-min(rate_hz * self.block_s, 1.0 - 1e-12))
        return float(max(self.location - self.scale * np.log(share), 0.0) ** (1.0 / self.power))

    def rate(self, level: float) -> float:
        """The rate of blocks that exceed a level [1/s]."""
        return float(-np.expm1(-np.exp(-(level**self.power - self.location) / self.scale)) / self.block_s)


def block_maxima(statistic: Floats, rate_hz: float, block_s: float = BLOCK_S) -> Floats:
    """(M,) largest values of the whole blocks of a statistic (N,); NaN counts as nothing."""
    length = max(1, round(block_s * rate_hz))
    count = len(statistic) // length
    blocks = np.nan_to_num(statistic[: count * length], nan=-np.inf).reshape(count, length).max(axis=1)
    return np.asarray(blocks[np.isfinite(blocks)])


def fit_tail(maxima: Sequence[Floats], block_s: float = BLOCK_S, power: int | None = None) -> Tail:
    """Fit the tail by maximum likelihood.

    Args:
        maxima: Largest values of blocks, as `block_maxima` gives them.
        block_s: Length of the blocks [s].
        power: Power of the statistic; the likelier one if None.

    Raises:
        DataError: There are too few blocks.
    """
    x = np.concatenate(list(maxima)) if maxima else np.zeros(0)
    if x.size < FEWEST:
        raise DataError(
            f"{x.size} blocks of {block_s:g} s are too few for a rate of false alarms",
            remedy=f"Calibrate from logs of at least {FEWEST * block_s:g} s in which nothing touches the robot.",
        )
    fits = [(*_fit_gumbel(x**k), k) for k in ((1, 2) if power is None else (power,))]
    # the density of x itself has the derivative of its power as a factor
    likelihood = [one[2] + float(np.log(one[3] * np.maximum(x, 1e-12) ** (one[3] - 1)).sum()) for one in fits]
    location, scale, _, chosen = fits[int(np.argmax(likelihood))]
    return Tail(location, scale, block_s, chosen)


def _fit_gumbel(x: Floats) -> tuple[float, float, float]:
    """Location, scale and log likelihood of Gumbel's law."""
    scale = max(float(np.std(x)) * float(np.sqrt(6.0)) / np.pi, 1e-12)
    for _ in range(100):  # the fixed point of the likelihood equation, damped
        weight = np.exp(-(x - x.min()) / scale)
        better = float(x.mean() - (x * weight).sum() / weight.sum())
        if abs(better - scale) < 1e-10 * scale:
            break
        scale = 0.5 * (scale + max(better, 1e-3 * scale))
    location = float(x.min() - scale * np.log(np.exp(-(x - x.min()) / scale).mean()))
    z = (x - location) / scale
    return location, scale, float(np.sum(-np.log(scale) - z - np.exp(-z)))
