"""Friction that remembers the motion before: presliding hysteresis and a delayed change of direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from dynid.arrays import Floats
from dynid.terms.base import ScaledTerm, SteadyMotion
from dynid.terms.smoothing import hold_within


@dataclass(frozen=True)
class Hysteresis(ScaledTerm):
    """Dry friction with presliding: a spring of travel ``scale`` that slips at its two ends (Prandtl's stop operator).

    Between two turning points of q the state moves with q and stops at -1 and 1, so that only turning points need a
    recursion, and the sampling rate does not matter.
    """

    symbol: ClassVar[str] = "FH"
    is_non_negative: ClassVar[bool] = True

    def along(self, q: Floats, dq: Floats, ddq: Floats, rate_hz: float) -> Floats:
        q = np.ascontiguousarray(q)
        if not q.size:
            return q
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
        held = hold_within(state + (q - before) * (1.0 / self.scale), 1.0)
        return held, [q, held]


def _turning_points(q: Floats) -> NDArray[np.int64]:
    """Indices of both ends and of every sample where q turns back."""
    up = q[1:] > q[:-1]
    moving = np.flatnonzero(q[1:] != q[:-1])
    turning = moving[1:][up[moving[1:]] != up[moving[:-1]]]
    return np.unique(np.concatenate([[0], turning, [q.size - 1]])).astype(np.int64)


@dataclass(frozen=True)
class LaggedSign(ScaledTerm):
    """Dry friction that follows a change of direction with a delay: ``sign(dq)`` through a first-order lag [s]."""

    symbol: ClassVar[str] = "FL"
    is_non_negative: ClassVar[bool] = True

    def along(self, q: Floats, dq: Floats, ddq: Floats, rate_hz: float) -> Floats:
        return lag_signal(np.sign(dq), self.scale, rate_hz)

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


def lag_exponentially(x: Floats, keep: float) -> Floats:
    """The recursion ``y_t = keep y_(t-1) + (1 - keep) x_t`` over rows of x (N,) or (N, k), settled before the first."""
    return np.asarray(lfilter([1.0 - keep], [1.0, -keep], x, axis=0, zi=keep * x[:1])[0])


def lag_signal(x: Floats, lag_s: float, rate_hz: float) -> Floats:
    """A signal (N,) or (N, k) behind a first-order lag [s] that had settled before the first sample."""
    return lag_exponentially(x, float(np.exp(-1.0 / (lag_s * rate_hz)))) if len(x) else x
