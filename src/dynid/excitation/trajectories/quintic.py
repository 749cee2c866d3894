"""Fifth-order motions: point to point ([Atkeson1986] section 3) and through a sequence of points.

The segments are those of [GautierKhalil1992] section 5: each joins (q, dq) at its ends with zero acceleration there.

That paper assumes that the peak acceleration decreases with the segment time; it does not (``dq = 1`` at both ends, two
radians apart: no acceleration at all in 2 s, 0.64 rad/s^2 in 3 s). So the shortest admissible time is searched from
below, with all joints checked at every candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.polynomial.polynomial import polyder, polyval
from numpy.typing import ArrayLike
from scipy.interpolate import PPoly
from scipy.optimize import brentq

from dynid.array_types import Floats
from dynid.checks import as_row
from dynid.errors import ArgumentError, ExcitationError
from dynid.excitation.trajectories.trajectory import PlannedMotion, Trajectory
from dynid.lazy import cached_property
from dynid.spatial import SAME

_SHORTEST_SEGMENT_S = 1e-3
"""Shortest segment that is tried [s]. Convention."""
_TIME_FACTORS = np.geomspace(1.0, 1e17, 4000)
"""Segment times that are tried, upwards, as multiples of the shortest possible one: 1 % apart. Convention."""


def quintic_coefficients(q_a: Floats, q_b: Floats, dq_a: Floats, dq_b: Floats, duration: ArrayLike) -> Floats:
    """Compute the coefficients ``a_0 ... a_5`` (..., 6) of segments from a to b; arguments are broadcast together."""
    T = np.asarray(duration, dtype=float)
    step = q_b - q_a
    # [GautierKhalil1992] eq. (28), from the boundary values of eq. (27)
    a3 = 10 * step / T**3 - (6 * dq_a + 4 * dq_b) / T**2
    a4 = -15 * step / T**4 + (8 * dq_a + 7 * dq_b) / T**3
    a5 = 6 * step / T**5 - 3 * (dq_a + dq_b) / T**4
    return np.stack(np.broadcast_arrays(q_a, dq_a, 0.0 * a3, a3, a4, a5), axis=-1)


def _evaluate(a: Floats, u: Floats, order: int) -> Floats:
    """Evaluate a derivative of polynomials a (..., 6) at times u (...) since their start.

    These are [GautierKhalil1992] eqs. (24) to (26).
    """
    return np.asarray(polyval(u, np.moveaxis(polyder(a, order, axis=-1), -1, 0), tensor=False))


def segment_peaks(a: Floats, duration: ArrayLike) -> tuple[Floats, Floats]:
    """Compute the exact largest |dq| and |ddq| (...) of segments with coefficients a (..., 6) and durations (...)."""
    T = np.broadcast_to(np.asarray(duration, dtype=float), a.shape[:-1])
    a3, a4, a5 = a[..., 3], a[..., 4], a[..., 5]
    # [GautierKhalil1992] section 5.2, corrected: velocity peaks are roots of eq. (26), acceleration peaks of the jerk
    turning = (_quadratic_roots(3 * a3, 6 * a4, 10 * a5, T), _quadratic_roots(6 * a3, 24 * a4, 60 * a5, T))
    ends = (np.zeros_like(T), T)
    peaks = [
        np.max([np.abs(_evaluate(a, u, order)) for u in (*ends, *roots)], axis=0)
        for order, roots in zip((1, 2), turning, strict=True)
    ]
    return peaks[0], peaks[1]


def _quadratic_roots(c0: Floats, c1: Floats, c2: Floats, T: Floats) -> tuple[Floats, Floats]:
    """Find the two real roots of ``c0 + c1 u + c2 u^2``, clipped into [0, T]; 0 for one that does not exist."""
    root = np.sqrt(np.maximum(c1 * c1 - 4 * c2 * c0, 0.0))
    real = c1 * c1 >= 4 * c2 * c0
    stable = -0.5 * (c1 + np.where(c1 >= 0, root, -root))  # no cancellation between c1 and the root
    first = np.divide(stable, c2, out=np.zeros_like(T), where=real & (c2 != 0))
    second = np.divide(c0, stable, out=np.zeros_like(T), where=real & (stable != 0))
    return np.clip(first, 0.0, T), np.clip(second, 0.0, T)


def shortest_segment(
    q: tuple[Floats, Floats], dq: tuple[Floats, Floats], velocity: Floats, acceleration: Floats
) -> float:
    """Find the shortest duration [s] that keeps every joint of a segment within its velocity and acceleration limits.

    Durations are searched upwards from a bound below which the mean velocity or the change of velocity is too large, in
    small steps; the last step is refined.

    Args:
        q: Positions (n,) at start and end [rad or m].
        dq: Velocities (n,) at start and end [rad/s or m/s].
        velocity: (n,) limits, infinite for none [rad/s or m/s].
        acceleration: (n,) limits, infinite for none [rad/s^2 or m/s^2].
    """
    if np.any(np.abs(dq) > velocity * (1 + SAME)):
        raise ExcitationError("a point is faster than the velocity limit", remedy="Choose slower points.")

    def excess(durations: Floats) -> Floats:
        """Compute the largest share (k,) by which segments of durations (k,) exceed a limit."""
        T = durations[:, None]
        speeds, rates = segment_peaks(quintic_coefficients(*q, *dq, T), T)
        return np.asarray(np.maximum(speeds / velocity, rates / acceleration).max(axis=1) - (1.0 + SAME))

    least = max(
        float(np.max(np.abs(q[1] - q[0]) / velocity)),
        float(np.max(np.abs(dq[1] - dq[0]) / acceleration)),
        _SHORTEST_SEGMENT_S,
    )
    for durations in np.split(least * _TIME_FACTORS, 20):  # in parts, because the first ones mostly suffice
        admissible = durations[excess(durations) <= 0.0]
        if admissible.size:
            break
    else:  # no part has an admissible time
        raise ExcitationError("no segment time meets velocity and acceleration limits", remedy="Choose slower points.")
    first = float(admissible[0])
    if first <= least:
        return first
    # the time one factor before the first admissible one is not admissible
    return float(brentq(lambda T: excess(np.array([T]))[0], first / _TIME_FACTORS[1], first))


@dataclass(frozen=True, kw_only=True, eq=False)
class QuinticTrajectory(Trajectory):
    """Fifth-order segments through points, with zero acceleration at every point."""

    q: Floats
    """(m + 1, n) positions at the points [rad or m]."""
    dq: Floats
    """(m + 1, n) velocities at the points [rad/s or m/s]."""
    durations: Floats
    """(m,) lengths of the segments [s]."""

    def __post_init__(self) -> None:
        """Check the shapes and make the arrays read-only."""
        for name in ("q", "dq", "durations"):
            array = np.array(getattr(self, name), dtype=float)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        fits = self.q.ndim == 2 and self.dq.shape == self.q.shape and self.durations.shape == (len(self.q) - 1,)
        if not fits or len(self.q) < 2 or not np.all(self.durations > 0):
            raise ArgumentError("expected q and dq (m + 1, n) and m positive durations")

    @classmethod
    def through(cls, q: ArrayLike, dq: ArrayLike, *, velocity: ArrayLike, acceleration: ArrayLike) -> QuinticTrajectory:
        """Join points in the shortest time within velocity and acceleration limits (n,).

        Between the points positions may leave the range of the points: look at `extremes`.
        """
        points = np.asarray(q, dtype=float)
        speeds = np.asarray(dq, dtype=float)
        limits = [np.broadcast_to(np.asarray(x, dtype=float), points.shape[1:]) for x in (velocity, acceleration)]
        durations = [
            shortest_segment(ends, rates, *limits)
            for ends, rates in zip(pairwise(points), pairwise(speeds), strict=True)
        ]
        return cls(q=points, dq=speeds, durations=np.array(durations))

    @property
    def duration(self) -> float:
        """Length of the motion [s]."""
        return float(self.durations.sum())

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return int(self.q.shape[1])

    @property
    def lowest_rate_hz(self) -> float:
        """Lowest rate at which the motion may be written: two samples per coefficient of the shortest segment [Hz]."""
        return float(2.0 * self.segments.shape[-1] / self.durations.min())

    @property
    def segments(self) -> Floats:
        """Coefficients (m, n, 6) of the segments, in the time since the start of each."""
        T = self.durations[:, None]
        return quintic_coefficients(self.q[:-1], self.q[1:], self.dq[:-1], self.dq[1:], T)

    @cached_property
    def _path(self) -> PPoly:
        """All segments one after the other, as a piecewise polynomial; it wants the highest power first."""
        return PPoly(np.moveaxis(self.segments, -1, 0)[::-1], np.append(0.0, np.cumsum(self.durations)))

    def derivative(self, t: Floats, order: int) -> Floats:
        """Evaluate the derivative of order 0 to 3 at times t (N,) [s]; returns (N, n)."""
        return np.asarray(self._path(t, order))

    def check_times(self, per_segment: int) -> Floats:
        """List the times (N,) [s] for checks of limits: uniform in each segment, and all extrema from position to jerk.

        Args:
            per_segment: Number of uniform times in each segment.
        """
        # the jerk jumps at the points, so the last instant of each segment counts as well
        shares = np.append(np.linspace(0.0, 1.0, per_segment, endpoint=False), 1.0 - SAME)
        times = [self._path.x[:-1, None] + np.outer(self.durations, shares), [self.duration]]
        for order in (1, 2, 3, 4):  # an extremum is a root of the next derivative
            times += list(self._path.derivative(order).roots(discontinuity=False, extrapolate=False))
        found = np.concatenate([np.ravel(each) for each in times])
        return np.unique(np.clip(found[np.isfinite(found)], 0.0, self.duration))  # SciPy gives NaN where a joint rests

    @property
    def extremes(self) -> PlannedMotion:
        """The motion at all its extrema."""
        return self.motion(self.check_times(1))


def shortest_move(step: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike) -> float:
    """Compute the shortest duration [s] of a move from rest to rest by a step [rad or m], of one joint or of all.

    Derivation: the unit move 10 s^3 - 15 s^4 + 6 s^5 has the peaks 15/8 (velocity) and 10/sqrt(3) (acceleration).
    """
    by_velocity = np.max(15 / 8 * np.divide(step, velocity))
    by_acceleration = np.max(np.sqrt(10 / np.sqrt(3) * np.divide(step, acceleration)))
    return float(np.max([by_velocity, by_acceleration]))


def minimum_jerk(
    q_start: ArrayLike,
    q_end: ArrayLike,
    *,
    duration_s: float | None = None,
    velocity: ArrayLike = np.inf,
    acceleration: ArrayLike = np.inf,
) -> QuinticTrajectory:
    """Make a point-to-point move from rest to rest, in a given time or in the shortest one within limits.

    Args:
        q_start: (n,) positions at the start [rad or m].
        q_end: (n,) positions at the end [rad or m].
        duration_s: Length of the move [s]; by default the shortest that the limits allow.
        velocity: Velocity limit of each joint, scalar or (n,) [rad/s or m/s].
        acceleration: Acceleration limit of each joint, scalar or (n,) [rad/s^2 or m/s^2].

    Example:
        >>> dynid.excitation.minimum_jerk(np.zeros(3), np.ones(3), duration_s=2.0).duration
        2.0
    """
    first = np.asarray(q_start, dtype=float)
    if first.ndim != 1:
        raise ArgumentError(f"q_start has the shape {first.shape}", remedy="Give a list of numbers, one per joint.")
    q = np.array([first, as_row("q_end", q_end, first.size)])
    step = np.abs(q[1] - q[0])
    if duration_s is None:
        duration_s = shortest_move(step, velocity, acceleration)
        if not 0.0 < duration_s < np.inf:
            raise ArgumentError("the shortest move needs a distance and limits", remedy="Give duration_s instead.")
    return QuinticTrajectory(q=q, dq=np.zeros_like(q), durations=np.array([duration_s]))
