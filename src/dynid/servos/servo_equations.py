"""Measured minus simulated motion as equations for the parameters of servos, and the search for their least squares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ArgumentError, EstimationError
from dynid.servos.motion import CommandedMotion, compared
from dynid.servos.servo_model import ServoModel
from dynid.servos.servo_simulator import differentiate_chains, simulate_servos

DAMPING = (1e-3, 1e-9, 1e8)
"""First, least and largest damping, as shares of the diagonal of the equations. Convention of Marquardt's method."""
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
        return all(bool(np.isfinite(part).all()) for part in (self.cost, self.information, self.score))


@dataclass(frozen=True, slots=True, eq=False)
class ServoEquations:
    """The motions that a model has to explain."""

    model: ServoModel
    motions: tuple[CommandedMotion, ...]

    def __post_init__(self) -> None:
        """Refuse a model of which nothing is to be found."""
        if not self.model.entries:
            raise ArgumentError("nothing of the model is free", remedy="Name the parameters that are to be found.")

    def cost(self, values: Floats) -> float:
        """Sum of squared residuals; infinite where a motion runs away."""
        try:
            return sum(
                float(np.sum(compared(m.position - simulate_servos(self.model, values, m), m.counted) ** 2))
                for m in self.motions
            )
        except EstimationError:
            return float("inf")

    def normal(self, values: Floats) -> Normal:
        """The normal equations."""
        parts = [self.linearise(values, motion, 1) for motion in self.motions]
        return Normal(*(sum(part[k][0] for part in parts) for k in range(3)))

    def linearise(self, values: Floats, motion: CommandedMotion, blocks: int) -> tuple[Floats, Floats, Floats]:
        """Sums of squares (B,), ``J' J`` (B, P, P) and ``J' residuals`` (B, P) of a motion in blocks of time."""
        P, rows = len(self.model.entries), np.array_split(np.arange(len(motion.time)), blocks)
        cost, information, score = np.zeros(blocks), np.zeros((blocks, P, P)), np.zeros((blocks, P))
        for chain in differentiate_chains(self.model, values, motion):
            counted = motion.counted[:, chain.joints]
            with np.errstate(over="ignore", invalid="ignore"):  # an unstable motion: the search goes another way
                e = compared(motion.position[:, chain.joints] - chain.position, counted)
                slopes = compared(chain.slopes, counted)
                for b, some in enumerate(rows):
                    error, J = e[some].ravel(), slopes[some].reshape(-1, len(chain.entries))
                    cost[b] += error @ error
                    information[b][np.ix_(chain.entries, chain.entries)] += J.T @ J
                    score[b, chain.entries] += J.T @ error
        return cost, information, score


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """Where a search ended."""

    values: Floats
    """(P,) the best values."""
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
    """Minimise a sum of squares within bounds by steps of Levenberg and Marquardt.

    A value at a bound that the way down would leave is held there for the step; the others take a damped Newton step
    and stop at their bounds. (SciPy's search wants the derivatives of all samples at once; those of a quadruped's legs
    are mostly zero.)

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
    values = np.clip(start, *bounds)
    here = evaluate(values)
    if not here.is_finite:
        raise EstimationError("the first guess cannot be simulated", remedy="Start from other values.")
    (damping, least, most), tried, quiet, held = DAMPING, 0, 0, False
    while tried < iterations and damping < most:
        tried += 1
        trial = values + _step(here, values, bounds, damping)
        there = cost(trial)
        after = evaluate(trial) if there < here.cost else here
        if after is here or not after.is_finite:  # derivatives may overflow where the motion itself does not
            if np.allclose(trial, values, rtol=1e-12, atol=1e-15):
                break
            damping, held = 8.0 * damping, True
            continue
        gain = (here.cost - there) / here.cost if here.cost > 0.0 else 0.0
        # damping that has just been raised stays: less of it failed a step ago
        values, here, damping, held = trial, after, damping if held else max(damping / 8.0, least), False
        quiet = quiet + 1 if gain < tolerance else 0
        if quiet == 2:
            break
    return Search(values, tried, quiet > 0 or _is_flat(here, values, bounds))


def _is_flat(here: Normal, values: Floats, bounds: tuple[Floats, Floats]) -> bool:
    """Whether the linear equations promise no smaller sum within the bounds, or ask for no other values."""
    step = _step(here, values, bounds, DAMPING[0])
    promise = 2.0 * float(step @ here.score) - float(step @ here.information @ step)
    return promise <= FLAT * here.cost or np.allclose(values + step, values, rtol=STILL, atol=STILL**2)


def _step(here: Normal, values: Floats, bounds: tuple[Floats, Floats], damping: float) -> Floats:
    """(P,) damped step of the values that are not held at their bounds, within the bounds."""
    lower, upper = bounds
    held = ((values <= lower) & (here.score < 0.0)) | ((values >= upper) & (here.score > 0.0))
    diagonal = np.diagonal(here.information)
    free = np.flatnonzero(~held & (diagonal > 0.0))
    step = np.zeros_like(values)
    scale = np.sqrt(diagonal[free])
    A = here.information[np.ix_(free, free)] / np.outer(scale, scale)
    A[np.diag_indices(len(free))] += damping
    step[free] = np.linalg.solve(A, here.score[free] / scale) / scale
    return np.clip(values + step, lower, upper) - values
