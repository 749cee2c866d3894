"""Motions that reveal a load ([Atkeson1986] sections 3.1.2, 3.1.3 and 4.1.1).

Gravity shows mass and centre of mass ([Atkeson1986] eq. 21); inertia needs angular acceleration (eq. 8), and single
wrist joints reach more of it than the whole arm. Fifth-order moves start and stop without exciting the sensor's own
resonance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid.errors import ArgumentError
from dynid.excitation.trajectories.quintic import QuinticTrajectory
from dynid.robot.model import Robot
from dynid.robot.parts import JointLimits


def wrist_test_motion(
    robot: Robot,
    start: ArrayLike,
    *,
    joints: Sequence[str] | None = None,
    sweep: float = np.pi,
    duration_s: float = 2.0,
) -> QuinticTrajectory:
    """Move single joints one after the other, there and back, by fifth-order moves.

    Args:
        robot: The robot.
        start: (n,) positions between the moves [rad or m].
        joints: Names of the joints that move; by default the last three.
        sweep: Length of each move [rad or m]; shorter, or in the other direction, where limits leave less room.
        duration_s: Duration of each single move [s]; longer where limits of velocity or acceleration require it.

    Raises:
        ArgumentError: No joint is named, the robot has no such joint, or the start is outside its limits.

    Example:
        >>> dynid.load.wrist_test_motion(robot, q).duration > 0.0
        True
    """
    q0 = np.asarray(start, dtype=float)
    if q0.shape != (robot.dof,):
        raise ArgumentError(f"expected {robot.dof} positions, got shape {q0.shape}")
    if not (duration_s > 0.0 and 0.0 < sweep < np.inf):
        raise ArgumentError(f"a sweep of {sweep} in {duration_s} s", remedy="Give positive numbers.")
    names = tuple(robot.joint_names[-3:] if joints is None else joints)
    if not names:
        raise ArgumentError("joints is empty, so nothing moves", remedy=f"Name one of {', '.join(robot.joint_names)}.")
    if unknown := sorted(set(names) - set(robot.joint_names)):
        raise ArgumentError(f"robot '{robot.name}' has no joint '{unknown[0]}'", remedy=", ".join(robot.joint_names))
    bounds = [joint.limits for joint in robot.moving_joints]
    if not all(limit.lower <= x <= limit.upper for limit, x in zip(bounds, q0, strict=True)):
        raise ArgumentError("the start is outside the joint limits, or not finite", place="start")
    chosen = [robot.joint_names.index(name) for name in names]
    points, durations = [q0], list[float]()
    for joint in chosen:
        limits = bounds[joint]
        up, down = limits.upper - q0[joint], q0[joint] - limits.lower
        reach = min(sweep, max(up, down)) * (1.0 if up >= down else -1.0)
        points += [q0 + reach * np.eye(robot.dof)[joint], q0]
        durations += [max(duration_s, _slowest(abs(reach), limits))] * 2
    q = np.array(points)
    return QuinticTrajectory(q=q, dq=np.zeros_like(q), durations=np.array(durations))


def _slowest(reach: float, limits: JointLimits) -> float:
    """Time [s] of a fifth-order move d from rest to rest within limits: its peaks are 15/8 d/T and 10/sqrt(3) d/T^2."""
    if not (limits.velocity > 0.0 and limits.acceleration > 0.0):
        raise ArgumentError("a joint has a limit of zero velocity or acceleration", remedy="Choose other joints.")
    return float(max(1.875 * reach / limits.velocity, np.sqrt(10.0 / np.sqrt(3.0) * reach / limits.acceleration)))
