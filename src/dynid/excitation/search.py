"""One descent: augmented Lagrangian outside, L-BFGS inside, every step made feasible.

A limit at every sample is cheap for the Lagrangian, which needs one gradient whatever their number. SLSQP, given one
smooth maximum per limit, was measured beside it (Panda from two starts, PUMA 560; one Neoverse core): condition numbers
5.7, 5.4 and 7.1 in 7 to 10 s, against 6.0, 5.0 and 6.4 in 5 to 8 s.

Many starts: each builds its problem, finds a place to rest, swings from there and descends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.base import Constraint
from dynid.excitation.constraints import build_constraints
from dynid.excitation.criteria import Criterion, InformationCriterion
from dynid.excitation.design_problem import DesignProblem
from dynid.excitation.feasibility import rest_positions, with_feasible_amplitude
from dynid.excitation.limits import MotionLimits
from dynid.excitation.measured import Measured
from dynid.excitation.observation import SpeedCoverage, with_smooth_friction
from dynid.excitation.trajectories.trajectory import LinearTrajectory
from dynid.robot.model import Robot

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

__all__ = ["DesignTask", "SearchSettings", "Step", "descend", "search"]

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


_SWING = 0.4
"""Spread of the random starts' coefficients, in units of what each basis function alone could do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignTask:
    """Everything the starts of a design need; travels to other processes where several share the work."""

    robot: Robot
    limits: MotionLimits
    family: LinearTrajectory
    measured: Measured
    criterion: InformationCriterion
    prior: Floats | None
    rate_hz: float
    speed_coverage: float
    seed: int
    initial: LinearTrajectory | None
    settings: SearchSettings
    begun: float
    deadline: float

    @property
    def samples(self) -> int:
        """Samples over the recorded part: thirty for each period of the fastest harmonic."""
        return max(100, 15 * len(self.family.coefficients))

    @property
    def repetitions(self) -> float:
        """How many real measurements each of the samples stands for."""
        start, end = self.family.recorded
        return self.rate_hz * (end - start) / self.samples


def search(task: DesignTask, starts: int, processes: int, progress: Callable[[Step], None]) -> tuple[list[Step], bool]:
    """All steps of all starts, and whether an interrupt (Ctrl-C) ended them; before the first step it is raised."""
    numbers = list(range(starts if task.initial is None else starts + 1))
    if processes > 1 and len(numbers) > 1:
        return _in_processes(task, numbers, processes, progress)
    return _run(task, numbers, progress)


def _in_processes(
    task: DesignTask, numbers: list[int], processes: int, progress: Callable[[Step], None]
) -> tuple[list[Step], bool]:
    import multiprocessing
    from concurrent.futures import Future, ProcessPoolExecutor, wait

    context = multiprocessing.get_context("spawn")  # forking a process with running threads is unsafe
    told = context.SimpleQueue()
    early = False
    with ProcessPoolExecutor(min(processes, len(numbers)), context, initializer=_tell_by, initargs=(told,)) as pool:
        results = [pool.submit(_run_alone, task, number) for number in numbers]
        waiting: set[Future[tuple[list[Step], bool]]] = set(results)
        while waiting:
            try:
                waiting = wait(waiting, timeout=0.1).not_done
                while not told.empty():
                    progress(told.get())
            except KeyboardInterrupt:  # a terminal sends it to the other processes too: they hand over what they have
                early = True
                for result in results:
                    result.cancel()
    ended = [result for result in results if not (early and (result.cancelled() or result.exception()))]
    if not ended:
        raise KeyboardInterrupt
    found = [result.result() for result in ended]
    return [step for steps, _ in found for step in steps], early or any(cut for _, cut in found)


_tell: list[Callable[[Step], None]] = []
"""In a process of its own: how its steps are told."""


def _tell_by(queue: SimpleQueue[Step]) -> None:
    _tell[:] = [queue.put]


def _run_alone(task: DesignTask, number: int) -> tuple[list[Step], bool]:
    return _run(task, [number], _tell[0])


def _run(task: DesignTask, numbers: list[int], progress: Callable[[Step], None]) -> tuple[list[Step], bool]:
    steps: list[Step] = []

    def note(step: Step) -> None:
        steps.append(step)
        progress(step)

    try:
        problem = _problem(task)
        for number in numbers:
            descend(
                problem,
                _first_trajectory(task, problem, number),
                task.criterion,
                settings=task.settings,
                number=number,
                begun=task.begun,
                deadline=task.deadline,
                progress=note,
            )
    except KeyboardInterrupt:
        if not steps:
            raise
        return steps, True
    return steps, False


def _problem(task: DesignTask) -> DesignProblem:
    robot, limits = with_smooth_friction(task.robot), task.limits
    span = limits.upper - limits.lower
    half = np.where(np.isfinite(span), 0.5 * span, np.pi)

    def problem(wishes: tuple[Constraint, ...] = ()) -> DesignProblem:
        return DesignProblem(
            task.family,
            observation,
            constraints,
            wishes=wishes,
            sizes=(half, limits.velocity, limits.acceleration),
            samples=task.samples,
            repetitions=task.repetitions,
            prior=task.prior,
        )

    observation = task.measured.observation(robot)
    constraints = build_constraints(robot, limits)
    plain = problem()
    if task.speed_coverage == 0.0:
        return plain
    # a joint cannot be asked for more speed than half of what its range allows
    targets = np.minimum(task.speed_coverage * limits.velocity, 0.5 * plain.attainable_speed)
    return problem((SpeedCoverage.of(limits.joint_names, targets),))


def _first_trajectory(task: DesignTask, problem: DesignProblem, number: int) -> LinearTrajectory:
    """A feasible start: the given one for the extra number, otherwise a random swing about a place to rest."""
    times, _ = task.family.grid(task.samples)
    if task.initial is not None and number == 0:
        given = with_feasible_amplitude(task.initial, problem.constraints, times)
        if given is not None:
            return given
    rng = np.random.default_rng([task.seed, number])
    for q in rest_positions(problem.constraints, task.limits, 20, rng):
        swing = task.family.with_coefficients(_SWING * problem.scale * rng.normal(size=problem.scale.shape))
        centred = swing.coefficients + task.family.resting(q - swing.centre)
        start = with_feasible_amplitude(task.family.with_coefficients(centred), problem.constraints, times)
        if start is not None:
            return start
    return task.family.with_coefficients(task.family.resting(q))
