"""Ordinary and weighted least squares on the reduced equations ``W x = y``.

`OLS` and `WLS` are public estimators. Other estimators use `least_squares_estimate` (the solution with its covariance)
and `refined_weights` (the weight of each joint, the inverse variance of its residuals).

`Factors` hold the equations as triangles of QR decompositions. ``information.weight(weights)`` joins those of all
joints into one triangle R with the right side z, ``|W x - y|^2 = |R x - z|^2 + residual``; ``solve`` solves it.

Shapes: n joints, b base parameters, k further terms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from dynid.array_types import Floats
from dynid.estimators.equations import Factors
from dynid.estimators.estimate import Estimate, Estimator, Unknowns
from dynid.estimators.noise import check_data, correlation_inflation, joint_variances
from dynid.estimators.score_covariance import score_covariance, solution_root


@dataclass(frozen=True, slots=True)
class OLS(Estimator):
    """Ordinary least squares: minimises the sum of squared torque residuals of all joints ([Atkeson1986] eq. (19)).

    Use it as a plain reference, or if all joints are equally noisy.
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

    Use it if joints are differently noisy and the motion excites all base parameters.
    """

    name: ClassVar[str] = "wls"
    title: ClassVar[str] = "weighted least squares"
    use: ClassVar[str] = "joints are differently noisy and the motion excites all base parameters"
    references: ClassVar[tuple[str, ...]] = ("Izaguirre1992",)

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate with weights from the residuals of repeated fits."""
        return least_squares_estimate(equations, refined_weights(equations), "weighted least squares")


_WEIGHTS: WeakKeyDictionary[Factors, Floats] = WeakKeyDictionary()
"""Cache of `refined_weights`: equations -> weights."""
_SOLUTIONS: WeakKeyDictionary[Factors, dict[bytes, Estimate]] = WeakKeyDictionary()
"""Cache of `least_squares_estimate`: equations -> bytes of the weights -> estimate. Selection, estimators, robot files
and reports ask for the same estimate, and equations are immutable."""


def refined_weights(equations: Factors, rounds: int = 3) -> Floats:
    """Compute the inverse residual variance (n,) of each joint by repeated weighted fits, the first with equal weights.

    Args:
        equations: The equations.
        rounds: Number of fits.
    """
    if equations not in _WEIGHTS:
        check_data(equations)
        weights = np.ones(equations.robot.dof)
        for _ in range(rounds):
            beta = equations.information.weight(weights).solve(minimum_norm=True)
            weights = 1.0 / joint_variances(equations, beta)
        _WEIGHTS[equations] = weights
    return _WEIGHTS[equations].copy()


def weighted_values(equations: Factors) -> Floats:
    """Compute the values (b + k,) of `WLS` alone: base parameters, then terms."""
    return equations.information.weight(refined_weights(equations)).solve(minimum_norm=True)


def least_squares_estimate(equations: Factors, weights: Floats, method: str) -> Estimate:
    """Compute the weighted least-squares estimate with its covariance, undetermined parameters marked.

    Args:
        equations: The equations.
        weights: (n,) weight of each joint's squared residuals.
        method: Name of the method, a noun phrase for `Estimate.method`.
    """
    known = _SOLUTIONS.setdefault(equations, {})
    key = weights.tobytes()
    if key not in known:
        known[key] = _solve(equations, weights)
    return replace(known[key], method=method)


def _solve(equations: Factors, weights: Floats) -> Estimate:
    """Compute the estimate, with an empty name of the method."""
    check_data(equations)
    factor = equations.information.weight(weights)
    beta = factor.solve(minimum_norm=True)  # [Atkeson1986] eq. (19)
    variances = joint_variances(equations, beta)
    inflation = correlation_inflation(equations, beta)
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
    """Make the estimate of a method from too few equations: zeros, all of them undetermined."""
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
