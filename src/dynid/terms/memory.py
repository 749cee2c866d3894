"""Friction that remembers the motion before: presliding hysteresis and a delayed change of direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dynid.curves import lag_exponentially
from dynid.terms.base import MemoryTerm, ScaledTerm, SteadyMotion, Term, TermSizes
from dynid.terms.coupling import scaled_terms

__all__ = ["Hysteresis", "LaggedSign", "lag_signal"]

Floats = NDArray[np.float64]
TRAVELS = (0.003, 0.01, 0.03, 0.1)
"""Presliding travels that selection tries, as parts of a joint's range of motion (convention)."""
LAGS = (0.02, 0.05, 0.1, 0.2)
"""Lags that selection tries [s] (convention)."""

FEWEST_SAMPLES = 8
"""Samples between changes of the sign, on average, from which on their lag is found change by change (convention)."""


@dataclass(frozen=True)
class Hysteresis(MemoryTerm, ScaledTerm):
    """Dry friction with presliding: a spring of travel ``scale`` that slips at its two ends (Prandtl's stop operator).

    Between two turning points of q the state moves with q and stops at -1 and 1, so that only turning points need a
    recursion, and the sampling rate does not matter.
    """

    symbol: ClassVar[str] = "FH"

    def along(self, q: Floats, dq: Floats, ddq: Floats, rate_hz: float) -> Floats:
        q = np.ascontiguousarray(q)
        turns = _turning_points(q)
        places: list[float] = q[turns].tolist()
        states = [0.0]
        for start, end in pairwise(places):
            states.append(min(max(states[-1] + (end - start) / self.scale, -1.0), 1.0))
        # every sample moves on from the turning point before it
        lengths = np.diff(turns, append=q.size)
        travel = (q - np.repeat(q[turns], lengths)) / self.scale
        return np.asarray(np.clip(np.repeat(states, lengths) + travel, -1.0, 1.0))

    def steady_torque(self, steady: SteadyMotion) -> Floats:
        return np.sign(steady.speed)  # slipping at one end

    @property
    def memory_size(self) -> int:
        return 2

    def begin_at(self, q: Any, dq: Any) -> list[Any]:
        return [q, 0.0]

    def advance_at(self, q: Any, dq: Any, ddq: Any, period_s: Any, memory: Sequence[Any]) -> tuple[Any, list[Any]]:
        before, state = memory
        free = state + (q - before) * (1.0 / self.scale)
        held = (np.abs(free + 1.0) - np.abs(free - 1.0)) * 0.5  # within -1 and 1
        return held, [q, held]

    @classmethod
    def candidates(cls, sizes: TermSizes) -> Mapping[str, Sequence[Term]]:
        return {f"hysteresis {part:g}": scaled_terms(sizes, cls, part * sizes.travel) for part in TRAVELS}


def _turning_points(q: Floats) -> NDArray[np.int64]:
    """Indices of both ends and of every sample where q turns back."""
    up = q[1:] > q[:-1]
    moving = np.flatnonzero(q[1:] != q[:-1])
    turning = moving[1:][up[moving[1:]] != up[moving[:-1]]]
    return np.unique(np.concatenate([[0], turning, [q.size - 1]])).astype(np.int64)


@dataclass(frozen=True)
class LaggedSign(MemoryTerm, ScaledTerm):
    """Dry friction that follows a change of direction with a delay: ``sign(dq)`` through a first-order lag [s]."""

    symbol: ClassVar[str] = "FL"

    def along(self, q: Floats, dq: Floats, ddq: Floats, rate_hz: float) -> Floats:
        sign = np.sign(dq)
        changes = np.flatnonzero(sign[1:] != sign[:-1]) + 1
        if FEWEST_SAMPLES * (changes.size + 1) > sign.size:  # the velocity of a joint at rest is noise of either sign
            return lag_signal(sign, self.scale, rate_hz)
        return _lag_steps(sign, np.concatenate([[0], changes]), float(np.exp(-1.0 / (self.scale * rate_hz))))

    def steady_torque(self, steady: SteadyMotion) -> Floats:
        return np.sign(steady.speed)

    @property
    def memory_size(self) -> int:
        return 1

    def begin_at(self, q: Any, dq: Any) -> list[Any]:
        return [np.sign(dq)]

    def advance_at(self, q: Any, dq: Any, ddq: Any, period_s: Any, memory: Sequence[Any]) -> tuple[Any, list[Any]]:
        keep = np.exp(-period_s * (1.0 / self.scale))
        lagged = keep * memory[0] + (1.0 - keep) * np.sign(dq)
        return lagged, [lagged]

    @classmethod
    def candidates(cls, sizes: TermSizes) -> Mapping[str, Sequence[Term]]:
        same = np.ones(len(sizes.joints))
        return {f"lagged sign {lag:g} s": scaled_terms(sizes, cls, lag * same) for lag in LAGS}


def _lag_steps(x: Floats, starts: NDArray[np.int64], keep: float) -> Floats:
    """`lag_exponentially` of a signal (N,) that is constant from each of some starts to the next.

    From a start on the distance to the new value fades by the same factor in every sample.
    """
    lengths = np.diff(starts, append=x.size)
    fading = keep ** np.arange(1.0, lengths.max() + 1.0)
    distances: list[float] = []
    before = float(x[0])
    for value, left in zip(x[starts].tolist(), fading[lengths - 1].tolist(), strict=True):
        distances.append(before - value)
        before = value + (before - value) * left
    age = np.arange(x.size) - np.repeat(starts, lengths)
    return np.asarray(x + np.repeat(distances, lengths) * fading[age])


def lag_signal(x: Floats, lag_s: float, rate_hz: float) -> Floats:
    """A signal (N,) or (N, k) behind a first-order lag [s] that had settled before the first sample."""
    return lag_exponentially(x, float(np.exp(-1.0 / (lag_s * rate_hz)))) if len(x) else x
