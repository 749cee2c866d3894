"""Joints are matched by name: columns whose names are the robot's, in another order, are put into the robot's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.findings import Finding
from dynid.logs.column_names import JointNames, words_of
from dynid.logs.recording import Recording
from dynid.public_calls import public
from dynid.robot.model import Robot

__all__ = ["column_order", "match_joints", "order_finding"]


def column_order(names: Sequence[str], robot: Robot | None) -> NDArray[np.int64] | None:
    """For each of the robot's joints the place of its column; None where the names do not tell, or agree already.

    Args:
        names: Names of the columns, or of the log's joints; a name may hold more than the joint's, as ``elbow_pos``.
        robot: The robot.
    """
    if robot is None or len(names) != robot.dof:
        return None
    known = JointNames(robot.joint_names)
    found = [known.find(words_of(name)) for name in names]
    joints = [place[0] for place in found if place is not None]
    if sorted(joints) != list(range(robot.dof)) or joints == list(range(robot.dof)):
        return None
    return np.argsort(joints)


def order_finding(names: Sequence[str], robot: Robot, *, declared: bool) -> Finding:
    """The finding that a log has the robot's joints in another order.

    Args:
        names: The names in the log's, or the map's, order.
        robot: The robot.
        declared: Whether a channel map declared that order as the robot's.
    """
    listed = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
    who = "the channel map lists the joints" if declared else "the log has the joints"
    return Finding(
        code="joint-order",
        severity="warning" if declared else "note",
        where="joints",
        message=f"{who} in another order ({listed}) than the robot; they are matched by name",
        remedy="List the joints in the robot's order." if declared else "Nothing to do, if the names are right.",
    )


@public
def match_joints(recording: Recording, robot: Robot | None) -> Recording:
    """The recording with its columns in the robot's order, where its joint names are the robot's in another order.

    Example:
        >>> dynid.logs.match_joints(log, robot).joint_names
        ('joint1', 'joint2', 'joint3')
    """
    order = column_order(recording.joint_names, robot)
    if order is None or robot is None:
        return recording
    channels = {name: getattr(recording, name) for name in ("q", "dq", "effort", "current")}
    ordered: dict[str, Any] = {name: None if values is None else values[:, order] for name, values in channels.items()}
    ordered["gain_std"] = None if recording.gain_std is None else recording.gain_std[order]
    finding = order_finding(recording.joint_names, robot, declared=False)
    return replace(recording, **ordered, joint_names=robot.joint_names, findings=(*recording.findings, finding))
