"""A load from a force and torque sensor on the robot ([Atkeson1986] sections 2.1 and 3.2).

    measured wrench = A(motion) phi + bias + drift * time

A is the matrix of eq. (8) in the sensor's frame. At rest only mass and first moment act (eq. 21); the inertia is then
said to be undetermined, not guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import ArgumentError, DataError, IdentifiabilityError
from dynid.load.load import Load
from dynid.load.load_solver import LinearSolution, find_implausible_inertia, solve_weighted
from dynid.load.physical_load import possible_load
from dynid.load.sensor_calibration import SensorCalibration
from dynid.load.sensor_pose import sensor_columns, turn_angle, turned_solution
from dynid.load.wrench_equations import (
    WrenchData,
    WrenchForm,
    pose_equations,
    robot_equations,
    undelayed_wrench,
)
from dynid.processing.experiment import Experiment
from dynid.robot.model import STANDARD_GRAVITY, Robot

__all__ = ["Sensing", "identify_load", "identify_load_from_poses", "load_from_solution", "solve_load", "wrench_data"]

Floats = NDArray[np.float64]
REVERSED = "the mass is negative: check_wrench says what may be wrong with sign, unit or axes"
STRANGE = 0.3
"""Residual over the weight of the load above which poses and wrenches hardly belong together."""
FAR = 3.0
"""Distance of a centre of mass that no load on a wrist has [m]."""
STILL = "the motion does not reveal the inertia: move the load with angular acceleration about several axes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensing:
    """What is known of the sensor, and what is to be found out with the load."""

    bias: bool = True
    """Estimate a constant wrench."""
    drift: bool = False
    """Estimate a linear change of that bias over time; several runs must then share one clock."""
    bias_per_log: bool = False
    """Estimate a bias for each log, for a sensor that was zeroed in between."""
    sign: int = 1
    """1 where the sensor reports the wrench on the load, -1 where it reports the wrench on the robot."""
    moment_sign: int = 1
    """-1 where the moments alone are reversed against the forces."""
    axes: Literal["sensor", "base"] = "sensor"
    """Whether wrenches were recorded in the sensor's axes or in those of the base."""
    moment_unit: float = 1.0
    """Size of the unit of recorded moments [N m]: 0.001 for N mm."""
    delay_s: float = 0.0
    """How late wrenches were stamped against positions [s]; `find_wrench_delay` estimates it."""
    find_orientation: bool = False
    """Estimate how the sensor is turned against its frame."""
    find_gravity: bool = False
    """Estimate which way gravity points."""
    calibration: SensorCalibration | None = None
    """Gains, cross-talk and bias to be undone first; a bias estimated as well is what has changed since."""

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        if self.sign not in (1, -1) or self.moment_sign not in (1, -1):
            raise ArgumentError(f"sign is 1 or -1, not {self.sign}; likewise moment_sign, not {self.moment_sign}")
        if not 0.0 < self.moment_unit < np.inf:
            raise ArgumentError(
                f"moment_unit is positive, not {self.moment_unit}", remedy="Give 0.001 for N mm; see moment_sign."
            )
        if self.bias_per_log and not self.bias:
            raise ArgumentError("bias_per_log without bias", remedy="Leave bias on.")
        if not np.isfinite(self.delay_s):
            raise ArgumentError(f"delay_s is {self.delay_s}", remedy="Give seconds.")
        if self.axes not in ("sensor", "base"):
            raise ArgumentError(f"axes are 'sensor' or 'base', not {self.axes!r}")

    def corrected(self, data: WrenchData) -> WrenchData:
        """The equations with sign, unit and calibration put right."""
        unit = np.repeat([1.0, self.moment_unit * self.moment_sign], 3)
        wrench = self.sign * data.wrench * unit
        if self.calibration is not None:
            wrench = (wrench - self.calibration.bias) @ self.calibration.inverse.T
        return replace(data, wrench=wrench)


