"""A commanded motion of which positions were logged, between its samples."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError

__all__ = ["SplinedMotion"]

Floats = NDArray[np.float64]
LOCAL = 32
"""Samples on either side beyond which a spline does not feel what follows, to rounding."""


class SplinedMotion:
    """The cubic spline through positions that come piece by piece; times are asked for in order."""

    def __init__(self, parts: Iterable[tuple[Floats, Floats]]) -> None:
        """Nothing is read yet.

        Args:
            parts: Consecutive times (K,) [s] and positions (K, n) [rad or m].
        """
        self._parts = iter(parts)
        self._time, self._q = np.zeros(0), np.zeros((0, 0))

    def __call__(self, time: Floats) -> tuple[Floats, Floats, Floats]:
        """(N, n) positions, velocities and accelerations at times (N,).

        Raises:
            ArgumentError: The positions do not cover them.
        """
        from scipy.interpolate import CubicSpline

        while self._time.size < 2 or self._time[-1] < time[-1] + self._reach:
            part = next(self._parts, None)
            if part is None:
                break
            self._take(*part)
        slack = 0.01 * self._reach / LOCAL
        if self._time.size < 2 or self._time[0] > time[0] + slack or self._time[-1] < time[-1] - slack:
            raise ArgumentError(
                "the commanded positions do not cover the log", remedy="Give them for every sample of the log."
            )
        self._drop(int(np.searchsorted(self._time, time[0] - self._reach)))
        gaps = np.flatnonzero(np.diff(self._time) > 3.0 * self._reach / LOCAL) + 1
        first = int(gaps[gaps <= np.searchsorted(self._time, time[0] + slack)].max(initial=0))
        last = int(gaps[self._time[gaps] > time[-1]].min(initial=self._time.size))
        hole = gaps[(gaps > first) & (gaps < last)]
        if hole.size:
            start, end = self._time[hole[0] - 1 : hole[0] + 1]
            raise ArgumentError(
                f"commanded positions are missing between {start:.4g} and {end:.4g} s, where the log goes on",
                remedy="Fill them in, or cut the log there.",
            )
        spline = CubicSpline(self._time[first:last], self._q[first:last])
        return spline(time), spline(time, 1), spline(time, 2)

    def _take(self, time: Floats, q: Floats) -> None:
        """Add samples that are numbers and later than all before."""
        known = np.isfinite(time) & np.isfinite(q).all(axis=1)
        time, q = time[known], q[known]
        before = np.maximum.accumulate(np.append(self._time[-1:] if self._time.size else -np.inf, time))[:-1]
        later = time > before
        self._time = np.concatenate([self._time, time[later]])
        self._q = np.concatenate([self._q, q[later]]) if self._q.size else q[later]

    @property
    def _reach(self) -> float:
        """LOCAL sampling periods [s]."""
        return LOCAL * float(np.median(np.diff(self._time[: 2 * LOCAL]))) if self._time.size > 1 else 0.0

    def _drop(self, count: int) -> None:
        """Forget the first samples, but for a few."""
        self._time, self._q = self._time[max(0, count - 1) :], self._q[max(0, count - 1) :]
