"""Search for the parameters of servos: Levenberg-Marquardt steps within bounds, from one or several starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.errors import EstimationError

FIRST_DAMPING = 1e-3
"""First damping, as a share of the diagonal of the equations. Convention of Marquardt's method."""
MOST_DAMPING = 1e8
"""Damping at which a search gives up: steps are then far below any useful resolution. Convention."""
FLAT = 1e-3
"""Share of the sum that the linear equations still promise to take away, below which a search that finds no better step
stands at the minimum. Convention: about one standard deviation of one parameter with a thousand free samples."""
STILL = 1e-6
"""Relative change of the values that is none: readings without noise leave a sum of rounding errors, of which any share
can be promised. Convention."""


@dataclass(frozen=True, slots=True, eq=False)
class Normal:
    """The sum of squares at a point, with its normal equations."""

    cost: float
    """Sum of squared residuals, measured minus simulated."""
    information: Floats
    """(P, P) ``J' J``, J the derivatives of the simulated values."""
    score: Floats
    """(P,) ``J' residuals``: the way down."""

    @property
    def is_finite(self) -> bool:
        """Whether a step can be computed from it."""
        return bool(np.isfinite(self.cost) and np.isfinite(self.information).all() and np.isfinite(self.score).all())


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """Where a search ended."""

    values: Floats
    """(P,) the best values."""
    cost: float
    """Their sum of squares."""
    iterations: int
    """Steps that were tried."""
    converged: bool
    """Whether accepted steps no longer changed the sum, or no step helps where the equations promise nothing either."""


def search_servos(
    evaluate: Callable[[Floats], Normal],
    cost: Callable[[Floats], float],
    start: Floats,
    bounds: tuple[Floats, Floats],
    *,
    iterations: int = 60,
    tolerance: float = 1e-5,
) -> Search:
    """Minimise a sum of squares within bounds.

    A value at a bound that the way down would leave is held there for the step; the others take a damped Newton step
    and stop at their bounds.

    Args:
        evaluate: Normal equations at (P,) values.
        cost: Sum of squares at (P,) values; infinite where it cannot be computed.
        start: (P,) first values, within the bounds.
        bounds: (P,) smallest and largest values.
        iterations: Largest number of steps.
        tolerance: Relative change of the sum at which the search ends.

    Raises:
        EstimationError: The sum cannot be computed at the start.
    """
    lower, upper = bounds
    values = np.clip(start, lower, upper)
    here = evaluate(values)
    if not here.is_finite:
        raise EstimationError("the first guess cannot be simulated", remedy="Start from other values.")
    damping, tried, quiet, held = FIRST_DAMPING, 0, 0, False
    while tried < iterations and damping < MOST_DAMPING:
        tried += 1
        trial = np.clip(values + _step(here, values, bounds, damping), lower, upper)
        there = cost(trial)
        after = evaluate(trial) if there < here.cost else here
        if after is here or not after.is_finite:  # derivatives may overflow where the motion itself does not
            if np.allclose(trial, values, rtol=1e-12, atol=1e-15):
                return Search(values, here.cost, tried, _is_flat(here, values, bounds))
            damping, held = 8.0 * damping, True
            continue
        gain = (here.cost - there) / here.cost if here.cost > 0.0 else 0.0
        # damping that has just been raised stays: less of it failed a step ago
        values, here, damping, held = trial, after, damping if held else max(damping / 8.0, 1e-9), False
        quiet = quiet + 1 if gain < tolerance else 0
        if quiet == 2:
            return Search(values, here.cost, tried, True)
    return Search(values, here.cost, tried, quiet > 0 or _is_flat(here, values, bounds))


def _is_flat(here: Normal, values: Floats, bounds: tuple[Floats, Floats]) -> bool:
    """Whether the linear equations promise no smaller sum within the bounds, or ask for no other values."""
    lower, upper = bounds
    step = np.clip(values + _step(here, values, bounds, FIRST_DAMPING), lower, upper) - values
    promise = 2.0 * float(step @ here.score) - float(step @ here.information @ step)
    return promise <= FLAT * here.cost or np.allclose(values + step, values, rtol=STILL, atol=STILL**2)


def _step(here: Normal, values: Floats, bounds: tuple[Floats, Floats], damping: float) -> Floats:
    """(P,) damped step of the values that are not held at their bounds."""
    lower, upper = bounds
    held = ((values <= lower) & (here.score < 0.0)) | ((values >= upper) & (here.score > 0.0))
    diagonal = np.diagonal(here.information)
    free = np.flatnonzero(~held & (diagonal > 0.0))
    step = np.zeros_like(values)
    scale = np.sqrt(diagonal[free])
    A = here.information[np.ix_(free, free)] / np.outer(scale, scale)
    A[np.diag_indices(len(free))] += damping
    step[free] = np.linalg.solve(A, here.score[free] / scale) / scale
    return step
