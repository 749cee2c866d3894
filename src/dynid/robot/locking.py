"""Joints held at a position: a gripper's fingers, a torso that stays still."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from dynid.errors import ArgumentError
from dynid.robot.parts import Joint, JointLimits
from dynid.spatial import rotation_about, transform

__all__ = ["check_locked", "lock"]


def lock(joint: Joint, position: float) -> Joint:
    """The joint fixed at a position [rad or m]; a fixed joint stays as it is."""
    if joint.kind == "fixed":
        return joint
    if joint.kind == "prismatic":
        motion = transform(np.eye(3), position * joint.axis)
    else:
        motion = transform(rotation_about(joint.axis, position), np.zeros(3))
    return replace(joint, kind="fixed", T_parent_joint=joint.T_parent_joint @ motion, limits=JointLimits(), terms=())


def check_locked(locked: Mapping[str, float], joints: Iterable[str]) -> None:
    """Refuse positions that are not numbers and names the description does not have."""
    known = list(joints)
    for name, position in locked.items():
        if name not in known:
            raise ArgumentError(
                f"locked names the joint '{name}', which the description does not have",
                remedy=f"Its joints are: {', '.join(known[:40])}.",
            )
        if not np.isfinite(position):
            raise ArgumentError(f"joint '{name}' cannot be locked at {position}", remedy="Give a finite position.")
