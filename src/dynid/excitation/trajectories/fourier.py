"""Finite Fourier series: periodic excitation, so that a recording can be averaged and differentiated exactly.

The series is the one of Swevers et al. 1997 (Optimal robot excitation and identification): with ``w = 2 pi / period``,

    q(t) = q0 + sum_k  a_k / (k w) sin(k w t) - b_k / (k w) cos(k w t),

so that ``a_k``, ``b_k`` are amplitudes of velocity. Only one period is recorded. A robot must start and stop at rest:
for a quarter of a period before and after it (lead-in and lead-out) a smooth window scales the excursion from ``q0`` up
from zero and down to zero. This keeps the motion linear in its coefficients and within any position range that contains
the periodic part and ``q0``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb

import numpy as np
from numpy.polynomial import Polynomial

from dynid.array_types import Floats
from dynid.checks import as_number
from dynid.errors import ArgumentError
from dynid.excitation.trajectories.trajectory import Trajectory

_WINDOW = Polynomial([0, 0, 0, 0, 35, -84, 70, -20])
"""Window from 0 to 1 on [0, 1] with three zero derivatives at both ends, so that positions to jerks stay continuous
(derivation: the polynomial of lowest order with these eight boundary values)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FourierTrajectory(Trajectory):
    """A finite Fourier series with lead-in and lead-out."""

    coefficients: Floats
    """(1 + 2 K, n): ``q0`` [rad or m], then ``a_1 ... a_K``, then ``b_1 ... b_K`` [rad/s or m/s]."""
    period_s: float
    """Period of the lowest harmonic [s]."""

    def __post_init__(self) -> None:
        """Check the fields, and freeze the coefficients."""
        coefficients = np.array(self.coefficients, dtype=float)
        if coefficients.ndim != 2 or coefficients.shape[0] % 2 == 0 or not np.isfinite(coefficients).all():
            raise ArgumentError("Fourier coefficients must be finite, of shape (1 + 2 K, n)")
        as_number("period_s", self.period_s, above=0.0)
        coefficients.setflags(write=False)
        object.__setattr__(self, "coefficients", coefficients)

    @classmethod
    def still(cls, dof: int, *, period_s: float, harmonics: int) -> FourierTrajectory:
        """Make a series with all coefficients zero; a design searches the series of this period and size."""
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
        """Replace the coefficients (1 + 2 K, n)."""
        return replace(self, coefficients=coefficients)

    def fit(self, other: FourierTrajectory) -> FourierTrajectory:
        """Make a series with the path of another one, in the period of this one; harmonics beyond K are lost."""
        common = min(self.harmonics, other.harmonics)
        ours = np.zeros((2, self.harmonics, other.dof))
        theirs = other.coefficients[1:].reshape(2, other.harmonics, other.dof)
        # the excursion a_k / (k w) stays, so the velocity a_k changes with w
        ours[:, :common] = theirs[:, :common] * (other.period_s / self.period_s)
        return self.with_coefficients(np.vstack([other.centre, *ours]))

    def with_amplitude(self, factor: float, centre: Floats | None = None) -> FourierTrajectory:
        """Multiply every excursion by a factor, about a centre (n,), the motion's own by default."""
        coefficients = factor * self.coefficients
        coefficients[0] = self.centre if centre is None else centre
        return self.with_coefficients(coefficients)

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return int(self.coefficients.shape[1])

    @property
    def lowest_rate_hz(self) -> float:
        """Rate of two samples per coefficient over the recorded period [Hz]."""
        return 2.0 * len(self.coefficients) / self.period_s

    def grid(self, count: int) -> tuple[Floats, slice]:
        """Make times over the whole motion (N,) [s]; return also the slice of the ``count`` times that are recorded."""
        start, end = self.recorded
        lead = int(np.ceil(count / 4))  # times of the lead-in, a quarter of a period
        before = np.linspace(0.0, start, lead, endpoint=False)
        inside = start + self.period_s / count * np.arange(count)
        times = np.concatenate([before, inside, np.linspace(end, self.duration, 1 + lead)])
        return times, slice(lead, lead + count)

    def derivative(self, t: Floats, order: int) -> Floats:
        """Compute the derivative (N, n) of order 0 to 3 at times t (N,)."""
        return self.basis(t, order) @ self.coefficients

    def basis(self, t: Floats, order: int) -> Floats:
        """Compute the derivatives (N, 1 + 2 K) of the functions that the coefficients multiply."""
        # Leibniz's rule for the product of window and harmonics
        excursion = sum(
            (comb(order, i) * self._window(t, i)[:, None] * self._harmonics(t - self._lead, order - i))
            for i in range(order + 1)
        )
        constant = np.full((len(t), 1), 1.0 if order == 0 else 0.0)
        return np.hstack([constant, np.asarray(excursion)])

    def _harmonics(self, t: Floats, order: int) -> Floats:
        """Compute the derivatives (N, 2 K) of ``sin(k w t) / (k w)`` and ``-cos(k w t) / (k w)``."""
        w = 2.0 * np.pi / self.period_s * np.arange(1, self.harmonics + 1)
        phase = np.outer(t, w) + 0.5 * np.pi * order  # each derivative advances the phase by a quarter turn
        scale = w ** (order - 1.0)
        return np.hstack([np.sin(phase) * scale, -np.cos(phase) * scale])

    def _window(self, t: Floats, order: int) -> Floats:
        """Compute the derivative of the window (N,): 0 to 1 over the lead-in, 1, and 1 to 0 over the lead-out."""
        fade = _WINDOW.deriv(order) if order else _WINDOW
        rising = np.clip(t / self._lead, 0.0, 1.0)
        falling = np.clip((self.duration - t) / self._lead, 0.0, 1.0)
        value = np.full(len(t), 1.0 if order == 0 else 0.0)  # within the recorded period
        value = np.where(rising < 1.0, fade(rising) / self._lead**order, value)
        return np.where(falling < 1.0, fade(falling) / (-self._lead) ** order, value)
