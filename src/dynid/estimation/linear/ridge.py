"""Ridge regression on all standard parameters, [Atkeson1986] eq. (20): ``psi = (K^T K + d 1)^-1 K^T tau``.

Along a direction with eigenvalue lambda of ``K^T K`` the estimate is short of the least-squares one by the share
``d / (lambda + d)``. So with ``d << lambda_min``, the smallest eigenvalue that is not zero, the base parameters are
those of least squares but for ``d / lambda_min`` of themselves, and the directions that data leave open stay at zero:
nearly the pseudo-inverse. The paper took d = 10 for lambda_min = 3395, and that share is the rule here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from scipy.optimize import minimize_scalar

from dynid.arrays import Floats
from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.minimum_norm import StandardEquations, joint_weights, map_estimate
from dynid.estimation.noise import check_data
from dynid.findings import Finding

PAPERS_SHARE = 10.0 / 3395.0
"""d over the smallest eigenvalue in [Atkeson1986] section 3.3."""


@dataclass(frozen=True, slots=True)
class Ridge(Estimator):
    """Least squares made regular by a small number on the diagonal."""

    name: ClassVar[str] = "ridge"
    title: ClassVar[str] = "ridge regression"
    use: ClassVar[str] = "the equations are nearly singular and a small bias does no harm"
    references: ClassVar[tuple[str, ...]] = ("Atkeson1986",)

    d: float | Literal["paper", "gcv"] = "paper"
    """The number itself; or ``paper``: 0.3 % of the smallest eigenvalue that is not zero; or ``gcv``: what generalised
    cross-validation predicts best with, for ill-conditioned data."""
    weighted: bool = False
    """Whether joints count by the inverse of their residual variances; in the paper they count alike."""

    def __post_init__(self) -> None:
        """Refuse numbers that do not regularise."""
        if not (self.d in ("paper", "gcv") if isinstance(self.d, str) else np.isfinite(self.d) and self.d > 0.0):
            raise ArgumentError(f"d is {self.d!r}", remedy="Give a positive number, 'paper' or 'gcv'.")

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate; the covariance includes the square of the bias."""
        check_data(equations, spare=1)
        weights = joint_weights(equations, self.weighted)
        standard = StandardEquations.of(equations, weights)
        d = self._chosen(standard)
        estimate = map_estimate(equations, weights, standard.base_map(_gains(standard, d)), "ridge regression")
        smallest = standard.smallest_eigenvalue
        share = d / (d + smallest)
        found = Finding(
            code="method",
            severity="note",
            where="estimate",
            message=f"d = {d:.3g} is {d / smallest:.2g} times the smallest eigenvalue {smallest:.4g}: "
            f"the relative bias is up to {share:.2g}",
        )
        extras = {"d": d, "smallest_eigenvalue": smallest, "largest_bias_share": share}
        whole = standard.solve(_gains(standard, d))[: len(equations.base.layout)]
        return replace(estimate, least_norm=whole, findings=(*estimate.findings, found), extras=extras)

    def parameters(self, equations: Factors) -> Floats:
        """(p,) all standard parameters, as in [Atkeson1986] Table 4: near the smallest norm, seldom possible bodies."""
        standard = StandardEquations.of(equations, joint_weights(equations, self.weighted))
        return standard.solve(_gains(standard, self._chosen(standard)))[: len(equations.base.layout)]

    def _chosen(self, standard: StandardEquations) -> float:
        if not standard.rank:
            raise IdentifiabilityError("the motion reveals nothing at all", remedy="Move the robot.")
        if isinstance(self.d, str):
            paper = PAPERS_SHARE * standard.smallest_eigenvalue
            return paper if self.d == "paper" else cross_validated_ridge(standard)
        return self.d


def cross_validated_ridge(standard: StandardEquations) -> float:
    """The d that minimises generalised cross-validation (Golub, Heath and Wahba 1979)."""
    squares = standard.singular_values**2
    right = (standard.U.T @ standard.factor.z) ** 2

    def score(log_d: float) -> float:
        left_over = np.exp(log_d) / (squares + np.exp(log_d))
        unused = standard.factor.samples - squares.size + left_over.sum()
        return float(np.log(standard.factor.residual + left_over**2 @ right + 1e-300) - 2.0 * np.log(unused))

    low, high = np.log(1e-8 * standard.smallest_eigenvalue), np.log(squares[0])
    start = np.linspace(low, high, 60)  # the score may have several valleys: look everywhere first
    best = start[int(np.argmin([score(x) for x in start]))]
    width = start[1] - start[0]
    return float(np.exp(minimize_scalar(score, bounds=(best - width, best + width), method="bounded").x))


def _gains(standard: StandardEquations, d: float) -> Floats:
    return np.asarray(standard.singular_values / (standard.singular_values**2 + d))  # [Atkeson1986] eq. (20)
