"""A robot's torques along a motion, for the terms that depend on them."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dynid.kernels import kernel
from dynid.robot.model import Robot
from dynid.terms.base import Motion, Reference

__all__ = ["RobotTorques"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RobotTorques:
    """The robot as `dynid.terms.base.LinkTorques` describes it."""

    robot: Robot

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints, in the order of q."""
        return self.robot.joint_names

    @property
    def gravity(self) -> Floats:
        """(3,) gravity [m/s^2] in the root link's frame."""
        return self.robot.gravity

    def torque(self, reference: Reference, motion: Motion) -> Floats:
        """(N, n) torque of the whole robot with the reference's parameters [N m or N].

        Many terms ask for it along the same stretch of motion, so it is kept as long as the stretch is in use.
        """
        known = _TORQUES.setdefault(motion, [])
        for other, robot, torque in known:
            if other is reference and robot is self.robot:
                return torque
        evaluate = kernel(self.robot, "inverse_dynamics", symbolic_parameters=True)
        torque = np.asarray(evaluate(motion.q, motion.dq, motion.ddq, reference.theta))
        known.append((reference, self.robot, torque))
        return torque

    def gravity_torque(self, reference: Reference, motion: Motion, gravity: Floats) -> Floats:
        """(N, n) torque that holds the links' weights under a gravity (3,) [N m or N]."""
        turned = self.robot.with_gravity(gravity)
        return np.asarray(kernel(turned, "gravity_torque", symbolic_parameters=True)(motion.q, reference.theta))


_TORQUES: WeakKeyDictionary[Motion, list[tuple[Reference, Robot, Floats]]] = WeakKeyDictionary()
"""Torques along stretches of motion, for as long as these are in use."""
