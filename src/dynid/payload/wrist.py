"""Identify a load with a force and torque sensor on the robot ([Atkeson1986] sections 2.1 and 3.2).

    measured wrench = A(motion) phi + bias + drift * time

A (6, 10) is the matrix of eq. (8) in the sensor's frame, phi (10,) the parameters of the load. At rest only mass and
first moments act (eq. 21); the inertia is then reported as undetermined.

`dynid.payload.wrench_equations` makes the equations, `solve_load` solves them, together with what `Sensing.find` asks
for: a drift, the compliance of the sensor, its orientation, or the direction of gravity. `identify_load` (from
processed experiments) and `identify_load_from_poses` (without a robot model) are public; both return a `Load`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dynid.array_types import Floats
from dynid.decompositions import one_blas_thread
from dynid.errors import ArgumentError, DataError, IdentifiabilityError
from dynid.findings import Finding
from dynid.payload.load import LARGE_SHARE, SIGNIFICANT_STD, Load, make_possible, remark
from dynid.payload.load_solver import BlockEquations, LinearSolution, solve_load_equations
from dynid.payload.sensing import Sensing
from dynid.payload.sensor_search import SensorPose, find_compliance, find_sensor, resonances
from dynid.payload.wrench_equations import WrenchData, WrenchForm, pose_equations, wrench_data
from dynid.processing.experiment import Experiment
from dynid.robot.model import STANDARD_GRAVITY, Robot
from dynid.spatial import TINY

FAR = 3.0
"""Distance of a centre of mass from the sensor that no load on a wrist has [m] (convention)."""


@one_blas_thread()
def identify_load(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    sensor_frame: str,
    form: WrenchForm | None = None,
    interval_s: float = 0.1,
    sensing: Sensing | None = None,
    tare: Load | None = None,
    physical: bool = True,
) -> Load:
    """Identify the load beyond a force and torque sensor.

    Args:
        robot: Geometry and gravity.
        experiments: Experiments with a wrench channel.
        sensor_frame: Link in whose frame the wrench is measured.
        form: ``differential`` uses accelerations, ``integral`` intervals without them (eqs. 25-27), ``static`` gravity
            only, at the poses where the robot rests; by default static if the experiments have no accelerations.
        interval_s: Length of the intervals of the integral form [s].
        sensing: Settings of the sensor; by default a constant bias is estimated.
        tare: The gripper or tool alone, subtracted with its covariance.
        physical: Whether an estimate that no body can have is replaced by the nearest possible one, with a finding.

    Raises:
        DataError: There is no wrench in the experiments.
        IdentifiabilityError: Neither the mass nor any moment of inertia can be determined.

    Example:
        >>> found = dynid.identify_load(robot, wrist, sensor_frame="link3")
        >>> round(found.mass, 1)
        2.0
    """
    sensing = sensing or Sensing()
    data = wrench_data(robot, experiments, sensor_frame, sensing, form=form, interval_s=interval_s)
    load = solve_load(data, sensor_frame, sensing)
    load = load if tare is None else load.minus(tare)
    return make_possible(load) if physical else load


def identify_load_from_poses(
    orientation: ArrayLike,
    wrench: ArrayLike,
    *,
    time: ArrayLike | None = None,
    gravity: ArrayLike = STANDARD_GRAVITY,
    frame: str = "sensor",
    sensing: Sensing | None = None,
    tare: Load | None = None,
) -> Load:
    """Identify a load from the sensor's poses, at rest, without a robot model: mass and centre of mass only.

    An estimate that no body can have is replaced by the nearest possible one; `Load.extras` holds the plain estimate.

    Args:
        orientation: (N, 4) quaternions w, x, y, z, or (N, 3, 3) rotations from sensor to world axes.
        wrench: (N, 6) force [N] and moment [N m].
        time: (N,) times of the poses, needed for a drift only [s].
        gravity: (3,) gravity in the world's axes [m/s^2].
        frame: Name of the sensor's frame.
        sensing: Settings of the sensor; by default a constant bias is estimated.
        tare: The gripper or tool alone, subtracted with its covariance.

    Example:
        >>> turns = [np.eye(3), np.diag([1.0, -1.0, -1.0]), np.roll(np.eye(3), 1, axis=0)]
        >>> wrench = [np.append(R.T @ [0.0, 0.0, -19.62], np.zeros(3)) for R in turns]
        >>> round(abs(dynid.payload.identify_load_from_poses(turns, wrench).mass), 2)
        2.0
    """
    sensing = sensing or Sensing()
    if sensing.delay_s:
        raise ArgumentError("poses have no clock for a delay", remedy="Pair poses and wrenches of the same instants.")
    data = pose_equations(orientation, wrench, sensing, time=time, gravity=gravity)
    load = solve_load(data, frame, sensing)
    load = load.with_findings(*_check_poses(load, data))
    return make_possible(load if tare is None else load.minus(tare))


def _check_poses(load: Load, data: WrenchData) -> Iterator[Finding]:
    """Find signs of wrong input: forces that are no weight in these poses, a far centre of mass, a negative mass."""
    explained = np.linalg.norm((data.matrix @ load.vector).std(axis=0)[:3])
    share = float(np.linalg.norm(load.residual_std[:3]) / np.maximum(explained, TINY))
    distance = float(np.linalg.norm(np.nan_to_num(load.com)))
    for is_wrong, code, message, remedy in (
        (share > LARGE_SHARE, "wrench-frame", f"the residual is {100 * share:.0f} % of the weight of the load",
         "Check the order of quaternions (w, x, y, z), R_world_sensor against its transpose, sign and axes."),
        (distance > FAR, "unit", f"the centre of mass is {distance:.0f} m away, so that the moments seem to be in N mm",
         "Set moment_unit to 0.001."),
        (is_negative(load), "wrench-frame", f"the mass is {load.mass:.3g} kg: this is the wrench on the robot",
         "Set sign to -1."),
    ):  # fmt: skip
        if is_wrong:
            yield remark(code, message, remedy, severity="warning", where="wrench")


def is_negative(load: Load) -> bool:
    """Test whether the mass is significantly below zero."""
    return load.mass + SIGNIFICANT_STD * load.mass_stderr < 0.0


def solve_load(data: WrenchData, frame: str, sensing: Sensing) -> Load:
    """Estimate the load, and what `sensing` asks for; every channel is weighted by its own residual.

    Args:
        data: The equations with corrected wrenches.
        frame: Name of the frame in which the load is described.
        sensing: Settings of the sensor.

    Raises:
        DataError: There are no samples.
        IdentifiabilityError: Neither the mass nor any moment of inertia can be determined.
    """
    if len(data.time) == 0:
        raise DataError("no sample with a finite wrench is left")
    if sensing.finds_pose:
        return _load_and_pose(data, frame, sensing)
    if "compliance" in sensing.find:
        load = _load_and_compliance(data, frame, sensing)
    else:
        load = load_of(_solve(data, sensing), frame, sensing)
    return _widen_by_drift(load, data, sensing)


def _solve(data: WrenchData, sensing: Sensing) -> LinearSolution:
    """Estimate load, bias and drift on a rigid sensor with the pose of the model."""
    W = np.concatenate([data.matrix, *data.bias_columns(sensing)], axis=2)
    return solve_load_equations(BlockEquations.of(W, data.wrench, data.blocks()))


def load_of(
    solution: LinearSolution,
    frame: str,
    sensing: Sensing,
    method: str = "force and torque sensor, weighted least squares",
) -> Load:
    """Make the load of a solution, whose unknowns are the load's ten parameters, then the bias, then the drift.

    Of several biases (one per log) the first one is kept.

    Args:
        solution: The solution.
        frame: Name of the frame in which the load is described.
        sensing: Settings of the sensor, which say whether there are a bias and a drift.
        method: Name of the method.

    Raises:
        IdentifiabilityError: Neither the mass nor any moment of inertia is determined.
    """
    if solution.undetermined[9] and solution.undetermined[:6].all():
        raise IdentifiabilityError(
            "the mass cannot be separated from the sensor's bias", remedy="Turn the load through several orientations."
        )
    facts: dict[str, Floats] = {}
    if sensing.bias:
        facts |= {"bias": solution.determined[10:16], "bias_stderr": solution.stderr[10:16]}
    if "drift" in sensing.find:
        first = 16 if sensing.bias else 10
        facts["drift"] = solution.determined[first : first + 6]
    found = solution.load(frame, method, "Move the load with angular acceleration about several axes.", **facts)
    if not found.mass < 0.0:
        return found
    check = "Are sign, unit and axes of the wrench right?"
    return found.with_findings(remark("load-uncertain", "the estimated mass is negative", check))


def _widen_by_drift(load: Load, data: WrenchData, sensing: Sensing) -> Load:
    """Enlarge the covariance of a load, with a finding, if the bias drifts significantly.

    The variances become those of a fit with a drift, and the square of the change of the values is added.

    Args:
        load: The load as estimated without a drift.
        data: The equations.
        sensing: Settings of the sensor.
    """
    if "drift" in sensing.find or not sensing.bias:
        return load
    try:
        solution = _solve(data, replace(sensing, find=(*sensing.find, "drift")))
    except IdentifiabilityError:  # too few poses for a drift
        return load
    drift = solution.values[16:22]  # behind ten parameters and six biases
    spread = np.sqrt(np.maximum(np.diag(solution.covariance), 0.0))
    if not np.any(np.abs(drift) > SIGNIFICANT_STD * spread[16:22]):
        return load
    change = np.where(load.undetermined, 0.0, solution.determined[:10] - load.vector)
    size = np.abs(drift * np.ptp(data.time))
    message = f"the bias drifts by up to {size[:3].max():.2g} N and {size[3:].max():.2g} N m; the intervals contain it"
    remedy = "Set find to drift, or tare the sensor and record again."
    found = remark("drift", message, remedy, severity="warning", where="wrench")
    factor = np.maximum(spread[:10] / np.sqrt(np.maximum(np.diag(load.covariance), TINY)), 1.0)
    covariance = np.outer(factor, factor) * load.covariance + np.outer(change, change)
    return replace(load.with_findings(found), covariance=covariance)


def _load_and_compliance(data: WrenchData, frame: str, sensing: Sensing) -> Load:
    """Estimate the load on a sensor that yields elastically; as on a rigid sensor if no channel yields clearly."""
    extras, solution = find_compliance(data, sensing)
    load = load_of(solution, frame, sensing, "force and torque sensor that yields, weighted least squares")
    frequencies, damping = resonances(extras, load.inertia.vector)
    if len(frequencies) == 0:
        return replace(load_of(_solve(data, sensing), frame, sensing), extras=extras)
    numbers = {"frequency [Hz]": float(frequencies[0]), "damping ratio": float(damping[0])}
    message = f"the load swings on the sensor at {frequencies[0]:.3g} Hz (damping ratio {damping[0]:.2g})"
    remedy = "Move more smoothly, or damp the load's mounting."
    swings = remark("sensor-yields", message, remedy, where="wrench", evidence=numbers)
    return replace(load.with_findings(swings), extras=extras)


def _load_and_pose(data: WrenchData, frame: str, sensing: Sensing) -> Load:
    """Estimate the load on a sensor whose orientation, or under gravity whose direction, is estimated with it."""
    pose, solution, own = find_sensor(SensorPose.guess(data, sensing), data, sensing)
    stderr = solution.stderr[own]  # `own` are the unknowns of the pose: three angles of the sensor, two of gravity
    found: list[Finding] = []
    extras: dict[str, Floats] = {}
    if pose.turned:
        angle = float(np.rad2deg(Rotation.from_matrix(pose.R_frame_sensor).magnitude()))
        evidence = {"angle [deg]": angle, "std [deg]": float(np.rad2deg(stderr[:3].max()))}
        message = f"the sensor is turned by {angle:.1f} deg against '{frame}' (std {evidence['std [deg]']:.2g} deg)"
        if pose.sign < 0:
            message += " and reports the wrench on the robot"
        found.append(remark("wrench-frame", message, where="wrench", evidence=evidence))
        extras |= {"R_frame_sensor": pose.R_frame_sensor, "orientation_stderr": stderr[:3]}
    if pose.tilted:
        sine = np.linalg.norm(np.cross(pose.gravity, data.gravity))
        angle = float(np.rad2deg(np.arctan2(sine, pose.gravity @ data.gravity)))
        message = f"gravity points {angle:.1f} deg away from the direction in the model"
        found.append(remark("gravity", message, where="model", evidence={"angle [deg]": angle}))
        tilts = pose.tangents @ solution.covariance[-2:, -2:] @ pose.tangents.T
        spread = np.full(3, np.inf) if np.isinf(stderr[-2:]).any() else np.sqrt(np.diag(tilts))
        extras |= {"gravity": pose.gravity, "gravity_stderr": spread}
    return replace(load_of(solution, frame, sensing).with_findings(*found), extras=extras)
