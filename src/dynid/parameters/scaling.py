"""A robot in its own units of length and time, so that "small" means the same for a gripper and for a crane."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.parameters.layout import parameters
from dynid.robot.model import Robot

__all__ = ["UnitRobot", "unit_robot"]

Floats = NDArray[np.float64]

_DIMENSIONS = {
    "kg m^2": (2, 0), "kg m": (1, 0), "kg": (0, 0), "N m": (2, -2), "N": (1, -2),
    "N m s/rad": (2, -1), "N s/m": (0, -1),
}  # fmt: skip
"""Unit -> exponents of length and time."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitRobot:
    """The same robot with its largest lever one unit long, under a gravity of one or none."""

    robot: Robot
    length: float
    """Its unit of length [m]."""
    factors: Floats
    """(p,) parameters in its units = factors * parameters in SI units."""


def unit_robot(robot: Robot) -> UnitRobot:
    """Express a robot in units of its own size; unknown units of parameters are left as they are."""
    length = max((float(np.linalg.norm(body.p_parent_joint)) for body in robot.bodies), default=0.0) or 1.0
    strength = float(np.linalg.norm(robot.gravity))
    time = float(np.sqrt(length / strength)) if strength > 0.0 else 1.0
    joints = []
    for joint in robot.joints:
        T = joint.T_parent_joint.copy()
        T[:3, 3] /= length
        joints.append(replace(joint, T_parent_joint=T))
    gravity = robot.gravity / strength if strength > 0.0 else robot.gravity
    exponents = [_DIMENSIONS.get(parameter.unit, (0, 0)) for parameter in parameters(robot)]
    factors = np.array([length**-a * time**-b for a, b in exponents])
    return UnitRobot(replace(robot, joints=tuple(joints), gravity=gravity, source=None), length, factors)
