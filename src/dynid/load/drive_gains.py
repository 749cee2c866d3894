"""Drive gains [N m/A or N/A] from a known load: how much torque a motor current stands for.

Joint by joint, ``current = Y beta' + (1 / gain) Y_load phi`` with the arm's parameters beta' (in units of current) free
and the load phi known: linear, with no noise among the regressors. The unloaded run tells beta' from the load.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.load.coloured_noise import coloured, run_gram, student
from dynid.load.load_solver import resolved
from dynid.load.payload import PayloadProblem, Runs, payload_problem
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
    found = [_joint_gain(problem, joint, known.vector) for joint in range(robot.dof)]
    gain, stderr = np.array(found).T
    return DriveGains(joint_names=robot.joint_names, gain=gain, stderr=stderr)


def _joint_gain(problem: PayloadProblem, joint: int, load: Floats) -> tuple[float, float]:
    """Gain of one joint and its standard deviation; the arm's base parameters are the other unknowns."""
    assert problem.unloaded is not None
    alone = np.eye(problem.robot.dof)[joint]
    k = len(problem.prior)
    known = np.eye(k + 10, k + 1)
    known[k:, k] = load
    parts = [(problem.unloaded, False), (problem.loaded, True)]
    factors = [information.weight(alone) for information, _ in parts]
    designs = [problem.design(is_loaded) @ known for _, is_loaded in parts]
    rows = np.vstack([f.R @ problem.base.grouping @ design for f, design in zip(factors, designs, strict=True)])
    target = np.concatenate([factor.z for factor in factors])
    values, covariance, undetermined = resolved(rows, target, 1e-9)
    squares = np.sum((target - rows @ values) ** 2) + sum(factor.residual for factor in factors)
    spare = max(1.0, float(problem.samples[joint]) - len(values) + np.count_nonzero(undetermined))
    std = max(float(np.sqrt(squares / spare)), 1e-150)
    noise = np.where(alone > 0.0, std, np.inf)
    grams = [
        run_gram(problem.robot, run, designs[is_loaded], values, covariance * std**2, noise)
        for run, is_loaded in problem.runs
    ]
    grown, growth = coloured(covariance * std**2, np.sum(grams, axis=0))
    inverse, spread = float(values[-1]), float(np.sqrt(grown[-1, -1])) * student(spare / growth)
    if undetermined[-1] or abs(inverse) < 3.0 * spread:
        return float("nan"), float("inf")
    return 1.0 / inverse, spread / inverse**2
