"""Design of exciting motions: the most information within all limits.

A family of trajectories that is linear in its coefficients (Fourier series by default), exact gradients of the
criterion and of every limit, several random starts. The result keeps its limits at ten times the design's sampling, or
there is an error that names the limits in conflict.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import ArgumentError, ExcitationError
from dynid.excitation.arguments import (
    check_criterion,
    check_robot_and_limits,
    noise_levels,
    number,
    prior_information,
    started_from,
    whole,
)
from dynid.excitation.constraints import Margin, build_constraints, margins, unchecked
from dynid.excitation.criteria import ColumnScaled, ConditionNumber, InformationCriterion
from dynid.excitation.excitation import Excitation
from dynid.excitation.feasibility import check_mobility, with_feasible_amplitude
from dynid.excitation.limits import MotionLimits
from dynid.excitation.measured import JointTorques, Measured
from dynid.excitation.observation import speed_coverage as speed_coverage_of
from dynid.excitation.search import DesignTask, SearchSettings, Step, search
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.excitation.trajectories.trajectory import LinearTrajectory
from dynid.parameters.base import base_parameters
from dynid.parameters.base_set import BaseParameters
from dynid.robot.model import Robot

__all__ = ["design_excitation"]

Floats = NDArray[np.float64]
_BETWEEN_SAMPLES = 1e-4
"""Reserve for peaks between samples: three hundred to the fastest period miss half of that at most."""


def design_excitation(
    robot: Robot,
    limits: MotionLimits | None = None,
    *,
    period_s: float = 10.0,
    harmonics: int = 5,
    family: LinearTrajectory | None = None,
    criterion: InformationCriterion | None = None,
    base: BaseParameters | None = None,
    noise: ArrayLike | None = None,
    observation: Measured | None = None,
    rate_hz: float = 100.0,
    prior: ArrayLike | None = None,
    speed_coverage: float = 0.0,
    seed: int = 0,
    starts: int = 2,
    initial: Excitation | LinearTrajectory | None = None,
    time_limit_s: float = 60.0,
    processes: int = 1,
    settings: SearchSettings | None = None,
    progress: Callable[[Step], None] | None = None,
) -> Excitation:
    """Find a motion that reveals the base parameters best within all limits.

    Args:
        robot: Geometry, joint models and the present parameter values, which the torque limits are judged by.
        limits: What the motion must respect; `MotionLimits.from_robot` by default.
        period_s: Period of the Fourier series [s].
        harmonics: Number of harmonics of the Fourier series.
        family: Another family of trajectories, `SplineTrajectory.still` say, in place of period and harmonics.
        criterion: What to minimise; by default the condition number of the observation matrix with scaled columns.
        base: The parameters to reveal; the robot's base parameters by default.
        noise: Standard deviation of the torque measurement (n,) or one for all [N m or N]; 1 by default.
        observation: What is measured and which parameters that is to reveal, in place of base and noise: `LoadWrench`
            for a load beyond a wrist sensor, `LoadTorques` for one known by joint torques alone.
        rate_hz: Independent measurements per second, for the predicted accuracy and against the prior.
        prior: (b, b) information of earlier runs, `Excitation.information` say: the design then fills the gaps.
        speed_coverage: Share of each joint's speed limit to reach in both directions where the range allows it; for
            friction models whose speed dependence matters.
        seed: Of the random starts; equal seeds give equal designs unless the time limit ends them.
        starts: Number of random starts.
        initial: An earlier design to continue from, in addition to the random starts.
        time_limit_s: When to stop and return the best so far [s].
        processes: How many processes share the starts; a script that asks for several needs the usual main guard.
        settings: Effort of each start.
        progress: Called after every outer iteration of every start.

    An interrupt (Ctrl-C) after the first step ends the search; the best so far is returned as `Excitation.interrupted`.

    Raises:
        ExcitationError: No motion keeps all limits, or none reveals the parameters; the message names the causes.
    """
    limits = MotionLimits.from_robot(robot) if limits is None else limits
    if family is None:
        period, count = number("period_s", period_s, 0.0, open_low=True), whole("harmonics", harmonics, 1)
        family = FourierTrajectory.still(robot.dof, period_s=period, harmonics=count)
    check_robot_and_limits(robot, limits, family)
    check_mobility(limits)
    criterion = ColumnScaled(ConditionNumber()) if criterion is None else criterion
    check_criterion(criterion)
    measured = _measured(robot, base, noise, observation)
    begun = time.monotonic()
    task = DesignTask(
        robot=robot,
        limits=limits,
        family=family,
        measured=measured,
        criterion=criterion,
        prior=prior_information(prior, len(measured.names)),
        rate_hz=number("rate_hz", rate_hz, 0.0, open_low=True),
        speed_coverage=number("speed_coverage", speed_coverage, 0.0, 1.0),
        seed=whole("seed", seed, 0),
        initial=started_from(initial, family, robot),
        settings=settings or SearchSettings(),
        begun=begun,
        deadline=begun + number("time_limit_s", time_limit_s, 0.0),
    )
    starts, processes = whole("starts", starts, 0 if initial is not None else 1), whole("processes", processes, 1)
    history, interrupted = search(task, starts, processes, progress or (lambda step: None))
    return _verified(task, tuple(history), interrupted)


def _measured(robot: Robot, base: BaseParameters | None, noise: ArrayLike | None, given: Measured | None) -> Measured:
    if given is None:
        base = base_parameters(robot) if base is None else base
        level = noise_levels(1.0 if noise is None else noise, robot.dof)
        return JointTorques(base.columns, base.names, level, base.units)
    if base is not None or noise is not None:
        raise ArgumentError("an observation states its own parameters and noise", remedy="Leave out base and noise.")
    return given


def _verified(task: DesignTask, history: tuple[Step, ...], interrupted: bool) -> Excitation:
    """The best motion that keeps all limits of the robot itself, friction not smoothed, at ten times the samples."""
    constraints = build_constraints(task.robot, task.limits)
    times, _ = task.family.grid(10 * task.samples)
    candidates = _best_of_starts(history)
    repaired = (
        with_feasible_amplitude(candidate, constraints, times, reserve)
        for reserve in (_BETWEEN_SAMPLES, 0.0)
        for candidate in candidates
    )
    trajectory = next((trajectory for trajectory in repaired if trajectory is not None), None)
    if trajectory is None:
        raise _no_motion(margins(constraints, candidates[0].motion(times)))
    information = _information(task, trajectory)
    found = margins(constraints, trajectory.motion(times))
    try:
        value, _ = task.criterion.of_information(information)
    except np.linalg.LinAlgError:
        raise _nothing_revealed(found) from None
    return Excitation(
        robot=task.robot.name,
        trajectory=trajectory,
        limits=task.limits,
        criterion=task.criterion,
        value=value,
        information=information,
        parameter_names=task.measured.names,
        parameter_units=task.measured.units,
        assumed=f"{task.measured.noise_text}, independent from sample to sample at {task.rate_hz:g} Hz",
        margins=found,
        coverage=speed_coverage_of(trajectory.motion(times), task.limits.velocity),
        seed=task.seed,
        history=history,
        interrupted=interrupted,
        unchecked=unchecked(task.robot, task.limits),
    )


def _best_of_starts(history: tuple[Step, ...]) -> list[LinearTrajectory]:
    """The best motion of every start, the best of all first."""
    best: dict[int, Step] = {}
    for step in sorted(history, key=lambda step: step.value):
        if step.trajectory is not None:
            best.setdefault(step.start, step)
    return [step.trajectory for step in best.values() if step.trajectory is not None]


def _information(task: DesignTask, trajectory: LinearTrajectory) -> Floats:
    """Information (b, b) of the recorded part by the robot's own regressor, earlier runs included."""
    times, recorded = trajectory.grid(task.samples)
    observation = task.measured.observation(task.robot)
    information = task.repetitions * observation.information(*trajectory.evaluate(times[recorded]))
    return information if task.prior is None else information + task.prior


def _no_motion(found: tuple[Margin, ...]) -> ExcitationError:
    beyond = sorted({f"{m.limit} of {m.where}" for m in found if m.relative < 0.0})
    return ExcitationError(
        f"no motion about the resting positions found keeps all limits; in conflict: {', '.join(beyond)}",
        remedy="Relax one of these limits.",
    )


def _nothing_revealed(found: tuple[Margin, ...]) -> ExcitationError:
    nearest = dict.fromkeys(f"{m.limit} of {m.where}" for m in sorted(found, key=lambda m: m.relative))
    tight = list(nearest)[:3]
    return ExcitationError(
        "the motions that keep all limits are too small or too simple to reveal all parameters",
        remedy=f"Use more harmonics or a longer period, or relax the tightest limits: {', '.join(tight)}.",
    )
