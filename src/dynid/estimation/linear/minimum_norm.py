"""All standard parameters at once, as [Atkeson1986] estimates them: ``tau = K psi``, eqs. (17)-(18), ``K = U S V^T``.

K has dependent columns. It needs no data of its own: with the triangle R of the base parameters' equations and the
grouping matrix G, ``K = R G`` but for rotations that change no residual. `TruncatedSVD` takes singular values below a
cut for zero: their directions are left at zero instead of being filled with amplified noise. For each column of V with
a singular value that is not zero, the combination ``v^T psi`` is identifiable.

`Ridge` is eq. (20), ``psi = (K^T K + d 1)^-1 K^T tau``. Along a direction with eigenvalue lambda of ``K^T K`` it is
short of the least-squares estimate by the share ``d / (lambda + d)``. So with ``d << lambda_min``, the smallest
eigenvalue that is not zero, the base parameters are those of least squares but for ``d / lambda_min`` of themselves,
and the directions that data leave open stay at zero: nearly the pseudo-inverse. The paper took d = 10 for
lambda_min = 3395, and that share is the rule here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dynid.arrays import Floats
from dynid.checks import check_number
from dynid.decompositions import svd
from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.least_squares import least_squares_estimate
from dynid.estimation.noise import check_data
from dynid.estimation.score_covariance import OPEN
from dynid.findings import Finding

PAPERS_SHARE = 10.0 / 3395.0
"""d over the smallest eigenvalue in [Atkeson1986] section 3.3."""


class NearSmallestNorm(Estimator, ABC):
    """An estimator of all standard parameters, ``psi = V diag(gains) U^T z``; joints count alike, as in the paper."""

    references: ClassVar[tuple[str, ...]] = ("Atkeson1986",)

    @abstractmethod
    def gains(self, values: Floats, rank: int) -> tuple[Floats, str, dict[str, float]]:
        """(b,) gains of singular values (b,), of which so many are not rounding, what is said of them, and figures."""

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate; the covariance includes the square of the bias, and what is left out is not determined.

        The values are ``H`` times the least-squares ones b, with ``H = G V diag(gains) U^T R``; their mean square error
        is ``H C H^T`` plus the square of the bias ``(H - 1) b``.

        Raises:
            IdentifiabilityError: There are too few equations, or they say nothing.
        """
        check_data(equations, spare=1)
        weights = np.ones(equations.robot.dof)
        factor, G = equations.information.weight(weights), equations.grouping
        if not factor.rank:
            raise IdentifiabilityError("the motion reveals nothing at all", remedy="Move the robot.")
        U, values, Vt = svd(factor.R @ G, full_matrices=False)  # K = U S V^T, [Atkeson1986] eqs. (17)-(18)
        gains, message, extras = self.gains(values, factor.rank)
        H = G @ Vt.T @ (gains[:, None] * (U.T @ factor.R))
        plain = least_squares_estimate(equations, weights, self.title)
        known, away = ~plain.undetermined, H - np.eye(len(H))
        bias = away @ plain.values
        covariance = H @ np.where(np.outer(known, known), plain.covariance, 0.0) @ H.T + np.outer(bias, bias)
        scale = np.where(np.isfinite(factor.scale), factor.scale, 1.0)
        lost = ~known | ((gains == 0.0).any() & (np.abs(away * scale[:, None] / scale).max(axis=1) > OPEN))
        covariance[lost, lost] = np.inf
        found = Finding(code="method", severity="note", where="estimate", message=message)
        return replace(
            plain,
            values=H @ plain.values,
            covariance=covariance,
            undetermined=lost,
            least_norm=(Vt.T @ (gains * (U.T @ factor.z)))[: len(equations.base.layout)],
            findings=(*plain.findings, found),
            extras=extras,
        )


@dataclass(frozen=True, slots=True)
class Ridge(NearSmallestNorm):
    """Least squares made regular by a small number on the diagonal."""

    name: ClassVar[str] = "ridge"
    title: ClassVar[str] = "ridge regression"
    use: ClassVar[str] = "the equations are nearly singular and a small bias does no harm"

    d: float | None = None
    """The number; by default 0.3 % of the smallest eigenvalue that is not zero, as in the paper."""

    def __post_init__(self) -> None:
        """Refuse numbers that do not regularise."""
        check_number("d", self.d, "a number above zero, or None")

    def gains(self, values: Floats, rank: int) -> tuple[Floats, str, dict[str, float]]:
        smallest = float(values[rank - 1] ** 2)
        d = PAPERS_SHARE * smallest if self.d is None else self.d
        share = d / (d + smallest)
        message = (
            f"d = {d:.3g} is {d / smallest:.2g} times the smallest eigenvalue {smallest:.4g}: "
            f"the relative bias is up to {share:.2g}"
        )
        extras = {"d": d, "smallest_eigenvalue": smallest, "largest_bias_share": share}
        return values / (values**2 + d), message, extras  # [Atkeson1986] eq. (20)


@dataclass(frozen=True, slots=True)
class TruncatedSVD(NearSmallestNorm):
    """The pseudo-inverse, with small singular values left out."""

    name: ClassVar[str] = "svd"
    title: ClassVar[str] = "truncated singular value decomposition"
    use: ClassVar[str] = "it must be seen which combinations the motion reveals"

    cut: float = 1e-10
    """Singular values below this part of the largest are taken for zero."""

    def __post_init__(self) -> None:
        """Refuse cuts that leave nothing."""
        if not 0.0 <= self.cut < 1.0:
            raise ArgumentError(f"the cut is {self.cut}", remedy="Give a part of the largest singular value, below 1.")

    def gains(self, values: Floats, rank: int) -> tuple[Floats, str, dict[str, float]]:
        kept = min(rank, int(np.sum(values > self.cut * values[0])))
        gains = np.zeros_like(values)
        gains[:kept] = 1.0 / values[:kept]
        message = f"{kept} of {values.size} singular values are kept, from {values[0]:.3g} to {values[kept - 1]:.3g}"
        return gains, message, {"rank": kept, "largest": float(values[0]), "smallest_kept": float(values[kept - 1])}
