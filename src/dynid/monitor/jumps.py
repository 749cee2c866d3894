"""Sudden torques in coloured noise: residuals are whitened, and a step is looked for in what remains.

Errors of a model change slowly, so that the residual at one instant is known from those before. What is new in it is
small, and a push stands out of it long before it leaves the band. The step that began w periods ago has a known shape
after the whitening; the statistic is the largest projection on these shapes, in standard deviations, for w up to
`WINDOW_S`. Steps that friction may make by itself while a joint stands still are taken off. So is what the residual was
on average before the window: a slow disturbance is no jump.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.signal import lfilter

from dynid.arrays import Floats
from dynid.terms.memory import lag_exponentially

WINDOW_S = 0.02
"""Longest age of a step that is looked for [s] (convention: an alarm comes within it)."""
SLOW_S = 0.1
"""Time constant of the average before the window that is taken off [s] (convention: a disturbance that takes longer to
come is slow)."""
MEMORY_S, MEMORY = 2.0 * WINDOW_S, (8, 24)
"""Longest memory of the noise [s] (convention: twice the window), and bounds on it [periods] (convention: a raw torque
is a mean over two samples and holds a difference of two, which takes several periods to undo at any rate)."""
OWN = 0.005
"""Part of the mean square residual that is taken as new in each sample (convention: smoothed torques seem to be known
from those before to any accuracy, until friction breaks loose)."""
UNREST, MOST_UNREST = 0.7, 16.0
"""Part of the variance of what is new that follows its own average over `SLOW_S`, and largest square in it [-]
(convention: vibrations last for a tenth of a second and more; chosen with figures of the real logs in view)."""


@dataclass(frozen=True, slots=True, eq=False)
class Whitening:
    """The memory of the residuals of each joint."""

    noise: tuple[Autoregression, ...]
    """(n,)"""
    rate_hz: float
    """Rate of the residuals [Hz]."""

    @property
    def windows(self) -> tuple[int, ...]:
        """Ages of steps that are looked for [periods]: powers of two, and the longest."""
        longest = max(1, round(WINDOW_S * self.rate_hz))
        return tuple(sorted({*(2**k for k in range(10) if 2**k < longest), longest}))

    @property
    def order(self) -> int:
        """Memory of the joints [periods]."""
        return self.noise[0].order

    @property
    def settling(self) -> int:
        """Periods after a gap until the statistic counts: memory, average and window are filled then."""
        return max(
            self.order + self.windows[-1], round(3.0 * SLOW_S * self.rate_hz)
        )  # three time constants of the average

    def innovations(self, sudden: Floats) -> Floats:
        """(N - order, n) what is new in sudden parts (N, n), with the variance one on average."""
        columns = [model.whiten(sudden[:, j]) / np.sqrt(model.variance) for j, model in enumerate(self.noise)]
        return np.column_stack(columns)

    def least(self, sudden: Sequence[Floats]) -> Floats:
        """(n,) variance of what is new of a residual's own noise, over that of the whitening."""
        square = np.mean(np.concatenate(list(sudden)) ** 2, axis=0)
        own = [OWN * float(np.square(model.taps).sum()) / model.variance for model in self.noise]
        return np.asarray(square * np.array(own))

    def shape(self, joint: int, window: int) -> Floats:
        """(w,) a unit step after the whitening, over the standard deviation of the noise."""
        model = self.noise[joint]
        taps = np.zeros(window)
        taps[: min(window, model.taps.size)] = model.taps[:window]
        return np.asarray(np.cumsum(taps) / np.sqrt(model.variance))


def sudden_part(residual: Floats, rate_hz: float) -> Floats:
    """(N, n) residuals less what they were on average before the window of a jump."""
    window = max(1, round(WINDOW_S * rate_hz))
    average = lag_exponentially(residual, float(np.exp(-1.0 / (SLOW_S * rate_hz))))
    before = np.vstack([np.repeat(residual[:1], min(window, len(residual)), axis=0), average[:-window]])
    return np.asarray(residual - before)


