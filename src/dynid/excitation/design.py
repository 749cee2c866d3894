"""Design of exciting motions: the most information within all limits.

`design_excitation` searches Fourier series, with exact gradients of the criterion and of every limit, from several
random starts. The result keeps its limits at ten times the design's sampling, or an error names the limits in conflict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.checks import as_number, as_whole, check_kind
from dynid.errors import ArgumentError, ExcitationError
from dynid.excitation.constraints import (
    Margin,
    build_constraints,
    find_unchecked_limits,
    measure_margins,
    measure_speed_shares,
)
from dynid.excitation.design_settings import DesignGoal, DesignTask, SearchSettings
from dynid.excitation.excitation import Excitation
from dynid.excitation.feasibility import check_mobility, with_feasible_amplitude
from dynid.excitation.limits import MotionLimits
from dynid.excitation.measured import Measured
from dynid.excitation.search import Progress, Step, search
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.robot.check import refuse_negative_masses
from dynid.robot.model import Robot

_BETWEEN_SAMPLES = 1e-4
"""Relative reserve for peaks between the samples of the final check.

Derivation: at 300 samples per fastest period a sine's peak lies at most 1 - cos(pi / 300) = 5.5e-5 above a sample.
"""


def design_excitation(
    robot: Robot,
    limits: MotionLimits | None = None,
    *,
    period_s: float = 10.0,
    harmonics: int = 5,
    seed: int = 0,
    goal: DesignGoal | None = None,
    settings: SearchSettings | None = None,
    progress: Progress | None = None,
) -> Excitation:
    """Find the motion that reveals the parameters best within all limits.

    An interrupt (Ctrl-C) after the first step ends the search; the best motion so far is returned with
    `Excitation.interrupted` set.

    Args:
        robot: Geometry, terms and the present parameter values, by which the torque limits are judged.
        limits: Limits that the motion keeps; `MotionLimits.from_robot` by default.
        period_s: Period of the Fourier series [s].
        harmonics: Number of harmonics of the Fourier series.
        seed: Seed of the random starts; equal seeds give equal designs unless the time limit ends them.
        goal: What the motion shall reveal; the robot's base parameters from its joint torques by default.
        settings: Where and how long to search.
        progress: Called after every outer iteration of every start with the `Step` that was reached.

    Raises:
        ArgumentError: An argument means nothing.
        ExcitationError: No motion keeps all limits, or none reveals the parameters; the message names the causes.

    Example:
        >>> settings = dynid.excitation.SearchSettings(starts=1, time_limit_s=0.5)
        >>> dynid.design_excitation(robot, limits, period_s=5, harmonics=2, settings=settings).condition_number > 1.0
        True
    """
    goal, settings = goal or DesignGoal(), settings or SearchSettings()
    check_kind("goal", goal, DesignGoal)
    check_kind("settings", settings, SearchSettings)
    limits = check_robot_and_limits(robot, limits)
    period, count = as_number("period_s", period_s, above=0.0), as_whole("harmonics", harmonics, least=1)
    family = FourierTrajectory.still(robot.dof, period_s=period, harmonics=count)
    task = DesignTask(
        robot=robot,
        limits=limits,
        family=family,
        measured=goal.observation or Measured.joint_torques(robot),
        goal=goal,
        settings=settings,
        initial=_fit_initial(settings.initial, family, robot),
        seed=as_whole("seed", seed, least=0),
    )
    goal.prior_for(len(task.measured.names))  # a prior of another robot is refused before the search
    return _verify(task, *search(task, progress or (lambda step: None)))


def check_robot_and_limits(robot: Robot, limits: MotionLimits | None) -> MotionLimits:
    """The limits, by default the robot's own; those of another robot and robots that cannot move are refused."""
    if robot.dof == 0:
        raise ArgumentError(
            f"robot '{robot.name}' has no moving joint", remedy="Leave joints free: fixed ones reveal nothing."
        )
    refuse_negative_masses(robot)
    limits = MotionLimits.from_robot(robot) if limits is None else limits
    check_kind("limits", limits, MotionLimits)
    if limits.joint_names != robot.joint_names:
        raise ArgumentError("the limits belong to another robot", remedy="Use MotionLimits.from_robot.")
    check_mobility(limits)
    return limits


