"""From positions to velocities and accelerations: one strategy, one object.

Every strategy states the gain of its acceleration relative to the true one, so that a cutoff can be chosen for it
before anything is differentiated (`dynid.processing.cutoff`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import interpolate, ndimage, signal

from dynid.arrays import Floats
from dynid.decompositions import lstsq
from dynid.errors import ArgumentError, DataError
from dynid.processing.filters import LowPass, Smoothing, convolve, reflect, symmetric_gain

_STENCILS = {  # weights of x[i + k] - x[i - k], k = 1, 2, ...; accurate to the given order in the sampling period
    2: (1 / 2,),
    4: (2 / 3, -1 / 12),
    6: (3 / 4, -3 / 20, 1 / 60),
    8: (4 / 5, -1 / 5, 4 / 105, -1 / 280),
}


class Motion(NamedTuple):
    """Positions, velocities and accelerations (N, n) of one gap-free stretch."""

    q: Floats
    dq: Floats
    ddq: Floats


class Differentiation(ABC):
    """A way to compute velocities and accelerations."""

    source: ClassVar[str] = "q"
    """The measured signal that is differentiated: q (twice) or dq (once)."""
    tunable: ClassVar[bool] = True
    """Whether a cutoff can be chosen by its effect on the accelerations."""

    @abstractmethod
    def motion(self, q: Floats, dq: Floats | None, smoothing: Smoothing) -> Motion:
        """Differentiate one gap-free stretch.

        Args:
            q: (N, n) positions [rad or m], uniformly sampled.
            dq: (N, n) measured velocities, where there are any.
            smoothing: Rate, cutoff and low-pass.
        """

    @abstractmethod
    def gain(self, frequency_hz: Floats, smoothing: Smoothing) -> Floats:
        """Acceleration obtained / true acceleration at each frequency [Hz]."""

    def gains(self, frequency_hz: Floats, rate_hz: float, cutoffs_hz: Floats, low_pass: LowPass) -> Floats:
        """(c, f) `gain` of each of some cutoffs (c,) of a low-pass at frequencies (f,) [Hz]."""
        each = (Smoothing(rate_hz=rate_hz, cutoff_hz=cutoff, low_pass=low_pass) for cutoff in cutoffs_hz.tolist())
        return np.array([self.gain(frequency_hz, smoothing) for smoothing in each])

    def margin(self) -> int:
        """Samples at each end that no full stencil reaches."""
        return 0


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a motion was computed from measured signals, so that a simulated motion can be treated alike."""

    smoothing: Smoothing
    """The smoothing at the rate of the log, before samples were thinned out."""
    differentiation: Differentiation

    def motion(self, q: Floats, dq: Floats) -> Motion:
        """The motion that a gap-free log of positions and velocities (N, n) would have become."""
        return self.differentiation.motion(np.ascontiguousarray(q), np.ascontiguousarray(dq), self.smoothing)


def difference(x: Floats, rate_hz: float, accuracy: int) -> Floats:
    """First derivative (N, k) of x by central differences of the given order of accuracy."""
    weights = _STENCILS[accuracy]
    width = len(weights)
    if x.shape[0] <= width:
        raise DataError(f"a stretch of {x.shape[0]} samples is too short for differences over {2 * width + 1}")
    stencil = rate_hz * np.array([*(-weight for weight in reversed(weights)), 0.0, *weights])
    return np.asarray(ndimage.correlate1d(reflect(x, width), stencil, axis=0)[width : width + x.shape[0]])


def _difference_gain(frequency_hz: Floats, rate_hz: float, accuracy: int) -> Floats:
    w = 2.0 * np.pi * np.asarray(frequency_hz) / rate_hz
    response = sum(2.0 * weight * np.sin(k * w) for k, weight in enumerate(_STENCILS[accuracy], start=1))
    return np.where(w > 1e-9, response / np.maximum(w, 1e-9), 1.0)