def fit_whitening(sudden: Sequence[Floats], rate_hz: float, std: Sequence[Floats] | None = None) -> Whitening:
    """Fit the memory of sudden parts, none of them pushed, by weighted least squares.

    Args:
        sudden: (N, n) sudden parts [N m or N].
        rate_hz: Their rate [Hz].
        std: (N - p, n) standard deviations of what is new in them, by an earlier fit; they weigh the samples, so that
            the large errors at reversals do not decide alone.
    """
    p = min(int(np.clip(round(MEMORY_S * rate_hz), *MEMORY)), *(len(u) // 2 for u in sudden))
    models = []
    for j in range(sudden[0].shape[1]):
        past = np.concatenate([sliding_window_view(u[:, j], p + 1) for u in sudden])  # oldest first
        weight = np.ones(len(past)) if std is None else 1.0 / np.concatenate([s[:, j] for s in std])
        weight = np.minimum(weight, np.median(weight))  # a calm arm at rest does not decide alone, either
        own = OWN * float(np.square(past[:, p]).mean())
        A, total = past[:, :p] * weight[:, None], float(np.square(weight).sum())
        taps = np.ones(p + 1)
        taps[1:] = -solve(A.T @ A + own * total * np.eye(p), A.T @ (past[:, p] * weight), assume_a="pos")[::-1]
        variance = float(np.square((past @ taps[::-1]) * weight).sum()) / total
        models.append(Autoregression(taps, variance + own * float(np.square(taps).sum())))
    return Whitening(tuple(models), rate_hz)


def project_steps(whitening: Whitening, sudden: Floats, std: Floats) -> tuple[Floats, Floats]:
    """Projections (windows, N, n) on steps, in standard deviations, and those of a unit step [1/(N m) or 1/N].

    Args:
        whitening: The memory of the noise.
        sudden: (N, n) sudden parts of residuals [N m or N]; see `sudden_part`.
        std: (N, n) standard deviation of what is new in them over that of the whitening; one on average.
    """
    new, root = whitening.innovations(sudden), 1.0 / std[whitening.order :]
    for j in range(root.shape[1]):
        root[:, j] /= np.sqrt(_unrest(np.square(new[:, j] * root[:, j]), root[:, j] > 0.0, whitening))
    projected, sharp = np.zeros((2, len(whitening.windows), *sudden.shape))
    for place, window in enumerate(whitening.windows):
        if len(new) < window:
            continue
        rows = slice(whitening.order + window - 1, None)
        for j in range(sudden.shape[1]):
            shape, square = whitening.shape(j, window)[::-1], np.square(root[:, j])
            size = np.sqrt(np.maximum(np.convolve(square, np.square(shape), mode="valid"), 1e-300))
            sharp[place, rows, j] = size
            projected[place, rows, j] = np.convolve(new[:, j] * square, shape, mode="valid") / size
    projected[:, : whitening.settling] = 0.0
    return projected, sharp


def _unrest(square: Floats, known: NDArray[np.bool_], whitening: Whitening) -> Floats:
    """(N,) variance of what is new over its expectation, by what was new shortly before the window of a jump.

    Args:
        square: (N,) squares of what is new over their expectation.
        known: (N,) whether they count.
        whitening: Rate and windows.
    """
    keep = float(np.exp(-1.0 / (SLOW_S * whitening.rate_hz)))
    one = np.where(known, np.minimum(square, MOST_UNREST), 1.0)
    average = lag_exponentially(np.concatenate([[1.0], one])[:, None], keep)[1:, 0]
    window = min(whitening.windows[-1], len(one))
    return np.asarray(1.0 - UNREST + UNREST * np.concatenate([np.ones(window), average[: len(one) - window]]))


@dataclass(frozen=True, slots=True, eq=False)
class Autoregression:
    """``e_k + a_1 e_(k-1) + ... + a_p e_(k-p)`` is white."""

    taps: Floats
    """(p + 1,) one, then a_1 to a_p"""
    variance: float
    """Of the white noise that drives it."""

    @property
    def order(self) -> int:
        """Samples that it remembers."""
        return self.taps.size - 1

    def whiten(self, x: Floats) -> Floats:
        """(N - p, ...) the filtered rows of x (N, ...)."""
        return np.asarray(lfilter(self.taps, 1.0, x, axis=0)[self.order :])
