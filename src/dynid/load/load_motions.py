"""Motions that reveal a load, and advice for a better motion ([Atkeson1986] sections 3.1.2, 3.1.3 and 4.1.1).

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
from dynid.findings import Finding
from dynid.load.load import Load, remark
from dynid.robot.model import Robot
from dynid.robot.parts import JointLimits

CERTAIN = 0.1
"""Relative standard deviation of a principal moment up to which no advice is given; convention."""
DISTANT = 5.0
"""Mass times distance squared over the largest moment above which the load counts as distant; convention."""


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


def advise_motion(load: Load) -> tuple[Finding, ...]:
    """Advice for better moments of inertia; empty where they are certain enough."""
    if not load.has_inertia:
        names = load.open_moments
        axes = [axis for axis, name in zip("xyz", ("XX", "YY", "ZZ"), strict=True) if name in names]
        is_all = len(names) in (0, 6) or not axes
        about = "about at least two axes" if is_all else f"about {' and '.join(axes)} of '{load.frame}'"
        message = f"the data do not determine {'the inertia' if is_all else ', '.join(names)}"
        turn = "Turn single wrist joints back and forth as fast as they can (wrist_test_motion)"
        return (remark("load-open", message, f"{turn}, {about}."),)
    principal = load.principal
    largest = float(principal.moments[-1])
    worst = float(np.max(principal.moments_stderr)) / largest if largest > 0.0 else 0.0
    if worst <= CERTAIN:
        return ()
    more, share = worst / CERTAIN, load.mass * float(load.com @ load.com) / largest
    message = f"the moments of inertia are uncertain by {100 * worst:.0f} % of the largest"
    remedy = (
        f"For {100 * CERTAIN:.0f} % the angular accelerations must be {more:.1f} times as large, or the data "
        f"{more**2:.0f} times as long."
    )
    if share > DISTANT:
        remedy += " Hold the load, or measure, nearer to its centre of mass."
    return (remark("load-uncertain", message, remedy, evidence={"relative std": worst, "factor": more}),)
