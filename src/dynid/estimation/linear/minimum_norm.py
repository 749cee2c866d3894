"""All standard parameters at once, as [Atkeson1986] estimates them: ``tau = K psi``, eqs. (17)-(18).

K has dependent columns. It needs no data of its own: with the triangle R of the base parameters' equations and the
grouping matrix G, ``K = R G`` but for rotations that change no residual.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import svd
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate
from dynid.estimation.linear.least_squares import least_squares_estimate, refined_weights
from dynid.information import Factor


@dataclass(frozen=True, slots=True, eq=False)
class StandardEquations:
    """``K psi = z`` ([Atkeson1986] eqs. (17)-(18) as a triangle) with the singular value decomposition of K."""

    factor: Factor
    """The triangle of the base parameters' equations."""
    grouping: Floats
    """(b, p) from standard to base parameters."""
    U: Floats
    """(b, b)"""
    singular_values: Floats
    """(b,) of K, descending; those of columns as they are, in SI units."""
    Vt: Floats
    """(b, p)"""

    @classmethod
    def of(cls, equations: Factors, weights: Floats) -> StandardEquations:
        """The equations of all standard parameters with joint weights (n,)."""
        factor = equations.information.weight(weights)
        return cls(factor, equations.grouping, *svd(factor.R @ equations.grouping, full_matrices=False))

    @property
    def rank(self) -> int:
        """Number of singular values that are not rounding."""
        return min(self.factor.rank, int(np.sum(self.singular_values > 1e-13 * self.singular_values[0])))

    @property
    def smallest_eigenvalue(self) -> float:
        """The smallest eigenvalue of ``K^T K`` that is not zero."""
        return float(self.singular_values[self.rank - 1] ** 2) if self.rank else 0.0

    def solve(self, gains: Floats) -> Floats:
        """(p,) ``V diag(gains) U^T z``."""
        return np.asarray(self.Vt.T @ (gains * (self.U.T @ self.factor.z)))

    def base_map(self, gains: Floats) -> Floats:
        """(b, b) what ``G V diag(gains) U^T R`` makes of the least-squares base parameters."""
        return np.asarray(self.grouping @ self.Vt.T @ (gains[:, None] * (self.U.T @ self.factor.R)))


def joint_weights(equations: Factors, weighted: bool) -> Floats:
    """(n,) ones, or the inverse residual variances of `WLS`."""
    return refined_weights(equations) if weighted else np.ones(equations.robot.dof)


def map_estimate(equations: Factors, weights: Floats, H: Floats, method: str) -> Estimate:
    """The estimate whose values are ``H`` times the least-squares ones, its covariance with the bias included.

    The mean square error of ``H b`` is ``H C H^T`` plus the square of its bias ``(H - 1) beta``.
    """
    plain = least_squares_estimate(equations, weights, method)
    known = ~plain.undetermined
    C = np.where(np.outer(known, known), plain.covariance, 0.0)
    bias = (H - np.eye(len(H))) @ plain.values
    covariance = H @ C @ H.T + np.outer(bias, bias)
    covariance[plain.undetermined, plain.undetermined] = np.inf
    return replace(plain, values=H @ plain.values, covariance=covariance)
