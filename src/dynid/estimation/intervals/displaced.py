"""Standard deviations of errors whose mean is known and not zero, such that 1.96 of them are half of a 95 % interval.

A prior or a constraint moves an estimate away from the best guess, and the distance is known. Errors are then normal
around that distance m with the spread s. An interval about the estimate holds 95 % of them if its half width h has
``P(|m + s n| <= h) = 0.95``; between 1.96 s for no distance, and ``|m| + 1.645 s`` for a large one. The root of the
mean square error instead of h / 1.96 would be too wide: 99 % for a distance of two standard deviations.
"""

from __future__ import annotations

import functools

import numpy as np

from dynid.arrays import Floats
from dynid.estimation.intervals.quantiles import displaced_quantile, normal_quantile

FAR = 2.0
"""Ratio of distance and spread from which on the further tail holds nothing (derivation: 1e-4 of the half width)."""
STEPS = 40
"""Number of steps of the table up to there (derivation: linear between them, it is right to 1e-3 of the half width)."""
ONE_SIDED, TWO_SIDED = 0.95, 0.975
"""Quantiles at the ends of one-sided and two-sided 95 % intervals."""


def displaced_std(variance: Floats, mean: Floats | None) -> Floats:
    """(b,) standard deviations of errors with some mean.

    Args:
        variance: (b,) mean squares of the errors, that of the mean included.
        mean: (b,) their mean; None for zero.
    """
    whole = np.maximum(variance, 0.0)
    if mean is None or not np.any(mean):
        return np.asarray(np.sqrt(whole))
    away = np.abs(mean)
    spread = np.sqrt(np.maximum(whole - away**2, 0.0))
    ratio = np.divide(away, spread, out=np.full_like(away, np.inf), where=spread > 0.0)
    near, beyond = np.minimum(ratio, FAR), away + _one_sided() * spread
    half = np.where(ratio < FAR, spread * np.interp(near, *_table()), beyond)
    return np.asarray(np.where(away > 0.0, half / normal_quantile(TWO_SIDED), np.sqrt(whole)))


@functools.cache
def _one_sided() -> float:
    return normal_quantile(ONE_SIDED)


@functools.cache
def _table() -> tuple[Floats, Floats]:
    """Ratios of distance and spread, and the half width over the spread at each."""
    ratios = np.linspace(0.0, FAR, STEPS + 1)
    return ratios, np.array([displaced_quantile(ratio) for ratio in ratios.tolist()])
