"""Conversion of a robot to a Pinocchio model."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.speed.case import load
from dynid import Robot


def pinocchio_model(robot: Robot) -> tuple[Any, Any]:
    """Import Pinocchio and build the model of a robot joint by joint, with our body frames."""
    pin = load("pinocchio", "pin")
    model = pin.Model()
    model.gravity.linear = np.array(robot.gravity)
    ids: list[int] = []
    for body in robot.bodies:
        placement = pin.SE3(np.array(body.R_parent_joint), np.array(body.p_parent_joint))
        parent = 0 if body.parent < 0 else ids[body.parent]
        index = model.addJoint(parent, _joint(pin, body.axis, body.is_prismatic), placement, body.joint.name)
        inertia = pin.Inertia(body.inertia.mass, body.inertia.com, body.inertia.about_com)
        model.appendBodyToJoint(index, inertia, pin.SE3.Identity())
        ids.append(index)
    return pin, model


def _joint(pin: Any, axis: Any, prismatic: bool) -> Any:
    """Make the fastest joint kind for an axis: the one along x, y or z, or the one for any axis."""
    kind = "P" if prismatic else "R"
    for letter, unit in zip("XYZ", np.eye(3), strict=True):
        if np.array_equal(axis, unit):
            return getattr(pin, f"JointModel{kind}{letter}")()
    return getattr(pin, f"JointModel{'Prismatic' if prismatic else 'Revolute'}Unaligned")(np.array(axis))
