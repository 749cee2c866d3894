"""Ordinary and weighted least squares on the reduced equations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.noise import correlation_inflation, joint_variances
from dynid.estimation.problem import Problem
from dynid.information import Factor

__all__ = ["OLS", "WLS", "least_squares_estimate", "refined_weights", "refuse_unsupported"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class OLS(Estimator):
    """Ordinary least squares: all joints' torques count alike."""

    def solve(self, problem: Problem) -> Estimate:
        """Estimate with unit weights."""
        return least_squares_estimate(problem, np.ones(problem.robot.dof), "ordinary least squares")


@dataclass(frozen=True, slots=True)
class WLS(Estimator):
    """Weighted least squares: each joint counts by the inverse of its residual variance ([Izaguirre1992] section 7)."""

    rounds: int = 3
    """How often the weights are refined."""

    def __post_init__(self) -> None:
        """Refuse to iterate less than once."""
        if self.rounds < 1:
            raise ArgumentError(f"WLS needs one round or more, not {self.rounds}")

    def solve(self, problem: Problem) -> Estimate:
        """Estimate with weights from the residuals of the round before."""
        return least_squares_estimate(problem, refined_weights(problem, self.rounds), "weighted least squares")


def refuse_unsupported(problem: Problem) -> None:
    """Refuse data that cannot support any number.

    Raises:
        IdentifiabilityError: There are fewer equations than parameters, or all torques are zero.
    """
    information = problem.information
    equations, unknowns = int(information.samples.sum()), len(information.columns)
    if equations < unknowns:
        raise IdentifiabilityError(
            f"{equations} equations cannot determine {unknowns} parameters", remedy="Record for longer, or mask less."
        )
    if not any(np.any(information.factor(joint)[:, -1]) for joint in range(information.dof)):
        raise IdentifiabilityError(
            "all torques are zero", remedy="Check the channel map: which column is the torque, and was the drive on?"
        )


def refined_weights(problem: Problem, rounds: int = 3) -> Floats:
    """(n,) inverse residual variance of each joint, from repeated weighted fits."""
    refuse_unsupported(problem)
    weights = np.ones(problem.robot.dof)
    for _ in range(rounds):
        beta = problem.information.weight(weights).solve(minimum_norm=True)
        weights = 1.0 / joint_variances(problem, beta)
    return weights


def least_squares_estimate(problem: Problem, weights: Floats, method: str, notes: tuple[str, ...] = ()) -> Estimate:
    """The weighted least-squares estimate with its covariance, undetermined parameters marked."""
    refuse_unsupported(problem)
    factor = problem.information.weight(weights)
    beta = factor.solve(minimum_norm=True)
    variances = joint_variances(problem, beta)
    inflation = correlation_inflation(problem, beta)
    spread = problem.information.weight(weights**2 * variances * inflation)
    covariance, undetermined = sandwich(factor, spread)
    return Estimate.of(
        problem,
        values=beta,
        covariance=covariance,
        undetermined=undetermined,
        noise_std=np.sqrt(variances),
        inflation=inflation,
        condition=factor.condition,
        method=method,
        notes=notes,
    )


def sandwich(factor: Factor, spread: Factor) -> tuple[Floats, NDArray[np.bool_]]:
    """Covariance ``A^-1 B A^-1`` of the solution of a factor (A) under noise (B), and what it leaves open.

    Args:
        factor: Of the weights that were used: ``A = R^T R``.
        spread: Of those weights squared times the true variances: ``B = S^T S``.
    """
    scale = np.where(np.isfinite(factor.scale), factor.scale, 1.0)
    if factor.rank == len(factor.columns):
        half = solve_triangular(factor.R, solve_triangular(factor.R, spread.R.T, trans="T"))
        return half @ half.T, np.zeros(scale.size, dtype=bool)
    _, values, Vt = np.linalg.svd(factor.R / scale)
    good = values > factor.resolution * max(values[0], 1e-300)
    open_directions = Vt[~good]
    undetermined = np.any(np.abs(open_directions) > 1e-6, axis=0)
    inverse = (Vt[good].T / values[good] ** 2) @ Vt[good] / np.outer(scale, scale)
    covariance = inverse @ spread.R.T @ spread.R @ inverse
    covariance[undetermined, undetermined] = np.inf
    return covariance, undetermined
