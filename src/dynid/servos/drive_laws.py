"""Laws of drives: formulas for the torque of a joint's drive, and its derivative with respect to the joint's velocity.

`PositionLaw` is PID control of a position, `MotorLaw` a DC motor with a voltage proportional to the position error.
Users choose one and give it to a model of servos. The simulation (servo_step.py) calls `DriveLaw.torque` with symbols
instead of numbers, to record a program that is then compiled; such a program has no branches, so a law has none:
`clip_value` clips without `if`. The derivative lets the simulation treat velocity feedback implicitly, which keeps
stiff feedback stable at any time step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.control_loop.laws import as_gains


@dataclass(frozen=True, slots=True)
class Seen:
    """Quantities that the drive of one joint measures or gets at an instant; numbers, or symbols while recording."""

    error: Any
    """Commanded minus measured position [rad or m]."""
    command_velocity: Any
    """Commanded velocity; zero if none is sent [rad/s or m/s]."""
    velocity: Any
    """Velocity of the joint [rad/s or m/s]."""
    integral: Any
    """Integral of the position error [rad s or m s]; zero for laws without an integral."""
    kp: Any
    """Gain of the position error, in the law's unit."""
    kd: Any
    """Gain of the velocity error, in the law's unit."""
    ki: Any
    """Gain of the integral, in the law's unit."""
    voltage: Any
    """Supply voltage [V]."""


class DriveLaw(ABC):
    """A formula for the torque of one joint's drive."""

    kinds: ClassVar[tuple[str, ...]]
    """Names of the parameters that the formula can have, such as ``effort_limit`` (catalogue: `dynid.servos.kinds`);
    those that a model leaves out have no effect."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Names of the gains that the law or the log of the motion must state, such as kp."""
    integrates: bool
    """Whether it uses the integral of the position error."""

    @abstractmethod
    def torque(self, values: Mapping[str, Any], seen: Seen) -> tuple[Any, Any]:
        """Compute the torque [N m or N] and its derivative with respect to the velocity [N m s/rad or N s/m].

        Args:
            values: Name of a parameter -> its value, for every one that the model has.
            seen: Position error, velocity, gains and other quantities of the drive.
        """

    def gains(self, dof: int) -> dict[str, Floats]:
        """Return kp, kd, ki and voltage, (n,) each, for motions that state none; zero if the law states none either."""
        given = {name: getattr(self, name, None) for name in ("kp", "kd", "ki", "voltage")}
        return {name: as_gains(0.0 if value is None else value, name, dof) for name, value in given.items()}


def clip_value(value: Any, limit: Any) -> tuple[Any, Any]:
    """Clip a value to plus and minus a limit, without branches.

    Returns:
        The clipped value; and 1 if the value was within the limit, 0 if beyond, by which derivatives are multiplied.
    """
    clipped = 0.5 * (np.abs(value + limit) - np.abs(value - limit))
    return clipped, 0.5 + 0.5 * np.sign(limit - np.abs(value))


@dataclass(frozen=True)
class PositionLaw(DriveLaw):
    """PID control of a position: ``g (kp e + kd (dq_r - dq) + ki integral(e))``, clipped.

    Here e is the position error, dq_r the commanded velocity and g the ``gain_scale``. The torque stays within the
    ``effort_limit`` and below the line of a motor at its supply voltage, ``stall_torque (1 - dq / no_load_speed)``.
    ``kp_scale``, ``kd_scale`` and ``ki_scale`` are factors of single gains.
    """

    kp: ArrayLike | None = None
    """Gains of the position error for motions that state none [N m/rad or N/m]."""
    kd: ArrayLike | None = None
    """Gains of the velocity error for motions that state none [N m s/rad or N s/m]."""
    ki: ArrayLike | None = None
    """Gains of the integral for motions that state none [N m/(rad s) or N/(m s)]; None for no integral."""
    needs = ("kp",)
    kinds: ClassVar[tuple[str, ...]] = (
        "gain_scale", "kp_scale", "kd_scale", "ki_scale", "effort_limit", "stall_torque", "no_load_speed",
    )  # fmt: skip

    @property
    def integrates(self) -> bool:  # type: ignore[override]
        """Whether there is an integral."""
        return self.ki is not None

    def torque(self, values: Mapping[str, Any], seen: Seen) -> tuple[Any, Any]:
        """See `DriveLaw.torque`."""
        gain = values.get("gain_scale", 1.0)
        kp = gain * values.get("kp_scale", 1.0) * seen.kp
        kd = gain * values.get("kd_scale", 1.0) * seen.kd
        torque = kp * seen.error + kd * (seen.command_velocity - seen.velocity)
        if self.integrates:
            torque = torque + gain * values.get("ki_scale", 1.0) * seen.ki * seen.integral
        slope = -kd
        if "effort_limit" in values:
            torque, inside = clip_value(torque, values["effort_limit"])
            slope = slope * inside
        if "stall_torque" in values and "no_load_speed" in values:
            stall = values["stall_torque"]
            fall = stall / values["no_load_speed"]
            # between the lines stall (1 - v / v0) and stall (-1 - v / v0): clip the distance from their middle
            centred, inside = clip_value(torque + fall * seen.velocity, stall)
            torque = centred - fall * seen.velocity
            slope = slope * inside - fall * (1.0 - inside)
        return torque, slope


@dataclass(frozen=True)
class MotorLaw(DriveLaw):
    """A DC motor whose duty cycle is proportional to the position error e.

    Voltage ``u = V clip(g kp e)``, torque ``kt (u - kt dq) / R``, the current ``(u - kt dq) / R`` within its limit.
    """

    kp: ArrayLike | None = None
    """Duty cycle per position error for motions that state none [1/rad]; in other units with `duty_per_gain`."""
    voltage: ArrayLike | None = None
    """Supply voltage V for motions that state none [V]."""
    duty_per_gain: float = 1.0
    """Factor of kp, for gains in the unit of a servo's register: duty cycle per position error and unit of kp
    [1/rad]."""
    needs = ("kp", "voltage")
    kinds: ClassVar[tuple[str, ...]] = ("gain_scale", "kt", "resistance", "current_limit")
    integrates = False

    def torque(self, values: Mapping[str, Any], seen: Seen) -> tuple[Any, Any]:
        """See `DriveLaw.torque`."""
        kt = values["kt"]
        per_ohm = 1.0 / values["resistance"]
        # the clipping of the duty cycle does not depend on the velocity; back-EMF gives the slope -kt^2 / R
        duty, _ = clip_value(values.get("gain_scale", 1.0) * self.duty_per_gain * seen.kp * seen.error, 1.0)
        current = (duty * seen.voltage - kt * seen.velocity) * per_ohm
        slope = -kt * kt * per_ohm
        if "current_limit" in values:
            current, inside = clip_value(current, values["current_limit"])
            slope = slope * inside
        return kt * current, slope