@dataclass(frozen=True, slots=True)
class CentralDifferences(Differentiation):
    """Low-pass, then central differences, twice.

    ``accuracy=2`` is ``v_i = (q_{i+1} - q_{i-1}) / (2 tau)``, ``a_i = (v_{i+1} - v_{i-1}) / (2 tau)``,
    [Izaguirre1992] section 7. The wider stencils lose less at high frequencies: at a tenth of the sampling rate 0.02 %
    instead of 6.5 % of a velocity.
    """

    accuracy: int = 8
    """Order of accuracy in the sampling period: 2, 4, 6 or 8."""

    def __post_init__(self) -> None:
        """Refuse stencils that do not exist."""
        if self.accuracy not in _STENCILS:
            raise ArgumentError(f"central differences of accuracy {self.accuracy}", remedy="Choose 2, 4, 6 or 8.")

    def motion(self, q: Floats, dq: Floats | None, smoothing: Smoothing) -> Motion:
        smooth = smoothing.apply(q)
        velocity = difference(smooth, smoothing.rate_hz, self.accuracy)
        return Motion(smooth, velocity, difference(velocity, smoothing.rate_hz, self.accuracy))

    def gain(self, frequency_hz: Floats, smoothing: Smoothing) -> Floats:
        return smoothing.gain(frequency_hz) * _difference_gain(frequency_hz, smoothing.rate_hz, self.accuracy) ** 2

    def gains(self, frequency_hz: Floats, rate_hz: float, cutoffs_hz: Floats, low_pass: LowPass) -> Floats:
        passed = low_pass.gains(frequency_hz, rate_hz, cutoffs_hz)
        return passed * _difference_gain(frequency_hz, rate_hz, self.accuracy) ** 2

    def margin(self) -> int:
        return 2 * len(_STENCILS[self.accuracy])


@dataclass(frozen=True, slots=True)
class MeasuredVelocity(Differentiation):
    """Take velocities from a tachometer or the controller and differentiate them once ([Atkeson1986] section 3.2)."""

    accuracy: int = 8
    """Order of accuracy of the differences: 2, 4, 6 or 8."""
    source: ClassVar[str] = "dq"

    def motion(self, q: Floats, dq: Floats | None, smoothing: Smoothing) -> Motion:
        velocity = smoothing.apply(_measured(dq))
        return Motion(smoothing.apply(q), velocity, difference(velocity, smoothing.rate_hz, self.accuracy))

    def gain(self, frequency_hz: Floats, smoothing: Smoothing) -> Floats:
        return smoothing.gain(frequency_hz) * _difference_gain(frequency_hz, smoothing.rate_hz, self.accuracy)

    def gains(self, frequency_hz: Floats, rate_hz: float, cutoffs_hz: Floats, low_pass: LowPass) -> Floats:
        return low_pass.gains(frequency_hz, rate_hz, cutoffs_hz) * _difference_gain(
            frequency_hz, rate_hz, self.accuracy
        )

    def margin(self) -> int:
        return len(_STENCILS[self.accuracy])


@dataclass(frozen=True, slots=True)
class QuasiStatic(Differentiation):
    """Measured velocities and no acceleration: for rows picked from slow motion, where inertia cannot be seen."""

    source: ClassVar[str] = "dq"
    tunable: ClassVar[bool] = False

    def motion(self, q: Floats, dq: Floats | None, smoothing: Smoothing) -> Motion:
        return Motion(smoothing.apply(q), smoothing.apply(_measured(dq)), np.zeros_like(q))

    def gain(self, frequency_hz: Floats, smoothing: Smoothing) -> Floats:
        return np.zeros_like(frequency_hz)


