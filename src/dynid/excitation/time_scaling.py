"""The same path in the shortest time that all limits allow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ExcitationError
from dynid.excitation.constraints import build_constraints, margins
from dynid.excitation.feasibility import is_feasible
from dynid.excitation.limits import MotionLimits
from dynid.excitation.trajectory import TimeScaled, Trajectory
from dynid.robot.model import Robot

__all__ = ["scaled_to_limits"]

Floats = NDArray[np.float64]
_SLOWEST = 100.0


def scaled_to_limits(trajectory: Trajectory, robot: Robot, limits: MotionLimits, *, samples: int = 2001) -> TimeScaled:
    """Slow a trajectory down, or speed it up, until the first limit is reached.

    Velocity, acceleration and jerk fall with the first three powers of the time factor; torques, which keep their
    gravity part, and the speed of the tool are met by searching upwards from there.

    Args:
        trajectory: Any path.
        robot: Whose torques count.
        limits: All of them are kept at the samples.
        samples: How many, over the whole motion.

    Raises:
        ExcitationError: The path itself breaks a limit, however slowly it is run; the message says which.
    """
    factor = max(
        float(np.max(trajectory.peak(order, samples) / bound)) ** (1.0 / order)
        for order, bound in enumerate((limits.velocity, limits.acceleration, limits.jerk), start=1)
    )
    constraints = build_constraints(robot, limits)
    shares = np.linspace(0.0, 1.0, samples)

    def feasible(factor: float) -> bool:
        scaled = trajectory.slowed(factor)
        return is_feasible(constraints, scaled.motion(shares * scaled.duration))

    fastest = max(factor, 1e-3) * (1.0 + 1e-9)
    low, high = fastest, fastest
    while not feasible(high):
        low, high = high, 1.05 * high
        if high > _SLOWEST * fastest:
            slowest = trajectory.slowed(high)
            found = margins(constraints, slowest.motion(shares * slowest.duration))
            beyond = sorted({f"{m.limit} of {m.where}" for m in found if m.relative < 0.0})
            raise ExcitationError(
                f"the path breaks limits at any speed: {', '.join(beyond)}", remedy="Choose another path."
            )
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if feasible(middle) else (middle, high)
    return trajectory.slowed(high)
