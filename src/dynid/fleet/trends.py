"""Lines through values over time and temperature: wear is told from warmth where both were logged.

A value, such as the viscous friction of one joint, is fitted by ``a + b t + c (T - T0)``, weighted by the variances of
the values, with the time t and the temperature T. Where temperatures are unknown or hardly differ, c is left out, and
warmth shows as a change over time. Where warmth and time rise together they cannot be told apart: both b and c are then
uncertain, and say so by their standard deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.spatial import EXACT

FEWEST_POINTS = 4
"""Smallest number of values of which a trend can be judged (convention: two more than a line has parameters)."""
LEAST_RANGE_K = 2.0
"""Smallest range of temperatures with which their effect is estimated [K] (convention: sensors of drives read whole
degrees)."""


@dataclass(frozen=True, slots=True, eq=False)
class Trend:
    """A line through values over time, and over temperature where it is known."""

    slope: float
    """Change per second at constant temperature."""
    std: float
    """Its standard deviation, if the values scatter about the line as they should; infinite where all times agree."""
    per_kelvin: float
    """Change per kelvin; NaN where temperatures are unknown or hardly differ."""
    per_kelvin_std: float
    """Its standard deviation; infinite where it is not known."""
    temperature: float
    """Weighted mean of the temperatures [degC]; NaN where they are not known."""
    middle: float
    """Weighted mean of the values."""
    left_over: float
    """Weighted squares of what the values deviate from the line."""
    freedom: int
    """Values beyond the parameters of the line."""

    def at_mean_temperature(self, values: Floats, temperatures: Floats) -> Floats:
        """Values as they would be at the mean temperature; unchanged where the effect is not known."""
        return values - self.per_kelvin * (temperatures - self.temperature) if np.isfinite(self.per_kelvin) else values


def fit_trend(times_s: Floats, temperatures: Floats, values: Floats, std: Floats) -> Trend | None:
    """Fit a line; None where there are too few values, or neither time nor temperature differs.

    Args:
        times_s: (m,) times [s].
        temperatures: (m,) temperatures [degC]; NaN where they are not known, and all are left out if one is.
        values: (m,) the values.
        std: (m,) their standard deviations.
    """
    weight = 1.0 / np.maximum(std, EXACT * max(float(np.abs(values).max(initial=0.0)), 1e-300)) ** 2
    warm = bool(np.isfinite(temperatures).all()) and float(np.ptp(temperatures) if values.size else 0.0) > LEAST_RANGE_K
    timed = bool(values.size) and float(np.ptp(times_s)) > 0.0
    if values.size < FEWEST_POINTS + warm or not (timed or warm):
        return None
    total = float(weight.sum())
    centred = [x - float(weight @ x) / total for x, used in ((times_s, timed), (temperatures, warm)) if used]
    X, y = np.column_stack(centred), values - float(weight @ values) / total
    scale = np.sqrt(weight @ X**2)
    A = (X / scale).T @ (weight[:, None] * X / scale)
    if len(centred) == 2 and abs(A[0, 1]) > 1.0 - EXACT:  # time and temperature are one and the same
        X, scale, A, warm = X[:, :1], scale[:1], A[:1, :1], False
    inverse = np.linalg.inv(A)
    found = inverse @ ((X / scale).T @ (weight * y)) / scale
    spread = np.sqrt(np.diagonal(inverse)) / scale
    left = y - X @ found
    return Trend(
        slope=float(found[0]) if timed else 0.0,
        std=float(spread[0]) if timed else np.inf,
        per_kelvin=float(found[-1]) if warm else np.nan,
        per_kelvin_std=float(spread[-1]) if warm else np.inf,
        temperature=float(weight @ temperatures) / total,
        middle=float(weight @ values) / total,
        left_over=float(weight @ left**2),
        freedom=values.size - 1 - X.shape[1],
    )


def excess_scatter(trends: Sequence[Trend]) -> float:
    """How much more values scatter about their lines than their uncertainty says, as a ratio of variances; at least 1.

    The median over the lines, set against that of the distribution: a few that bend do not count.
    """
    from scipy.special import chdtri

    ratios = [trend.left_over / float(chdtri(trend.freedom, 0.5)) for trend in trends if trend.freedom > 0]
    return max(1.0, float(np.median(ratios))) if ratios else 1.0
