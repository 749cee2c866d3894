"""Finite Fourier series: periodic excitation, so that a recording can be averaged and differentiated exactly.

The series is the one of Swevers et al. 1997 (Optimal robot excitation and identification): with ``w = 2 pi / period``,

    q(t) = q0 + sum_k  a_k / (k w) sin(k w t) - b_k / (k w) cos(k w t),

so that ``a_k``, ``b_k`` are amplitudes of velocity. A robot must start and stop at rest: for a quarter of a period
before and after the recorded one, a smooth window scales the excursion from ``q0`` up from zero and down to zero. This
keeps the motion linear in its coefficients and inside any position range that contains the periodic part and ``q0``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb

import numpy as np
from numpy.polynomial import Polynomial

from dynid.arrays import Floats
from dynid.checks import as_number
from dynid.errors import ArgumentError
from dynid.excitation.trajectories.trajectory import Trajectory

_WINDOW = Polynomial([0, 0, 0, 0, 35, -84, 70, -20])
"""From 0 to 1 on [0, 1] with three zero derivatives at both ends: position to jerk stay continuous.

Derivation: the lowest-order polynomial with these eight boundary values.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class FourierTrajectory(Trajectory):
    """A finite Fourier series with lead-in and lead-out."""

    coefficients: Floats
    """(1 + 2 K, n): ``q0`` [rad or m], then ``a_1 ... a_K``, then ``b_1 ... b_K`` [rad/s or m/s]."""
    period_s: float
    """Period of the lowest harmonic [s]."""

    def __post_init__(self) -> None:
        """Check and freeze."""
        coefficients = np.array(self.coefficients, dtype=float)
        if coefficients.ndim != 2 or coefficients.shape[0] % 2 == 0 or not np.isfinite(coefficients).all():
            raise ArgumentError("Fourier coefficients must be finite, of shape (1 + 2 K, n)")
        as_number("period_s", self.period_s, above=0.0)
        coefficients.setflags(write=False)
        object.__setattr__(self, "coefficients", coefficients)

    @classmethod
    def still(cls, dof: int, *, period_s: float, harmonics: int) -> FourierTrajectory:
        """A series with all coefficients zero: the family that a design searches."""
        return cls(coefficients=np.zeros((1 + 2 * harmonics, dof)), period_s=period_s)

    @property
    def harmonics(self) -> int:
        """Number K of harmonics."""
        return len(self.coefficients) // 2

    @property
    def _lead(self) -> float:
        """Length of the lead-in and of the lead-out [s]."""
        return self.period_s / 4

    @property
    def duration(self) -> float:
        """Lead-in, period and lead-out [s]."""
        return self.period_s + 2.0 * self._lead

    @property
    def recorded(self) -> tuple[float, float]:
        """Start and end of the undisturbed period [s]."""
        return self._lead, self.duration - self._lead

    @property
    def centre(self) -> Floats:
        """Mean position q0 (n,), where the motion starts and ends."""
        return np.asarray(self.coefficients[0])

    def with_coefficients(self, coefficients: Floats) -> FourierTrajectory:
        """The same period with other coefficients (1 + 2 K, n)."""
        return replace(self, coefficients=coefficients)

    def fit(self, other: FourierTrajectory) -> FourierTrajectory:
        """Another series' path in this period, by the harmonics that both have."""
        common = min(self.harmonics, other.harmonics)
        ours = np.zeros((2, self.harmonics, other.dof))
        theirs = other.coefficients[1:].reshape(2, other.harmonics, other.dof)
        # a_k / (k w) is an excursion: the same path in another period has other velocities
        ours[:, :common] = theirs[:, :common] * (other.period_s / self.period_s)
        return self.with_coefficients(np.vstack([other.centre, *ours]))

    def with_amplitude(self, factor: float, centre: Floats | None = None) -> FourierTrajectory:
        """The same motion about a centre (n,), its own by default, with every excursion multiplied by ``factor``."""
        coefficients = factor * self.coefficients
        coefficients[0] = self.centre if centre is None else centre
        return self.with_coefficients(coefficients)

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return int(self.coefficients.shape[1])

    @property
    def lowest_rate_hz(self) -> float:
        """Two samples per coefficient over the recorded period [Hz]."""
        return 2.0 * len(self.coefficients) / self.period_s

    def grid(self, count: int) -> tuple[Floats, slice]:
        """Times over the whole motion (N,) [s], and the slice of the ``count`` times of the recorded period."""
        (start, end), lead = self.recorded, int(np.ceil(count / 4))
        before = np.linspace(0.0, start, lead, endpoint=False)
        inside = start + self.period_s / count * np.arange(count)
        times = np.concatenate([before, inside, np.linspace(end, self.duration, 1 + lead)])
        return times, slice(lead, lead + count)

    def derivative(self, t: Floats, order: int) -> Floats:
        """Derivative of order 0 to 3 at times t (N,): (N, n)."""
        return self.basis(t, order) @ self.coefficients

    def basis(self, t: Floats, order: int) -> Floats:
        """Derivative of the functions (N, 1 + 2 K) that the coefficients multiply."""
        # product rule of window and harmonics
        excursion = sum(
            (comb(order, i) * self._window(t, i)[:, None] * self._harmonics(t - self._lead, order - i))
            for i in range(order + 1)
        )
        constant = np.full((len(t), 1), 1.0 if order == 0 else 0.0)
        return np.hstack([constant, np.asarray(excursion)])

    def _harmonics(self, t: Floats, order: int) -> Floats:
        """Derivative of ``sin(k w t) / (k w)`` and ``-cos(k w t) / (k w)``, (N, 2 K)."""
        w = 2.0 * np.pi / self.period_s * np.arange(1, self.harmonics + 1)
        phase = np.outer(t, w) + 0.5 * np.pi * order  # each derivative advances the phase by a quarter turn
        scale = w ** (order - 1.0)
        return np.hstack([np.sin(phase) * scale, -np.cos(phase) * scale])

    def _window(self, t: Floats, order: int) -> Floats:
        """Derivative of the window (N,): 0 to 1 over the lead-in, 1, and 1 to 0 over the lead-out."""
        fade = _WINDOW.deriv(order) if order else _WINDOW
        rising = np.clip(t / self._lead, 0.0, 1.0)
        falling = np.clip((self.duration - t) / self._lead, 0.0, 1.0)
        inside = (rising < 1.0, falling < 1.0)
        value = np.full(len(t), 1.0 if order == 0 else 0.0)
        value = np.where(inside[0], fade(rising) / self._lead**order, value)
        return np.where(inside[1], fade(falling) / (-self._lead) ** order, value)
