"""Trajectories: joint positions as smooth functions of time, with exact derivatives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.excitation.trajectories.sampled_motion import Samples

ROUNDING = 1e-9
"""Share of a duration, of a limit or of a matrix that counts as rounding. Convention."""


class Motion(NamedTuple):
    """Joint positions and their first three derivatives at N times."""

    q: Floats
    """(N, n) [rad or m]"""
    dq: Floats
    """(N, n) [rad/s or m/s]"""
    ddq: Floats
    """(N, n) [rad/s^2 or m/s^2]"""
    jerk: Floats
    """(N, n) [rad/s^3 or m/s^3]"""


class Trajectory(ABC):
    """A motion of n joints over the times 0 ... `duration`."""

    @property
    @abstractmethod
    def duration(self) -> float:
        """Length of the motion [s]."""

    @property
    @abstractmethod
    def dof(self) -> int:
        """Number of joints n."""

    @property
    def recorded(self) -> tuple[float, float]:
        """Start and end [s] of the part that is recorded: only its samples give information."""
        return 0.0, self.duration

    @property
    @abstractmethod
    def lowest_rate_hz(self) -> float:
        """Rate below which samples do not show the motion [Hz]."""

    @abstractmethod
    def derivative(self, t: Floats, order: int) -> Floats:
        """Derivative of order 0 (position) to 3 (jerk) at times t (N,) within the duration: (N, n)."""

    def evaluate(self, t: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Positions, velocities and accelerations, each (N, n) for times (N,) or (n,) for one time [s]."""
        q, dq, ddq = (self._at(t, order) for order in range(3))
        return q, dq, ddq

    def jerk(self, t: ArrayLike) -> Floats:
        """Third derivative of the positions, (N, n) or (n,)."""
        return self._at(t, 3)

    def motion(self, t: ArrayLike) -> Motion:
        """Positions to jerks at times (N,)."""
        return Motion(*(self._at(np.atleast_1d(t), order) for order in range(4)))

    def _at(self, t: ArrayLike, order: int) -> Floats:
        times = np.asarray(t, dtype=float)
        slack = ROUNDING * self.duration
        if not np.all((times >= -slack) & (times <= self.duration + slack)):
            raise ArgumentError(
                f"a time lies outside the trajectory's 0 to {self.duration:g} s", remedy="Ask within its duration."
            )
        flat = np.clip(times.ravel(), 0.0, self.duration)
        return self.derivative(flat, order).reshape(*times.shape, self.dof)

    def times(self, rate_hz: float) -> Floats:
        """Uniform times (N,) from zero to the end; the last may lie up to one step beyond it."""
        if not rate_hz > 0.0:
            raise ArgumentError(f"the rate must be positive, not {rate_hz}", remedy="Give samples per second.")
        steps = int(np.ceil(self.duration * rate_hz * (1.0 - ROUNDING)))
        return np.arange(steps + 1) / rate_hz

    def sample(self, rate_hz: float, joint_names: Sequence[str] | None = None) -> Samples:
        """The motion at a uniform rate, its end included.

        Args:
            rate_hz: Samples per second.
            joint_names: Names of the joints; ``joint1``, ``joint2``, ... by default.
        """
        time = self.times(rate_hz)
        names = tuple(joint_names) if joint_names is not None else tuple(f"joint{j + 1}" for j in range(self.dof))
        q, dq, ddq = self.evaluate(np.minimum(time, self.duration))
        return Samples(time=time, q=q, dq=dq, ddq=ddq, joint_names=names)

    def peak(self, order: int, samples: int = 2001) -> Floats:
        """Largest absolute derivative of each joint (n,), over a number of samples."""
        return np.asarray(np.abs(self.derivative(np.linspace(0.0, self.duration, samples), order)).max(axis=0))
