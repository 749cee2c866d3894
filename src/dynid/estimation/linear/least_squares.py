"""Ordinary and weighted least squares on the reduced equations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.intervals.score_covariance import BlockWeights, score_covariance, solution_root
from dynid.estimation.noise import check_data, correlation_inflation, joint_variances
from dynid.findings import Finding
from dynid.information import Factor


@dataclass(frozen=True, slots=True)
class OLS(Estimator):
    """Ordinary least squares: minimises the sum of squared torque residuals of all joints ([Atkeson1986] eq. (19)).

    Use it as a plain reference, or where all joints are equally noisy.
    """

    name: ClassVar[str] = "ols"
    title: ClassVar[str] = "ordinary least squares"
    use: ClassVar[str] = "all joints are equally noisy, or a plain reference is wanted"
    references: ClassVar[tuple[str, ...]] = ("Atkeson1986",)

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate with unit weights."""
        return least_squares_estimate(equations, np.ones(equations.robot.dof), "ordinary least squares")


@dataclass(frozen=True, slots=True)
class WLS(Estimator):
    """Weighted least squares: minimises squared residuals over each joint's variance ([Izaguirre1992] section 7).

    Use it where joints are differently noisy and the motion excites all base parameters.
    """

    name: ClassVar[str] = "wls"
    title: ClassVar[str] = "weighted least squares"
    use: ClassVar[str] = "joints are differently noisy and the motion excites all base parameters"
    references: ClassVar[tuple[str, ...]] = ("Izaguirre1992",)

    rounds: int = 3
    """How often the weights are refined."""
    per_file: bool = False
    """Whether experiments count by the inverse of their own residual variance too, noisy ones less."""

    def __post_init__(self) -> None:
        """Refuse to iterate less than once."""
        if self.rounds < 1:
            raise ArgumentError(f"WLS needs one round or more, not {self.rounds}")

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate with weights from the residuals of the round before."""
        weights = refined_weights(equations, self.rounds)
        if not self.per_file:
            return least_squares_estimate(equations, weights, "weighted least squares")
        files = np.ones(len(equations.blocks))
        for _ in range(self.rounds):
            beta = equations.information.weight(weights, _by_segment(equations, files)).solve(minimum_norm=True)
            files = _file_weights(equations, beta, weights)
            weights = 1.0 / joint_variances(equations, beta, _by_segment(equations, files))
        shares = ", ".join(f"{share:.3g}" for share in files)
        found = Finding(
            code="file-weights",
            severity="note",
            where="estimate",
            message=f"experiments are weighted by their own residuals: {shares}",
        )
        method = "weighted least squares per joint and file"
        return least_squares_estimate(equations, weights, method, (found,), _by_segment(equations, files))


def _by_segment(equations: Factors, files: Floats) -> dict[int, float]:
    """Segment -> weight of the experiment it is of."""
    return {s: float(w) for blocks, w in zip(equations.blocks, files, strict=True) for s in blocks}


def _file_weights(equations: Factors, beta: Floats, weights: Floats) -> Floats:
    """(runs,) inverse of each experiment's weighted residual variance, one on average over all equations."""
    place = {segment: k for k, segment in enumerate(equations.information.segments)}
    squares = equations.information.per_joint_residual(beta) @ weights
    counts = equations.information.samples.sum(axis=1)
    rows = [[place[s] for s in blocks if s in place] for blocks in equations.blocks]
    count = np.array([float(counts[mine].sum()) for mine in rows])
    level = np.array([float(squares[mine].sum()) for mine in rows]) / np.maximum(count, 1.0)
    found = 1.0 / np.maximum(level, 1e-12 * max(float(level.max()), 1e-300))
    return np.asarray(found * count.sum() / (found @ count))


_WEIGHTS: WeakKeyDictionary[Factors, dict[int, Floats]] = WeakKeyDictionary()
"""Equations -> number of rounds -> refined weights."""
_SOLUTIONS: WeakKeyDictionary[Factors, dict[bytes, Estimate]] = WeakKeyDictionary()
"""Equations -> weights -> estimate. Selection, estimators, robot files and reports ask for the same, and equations do
not change."""


def refined_weights(equations: Factors, rounds: int = 3) -> Floats:
    """(n,) inverse residual variance of each joint, from repeated weighted fits."""
    known = _WEIGHTS.setdefault(equations, {})
    if rounds not in known:
        check_data(equations)
        weights = np.ones(equations.robot.dof)
        for _ in range(rounds):
            beta = equations.information.weight(weights).solve(minimum_norm=True)
            weights = 1.0 / joint_variances(equations, beta)
        known[rounds] = weights
    return known[rounds].copy()


def weighted_values(equations: Factors) -> Floats:
    """(b + k,) the values of `WLS`, without their covariance."""
    return equations.information.weight(refined_weights(equations)).solve(minimum_norm=True)


def noise_weights(equations: Factors) -> Floats:
    """(n,) inverse variance of each joint's residuals, raised by their correlation in time, without a covariance."""
    beta = equations.information.weight(refined_weights(equations)).solve(minimum_norm=True)
    return np.asarray(1.0 / (np.sqrt(joint_variances(equations, beta)) ** 2 * correlation_inflation(equations, beta)))


def least_squares_estimate(
    equations: Factors,
    weights: Floats,
    method: str,
    findings: tuple[Finding, ...] = (),
    segments: Mapping[int, float] | None = None,
) -> Estimate:
    """The weighted least-squares estimate with its covariance, undetermined parameters marked.

    Args:
        equations: The equations.
        weights: (n,) of the joints' squared residuals.
        method: Name of the estimator.
        findings: What a person should know.
        segments: Weight of some segments, as the inverse of their variance relative to that of the others.
    """
    if segments is None:
        known = _SOLUTIONS.setdefault(equations, {})
        key = weights.tobytes()
        if key not in known:
            known[key] = _solved(equations, weights, segments)
        found = known[key]
    else:
        found = _solved(equations, weights, segments)
    return replace(found, method=method, findings=(*findings, *found.findings))


def _solved(equations: Factors, weights: Floats, segments: Mapping[int, float] | None) -> Estimate:
    """The estimate without its name."""
    check_data(equations)
    factor = equations.information.weight(weights, segments)
    beta = factor.solve(minimum_norm=True)  # [Atkeson1986] eq. (19)
    variances = joint_variances(equations, beta, segments)
    inflation = correlation_inflation(equations, beta)
    root, undetermined = solution_root(factor)
    covariance = score_covariance(equations, beta, root, BlockWeights(weights, variances, inflation, segments))
    covariance[undetermined, undetermined] = np.inf
    return Estimate.of(
        equations,
        values=beta,
        covariance=covariance,
        undetermined=undetermined,
        noise_std=np.sqrt(variances),
        inflation=inflation,
        condition=factor.condition,
        method="",
    )


def sandwich(factor: Factor, spread: Factor) -> tuple[Floats, NDArray[np.bool_]]:
    """Covariance ``A^-1 B A^-1`` of the solution of a factor (A) under noise (B), and what it leaves open.

    Args:
        factor: Of the weights that were used: ``A = R^T R``.
        spread: Of those weights squared times the true variances: ``B = S^T S``.
    """
    root, undetermined = solution_root(factor)
    half = root @ (root.T @ spread.R.T)
    covariance = half @ half.T
    covariance[undetermined, undetermined] = np.inf
    return covariance, undetermined
