"""The search of a design: many starts, each an augmented Lagrangian outside and L-BFGS inside.

Each start finds a position to rest at, swings about it and descends; after every outer iteration the motion's amplitude
is reduced until all limits are kept, so that every `Step` is a usable motion.

A limit at every sample is cheap for the Lagrangian, which needs one gradient whatever their number. SLSQP, given one
smooth maximum per limit, was measured beside it (Panda from two starts, PUMA 560; one Neoverse core): condition numbers
5.7, 5.4 and 7.1 in 7 to 10 s, against 6.0, 5.0 and 6.4 in 5 to 8 s.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize

from dynid.arrays import Floats
from dynid.checks import as_number, as_whole
from dynid.excitation.base import Constraint
from dynid.excitation.criteria import Criterion
from dynid.excitation.feasibility import rest_positions, with_feasible_amplitude
from dynid.excitation.limits import MotionLimits
from dynid.excitation.measured import Observation
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.excitation.trajectories.trajectory import Motion


class DesignProblem:
    """Objective and constraints as functions of the coefficients of a Fourier series.

    The variables are the coefficients, each divided by the largest value that its basis function alone could have
    within position, velocity and acceleration limits.
    """

    def __init__(
        self,
        family: FourierTrajectory,
        observation: Observation,
        limits: MotionLimits,
        constraints: tuple[Constraint, ...] = (),
        *,
        samples: int | None = None,
        rate_hz: float = 1.0,
        prior: Floats | None = None,
    ) -> None:
        """Evaluate the basis once.

        Args:
            family: A Fourier series; its own coefficients do not matter.
            observation: What the motion is to reveal.
            limits: They scale the variables.
            constraints: The limits that are kept.
            samples: Number of samples over the recorded part. By default thirty per period of the fastest harmonic, at
                least 100. Convention: a series of K harmonics has 1 + 2 K coefficients, so 15 each are 30 per period.
            rate_hz: Independent measurements per second that they stand for [Hz].
            prior: (b, b) information of earlier experiments.
        """
        self.family, self.observation, self.limits, self.constraints = family, observation, limits, constraints
        self.samples = max(100, 15 * len(family.coefficients)) if samples is None else samples
        self.prior, self._repetitions = prior, rate_hz * family.period_s / self.samples
        self._times, recorded = family.grid(self.samples)
        self._basis = [family.basis(self._times, order) for order in range(4)]
        self._seen = np.vstack([basis[recorded] for basis in self._basis[:3]])
        span = limits.upper - limits.lower
        sizes = (np.where(np.isfinite(span), 0.5 * span, np.pi), limits.velocity, limits.acceleration)
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
        A = self._repetitions * self.observation.information(*self._states(x))
        return A if self.prior is None else A + self.prior

    def _states(self, x: Floats) -> Floats:
        """Positions, velocities and accelerations (3, N, n) of the recorded part."""
        return (self._seen @ self._coefficients(x)).reshape(3, self.samples, -1)

    def make_feasible(
        self, trajectory: FourierTrajectory, times: Floats | None = None, reserve: float = 0.0
    ) -> FourierTrajectory | None:
        """As `with_feasible_amplitude`, at the samples or at other times (N,) [s]."""
        return with_feasible_amplitude(trajectory, self.constraints, self._times if times is None else times, reserve)

    def value(self, trajectory: FourierTrajectory, criterion: Criterion) -> float:
        """Criterion of a trajectory of the family, infinite where it reveals too little."""
        return criterion.of_information(self.information(self.variables(trajectory)))[0]

    def objective(self, x: Floats, criterion: Criterion) -> tuple[float, Floats]:
        """Criterion (its logarithm where it is positive) and gradient."""
        A = self.information(x)
        value, G = criterion.flatten(*criterion.of_information(A), len(A))
        gradient = np.vstack(self.observation.pullback(G * self._repetitions, *self._states(x)))
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

    def update_multipliers(self, x: Floats, weight: float) -> None:
        """One step of the method of multipliers."""
        motion = self.motion(x)
        for constraint, multiplier in zip(self.constraints, self._multipliers, strict=True):
            np.maximum(multiplier + weight * constraint.excess(motion), 0.0, out=multiplier)

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchSettings:
    """How long a search looks, and from where."""

    initial: Any = None
    """An earlier design (`Excitation`) or Fourier series to continue from, in addition to the random starts; its path
    is run in the new time."""
    starts: int = 2
    """Number of random starts; 0 is allowed with ``initial``."""
    time_limit_s: float = 60.0
    """Time after which the search stops and the best motion so far is returned [s]."""
    iterations: int = 80
    """Steps of L-BFGS per outer iteration."""
    outer: int = 12
    """Outer iterations per start; the stages of the criterion share them."""

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        as_whole("starts", self.starts, least=1 if self.initial is None else 0)
        as_number("time_limit_s", self.time_limit_s, least=0.0)
        as_whole("iterations", self.iterations, least=1)
        as_whole("outer", self.outer, least=0)


@dataclass(frozen=True, slots=True)
class Step:
    """Where a search stands after one outer iteration."""

    start: int
    """Number of the start, from 0."""
    iteration: int
    """Number of the outer iteration, from 0 (the start itself)."""
    value: float
    """Criterion of the motion after its amplitude was made feasible; infinite where it reveals too little."""
    elapsed_s: float
    """Time since the design began [s]."""
    trajectory: FourierTrajectory | None = field(default=None, compare=False, repr=False)
    """The feasible motion; None where no amplitude is feasible."""


Progress = Callable[[Step], None]
"""Called after every outer iteration of every start, with the step that it reached."""


def search(
    problem: DesignProblem,
    criterion: Criterion,
    settings: SearchSettings,
    initial: FourierTrajectory | None,
    seed: int,
    progress: Progress,
) -> tuple[list[Step], bool]:
    """All steps of all starts, and whether an interrupt (Ctrl-C) ended them; before the first step it is raised.

    Args:
        problem: What is searched.
        criterion: What is minimised.
        settings: The effort.
        initial: An earlier motion of the same family to continue from.
        seed: Seed of the random starts.
        progress: Called with every step.
    """
    begun, steps = time.monotonic(), list[Step]()

    def is_late() -> bool:
        return time.monotonic() - begun > settings.time_limit_s

    try:
        for number in range(settings.starts + (initial is not None)):
            rng = np.random.default_rng([seed, number])
            start = _first_trajectory(problem, initial if number == 0 else None, rng)
            for iteration, motion in enumerate(_descend(problem, start, criterion, settings, is_late)):
                value = np.inf if motion is None else problem.value(motion, criterion)
                steps.append(Step(number, iteration, value, time.monotonic() - begun, motion))
                progress(steps[-1])
    except KeyboardInterrupt:
        if not steps:
            raise
        return steps, True
    return steps, False


def _first_trajectory(
    problem: DesignProblem, initial: FourierTrajectory | None, rng: np.random.Generator
) -> FourierTrajectory:
    """A feasible start: the earlier motion where there is one, otherwise one that swings about a rest position."""
    earlier = None if initial is None else problem.make_feasible(initial)
    if earlier is not None:
        return earlier
    for q in rest_positions(problem.constraints, problem.limits, rng):
        swing = problem.family.with_coefficients(problem.scale * rng.normal(size=problem.scale.shape))
        start = problem.make_feasible(swing.with_amplitude(_SWING, q))
        if start is not None:
            return start
    return problem.family.with_amplitude(0.0, q)


def _descend(
    problem: DesignProblem,
    start: FourierTrajectory,
    criterion: Criterion,
    settings: SearchSettings,
    is_late: Callable[[], bool],
) -> Iterator[FourierTrajectory | None]:
    """Improve a start until the outer iterations or the deadline end it.

    Yields:
        The start, and the motion after each outer iteration with an amplitude that is feasible, None where none is.
    """
    yield start
    problem.forget_multipliers()
    x = problem.variables(start)

    def stop_when_late(_: Floats) -> None:
        if is_late():
            raise StopIteration

    stages = criterion.stages()
    for iteration in range(settings.outer):
        if is_late():
            break
        stage = stages[min(iteration * len(stages) // max(settings.outer - 1, 1), len(stages) - 1)]
        options = {"maxiter": settings.iterations, "maxcor": MEMORY}
        x = minimize(
            problem.lagrangian, x, args=(stage, _WEIGHT), jac=True, method="L-BFGS-B", callback=stop_when_late,
            options=options,
        ).x  # fmt: skip
        problem.update_multipliers(x, _WEIGHT)
        yield problem.make_feasible(problem.trajectory(x))
