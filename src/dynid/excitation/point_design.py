"""Design points for the energy model, and a motion through them within all limits ([GautierKhalil1992] section 5).

The points (positions and velocities) are optimised within a box, and joined by polynomials of order five. Between two
moving points such a segment overshoots, so that points optimised up to the limits can rarely be joined within them. If
the motion exceeds a limit, the points get a smaller box, as section 5.2 of the paper asks, until the motion keeps all
limits. The paper checks positions; here every limit of the robot is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.checks import as_number, as_whole, check_kind
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError, ExcitationError
from dynid.excitation.base import Constraint, Margin
from dynid.excitation.constraints import (
    build_constraints,
    find_unchecked_limits,
    measure_margins,
    measure_speed_shares,
)
from dynid.excitation.criteria import Criterion
from dynid.excitation.design import check_robot_and_limits
from dynid.excitation.energy_points import BALANCED, EnergyPoints, PointDesign, PointSequence, optimise_points
from dynid.excitation.excitation import Excitation
from dynid.excitation.feasibility import is_feasible, rest_positions
from dynid.excitation.limits import MotionLimits
from dynid.excitation.measured import Measured
from dynid.excitation.trajectories.quintic import QuinticTrajectory
from dynid.excitation.trajectories.trajectory import PlannedMotion
from dynid.identifiability.base import base_parameters
from dynid.robot.model import Robot
from dynid.spatial import SAME

_BOXES = (1.0, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
"""Sizes of the box as shares of the position ranges and velocities, tried in this order (convention)."""
_ACCELERATIONS = (1.0, 0.7, 0.5, 0.35, 0.25)
"""Shares of the acceleration limits for the segments, tried in this order (convention): a slower motion between the
same points needs less torque and jerk."""
_PER_SEGMENT = 100
"""Samples of each segment at which limits are checked, besides the exact extrema (convention)."""


def design_energy_points(
    robot: Robot,
    limits: MotionLimits | None = None,
    *,
    count: int | None = None,
    criterion: Any = BALANCED,
    observation: Measured | None = None,
    rate_hz: float = 100.0,
    seed: int = 0,
    starts: int = 4,
    iterations: int = 200,
    progress: Callable[[float, float], None] | None = None,
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
        criterion: The `Criterion` that the points minimise, or what its terms may be.
        observation: What is measured along the motion, for the predicted accuracy; joint torques by default.
        rate_hz: Independent measurements per second of the recording, for the predicted accuracy [Hz].
        seed: Seed of the random starts; equal seeds give equal designs, because the search has no time limit.
        starts: Random starts in the first box.
        iterations: Steps of L-BFGS per stage of the criterion.
        progress: Called after every start with the finished share of the search and the lowest value so far.

    Raises:
        ArgumentError: A limit is missing, or the differences are too few.
        ExcitationError: No motion through points keeps all limits; the message names the limits.

    Example:
        >>> plan = dynid.excitation.design_energy_points(pendulum, swing, count=5, starts=1, iterations=5)
        >>> plan.trajectory.duration > 0
        True
    """
    limits = check_robot_and_limits(robot, limits)
    check_point_limits(limits)
    measured = Measured.joint_torques(robot) if observation is None else observation
    check_kind("observation", measured, Measured)
    cost = Criterion.of(criterion)
    rate_hz = as_number("rate_hz", rate_hz, above=0.0)
    count = check_count(robot, count)
    seed = as_whole("seed", seed, least=0)
    constraints = build_constraints(robot, limits)
    rest = _resting_position(constraints, limits, seed)
    # a little less than the limits, which a segment might exceed by rounding
    velocity, acceleration = ((1.0 - 2.0 * SAME) * bound for bound in (limits.velocity, limits.acceleration))
    model = EnergyPoints(robot, lower=limits.lower, upper=limits.upper, velocity=velocity)
    points: PointSequence | None = None
    for number, share in enumerate(_BOXES):
        if points is not None:  # start from the points of the larger box, scaled into this one
            smaller = share / _BOXES[number - 1]
            points = PointSequence(q=rest + smaller * (points.q - rest), dq=smaller * points.dq, W=points.W)
        points = optimise_points(
            model.with_box_share(share, rest), count, criterion=cost, seed=seed,
            starts=1 if number else starts, iterations=iterations, initial=points,
            progress=_make_report(progress, number, starts),
        )  # fmt: skip
        for slower in _ACCELERATIONS:
            path = points.trajectory(velocity=velocity, acceleration=slower * acceleration, rest=rest)
            motion = path.motion(path.check_times(_PER_SEGMENT))
            margins = measure_margins(constraints, motion)
            passed = _passed_limits(margins)
            if not passed:
                design = PointDesign(sequence=points, box_share=share, acceleration_share=slower)
                return Excitation(
                    robot=robot.name,
                    trajectory=path,
                    limits=limits,
                    criterion=cost,
                    value=cost.value(points.W),
                    information=_information(robot, measured, path, rate_hz),
                    parameter_names=measured.names,
                    parameter_units=measured.units,
                    assumed=measured.describe_assumed(rate_hz),
                    margins=margins,
                    coverage=measure_speed_shares(motion, limits.velocity),
                    seed=seed,
                    history=(),
                    not_checked=find_unchecked_limits(robot, limits, constraints),
                    points=design,
                )
            if "position" in passed:  # slower segments overshoot even more: take the next box
                break
    places = [f"{limit} of {where}" for limit, names in passed.items() for where in names]
    raise ExcitationError(
        f"the motion through points passes limits even in {100 * _BOXES[-1]:g} % of the box: {', '.join(places)}",
        remedy="Relax one of these limits; with a higher acceleration limit the segments overshoot less.",
    )


