"""Robots without insignificant parameters ([Izaguirre1992] section 7), chosen on planned motions: with an error bound.

Parameters that were identified from logs are chosen by `dynid.links.significant_parameters` and fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.export.c.c_model import regroup
from dynid.kernels import regressor
from dynid.links.significance import PrunedRobot
from dynid.robot.model import Robot

Motions = Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]]
"""Trajectories, each (q, dq, ddq) of shape (N, n)."""


def prune(robot: Robot, trajectories: Motions, *, threshold: float = 0.01) -> PrunedRobot:
    """Drop base parameters that hardly contribute to the torques.

    A parameter stays if, on any joint at any sample, its contribution reaches ``threshold`` times that joint's largest
    torque. The error bound holds at all samples: it adds the sizes of the dropped contributions.

    Args:
        robot: The robot with its parameter values.
        trajectories: The motions it will perform: (q, dq, ddq), each (N, n).
        threshold: Share of each joint's largest torque; the paper took 1 percent.

    Raises:
        ArgumentError: There are no trajectories, or their arrays do not fit the robot.

    Example:
        >>> type(dynid.export.prune(robot, [(run.q, run.dq, run.ddq)])).__name__
        'PrunedRobot'
    """
    if not 0.0 <= threshold < 1.0:
        raise ArgumentError(f"threshold is {threshold}", remedy="Give a share between 0 and 1, such as 0.01.")
    base = regroup(robot)
    beta = base.grouping @ robot.parameter_vector
    states = _samples(trajectories, robot.dof)
    terms = regressor(robot, *states, columns=base.columns) * beta  # (N, n, b)
    largest_torque = np.abs(terms.sum(axis=2)).max(axis=0)
    stays = (np.abs(terms).max(axis=0) >= threshold * largest_torque[:, None]) & (np.abs(terms).max(axis=0) > 0.0)
    kept = stays.any(axis=0)
    names = [base.names(robot)[column] for column in base.columns]
    values = np.zeros(robot.parameter_vector.size)
    values[list(base.columns)] = np.where(kept, beta, 0.0)
    return PrunedRobot.of(
        robot.with_parameters(values),
        states[:1],
        criterion=f"at least {100 * threshold:g} % of the largest torque of a joint",
        kept=tuple(compress(names, kept)),
        dropped=tuple(compress(names, ~kept)),
        error_bound=np.abs(terms[:, :, ~kept]).sum(axis=2).max(axis=0),
        largest_torque=largest_torque,
    )


def _samples(trajectories: Motions, joints: int) -> list[Floats]:
    """Positions, velocities, accelerations (N, n) of all trajectories, one after another."""
    remedy = f"Give one or more motions (q, dq, ddq), each (N, {joints}) with the same N."
    try:
        states = np.hstack([np.asarray(motion, dtype=float) for motion in trajectories])
    except (TypeError, ValueError) as error:
        raise ArgumentError("trajectories are no motions", remedy=remedy) from error
    if states.shape[0] != 3 or states.shape[2:] != (joints,) or not states.size or not np.isfinite(states).all():
        raise ArgumentError(f"trajectories of shape {states.shape} do not fit, or are not finite", remedy=remedy)
    return list(states)
