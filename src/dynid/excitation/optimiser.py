"""One descent: augmented Lagrangian outside, L-BFGS inside, every step made feasible.

A limit at every sample is cheap for the Lagrangian, which needs one gradient whatever their number. SLSQP, given one
smooth maximum per limit, was measured beside it (Panda from two starts, PUMA 560; one Neoverse core): condition numbers
5.7, 5.4 and 7.1 in 7 to 10 s, against 6.0, 5.0 and 6.4 in 5 to 8 s.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.criteria import Criterion, InformationCriterion
from dynid.excitation.feasibility import with_feasible_amplitude
from dynid.excitation.problem import DesignProblem
from dynid.excitation.trajectory import LinearTrajectory

__all__ = ["SearchSettings", "Step", "descend"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Step:
    """Where a design stands after one outer iteration."""

    start: int
    """Number of the start, from 0."""
    iteration: int
    """Number of the outer iteration, from 0 (the start itself)."""
    value: float
    """Criterion of the motion after its amplitude was made feasible; infinite where it reveals too little."""
    excess: float
    """Largest excess over a limit before that, in units of the limit."""
    elapsed_s: float
    """Since the design began [s]."""
    trajectory: LinearTrajectory | None = field(default=None, compare=False, repr=False)
    """That motion; None where no amplitude is feasible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """Effort of one descent."""

    iterations: int = 80
    """Steps of L-BFGS per outer iteration."""
    outer: int = 12
    """Outer iterations; the criterion's stages share them."""
    weight: float = 10.0
    """Penalty on the squared relative excess."""


def descend(
    problem: DesignProblem,
    start: LinearTrajectory,
    criterion: InformationCriterion,
    *,
    settings: SearchSettings,
    number: int,
    begun: float,
    deadline: float,
    progress: Callable[[Step], None],
) -> None:
    """Improve one start until the settings or the deadline (by `time.monotonic`) end it; every step is reported."""
    from scipy.optimize import minimize

    times, _ = problem.family.grid(problem.samples)
    progress(Step(number, 0, _value(problem, start, criterion), 0.0, time.monotonic() - begun, start))
    problem.forget_multipliers()
    x = problem.variables(start)

    def stop_when_late(_: Floats) -> None:
        if time.monotonic() > deadline:
            raise StopIteration

    for iteration, stage in enumerate(_schedule(criterion, settings.outer), start=1):
        if time.monotonic() > deadline:
            break
        result = minimize(
            problem.lagrangian,
            x,
            args=(stage, settings.weight),
            jac=True,
            method="L-BFGS-B",
            callback=stop_when_late,
            options={"maxiter": settings.iterations, "maxcor": 20},
        )
        x = result.x
        excess = problem.update_multipliers(x, settings.weight)
        repaired = with_feasible_amplitude(problem.trajectory(x), problem.constraints, times)
        value = np.inf if repaired is None else _value(problem, repaired, criterion)
        progress(Step(number, iteration, value, excess, time.monotonic() - begun, repaired))


def _value(problem: DesignProblem, trajectory: LinearTrajectory, criterion: InformationCriterion) -> float:
    try:
        return criterion.of_information(problem.information(problem.variables(trajectory)))[0]
    except np.linalg.LinAlgError:
        return np.inf


def _schedule(criterion: InformationCriterion, outer: int) -> list[Criterion]:
    """The criterion's stages, stretched over the outer iterations."""
    stages = criterion.stages()
    return [stages[min(i * len(stages) // max(outer - 1, 1), len(stages) - 1)] for i in range(outer)]