def identify_load(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    sensor_frame: str,
    form: WrenchForm | None = None,
    interval_s: float = 0.1,
    sensing: Sensing | None = None,
    noise_std: ArrayLike | None = None,
    tare: Load | None = None,
    physical: bool = True,
) -> Load:
    """Identify the load beyond a force and torque sensor.

    Args:
        robot: Geometry and gravity.
        experiments: With a wrench channel.
        sensor_frame: Link in whose frame the wrench is measured.
        form: ``differential`` uses accelerations, ``integral`` intervals without them (eqs. 25-27), ``static`` gravity
            only; by default static where the experiments hold no accelerations.
        interval_s: Length of the intervals of the integral form [s].
        sensing: What is known of the sensor, and what of it to estimate; a constant bias by default.
        noise_std: (6,) standard deviations of the channels where they are known; from the residuals by default.
        tare: The gripper or tool alone, subtracted with its covariance.
        physical: Replace an estimate that no body can have by the nearest possible one, with a note.

    Raises:
        DataError: There is no wrench in the experiments.
        IdentifiabilityError: Not even the mass can be determined.
    """
    sensing = sensing or Sensing()
    data = wrench_data(robot, experiments, sensor_frame, sensing, form=form, interval_s=interval_s)
    load = solve_load(data, frame=sensor_frame, sensing=sensing, noise_std=noise_std)
    load = load if tare is None else load.minus(tare)
    return possible_load(load) if physical else load


def identify_load_from_poses(
    orientation: ArrayLike,
    wrench: ArrayLike,
    *,
    time: ArrayLike | None = None,
    position: ArrayLike | None = None,
    gravity: ArrayLike = STANDARD_GRAVITY,
    frame: str = "sensor",
    sensing: Sensing | None = None,
    tare: Load | None = None,
    physical: bool = True,
) -> Load:
    """Identify a load from the sensor's poses, without a robot model; at rest mass and centre of mass only.

    Args:
        orientation: (N, 4) quaternions w, x, y, z, or (N, 3, 3) rotations of the sensor in the world.
        wrench: (N, 6) force [N] and moment [N m], sensor axes.
        time: (N,) [s], for a drift, or for motion.
        position: (N, 3) of the sensor's origin in the world [m], smooth, where the load was moved quickly.
        gravity: (3,) in the world's axes [m/s^2].
        frame: Name of the sensor's frame.
        sensing: What is known of the sensor, and what of it to estimate.
        tare: The gripper or tool alone.
        physical: Replace an estimate that no body can have by the nearest possible one, with a note.
    """
    sensing = sensing or Sensing()
    if sensing.delay_s != 0.0:
        raise ArgumentError("poses have no clock to be late by", remedy="Pair poses and wrenches of the same instants.")
    if sensing.axes != "sensor":
        raise ArgumentError("turn the wrenches into the sensor's axes first", remedy="wrench @ R for every pose.")
    data = sensing.corrected(pose_equations(orientation, wrench, time=time, position=position, gravity=gravity))
    load = _questioned(solve_load(data, frame=frame, sensing=sensing), data)
    load = load if tare is None else load.minus(tare)
    return possible_load(load) if physical else load


def _questioned(load: Load, data: WrenchData) -> Load:
    """With a note where forces are not those of a weight in these poses, or moments not those of a near one."""
    explained = np.linalg.norm((data.matrix @ load.vector).std(axis=0)[:3])
    share = float(np.linalg.norm(load.residual_std[:3]) / max(float(explained), 1e-300))
    notes = []
    if share > STRANGE:
        notes.append(
            f"what the load does not explain is {100 * share:.0f} % of its weight: look at the order of quaternions "
            "(w, x, y, z), at R_world_sensor against its transpose, at sign and axes"
        )
    if np.linalg.norm(np.nan_to_num(load.com)) > FAR:
        notes.append(f"the centre of mass is {np.linalg.norm(load.com):.0f} m away: moments are in N mm (moment_unit)")
    return replace(load, notes=(*load.notes, *notes))


def wrench_data(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    frame: str,
    sensing: Sensing,
    *,
    form: WrenchForm | None = None,
    interval_s: float = 0.1,
    with_axes: bool = False,
) -> WrenchData:
    """The equations of all experiments, wrenches put right; see `identify_load`."""
    runs = (experiments,) if isinstance(experiments, Experiment) else tuple(experiments)
    chosen = form or ("differential" if any(np.any(run.ddq) for run in runs) else "static")
    parts = [
        robot_equations(
            robot,
            undelayed_wrench(run, sensing.delay_s),
            frame,
            form=chosen,
            interval_s=interval_s,
            axes=sensing.axes,
            with_axes=with_axes or sensing.find_gravity,
        )
        for run in runs
    ]
    log = np.repeat(np.arange(len(parts)), [len(part.time) for part in parts])
    return sensing.corrected(replace(WrenchData.joined(parts), log=log if len(parts) > 1 else None))


