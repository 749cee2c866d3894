"""Pinocchio's view of a dynid robot, and the oracle functions the tests compare with."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.robot.model import Robot


def pinocchio_model(robot: Robot) -> Any:
    """The same robot as a Pinocchio model, built joint by joint (not through a file)."""
    import pinocchio as pin

    model = pin.Model()
    model.gravity.linear = robot.gravity
    ids: list[int] = []
    for body in robot.bodies:
        kind = pin.JointModelPrismaticUnaligned if body.is_prismatic else pin.JointModelRevoluteUnaligned
        placement = pin.SE3(np.array(body.R_parent_joint), np.array(body.p_parent_joint))
        index = model.addJoint(0 if body.parent < 0 else ids[body.parent], kind(body.axis), placement, body.joint.name)
        inertia = body.inertia
        model.appendBodyToJoint(index, pin.Inertia(inertia.mass, inertia.com, inertia.about_com), pin.SE3.Identity())
        ids.append(index)
    return model


def symmetric(upper: np.ndarray) -> np.ndarray:
    """Pinocchio fills the upper triangle of M only."""
    return np.triu(upper) + np.triu(upper, 1).T


def relative_error(ours: np.ndarray, reference: np.ndarray) -> float:
    """Largest difference relative to the largest reference entry."""
    return float(np.max(np.abs(ours - reference)) / max(float(np.max(np.abs(reference))), 1e-300))
