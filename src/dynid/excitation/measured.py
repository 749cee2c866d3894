"""What is measured while a designed motion runs, and which parameters the measurements shall reveal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_row
from dynid.dynamics.regressor import torque_regressor
from dynid.dynamics.wrench import sensor_wrench_regressor
from dynid.errors import ArgumentError
from dynid.excitation.observation import Observation
from dynid.parameters.base import choose_base
from dynid.parameters.base_set import BaseParameters, require_kept_columns
from dynid.parameters.inertia_maps import transport
from dynid.parameters.layout import INERTIAL_SYMBOLS, INERTIAL_UNITS
from dynid.robot.model import Robot


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """Measured quantities, and the parameters that they shall reveal.

    Make one by `joint_torques`, `load_wrench` or `load_torques`.
    """

    kind: Literal["joint torques", "load wrench", "load torques"]
    """The joint torques that the robot's own parameters cause, or the wrench or joint torques that a load causes."""
    noise: Floats
    """Standard deviation of each quantity: (6,) force [N] and moment [N m] of a wrench; (n,) or () [N m or N]."""
    names: tuple[str, ...] = INERTIAL_SYMBOLS
    """(b,) the parameters to reveal; those of a load by default, in the link's frame."""
    units: tuple[str, ...] = INERTIAL_UNITS
    """(b,) their SI units."""
    link: str = ""
    """Name of the link that carries the load or the sensor."""
    columns: tuple[int, ...] = ()
    """(b,) columns of the robot's regressor, of joint torques."""

    @classmethod
    def joint_torques(cls, robot: Robot, noise: ArrayLike = 1.0, base: BaseParameters | None = None) -> Measured:
        """Joint torques that shall reveal base parameters of the robot itself.

        Args:
            robot: The robot.
            noise: Standard deviation of each joint's torque, (n,) or one for all [N m or N].
            base: The parameters; the robot's base parameters by default.
        """
        found = require_kept_columns(choose_base(robot, base))
        levels = as_row("noise", noise, robot.dof, same=True, above=0.0)
        return cls(kind="joint torques", noise=levels, names=found.names, units=found.units, columns=found.columns)

    @classmethod
    def load_wrench(cls, link: str, force_noise: float = 1.0, moment_noise: float = 1.0) -> Measured:
        """Force and moment at a sensor on a link, to reveal the load beyond it (`dynid.identify_load`).

        Args:
            link: The link that carries the sensor.
            force_noise: Standard deviation of each force [N].
            moment_noise: Standard deviation of each moment [N m].
        """
        return cls(kind="load wrench", noise=np.repeat([force_noise, moment_noise], 3), link=link)

    @classmethod
    def load_torques(cls, link: str, noise: ArrayLike = 1.0) -> Measured:
        """Joint torques that shall reveal a load on a robot that is known (`dynid.identify_payload`).

        Args:
            link: The link that carries the load.
            noise: Standard deviation of each joint's torque, (n,) or one for all [N m or N].
        """
        return cls(kind="load torques", noise=np.asarray(noise, dtype=float), link=link)

    @property
    def noise_text(self) -> str:
        """A phrase that states the noise on which predictions rest."""
        if self.kind == "load wrench":
            return f"noise of {self.noise[0]:g} N in each force and {self.noise[-1]:g} N m in each moment"
        low, high = np.min(self.noise), np.max(self.noise)
        span = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        return f"torque noise of {span} N m (N where a joint slides)"

    def observation(self, robot: Robot) -> Observation:
        """The quantities, recorded and compiled for a robot."""
        rows: Callable[..., Any]
        if self.kind == "joint torques":
            rows = lambda q, dq, ddq: torque_regressor(robot, q, dq, ddq)[:, list(self.columns)]  # noqa: E731
        elif self.kind == "load wrench":
            rows = lambda q, dq, ddq: sensor_wrench_regressor(robot, self.link, q, dq, ddq)  # noqa: E731
        else:
            rows = self._load_rows(robot)
        size = 6 if self.kind == "load wrench" else robot.dof
        return Observation(robot.dof, rows, as_row("noise", self.noise, size, same=True, above=0.0))

    def _load_rows(self, robot: Robot) -> Callable[..., Any]:
        """Torques per unit of each of the load's parameters (n, 10)."""
        body, T = robot.link_body(self.link)
        if body < 0:
            raise ArgumentError(f"link '{self.link}' does not move", remedy="Name the link that carries the load.")
        columns, to_body = list(range(10 * body, 10 * body + 10)), transport(T[:3, :3], T[:3, 3])
        return lambda q, dq, ddq: torque_regressor(robot, q, dq, ddq)[:, columns] @ to_body
