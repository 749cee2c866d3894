"""Drift of a force sensor's zero during a log, which strain gauges show while they warm up."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.arrays import Floats
from dynid.findings import Finding
from dynid.kernels import wrench_regressor
from dynid.processing.delay import orthonormal
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

MOST_ROWS = 3000
"""Largest number of samples that are used (convention)."""
SURE = 3.0
"""Smallest ratio of a drift to its standard error that is reported ..."""
NOTEWORTHY = 0.02
"""... and smallest ratio to the range of the channel. Both are conventions."""
FEWEST_ROWS = 200
"""Smallest number of samples for this check (convention): three times the sixty columns of a load."""
SMALLEST_LINE = 1e-3
"""Smallest share of a line in time that remains after the fit of every load; below it, the motion itself looks like a
drift (convention)."""
COMPONENTS = ("fx", "fy", "fz", "mx", "my", "mz")


def check_drift(robot: Robot, experiment: Experiment) -> Iterator[Finding]:
    """Report channels whose zero drifts: a line in time remains after a fit of every possible load.

    Whatever the sensor's pose, a channel is a linear combination of the sixty entries of the wrench regressor of the
    last link, so that neither the sensor nor the load need be known.
    """
    if experiment.wrench is None:
        return
    rows = np.flatnonzero(np.isfinite(experiment.wrench).all(axis=1))
    rows = rows[:: max(1, rows.size // MOST_ROWS)]
    if rows.size < FEWEST_ROWS:
        return
    motion = [np.ascontiguousarray(x[rows]) for x in (experiment.q, experiment.dq, experiment.ddq)]
    load = wrench_regressor(robot, robot.moving_joints[-1].child, *motion).reshape(rows.size, -1)
    line = np.linspace(-0.5, 0.5, rows.size)
    known = orthonormal(np.column_stack([load, np.ones(rows.size)]))
    line = line - known @ (known.T @ line)  # the part of it that no motion explains
    if line @ line < SMALLEST_LINE * rows.size / 12.0:  # the mean square of the whole line is 1/12
        return
    wrench = experiment.wrench[rows]
    left = wrench - known @ (known.T @ wrench)
    drift = line @ left / (line @ line)
    residual = left - np.outer(line, drift)
    stderr = np.sqrt(residual.var(axis=0) / (line @ line) * _autocorrelation_factor(residual))
    span = np.ptp(wrench, axis=0)
    for k in np.flatnonzero((np.abs(drift) > SURE * stderr) & (np.abs(drift) > NOTEWORTHY * span)).tolist():
        yield Finding(
            code="drift",
            severity="warning",
            where="wrench",
            joint=COMPONENTS[k],
            message="the zero of the sensor drifts during the log",
            evidence={"drift [N or N m]": float(drift[k]), "standard error": float(stderr[k]), "range": float(span[k])},
            remedy="Let the sensor warm up and zero it again, or cut the log into parts and estimate a bias for each.",
        )


def _autocorrelation_factor(residual: Floats) -> Floats:
    """(6,) autocorrelation factor of each channel, from the correlation between neighbours."""
    power = np.maximum((residual**2).sum(axis=0), 1e-300)
    rho = np.clip((residual[1:] * residual[:-1]).sum(axis=0) / power, 0.0, 0.999)
    return np.asarray((1.0 + rho) / (1.0 - rho))
