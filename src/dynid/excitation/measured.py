"""What is measured while a designed motion runs, and which parameters the measurements shall reveal.

A `Measured` is a plain description; its `observation` is the compiled counterpart for one robot. `JointTorques` is for
the robot's own parameters, `LoadWrench` and `LoadTorques` are for a load that it carries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_row
from dynid.dynamics.regressor import torque_regressor
from dynid.dynamics.wrench import sensor_wrench_regressor
from dynid.errors import ArgumentError
from dynid.excitation.observation import Observation, TorqueObservation
from dynid.parameters.base import choose_base
from dynid.parameters.base_set import BaseParameters, require_kept_columns
from dynid.parameters.inertia_maps import transport
from dynid.parameters.layout import INERTIAL_SYMBOLS, INERTIAL_UNITS
from dynid.robot.model import Robot


def _describe_torque_noise(noise: float | Sequence[float] | Floats) -> str:
    levels = np.unique(np.asarray(noise, dtype=float))
    span = f"{levels[0]:g}" if len(levels) == 1 else f"{levels[0]:g} to {levels[-1]:g}"
    return f"torque noise of {span} N m (N where a joint slides)"


class WrenchObservation(Observation):
    """The wrench that a sensor in the frame of a link feels from its load: six quantities, ten parameters."""

    def __init__(self, robot: Robot, link: str, noise: ArrayLike = 1.0) -> None:
        """Record and compile.

        Args:
            robot: Geometry and gravity.
            link: The link that carries the sensor.
            noise: Standard deviations of force [N] and moment [N m] in the link's axes, (6,) or one for all.
        """
        self.link = link
        super().__init__(robot, as_row("noise", noise, 6, same=True, above=0.0))

    def rows(self, q: Any, dq: Any, ddq: Any) -> Any:
        """Force and moment per unit of each of the load's parameters (6, 10)."""
        return sensor_wrench_regressor(self.robot, self.link, q, dq, ddq)


class LoadTorqueObservation(Observation):
    """What a load on a link adds to the joint torques: n quantities, the ten parameters in the link's frame."""

    def __init__(self, robot: Robot, link: str, noise: ArrayLike = 1.0) -> None:
        """Record and compile.

        Args:
            robot: Geometry and gravity; its own parameters count as known.
            link: The link that carries the load.
            noise: Standard deviation of each joint's torque, (n,) or one for all [N m or N].
        """
        body, T = robot.link_body(link)
        if body < 0:
            raise ArgumentError(f"link '{link}' does not move", remedy="Name the link that carries the load.")
        self._columns = range(10 * body, 10 * body + 10)
        self._to_body = transport(T[:3, :3], T[:3, 3])
        super().__init__(robot, as_row("noise", noise, robot.dof, same=True, above=0.0))

    def rows(self, q: Any, dq: Any, ddq: Any) -> Any:
        """Torques per unit of each of the load's parameters (n, 10)."""
        return torque_regressor(self.robot, q, dq, ddq)[:, list(self._columns)] @ self._to_body


@dataclass(frozen=True)
class Measured(ABC):
    """A choice of measured quantities and parameters; it is sent to other processes, which compile it there."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """(b,) the parameters to reveal."""

    @property
    @abstractmethod
    def units(self) -> tuple[str, ...]:
        """(b,) their SI units."""

    @property
    @abstractmethod
    def noise_text(self) -> str:
        """A phrase that states the noise on which predictions rest."""

    @abstractmethod
    def observation(self, robot: Robot) -> Observation:
        """The observation, recorded and compiled for a robot."""


@dataclass(frozen=True)
class JointTorques(Measured):
    """Joint torques, to reveal parameters of the robot itself."""

    columns: tuple[int, ...]
    """(b,) columns of the robot's regressor."""
    parameters: tuple[str, ...]
    """(b,) their names."""
    noise: float | Sequence[float] | Floats = 1.0
    """Standard deviation of each joint's torque (n,) or one for all [N m or N]."""
    parameter_units: tuple[str, ...] = ()
    """(b,) SI units of the parameters; empty where they are not known."""

    @classmethod
    def of(cls, robot: Robot, noise: ArrayLike = 1.0, base: BaseParameters | None = None) -> JointTorques:
        """Joint torques that shall reveal base parameters.

        Args:
            robot: The robot.
            noise: Standard deviation of each joint's torque, (n,) or one for all [N m or N].
            base: The parameters; the robot's base parameters by default.
        """
        base = require_kept_columns(choose_base(robot, base))
        levels = as_row("noise", noise, robot.dof, same=True, above=0.0)
        return cls(base.columns, base.names, levels, base.units)

    @property
    def names(self) -> tuple[str, ...]:
        """(b,) the robot's parameters to reveal."""
        return self.parameters

    @property
    def units(self) -> tuple[str, ...]:
        """(b,) SI units."""
        return self.parameter_units or ("",) * len(self.parameters)

    @property
    def noise_text(self) -> str:
        """A phrase that states the torque noise."""
        return _describe_torque_noise(self.noise)

    def observation(self, robot: Robot) -> Observation:
        """The observation, recorded and compiled for a robot."""
        return TorqueObservation(robot, self.columns, self.noise)


@dataclass(frozen=True)
class LoadWrench(Measured):
    """Force and moment at a sensor, to reveal the ten parameters of the load beyond it (`dynid.identify_load`)."""

    link: str
    """Name of the link that carries the sensor."""
    force_noise: float = 1.0
    """Standard deviation of each force [N]."""
    moment_noise: float = 1.0
    """Standard deviation of each moment [N m]."""

    @property
    def names(self) -> tuple[str, ...]:
        """(10,) the load's parameters, in the link's frame."""
        return INERTIAL_SYMBOLS

    @property
    def units(self) -> tuple[str, ...]:
        """(10,) SI units."""
        return INERTIAL_UNITS

    @property
    def noise_text(self) -> str:
        """A phrase that states the noise of force and moment."""
        return f"noise of {self.force_noise:g} N in each force and {self.moment_noise:g} N m in each moment"

    def observation(self, robot: Robot) -> Observation:
        """The observation, recorded and compiled for a robot."""
        return WrenchObservation(robot, self.link, [self.force_noise] * 3 + [self.moment_noise] * 3)


@dataclass(frozen=True)
class LoadTorques(Measured):
    """Joint torques, to reveal the ten parameters of a load on a robot that is known (`dynid.identify_payload`)."""

    link: str
    """Name of the link that carries the load."""
    noise: float | Sequence[float] | Floats = 1.0
    """Standard deviation of each joint's torque (n,) or one for all [N m or N]."""

    @property
    def names(self) -> tuple[str, ...]:
        """(10,) the load's parameters, in the link's frame."""
        return INERTIAL_SYMBOLS

    @property
    def units(self) -> tuple[str, ...]:
        """(10,) SI units."""
        return INERTIAL_UNITS

    @property
    def noise_text(self) -> str:
        """A phrase that states the torque noise."""
        return _describe_torque_noise(self.noise)

    def observation(self, robot: Robot) -> Observation:
        """The observation, recorded and compiled for a robot."""
        return LoadTorqueObservation(robot, self.link, self.noise)
