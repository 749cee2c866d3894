"""Terms of friction that depends on past motion: presliding hysteresis, and a delayed change of direction.

`along` computes a term's torque per unit of its parameter for all N samples of a motion, for estimators. `begin_at` and
`advance_at` compute the same sample by sample, with a memory of a few numbers, for simulation and generated code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from dynid.array_types import Floats
from dynid.terms.base import ScaledTerm, SteadyMotion
from dynid.terms.smoothing import hold_within


@dataclass(frozen=True)
class Hysteresis(ScaledTerm):
    """Dry friction with presliding: a spring that slips when it is stretched by ``scale`` (Prandtl's stop operator).

    The state z, which is also the torque per unit of the parameter, is the spring's stretch over ``scale``: it changes
    by ``dq / scale`` and is clipped to -1 and 1. While q moves one way, z follows from its value where the motion
    turned by one clip, so that only turning points need a recursion, and the sampling rate does not matter.
    """

    symbol: ClassVar[str] = "FH"
    is_non_negative: ClassVar[bool] = True

    def along(self, q: Floats, dq: Floats, ddq: Floats, rate_hz: float) -> Floats:
        q = np.ascontiguousarray(q)
        if not q.size:
            return q
        turns = _turning_points(q)
        positions: list[float] = q[turns].tolist()
        states = [0.0]  # z at every turning point; at the first it is unknown, and the spring is taken to be relaxed
        for start, end in pairwise(positions):
            states.append(min(max(states[-1] + (end - start) / self.scale, -1.0), 1.0))
        # the state of every sample follows from that of the turning point before it
        lengths = np.diff(turns, append=q.size)  # samples from each turning point to the next
        travel = (q - np.repeat(q[turns], lengths)) / self.scale
        return np.asarray(np.clip(np.repeat(states, lengths) + travel, -1.0, 1.0))

    def steady_torque(self, steady: SteadyMotion) -> Floats:
        return np.sign(steady.speed)  # it slips

    @property
    def memory_size(self) -> int:
        return 2  # q and z of the sample before

    def begin_at(self, q: Any, dq: Any) -> list[Any]:
        return [q, 0.0]

    def advance_at(self, q: Any, dq: Any, ddq: Any, period_s: Any, memory: Sequence[Any]) -> tuple[Any, list[Any]]:
        previous_q, state = memory
        state = hold_within(state + (q - previous_q) * (1.0 / self.scale), 1.0)
        return state, [q, state]


def _turning_points(q: Floats) -> NDArray[np.int64]:
    """Indices of the first and the last sample, and of every sample where q turns back; q (N,)."""
    is_rising = q[1:] > q[:-1]  # step k is from sample k to k + 1
    steps = np.flatnonzero(q[1:] != q[:-1])  # steps in which q moves; rests do not count as turns
    # the first sample of every moving step whose direction is not that of the moving step before
    turning = steps[1:][is_rising[steps[1:]] != is_rising[steps[:-1]]]
    return np.unique(np.concatenate([[0], turning, [q.size - 1]])).astype(np.int64)


@dataclass(frozen=True)
class LaggedSign(ScaledTerm):
    """Dry friction that follows a change of direction late: ``sign(dq)`` after a first-order lag of time ``scale``."""

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
    """The recursion ``y_t = keep y_(t-1) + (1 - keep) x_t`` over rows of x (N,) or (N, k), from ``y_(-1) = x_0`` on."""
    return np.asarray(lfilter([1.0 - keep], [1.0, -keep], x, axis=0, zi=keep * x[:1])[0])


def lag_signal(x: Floats, lag_s: float, rate_hz: float) -> Floats:
    """A signal (N,) or (N, k) after a first-order lag with time constant ``lag_s`` [s], steady at the first sample."""
    return lag_exponentially(x, float(np.exp(-1.0 / (lag_s * rate_hz)))) if len(x) else x
