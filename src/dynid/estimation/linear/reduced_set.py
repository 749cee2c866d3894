"""Least squares on a reduced set of standard parameters, the others zero ([Atkeson1986] sections 2.2 and 5).

Of each set of parameters that act in combination, all but one are set to zero; "what remains is a reduced full-rank
``K^T K``". Which one stays is a choice: by default the kept columns of the base parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.least_squares import least_squares_estimate
from dynid.estimation.linear.minimum_norm import joint_weights
from dynid.estimation.problem import Problem
from dynid.estimation.samples import check_samples
from dynid.information import Factor
from dynid.information.triangular import echelon

__all__ = ["ReducedSet"]

Floats = NDArray[np.float64]
DEPENDENT = 1e-9
"""Part of a column's length that must remain after the columns before it are removed."""


@dataclass(frozen=True, slots=True)
class ReducedSet(Estimator):
    """Least squares on independent standard parameters, all others zero."""

    zero: tuple[str, ...] = ()
    """Parameters that must be among the zeros; others then take their place."""
    weighted: bool = False
    """Whether joints count by the inverse of their residual variances; in the paper they count alike."""

    def solve(self, problem: Problem) -> Estimate:
        """Estimate; the base parameters are the combinations of the parameters that were kept."""
        check_samples(problem)
        weights = joint_weights(problem, self.weighted)
        factor = problem.information.weight(weights)
        columns = self._columns(problem, factor)
        psi = _fitted(problem, factor, columns)
        plain = least_squares_estimate(problem, weights, "reduced-set least squares")
        names = (*problem.base.layout.names, *(feature.name for feature in problem.features))
        note = f"{len(columns)} parameters kept, the others zero: {' '.join(names[c] for c in columns)}"
        return replace(plain, values=problem.grouping @ psi, notes=(*plain.notes, note))

    def parameters(self, problem: Problem) -> Floats:
        """(p,) the standard parameters with their zeros: the same torques at less cost; seldom possible bodies."""
        factor = problem.information.weight(joint_weights(problem, self.weighted))
        return _fitted(problem, factor, self._columns(problem, factor))[: len(problem.base.layout)]

    def kept(self, problem: Problem) -> tuple[str, ...]:
        """Names of the standard parameters that are not set to zero."""
        columns = self._columns(problem, problem.information.weight(joint_weights(problem, self.weighted)))
        return tuple(problem.base.layout.names[c] for c in columns if c < len(problem.base.layout))

    def _columns(self, problem: Problem, factor: Factor) -> tuple[int, ...]:
        """Independent columns of K that explain all that K explains, the base's own before others."""
        excluded = {problem.base.layout.index(name) for name in self.zero}
        p, width = len(problem.base.layout), problem.grouping.shape[1]
        preferred = [*problem.base.columns, *range(p, width)]
        order = [c for c in (*preferred, *(set(range(p)) - set(preferred))) if c not in excluded]
        K = np.zeros((len(order), len(order)))
        full = factor.R @ problem.grouping[:, order]
        K[: len(full)] = full[: len(K)] if len(full) <= len(K) else np.linalg.qr(full, mode="r")
        length = np.linalg.norm(K, axis=0)
        independent = np.diagonal(echelon(K / np.where(length > DEPENDENT * length.max(), length, np.inf), DEPENDENT))
        columns = tuple(sorted(c for c, pivot in zip(order, independent, strict=True) if pivot > 0.0))
        if len(columns) < factor.rank:
            raise ArgumentError(
                f"with {', '.join(self.zero)} zero only {len(columns)} of {factor.rank} combinations can be expressed",
                remedy="Some of them act alone, or are all that is left of a combination: leave one of those out.",
            )
        return columns


def _fitted(problem: Problem, factor: Factor, columns: tuple[int, ...]) -> Floats:
    psi = np.zeros(problem.grouping.shape[1])
    K = factor.R @ problem.grouping[:, columns]
    length = np.linalg.norm(K, axis=0)
    psi[list(columns)] = np.linalg.lstsq(K / length, factor.z, rcond=None)[0] / length
    return psi
