"""Many starts: each builds its problem, finds a place to rest, swings from there and descends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.constraint import Constraint
from dynid.excitation.constraints import build_constraints
from dynid.excitation.coverage import SpeedCoverage
from dynid.excitation.criteria import InformationCriterion
from dynid.excitation.feasibility import rest_positions, with_feasible_amplitude
from dynid.excitation.limits import MotionLimits
from dynid.excitation.measured import Measured
from dynid.excitation.observation import with_smooth_friction
from dynid.excitation.optimiser import Candidate, Settings, Step, descend
from dynid.excitation.problem import DesignProblem
from dynid.excitation.trajectory import LinearTrajectory
from dynid.robot.model import Robot

__all__ = ["DesignTask", "search"]

Floats = NDArray[np.float64]
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
    settings: Settings
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


def search(
    task: DesignTask, starts: int, processes: int, progress: Callable[[Step], None]
) -> tuple[list[Candidate], list[Step]]:
    """The best candidate of every start, and all steps."""
    numbers = list(range(starts if task.initial is None else starts + 1))
    if processes > 1 and len(numbers) > 1:
        results = _in_processes(task, numbers, processes)
    else:
        problem = _problem(task)
        results = [_run(task, problem, number, progress) for number in numbers]
    return [candidate for candidate, _ in results], [step for _, steps in results for step in steps]


def _in_processes(task: DesignTask, numbers: list[int], processes: int) -> list[tuple[Candidate, list[Step]]]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")  # forking a process with running threads is unsafe
    with ProcessPoolExecutor(min(processes, len(numbers)), mp_context=context) as pool:
        return list(pool.map(_run_alone, [task] * len(numbers), numbers))


def _run_alone(task: DesignTask, number: int) -> tuple[Candidate, list[Step]]:
    return _run(task, _problem(task), number, lambda step: None)


def _run(
    task: DesignTask, problem: DesignProblem, number: int, progress: Callable[[Step], None]
) -> tuple[Candidate, list[Step]]:
    steps: list[Step] = []

    def note(step: Step) -> None:
        steps.append(step)
        progress(step)

    best = descend(
        problem,
        _first_trajectory(task, problem, number),
        task.criterion,
        settings=task.settings,
        number=number,
        begun=task.begun,
        deadline=task.deadline,
        progress=note,
    )
    return best, steps


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