@dataclass(frozen=True, slots=True)
class SavitzkyGolay(Differentiation):
    """Derivatives of polynomials fitted in a sliding window whose length follows from the cutoff."""

    degree: int = 5
    """Degree of the polynomials; at least 3."""

    def __post_init__(self) -> None:
        """Refuse polynomials with constant acceleration."""
        if self.degree < 3:
            raise ArgumentError(f"polynomials of degree {self.degree}", remedy="Choose a degree of 3 or more.")

    def window(self, smoothing: Smoothing) -> int:
        """Odd window length [samples] with the wanted cutoff (Schafer 2011, eq. 11)."""
        relative = smoothing.required_cutoff("Savitzky-Golay") / (0.5 * smoothing.rate_hz)
        half = round(((self.degree + 1) / relative + 4.6) / 3.2)
        return 2 * max(half, self.degree // 2 + 1) + 1

    def motion(self, q: Floats, dq: Floats | None, smoothing: Smoothing) -> Motion:
        steps = [convolve(q, self._weights(smoothing, d)) * smoothing.rate_hz**d for d in range(3)]
        return Motion(*steps)

    def gain(self, frequency_hz: Floats, smoothing: Smoothing) -> Floats:
        relative = np.asarray(frequency_hz) / smoothing.rate_hz
        response = symmetric_gain(self._weights(smoothing, 2), relative)
        # below a hundredth of the cutoff the gain is one; the quotient of two tiny numbers would be noise
        flat = 0.01 * smoothing.required_cutoff("Savitzky-Golay") / smoothing.rate_hz
        return np.where(relative > flat, -response / (2.0 * np.pi * np.maximum(relative, flat)) ** 2, 1.0)

    def _weights(self, smoothing: Smoothing, derivative: int) -> Floats:
        """Impulse response of the derivative, per sampling period."""
        return np.asarray(signal.savgol_coeffs(self.window(smoothing), self.degree, deriv=derivative, use="conv"))


@dataclass(frozen=True, slots=True)
class SmoothingSpline(Differentiation):
    """A cubic smoothing spline; its stiffness is set so that the gain at the cutoff is one half."""

    def motion(self, q: Floats, dq: Floats | None, smoothing: Smoothing) -> Motion:
        if q.shape[0] < 5:
            raise DataError(f"a stretch of {q.shape[0]} samples is too short for a smoothing spline")
        # in units of samples the penalised problem has the gain 1 / (1 + stiffness w^4)
        w = 2.0 * np.pi * smoothing.required_cutoff("a smoothing spline") / smoothing.rate_hz
        index = np.arange(q.shape[0], dtype=float)
        spline = interpolate.make_smoothing_spline(index, q, lam=w**-4, axis=0)
        rate = smoothing.rate_hz
        return Motion(spline(index), spline(index, 1) * rate, spline(index, 2) * rate**2)

    def gain(self, frequency_hz: Floats, smoothing: Smoothing) -> Floats:
        ratio = np.asarray(frequency_hz) / smoothing.required_cutoff("a smoothing spline")
        return 1.0 / (1.0 + ratio**4)


@dataclass(frozen=True, slots=True)
class Fourier(Differentiation):
    """A Fourier series fitted to a periodic run: exact derivatives, no transients."""

    period_s: float
    """Period of the motion [s]."""

    def harmonics(self, smoothing: Smoothing) -> int:
        """Number of harmonics below the cutoff."""
        return max(1, int(smoothing.required_cutoff("a Fourier series") * self.period_s + 1e-9))

    def motion(self, q: Floats, dq: Floats | None, smoothing: Smoothing) -> Motion:
        time = np.arange(q.shape[0]) / smoothing.rate_hz
        if time[-1] < self.period_s * (1.0 - 1e-6) - 1.0 / smoothing.rate_hz:
            raise DataError(
                f"a stretch of {time[-1]:.3g} s holds no full period of {self.period_s:g} s",
                remedy="Record at least one period, or differentiate in another way.",
            )
        w = 2.0 * np.pi / self.period_s * np.arange(1, self.harmonics(smoothing) + 1)
        cosine, sine = np.cos(time[:, None] * w), np.sin(time[:, None] * w)
        basis = np.hstack([np.ones((time.size, 1)), cosine, sine])
        mean, a, b = np.split(lstsq(basis, q), [1, 1 + w.size])
        velocity = cosine @ (w[:, None] * b) - sine @ (w[:, None] * a)
        acceleration = -(cosine @ (w[:, None] ** 2 * a) + sine @ (w[:, None] ** 2 * b))
        return Motion(mean + cosine @ a + sine @ b, velocity, acceleration)

    def gain(self, frequency_hz: Floats, smoothing: Smoothing) -> Floats:
        highest = (self.harmonics(smoothing) + 0.5) / self.period_s
        return (np.asarray(frequency_hz) < highest).astype(float)


def _measured(dq: Floats | None) -> Floats:
    if dq is None:
        raise DataError("the recording has no measured velocities", remedy="Differentiate positions instead.")
    return dq
