"""Least squares by singular values of the equations of all standard parameters, ``K = U S V^T`` ([Atkeson1986] 2.2).

For each column of V with a singular value that is not zero, the combination ``v^T psi`` is identifiable. Values below a
cut are taken for zero: their directions are left at zero instead of being filled with amplified noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.minimum_norm import StandardEquations, joint_weights, map_estimate
from dynid.estimation.noise import check_data
from dynid.findings import Finding


@dataclass(frozen=True, slots=True)
class TruncatedSVD(Estimator):
    """The pseudo-inverse, with small singular values left out."""

    name: ClassVar[str] = "svd"
    title: ClassVar[str] = "truncated singular value decomposition"
    use: ClassVar[str] = "it must be seen which combinations the motion reveals"
    references: ClassVar[tuple[str, ...]] = ("Atkeson1986",)

    cut: float = 1e-10
    """Singular values below this part of the largest are taken for zero."""
    weighted: bool = False
    """Whether joints count by the inverse of their residual variances; in the paper they count alike."""

    def __post_init__(self) -> None:
        """Refuse cuts that leave nothing."""
        if not 0.0 <= self.cut < 1.0:
            raise ArgumentError(f"the cut is {self.cut}", remedy="Give a part of the largest singular value, below 1.")

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate; what a direction left out takes part in is reported as not determined."""
        check_data(equations, spare=1)
        weights = joint_weights(equations, self.weighted)
        standard = StandardEquations.of(equations, weights)
        kept = self._kept(standard)
        H = standard.base_map(_gains(standard, kept))
        estimate = map_estimate(equations, weights, H, "truncated singular value decomposition")
        scale = np.where(np.isfinite(standard.factor.scale), standard.factor.scale, 1.0)
        lost = np.abs((H - np.eye(len(H))) * scale[:, None] / scale).max(axis=1) > 1e-6
        covariance = estimate.covariance.copy()
        covariance[lost, lost] = np.inf
        values = standard.singular_values
        extras = {"rank": float(kept), "largest": float(values[0]), "smallest_kept": float(values[kept - 1])}
        found = Finding(
            code="method",
            severity="note",
            where="estimate",
            message=f"{kept} of {values.size} singular values are kept, from {values[0]:.3g} to {values[kept - 1]:.3g}",
        )
        return replace(
            estimate,
            covariance=covariance,
            undetermined=estimate.undetermined | lost,
            least_norm=standard.solve(_gains(standard, kept))[: len(equations.base.layout)],
            findings=(*estimate.findings, found),
            extras=extras,
        )

    def parameters(self, equations: Factors) -> Floats:
        """(p,) all standard parameters, of the smallest norm; seldom possible bodies."""
        standard = StandardEquations.of(equations, joint_weights(equations, self.weighted))
        gains = _gains(standard, self._kept(standard))
        return standard.solve(gains)[: len(equations.base.layout)]

    def _kept(self, standard: StandardEquations) -> int:
        values = standard.singular_values
        kept = min(standard.rank, int(np.sum(values > self.cut * values[0])))
        if not kept:
            raise IdentifiabilityError("the motion reveals nothing at all", remedy="Move the robot.")
        return kept


def _gains(standard: StandardEquations, kept: int) -> Floats:
    gains = np.zeros_like(standard.singular_values)
    gains[:kept] = 1.0 / standard.singular_values[:kept]
    return gains


def singular_groups(equations: Factors, tolerance: float = 1e-6) -> dict[str, tuple[str, ...]]:
    """The three groups of [Atkeson1986] section 4.2.1, read from V: ``fully``, ``in combinations``, ``not at all``.

    The projection of a parameter's own direction on the identifiable ones has length one, between, or zero.

    Args:
        equations: The equations; its motion decides.
        tolerance: Distance of the squared length from one and zero that counts as none.
    """
    standard = StandardEquations.of(equations, np.ones(equations.robot.dof))
    names = equations.base.layout.names
    share = (standard.Vt[: standard.rank, : len(names)] ** 2).sum(axis=0)
    groups = np.where(share > 1.0 - tolerance, 0, np.where(share < tolerance, 2, 1))
    titles = ("fully", "in combinations", "not at all")
    return {
        title: tuple(name for name, group in zip(names, groups, strict=True) if group == place)
        for place, title in enumerate(titles)
    }
