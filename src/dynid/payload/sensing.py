"""Settings of a force and torque sensor: what is known about it, and what is estimated with the load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ArgumentError

Find = Literal["drift", "bias_per_log", "orientation", "gravity", "compliance"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SensorCalibration:
    """Gains, cross-talk and bias of a sensor: ``measured = gain @ true + bias``."""

    gain: Floats
    """(6, 6) measured channel per true channel; units [N, N m] per [N, N m]"""
    stderr: Floats
    """(6, 6) standard deviations; infinite where the data leave a gain open, which is then that of a perfect sensor"""
    bias: Floats
    """(6,) constant wrench [N, N m], sensor axes"""
    residual_std: Floats
    """(6,) standard deviation of the residual of each channel [N, N m]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensing:
    """Settings of the sensor: what is known about it, and what to estimate with the load."""

    bias: bool = True
    """Estimate a constant wrench."""
    find: tuple[Find, ...] = ()
    """What else is estimated: "drift", a linear change of the bias over time (several runs must share one clock);
    "bias_per_log", for a sensor that was zeroed between logs; "orientation" of the sensor in its frame; direction of
    "gravity" in base axes; "compliance" of the sensor, from the load's swinging, without the two before."""
    sign: Literal[1, -1] = 1
    """1 where the sensor reports the wrench on the load, -1 where it reports the wrench on the robot."""
    axes: Literal["sensor", "base"] = "sensor"
    """Whether wrenches were recorded in the sensor's axes or in those of the base."""
    moment_unit: float = 1.0
    """Size of the unit of recorded moments [N m]: 0.001 for N mm; negative where they are reversed against the forces.
    """
    delay_s: float = 0.0
    """Delay of the wrench against the positions [s]; `find_wrench_delay` estimates it."""
    calibration: SensorCalibration | None = None
    """Gains, cross-talk and bias to undo first; an estimated bias is then the change since the calibration."""

    def __post_init__(self) -> None:
        """Refuse unknown names, and searches that exclude each other."""
        if unknown := set(self.find) - set(get_args(Find)):
            known = ", ".join(get_args(Find))
            raise ArgumentError(f"find: there is no '{min(unknown)}'", remedy=f"Give a tuple of some of {known}.")
        if "compliance" in self.find and self.is_moved:
            reason = "compliance excludes orientation and gravity"
            raise ArgumentError(reason, place="find", remedy="Find these in slow motion.")

    @property
    def is_moved(self) -> bool:
        """Whether the orientation of the sensor or the direction of gravity is estimated."""
        return "orientation" in self.find or "gravity" in self.find

    def correct(self, wrench: Floats, R_sensor_base: Floats) -> Floats:
        """Wrenches (N, 6) [N, N m] in the sensor's axes, without errors of sign, unit, gains and cross-talk.

        Args:
            wrench: (N, 6) as recorded.
            R_sensor_base: (N, 3, 3) axes of the base in those of the sensor.
        """
        if self.axes == "base":
            turned = [(R_sensor_base @ half[..., None])[..., 0] for half in np.split(wrench, 2, axis=1)]
            wrench = np.concatenate(turned, axis=1)
        wrench = self.sign * wrench * np.repeat([1.0, self.moment_unit], 3)
        if self.calibration is None:
            return wrench
        return np.asarray((wrench - self.calibration.bias) @ np.linalg.inv(self.calibration.gain).T)
