"""Laws of drives as formulas: the torque of a joint's drive, and its slope over the joint's velocity.

A law is recorded with symbols in place of numbers, as the dynamics are: `limited` clips without branches. The slope
lets the time step treat the velocity feedback implicitly, which keeps stiff feedback stable at any step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.control_loop.laws import as_gains


@dataclass(frozen=True, slots=True)
class Seen:
    """What the drive of one joint knows at an instant; numbers or symbols."""

    error: Any
    """Commanded minus measured position [rad or m]."""
    command_velocity: Any
    """Commanded velocity, zero where none is sent [rad/s or m/s]."""
    velocity: Any
    """Velocity of the joint [rad/s or m/s]."""
    integral: Any
    """Integral of the position error [rad s or m s]; zero for laws without."""
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
    """Kinds of parameters that it can read; those that a model does not use have their neutral value."""
    needs: ClassVar[tuple[str, ...]] = ()
    """What the law or the motion must state, such as kp."""
    integrates: bool
    """Whether it uses the integral of the position error."""

    @abstractmethod
    def torque(self, values: Mapping[str, Any], seen: Seen) -> tuple[Any, Any]:
        """Torque [N m or N], and its slope over the velocity [N m s/rad or N s/m].

        Args:
            values: Value of every kind that the model uses.
            seen: What the drive knows.
        """

    def gains(self, dof: int) -> dict[str, Floats]:
        """(n,) kp, kd, ki and voltage where a motion states none; zero where the law does not, either."""
        given = {name: getattr(self, name, None) for name in ("kp", "kd", "ki", "voltage")}
        return {name: as_gains(0.0 if value is None else value, name, dof) for name, value in given.items()}


def limited(value: Any, limit: Any) -> tuple[Any, Any]:
    """A value clipped to plus and minus a limit, and 1 inside or 0 outside, without branches."""
    clipped = 0.5 * (np.abs(value + limit) - np.abs(value - limit))
    return clipped, 0.5 + 0.5 * np.sign(limit - np.abs(value))


@dataclass(frozen=True)
class PositionLaw(DriveLaw):
    """``g (kp e + kd (dq_r - dq) + ki sum(e))``, within the torque limit and the torque-speed line of the motor.

    The line is that of a motor at its supply voltage: at most ``stall_torque (1 - dq / no_load_speed)``.
    """

    kp: ArrayLike | None = None
    """Gains of the position error where motions state none [N m/rad or N/m]."""
    kd: ArrayLike | None = None
    """Gains of the velocity error where motions state none [N m s/rad or N s/m]."""
    ki: ArrayLike | None = None
    """Gains of the integral where motions state none [N m/(rad s) or N/(m s)]; None: no integral."""
    needs = ("kp",)
    kinds: ClassVar[tuple[str, ...]] = (
        "gain_scale", "kp_scale", "kd_scale", "ki_scale", "effort_limit", "stall_torque", "no_load_speed",
    )  # fmt: skip

    @property
    def integrates(self) -> bool:  # type: ignore[override]
        """Whether there is an integral."""
        return self.ki is not None

    def torque(self, values: Mapping[str, Any], seen: Seen) -> tuple[Any, Any]:
        gain = values.get("gain_scale", 1.0)
        kd = gain * values.get("kd_scale", 1.0) * seen.kd
        torque = gain * values.get("kp_scale", 1.0) * seen.kp * seen.error + kd * (
            seen.command_velocity - seen.velocity
        )
        if self.integrates:
            torque = torque + gain * values.get("ki_scale", 1.0) * seen.ki * seen.integral
        slope = -kd
        if "effort_limit" in values:
            torque, inside = limited(torque, values["effort_limit"])
            slope = slope * inside
        if "stall_torque" in values and "no_load_speed" in values:
            stall, fall = values["stall_torque"], values["stall_torque"] / values["no_load_speed"]
            # between the two lines stall (+-1 - v / v0): clip the torque that is measured from their middle
            centred, inside = limited(torque + fall * seen.velocity, stall)
            torque, slope = centred - fall * seen.velocity, slope * inside - fall * (1.0 - inside)
        return torque, slope


@dataclass(frozen=True)
class MotorLaw(DriveLaw):
    """A DC motor under a duty cycle: ``u = V clip(g kp e)``, ``tau = kt (u - kt dq) / R``, current within its limit."""

    kp: ArrayLike | None = None
    """Duty cycle per position error where motions state none [1/rad]."""
    voltage: ArrayLike | None = None
    """Supply voltage where motions state none [V]."""
    duty_per_gain: float = 1.0
    """Duty cycle per position error and unit of kp; for gains in the register's unit of a servo [1/rad]."""
    needs = ("kp", "voltage")
    kinds: ClassVar[tuple[str, ...]] = ("gain_scale", "kt", "resistance", "current_limit")
    integrates = False

    def torque(self, values: Mapping[str, Any], seen: Seen) -> tuple[Any, Any]:
        kt, per_ohm = values["kt"], 1.0 / values["resistance"]
        duty, _ = limited(values.get("gain_scale", 1.0) * self.duty_per_gain * seen.kp * seen.error, 1.0)
        current = (duty * seen.voltage - kt * seen.velocity) * per_ohm
        slope = -kt * kt * per_ohm
        if "current_limit" in values:
            current, inside = limited(current, values["current_limit"])
            slope = slope * inside
        return kt * current, slope
