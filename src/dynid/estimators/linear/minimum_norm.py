"""All standard parameters psi together, near the smallest norm ([Atkeson1986]): truncated SVD and ridge regression.

The equations ``tau = K psi`` of all standard parameters (eqs. 17-18) have dependent columns. With the singular value
decomposition ``K = U S V^T`` an estimate is ``psi = V diag(f) U^T tau``, where f holds an inverse factor per singular
value s; ``1 / s`` would be least squares.

- `TruncatedSVD`: 1 / s, and 0 for singular values below a cut, whose directions would only amplify noise. For each
  column v of V that is kept, the combination ``v^T psi`` is identifiable.
- `Ridge`: ``s / (s^2 + d)``, which is eq. (20), ``psi = (K^T K + d 1)^-1 K^T tau``. Along a direction with eigenvalue
  ``lambda = s^2`` of ``K^T K`` it falls short of least squares by the share ``d / (lambda + d)``. With d far below the
  smallest non-zero eigenvalue this share is small in all directions that the data show, and the others stay at zero.
  The paper took d = 10 for a smallest eigenvalue of 3395, and that ratio is the default here.

K is not computed from the samples. The equations of the base parameters are reduced to a triangle R and a right side z
by a QR decomposition. With the grouping matrix G (base parameters = G psi), ``K = R G`` and ``tau = z``, but for an
orthogonal factor, which changes no residual.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from dynid.array_types import Floats
from dynid.checks import check_number
from dynid.decompositions import svd
from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimators.equations import Factors
from dynid.estimators.estimate import Estimate, Estimator
from dynid.estimators.linear.least_squares import least_squares_estimate
from dynid.estimators.noise import check_data
from dynid.estimators.score_covariance import OPEN
from dynid.findings import Finding

PAPERS_RATIO = 10.0 / 3395.0
"""d over the smallest eigenvalue in [Atkeson1986] section 3.3."""


class InverseFactors(NamedTuple):
    """How an estimator inverts the singular values."""

    factors: Floats
    """(b,) inverse factor of each singular value."""
    message: str
    """One sentence about them, for the finding."""
    extras: dict[str, float]
    """Numbers about them, by name, for `Estimate.extras`."""


class NearSmallestNorm(Estimator, ABC):
    """An estimator of all standard parameters; joints have equal weights, as in the paper."""

    references: ClassVar[tuple[str, ...]] = ("Atkeson1986",)

    @abstractmethod
    def inverse_factors(self, values: Floats, rank: int) -> InverseFactors:
        """Compute the inverse factors of singular values.

        Args:
            values: (b,) singular values, in falling order.
            rank: Number of them that are not rounding.
        """

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate; the covariance includes the square of the bias.

        In base parameters the values are ``H beta``, with ``beta`` of least squares, its covariance C and
        ``H = G V diag(f) U^T R``. Their bias is ``(H - 1) beta``, their mean square error ``H C H^T`` plus its square.

        A base parameter is undetermined if it is so in least squares, or if a singular value was cut off and more than
        the share `OPEN` of it depends on that direction.

        Raises:
            IdentifiabilityError: There are too few equations, or they say nothing.
        """
        check_data(equations, spare=1)
        weights = np.ones(equations.robot.dof)
        factor = equations.information.weight(weights)
        G = equations.grouping
        if not factor.rank:
            raise IdentifiabilityError("the motion reveals nothing at all", remedy="Move the robot.")
        U, values, Vt = svd(factor.R @ G, full_matrices=False)  # K = U S V^T, [Atkeson1986] eqs. (17)-(18)
        inverse = self.inverse_factors(values, factor.rank)
        H = G @ Vt.T @ (inverse.factors[:, None] * (U.T @ factor.R))
        plain = least_squares_estimate(equations, weights, self.title)
        known = ~plain.undetermined
        bias_map = H - np.eye(len(H))
        bias = bias_map @ plain.values
        covariance = H @ np.where(np.outer(known, known), plain.covariance, 0.0) @ H.T + np.outer(bias, bias)
        undetermined = ~known
        if not inverse.factors.all():  # some directions were cut off
            scale = np.where(np.isfinite(factor.scale), factor.scale, 1.0)
            undetermined |= np.abs(bias_map * scale[:, None] / scale).max(axis=1) > OPEN
        covariance[undetermined, undetermined] = np.inf
        found = Finding(code="method", severity="note", where="estimate", message=inverse.message)
        psi = Vt.T @ (inverse.factors * (U.T @ factor.z))
        return replace(
            plain,
            values=H @ plain.values,
            covariance=covariance,
            undetermined=undetermined,
            least_norm=psi[: len(equations.base.layout)],  # the terms besides the robot's own stand behind
            findings=(*plain.findings, found),
            extras=inverse.extras,
        )


@dataclass(frozen=True, slots=True)
class Ridge(NearSmallestNorm):
    """Ridge regression: least squares with a small number added to the diagonal."""

    name: ClassVar[str] = "ridge"
    title: ClassVar[str] = "ridge regression"
    use: ClassVar[str] = "the equations are nearly singular and a small bias does no harm"

    d: float | None = None
    """The number on the diagonal; by default 0.3 % of the smallest non-zero eigenvalue, as in the paper."""

    def __post_init__(self) -> None:
        """Refuse numbers that do not regularise."""
        check_number("d", self.d, "a number above zero, or None")

    def inverse_factors(self, values: Floats, rank: int) -> InverseFactors:
        """Compute ``s / (s^2 + d)``; see `NearSmallestNorm.inverse_factors`."""
        smallest = float(values[rank - 1] ** 2)
        d = PAPERS_RATIO * smallest if self.d is None else self.d
        share = d / (d + smallest)
        message = (
            f"d = {d:.3g} is {d / smallest:.2g} times the smallest eigenvalue {smallest:.4g}: "
            f"the relative bias is up to {share:.2g}"
        )
        extras = {"d": d, "smallest_eigenvalue": smallest, "largest_bias_share": share}
        return InverseFactors(values / (values**2 + d), message, extras)  # [Atkeson1986] eq. (20)


@dataclass(frozen=True, slots=True)
class TruncatedSVD(NearSmallestNorm):
    """Truncated singular value decomposition: the pseudo-inverse without small singular values."""

    name: ClassVar[str] = "svd"
    title: ClassVar[str] = "truncated singular value decomposition"
    use: ClassVar[str] = "it must be seen which combinations the motion reveals"

    cut: float = 1e-10
    """Singular value, over the largest one, below which it counts as zero."""

    def __post_init__(self) -> None:
        """Refuse cuts that leave nothing."""
        if not 0.0 <= self.cut < 1.0:
            raise ArgumentError(f"the cut is {self.cut}", remedy="Give a part of the largest singular value, below 1.")

    def inverse_factors(self, values: Floats, rank: int) -> InverseFactors:
        """Compute 1 / s above the cut, 0 below; see `NearSmallestNorm.inverse_factors`."""
        kept = min(rank, int(np.sum(values > self.cut * values[0])))
        factors = np.zeros_like(values)
        factors[:kept] = 1.0 / values[:kept]
        message = f"{kept} of {values.size} singular values are kept, from {values[0]:.3g} to {values[kept - 1]:.3g}"
        extras = {"rank": kept, "largest": float(values[0]), "smallest_kept": float(values[kept - 1])}
        return InverseFactors(factors, message, extras)
