"""Sudden torques in coloured noise: residuals over their band are whitened, and a step is looked for in what remains.

Errors of a model change slowly, so that the residual at one instant is known from those before. What is new in it is
small, and a push stands out of it long before it leaves the band. The step that began w periods ago has a known shape
after the whitening; the statistic is the largest projection on these shapes, in standard deviations, for w up to
`WINDOW_S`. What the residual was on average before the window is taken off first: a slow disturbance is no jump.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.curves import lag_exponentially
from dynid.estimation.noisy.autoregression import Autoregression, autocovariance

__all__ = ["Whitening", "fit_whitening", "jump_statistic", "sudden_part"]

Floats = NDArray[np.float64]
WINDOW_S = 0.02
"""Longest age of a step that is looked for [s] (convention: an alarm comes within it)."""
SLOW_S = 0.1
"""Time constant of the average before the window that is taken off [s] (convention: a disturbance that takes longer to
come is slow)."""
MEMORY_S = 0.04
"""Longest memory of the noise [s] (convention: twice the window)."""
MOST_ORDER = 24
"""Most samples that the noise remembers (convention)."""


@dataclass(frozen=True, slots=True, eq=False)
class Whitening:
    """The memory of the residuals of each joint, over their band."""

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
        """Longest memory of a joint [periods]."""
        return max(model.order for model in self.noise)

    def innovations(self, sudden: Floats) -> Floats:
        """(N - order, n) what is new in sudden parts (N, n) over their band, with the variance one on average."""
        columns = [
            model.whiten(sudden[:, j])[self.order - model.order :] / np.sqrt(model.variance)
            for j, model in enumerate(self.noise)
        ]
        return np.column_stack(columns)

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


def fit_whitening(sudden: Sequence[Floats], rate_hz: float) -> Whitening:
    """Fit the memory of sudden parts over their band, (N, n) each, none of them pushed."""
    most = int(np.clip(round(MEMORY_S * rate_hz), 1, MOST_ORDER))
    models = []
    for j in range(sudden[0].shape[1]):
        known = [autocovariance(u[:, j], np.ones(len(u), dtype=bool), min(most, len(u) - 1)) for u in sudden]
        size = min(len(found[0]) for found in known)
        total = sum(count for _, count in known)
        covariances = sum(found[0][:size] * (found[1] / total) for found in known)
        models.append(Autoregression.fit(np.asarray(covariances), total))
    return Whitening(tuple(models), rate_hz)


def jump_statistic(whitening: Whitening, sudden: Floats, std: Floats) -> Floats:
    """(N, n) largest projection on a step that began within the window [-]; zero while the memory fills.

    Args:
        whitening: The memory of the noise.
        sudden: (N, n) sudden parts of residuals over their band; see `sudden_part`.
        std: (N, n) standard deviation of what is new in them; one on average.
    """
    found = np.zeros(sudden.shape)
    for j, model in enumerate(whitening.noise):
        white = model.whiten(sudden[:, j]) / np.sqrt(model.variance)
        weight = 1.0 / np.square(std[model.order :, j])
        for window in whitening.windows:
            shape = whitening.shape(j, window)
            if len(white) < window:
                continue
            projected = np.convolve(white * weight, shape[::-1], mode="valid")
            size = np.convolve(weight, np.square(shape[::-1]), mode="valid")
            place = found[model.order + window - 1 :, j]
            np.maximum(place, np.abs(projected) / np.sqrt(size), out=place)
    return found
