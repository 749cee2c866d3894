"""Bang-coast-bang: constant acceleration, constant velocity, constant deceleration.

Smooth motions are better for identification (Atkeson et al. 1986, section 3). This one serves only for comparison:
docs/control.md shows the bandwidth of its discontinuous accelerations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.excitation.trajectories.trajectory import Trajectory


@dataclass(frozen=True, kw_only=True, eq=False)
class BangCoastBang(Trajectory):
    """The fastest straight move from rest to rest within velocity and acceleration limits; its jerk is impulsive."""

    q_start: Floats
    """(n,) positions at the start [rad or m]."""
    q_end: Floats
    """(n,) positions at the end [rad or m]."""
    velocity: float
    """Peak speed along the move, as a fraction of it [1/s]."""
    acceleration: float
    """Acceleration along the move, as a fraction of it [1/s^2]."""

    @classmethod
    def within(
        cls, q_start: ArrayLike, q_end: ArrayLike, *, velocity: ArrayLike, acceleration: ArrayLike
    ) -> BangCoastBang:
        """Make the fastest motion within the limits (n,) or scalar; all joints move in proportion."""
        start, end = np.array(q_start, dtype=float), np.array(q_end, dtype=float)
        step = np.abs(end - start)
        if not step.max(initial=0.0) > 0.0:
            raise ArgumentError("the move has no length", remedy="Give different start and end positions.")
        moving = step > 0
        rates = [
            float(np.min(np.broadcast_to(np.asarray(x, dtype=float), step.shape)[moving] / step[moving]))
            for x in (velocity, acceleration)
        ]
        if not 0.0 < rates[1] < np.inf or not rates[0] > 0.0:
            raise ArgumentError("velocity and acceleration limits must be positive, the acceleration finite")
        peak = min(rates[0], np.sqrt(rates[1]))  # without a coast the peak is sqrt(acceleration)
        return cls(q_start=start, q_end=end, velocity=peak, acceleration=rates[1])

    @property
    def ramp_s(self) -> float:
        """Duration of the acceleration, and of the deceleration [s]."""
        return self.velocity / self.acceleration

    @property
    def duration(self) -> float:
        """Length of the motion [s]."""
        return 1.0 / self.velocity + self.ramp_s

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return len(self.q_start)

    def derivative(self, t: Floats, order: int) -> Floats:
        """Derivative of order 0 to 3 at times t (N,): (N, n)."""
        v, a, ramp, end = self.velocity, self.acceleration, self.ramp_s, self.duration
        early, late = t < ramp, t > end - ramp
        zero = np.zeros_like(t)
        pieces = (
            (0.5 * a * t**2, v * (t - 0.5 * ramp), 1.0 - 0.5 * a * (end - t) ** 2),
            (a * t, zero + v, a * (end - t)),
            (zero + a, zero, zero - a),
            (zero, zero, zero),
        )[order]
        fraction = np.where(early, pieces[0], np.where(late, pieces[2], pieces[1]))
        return (self.q_start if order == 0 else 0.0) + fraction[:, None] * (self.q_end - self.q_start)
