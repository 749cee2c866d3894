"""Which quantities are measured along a designed motion, which parameters they shall reveal, and their information.

The user makes a `Measured` (joint torques, or the wrench of a load) and gives it to `design_excitation`, whose search
calls `Observation.information` for every motion it tries.

With W (N m, b) the observation matrix of N samples of m measured quantities, each row divided by the standard deviation
of its noise, the information is ``A = W^T W`` (b, b): the inverse of the covariance of the least-squares estimate.

A measured quantity depends on few parameters: the torque of joint i only on the bodies that it carries. Therefore each
quantity has a matrix W_i of its own, with those columns only: a third of the memory and arithmetic of the whole W.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.checks import as_row
from dynid.data_reduction.cross_products import CrossProducts
from dynid.dynamics.inertia_maps import transport
from dynid.dynamics.regressor import torque_regressor
from dynid.dynamics.wrench import sensor_wrench_regressor
from dynid.errors import ArgumentError
from dynid.identifiability.base import choose_base
from dynid.identifiability.base_set import BaseParameters, require_kept_columns
from dynid.identifiability.layout import INERTIAL_SYMBOLS, INERTIAL_UNITS
from dynid.robot.model import Robot
from dynid.tape import record

STEP_WIDTH = 0.02
"""Speed up to which the sign in dry friction is smoothed while a motion is designed [rad/s or m/s] (convention)."""


def with_smooth_friction(robot: Robot) -> Robot:
    """Replace the terms of a robot by smoothed ones: the sign of a velocity has no gradient, a smooth step has one."""
    joints = [replace(joint, terms=tuple(t.smoothed(STEP_WIDTH) for t in joint.terms)) for joint in robot.joints]
    return replace(robot, joints=tuple(joints))


class Observation:
    """Measured quantities that are linear in b parameters, each weighted by its noise, over the samples of a motion."""

    def __init__(self, dof: int, rows: Callable[..., Any], noise: Floats) -> None:
        """Record and compile.

        Args:
            dof: Number of joints n.
            rows: Function of q, dq and ddq (n,) that returns the quantities per unit of each parameter (m, b). It is
                called once, with scalars that record what is done with them.
            noise: (m,) standard deviation of each measured quantity, positive, in its SI unit.
        """
        states = {state: (dof,) for state in ("q", "dq", "ddq")}
        used = record(rows, **states).sparsity("output")  # (m, b) whether an entry is not zero at all states
        self.size = used.shape[1]
        # quantity -> the parameters on which it depends
        columns_of = {row: np.flatnonzero(columns) for row, columns in enumerate(used) if columns.any()}
        # for each quantity the flat indices of the entries of W_i^T W_i in the information, and their weight
        places = [columns[:, None] * self.size + columns for columns in columns_of.values()]
        self._parts = [(place, float(noise[row]) ** -2) for place, row in zip(places, columns_of, strict=True)]

        def nonzero(q: Any, dq: Any, ddq: Any) -> dict[str, Any]:
            """One row of each W_i, at one state."""
            found = rows(q, dq, ddq)
            return {f"row{row}": found[row, columns] for row, columns in columns_of.items()}

        self._products = CrossProducts(record(nonzero, **states))

    def information(self, q: Floats, dq: Floats, ddq: Floats) -> Floats:
        """Compute the information (b, b) of a motion with positions, velocities and accelerations (N, n)."""
        A = np.zeros(self.size**2)
        for (place, weight), product in zip(self._parts, self._products(q, dq, ddq), strict=True):
            A[place] += weight * product
        return A.reshape(self.size, self.size)

    def pullback(self, G: Floats, q: Floats, dq: Floats, ddq: Floats) -> tuple[Floats, Floats, Floats]:
        """Compute the gradients of the scalar ``sum(G * information)`` by q, dq and ddq, each (N, n), for G (b, b)."""
        gradient = self._products.pullback([weight * G.take(place) for place, weight in self._parts], q, dq, ddq)
        return gradient["q"], gradient["dq"], gradient["ddq"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """Measured quantities, their noise, and the parameters that they shall reveal.

    Make one with `joint_torques`, `load_wrench` or `load_torques`.
    """

    kind: Literal["joint torques", "load wrench", "load torques"]
    """Joint torques that the robot's own parameters cause, the wrench of a load, or the joint torques of a load."""
    noise: Floats
    """Standard deviation of each quantity: (6,) force [N] and moment [N m] of a wrench; (n,) or () [N m or N]."""
    names: tuple[str, ...] = INERTIAL_SYMBOLS
    """(b,) names of the parameters to reveal; those of a load by default, in the link's frame."""
    units: tuple[str, ...] = INERTIAL_UNITS
    """(b,) their SI units."""
    link: str = ""
    """Name of the link that carries the load or the sensor."""
    columns: tuple[int, ...] = ()
    """(b,) columns of the robot's regressor, for joint torques only."""

    @classmethod
    def joint_torques(cls, robot: Robot, noise: ArrayLike = 1.0, base: BaseParameters | None = None) -> Measured:
        """Measure joint torques, to reveal base parameters of the robot itself.

        Args:
            robot: The robot.
            noise: Standard deviation of each joint's torque, (n,) or one for all [N m or N].
            base: The parameters; the robot's base parameters by default.
        """
        found = require_kept_columns(choose_base(robot, base))
        std = as_row("noise", noise, robot.dof, same=True, above=0.0)
        return cls(kind="joint torques", noise=std, names=found.names, units=found.units, columns=found.columns)

    @classmethod
    def load_wrench(cls, link: str, force_noise: float = 1.0, moment_noise: float = 1.0) -> Measured:
        """Measure force and moment at a sensor on a link, to reveal the load beyond it (`dynid.identify_load`).

        Args:
            link: The link that carries the sensor.
            force_noise: Standard deviation of each force [N].
            moment_noise: Standard deviation of each moment [N m].
        """
        return cls(kind="load wrench", noise=np.repeat([force_noise, moment_noise], 3), link=link)

    @classmethod
    def load_torques(cls, link: str, noise: ArrayLike = 1.0) -> Measured:
        """Measure joint torques, to reveal a load on a known robot (`dynid.identify_payload`).

        Args:
            link: The link that carries the load.
            noise: Standard deviation of each joint's torque, (n,) or one for all [N m or N].
        """
        return cls(kind="load torques", noise=np.asarray(noise, dtype=float), link=link)

    def describe_assumed(self, rate_hz: float) -> str:
        """Write a phrase with the noise and the rate that predictions assume."""
        if self.kind == "load wrench":
            noise = f"noise of {self.noise[0]:g} N in each force and {self.noise[-1]:g} N m in each moment"
        else:
            low, high = np.min(self.noise), np.max(self.noise)
            span = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            noise = f"torque noise of {span} N m (N where a joint slides)"
        return f"{noise}, independent from sample to sample at {rate_hz:g} Hz"

    def observation(self, robot: Robot) -> Observation:
        """Record and compile the measured quantities of a robot, per unit of the b parameters."""
        rows: Callable[..., Any]
        if self.kind == "joint torques":
            rows = lambda q, dq, ddq: torque_regressor(robot, q, dq, ddq)[:, list(self.columns)]  # noqa: E731
        elif self.kind == "load wrench":
            rows = lambda q, dq, ddq: sensor_wrench_regressor(robot, self.link, q, dq, ddq)  # noqa: E731
        else:
            body, T = robot.link_body(self.link)
            if body < 0:
                raise ArgumentError(f"link '{self.link}' does not move", remedy="Name the link that carries the load.")
            columns = list(range(10 * body, 10 * body + 10))  # the ten parameters of the body that moves with the link
            to_body = transport(T[:3, :3], T[:3, 3])  # the load's parameters from the link's to the body's frame
            rows = lambda q, dq, ddq: torque_regressor(robot, q, dq, ddq)[:, columns] @ to_body  # noqa: E731
        size = 6 if self.kind == "load wrench" else robot.dof
        return Observation(robot.dof, rows, as_row("noise", self.noise, size, same=True, above=0.0))
