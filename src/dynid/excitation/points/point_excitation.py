"""The excitation of [GautierKhalil1992] as a design: optimum points of the energy model, a motion, its evidence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynid.checks import as_whole, check_kind
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError, ExcitationError
from dynid.excitation.constraints import find_unchecked_limits, measure_speed_shares
from dynid.excitation.criteria import Criterion
from dynid.excitation.excitation import Excitation
from dynid.excitation.feasibility import check_mobility
from dynid.excitation.limits import MotionLimits
from dynid.excitation.measured import JointTorques, Measured
from dynid.excitation.points.point_trajectory import PointDesign, PointSettings, PointStep, design_point_trajectory
from dynid.parameters.base import base_parameters
from dynid.robot.check import refuse_negative_masses
from dynid.robot.model import Robot

_PER_PARAMETER = 2
"""Energy differences per base parameter: [GautierKhalil1992] section 7 advises at most twice as many."""
_CHECKED = 100
"""Samples per segment for the speeds that are reported. Convention."""


def design_energy_points(
    robot: Robot,
    limits: MotionLimits | None = None,
    *,
    count: int | None = None,
    criterion: Criterion | None = None,
    seed: int = 0,
    observation: Measured | None = None,
    settings: PointSettings | None = None,
    progress: Callable[[PointStep], None] | None = None,
) -> Excitation:
    """Find points whose energies reveal the base parameters best, and a motion through them within all limits.

    The points minimise ``lambda_1 Cond(W) + lambda_2 S`` of their energy differences, as in [GautierKhalil1992]; the
    fifth-order motion through them takes minimal time. It serves every estimator: the plan also predicts the standard
    deviations that joint torques along the motion give.

    Args:
        robot: Geometry, terms and the present parameter values, by which the torque limits are judged.
        limits: Limits that the motion keeps; `MotionLimits.from_robot` by default. Accelerations must be limited.
        count: Number r of energy differences; the motion passes r + 1 points. Twice the number of base parameters of
            the links by default.
        criterion: The number that the points minimise; `balanced_cost` by default.
        seed: Seed of the random starts; equal seeds give equal designs, because the search has no time limit.
        observation: What is measured along the motion, for the predicted accuracy; joint torques by default.
        settings: Effort of the search, and the rate of the recording.
        progress: Called after every start with the `PointStep` that was reached.

    Raises:
        ArgumentError: A limit is missing, or the differences are too few.
        ExcitationError: No motion through points keeps all limits; the message names the limits.

    Example:
        >>> few = dynid.excitation.PointSettings(starts=1, iterations=5)
        >>> plan = dynid.excitation.design_energy_points(pendulum, swing, count=5, settings=few)
        >>> plan.trajectory.duration > 0
        True
    """
    limits = MotionLimits.from_robot(robot) if limits is None else limits
    check_kind("limits", limits, MotionLimits)
    if limits.joint_names != robot.joint_names:
        raise ArgumentError("the limits belong to another robot", remedy="Use MotionLimits.from_robot.")
    refuse_negative_masses(robot)
    check_mobility(limits)
    count = check_count(robot, count)
    chosen = settings or PointSettings()
    measured = observation or JointTorques.of(robot)
    check_kind("observation", measured, Measured)
    design = design_point_trajectory(
        robot,
        limits,
        count,
        criterion=criterion,
        seed=as_whole("seed", seed, least=0),
        settings=chosen,
        progress=progress,
    )
    return _plan(robot, limits, design, measured, chosen.rate_hz, seed)


def check_count(robot: Robot, count: int | None) -> int:
    """Check a number of energy differences; None stands for twice the number of base parameters of the links.

    Raises:
        ArgumentError: There are fewer differences than parameters.
    """
    size = base_parameters(robot.with_terms().with_couplings()).rank
    if count is not None and as_whole("count", count, least=1) < size:
        raise ArgumentError(
            f"{count} energy differences cannot reveal {size} base parameters", remedy=f"Use {size} points or more."
        )
    return _PER_PARAMETER * size if count is None else count


def _plan(
    robot: Robot, limits: MotionLimits, design: PointDesign, measured: Measured, rate_hz: float, seed: int
) -> Excitation:
    """The motion with the information of the torques along it."""
    path = design.trajectory
    times = path.times(rate_hz)
    motion = path.evaluate(times[times <= path.duration])
    information = np.array(measured.observation(robot).information(*motion))
    if not eigvalsh(information)[0] > 0.0:
        raise ExcitationError(
            "the torques along the motion do not reveal all parameters of the robot", remedy="Use more points."
        )
    return Excitation(
        robot=robot.name,
        trajectory=path,
        limits=limits,
        criterion=design.criterion,
        value=design.value,
        information=information,
        parameter_names=measured.names,
        parameter_units=measured.units,
        assumed=f"{measured.noise_text}, independent from sample to sample at {rate_hz:g} Hz",
        margins=design.margins,
        coverage=measure_speed_shares(path.motion(path.check_times(_CHECKED)), limits.velocity),
        seed=seed,
        history=(),
        unchecked=find_unchecked_limits(robot, limits),
        points=design,
    )
