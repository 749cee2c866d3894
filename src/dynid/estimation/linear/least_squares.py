"""Ordinary and weighted least squares on the reduced equations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from dynid.arrays import Floats
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate, Estimator, Unknowns
from dynid.estimation.noise import check_data, correlation_inflation, joint_variances
from dynid.estimation.score_covariance import score_covariance, solution_root


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

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate with weights from the residuals of the round before."""
        return least_squares_estimate(equations, refined_weights(equations), "weighted least squares")


_WEIGHTS: WeakKeyDictionary[Factors, Floats] = WeakKeyDictionary()
"""Equations -> refined weights."""
_SOLUTIONS: WeakKeyDictionary[Factors, dict[bytes, Estimate]] = WeakKeyDictionary()
"""Equations -> weights -> estimate. Selection, estimators, robot files and reports ask for the same, and equations do
not change."""


def refined_weights(equations: Factors, rounds: int = 3) -> Floats:
    """(n,) inverse residual variance of each joint, from repeated weighted fits."""
    if equations not in _WEIGHTS:
        check_data(equations)
        weights = np.ones(equations.robot.dof)
        for _ in range(rounds):
            beta = equations.information.weight(weights).solve(minimum_norm=True)
            weights = 1.0 / joint_variances(equations, beta)
        _WEIGHTS[equations] = weights
    return _WEIGHTS[equations].copy()


def weighted_values(equations: Factors) -> Floats:
    """(b + k,) the values of `WLS`, without their covariance."""
    return equations.information.weight(refined_weights(equations)).solve(minimum_norm=True)


def least_squares_estimate(equations: Factors, weights: Floats, method: str) -> Estimate:
    """The weighted least-squares estimate with its covariance, undetermined parameters marked.

    Args:
        equations: The equations.
        weights: (n,) of the joints' squared residuals.
        method: Name of the estimator.
    """
    known = _SOLUTIONS.setdefault(equations, {})
    key = weights.tobytes()
    if key not in known:
        known[key] = _solve(equations, weights)
    return replace(known[key], method=method)


def _solve(equations: Factors, weights: Floats) -> Estimate:
    """The estimate without its name."""
    check_data(equations)
    factor = equations.information.weight(weights)
    beta = factor.solve(minimum_norm=True)  # [Atkeson1986] eq. (19)
    variances, inflation = joint_variances(equations, beta), correlation_inflation(equations, beta)
    root, undetermined = solution_root(factor)
    covariance = score_covariance(equations, beta, root, weights, variances, inflation)
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


def nothing_known(equations: Unknowns, method: str) -> Estimate:
    """The estimate of a method from equations that say nothing, or too little to tell the noise."""
    size = len(equations.names)
    return Estimate.of(
        equations,
        values=np.zeros(size),
        covariance=np.diag(np.full(size, np.inf)),
        undetermined=np.ones(size, dtype=bool),
        noise_std=np.ones(len(equations.counts)),
        inflation=np.ones(len(equations.counts)),
        condition=np.inf,
        method=method,
    )