def _fit_initial(initial: Any, family: FourierTrajectory, robot: Robot) -> FourierTrajectory | None:
    """An earlier motion as one of the searched family; None without one."""
    if initial is None:
        return None
    earlier: Any = initial.trajectory if isinstance(initial, Excitation) else initial
    check_kind("initial", earlier, FourierTrajectory)
    names = initial.limits.joint_names if isinstance(initial, Excitation) else robot.joint_names
    if names != robot.joint_names or earlier.dof != robot.dof:
        raise ArgumentError(
            f"initial is a motion of {earlier.dof} joints of another robot; '{robot.name}' has {robot.dof}",
            remedy="Start from a motion of the same joints.",
        )
    return family.fit(earlier)


def _verify(task: DesignTask, history: Sequence[Step], interrupted: bool) -> Excitation:
    """The best motion that keeps all limits of the robot with its true friction, at ten times the samples."""
    constraints = build_constraints(task.robot, task.limits)
    times, _ = task.family.grid(10 * task.samples)
    candidates = _best_of_starts(history)
    feasible = (
        with_feasible_amplitude(candidate, constraints, times, reserve)
        for reserve in (_BETWEEN_SAMPLES, 0.0)
        for candidate in candidates
    )
    trajectory = next((trajectory for trajectory in feasible if trajectory is not None), None)
    if trajectory is None:
        raise _no_motion_error(measure_margins(constraints, candidates[0].motion(times)))
    information = _information(task, trajectory)
    found = measure_margins(constraints, trajectory.motion(times))
    try:
        value, _ = task.goal.criterion.of_information(information)
    except np.linalg.LinAlgError:
        raise _no_information_error(found) from None
    return Excitation(
        robot=task.robot.name,
        trajectory=trajectory,
        limits=task.limits,
        criterion=task.goal.criterion,
        value=value,
        information=information,
        parameter_names=task.measured.names,
        parameter_units=task.measured.units,
        assumed=f"{task.measured.noise_text}, independent from sample to sample at {task.goal.rate_hz:g} Hz",
        margins=found,
        coverage=measure_speed_shares(trajectory.motion(times), task.limits.velocity),
        seed=task.seed,
        history=tuple(history),
        interrupted=interrupted,
        not_checked=find_unchecked_limits(task.robot, task.limits),
    )


def _best_of_starts(history: Sequence[Step]) -> list[FourierTrajectory]:
    """The best motion of every start, the best of all first."""
    best: dict[int, Step] = {}
    for step in sorted(history, key=lambda step: step.value):
        if step.trajectory is not None:
            best.setdefault(step.start, step)
    return [step.trajectory for step in best.values() if step.trajectory is not None]


def _information(task: DesignTask, trajectory: FourierTrajectory) -> Floats:
    """Information (b, b) of the recorded part by the robot's own regressor, earlier runs included."""
    times, recorded = trajectory.grid(task.samples)
    observation = task.measured.observation(task.robot)
    information = task.repetitions * observation.information(*trajectory.evaluate(times[recorded]))
    return information if task.prior is None else information + task.prior


def _no_motion_error(found: tuple[Margin, ...]) -> ExcitationError:
    beyond = sorted({f"{m.limit} of {m.where}" for m in found if m.relative < 0.0})
    return ExcitationError(
        f"no motion about the resting positions found keeps all limits; in conflict: {', '.join(beyond)}",
        remedy="Relax one of these limits.",
    )


def _no_information_error(found: tuple[Margin, ...]) -> ExcitationError:
    nearest = dict.fromkeys(f"{m.limit} of {m.where}" for m in sorted(found, key=lambda m: m.relative))
    tight = list(nearest)[:3]
    return ExcitationError(
        "the motions that keep all limits are too small or too simple to reveal all parameters",
        remedy=f"Use more harmonics or a longer period, or relax the tightest limits: {', '.join(tight)}.",
    )
