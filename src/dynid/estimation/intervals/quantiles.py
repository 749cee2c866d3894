"""Probabilities and quantiles of the chi-squared, F and Student distributions.

`scipy.special` has them, too, and takes longer to load than most commands need for their fits. The incomplete gamma and
beta functions are the series and continued fractions of Abramowitz and Stegun (1964), 6.5.29, 6.5.31 and 26.5.8; a
quantile is found between two bounds. In the tails (chances below 0.1) they agree with SciPy to 1e-9.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

__all__ = [
    "chi_squared_quantile",
    "displaced_quantile",
    "f_probability",
    "normal_quantile",
    "student_quantile",
    "student_ratio",
]

MOST_TERMS = 100_000
"""Largest number of terms of a series (convention): the sums converge long before."""
ENOUGH = 1e-16
"""Relative size of a term below which it changes nothing (double precision)."""
TINY = 1e-300
"""What stands for zero in a denominator of a continued fraction (Lentz's rule)."""
FAR_FROM_ZERO = 8.0
"""Mean beyond which a normal number of variance one is never negative (derivation: a chance of 6e-16)."""
HALVINGS = 200
"""Largest number of bisections (derivation: a double has 64 bits, and the bracket may have to grow before)."""


def f_probability(above: float, first: float, second: float) -> float:
    """Probability that F with (first, second) degrees of freedom lies above a value."""
    if above <= 0.0:
        return 1.0
    return _beta_share(second / (second + first * above), 0.5 * second, 0.5 * first)


def chi_squared_quantile(freedom: float, chance: float) -> float:
    """The value that chi-squared exceeds with some chance."""
    return 2.0 * _root(lambda x: chance - _gamma_above(0.5 * freedom, x), max(0.5 * freedom, 1.0))


def student_quantile(freedom: float, probability: float) -> float:
    """The value below which Student's t lies with a probability above one half."""
    if math.isinf(freedom):
        return normal_quantile(probability)
    chance = 2.0 * (1.0 - probability)
    return _root(lambda t: chance - _beta_share(freedom / (freedom + t * t), 0.5 * freedom, 0.5), 1.0)


def normal_quantile(probability: float) -> float:
    """The value below which a standard normal number lies with a probability above one half."""
    chance = 1.0 - probability
    return _root(lambda x: chance - 0.5 * math.erfc(x / math.sqrt(2.0)), 1.0)


def displaced_quantile(mean: float, probability: float = 0.95) -> float:
    """The value that the magnitude of a normal number of variance one does not exceed with a probability.

    Args:
        mean: Mean of the number.
        probability: The probability; above one half.
    """
    root = math.sqrt(2.0)
    one_sided = normal_quantile(probability)
    if mean > FAR_FROM_ZERO:
        return mean + one_sided  # the other tail is empty

    def above(value: float) -> float:
        return probability - 0.5 * (math.erf((value - mean) / root) + math.erf((value + mean) / root))

    return _root(lambda value: -above(value), mean + one_sided)


@functools.cache
def student_ratio(freedom: float, probability: float) -> float:
    """Quantile of Student's t over that of a normal number."""
    return student_quantile(freedom, probability) / normal_quantile(probability)


def _root(rising: Callable[[float], float], start: float) -> float:
    """The positive root of a rising function by Ridders' rule (1979), which halves a bracket at least."""
    low, high = 0.0, start
    below, above = rising(low), rising(high)
    while above < 0.0:
        low, below, high = high, above, 2.0 * high
        above = rising(high)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        value = rising(middle)
        slope = math.sqrt(value * value - below * above)
        if slope == 0.0 or high - low <= ENOUGH * high:
            return middle
        inside = min(max(middle + (middle - low) * -value / slope, low), high)
        found = rising(inside)
        ends = sorted(((low, below), (middle, value), (inside, found), (high, above)))
        after = next(place for place in range(1, 4) if ends[place][1] >= 0.0)
        if ends[after][0] - ends[after - 1][0] >= high - low:
            return middle
        (low, below), (high, above) = ends[after - 1], ends[after]
    return 0.5 * (low + high)


def _gamma_above(a: float, x: float) -> float:
    """Regularised upper incomplete gamma function Q(a, x)."""
    if x <= 0.0:
        return 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1.0:
        term = total = 1.0 / a
        for k in range(1, MOST_TERMS):
            term *= x / (a + k)
            total += term
            if term < ENOUGH * total:
                break
        return 1.0 - scale * total
    # even part of the continued fraction: 1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(x+5-a- ...
    fraction = _continued(x + 1.0 - a, lambda k: (-k * (k - a), x + 2.0 * k + 1.0 - a))
    return scale / fraction


def _beta_share(x: float, a: float, b: float) -> float:
    """Regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _beta_share(1.0 - x, b, a)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)

    def element(k: int) -> tuple[float, float]:
        m = k // 2
        if k % 2 == 0:
            return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), 1.0
        return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), 1.0

    return math.exp(logarithm) / (a * _continued(1.0, element))


def _continued(first: float, element: Callable[[int], tuple[float, float]]) -> float:
    """``first + a1 / (b1 + a2 / (b2 + ...))`` by Lentz's rule; ``element(k)`` is (ak, bk)."""
    value = upper = first or TINY
    lower = 0.0
    for k in range(1, MOST_TERMS):
        a, b = element(k)
        lower = 1.0 / (b + a * lower or TINY)
        upper = b + a / upper or TINY
        value *= upper * lower
        if abs(upper * lower - 1.0) < ENOUGH:
            break
    return value