def check_count(robot: Robot, count: int | None) -> int:
    """Check a number of energy differences; if None, return twice the number of base parameters of the links.

    [GautierKhalil1992] section 7 advises at most twice as many.

    Raises:
        ArgumentError: There are fewer differences than parameters.
    """
    size = base_parameters(robot.with_terms().with_couplings()).rank
    if count is not None and as_whole("count", count, least=1) < size:
        raise ArgumentError(
            f"{count} energy differences cannot reveal {size} base parameters", remedy=f"Use {size} points or more."
        )
    return 2 * size if count is None else count


def check_point_limits(limits: MotionLimits) -> None:
    """Refuse limits under which points cannot be joined in minimal time.

    Raises:
        ArgumentError: A velocity or an acceleration is not limited.
    """
    for kind in ("velocity", "acceleration"):
        free = [limits.joint_names[j] for j in np.flatnonzero(np.isinf(getattr(limits, kind)))]
        if free:
            raise ArgumentError(
                f"joining points in minimal time needs a limit of {kind} for {', '.join(free)}",
                remedy="State it, for example --acceleration 5." if kind == "acceleration" else "State it.",
            )


def _passed_limits(margins: tuple[Margin, ...]) -> dict[str, dict[str, None]]:
    """The limits that a motion passes, each with the joints or places concerned: once, whichever end is passed."""
    exact = ("position", "velocity", "acceleration")  # their extrema are among the checked times
    between_samples = 1.0 - np.cos(np.pi / _PER_SEGMENT)  # a segment has at most two half-waves
    passed: dict[str, dict[str, None]] = {}
    for margin in margins:
        if margin.relative < (0.0 if margin.limit in exact else between_samples):
            passed.setdefault(margin.limit, {})[margin.where] = None
    return passed


def _resting_position(constraints: tuple[Constraint, ...], limits: MotionLimits, seed: int) -> Floats:
    """Choose the position (n,) at which the motion starts and ends and about which the box shrinks."""
    middle = 0.5 * (limits.lower + limits.upper)
    if is_feasible(constraints, PlannedMotion.at(middle[None])):
        return np.asarray(middle)
    return np.asarray(rest_positions(constraints, limits, np.random.default_rng(seed))[0])


def _make_report(
    progress: Callable[[float, float], None] | None, box: int, starts: int
) -> Callable[[int, float], None] | None:
    """Make a function that reports the finished starts of a box as the share of the whole search."""
    if progress is None:
        return None
    return lambda number, value: progress((box + min(number / starts, 1.0)) / len(_BOXES), value)


def _information(robot: Robot, measured: Measured, path: QuinticTrajectory, rate_hz: float) -> Floats:
    """Compute the information (b, b) of measurements along the motion.

    Raises:
        ExcitationError: It is singular.
    """
    times = path.times(rate_hz)
    information = measured.observation(robot).information(*path.evaluate(times[times <= path.duration]))
    if not eigvalsh(information)[0] > 0.0:
        raise ExcitationError(
            "the torques along the motion do not reveal all parameters of the robot", remedy="Use more points."
        )
    return information
