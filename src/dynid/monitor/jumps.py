"""Sudden torques in coloured noise: residuals are whitened, and a step is looked for in their innovations.

A residual is the torque from outside (N, n) that the momentum observer sees, sampled at a constant rate; with nothing
touching the arm, it is the error of the model. `dynid.monitor.calibration` calls `fit_whitening` on clean logs, and
`project_steps` on any log. Errors of a model change slowly, so that the residual at one instant can be predicted from
those before. The innovation, which is the residual less this prediction, is small, and a push stands out of it long
before it leaves the band. The step that began w periods ago has a known shape s after the whitening. The innovations v
project on it as ``sum(v s / std^2) / sqrt(sum(s^2 / std^2))``, in standard deviations (matched filter); the statistic
is the largest projection for w up to `WINDOW_S`. Steps that friction may make by itself while a joint stands still are
subtracted by the caller. So is the average of the residual before the window: a slow disturbance is no jump.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.signal import lfilter

from dynid.array_types import Floats
from dynid.spatial import TINY
from dynid.terms.memory import lag_exponentially

WINDOW_S = 0.02
"""Longest age of a step that is looked for [s] (convention: an alarm comes within it)."""
SLOW_S = 0.1
"""Time constant of the average before the window that is subtracted [s] (convention: a disturbance that takes longer
to come is slow)."""
MEMORY_S, MEMORY_BOUNDS = 2.0 * WINDOW_S, (8, 24)
"""Order of the autoregressive noise model as a time [s] (convention: twice the window), and the least and largest order
[periods] (convention: a raw torque is a mean over two samples and holds a difference of two, which takes several
periods to undo at any rate)."""
WHITE_SHARE = 0.005
"""Share of the mean square residual that every innovation has at least (convention: smoothed torques seem to be
predictable to any accuracy, until friction breaks loose)."""
VIBRATION_SHARE, LARGEST_SQUARE = 0.7, 16.0
"""Share of the innovations' variance that follows its own average over `SLOW_S`, and the largest squared innovation
that enters this average, over its expectation [-] (convention: vibrations last for a tenth of a second and more; chosen
with figures of the real logs in view)."""


@dataclass(frozen=True, slots=True, eq=False)
class Autoregression:
    """Noise e with ``e_k + a_1 e_(k-1) + ... + a_p e_(k-p) = v_k``, where the innovations v are white."""

    taps: Floats
    """(p + 1,) the filter from noise to innovation, newest sample first: one, then a_1 to a_p."""
    variance: float
    """Variance of the innovations."""

    @property
    def order(self) -> int:
        """Number p of earlier samples that predict the next one."""
        return self.taps.size - 1

    def whiten(self, x: Floats) -> Floats:
        """Compute the innovations (N - p, ...) of samples x (N, ...); the first p samples have none."""
        return np.asarray(lfilter(self.taps, 1.0, x, axis=0)[self.order :])


@dataclass(frozen=True, slots=True, eq=False)
class Whitening:
    """One autoregressive noise model per joint, all of one order."""

    noise: tuple[Autoregression, ...]
    """(n,) noise models."""
    rate_hz: float
    """Rate of the residuals [Hz]."""

    @property
    def windows(self) -> tuple[int, ...]:
        """Ages of steps that are looked for [periods]: powers of two, and the longest."""
        longest = max(1, round(WINDOW_S * self.rate_hz))
        powers = {2**k for k in range(10) if 2**k < longest}  # 2**9 periods are half a second at the quickest rate
        return tuple(sorted({*powers, longest}))

    @property
    def order(self) -> int:
        """Order p of the noise models [periods]."""
        return self.noise[0].order

    @property
    def settling(self) -> int:
        """Periods after a gap until the statistic counts: noise model, average and window are filled then."""
        return max(
            self.order + self.windows[-1], round(3.0 * SLOW_S * self.rate_hz)
        )  # three time constants of the average

    def innovations(self, sudden: Floats) -> Floats:
        """Compute the innovations (N - p, n) of sudden parts (N, n), scaled so that their variance is one on average.

        The sudden part is the residual less its slow average, see `sudden_part`.
        """
        columns = [model.whiten(sudden[:, j]) / np.sqrt(model.variance) for j, model in enumerate(self.noise)]
        return np.column_stack(columns)

    def floor_variance(self, sudden: Sequence[Floats]) -> Floats:
        """Compute the least variance (n,) of the scaled innovations, as white noise gives it after the filter.

        This noise has the share `WHITE_SHARE` of the mean square of the sudden parts, a list of arrays (N, n).
        """
        square = np.mean(np.concatenate(list(sudden)) ** 2, axis=0)
        gain = [WHITE_SHARE * float(np.square(model.taps).sum()) / model.variance for model in self.noise]
        return np.asarray(square * np.array(gain))

    def step_shape(self, joint: int, window: int) -> Floats:
        """Compute the scaled innovations (w,) of a unit step during its first w periods: the sums of the taps."""
        model = self.noise[joint]
        taps = np.zeros(window)
        taps[: min(window, model.taps.size)] = model.taps[:window]
        return np.asarray(np.cumsum(taps) / np.sqrt(model.variance))


def sudden_part(residual: Floats, rate_hz: float) -> Floats:
    """Subtract from residuals (N, n) their exponential average, as it was one window (`WINDOW_S`) before."""
    window = max(1, round(WINDOW_S * rate_hz))
    average = lag_exponentially(residual, float(np.exp(-1.0 / (SLOW_S * rate_hz))))
    before = np.vstack([np.repeat(residual[:1], min(window, len(residual)), axis=0), average[:-window]])
    return np.asarray(residual - before)


def fit_whitening(sudden: Sequence[Floats], rate_hz: float, std: Sequence[Floats] | None = None) -> Whitening:
    """Fit the noise models to the sudden parts of clean logs by weighted least squares.

    Args:
        sudden: (N, n) sudden parts of each clean stretch [N m or N].
        rate_hz: Their rate [Hz].
        std: (N - p, n) standard deviations of the innovations, by an earlier fit; they weigh the samples, so that
            the large errors at reversals do not decide alone. None weighs all samples alike.
    """
    p = min(int(np.clip(round(MEMORY_S * rate_hz), *MEMORY_BOUNDS)), *(len(u) // 2 for u in sudden))
    models = []
    for j in range(sudden[0].shape[1]):
        rows = np.concatenate([sliding_window_view(u[:, j], p + 1) for u in sudden])  # oldest sample first
        weight = np.ones(len(rows)) if std is None else 1.0 / np.concatenate([s[:, j] for s in std])
        weight = np.minimum(weight, np.median(weight))  # a calm arm at rest does not decide alone, either
        total = float(np.square(weight).sum())
        white = WHITE_SHARE * float(np.square(rows[:, p]).mean())  # added to each sample as if it were white noise
        # normal equations: the newest sample by the p before it; white noise adds to their diagonal
        A = rows[:, :p] * weight[:, None]
        taps = np.ones(p + 1)
        taps[1:] = -solve(A.T @ A + white * total * np.eye(p), A.T @ (rows[:, p] * weight), assume_a="pos")[::-1]
        variance = float(np.square((rows @ taps[::-1]) * weight).sum()) / total
        models.append(Autoregression(taps, variance + white * float(np.square(taps).sum())))
    return Whitening(tuple(models), rate_hz)


def project_steps(whitening: Whitening, sudden: Floats, std: Floats) -> tuple[Floats, Floats]:
    """Project innovations on steps of all ages.

    Args:
        whitening: The noise models.
        sudden: (N, n) sudden parts of residuals [N m or N]; see `sudden_part`.
        std: (N, n) standard deviation of the scaled innovations, one on average; infinite where a sample is not known.

    Returns:
        Projections (windows, N, n) on steps of the ages `Whitening.windows`, in standard deviations, and those that a
        unit step would have (windows, N, n) [1/(N m) or 1/N]. The former are zero until `Whitening.settling` periods
        have passed.
    """
    innovations = whitening.innovations(sudden)
    # standard deviations grow while the arm vibrates
    inverse_std = 1.0 / std[whitening.order :]
    for j in range(inverse_std.shape[1]):
        squares = np.square(innovations[:, j] * inverse_std[:, j])
        inverse_std[:, j] /= np.sqrt(_vibration(squares, inverse_std[:, j] > 0.0, whitening))
    projected, unit = np.zeros((2, len(whitening.windows), *sudden.shape))
    for place, window in enumerate(whitening.windows):
        if len(innovations) < window:
            continue
        rows = slice(whitening.order + window - 1, None)
        for j in range(sudden.shape[1]):
            shape = whitening.step_shape(j, window)[::-1]
            precision = np.square(inverse_std[:, j])
            size = np.sqrt(np.maximum(np.convolve(precision, np.square(shape), mode="valid"), TINY))
            unit[place, rows, j] = size
            projected[place, rows, j] = np.convolve(innovations[:, j] * precision, shape, mode="valid") / size
    projected[:, : whitening.settling] = 0.0
    return projected, unit


def _vibration(squares: Floats, known: NDArray[np.bool_], whitening: Whitening) -> Floats:
    """Estimate the variance (N,) of the innovations over its expectation, from those shortly before each window.

    Args:
        squares: (N,) squared innovations over their expectation.
        known: (N,) whether they count.
        whitening: Rate and windows.
    """
    keep = float(np.exp(-1.0 / (SLOW_S * whitening.rate_hz)))
    counted = np.where(known, np.minimum(squares, LARGEST_SQUARE), 1.0)
    # settled at one, the expectation, before the first sample
    average = lag_exponentially(np.concatenate([[1.0], counted])[:, None], keep)[1:, 0]
    window = min(whitening.windows[-1], len(counted))
    before = np.concatenate([np.ones(window), average[: len(counted) - window]])
    return np.asarray(1.0 - VIBRATION_SHARE + VIBRATION_SHARE * before)
