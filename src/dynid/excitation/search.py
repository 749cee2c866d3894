"""The search for the Fourier series that reveals the parameters of a robot best within all limits.

`design_excitation` makes a `DesignProblem` (objective and limits as functions of the coefficients of the series) and
calls `search`, which returns the motions that were reached, as a list of `Step`.

The method is the augmented Lagrangian, with L-BFGS for the inner problems. Each of several starts finds a position
where the robot can rest, and begins with a random motion about it. After every outer iteration the motion's amplitude
is reduced until all limits are kept, so that every `Step` is a usable motion.

Limits are checked at every sample. Their number does not matter to the augmented Lagrangian, which needs one gradient
for all of them. SLSQP with one smooth maximum per limit was compared with it (Panda from two starts, PUMA 560; one
Neoverse core): condition numbers 5.7, 5.4 and 7.1 in 7 to 10 s, against 6.0, 5.0 and 6.4 in 5 to 8 s.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize

from dynid.array_types import Floats
from dynid.checks import as_number, as_whole
from dynid.excitation.base import Constraint
from dynid.excitation.criteria import Criterion
from dynid.excitation.feasibility import rest_positions, with_feasible_amplitude
from dynid.excitation.limits import MotionLimits
from dynid.excitation.measured import Observation
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.excitation.trajectories.trajectory import PlannedMotion


class DesignProblem:
    """Objective and constraints as functions of the coefficients (k, n) of a Fourier series.

    A motion is ``basis @ coefficients``, with k basis functions and n joints. The variables x (k n,) of the search are
    the coefficients, each divided by the largest value that it could have alone within position, velocity and
    acceleration limits.
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
        """Evaluate the basis functions once, because every motion of the search is a product with them.

        Args:
            family: A Fourier series that states period and number of harmonics; its coefficients do not matter.
            observation: The measured quantities; gives the information matrix (b, b) of a motion about b parameters.
            limits: Limits of the joints; they scale the variables.
            constraints: The limits that the motion must keep.
            samples: Number of samples over the recorded part. By default thirty per period of the fastest harmonic, at
                least 100. Convention: a series of K harmonics has 1 + 2 K coefficients, so 15 each are 30 per period.
            rate_hz: Independent measurements per second of the recording; the samples here are fewer or more [Hz].
            prior: (b, b) information of earlier experiments, which is added.
        """
        self.family = family
        self.observation = observation
        self.limits = limits
        self.constraints = constraints
        self.samples = max(100, 15 * len(family.coefficients)) if samples is None else samples
        self.prior = prior
        self._repetitions = rate_hz * family.period_s / self.samples  # measurements per sample
        self._times, recorded = family.grid(self.samples)
        # of order 0 to 3: positions, velocities, accelerations and jerks
        self._basis = [family.basis(self._times, order) for order in range(4)]
        self._recorded_basis = np.vstack([basis[recorded] for basis in self._basis[:3]])
        span = limits.upper - limits.lower
        sizes = (np.where(np.isfinite(span), 0.5 * span, np.pi), limits.velocity, limits.acceleration)
        self.scale = np.min(
            [_largest_coefficients(b, size) for b, size in zip(self._basis[:3], sizes, strict=True)], axis=0
        )
        # Lagrange multipliers: for each constraint one per sample and limit, (N, m)
        self._multipliers = [np.zeros_like(c.excess(self.motion(np.zeros(self.size)))) for c in self.constraints]

    @property
    def size(self) -> int:
        """Number of variables."""
        return int(self.scale.size)

    def trajectory(self, x: Floats) -> FourierTrajectory:
        """Make the trajectory of variables x."""
        return self.family.with_coefficients(self._coefficients(x))

    def variables(self, trajectory: FourierTrajectory) -> Floats:
        """Compute the variables x of a trajectory of the family."""
        return np.asarray((trajectory.coefficients / self.scale).ravel())

    def motion(self, x: Floats) -> PlannedMotion:
        """Evaluate the motion of variables x at the samples."""
        C = self._coefficients(x)
        return PlannedMotion(*(basis @ C for basis in self._basis))

    def _coefficients(self, x: Floats) -> Floats:
        """Coefficients (k, n) of variables x."""
        return np.asarray(x.reshape(self.scale.shape) * self.scale)

    def information(self, x: Floats) -> Floats:
        """Compute the information (b, b) of the recorded part plus that of earlier experiments."""
        A = self._repetitions * self.observation.information(*self._states(x))
        return A if self.prior is None else A + self.prior

    def _states(self, x: Floats) -> Floats:
        """Evaluate positions, velocities and accelerations (3, N, n) of the recorded part."""
        return (self._recorded_basis @ self._coefficients(x)).reshape(3, self.samples, -1)

    def make_feasible(
        self, trajectory: FourierTrajectory, times: Floats | None = None, reserve: float = 0.0
    ) -> FourierTrajectory | None:
        """Reduce the amplitude until all limits are kept at the samples, or at other times (N,) [s].

        ``reserve`` and the result are those of `with_feasible_amplitude`.
        """
        return with_feasible_amplitude(trajectory, self.constraints, self._times if times is None else times, reserve)

    def value(self, trajectory: FourierTrajectory, criterion: Criterion) -> float:
        """Evaluate the criterion of a trajectory of the family; infinite where it reveals too little."""
        return criterion.of_information(self.information(self.variables(trajectory)))[0]

    def objective(self, x: Floats, criterion: Criterion) -> tuple[float, Floats]:
        """Evaluate the criterion (its logarithm, if it is a positive one) and its gradient by the variables."""
        A = self.information(x)
        value, G = criterion.objective(*criterion.of_information(A), len(A))
        gradient = np.vstack(self.observation.pullback(G * self._repetitions, *self._states(x)))
        return value, self._chain(self._recorded_basis, gradient)

    def _chain(self, basis: Floats, gradient: Floats) -> Floats:
        """Compute the gradient of a scalar by the variables from its gradient by ``basis @ coefficients``."""
        return np.asarray((basis.T @ gradient * self.scale).ravel())

    def lagrangian(self, x: Floats, criterion: Criterion, weight: float) -> tuple[float, Floats]:
        """Evaluate the augmented Lagrangian (Powell, Hestenes, Rockafellar) of objective and limits, and its gradient.

        With multipliers m, weight w and excess g it adds ``(max(m + w g, 0)^2 - m^2) / 2 w`` for every limit.
        """
        value, slope = self.objective(x, criterion)
        motion = self.motion(x)
        totals = [np.zeros_like(state) for state in motion]  # gradients by positions, velocities, accelerations, jerks
        for constraint, multiplier in zip(self.constraints, self._multipliers, strict=True):
            force = np.maximum(multiplier + weight * constraint.excess(motion), 0.0)  # derivative by the excess
            value += float(np.vdot(force, force) - np.vdot(multiplier, multiplier)) / (2.0 * weight)
            if force.any():
                for total, gradient in zip(totals, constraint.pullback(motion, force), strict=True):
                    total += gradient
        return value, slope + sum(self._chain(basis, total) for basis, total in zip(self._basis, totals, strict=True))

    def update_multipliers(self, x: Floats, weight: float) -> None:
        """Make one step of the method of multipliers: ``m <- max(m + w g, 0)`` at the motion of x."""
        motion = self.motion(x)
        for constraint, multiplier in zip(self.constraints, self._multipliers, strict=True):
            np.maximum(multiplier + weight * constraint.excess(motion), 0.0, out=multiplier)

    def forget_multipliers(self) -> None:
        """Set all multipliers to zero, for a start from another point."""
        for multiplier in self._multipliers:
            multiplier[:] = 0.0


