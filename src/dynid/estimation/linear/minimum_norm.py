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
from dynid.estimation.linear.least_squares import least_squares_estimate, refined_weights
from dynid.estimation.noise import check_data
from dynid.findings import Finding
from dynid.information import Factor

PAPERS_SHARE = 10.0 / 3395.0
"""d over the smallest eigenvalue in [Atkeson1986] section 3.3."""
SINGULAR = 1e-13
"""Singular values of K below this part of the largest are rounding (derivation: some hundred roundings)."""


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
        return min(self.factor.rank, int(np.sum(self.singular_values > SINGULAR * self.singular_values[0])))

    def solve(self, gains: Floats) -> Floats:
        """(p,) ``V diag(gains) U^T z``."""
        return np.asarray(self.Vt.T @ (gains * (self.U.T @ self.factor.z)))


def joint_weights(equations: Factors, weighted: bool) -> Floats:
    """(n,) ones, or the inverse residual variances of `WLS`."""
    return refined_weights(equations) if weighted else np.ones(equations.robot.dof)


class NearSmallestNorm(Estimator, ABC):
    """An estimator of all standard parameters, ``psi = V diag(gains) U^T z``."""

    references: ClassVar[tuple[str, ...]] = ("Atkeson1986",)
    weighted: bool

    @abstractmethod
    def gains(self, standard: StandardEquations) -> tuple[Floats, str, dict[str, float]]:
        """(b,) gains of the singular values of equations of a rank above zero, what is said of them, and figures."""

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate; the covariance includes the square of the bias, and what is left out is not determined.

        The values are ``H`` times the least-squares ones b, with ``H = G V diag(gains) U^T R``; their mean square error
        is ``H C H^T`` plus the square of the bias ``(H - 1) b``.
        """
        check_data(equations, spare=1)
        weights = joint_weights(equations, self.weighted)
        standard, gains, message, extras = self._solved(equations, weights)
        factor = standard.factor
        H = standard.grouping @ standard.Vt.T @ (gains[:, None] * (standard.U.T @ factor.R))
        plain = least_squares_estimate(equations, weights, self.title)
        known, away = ~plain.undetermined, H - np.eye(len(H))
        bias = away @ plain.values
        covariance = H @ np.where(np.outer(known, known), plain.covariance, 0.0) @ H.T + np.outer(bias, bias)
        scale = np.where(np.isfinite(factor.scale), factor.scale, 1.0)
        lost = ~known | ((gains == 0.0).any() & (np.abs(away * scale[:, None] / scale).max(axis=1) > 1e-6))
        covariance[lost, lost] = np.inf
        found = Finding(code="method", severity="note", where="estimate", message=message)
        return replace(
            plain,
            values=H @ plain.values,
            covariance=covariance,
            undetermined=lost,
            least_norm=standard.solve(gains)[: len(equations.base.layout)],
            findings=(*plain.findings, found),
            extras=extras,
        )

    def parameters(self, equations: Factors) -> Floats:
        """(p,) all standard parameters, as in [Atkeson1986] Table 4: near the smallest norm, seldom possible bodies."""
        standard, gains, _, _ = self._solved(equations, joint_weights(equations, self.weighted))
        return standard.solve(gains)[: len(equations.base.layout)]

    def _solved(self, equations: Factors, weights: Floats) -> tuple[StandardEquations, Floats, str, dict[str, float]]:
        standard = StandardEquations.of(equations, weights)
        if not standard.rank:
            raise IdentifiabilityError("the motion reveals nothing at all", remedy="Move the robot.")
        return standard, *self.gains(standard)


@dataclass(frozen=True, slots=True)
class Ridge(NearSmallestNorm):
    """Least squares made regular by a small number on the diagonal."""

    name: ClassVar[str] = "ridge"
    title: ClassVar[str] = "ridge regression"
    use: ClassVar[str] = "the equations are nearly singular and a small bias does no harm"

    d: float | None = None
    """The number; by default 0.3 % of the smallest eigenvalue that is not zero, as in the paper."""
    weighted: bool = False
    """Whether joints count by the inverse of their residual variances; in the paper they count alike."""

    def __post_init__(self) -> None:
        """Refuse numbers that do not regularise."""
        check_number("d", self.d, "a number above zero, or None")

    def gains(self, standard: StandardEquations) -> tuple[Floats, str, dict[str, float]]:
        values, smallest = standard.singular_values, float(standard.singular_values[standard.rank - 1] ** 2)
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
    weighted: bool = False
    """Whether joints count by the inverse of their residual variances; in the paper they count alike."""

    def __post_init__(self) -> None:
        """Refuse cuts that leave nothing."""
        if not 0.0 <= self.cut < 1.0:
            raise ArgumentError(f"the cut is {self.cut}", remedy="Give a part of the largest singular value, below 1.")

    def gains(self, standard: StandardEquations) -> tuple[Floats, str, dict[str, float]]:
        values = standard.singular_values
        kept = min(standard.rank, int(np.sum(values > self.cut * values[0])))
        gains = np.zeros_like(values)
        gains[:kept] = 1.0 / values[:kept]
        message = f"{kept} of {values.size} singular values are kept, from {values[0]:.3g} to {values[kept - 1]:.3g}"
        return gains, message, {"rank": kept, "largest": float(values[0]), "smallest_kept": float(values[kept - 1])}


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
