"""Features that depend on what the links weigh: load-dependent friction, base tilt, faults of torque sensors.

They are linear in their own parameter only, so the links' torques in them are those of a *reference*: the prior robot
or an earlier fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dynid.estimation.features import Feature, JointFeature, Motion
from dynid.kernels import kernel
from dynid.robot.model import Robot

__all__ = ["BaseTilt", "CrossTalk", "DriveGain", "LoadFriction", "Reference", "SensorCurvature"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reference:
    """Parameters (p,) of a robot, as `Robot.parameter_vector`, that only need to give about the right torques."""

    theta: Floats

    def gravity_torque(self, robot: Robot, motion: Motion) -> Floats:
        """(N, n) torque of the links' weights [N m or N]."""
        return np.asarray(kernel(robot, "gravity_torque", symbolic_parameters=True)(motion.q, self.theta))

    def torque(self, robot: Robot, motion: Motion) -> Floats:
        """(N, n) whole torque, joint models included [N m or N]; many features of one stretch of motion ask for it."""
        known = _TORQUES.setdefault(motion, [])
        for reference, model, torque in known:
            if reference is self and model is robot:
                return torque
        evaluate = kernel(robot, "inverse_dynamics", symbolic_parameters=True)
        torque = np.asarray(evaluate(motion.q, motion.dq, motion.ddq, self.theta))
        known.append((self, robot, torque))
        return torque


_TORQUES: WeakKeyDictionary[Motion, list[tuple[Reference, Robot, Floats]]] = WeakKeyDictionary()
"""Torques along stretches of motion, for as long as these are in use."""


@dataclass(frozen=True)
class LoadFriction(Feature):
    """Dry friction that grows with the load: ``|torque|`` times the friction's own shape."""

    friction: JointFeature
    """How the friction depends on the joint's motion."""
    reference: Reference

    @property
    def has_memory(self) -> bool:
        return self.friction.has_memory

    @property
    def name(self) -> str:
        return f"{self.friction.name}*T"

    @property
    def unit(self) -> str:
        return "1"

    def column(self, robot: Robot, motion: Motion) -> dict[int, Floats]:
        load = np.abs(self.reference.torque(robot, motion))
        return {j: load[:, j] * column for j, column in self.friction.column(robot, motion).items()}


@dataclass(frozen=True)
class BaseTilt(Feature):
    """A base that does not stand upright: gravity turned by a small angle about one of two horizontal axes."""

    axis: Literal[0, 1]
    """Which of the two."""
    reference: Reference

    @property
    def name(self) -> str:
        return f"TILT{'XY'[self.axis]}"

    @property
    def unit(self) -> str:
        return "rad"

    def column(self, robot: Robot, motion: Motion) -> dict[int, Floats]:
        tilted = robot.with_gravity(np.cross(horizontal_axes(robot)[self.axis], robot.gravity))
        torque = self.reference.gravity_torque(tilted, motion)
        return {j: torque[:, j] for j in range(robot.dof)}


def horizontal_axes(robot: Robot) -> Floats:
    """(2, 3) two unit vectors across gravity and each other, root link's frame."""
    down = robot.gravity / np.linalg.norm(robot.gravity)
    first = np.cross(down, np.eye(3)[np.argmin(np.abs(down))])
    first /= np.linalg.norm(first)
    return np.array([first, np.cross(down, first)])


@dataclass(frozen=True)
class CrossTalk(Feature):
    """A torque sensor that also feels another joint's torque."""

    joint: int
    source: int
    """Index of the joint it feels."""
    reference: Reference

    @property
    def name(self) -> str:
        return f"XT{self.joint + 1}_{self.source + 1}"

    @property
    def unit(self) -> str:
        return "1"

    def column(self, robot: Robot, motion: Motion) -> dict[int, Floats]:
        return {self.joint: self.reference.torque(robot, motion)[:, self.source]}


@dataclass(frozen=True)
class DriveGain(Feature):
    """A drive or torque sensor whose gain is off by a part of itself: the torque of one joint.

    All gains together cannot be told from the masses, so one drive has to set the scale.
    """

    joint: int
    reference: Reference

    @property
    def name(self) -> str:
        return f"KG{self.joint + 1}"

    @property
    def unit(self) -> str:
        return "1"

    def column(self, robot: Robot, motion: Motion) -> dict[int, Floats]:
        return {self.joint: self.reference.torque(robot, motion)[:, self.joint]}


@dataclass(frozen=True)
class SensorCurvature(Feature):
    """A torque sensor or drive whose gain changes with the torque: ``torque |torque|`` of one joint."""

    joint: int
    reference: Reference

    @property
    def name(self) -> str:
        return f"NL{self.joint + 1}"

    @property
    def unit(self) -> str:
        return "1/(N m)"

    def column(self, robot: Robot, motion: Motion) -> dict[int, Floats]:
        torque = self.reference.torque(robot, motion)[:, self.joint]
        return {self.joint: torque * np.abs(torque)}
