"""Odd ones among things that should be alike: arms of a fleet, the same joint of four legs.

Each one is compared with the mean of all others; the farthest is taken out and the rest is compared again, until none
is far. What is usual differs: arms scatter by nature, while legs of one kind are held to be equal and differ by the
error of their estimates alone. So the caller states the variance of a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats


@dataclass(frozen=True, slots=True)
class OddOne:
    """One that is far from all others."""

    place: int
    """Its place among the values."""
    deviations: float
    """Its distance from the mean of the others, in standard deviations."""
    mean: float
    """Mean of the others."""
    p_value: float
    """Probability that this one, if it is like the others, is as far away by chance."""


def odd_ones(
    values: Floats,
    variance: Callable[[int, Sequence[int]], float],
    *,
    places: Sequence[int],
    freedom: Callable[[int, Sequence[int]], float],
    chance: float,
    fewest: int,
) -> list[OddOne]:
    """The farthest value of every round: odd ones, and last, where enough are left, one that is like the rest.

    Args:
        values: The values.
        variance: Called with the place of one value and those of the others; returns the variance of the difference
            between the one and the mean of the others, as it is among things that are alike.
        places: Places of the values that are compared.
        freedom: Called likewise; returns the degrees of freedom of that variance.
        chance: Probability from which on a distance is taken as chance: a round that finds no smaller one is the last.
        fewest: Smallest number of values that can be compared.
    """
    from scipy.special import stdtr

    present, found = list(places), []
    while len(present) >= max(fewest, 2):
        rounds = []
        for place in present:
            others = [k for k in present if k != place]
            mean = float(values[others].mean())
            size = (float(values[place]) - mean) / max(float(np.sqrt(variance(place, others))), 1e-300)
            rounds.append(OddOne(place, size, mean, 2.0 * float(stdtr(freedom(place, others), -abs(size)))))
        farthest = min(rounds, key=lambda one: (one.p_value, -abs(one.deviations)))
        found.append(farthest)
        if farthest.p_value > chance:
            break
        present.remove(farthest.place)
    return found
