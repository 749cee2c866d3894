"""Optimum points joined by fifth-order segments that really stay within position, velocity and acceleration limits.

This is [GautierKhalil1992] section 5. Between two moving points a segment overshoots; points optimised up to the limits
can therefore not be joined inside them. The points get smaller limits than the motion, as section 5.2 of the paper
asks, and their limits shrink until the exact extrema of the motion keep the limits of the robot.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.errors import ArgumentError, ExcitationError
from dynid.excitation.criteria import Criterion
from dynid.excitation.limits import MotionLimits
from dynid.excitation.points.energy_points import EnergyPoints, PointSequence, optimise_points
from dynid.excitation.trajectories.quintic import QuinticTrajectory
from dynid.robot.model import Robot

__all__ = ["design_point_trajectory"]

_SPEEDS = (0.5, 0.4, 0.32, 0.25, 0.2, 0.15, 0.1, 0.05)
"""Shares of the velocity limits for the points, tried in this order.

Experiment: with a share of 1/2, 3 to 16 of 60 segments of the paper's 3R arm still leave the position ranges, by up to
28 degrees, so smaller shares follow.
"""
_RANGE = 0.8
"""Share of the position ranges for the points. Convention."""


def design_point_trajectory(
    robot: Robot,
    limits: MotionLimits,
    count: int,
    *,
    criterion: Criterion | None = None,
    seed: int = 0,
    iterations: int = 400,
) -> tuple[PointSequence, QuinticTrajectory]:
    """Find optimum points and the trajectory through them.

    Args:
        robot: The robot.
        limits: Position, velocity and acceleration limits; other limits are not checked.
        count: Number of energy differences.
        criterion: The number that the points minimise; the condition number by default.
        seed: Seed of the random starts.
        iterations: Steps of L-BFGS per stage.

    Raises:
        ExcitationError: Even slow points cannot be joined within the position limits.
    """
    if not (np.isfinite(limits.velocity).all() and np.isfinite(limits.acceleration).all()):
        raise ArgumentError("joining points needs finite velocity and acceleration limits")
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * _RANGE * (limits.upper - limits.lower)
    model = EnergyPoints(robot, lower=middle - half, upper=middle + half, velocity=limits.velocity)
    points: PointSequence | None = None
    for before, share in zip((1.0, *_SPEEDS), _SPEEDS, strict=False):
        # a smaller box starts from the points of the larger one, slowed down
        slowed = None if points is None else replace(points, dq=points.dq * share / before)
        points = optimise_points(
            model.with_velocity_share(share),
            count,
            criterion=criterion,
            seed=seed,
            iterations=iterations,
            initial=slowed,
        )
        path = points.trajectory(velocity=limits.velocity, acceleration=limits.acceleration, rest=middle)
        low, high = path.position_range
        if np.all((low >= limits.lower) & (high <= limits.upper)):
            return points, path
    beyond = [name for name, out in zip(limits.joint_names, (low < limits.lower) | (high > limits.upper)) if out]
    raise ExcitationError(
        f"fifth-order segments through the points leave the position range of {', '.join(beyond)}",
        remedy="Raise the acceleration limit, which shortens the segments, or widen the range.",
    )
