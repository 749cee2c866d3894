"""Nonlinear least squares of measured minus simulated motions of servos: the normal equations, and the search.

servo_identification.py calls both. Unknown are the P entries of a `ServoModel` (parameters of joints, such as
friction). `ServoEquations` simulates the motions for values (P,) and gives the sum of squared residuals with its normal
equations: J' J and J' r, with r the measured minus simulated encoder readings and J the derivatives of the simulated
ones. `search_servos` minimises the sum by the method of Levenberg and Marquardt within bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynid.array_types import Floats
from dynid.errors import ArgumentError, EstimationError
from dynid.servos.motion import CommandedMotion, mask_uncounted
from dynid.servos.servo_model import ServoModel
from dynid.servos.servo_simulator import differentiate_chains, simulate_servos

FIRST_DAMPING, LEAST_DAMPING, LARGEST_DAMPING = 1e-3, 1e-9, 1e8
"""Damping, as a share of the diagonal of the normal equations, at the start and at its limits (convention of
Marquardt's method)."""
LEAST_PROMISE = 1e-3
"""Decrease of the sum that the linear equations predict, as a share of the sum, below which a search that finds no
better step has converged (convention: with a thousand independent samples, the decrease by a step of one standard
deviation of one parameter)."""
LEAST_CHANGE = 1e-6
"""Relative change of the values that the linear equations ask for, below which such a search has converged as well
(convention): readings without noise leave a sum of rounding errors, of which any share may be predicted to vanish."""


@dataclass(frozen=True, slots=True, eq=False)
class Normal:
    """The sum of squared residuals at some values, with its normal equations."""

    cost: float
    """Sum of squared residuals, measured minus simulated."""
    information: Floats
    """(P, P) ``J' J``, with J the derivatives of the simulated positions with respect to the P values."""
    score: Floats
    """(P,) ``J' residuals``, the direction of steepest descent of the sum."""

    @property
    def is_finite(self) -> bool:
        """Whether all numbers are finite, so that a step can be computed."""
        return all(bool(np.isfinite(part).all()) for part in (self.cost, self.information, self.score))


@dataclass(frozen=True, slots=True, eq=False)
class ServoEquations:
    """A model of servos with P unknown values, and the motions that it has to explain."""

    model: ServoModel
    """The robot, the law of its drives, and the P entries to find."""
    motions: tuple[CommandedMotion, ...]
    """Commands and encoder readings."""

    def __post_init__(self) -> None:
        """Refuse a model without unknowns."""
        if not self.model.entries:
            raise ArgumentError("nothing of the model is free", remedy="Name the parameters that are to be found.")

    def cost(self, values: Floats) -> float:
        """Compute the sum of squared residuals at values (P,); infinite if a simulated motion runs away."""
        try:
            return sum(
                float(np.sum(mask_uncounted(m.position - simulate_servos(self.model, values, m), m.counted) ** 2))
                for m in self.motions
            )
        except EstimationError:
            return float("inf")

    def normal(self, values: Floats) -> Normal:
        """Compute the normal equations of all motions at values (P,)."""
        parts = [self.linearise(values, motion, 1) for motion in self.motions]
        return Normal(*(sum(part[k][0] for part in parts) for k in range(3)))

    def linearise(self, values: Floats, motion: CommandedMotion, blocks: int) -> tuple[Floats, Floats, Floats]:
        """Compute the normal equations of one motion, for each of B consecutive blocks of time.

        Args:
            values: (P,) values of the entries.
            motion: The motion.
            blocks: Number of blocks B.

        Returns:
            Sums of squared residuals (B,), ``J' J`` (B, P, P) and ``J' residuals`` (B, P).
        """
        P = len(self.model.entries)
        rows = np.array_split(np.arange(len(motion.time)), blocks)  # samples of each block
        cost = np.zeros(blocks)
        information = np.zeros((blocks, P, P))
        score = np.zeros((blocks, P))
        # chains are branches of the robot, such as legs, that depend on few of the entries each
        for chain in differentiate_chains(self.model, values, motion):
            counted = motion.counted[:, chain.joints]
            with np.errstate(over="ignore", invalid="ignore"):  # of an unstable motion, which the search will refuse
                # `mask_uncounted` sets readings that do not count to zero: (N, m) and (N, m, p)
                residuals = mask_uncounted(motion.position[:, chain.joints] - chain.position, counted)
                slopes = mask_uncounted(chain.slopes, counted)
                for b, block in enumerate(rows):
                    e = residuals[block].ravel()
                    J = slopes[block].reshape(-1, len(chain.entries))
                    cost[b] += e @ e
                    information[b][np.ix_(chain.entries, chain.entries)] += J.T @ J
                    score[b, chain.entries] += J.T @ e
        return cost, information, score


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """Result of a search."""

    values: Floats
    """(P,) the best values."""
    iterations: int
    """Number of steps that were tried."""
    converged: bool
    """Whether the last accepted step hardly changed the sum; or no step made it smaller, and the linear equations
    predict none that does."""


def search_servos(
    evaluate: Callable[[Floats], Normal],
    cost: Callable[[Floats], float],
    start: Floats,
    bounds: tuple[Floats, Floats],
    *,
    iterations: int = 60,
    tolerance: float = 1e-5,
) -> Search:
    """Minimise a sum of squares within bounds by the method of Levenberg and Marquardt.

    A value at a bound stays there for a step if the descent leads beyond the bound; the others take a damped
    Gauss-Newton step and stop at their bounds. SciPy's search is not used because it needs the derivatives of all
    samples at once, and those of a quadruped's legs are mostly zero.

    Args:
        evaluate: Normal equations at (P,) values.
        cost: Sum of squares at (P,) values; infinite where it cannot be computed.
        start: (P,) first values, within the bounds.
        bounds: (P,) smallest and largest values.
        iterations: Largest number of steps.
        tolerance: Relative decrease of the sum; two smaller ones in succession end the search.

    Raises:
        EstimationError: The sum cannot be computed at the start.
    """
    values = np.clip(start, *bounds)
    here = evaluate(values)
    if not here.is_finite:
        raise EstimationError("the first guess cannot be simulated", remedy="Start from other values.")
    damping = FIRST_DAMPING
    tried = 0
    small_gains = 0  # in succession
    failed_before = False
    while tried < iterations and damping < LARGEST_DAMPING:
        tried += 1
        trial = values + _step(here, values, bounds, damping)
        trial_cost = cost(trial)
        after = evaluate(trial) if trial_cost < here.cost else here
        if after is here or not after.is_finite:  # derivatives may overflow even if the motion does not
            if np.allclose(trial, values, rtol=1e-12, atol=1e-15):  # smaller steps would change nothing
                break
            damping *= 8.0  # usual factor of the method
            failed_before = True
            continue
        gain = (here.cost - trial_cost) / here.cost if here.cost > 0.0 else 0.0
        values = trial
        here = after
        if not failed_before:  # otherwise less damping failed just before
            damping = max(damping / 8.0, LEAST_DAMPING)
        failed_before = False
        small_gains = small_gains + 1 if gain < tolerance else 0
        if small_gains == 2:
            break
    return Search(values, tried, small_gains > 0 or _is_flat(here, values, bounds))


def _is_flat(here: Normal, values: Floats, bounds: tuple[Floats, Floats]) -> bool:
    """Test whether the linear equations predict no smaller sum within the bounds, or no other values."""
    step = _step(here, values, bounds, FIRST_DAMPING)
    # decrease of the quadratic model: 2 g' x - x' A x
    promise = 2.0 * float(step @ here.score) - float(step @ here.information @ step)
    is_still = np.allclose(values + step, values, rtol=LEAST_CHANGE, atol=LEAST_CHANGE**2)
    return promise <= LEAST_PROMISE * here.cost or is_still


def _step(here: Normal, values: Floats, bounds: tuple[Floats, Floats], damping: float) -> Floats:
    """Compute the damped step (P,) within the bounds; values that the descent would drive out of them stay.

    ``(A + damping diag(A)) step = g``, solved with rows and columns of A scaled to a diagonal of ones.
    """
    lower, upper = bounds
    stays = ((values <= lower) & (here.score < 0.0)) | ((values >= upper) & (here.score > 0.0))
    diagonal = np.diagonal(here.information)
    free = np.flatnonzero(~stays & (diagonal > 0.0))  # entries without effect stay, too
    step = np.zeros_like(values)
    scale = np.sqrt(diagonal[free])
    A = here.information[np.ix_(free, free)] / np.outer(scale, scale)
    A[np.diag_indices(len(free))] += damping
    step[free] = np.linalg.solve(A, here.score[free] / scale) / scale
    return np.clip(values + step, lower, upper) - values
