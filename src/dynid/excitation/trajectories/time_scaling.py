"""The same path in the shortest time that all limits allow."""

from __future__ import annotations

import numpy as np

from dynid.errors import ArgumentError, ExcitationError
from dynid.excitation.base import Constraint
from dynid.excitation.constraints import build_constraints, measure_margins
from dynid.excitation.feasibility import is_feasible
from dynid.excitation.limits import MotionLimits
from dynid.excitation.trajectories.trajectory import Motion, TimeScaled, Trajectory
from dynid.robot.model import Robot

_FASTEST = 1e-6
"""First time factor to try where velocity, acceleration and jerk are not limited. Convention."""
_SLOWEST = 1e9
"""Time factor at which only the torques of standing still are left: gravity and dry friction. Convention."""
_ROUNDING = 1e-12
"""Relative excess that counts as touching a limit: paths may end right at it. Convention."""
_GROWTH = 1.05
"""Factor between time factors that are tried, upwards. Convention."""
_REFINED = 1e-9
"""Relative accuracy to which the time factor is refined. Convention."""


def scale_to_limits(trajectory: Trajectory, robot: Robot, limits: MotionLimits, *, samples: int = 2001) -> TimeScaled:
    """Slow a trajectory down, or speed it up, until the first limit is reached.

    Velocity, acceleration and jerk fall with the first three powers of the time factor; torques, which keep their
    gravity part, and the speed of the tool are met by searching upwards from there.

    Args:
        trajectory: Any path.
        robot: The robot, for torques and distances.
        limits: Limits that the motion keeps at the samples.
        samples: Number of samples over the whole motion.

    Raises:
        ExcitationError: The path itself breaks a limit, however slowly it is run, or a joint that must move may not;
            the message says which.
        ArgumentError: No limit has to do with speed.

    Example:
        >>> dynid.excitation.scale_to_limits(move, robot, limits).duration > 0.0
        True
    """
    constraints = build_constraints(robot, limits)
    _refuse_impossible(trajectory, constraints, limits, samples)
    path = trajectory.motion(np.linspace(0.0, trajectory.duration, samples))

    def feasible(factor: float) -> bool:
        scaled = Motion(path.q, path.dq / factor, path.ddq / factor**2, path.jerk / factor**3)
        return is_feasible(constraints, scaled, -_ROUNDING)

    smallest = _joint_factor(trajectory, limits, samples)
    high = low = smallest * (1.0 + _REFINED) if smallest > 0.0 else _FASTEST
    if smallest == 0.0 and feasible(low):
        raise ArgumentError(
            "no limit has to do with the speed of this path",
            remedy="Limit velocity, acceleration, torque or tool speed.",
        )
    while not feasible(high) and high < _SLOWEST:
        low, high = high, _GROWTH * high
    while high - low > _REFINED * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if feasible(middle) else (middle, high)
    return trajectory.with_time_factor(high)


def _joint_factor(trajectory: Trajectory, limits: MotionLimits, samples: int) -> float:
    """The smallest time factor that keeps velocity, acceleration and jerk; zero where they are not limited."""
    factor = 0.0
    for order, bound in enumerate((limits.velocity, limits.acceleration, limits.jerk), start=1):
        peak = trajectory.peak(order, samples)
        shares = np.divide(peak, bound, out=np.zeros_like(peak), where=peak > 0.0)
        factor = max(factor, float(shares.max()) ** (1.0 / order))
    return factor


def _refuse_impossible(
    trajectory: Trajectory, constraints: tuple[Constraint, ...], limits: MotionLimits, samples: int
) -> None:
    """Refuse a path that breaks limits even where it is run infinitely slowly, in the direction that it takes."""
    bounds = {"velocity": limits.velocity, "acceleration": limits.acceleration, "jerk": limits.jerk}
    still = [
        f"{kind} of joint '{limits.joint_names[j]}' is zero"
        for order, (kind, bound) in enumerate(bounds.items(), start=1)
        for j in np.flatnonzero((bound <= 0.0) & (trajectory.peak(order, samples) > 0.0))
    ]
    if still:
        raise ExcitationError(f"the path needs a joint that may not move: {', '.join(still)}", remedy="Raise it.")
    slow = trajectory.with_time_factor(_SLOWEST)
    found = measure_margins(constraints, slow.motion(np.linspace(0.0, slow.duration, samples)))
    beyond = sorted({f"{m.limit} of {m.where}" for m in found if m.relative < -_ROUNDING})
    if beyond:
        raise ExcitationError(
            f"the path breaks limits at any speed: {', '.join(beyond)}", remedy="Choose another path."
        )
