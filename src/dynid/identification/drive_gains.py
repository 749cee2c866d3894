"""Drive gains [N m/A or N/A] from a known load: how much torque a motor current stands for.

Joint by joint, ``current = Y beta' + (1 / gain) Y_load phi`` with the arm's parameters beta' (in units of current) free
and the load phi known: linear, with no noise among the regressors. The unloaded run tells beta' from the load.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.identification.load_solver import correlation_inflation, resolved
from dynid.identification.payload import PayloadProblem, Runs, payload_problem
from dynid.kernels import kernel
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.tables import Table

__all__ = ["DriveGains", "identify_drive_gains"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DriveGains:
    """Torque per unit of what was recorded as effort."""

    joint_names: tuple[str, ...]
    gain: Floats
    """(n,) [N m/A or N/A]; NaN where the known load does not act on the joint"""
    stderr: Floats
    """(n,) infinite there"""

    def summary(self) -> str:
        """A table to read."""
        rows = list(zip(self.joint_names, self.gain.tolist(), self.stderr.tolist(), strict=True))
        return Table.of(["joint", "gain [N m/A]", "std"], rows).to_text()

    def __str__(self) -> str:
        return self.summary()


def identify_drive_gains(
    robot: Robot, *, loaded: Runs, unloaded: Runs, known: Inertia, link: str | None = None
) -> DriveGains:
    """Calibrate drives with a load of known mass properties.

    Args:
        robot: Geometry and joint models.
        loaded: Experiments with the known load; `effort` holds currents [A], or torques of doubtful scale.
        unloaded: Experiments without it.
        known: Weighed mass properties in the link's frame.
        link: Link that carries the load; the last body's by default.
    """
    if unloaded is None or unloaded == []:
        raise ArgumentError("drive gains need a run without the load", remedy="Give unloaded.")
    if not known.mass > 0.0:
        raise ArgumentError("the known load has no mass", remedy="Weigh it.")
    problem = payload_problem(robot, loaded, unloaded, link=link)
    found = [_joint_gain(problem, joint, problem.to_body @ known.vector) for joint in range(robot.dof)]
    gain, stderr = np.array(found).T
    return DriveGains(joint_names=robot.joint_names, gain=gain, stderr=stderr)


def _joint_gain(problem: PayloadProblem, joint: int, load: Floats) -> tuple[float, float]:
    """Gain of one joint and its standard deviation."""
    assert problem.unloaded is not None
    b = len(problem.base.columns)
    rows = []
    for information, is_loaded in ((problem.unloaded, False), (problem.loaded, True)):
        support = [information.columns[position] for position in information.supports[joint]]
        R = information.factor(joint)
        full = np.zeros((len(R), b + 2))  # the arm's base columns, the known load, the measurement
        for place, column in enumerate(support):
            if column in problem.base.columns:
                full[:, problem.base.columns.index(column)] = R[:, place]
            if is_loaded and column in problem.load_columns:
                full[:, b] += R[:, place] * load[problem.load_columns.index(column)]
        full[:, -1] = R[:, -1]
        rows.append(full)
    stacked = np.vstack(rows)
    values, covariance, undetermined = resolved(stacked[:, :-1], stacked[:, -1], 1e-9)
    spare = max(1.0, float(problem.samples[joint]) - b - 1)
    noise = np.sum((stacked @ np.append(values, -1.0)) ** 2) / spare
    inflation = _inflation(problem, joint, values, load)
    inverse, spread = float(values[b]), float(np.sqrt(noise * inflation * covariance[b, b]))
    if undetermined[b] or abs(inverse) < 3.0 * spread:
        return float("nan"), float("inf")
    return 1.0 / inverse, spread / inverse**2


def _inflation(problem: PayloadProblem, joint: int, values: Floats, load: Floats) -> float:
    """Samples per independent sample of one joint: residuals of all runs against the known load's own torque."""
    torque = kernel(problem.robot, "inverse_dynamics", symbolic_parameters=True)
    bare = np.zeros(len(problem.robot.parameter_vector))
    bare[list(problem.base.columns)] = values[:-1]
    carrying = bare.copy()
    carrying[list(problem.load_columns)] += values[-1] * load
    found = []
    for run, is_loaded in problem.runs:
        predicted = [torque(run.q, run.dq, run.ddq, theta)[:, [joint]] for theta in (bare, carrying)]
        valid = run.valid[:, [joint]]
        residual = np.where(valid, run.effort[:, [joint]] - predicted[is_loaded], 0.0)
        found.append(correlation_inflation(residual, np.where(valid, predicted[1] - predicted[0], 0.0)))
    return float(np.average(found, weights=[run.samples for run, _ in problem.runs]))