def solve_load(
    data: WrenchData, *, frame: str, sensing: Sensing | None = None, noise_std: ArrayLike | None = None
) -> Load:
    """Load, and what `sensing` asks for, from equations; every channel weighted by its own residual.

    Args:
        data: The equations, wrenches put right.
        frame: Name of the frame the load is described in.
        sensing: What of the sensor to estimate with the load.
        noise_std: (6,) standard deviations of the channels where they are known.
    """
    sensing = sensing or Sensing()
    if len(data.time) == 0:
        raise DataError("no sample with a finite wrench is left")
    if sensing.find_orientation or sensing.find_gravity:
        return _load_and_pose(data, frame, sensing)
    std = None if noise_std is None else np.asarray(noise_std, dtype=float)
    if std is not None and (std.shape != (6,) or not (np.isfinite(std).all() and (std > 0.0).all())):
        raise ArgumentError(f"noise_std is six positive standard deviations, not {std}")
    W = np.concatenate([data.matrix, *sensor_columns(data, sensing)], axis=2)
    return load_from_solution(solve_weighted(W, data.wrench, std), frame, sensing)


def load_from_solution(
    solution: LinearSolution,
    frame: str,
    sensing: Sensing,
    method: str = "force and torque sensor, weighted least squares",
) -> Load:
    """The load, bias and drift that a solution holds, in this order; what is as good as unknown is marked."""
    if solution.undetermined[9]:
        raise IdentifiabilityError(
            "the mass cannot be told from the sensor's bias", remedy="Turn the load through several orientations."
        )
    undetermined = _judged(solution)
    values = np.where(solution.undetermined, 0.0, solution.values)
    spread = np.where(solution.undetermined, np.inf, np.sqrt(np.maximum(np.diag(solution.covariance), 0.0)))
    end = 10 + 6 * sensing.bias
    nothing = np.zeros(6)
    return Load(
        frame=frame,
        vector=np.where(undetermined, 0.0, values[:10]),
        covariance=solution.covariance[:10, :10],
        undetermined=undetermined,
        bias=values[10:16] if sensing.bias else nothing,  # of the first log
        bias_stderr=spread[10:16] if sensing.bias else nothing,
        drift=values[end : end + 6] if sensing.drift else nothing,
        residual_std=solution.noise_std,
        method=method,
        notes=(STILL,) * bool(undetermined[:6].any()) + (REVERSED,) * bool(values[9] < 0.0),
    )


def _judged(solution: LinearSolution) -> NDArray[np.bool_]:
    """Which of the ten parameters are open, moments of inertia less certain than any plausible value among them."""
    undetermined = solution.undetermined[:10].copy()
    if (undetermined[:6] | find_implausible_inertia(solution.values[:10], solution.covariance)).any():
        undetermined[:6] = True
    return undetermined


def _load_and_pose(data: WrenchData, frame: str, sensing: Sensing) -> Load:
    asked = {"orientation": sensing.find_orientation, "gravity": sensing.find_gravity}
    pose, solution, (turn, tilt) = turned_solution(data, sensing, **asked)
    load = load_from_solution(solution, frame, sensing)
    notes, extras = list(load.notes), dict[str, Floats]()
    if sensing.find_orientation:
        angle = turn_angle(pose.R_frame_sensor)
        spread = np.rad2deg(turn.max())
        notes.append(f"the sensor is turned by {angle:.1f} deg against '{frame}' (std {spread:.2g} deg)")
        extras |= {"R_frame_sensor": pose.R_frame_sensor, "orientation_stderr": turn}
        if pose.sign < 0:
            notes.append("the sensor reports the wrench on the robot: its sign was turned")
    if sensing.find_gravity:
        assert pose.gravity is not None
        assert data.gravity is not None
        sine = np.linalg.norm(np.cross(pose.gravity, data.gravity))
        angle = float(np.rad2deg(np.arctan2(sine, pose.gravity @ data.gravity)))
        notes.append(f"gravity points {angle:.1f} deg off what the model says")
        extras |= {"gravity": pose.gravity, "gravity_stderr": tilt}
    return replace(load, notes=tuple(notes), extras=extras)
