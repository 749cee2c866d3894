"""From positions to velocities and accelerations: a low-pass without phase, and central differences.

`dynid.processing.process` calls `CentralDifferences.motion` or `MeasuredVelocity.motion`, the two ways of
differentiation, with the samples of each gap-free stretch and a `Butterworth` low-pass. Each way also states its gain,
the ratio of the computed to the true acceleration at every frequency, by which dynid.processing.cutoff chooses the
cutoff before anything is differentiated. Signals are arrays (N, k), one column per channel, uniformly sampled. Filter
and differences are those of [Izaguirre1992] section 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import ndimage, signal

from dynid.array_types import Floats
from dynid.decompositions import pinv
from dynid.errors import ArgumentError, DataError


def check_band(name: str, hz: float, rate_hz: float) -> None:
    """Refuse a frequency [Hz] outside the band of a log sampled at a rate [Hz].

    Raises:
        ArgumentError: It is not above zero and below half the sampling rate.
    """
    if not 0.0 < hz < 0.5 * rate_hz:
        raise ArgumentError(
            f"{name} is {hz:g} Hz, not between 0 and {0.5 * rate_hz:g} Hz, half the sampling rate of {rate_hz:g} Hz",
            remedy="Choose a lower one, or a recording with a higher rate.",
        )


def continuation(x: Floats, count: int, window: int) -> tuple[Floats, Floats]:
    """Continue a signal x (N, k) by `count` rows before its start and after its end, for a filter that needs them.

    Reflection of the signal about its end would change the sign of the acceleration there, and the filter would answer
    with a transient. So a cubic is fitted to the outer `window` rows and continued; only the residuals are reflected.

    Returns:
        The rows before the start, and those after the end, (count, k) each; at most window - 1 rows.
    """
    # the start is the end of the signal that runs backwards
    return np.flip(_continue(np.flip(x[:window], axis=0), count), axis=0), _continue(x[-window:], count)


def _continue(x: Floats, count: int) -> Floats:
    """Continue x (N, k), all rows of which are fitted, by `count` rows, at most N - 1."""
    window = x.shape[0]
    count = min(count, window - 1)
    inside, fit, outside = _cubics(window, count)
    coefficients = fit @ x
    residual = x - inside @ coefficients
    reflected = 2.0 * residual[-1] - residual[-2 : -count - 2 : -1]  # about the last residual
    return np.asarray(outside @ coefficients + reflected)


@lru_cache(maxsize=32)
def _cubics(window: int, count: int) -> tuple[Floats, Floats, Floats]:
    """Compute three matrices of a cubic, cached because many columns and stretches have the same window.

    Returns:
        Values in the window from coefficients (window, 4); coefficients from values in the window, by least squares
        (4, window); values at `count` samples beyond the window from coefficients (count, 4).
    """
    inside = np.vander(np.linspace(-1.0, 0.0, window), 4)
    outside = np.vander(np.arange(1, count + 1) / (window - 1), 4)
    return inside, pinv(inside, float(np.finfo(float).eps) * max(window, 4)), outside


ORDER = 4
"""Order of each of the two passes of the low-pass (convention)."""


def low_pass_gains(frequency_hz: Floats, rate_hz: float, cutoffs_hz: Floats) -> Floats:
    """Compute the gains (c, f) of `Butterworth` for cutoffs (c,) and frequencies (f,) [Hz]; its phase is zero."""
    # bilinear transform: the analogue filter at the warped frequency; both passes give the squared magnitude
    warped = np.tan(np.pi * np.minimum(frequency_hz, 0.4999 * rate_hz) / rate_hz)
    ratio = warped / np.tan(np.pi * cutoffs_hz / rate_hz)[:, None]
    return np.asarray(1.0 / (1.0 + ratio ** (2 * ORDER)))


@dataclass(frozen=True, slots=True)
class Butterworth:
    """A Butterworth low-pass of order 4 run forwards and backwards: half the amplitude at the cutoff, no phase."""

    rate_hz: float
    """Sampling rate [Hz]."""
    cutoff_hz: float | None
    """Frequency at which the gain is one half [Hz]; None for no filter."""
    accuracy: float = 1e-3
    """Relative error that transients at the ends may cause outside `settling_s`."""

    def apply(self, x: Floats) -> Floats:
        """Filter a signal (N, k)."""
        if self.cutoff_hz is None:
            return x
        check_band("cutoff_hz", self.cutoff_hz, self.rate_hz)
        # the signal is continued by a period of the cutoff; a cubic needs four samples even if that is shorter
        window = min(x.shape[0], int(np.ceil(self.rate_hz / self.cutoff_hz)) + 4)
        before, after = continuation(x, window, window)
        # beyond the cubics SciPy reflects them about their ends (padlen), so that the recursion can settle
        continued = np.concatenate([before, x, after])
        sections = signal.butter(ORDER, self.cutoff_hz, fs=self.rate_hz, output="sos")
        smooth = signal.sosfiltfilt(sections, continued, axis=0, padlen=len(before))
        return np.ascontiguousarray(smooth[len(before) : len(before) + len(x)])

    def gain(self, frequency_hz: Floats) -> Floats:
        """Compute the gain (f,) at each frequency (f,) [Hz]."""
        if self.cutoff_hz is None:
            return np.ones_like(frequency_hz)
        return np.asarray(low_pass_gains(frequency_hz, self.rate_hz, np.array([self.cutoff_hz]))[0])

    @property
    def settling_s(self) -> float:
        """Time at each end [s] within which the unknown signal outside changes the result by more than `accuracy`."""
        if self.cutoff_hz is None:
            return 0.0
        # real part of the slowest Butterworth pole: transients decay by exp(-decay) per period of the cutoff
        decay = 2.0 * np.pi * np.sin(0.5 * np.pi / ORDER)
        # the continuation is taken to miss the signal by a tenth; 1.5 to 5 periods in any case (convention)
        return float(np.clip(np.log(0.1 / self.accuracy) / decay, 1.5, 5.0)) / self.cutoff_hz


def stencil(accuracy: int) -> list[float]:
    """Compute the weights of ``x[i + k] - x[i - k]``, k = 1, 2, ..., in a first derivative by central differences.

    They are exact for polynomials up to the degree of `accuracy`, an even number; the sampling period is 1.
    """
    m = accuracy // 2
    return [-((-1) ** k) * comb(2 * m, m + k) / (k * comb(2 * m, m)) for k in range(1, m + 1)]


class Derivatives(NamedTuple):
    """Positions, velocities and accelerations of one gap-free stretch."""

    q: Floats
    """(N, n) [rad or m]"""
    dq: Floats
    """(N, n) [rad/s or m/s]"""
    ddq: Floats
    """(N, n) [rad/s^2 or m/s^2]"""


@dataclass(frozen=True, slots=True)
class CentralDifferences:
    """Filter positions by a low-pass, then take central differences twice.

    With the sampling period tau ``accuracy=2`` is ``v_i = (q_{i+1} - q_{i-1}) / (2 tau)`` and
    ``a_i = (v_{i+1} - v_{i-1}) / (2 tau)``, [Izaguirre1992] section 7. The wider stencils lose less at high
    frequencies: at a tenth of the sampling rate 0.02 % instead of 6.5 % of a velocity.
    """

    accuracy: int = 8
    """Order of accuracy in the sampling period: 2, 4, 6 or 8."""
    source: ClassVar[str] = "q"
    """The measured signal that is differentiated: q or dq."""
    times: ClassVar[int] = 2
    """How often it is differentiated."""

    def __post_init__(self) -> None:
        """Refuse stencils that do not exist."""
        if self.accuracy not in (2, 4, 6, 8):
            raise ArgumentError(f"central differences of accuracy {self.accuracy}", remedy="Choose 2, 4, 6 or 8.")

    def motion(self, q: Floats, dq: Floats | None, smoothing: Butterworth) -> Derivatives:
        """Differentiate one gap-free stretch.

        Args:
            q: (N, n) positions [rad or m], uniformly sampled.
            dq: (N, n) measured velocities; only `MeasuredVelocity` needs them.
            smoothing: The low-pass.
        """
        smooth_q = smoothing.apply(q)
        velocity = difference(smooth_q, smoothing.rate_hz, self.accuracy)
        return Derivatives(smooth_q, velocity, difference(velocity, smoothing.rate_hz, self.accuracy))

    def gains(self, frequency_hz: Floats, rate_hz: float, cutoffs_hz: Floats) -> Floats:
        """Compute ratios (c, f) of the computed to the true acceleration, for cutoffs (c,) at frequencies (f,) [Hz]."""
        w = 2.0 * np.pi * np.asarray(frequency_hz) / rate_hz  # [rad per sample]
        # the differences of sin(w i) have the amplitude `response`, its derivative has w
        response = sum(2.0 * weight * np.sin(k * w) for k, weight in enumerate(stencil(self.accuracy), start=1))
        once = np.divide(response, w, out=np.ones_like(w), where=w > 0.0)
        return np.asarray(low_pass_gains(frequency_hz, rate_hz, cutoffs_hz) * once**self.times)

    def margin(self) -> int:
        """Compute the number of samples at each end for which the differences reach beyond the signal."""
        return self.times * self.accuracy // 2


@dataclass(frozen=True, slots=True)
class MeasuredVelocity(CentralDifferences):
    """Filter measured velocities (tachometer, controller) and differentiate them once ([Atkeson1986] section 3.2)."""

    source: ClassVar[str] = "dq"
    times: ClassVar[int] = 1

    def motion(self, q: Floats, dq: Floats | None, smoothing: Butterworth) -> Derivatives:
        """See `CentralDifferences.motion`."""
        if dq is None:
            raise DataError("the recording has no measured velocities", remedy="Differentiate positions instead.")
        velocity = smoothing.apply(dq)
        return Derivatives(smoothing.apply(q), velocity, difference(velocity, smoothing.rate_hz, self.accuracy))


@dataclass(frozen=True, slots=True)
class Derivation:
    """Filter and differences by which a motion was computed from measured signals.

    An `Experiment` keeps it, so that a simulated motion can be filtered and differentiated in the same way.
    """

    smoothing: Butterworth
    """The low-pass, at the rate of the log before it was reduced."""
    differentiation: CentralDifferences
    """The way of differentiation."""

    def motion(self, q: Floats, dq: Floats) -> Derivatives:
        """Compute the motion from positions [rad or m] and velocities [rad/s or m/s] of a stretch, (N, n) each."""
        return self.differentiation.motion(np.ascontiguousarray(q), np.ascontiguousarray(dq), self.smoothing)


def difference(x: Floats, rate_hz: float, accuracy: int) -> Floats:
    """Differentiate x (N, k) once, per second, by central differences of an order of accuracy (2, 4, 6 or 8)."""
    weights = stencil(accuracy)
    width = accuracy // 2
    if x.shape[0] <= width:
        raise DataError(f"a stretch of {x.shape[0]} samples is too short for differences over {2 * width + 1}")
    full_stencil = rate_hz * np.array([*(-weight for weight in reversed(weights)), 0.0, *weights])
    # at both ends the signal is reflected about its end point, so that slopes continue
    padded = np.pad(x, ((width, width), (0, 0)), mode="reflect", reflect_type="odd")
    return np.asarray(ndimage.correlate1d(padded, full_stencil, axis=0)[width:-width])
