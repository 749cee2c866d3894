"""Limits of drives that a motion never reached: told apart from "no limit", or left open with the least possible value.

A limit just above what a motion asks for moves a few samples by less than their noise, and its curvature there looks
like knowledge. So every limit is compared with no limit at all: the sum of squares without it, the other entries free
to follow along their derivatives. Where that is no larger than noise makes it, only a least value is known.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2

from dynid.actuators.servo_equations import ServoEquations, filter_errors
from dynid.actuators.servo_knowledge import OpenDirection, told_inverse
from dynid.actuators.servo_simulator import differentiate_servos
from dynid.arrays import Floats
from dynid.errors import EstimationError

LIMITS = ("effort_limit", "stall_torque", "no_load_speed", "current_limit")
"""Kinds that have no effect from some value on."""
LEVEL = 1e-3
"""Probability of taking a motion without a limit for one with a limit. Experiment: with 0.05, 3 of 40 were."""
FAR = 1e6
"""Cost, in variances of a residual, that stands for a motion that runs away (any number beyond all levels)."""


def judge_limits(
    equations: ServoEquations, values: Floats, variance: float, directions: tuple[OpenDirection, ...]
) -> tuple[OpenDirection, ...]:
    """What is open, with the limits that the motions do not tell from no limit at all.

    Args:
        equations: Motions, model and filter.
        values: (P,) the solution.
        variance: Variance of a residual, raised for what lasts in time.
        directions: What is open by derivatives alone.
    """
    together = {name for direction in directions if len(direction.names) > 1 for name in direction.names}
    alone = {direction.names[0] for direction in directions if len(direction.names) == 1}
    found = {}
    for place, entry in enumerate(equations.model.entries):
        if entry.kind not in LIMITS or entry.prior is not None or entry.name in together:
            continue
        excess = _excess_of_limit(equations, values, place, variance)
        if entry.name in alone or excess(float(values[place])) > -chi2.ppf(1.0 - LEVEL, 1):
            least = _least_limit(excess, entry.lower, entry.upper)
            note = "not reached by these motions, as far as their noise tells"
            note += f": it is at least {least:.3g} {entry.unit}" if least > entry.lower else ""
            found[entry.name] = OpenDirection((entry.name,), note, at_least=least)
    kept = [direction for direction in directions if len(direction.names) > 1 or direction.names[0] not in found]
    return (*kept, *found.values())


def _least_limit(excess: Callable[[float], float], lower: float, upper: float) -> float:
    """The smallest limit that the motions do not contradict at a level of 95 %."""
    level = float(chi2.ppf(0.95, 1))
    if excess(lower) <= level:
        return lower
    return float(np.exp(brentq(lambda x: excess(np.exp(x)) - level, *np.log([lower, upper]), rtol=1e-4)))


def _excess_of_limit(
    equations: ServoEquations, values: Floats, place: int, variance: float
) -> Callable[[float], float]:
    """Sum of squares under a limit less that without it, in variances of a residual, after the others have followed."""
    off = values.copy()
    off[place] = equations.model.entries[place].upper
    slopes = []
    for motion in equations.motions:
        derived = differentiate_servos(equations.model, off, motion).slopes
        slopes.append(np.delete(filter_errors(derived, motion.counted, equations.correlation), place, axis=2))
    others = len(values) - 1
    inverse = told_inverse(sum((np.einsum("knp,knq->pq", J, J) for J in slopes), np.zeros((others, others))))

    def cost(limit: float) -> float:
        tried = off.copy()
        tried[place] = limit
        try:
            errors = equations.residuals(tried)
        except EstimationError:
            return float("inf")
        score = sum((np.einsum("kn,knp->p", e, J) for e, J in zip(errors, slopes, strict=True)), np.zeros(others))
        return sum(float(np.sum(e**2)) for e in errors) - float(score @ inverse @ score)

    free = cost(float(off[place]))
    return lambda limit: min((cost(limit) - free) / max(variance, 1e-300), FAR)