def _largest_coefficients(basis: Floats, size: Floats) -> Floats:
    """Compute the coefficients (k, n) with which each basis function (N, k) alone reaches the limit ``size`` (n,)."""
    peak = np.abs(basis).max(axis=0)
    return np.asarray(size / np.maximum(peak, np.finfo(float).eps)[:, None])


LBFGS_MEMORY = 20
"""Number of steps whose gradients L-BFGS keeps. Convention."""
_PENALTY_WEIGHT = 10.0
"""Weight of the squared relative excess over the limits in the augmented Lagrangian. Convention."""
_START_SPREAD = 0.4
"""Amplitude of the random starts' coefficients, relative to the largest of each basis function alone. Convention."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchSettings:
    """The effort of a search, and the motion that it starts from."""

    initial: Any = None
    """An earlier design (`Excitation`) or Fourier series to continue from, in addition to the random starts; its path
    is scaled in time to the new period."""
    starts: int = 2
    """Number of random starts; 0 is allowed with ``initial``."""
    time_limit_s: float = 60.0
    """Time after which the search stops and the best motion so far is returned [s]."""
    iterations: int = 80
    """Steps of L-BFGS per outer iteration."""
    outer: int = 12
    """Outer iterations per start; the criterion and its smoother versions (`Criterion.stages`) share them."""

    def __post_init__(self) -> None:
        """Refuse numbers out of range."""
        as_whole("starts", self.starts, least=1 if self.initial is None else 0)
        as_number("time_limit_s", self.time_limit_s, least=0.0)
        as_whole("iterations", self.iterations, least=1)
        as_whole("outer", self.outer, least=0)


@dataclass(frozen=True, slots=True)
class Step:
    """The motion and its criterion after one outer iteration of a search."""

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
    """Run all starts; returns all their steps, and whether an interrupt (Ctrl-C) ended the search early.

    Args:
        problem: Objective and limits.
        criterion: The criterion to minimise.
        settings: The effort.
        initial: An earlier motion of the same family to continue from.
        seed: Seed of the random starts.
        progress: Called with every step.

    Raises:
        KeyboardInterrupt: The interrupt came before the first step.
    """
    begun = time.monotonic()
    steps = list[Step]()

    def is_late() -> bool:
        """Whether the time limit is over."""
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
    """Make a feasible start: the earlier motion where there is one, otherwise a random one about a rest position.

    If no random motion is feasible, the start rests at the last position that was tried.
    """
    earlier = None if initial is None else problem.make_feasible(initial)
    if earlier is not None:
        return earlier
    for q in rest_positions(problem.constraints, problem.limits, rng):
        swing = problem.family.with_coefficients(problem.scale * rng.normal(size=problem.scale.shape))
        start = problem.make_feasible(swing.with_amplitude(_START_SPREAD, q))
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
            raise StopIteration  # SciPy then returns the best point so far

    stages = criterion.stages()
    for iteration in range(settings.outer):
        if is_late():
            break
        # smoother versions of the criterion come first, the criterion itself last; each gets as many outer iterations
        stage = stages[min(iteration * len(stages) // max(settings.outer - 1, 1), len(stages) - 1)]
        options = {"maxiter": settings.iterations, "maxcor": LBFGS_MEMORY}
        x = minimize(
            problem.lagrangian, x, args=(stage, _PENALTY_WEIGHT), jac=True, method="L-BFGS-B", callback=stop_when_late,
            options=options,
        ).x  # fmt: skip
        problem.update_multipliers(x, _PENALTY_WEIGHT)
        yield problem.make_feasible(problem.trajectory(x))
