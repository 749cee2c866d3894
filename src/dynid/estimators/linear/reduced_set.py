"""Least squares on a reduced set of standard parameters psi, the others zero ([Atkeson1986] sections 2.2 and 5).

Of each set of parameters that only act in combination, all but one are set to zero; "what remains is a reduced
full-rank ``K^T K``" of the equations ``tau = K psi``. Which one stays is a choice: by default the columns that the base
parameters keep.

K is not computed from the samples: with the triangle R of the QR decomposition of the base parameters' equations, and
base parameters = grouping @ psi, ``K = R @ grouping`` but for an orthogonal factor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dynid.data_reduction.factor import Factor
from dynid.data_reduction.triangular import echelon
from dynid.decompositions import lstsq
from dynid.errors import ArgumentError
from dynid.estimators.equations import Factors
from dynid.estimators.estimate import Estimate, Estimator
from dynid.estimators.linear.least_squares import least_squares_estimate
from dynid.estimators.noise import check_data
from dynid.findings import Finding


@dataclass(frozen=True, slots=True)
class ReducedSet(Estimator):
    """Least squares on linearly independent standard parameters, all others zero."""

    name: ClassVar[str] = "reduced-set"
    title: ClassVar[str] = "least squares on a reduced set"
    use: ClassVar[str] = "single standard parameters are wanted, the others set to zero"
    references: ClassVar[tuple[str, ...]] = ("Atkeson1986",)

    zero: tuple[str, ...] = ()
    """Names of parameters that must be zero; others then take their place."""

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate; the base parameters are the combinations of the parameters that were kept.

        Raises:
            ArgumentError: With the parameters of ``zero`` left out, the others cannot express all base parameters.
            IdentifiabilityError: There are too few equations.
        """
        check_data(equations, spare=1)
        weights = np.ones(equations.robot.dof)  # joints count alike, as in the paper
        factor = equations.information.weight(weights)
        columns = self._kept_columns(equations, factor)
        psi = np.zeros(equations.grouping.shape[1])
        K = factor.R @ equations.grouping[:, columns]
        length = np.linalg.norm(K, axis=0)
        psi[list(columns)] = lstsq(K / length, factor.z) / length
        plain = least_squares_estimate(equations, weights, "reduced-set least squares")
        names = (*equations.base.layout.names, *(term.name for term in equations.terms))
        message = f"{len(columns)} parameters are kept, the others are zero: {' '.join(names[c] for c in columns)}"
        found = Finding(code="method", severity="note", where="parameters", message=message)
        return replace(
            plain,
            values=equations.grouping @ psi,
            least_norm=psi[: len(equations.base.layout)],  # the terms besides the robot's own stand behind
            findings=(*plain.findings, found),
        )

    def _kept_columns(self, equations: Factors, factor: Factor) -> tuple[int, ...]:
        """Choose linearly independent columns of K that span its range, those of the base parameters first.

        Raises:
            ArgumentError: The columns that may be chosen do not span it.
        """
        excluded = {equations.base.layout.index(name) for name in self.zero}
        p = len(equations.base.layout)
        preferred = [*equations.base.columns, *range(p, equations.grouping.shape[1])]  # from p on: further terms
        order = [c for c in (*preferred, *(set(range(p)) - set(preferred))) if c not in excluded]
        full = factor.R @ equations.grouping[:, order]
        K = np.zeros((len(order), len(order)))  # echelon takes square matrices
        if len(full) <= len(K):
            K[: len(full)] = full
        else:
            K[:] = np.linalg.qr(full, mode="r")
        length = np.linalg.norm(K, axis=0)
        least = factor.resolution
        # a column that depends on those before it has no pivot; columns of rounding are set to zero
        pivots = np.diagonal(echelon(K / np.where(length > least * length.max(), length, np.inf), least))
        columns = tuple(sorted(c for c, pivot in zip(order, pivots, strict=True) if pivot > 0.0))
        if len(columns) < factor.rank:
            raise ArgumentError(
                f"with {', '.join(self.zero)} zero only {len(columns)} of {factor.rank} combinations can be expressed",
                remedy="Some of them act alone, or are all that is left of a combination: leave one of those out.",
            )
        return columns
