"""Design exciting motions: the most information about the parameters within all limits.

`design_excitation` searches Fourier series, with exact gradients of the criterion and of every limit, from several
random starts. The result is checked at ten times the sampling of the search and scaled down until it keeps all limits;
if that fails, an error names the limits in conflict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.checks import as_number, as_whole, check_kind
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError, ExcitationError
from dynid.excitation.constraints import (
    build_constraints,
    find_unchecked_limits,
    measure_margins,
    measure_speed_shares,
)
from dynid.excitation.criteria import Criterion
from dynid.excitation.excitation import Excitation
from dynid.excitation.feasibility import check_mobility
from dynid.excitation.limits import MotionLimits
from dynid.excitation.measured import Measured, with_smooth_friction
from dynid.excitation.search import DesignProblem, Progress, SearchSettings, Step, search
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.robot.check import refuse_negative_masses
from dynid.robot.model import Robot
from dynid.spatial import SAME

_BETWEEN_SAMPLES = 1e-4
"""Relative reserve for peaks between the samples of the final check (derivation: at 300 samples per fastest period a
sine's peak lies at most 1 - cos(pi / 300) = 5.5e-5 above a sample)."""


def design_excitation(
    robot: Robot,
    limits: MotionLimits | None = None,
    *,
    period_s: float = 10.0,
    harmonics: int = 5,
    seed: int = 0,
    criterion: Any = "scaled-condition",
    observation: Measured | None = None,
    rate_hz: float = 100.0,
    prior: ArrayLike | None = None,
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
        criterion: The `Criterion` to minimise, or what its terms may be; one of the information alone.
        observation: The measured quantities and the parameters that they shall reveal: `Measured.joint_torques` with
            the robot's noise, `Measured.load_wrench` or `Measured.load_torques` for a load. By default the robot's
            base parameters from joint torques with a noise of 1 N m or N.
        rate_hz: Independent measurements per second [Hz]. The predicted accuracy and the weight of the prior depend on
            it.
        prior: (b, b) information of earlier runs, for example `Excitation.information`: the motion then fills the
            gaps [inverse of the product of the parameters' units].
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
    settings = settings or SearchSettings()
    check_kind("settings", settings, SearchSettings)
    limits = check_robot_and_limits(robot, limits)
    period = as_number("period_s", period_s, above=0.0)
    family = FourierTrajectory.still(robot.dof, period_s=period, harmonics=as_whole("harmonics", harmonics, least=1))
    measured = Measured.joint_torques(robot) if observation is None else observation
    check_kind("observation", measured, Measured)
    cost = Criterion.of(criterion)
    if cost.needs_every_entry:
        raise ArgumentError(
            f"criterion: {cost} needs every entry of the observation matrix; the search sees information only",
            remedy="Choose another measure, or design_energy_points.",
        )
    rate_hz = as_number("rate_hz", rate_hz, above=0.0)
    seed = as_whole("seed", seed, least=0)
    known = _check_prior(prior, len(measured.names))
    initial = _fit_initial(settings.initial, family, robot)

    def problem_of(model: Robot) -> DesignProblem:
        """The problem for a robot with exact or with smoothed friction."""
        constraints = build_constraints(model, limits)
        return DesignProblem(family, measured.observation(model), limits, constraints, rate_hz=rate_hz, prior=known)

    smooth = problem_of(with_smooth_friction(robot))  # the search needs gradients, the check afterwards does not
    history, interrupted = search(smooth, cost, settings, initial, seed, progress or (lambda step: None))
    exact = problem_of(robot)
    times, _ = family.grid(10 * exact.samples)
    trajectory = _best_within_limits(exact, history, times)
    motion = trajectory.motion(times)
    value = exact.value(trajectory, cost)
    margins = measure_margins(exact.constraints, motion)
    if not np.isfinite(value):
        by_margin = dict.fromkeys(f"{m.limit} of {m.where}" for m in sorted(margins, key=lambda m: m.relative))
        tightest = ", ".join(list(by_margin)[:3])
        raise ExcitationError(
            "the motions that keep all limits are too small or too simple to reveal all parameters",
            remedy=f"Use more harmonics or a longer period, or relax the tightest limits: {tightest}.",
        )
    return Excitation(
        robot=robot.name,
        trajectory=trajectory,
        limits=limits,
        criterion=cost,
        value=value,
        information=exact.information(exact.variables(trajectory)),
        parameter_names=measured.names,
        parameter_units=measured.units,
        assumed=measured.describe_assumed(rate_hz),
        margins=margins,
        coverage=measure_speed_shares(motion, limits.velocity),
        seed=seed,
        history=tuple(history),
        interrupted=interrupted,
        not_checked=find_unchecked_limits(robot, limits, exact.constraints),
    )


def check_robot_and_limits(robot: Robot, limits: MotionLimits | None) -> MotionLimits:
    """Return the limits, the robot's own if None; refuse limits of another robot and robots that cannot move."""
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
    """Convert an earlier motion to the period and harmonics of the search; None without one."""
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


def _check_prior(prior: ArrayLike | None, size: int) -> Floats | None:
    """Check the information (b, b) of earlier runs about b parameters, and make it exactly symmetric; None without any.

    Raises:
        ArgumentError: It is not finite and positive semidefinite, or about another number of parameters.
    """
    if prior is None:
        return None
    array = np.asarray(prior, dtype=float)
    if array.shape != (size, size) or eigvalsh(array + array.T).min(initial=0.0) < -SAME * np.abs(array).max(
        initial=0.0
    ):
        raise ArgumentError(
            f"prior is no finite, positive semidefinite matrix ({size}, {size})",
            remedy="Give Excitation.information of the same robot and parameters.",
        )
    return np.asarray(0.5 * (array + array.T))


def _best_within_limits(problem: DesignProblem, history: Sequence[Step], times: Floats) -> FourierTrajectory:
    """Find the best motion of a search that keeps all limits at finer times (N,) [s], at a smaller amplitude if needed.

    Raises:
        ExcitationError: No motion keeps them; the message names the limits in conflict.
    """
    best: dict[int, FourierTrajectory] = {}  # number of the start -> its best motion, the best of all starts first
    for step in sorted(history, key=lambda step: step.value):
        if step.trajectory is not None:
            best.setdefault(step.start, step.trajectory)
    for reserve in (_BETWEEN_SAMPLES, 0.0):
        for candidate in best.values():
            trajectory = problem.make_feasible(candidate, times, reserve)
            if trajectory is not None:
                return trajectory
    margins = measure_margins(problem.constraints, next(iter(best.values())).motion(times))
    beyond = sorted({f"{m.limit} of {m.where}" for m in margins if m.relative < 0.0})
    raise ExcitationError(
        f"no motion about the resting positions found keeps all limits; in conflict: {', '.join(beyond)}",
        remedy="Relax one of these limits.",
    )
