"""How late a wrench is stamped: the shift in time that brings it nearest to what the load explains.

    measured(t) = predicted(t - delay)  ~  predicted - delay * d(predicted)/dt

Gauss-Newton: each step is the linear problem of the load with one more column, whose uncertainty comes with the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import EstimationError
from dynid.load.load_solver import weighted_solution
from dynid.load.sensor_pose import sensor_columns, turned_solution
from dynid.load.wrench_equations import WrenchData, WrenchForm
from dynid.load.wrist import Sensing, wrench_data
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

__all__ = ["WrenchDelay", "find_wrench_delay"]

Floats = NDArray[np.float64]
STEPS = 12
SETTLED = 0.1
"""Step, in standard deviations of the delay, after which the search has settled."""
SHORTEST = 8
"""Samples without a gap that a delay needs."""
TINY = 1e-9
"""Step that rounding makes [s]."""
ENOUGH = 20_000
"""Samples that tell a delay to a fraction of their distance."""
LONGEST = 0.5
"""Delay that no sensor has [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrenchDelay:
    """How late the wrench is stamped against the positions."""

    seconds: float
    """[s]; negative where it is early."""
    stderr_s: float
    """Its standard deviation [s]."""


def find_wrench_delay(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    sensor_frame: str,
    sensing: Sensing | None = None,
    form: WrenchForm | None = None,
) -> WrenchDelay:
    """Estimate how late wrenches are stamped, from a motion under which the wrench changes.

    Args:
        robot: Geometry and gravity.
        experiments: With a wrench channel; the delay is common to all.
        sensor_frame: Link in whose frame the wrench is measured.
        sensing: What is known of the sensor; its `delay_s` is where the search begins.
        form: See `identify_load`; intervals are too coarse for a delay, so that accelerations take their place.

    Raises:
        EstimationError: The wrench hardly changes, or no delay explains it.
    """
    believed = sensing or Sensing()
    form = "differential" if form == "integral" else form
    runs = (experiments,) if isinstance(experiments, Experiment) else tuple(experiments)
    if not any(np.unique(run.segment, return_counts=True)[1].max() >= SHORTEST for run in runs):
        raise EstimationError(
            "single samples tell no delay of the wrench", remedy="Give logs of a motion without gaps."
        )
    for _ in range(STEPS):
        data = wrench_data(robot, runs, sensor_frame, believed, form=form, with_axes=believed.find_gravity)
        step, stderr = _late_by(data, believed) if len(data.time) else (0.0, np.inf)
        believed = replace(believed, delay_s=believed.delay_s + step)
        if abs(believed.delay_s) > LONGEST or not np.isfinite(stderr):
            break
        if abs(step) <= max(SETTLED * stderr, TINY):
            return WrenchDelay(seconds=believed.delay_s, stderr_s=stderr)
    raise EstimationError(
        "no delay of the wrench can be found", remedy="Move the load quickly, or state the delay in seconds."
    )


def _late_by(data: WrenchData, sensing: Sensing) -> tuple[float, float]:
    """Delay of the wrench against the equations to first order, and its standard deviation [s]."""
    seen, sides = data, sensor_columns(data, sensing)
    if sensing.find_orientation or sensing.find_gravity:
        asked = {"orientation": sensing.find_orientation, "gravity": sensing.find_gravity}
        pose, _, _ = turned_solution(data, sensing, **asked)
        seen = data.under_gravity(pose.gravity) if pose.tilted and pose.gravity is not None else data
        turn = np.asarray(np.kron(np.eye(2), pose.R_frame_sensor.T), dtype=float)
        seen = replace(seen, matrix=pose.sign * (turn @ seen.matrix))
    values = weighted_solution(np.concatenate([seen.matrix, *sides], axis=2), data.wrench).values
    slope = _slope(data, seen.matrix @ values[:10])
    if not np.any(slope):
        return 0.0, np.inf
    W = np.concatenate([seen.matrix, *sides, -slope[:, :, None]], axis=2)
    few = slice(None, None, max(1, len(W) // ENOUGH))
    solution = weighted_solution(W[few], data.wrench[few])
    spread = np.inf if solution.undetermined[-1] else float(np.sqrt(solution.covariance[-1, -1]))
    return float(solution.values[-1]), spread


def _slope(data: WrenchData, wrench: Floats) -> Floats:
    """(N, 6) change of a wrench per second, by differences that do not reach across gaps and logs."""
    steps = np.diff(data.time)
    gap = (steps <= 0.0) | (steps > 1.5 * np.median(steps))
    if data.log is not None:
        gap |= np.diff(data.log) != 0
    slope = np.zeros_like(wrench)
    for rows in np.split(np.arange(len(wrench)), np.flatnonzero(gap) + 1):
        if len(rows) >= 3:
            slope[rows] = np.gradient(wrench[rows], data.time[rows], axis=0)
    return slope
