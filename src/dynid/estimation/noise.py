"""How noisy the torques are, per joint, and how many independent samples the correlated residuals amount to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.estimation.problem import Problem
from dynid.estimation.rows import stretches

__all__ = ["correlation_inflation", "joint_variances"]

Floats = NDArray[np.float64]


def joint_variances(problem: Problem, beta: Floats) -> Floats:
    """(n,) variance of each joint's residual torque, corrected for the parameters that were fitted."""
    squares = problem.information.per_joint_residual(beta).sum(axis=0)
    equations = problem.equations
    share = 1.0 - beta.size / max(int(equations.sum()), beta.size + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        variances = np.where(equations > 0, squares / np.maximum(equations * share, 1.0), 0.0)
    # a joint without residual (no noise, or no torque) must not get infinite weight
    floor = 1e-20 * max(float(variances.max(initial=0.0)), 1e-280)
    return np.maximum(variances, floor)


def correlation_inflation(problem: Problem, beta: Floats) -> Floats:
    """(n,) factor by which serial correlation of the residuals raises the variance of the estimates, at least 1.

    The variance of ``sum(x_t e_t)`` is the overlap of the spectra of regressor x and residual e. The predicted torque
    stands for the regressors: it is what their motion, with its few frequencies, makes of them.
    """
    overlap, apart = np.zeros(problem.robot.dof), np.zeros(problem.robot.dof)
    for run in problem.experiments:
        predicted = problem.torque(beta, run)
        residual = np.where(run.valid, run.effort - predicted, 0.0)
        torque = predicted * run.valid
        for rows, _ in stretches(run):
            if rows.stop - rows.start < 16:
                continue
            e = np.abs(np.fft.rfft(residual[rows], axis=0)) ** 2
            x = np.abs(np.fft.rfft(torque[rows], axis=0)) ** 2
            overlap += (e * x).sum(axis=0)
            apart += e.mean(axis=0) * x.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.maximum(np.where(apart > 0.0, overlap / apart, 1.0), 1.0)
