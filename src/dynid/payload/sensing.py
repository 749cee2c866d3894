"""Settings of a force and torque sensor: what is known about it, and what is estimated together with the load.

The user gives a `Sensing` to `identify_load` and its relatives; `dynid.payload.wrench_equations` calls `correct` with
the recorded wrenches. Shapes: N samples; a wrench is force, then moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from dynid.array_types import Floats
from dynid.errors import ArgumentError

Find = Literal["drift", "bias_per_log", "orientation", "gravity", "compliance"]
"""What can be estimated with the load besides a constant bias; see `Sensing.find`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SensorCalibration:
    """Gains, cross-talk and bias of a sensor: ``measured = gain @ true + bias``."""

    gain: Floats
    """(6, 6) measured channel per true channel [N, N m] per [N, N m]."""
    stderr: Floats
    """(6, 6) standard deviations of the gains; infinite for a gain that the data leave open, which is then that of a
    perfect sensor."""
    bias: Floats
    """(6,) constant wrench in the sensor's axes [N, N m]."""
    residual_std: Floats
    """(6,) standard deviation of the residual of each channel [N, N m]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensing:
    """Settings of the sensor: what is known about it, and what is estimated with the load."""

    bias: bool = True
    """Whether a constant wrench of the sensor is estimated."""
    find: tuple[Find, ...] = ()
    """What else is estimated: "drift", a linear change of the bias over time (several runs must share one clock);
    "bias_per_log", for a sensor that was zeroed between logs; "orientation" of the sensor in its frame; direction of
    "gravity" in base axes; "compliance" of the sensor, from the load's oscillation on it, which excludes "orientation"
    and "gravity"."""
    sign: Literal[1, -1] = 1
    """1 if the sensor reports the wrench on the load, -1 if it reports the wrench on the robot."""
    axes: Literal["sensor", "base"] = "sensor"
    """Whether wrenches were recorded in the sensor's axes or in those of the base."""
    moment_unit: float = 1.0
    """Size of the unit of recorded moments [N m]: 0.001 for N mm; negative if their sign is opposite to that of the
    forces."""
    delay_s: float = 0.0
    """Delay of the wrench behind the positions [s]; `find_wrench_delay` estimates it."""
    calibration: SensorCalibration | None = None
    """Gains, cross-talk and bias that are undone first; an estimated bias is then the change since the calibration."""

    def __post_init__(self) -> None:
        """Refuse unknown names, and estimates that exclude each other."""
        if unknown := set(self.find) - set(get_args(Find)):
            known = ", ".join(get_args(Find))
            raise ArgumentError(f"find: there is no '{min(unknown)}'", remedy=f"Give a tuple of some of {known}.")
        if "compliance" in self.find and self.finds_pose:
            reason = "compliance excludes orientation and gravity"
            raise ArgumentError(reason, place="find", remedy="Find these in slow motion.")

    @property
    def finds_pose(self) -> bool:
        """Whether the orientation of the sensor or the direction of gravity is estimated."""
        return "orientation" in self.find or "gravity" in self.find

    def correct(self, wrench: Floats, R_sensor_base: Floats) -> Floats:
        """Undo errors of axes, sign, unit, gains and cross-talk; return wrenches (N, 6) in the sensor's axes [N, N m].

        Args:
            wrench: (N, 6) wrenches as recorded.
            R_sensor_base: (N, 3, 3) rotations from base to sensor axes.
        """
        if self.axes == "base":
            rotated = [(R_sensor_base @ half[..., None])[..., 0] for half in np.split(wrench, 2, axis=1)]
            wrench = np.concatenate(rotated, axis=1)
        wrench = self.sign * wrench * np.repeat([1.0, self.moment_unit], 3)
        if self.calibration is None:
            return wrench
        return np.asarray((wrench - self.calibration.bias) @ np.linalg.inv(self.calibration.gain).T)
