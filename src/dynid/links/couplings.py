"""Motors that turn with several joints, read off the gears of a channel map."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynid.logs.channel_map import ChannelMap, read_channel_map
from dynid.robot.model import Robot
from dynid.terms.coupling import Coupling


def with_coupled_motors(robot: Robot, channel_map: ChannelMap | Mapping[str, Any] | str | Path) -> Robot:
    """The robot with a `Coupling` for every motor that the map's gear matrix lets turn with several joints.

    Row i of the matrix of positions (of velocities, where they have none) is motor i's speed per speed of each joint.
    Couplings that the robot has already stay as they are.

    Args:
        robot: The robot.
        channel_map: The map, or its file.
    """
    if robot.couplings:
        return robot
    signals = read_channel_map(channel_map).signals
    gears = [signals[name].gear for name in ("position", "velocity") if name in signals]
    gear = next((matrix for matrix in gears if matrix is not None and matrix.shape == (robot.dof,) * 2), None)
    if gear is None:
        return robot
    couplings = []
    for motor, row in enumerate(gear):
        joints = np.flatnonzero(row)
        own = row[motor] if row[motor] else row[joints[-1]] if joints.size else 1.0
        if joints.size > 1 and all(robot.moving_joints[j].kind != "prismatic" for j in joints):
            couplings.append(Coupling({robot.joint_names[j]: float(row[j] / own) for j in joints}))
    return robot.with_couplings(*couplings) if couplings else robot
