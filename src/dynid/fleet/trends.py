"""Lines through values over time and temperature: wear is distinguished from warmth where both were logged.

A value, such as the viscous friction of one joint, is fitted by ``a + b t + c (T - T0)``, weighted by the variances of
the values, with the time t and the temperature T. Where temperatures are unknown or hardly differ, c is left out, and
warmth shows as a change over time. Where temperature and time rise together, b and c are both uncertain, as their
standard deviations say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.array_types import Floats
from dynid.spatial import EXACT, TINY

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
    """Standard deviation of the slope by those of the values; infinite where all times agree."""
    per_kelvin: float
    """Change per kelvin; NaN where temperatures are unknown or hardly differ."""
    per_kelvin_std: float
    """Standard deviation of the change per kelvin; infinite where it is not known."""
    temperature: float
    """Weighted mean of the temperatures [degC]; NaN where they are not known."""
    middle: float
    """Weighted mean of the values."""
    left_over: float
    """Chi-squared of the line: sum of its squared residuals, each over the variance of its value."""
    freedom: int
    """Degrees of freedom of this sum: number of values less the number of parameters."""

    def at_mean_temperature(self, values: Floats, temperatures: Floats) -> Floats:
        """Correct values (m,) to the mean temperature; they stay as they are where the effect is not known."""
        return values - self.per_kelvin * (temperatures - self.temperature) if np.isfinite(self.per_kelvin) else values


def fit_trend(times_s: Floats, temperatures: Floats, values: Floats, std: Floats) -> Trend | None:
    """Fit a line; None where there are too few values, or neither time nor temperature differs.

    Args:
        times_s: (m,) times [s].
        temperatures: (m,) temperatures [degC]; NaN where they are not known, and all are left out if one is.
        values: (m,) the values.
        std: (m,) their standard deviations.
    """
    weight = 1.0 / np.maximum(std, EXACT * max(float(np.abs(values).max(initial=0.0)), TINY)) ** 2
    if values.size < FEWEST_POINTS:
        return None
    by_time = float(np.ptp(times_s)) > 0.0
    by_warmth = bool(np.isfinite(temperatures).all()) and float(np.ptp(temperatures)) > LEAST_RANGE_K
    if not (by_time or by_warmth) or (by_warmth and values.size == FEWEST_POINTS):  # one more parameter, one more value
        return None
    total = float(weight.sum())
    columns = [x - float(weight @ x) / total for x, used in ((times_s, by_time), (temperatures, by_warmth)) if used]
    X = np.column_stack(columns)  # centred, so that the line has no constant
    y = values - float(weight @ values) / total
    scale = np.sqrt(weight @ X**2)
    A = (X / scale).T @ (weight[:, None] * X / scale)  # correlations of the columns
    if len(columns) == 2 and abs(A[0, 1]) > 1.0 - EXACT:  # temperature is proportional to time
        X = X[:, :1]
        scale = scale[:1]
        A = A[:1, :1]
        by_warmth = False
    inverse = np.linalg.inv(A)
    slopes = inverse @ ((X / scale).T @ (weight * y)) / scale
    slope_std = np.sqrt(np.diagonal(inverse)) / scale
    residual = y - X @ slopes
    return Trend(
        slope=float(slopes[0]) if by_time else 0.0,
        std=float(slope_std[0]) if by_time else np.inf,
        per_kelvin=float(slopes[-1]) if by_warmth else np.nan,
        per_kelvin_std=float(slope_std[-1]) if by_warmth else np.inf,
        temperature=float(weight @ temperatures) / total,
        middle=float(weight @ values) / total,
        left_over=float(weight @ residual**2),
        freedom=values.size - 1 - X.shape[1],
    )


def excess_scatter(trends: Sequence[Trend]) -> float:
    """Estimate how much more values scatter about their lines than their uncertainty says: a ratio of variances, >= 1.

    It is the median over the lines of chi-squared over the median of its distribution, so that a few values that do not
    follow a line hardly matter.
    """
    from scipy.special import chdtri  # level that a chi-squared variable exceeds with a probability

    ratios = [trend.left_over / float(chdtri(trend.freedom, 0.5)) for trend in trends if trend.freedom > 0]
    return max(1.0, float(np.median(ratios))) if ratios else 1.0
