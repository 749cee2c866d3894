"""Whether measured positions are where a Kalman filter expects them.

With the right model and noise levels the innovations, in standard deviations, are white and of unit variance. Errors of
parameters come from what is slow in them, so that their inflation is that of the means over blocks of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from dynid.errors import EstimationError
from dynid.findings import Finding

__all__ = ["Innovations", "innovation_inflation", "refuse_hopeless"]

Floats = NDArray[np.float64]
LEVEL = 1e-4
"""Probability that innovations of a right filter are called too large, of one joint."""
WORSE = 2.0
"""A filter whose predictions are this much worse than those of constant velocity knows nothing of the motion."""


@dataclass(frozen=True, slots=True, eq=False)
class Innovations:
    """Of one gap-free stretch."""

    q: Floats
    """(N, n) measured positions [rad or m]"""
    surprise: Floats
    """(N, n) measured less expected positions [rad or m]"""
    std: Floats
    """(N, n) standard deviation of that difference as the filter has it"""


def innovation_inflation(stretches: Sequence[Innovations], joints: Sequence[str]) -> tuple[Floats, tuple[Finding, ...]]:
    """(n,) factor by which innovations vary more than the filter says, at least 1; and a finding where it is more.

    Args:
        stretches: All that were filtered.
        joints: (n,) their names.
    """
    means = []
    for stretch in stretches:
        relative = stretch.surprise / stretch.std
        size = max(1, isqrt(len(relative)))  # blocks as long as there are many
        blocks = relative[: len(relative) // size * size].reshape(-1, size, relative.shape[1])
        means.append(blocks.sum(axis=1) / np.sqrt(size))
    together = np.concatenate(means)
    squares = np.mean(together**2, axis=0)
    usual = chdtri(len(together), LEVEL) / len(together)
    inflation = np.where(squares > usual, squares, 1.0)
    if not np.any(inflation > 1.0):
        return inflation, ()
    worst = int(np.argmax(inflation))
    message = (
        f"the model or the noise levels do not fit: the variance of the innovations is {inflation[worst]:.3g} times as "
        "large as it should be; intervals are widened by that, but a wrong model also shifts the values"
    )
    found = Finding(
        code="misfit",
        severity="warning",
        where="q",
        joint=joints[worst],
        message=message,
        remedy="Check torque_std, position_std, torque_between and the joint models.",
        evidence={"variance ratio": float(inflation[worst])},
    )
    return inflation, (found,)


def refuse_hopeless(stretches: Sequence[Innovations], joints: Sequence[str]) -> None:
    """Refuse a filter that foretells positions worse than constant velocity does.

    Raises:
        EstimationError: So it is, for some joint.
    """
    surprise = np.concatenate([np.abs(stretch.surprise) for stretch in stretches])
    coasting = np.concatenate([np.abs(np.diff(stretch.q, 2, axis=0)) for stretch in stretches])
    # medians, so that the first samples after a poor start do not count
    off, usual = np.median(surprise, axis=0), np.median(coasting, axis=0)
    expected = np.median(np.concatenate([stretch.std for stretch in stretches]), axis=0)
    hopeless = np.flatnonzero(off > WORSE * np.maximum(usual, expected))
    if hopeless.size:
        joint = int(hopeless[0])
        raise EstimationError(
            f"the measured torques do not move {joints[joint]!r} as the model says: positions are {off[joint]:.2g} off "
            f"after one sample, {usual[joint]:.2g} with constant velocity",
            remedy="Check the torques' signs and scale and the joint models, or start closer to the truth (start=...).",
        )
