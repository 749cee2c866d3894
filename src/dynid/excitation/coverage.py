"""Friction wants speed: every joint in both directions over its speed range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.constraint import Constraint
from dynid.excitation.trajectory import Motion

__all__ = ["SpeedCoverage", "speed_coverage"]

Floats = NDArray[np.float64]
_ORDER = 12.0


@dataclass(frozen=True)
class SpeedCoverage(Constraint):
    """Each joint's peak speed in either direction reaches a target; the peak is a norm of high order over time."""

    @classmethod
    def of(cls, joint_names: tuple[str, ...], targets: Floats) -> SpeedCoverage:
        """Targets (n,) [rad/s or m/s], positive."""
        where = tuple(f"joint '{name}' {way}" for way in ("forwards", "backwards") for name in joint_names)
        return cls("speed coverage", where, np.tile(targets, 2), ("rad/s or m/s",) * len(where))

    def _peaks(self, motion: Motion) -> tuple[Floats, Floats]:
        relative = np.maximum(np.hstack([motion.dq, -motion.dq]) / self.scale, 0.0)
        return relative, np.asarray(np.mean(relative**_ORDER, axis=0) ** (1 / _ORDER))

    def excess(self, motion: Motion) -> Floats:
        """(1, 2 n): how far each peak stays below its target."""
        return 1.0 - self._peaks(motion)[1][None, :]

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        """Gradient with respect to the motion."""
        relative, peaks = self._peaks(motion)
        share = np.divide(relative, peaks, out=np.zeros_like(relative), where=peaks > 0.0) ** (_ORDER - 1)
        rate = -cotangent * share / (len(relative) * self.scale)
        n = motion.dq.shape[1]
        zero = np.zeros_like(motion.q)
        return Motion(zero, rate[:, :n] - rate[:, n:], zero, zero)


def speed_coverage(motion: Motion, velocity: Floats) -> Floats:
    """Peak speeds (n, 2) forwards and backwards as shares of the limits (n,), or of the larger peak without one."""
    peaks = np.stack([motion.dq.max(axis=0), -motion.dq.min(axis=0)], axis=1)
    limit = np.where(np.isfinite(velocity), velocity, peaks.max(axis=1))
    shares: Floats = np.divide(peaks, limit[:, None], out=np.zeros_like(peaks), where=limit[:, None] > 0.0)
    return shares
