"""Probabilities and quantiles of the chi-squared, F and Student distributions.

`scipy.special` has them, too, and takes longer to load than most commands need for their fits. The incomplete gamma and
beta functions are the series and continued fractions of Abramowitz and Stegun (1964), 6.5.29, 6.5.31 and 26.5.8; a
quantile is found between two bounds. In the tails (chances below 0.1) they agree with SciPy to 1e-9.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from dynid.arrays import Floats

MOST_TERMS = 100_000
"""Largest number of terms of a series (convention): the sums converge long before."""
ENOUGH = 1e-16
"""Relative size of a term below which it changes nothing (double precision)."""
ROUNDED = 2.0 * float(np.finfo(float).eps)
"""Relative change below which an array of continued fractions has converged (double precision, one product)."""
TINY = 1e-300
"""What stands for zero in a denominator of a continued fraction (Lentz's rule)."""
FAR_FROM_ZERO = 8.0
"""Mean beyond which a normal number of variance one is never negative (derivation: a chance of 6e-16)."""
STEPS = 20
"""Largest number of Newton's steps (convention): three to four are usual."""
NEARLY = 1e-7
"""Relative step after which Newton's rule is done (derivation: the next one would be its square)."""
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


def student_ratios(freedom: Floats, probability: float) -> Floats:
    """`student_ratio` of many degrees of freedom (m,) at once, by Newton's rule in place of a bracket.

    The logarithm of the chance to exceed t is nearly a straight line over the logarithm of t for few degrees of
    freedom, so the steps are taken there; they start from Abramowitz and Stegun (1964), 26.7.5.
    """
    z, chance = normal_quantile(probability), 2.0 * (1.0 - probability)
    ratios, finite = np.ones(len(freedom)), np.isfinite(freedom)
    nu = freedom[finite]
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    t = z + first / nu + second / nu**2 + third / nu**3
    density = _log_gammas(0.5 * (nu + 1.0)) - _log_gammas(0.5 * nu) - 0.5 * np.log(nu * math.pi)
    for _ in range(STEPS if nu.size else 0):
        share = _beta_shares(nu / (nu + t * t), 0.5 * nu, np.full_like(nu, 0.5))
        slope = 2.0 * t * np.exp(density - 0.5 * (nu + 1.0) * np.log1p(t * t / nu)) / share
        step = np.log(share / chance) / slope
        t = t * np.exp(step)
        if np.all(np.abs(step) < NEARLY):
            break
    ratios[finite] = t / z
    return ratios


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


def _beta_shares(x: Floats, a: Floats, b: Floats) -> Floats:
    """`_beta_share` of arrays; every x lies between zero and one."""
    far = x > (a + 1.0) / (a + b + 2.0)
    x, a, b = np.where(far, 1.0 - x, x), np.where(far, b, a), np.where(far, a, b)
    logarithm = _log_gammas(a + b) - _log_gammas(a) - _log_gammas(b) + a * np.log(x) + b * np.log1p(-x)
    value, upper, lower = np.ones_like(x), np.ones_like(x), np.zeros_like(x)
    for k in range(1, MOST_TERMS):
        m = k // 2
        if k % 2 == 0:
            element = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            element = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        lower = 1.0 / (1.0 + element * lower)
        upper = 1.0 + element / upper
        change = upper * lower
        value *= change
        if np.all(np.abs(change - 1.0) <= ROUNDED):
            break
    share = np.exp(logarithm) / (a * value)
    return np.asarray(np.where(far, 1.0 - share, share))


def _log_gammas(x: Floats) -> Floats:
    """Logarithms of gamma functions."""
    return np.array([math.lgamma(each) for each in x.tolist()])


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
