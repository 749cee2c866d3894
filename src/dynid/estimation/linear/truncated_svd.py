"""Least squares by singular values of the equations of all standard parameters, ``K = U S V^T`` ([Atkeson1986] 2.2).

For each column of V with a singular value that is not zero, the combination ``v^T psi`` is identifiable. Values below a
cut are taken for zero: their directions are left at zero instead of being filled with amplified noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.minimum_norm import StandardEquations, joint_weights, mapped
from dynid.estimation.problem import Problem
from dynid.estimation.samples import check_samples

__all__ = ["TruncatedSVD", "singular_groups"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TruncatedSVD(Estimator):
    """The pseudo-inverse, with small singular values left out."""

    cut: float = 1e-10
    """Singular values below this part of the largest are taken for zero."""
    weighted: bool = False
    """Whether joints count by the inverse of their residual variances; in the paper they count alike."""

    def __post_init__(self) -> None:
        """Refuse cuts that leave nothing."""
        if not 0.0 <= self.cut < 1.0:
            raise ArgumentError(f"the cut is {self.cut}", remedy="Give a part of the largest singular value, below 1.")

    def solve(self, problem: Problem) -> Estimate:
        """Estimate; what a direction left out takes part in is reported as not determined."""
        check_samples(problem)
        weights = joint_weights(problem, self.weighted)
        equations = StandardEquations.of(problem, weights)
        kept = self._kept(equations)
        H = equations.base_map(_gains(equations, kept))
        estimate = mapped(problem, weights, H, "truncated singular value decomposition")
        scale = np.where(np.isfinite(equations.factor.scale), equations.factor.scale, 1.0)
        lost = np.abs((H - np.eye(len(H))) * scale[:, None] / scale).max(axis=1) > 1e-6
        covariance = estimate.covariance.copy()
        covariance[lost, lost] = np.inf
        values = equations.singular_values
        extras = {"rank": float(kept), "largest": float(values[0]), "smallest_kept": float(values[kept - 1])}
        note = f"{kept} of {values.size} singular values kept, from {values[0]:.3g} to {values[kept - 1]:.3g}"
        return replace(
            estimate,
            covariance=covariance,
            undetermined=estimate.undetermined | lost,
            notes=(*estimate.notes, note),
            extras=extras,
        )

    def parameters(self, problem: Problem) -> Floats:
        """(p,) all standard parameters, of the smallest norm; seldom possible bodies."""
        equations = StandardEquations.of(problem, joint_weights(problem, self.weighted))
        gains = _gains(equations, self._kept(equations))
        return equations.solve(gains)[: len(problem.base.layout)]

    def _kept(self, equations: StandardEquations) -> int:
        values = equations.singular_values
        kept = min(equations.rank, int(np.sum(values > self.cut * values[0])))
        if not kept:
            raise IdentifiabilityError("the motion reveals nothing at all", remedy="Move the robot.")
        return kept


def _gains(equations: StandardEquations, kept: int) -> Floats:
    gains = np.zeros_like(equations.singular_values)
    gains[:kept] = 1.0 / equations.singular_values[:kept]
    return gains


def singular_groups(problem: Problem, tolerance: float = 1e-6) -> dict[str, tuple[str, ...]]:
    """The three groups of [Atkeson1986] section 4.2.1, read from V: ``fully``, ``in combinations``, ``not at all``.

    The projection of a parameter's own direction on the identifiable ones has length one, between, or zero.

    Args:
        problem: The problem; its motion decides.
        tolerance: Distance of the squared length from one and zero that counts as none.
    """
    equations = StandardEquations.of(problem, np.ones(problem.robot.dof))
    names = problem.base.layout.names
    share = (equations.Vt[: equations.rank, : len(names)] ** 2).sum(axis=0)
    groups = np.where(share > 1.0 - tolerance, 0, np.where(share < tolerance, 2, 1))
    titles = ("fully", "in combinations", "not at all")
    return {
        title: tuple(name for name, group in zip(names, groups, strict=True) if group == place)
        for place, title in enumerate(titles)
    }
