"""Whether positions are more than their noise, and whether a likelihood's peak is a robot at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.errors import EstimationError, IdentifiabilityError
from dynid.estimation.equations import Samples
from dynid.kernels import regressor

__all__ = ["refuse_negative_inertia", "refuse_rest"]

Floats = NDArray[np.float64]
CERTAIN = 6.0
"""Standard deviations by which an inertia must be below zero to be a contradiction."""
MOVING = 3.0
"""Standard deviation of positions over that of their noise from which on there is a motion."""
POSES = 50
"""Poses of each experiment at which inertias are looked at."""


def refuse_rest(equations: Samples, position_std: float) -> None:
    """Refuse logs in which no joint moves more than the noise of its positions [rad or m] does.

    Raises:
        IdentifiabilityError: So it is; differentiated, the noise would be taken for a motion.
    """
    if not any(np.any(run.q.std(axis=0) > MOVING * position_std) for run in equations.experiments):
        raise IdentifiabilityError(
            f"no joint moves by more than the noise of its positions, {position_std:.2g}",
            remedy="Record a motion; give position_std where the noise is less.",
        )


def refuse_negative_inertia(equations: Samples, beta: Floats, covariance: Floats) -> None:
    """Refuse parameters with which a joint, all others held, would have an inertia certainly below zero.

    No residual shows that: torques of the wrong sign are explained perfectly by the negative of all parameters.

    Args:
        equations: The equations.
        beta: (b + k,) base parameters, then terms.
        covariance: (b + k, b + k) of them.

    Raises:
        EstimationError: So it is.
    """
    n, columns, b = equations.robot.dof, equations.base.columns, equations.base.rank
    beta, covariance = beta[:b], covariance[:b, :b]
    poses = np.concatenate([run.q[:: max(1, run.samples // POSES)] for run in equations.experiments])
    rest = np.zeros_like(poses)
    held = regressor(equations.robot, poses, rest, rest, columns=columns)
    for joint in range(n):
        pushed = regressor(equations.robot, poses, rest, rest + np.eye(n)[joint], columns=columns)
        row = pushed[:, joint] - held[:, joint]  # row @ beta is the mass matrix' entry of the joint
        inertia, std = row @ beta, np.sqrt(np.einsum("ka,ab,kb->k", row, covariance, row))
        if np.any(inertia < -CERTAIN * std - 1e-12 * np.abs(row * beta).sum(axis=1)):
            raise EstimationError(
                f"the likeliest inertia about {equations.robot.joint_names[joint]!r} is negative, {inertia.min():.3g}",
                remedy="Check the sign of its torque and of its position, and that the joint models fit.",
            )
