"""Total least squares: errors in the columns of the equations as well as in the torques, some columns free of them.

Of the triangle of ``[W_exact W tau]`` only the lower right part matters to the parameters whose columns have errors:
with the errors' covariance ``C = L L^T`` the singular vector v of ``R22 L^-T`` with the smallest singular value s gives
``[x; -1] ~ L^-T v`` (Golub and Van Loan 1980; mixed with exact columns: Van Huffel and Vandewalle 1991, section 3.5).
The triangle comes from the streamed reduction, so that the length of the log does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from dynid.arrays import Floats
from dynid.decompositions import singular_values, svd
from dynid.errors import ArgumentError, EstimationError, IdentifiabilityError
from dynid.estimation.equations import Factors, Samples, wrong_kind_error
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.least_squares import refined_weights
from dynid.estimation.noise import check_data, correlation_inflation, joint_variances
from dynid.estimation.samples import sample_blocks
from dynid.findings import Finding
from dynid.information import Factor
from dynid.kernels import regressor
from dynid.processing.differentiation import CentralDifferences, Differentiation
from dynid.processing.filters import Butterworth, Smoothing
from dynid.terms.base import Dependence

FLOOR = 1e-8
"""Least part of each column's error that is taken as independent of the other columns' errors. Convention."""
TORQUE_SHARE = 0.05
"""Least part of the residual variance that is taken for noise of the torques themselves. Convention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TLS(Estimator):
    """Total least squares.

    Without further knowledge every column's error is taken to be the same part of its length, the torque's too. With
    the standard deviation of the positions the errors of all columns, and how they hang together, are found by
    disturbing the motion once more.
    """

    name: ClassVar[str] = "tls"
    title: ClassVar[str] = "total least squares"
    use: ClassVar[str] = "velocities and accelerations are as noisy as the torques"

    exact: tuple[str, ...] | None = None
    """Names of parameters whose columns have no errors; by default offsets and dry friction."""
    position_std: float | None = None
    """Standard deviation of white noise on the positions [rad or m], where known."""
    differentiation: Differentiation = field(default_factory=CentralDifferences)
    """How velocities and accelerations were found from the positions; only counts with `position_std`."""
    cutoff_hz: float | None = None
    """Low-pass of the positions before that [Hz]; None for none."""
    weighted: bool = True
    """Whether joints count by the inverse of their residual variance."""
    smallest_gap: float = 1.05
    """Refuse when the smallest singular value without the torque is less than this times the one with it."""
    EXACT: ClassVar[tuple[Dependence, ...]] = (Dependence.CONSTANT, Dependence.DIRECTION)
    """Columns without errors: those that position noise does not change."""

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        if not self.smallest_gap > 1.0 or (self.position_std is not None and not self.position_std > 0.0):
            raise ArgumentError(f"the gap must exceed 1 and the noise be positive, not {self}")

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate; refuses where errors of columns and of torques cannot be told apart.

        Raises:
            IdentifiabilityError: The motion leaves parameters open.
            EstimationError: The gap between the singular values is too small.
        """
        check_data(equations)
        weights = refined_weights(equations) if self.weighted else np.ones(equations.robot.dof)
        factor = equations.information.weight(weights)
        if factor.rank < len(factor.columns):
            raise IdentifiabilityError(
                f"total least squares needs determined parameters: {'; '.join(factor.flags)}",
                remedy="Move the robot more, or use WLS(), which marks what stays open.",
            )
        wrong = np.flatnonzero(~np.isin(equations.names, self._exact(equations)))
        C = self._errors(equations, factor, weights)
        beta, s, gap = _mixed(_triangle(factor), wrong, C, self.smallest_gap)
        return self._estimate(equations, weights, factor, C, beta, s, gap)

    def _exact(self, equations: Factors) -> tuple[str, ...]:
        if self.exact is not None:
            unknown = sorted(set(self.exact).difference(equations.names))
            if unknown:
                raise ArgumentError(f"there is no parameter '{unknown[0]}'", remedy=f"There are {equations.names}.")
            return self.exact
        layout = equations.base.layout
        kinds = [layout[column].dependence for column in equations.base.columns]
        return tuple(name for name, kind in zip(equations.names, kinds, strict=False) if kind in self.EXACT)

    def _errors(self, equations: Factors, factor: Factor, weights: Floats) -> Floats:
        """(b + k + 1,) squared covariance of the errors of all weighted equations together, up to a common factor."""
        lengths = np.append(np.linalg.norm(factor.R, axis=0), np.sqrt(factor.z @ factor.z + factor.residual))
        if self.position_std is None:
            return np.diag(lengths**2)
        per_joint = column_errors(equations, self.position_std, self.differentiation, self.cutoff_hz)
        C = np.zeros((lengths.size,) * 2)
        C[:-1, :-1] = np.tensordot(weights, per_joint, axes=1)
        beta = factor.solve()
        variances, counts = joint_variances(equations, beta), np.maximum(equations.counts, 1)
        noise = np.einsum("jab,a,b->j", per_joint, beta, beta) / counts
        torque = np.maximum(variances - noise, TORQUE_SHARE * variances)
        C[-1, -1] = float(np.sum(weights * torque * counts))
        return C + FLOOR * np.diag(np.maximum(np.diagonal(C), 1e-12 * lengths**2))

    def _estimate(
        self, equations: Factors, weights: Floats, factor: Factor, C: Floats, beta: Floats, s: float, gap: float
    ) -> Estimate:
        """The estimate with its covariance ``(A - s^2 C)^-1 B (A - s^2 C)^-1`` to first order in the errors."""
        variances, inflation = joint_variances(equations, beta), correlation_inflation(equations, beta)
        spread = equations.information.weight(weights**2 * variances * inflation)
        wrong = ~np.isin(equations.names, self._exact(equations))
        errors = C[:-1, :-1] * np.outer(wrong, wrong)
        half = np.linalg.solve(factor.R.T @ factor.R - s**2 * errors, spread.R.T)
        return Estimate(
            names=equations.names,
            units=equations.units,
            values=beta,
            covariance=half @ half.T,
            undetermined=np.zeros(beta.size, dtype=bool),
            noise_std=np.sqrt(variances),
            inflation=inflation,
            samples=equations.counts,
            condition=factor.condition,
            method="total least squares",
            findings=(
                Finding(
                    code="exact-columns",
                    severity="note",
                    where="estimate",
                    message=f"{int(np.sum(~wrong))} columns are taken to be exact; gap of singular values {gap:.3g}",
                ),
            ),
            extras={"gap": gap, "smallest": s},
        )


def _triangle(factor: Factor) -> Floats:
    """(b + 1, b + 1) of the equations with their torques."""
    b = len(factor.columns)
    whole = np.zeros((b + 1, b + 1))
    whole[:b, :b], whole[:b, b], whole[b, b] = factor.R, factor.z, np.sqrt(factor.residual)
    return whole


def _mixed(R: Floats, wrong: NDArray[np.int64], C: Floats, smallest_gap: float) -> tuple[Floats, float, float]:
    """Solution (b,), smallest singular value, and its distance from the next as a ratio.

    Args:
        R: (b + 1, b + 1) triangle of the equations, torques last.
        wrong: Columns with errors.
        C: (b + 1, b + 1) covariance of the errors, up to a factor.
        smallest_gap: Ratio below which the answer is refused.
    """
    b = len(R) - 1
    right = np.setdiff1d(np.arange(b), wrong)
    order = np.concatenate([right, wrong, [b]])
    sorted_R = np.asarray(np.linalg.qr(R[:, order], mode="r"))
    k = right.size
    L = np.linalg.cholesky(C[np.ix_(order[k:], order[k:])])
    whitened = solve_triangular(L, sorted_R[k:, k:].T, lower=True).T
    _, values, Vt = svd(whitened)
    s = float(values[-1])
    without = singular_values(solve_triangular(L[:-1, :-1], sorted_R[k:, k:-1].T, lower=True))
    gap = float(without[-1]) / max(s, 1e-300) if without.size else np.inf
    direction = solve_triangular(L, Vt[-1], trans="T", lower=True)
    if gap < smallest_gap or not abs(direction[-1]) > 1e-12 * np.abs(direction).max():
        raise EstimationError(
            f"total least squares cannot tell errors of columns from errors of torques: the smallest singular value is "
            f"{gap:.3g} times as large without the torque, {smallest_gap:g} at least is wanted",
            remedy="Filter the positions more, excite more (lower the condition number), give position_std, "
            "or use an instrumental-variable or output-error method.",
        )
    beta = np.zeros(b)
    beta[wrong] = -direction[:-1] / direction[-1]
    beta[right] = solve_triangular(sorted_R[:k, :k], sorted_R[:k, -1] - sorted_R[:k, k:-1] @ beta[wrong])
    return beta, s, gap


def column_errors(
    equations: Factors,
    position_std: float,
    differentiation: Differentiation,
    cutoff_hz: float | None = None,
    seed: int = 0,
) -> Floats:
    """(n, b + k, b + k) for each joint the sum over all samples of the squared errors of its columns.

    The positions are disturbed once more by the same noise, processed alike, and the columns compared; thousands of
    samples average what one draw leaves to chance.

    Args:
        equations: The equations, without terms or band.
        position_std: Standard deviation of the white noise on the positions [rad or m].
        differentiation: How velocities and accelerations were found.
        cutoff_hz: Low-pass of the positions before that [Hz].
        seed: Of the noise.
    """
    if not isinstance(equations, Samples):
        raise wrong_kind_error("TLS with position_std", equations, (Samples,))
    if equations.terms:
        raise ArgumentError("errors of columns are known for the robot's own terms only", remedy="Leave terms out.")
    rng = np.random.default_rng(seed)
    total = np.zeros((equations.robot.dof, equations.base.rank, equations.base.rank))
    for block in sample_blocks(equations, 2**30):
        run, rows = block.run, block.rows
        smoothing = Smoothing(rate_hz=run.rate_hz, cutoff_hz=cutoff_hz, low_pass=Butterworth())
        noise = position_std * rng.normal(size=run.q[rows].shape)
        moved = differentiation.motion(noise, None, smoothing)
        states = (run.q[rows] + moved.q, run.dq[rows] + moved.dq, run.ddq[rows] + moved.ddq)
        change = regressor(equations.robot, *states, columns=equations.base.columns) - block.matrix
        change *= block.valid[..., None]
        total += np.einsum("kja,kjb->jab", change, change, optimize=True)
    return total
