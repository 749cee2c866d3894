"""Limits of drives that a motion never reached: told apart from "no limit", or left open with the least possible value.

A limit just above what a motion asks for moves a few samples by less than their noise, and its curvature there looks
like knowledge. So every limit is compared with no limit at all: the sum of squares without it, the other entries free
to follow along their derivatives. Where that is no larger than noise makes it, only a least value is known. A limit
that acts for a few samples has several minima, too: an interval reaches to the farthest value that is not contradicted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.actuators.servo_equations import ServoEquations
from dynid.actuators.servo_identifiability import OpenDirection, see_directions
from dynid.arrays import Floats
from dynid.errors import EstimationError

LIMITS = ("effort_limit", "stall_torque", "no_load_speed", "current_limit")
"""Kinds that have no effect from some value on."""
NORMAL_95 = 1.96
"""Standard deviations of a 95 % interval of the normal distribution."""
TOLD = 3.29**2
"""Difference of two sums of squares, in variances of a residual, from which on a limit is told from none: noise exceeds
it once in a thousand. Experiment: with 1.96**2, 3 of 40 motions without a limit were taken for motions with one."""
REACH = 1.25
"""Factor from one distance to the next, beyond a 95 % interval, at which a limit is tried again. Convention."""
TRIES = 14
"""Number of these distances: up to 23 times the interval. Convention."""
HALVINGS = 8
"""Steps by which a least value is found within a factor of two: to 0.3 %. Convention."""
MOST_DOUBLINGS = 40
"""Factors of two that are tried on the way to a least value. Convention: beyond any bound of a kind."""


@dataclass(frozen=True, slots=True, eq=False)
class _Without:
    """The motions without one limit, and what the other entries could still explain of them."""

    equations: ServoEquations
    values: Floats
    """(P,) the values, that of the limit at its upper bound."""
    place: int
    """Place of the limit."""
    centre: float
    """Value of the limit that was found."""
    slopes: list[Floats]
    """(N, n, P) filtered derivatives of every motion."""
    root: Floats
    """(P - 1, r) matrix L with ``L L'`` the inverse of the equations of the others."""

    @classmethod
    def of(cls, equations: ServoEquations, values: Floats, place: int) -> _Without:
        off = values.copy()
        off[place] = equations.model.entries[place].upper
        slopes = [np.delete(part, place, axis=2) for _, part in equations.pieces(off)]
        A = sum((np.einsum("knp,knq->pq", J, J) for J in slopes), np.zeros((len(values) - 1,) * 2))
        return cls(equations, off, place, float(values[place]), slopes, see_directions(A, np.zeros(len(A))).root)

    def cost(self, limit: float) -> float:
        """Sum of squares under a limit, after the others have followed; infinite where a motion runs away."""
        tried = self.values.copy()
        tried[self.place] = limit
        try:
            errors = self.equations.residuals(tried)
        except EstimationError:
            return float("inf")
        score = sum((np.einsum("kn,knp->p", e, J) for e, J in zip(errors, self.slopes, strict=True)),
                    np.zeros(len(self.root)))  # fmt: skip
        return sum(float(np.sum(e**2)) for e in errors) - float(np.sum((self.root.T @ score) ** 2))


def judge_limits(
    equations: ServoEquations, values: Floats, variance: float, told: tuple[Floats, tuple[OpenDirection, ...]]
) -> tuple[Floats, tuple[OpenDirection, ...]]:
    """Covariance (P, P) and what is open, with the limits that the motions do not tell from no limit at all.

    Args:
        equations: Motions, model and filter.
        values: (P,) the solution.
        variance: Variance of a residual, raised for what lasts in time.
        told: Covariance (P, P) and what is open by derivatives alone.
    """
    covariance, directions = told
    alone = {direction.names[0] for direction in directions if len(direction.names) == 1}
    together = {name for direction in directions if len(direction.names) > 1 for name in direction.names}
    found, wider = {}, np.ones(len(values))
    for place, entry in enumerate(equations.model.entries):
        if entry.kind not in LIMITS or entry.prior is not None or entry.name in together:
            continue
        without = _Without.of(equations, values, place)
        free, here = without.cost(entry.upper), without.cost(float(values[place]))
        if entry.name in alone or free <= here + TOLD * variance:
            least = _least(without, float(values[place]), free + NORMAL_95**2 * variance)
            note = "not reached by these motions, as far as their noise tells"
            note += f": it is at least {least:.3g} {entry.unit}" if least > entry.lower else ""
            found[entry.name] = OpenDirection((entry.name,), (1.0,), note, at_least=least)
        else:
            wider[place] = _reach(without, here + NORMAL_95**2 * variance, covariance[place, place])
    kept = [direction for direction in directions if len(direction.names) > 1 or direction.names[0] not in found]
    return covariance * np.outer(wider, wider), (*kept, *found.values())


def _reach(without: _Without, allowed: float, variance: float) -> float:
    """Factor by which the interval of a limit grows, so that it has every value that is not contradicted."""
    entry, centre = without.equations.model.entries[without.place], without.centre
    factors = [1.0]
    for factor in REACH ** np.arange(1.0, TRIES + 1.0):
        step = factor * NORMAL_95 * np.sqrt(variance)
        sides = [limit for limit in (centre - step, centre + step) if entry.lower < limit < entry.upper]
        factors += [float(factor) for limit in sides if without.cost(limit) <= allowed]
    return max(factors)


def _least(without: _Without, start: float, allowed: float) -> float:
    """The smallest limit that the motions do not contradict."""
    entry = without.equations.model.entries[without.place]
    low = high = start
    for _ in range(MOST_DOUBLINGS):
        if without.cost(high) <= allowed:
            break
        low, high = high, min(2.0 * high, entry.upper)
    for _ in range(MOST_DOUBLINGS):
        if low <= entry.lower or without.cost(low) > allowed:
            break
        low, high = max(0.5 * low, entry.lower), low
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        low, high = (low, middle) if without.cost(middle) <= allowed else (middle, high)
    return float(low)
