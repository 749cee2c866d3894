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
from dynid.excitation.base import Constraint
from dynid.excitation.constraints import build_constraints
from dynid.excitation.criteria import Criterion
from dynid.excitation.design_settings import DesignTask
from dynid.excitation.feasibility import rest_positions, with_feasible_amplitude
from dynid.excitation.measured import Observation, with_smooth_friction
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.excitation.trajectories.trajectory import Motion

SINGULAR_OBJECTIVE = 50.0
"""Objective of singular information: above any logarithm of a condition number, finite for the line search. Convention.
"""


class DesignProblem:
    """Objective and constraints as functions of the coefficients of a Fourier series.

    The variables are the coefficients, each divided by the largest value that its basis function alone could have
    within position, velocity and acceleration limits.
    """

    def __init__(
        self,
        family: FourierTrajectory,
        observation: Observation,
        constraints: tuple[Constraint, ...],
        *,
        sizes: tuple[Floats, Floats, Floats],
        samples: int,
        repetitions: float = 1.0,
        prior: Floats | None = None,
    ) -> None:
        """Evaluate the basis once.

        Args:
            family: A Fourier series; its own coefficients do not matter.
            observation: What the motion is to reveal.
            constraints: The limits.
            sizes: Half-ranges of position, velocity and acceleration (n,), which scale the variables.
            samples: Number of samples over the recorded part.
            repetitions: Number of real measurements that each sample stands for.
            prior: (b, b) information of earlier experiments.
        """
        self.family = family
        self.observation = observation
        self.constraints = constraints
        self.samples = samples
        self.prior = prior
        self.repetitions = repetitions
        times, self._recorded = family.grid(samples)
        self._basis = [family.basis(times, order) for order in range(4)]
        self._seen = np.vstack([basis[self._recorded] for basis in self._basis[:3]])
        self.scale = np.min([_reach(b, size) for b, size in zip(self._basis[:3], sizes, strict=True)], axis=0)
        self._multipliers = [np.zeros_like(c.excess(self.motion(np.zeros(self.size)))) for c in self.constraints]

    @property
    def size(self) -> int:
        """Number of variables."""
        return int(self.scale.size)

    def trajectory(self, x: Floats) -> FourierTrajectory:
        """The trajectory of variables x."""
        return self.family.with_coefficients(self._coefficients(x))

    def variables(self, trajectory: FourierTrajectory) -> Floats:
        """The variables of a trajectory of the family."""
        return np.asarray((trajectory.coefficients / self.scale).ravel())

    def motion(self, x: Floats) -> Motion:
        """The motion at the samples."""
        C = self._coefficients(x)
        return Motion(*(basis @ C for basis in self._basis))

    def _coefficients(self, x: Floats) -> Floats:
        return np.asarray(x.reshape(self.scale.shape) * self.scale)

    def information(self, x: Floats) -> Floats:
        """Information (b, b) of the recorded part and of earlier experiments."""
        return self._total(self.observation.information(*self._states(x)))

    def _states(self, x: Floats) -> Floats:
        """Positions, velocities and accelerations (3, N, n) of the recorded part."""
        return (self._seen @ self._coefficients(x)).reshape(3, self.samples, -1)

    def _total(self, A: Floats) -> Floats:
        A = A * self.repetitions
        return A if self.prior is None else A + self.prior

    def objective(self, x: Floats, criterion: Criterion) -> tuple[float, Floats]:
        """Criterion (its logarithm where it is positive) and gradient."""
        states = self._states(x)
        A = self.observation.information(*states)
        try:
            value, G = criterion.of_information(self._total(A))
        except np.linalg.LinAlgError:
            return SINGULAR_OBJECTIVE, np.zeros_like(x)
        if criterion.positive:
            value, G = float(np.log(value)), G / value
        else:
            value, G = value / len(A), G / len(A)
        gradient = np.vstack(self.observation.pullback(G * self.repetitions, *states))
        return value, self._chain(self._seen, gradient)

    def _chain(self, basis: Floats, gradient: Floats) -> Floats:
        """Gradient with respect to the variables from that of ``basis @ coefficients``."""
        return np.asarray((basis.T @ gradient * self.scale).ravel())

    def lagrangian(self, x: Floats, criterion: Criterion, weight: float) -> tuple[float, Floats]:
        """Augmented Lagrangian of objective and limits (Powell, Hestenes, Rockafellar) and its gradient."""
        value, slope = self.objective(x, criterion)
        motion = self.motion(x)
        parts = [np.zeros_like(part) for part in motion]
        for constraint, multiplier in zip(self.constraints, self._multipliers, strict=True):
            force = np.maximum(multiplier + weight * constraint.excess(motion), 0.0)
            value += float(np.vdot(force, force) - np.vdot(multiplier, multiplier)) / (2.0 * weight)
            if force.any():
                for part, gradient in zip(parts, constraint.pullback(motion, force), strict=True):
                    part += gradient
        return value, slope + sum(self._chain(*pair) for pair in zip(self._basis, parts, strict=True))

    def update_multipliers(self, x: Floats, weight: float) -> float:
        """One step of the method of multipliers; returns the largest excess over a limit."""
        motion = self.motion(x)
        worst = 0.0
        for constraint, multiplier in zip(self.constraints, self._multipliers, strict=True):
            excess = constraint.excess(motion)
            worst = max(worst, float(excess.max(initial=0.0)))
            np.maximum(multiplier + weight * excess, 0.0, out=multiplier)
        return worst

    def forget_multipliers(self) -> None:
        """Set all multipliers to zero, for a start from another point."""
        for multiplier in self._multipliers:
            multiplier[:] = 0.0


def _reach(basis: Floats, size: Floats) -> Floats:
    """Largest coefficient (k, n) for which each basis function alone keeps the size (n,) of a joint."""
    peak = np.abs(basis).max(axis=0)
    return np.asarray(size / np.maximum(peak, np.finfo(float).eps)[:, None])


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
