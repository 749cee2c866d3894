"""Trajectories: joint positions as smooth functions of time, with exact derivatives.

`Trajectory` is any motion; `LinearTrajectory` is a motion that is linear in its coefficients, which designs search;
`TimeScaled` runs another trajectory's path faster or slower.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.decompositions import lstsq
from dynid.errors import ArgumentError
from dynid.excitation.trajectories.sampled_motion import Samples

_STEP_ROUNDING = 1e-12
"""Relative rounding of a number of steps: a whole number of them is not rounded up. Convention."""
_TIME_ROUNDING = 1e-9
"""Share of the duration by which a time may lie outside it, as rounding. Convention."""


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
    def lowest_rate_hz(self) -> float:
        """Rate below which samples do not show the motion [Hz]: by default one sample in the middle."""
        return 2.0 / self.duration

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
        slack = _TIME_ROUNDING * self.duration
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
        steps = int(np.ceil(self.duration * rate_hz * (1.0 - _STEP_ROUNDING)))
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

    def with_time_factor(self, factor: float) -> TimeScaled:
        """The same path, ``factor`` times as long."""
        return TimeScaled(self, factor)


class LinearTrajectory(Trajectory):
    """A trajectory linear in its coefficients: ``q(t) = basis(t) @ coefficients``."""

    coefficients: Floats
    """(k, n) one column per joint."""

    @abstractmethod
    def basis(self, t: Floats, order: int) -> Floats:
        """Derivative of the basis functions (N, k) at times t (N,) within the duration."""

    @abstractmethod
    def with_coefficients(self, coefficients: Floats) -> Self:
        """The same family with other coefficients (k, n)."""

    @abstractmethod
    def rest_coefficients(self, q: Floats) -> Floats:
        """Coefficients (k, n) of standing still at q (n,)."""

    @property
    @abstractmethod
    def centre(self) -> Floats:
        """Position (n,) that the motion departs from, and about which its amplitude is measured."""

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return int(self.coefficients.shape[1])

    @property
    def lowest_rate_hz(self) -> float:
        """Two samples per coefficient over the recorded part [Hz]."""
        start, end = self.recorded
        return 2.0 * len(self.coefficients) / (end - start)

    def grid(self, count: int) -> tuple[Floats, slice]:
        """Times over the whole motion (N,) [s], and the slice of the ``count`` times of the recorded part."""
        start, end = self.recorded
        step = (end - start) / count
        before = np.linspace(0.0, start, int(np.ceil(start / step)), endpoint=False)
        after = np.linspace(end, self.duration, 1 + int(np.ceil((self.duration - end) / step)))
        times = np.concatenate([before, start + step * np.arange(count), after])
        return times, slice(len(before), len(before) + count)

    def derivative(self, t: Floats, order: int) -> Floats:
        """Derivative of order 0 to 3 at times t (N,): (N, n)."""
        return self.basis(t, order) @ self.coefficients

    def fit(self, other: LinearTrajectory) -> Self:
        """The motion of this family that follows another trajectory's path best (least squares), in its own time."""
        times, _ = self.grid(20 * len(self.coefficients))
        path = other.derivative(times * (other.duration / self.duration), 0)
        return self.with_coefficients(np.asarray(lstsq(self.basis(times, 0), path), dtype=float))

    def with_amplitude(self, factor: float) -> Self:
        """The same motion about the same centre with every excursion multiplied by ``factor``."""
        rest = self.rest_coefficients(self.centre)
        return self.with_coefficients(rest + factor * (self.coefficients - rest))


class TimeScaled(Trajectory):
    """Another trajectory's path, run in ``factor`` times its duration."""

    def __init__(self, path: Trajectory, factor: float) -> None:
        if not factor > 0.0:
            raise ArgumentError(f"the time factor must be positive, not {factor}", remedy="2 runs at half the speed.")
        self.path = path
        self.factor = float(factor)

    @property
    def duration(self) -> float:
        """Length of the motion [s]."""
        return self.factor * self.path.duration

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return self.path.dof

    @property
    def lowest_rate_hz(self) -> float:
        """The rate of the path, divided by the factor [Hz]."""
        return self.path.lowest_rate_hz / self.factor

    def derivative(self, t: Floats, order: int) -> Floats:
        """Derivative of order 0 to 3 at times t (N,): (N, n)."""
        return self.path.derivative(t / self.factor, order) / self.factor**order
