"""A motion that reveals a load: single wrist joints turn there and back ([Atkeson1986] sections 3.1.2, 3.1.3, 4.1.1).

Gravity shows mass and centre of mass (eq. 21); inertia needs angular acceleration (eq. 8), of which single wrist joints
reach more than the whole arm. Moves by polynomials of order five start and stop without exciting the sensor's
resonance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid.checks import as_number, as_row
from dynid.errors import ArgumentError
from dynid.excitation.trajectories.quintic import QuinticTrajectory, shortest_move
from dynid.robot.model import Robot


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
        sweep: Length of each move [rad or m], upwards if limits leave more room there, shorter if they leave less.
        duration_s: Duration of each single move [s]; longer if limits of velocity or acceleration require it.

    Raises:
        ArgumentError: No joint is named, the robot has no such joint, or the start is outside its limits.

    Example:
        >>> dynid.payload.wrist_test_motion(robot, q).duration > 0.0
        True
    """
    q0 = as_row("start", start, robot.dof)
    names = robot.joint_names[-3:] if joints is None else tuple(joints)
    if not names or set(names) - set(robot.joint_names):
        reason = f"robot '{robot.name}' has no joint of {list(names)} to move, or not all of them"
        raise ArgumentError(reason, remedy=f"Name some of {', '.join(robot.joint_names)}.")
    limits = [joint.limits for joint in robot.moving_joints]
    if not all(limit.lower <= x <= limit.upper for limit, x in zip(limits, q0, strict=True)):
        raise ArgumentError("the start is outside the joint limits", place="start")
    length = as_number("sweep", sweep, above=0.0)
    shortest = as_number("duration_s", duration_s, above=0.0)
    points = [q0]
    durations: list[float] = []
    for joint in map(robot.joint_names.index, names):
        limit = limits[joint]
        up = limit.upper - q0[joint]
        down = q0[joint] - limit.lower
        reach = min(length, max(up, down))
        if not (limit.velocity > 0.0 and limit.acceleration > 0.0):
            reason = f"joint '{robot.joint_names[joint]}' has a limit of zero velocity or acceleration"
            raise ArgumentError(reason, remedy="Choose other joints.")
        points += [q0 + (reach if up >= down else -reach) * np.eye(robot.dof)[joint], q0]
        durations += [max(shortest, shortest_move(reach, limit.velocity, limit.acceleration))] * 2  # there and back
    q = np.array(points)
    return QuinticTrajectory(q=q, dq=np.zeros_like(q), durations=np.array(durations))
