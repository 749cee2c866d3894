"""The search of a design: many starts, each an augmented Lagrangian outside and L-BFGS inside.

Each start finds a position to rest at, swings about it and descends; after every outer iteration the motion's amplitude
is reduced until all limits are kept, so that every `Step` is a usable motion.

A limit at every sample is cheap for the Lagrangian, which needs one gradient whatever their number. SLSQP, given one
smooth maximum per limit, was measured beside it (Panda from two starts, PUMA 560; one Neoverse core): condition numbers
5.7, 5.4 and 7.1 in 7 to 10 s, against 6.0, 5.0 and 6.4 in 5 to 8 s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from dynid.arrays import Floats
from dynid.excitation.constraints import build_constraints
from dynid.excitation.criteria import Criterion
from dynid.excitation.design_problem import DesignProblem
from dynid.excitation.design_settings import DesignTask
from dynid.excitation.feasibility import rest_positions, with_feasible_amplitude
from dynid.excitation.observation import with_smooth_friction
from dynid.excitation.trajectories.fourier import FourierTrajectory

MEMORY = 20
"""Steps whose gradients L-BFGS remembers. Convention."""
_WEIGHT = 10.0
"""Weight of the squared relative excess over the limits in the augmented Lagrangian. Convention."""
_SWING = 0.4
"""Spread of the random starts' coefficients, relative to the largest of each basis function alone. Convention."""
_REST_POSITIONS = 20
"""Positions that a start tries to swing about before it stands still. Convention."""


@dataclass(frozen=True, slots=True)
class Step:
    """Where a search stands after one outer iteration."""

    start: int
    """Number of the start, from 0."""
    iteration: int
    """Number of the outer iteration, from 0 (the start itself)."""
    value: float
    """Criterion of the motion after its amplitude was made feasible; infinite where it reveals too little."""
    excess: float
    """Largest excess over a limit before that, in units of the limit."""
    elapsed_s: float
    """Time since the design began [s]."""
    trajectory: FourierTrajectory | None = field(default=None, compare=False, repr=False)
    """The feasible motion; None where no amplitude is feasible."""


Progress = Callable[[Step], None]
"""Called after every outer iteration of every start, with the step that it reached."""


def search(task: DesignTask, progress: Progress) -> tuple[list[Step], bool]:
    """All steps of all starts, and whether an interrupt (Ctrl-C) ended them; before the first step it is raised."""
    steps: list[Step] = []

    def report(step: Step) -> None:
        steps.append(step)
        progress(step)

    try:
        problem = _problem(task)
        for number in range(task.settings.starts + (task.initial is not None)):
            _descend(task, problem, number, report)
    except KeyboardInterrupt:
        if not steps:
            raise
        return steps, True
    return steps, False


def _descend(task: DesignTask, problem: DesignProblem, number: int, progress: Progress) -> None:
    """Improve one start until the outer iterations or the deadline end it; every step is reported."""
    criterion, settings = task.goal.criterion, task.settings
    start = _first_trajectory(task, problem, number)
    times, _ = problem.family.grid(problem.samples)
    progress(Step(number, 0, _value(problem, start, criterion), 0.0, task.elapsed_s, start))
    problem.forget_multipliers()
    x = problem.variables(start)

    def stop_when_late(_: Floats) -> None:
        if task.is_late:
            raise StopIteration

    stages = criterion.stages()
    for iteration in range(settings.outer):
        if task.is_late:
            break
        stage = stages[min(iteration * len(stages) // max(settings.outer - 1, 1), len(stages) - 1)]
        options = {"maxiter": settings.iterations, "maxcor": MEMORY}
        x = minimize(
            problem.lagrangian, x, args=(stage, _WEIGHT), jac=True, method="L-BFGS-B", callback=stop_when_late,
            options=options,
        ).x  # fmt: skip
        excess = problem.update_multipliers(x, _WEIGHT)
        feasible = with_feasible_amplitude(problem.trajectory(x), problem.constraints, times)
        value = np.inf if feasible is None else _value(problem, feasible, criterion)
        progress(Step(number, iteration + 1, value, excess, task.elapsed_s, feasible))


def _value(problem: DesignProblem, trajectory: FourierTrajectory, criterion: Criterion) -> float:
    try:
        return criterion.of_information(problem.information(problem.variables(trajectory)))[0]
    except np.linalg.LinAlgError:
        return np.inf


def _problem(task: DesignTask) -> DesignProblem:
    """The problem with smooth friction, whose gradients exist."""
    robot, limits = with_smooth_friction(task.robot), task.limits
    span = limits.upper - limits.lower
    return DesignProblem(
        task.family,
        task.measured.observation(robot),
        build_constraints(robot, limits),
        sizes=(np.where(np.isfinite(span), 0.5 * span, np.pi), limits.velocity, limits.acceleration),
        samples=task.samples,
        repetitions=task.repetitions,
        prior=task.prior,
    )


def _first_trajectory(task: DesignTask, problem: DesignProblem, number: int) -> FourierTrajectory:
    """A feasible start: number 0 is the earlier motion where there is one, others swing about a rest position."""
    times, _ = task.family.grid(task.samples)
    if task.initial is not None and number == 0:
        earlier = with_feasible_amplitude(task.initial, problem.constraints, times)
        if earlier is not None:
            return earlier
    rng = np.random.default_rng([task.seed, number])
    for q in rest_positions(problem.constraints, task.limits, _REST_POSITIONS, rng):
        swing = task.family.with_coefficients(problem.scale * rng.normal(size=problem.scale.shape))
        start = with_feasible_amplitude(swing.with_amplitude(_SWING, q), problem.constraints, times)
        if start is not None:
            return start
    return task.family.with_amplitude(0.0, q)
