"""Optimum points joined by fifth-order segments that really stay within position, velocity and acceleration limits.

Equation numbers: [GautierKhalil1992] section 5. Between two points that move, a segment overshoots; points optimised up
to the limits can therefore not be joined inside them. The points get a smaller box than the motion, as the paper's
section 5.2 asks, and the box shrinks until the exact extrema of the motion keep the limits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.errors import ArgumentError, ExcitationError
from dynid.excitation.criteria import Criterion
from dynid.excitation.energy_points import EnergyPoints, PointSequence, optimise_points
from dynid.excitation.limits import MotionLimits
from dynid.excitation.trajectories.quintic import QuinticTrajectory
from dynid.robot.model import Robot

__all__ = ["design_point_trajectory"]

_SPEEDS = (0.5, 0.4, 0.32, 0.25, 0.2, 0.15, 0.1, 0.05)
_RANGE = 0.8


def design_point_trajectory(
    robot: Robot,
    limits: MotionLimits,
    count: int,
    *,
    criterion: Criterion | None = None,
    seed: int = 0,
    iterations: int = 400,
) -> tuple[PointSequence, QuinticTrajectory]:
    """Optimum points and the trajectory through them.

    Args:
        robot: The robot.
        limits: Position, velocity and acceleration limits; the others are not looked at.
        count: Number of energy differences.
        criterion: Of the points; the condition number by default.
        seed: Of the starts.
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
            model.slowed(share), count, criterion=criterion, seed=seed, iterations=iterations, initial=slowed
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
