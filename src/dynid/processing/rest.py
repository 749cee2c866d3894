"""Standstill of joints: dry friction is then anywhere between its two limits, so the torque is not informative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.processing.cutoff import LONGEST, MOVES, SHORTEST, shows_motion
from dynid.processing.outliers import run_lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Rule by which a joint counts as resting."""

    velocity: float | None = None
    """Speed below which a joint rests [rad/s or m/s]; by default 1 % of the 99th percentile of its speed, at least
    0.001."""
    min_s: float = 0.5
    """Shortest rest that is left out [s]; a mere change of direction is not a rest."""

    def thresholds(self, dq: Floats, measured: Sequence[Floats], rate_hz: float) -> Floats:
        """(n,) speed below which each joint rests; infinite for a joint that does not move above its noise.

        Args:
            dq: (N, n) velocities.
            measured: Gap-free stretches (N_i, n) of positions before any filter.
            rate_hz: Sampling rate of both [Hz].
        """
        if self.velocity is not None:
            return np.full(dq.shape[1], self.velocity)
        usual = np.maximum(0.01 * np.percentile(np.abs(dq[:: max(1, len(dq) // 20_000)]), 99.0, axis=0), 1e-3)
        return np.where(_moves_above_noise(measured, rate_hz), usual, np.inf)

    def mask(self, dq: Floats, rate_hz: float, thresholds: Floats) -> NDArray[np.bool_]:
        """(N, n) whether joint j is resting at each sample of a gap-free stretch."""
        slow = zip(dq.T, thresholds, strict=True)
        return np.column_stack([run_lengths(np.abs(own) < limit) >= self.min_s * rate_hz for own, limit in slow])


def _moves_above_noise(stretches: Sequence[Floats], rate_hz: float) -> NDArray[np.bool_]:
    """(n,) whether a joint moves anywhere; differentiated noise would pass for fast motion."""
    if min(map(len, stretches)) < SHORTEST:
        return np.ones(stretches[0].shape[1], dtype=bool)
    moving = _travels_above_noise(stretches)
    for stretch in stretches:
        if not moving.all():
            moving[~moving] = shows_motion(stretch[:LONGEST, ~moving], rate_hz)
    return np.asarray(moving)


def _travels_above_noise(stretches: Sequence[Floats]) -> NDArray[np.bool_]:
    """(n,) whether the travel of a joint is far above the noise that its second differences show."""
    span = np.max([x.max(axis=0) for x in stretches], axis=0) - np.min([x.min(axis=0) for x in stretches], axis=0)
    noise = np.sqrt(
        np.max([np.mean(np.diff(x[:LONGEST], 2, axis=0) ** 2, axis=0) for x in stretches if len(x) > 2], axis=0) / 6.0
    )
    return np.asarray(span > MOVES * noise)
