"""Huber's robust estimator: outliers count less, by iteratively re-weighted least squares.

The residuals e of a joint are divided by their robust standard deviation s (from the median absolute deviation). With
``u = e / s`` a sample gets the weight ``psi(u) / u`` of Huber's influence function, ``psi = max(-k, min(k, u))``: in
full up to k, then falling. The covariance is that of M-estimators (Huber 1981, section 7.6), ``A^-1 B A^-1`` with
``A = sum psi'(u) x x^T / s^2`` over the rows x of the equations, and B from the scores ``psi(u) x / s``, summed over
blocks of time.

`Huber` is a public estimator. It reads single samples, so that its equations must be those of experiments in memory.
In each round the weighted rows are reduced to the triangle of a QR decomposition, one for each block of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.stats import norm

from dynid.array_types import Floats
from dynid.checks import check_number
from dynid.estimators.equations import TIME_BLOCKS, Factors, Samples, cut_blocks, factors_of, sample_blocks
from dynid.estimators.estimate import Estimate, Estimator
from dynid.estimators.linear.least_squares import weighted_values
from dynid.estimators.noise import check_data, joint_variances
from dynid.estimators.online.triangle import RowTriangle
from dynid.estimators.score_covariance import score_covariance, solution_root
from dynid.findings import Finding

SETTLED = 1e-3
"""Step at which a search ends [standard deviations of the parameters, rad, or relative] (convention: the next step of
Gauss-Newton would be about its square); smaller distances are rounding."""
LEAST_SCALE = 1e-8
"""Smallest robust standard deviation of a joint, over its torque: below it residuals are rounding (convention)."""
MOST_ROUNDS = 100
"""Rounds after which to stop without convergence (convention)."""


@dataclass(frozen=True, slots=True)
class Huber(Estimator):
    """Huber's estimator: minimises squares of small residuals and absolute values of large ones.

    Use it if some samples are outliers. The problem is convex, so the answer is unique.
    """

    name: ClassVar[str] = "huber"
    title: ClassVar[str] = "Huber's robust least squares"
    use: ClassVar[str] = "some samples are outliers"
    reads_samples: ClassVar[bool] = True

    tuning: float = 1.345
    """k, the size in standard deviations from which on residuals count less. With the default of 1.345 the estimator is
    95 % as efficient as least squares under normal noise."""

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        check_number("tuning", self.tuning, "a number above zero")

    def estimate(self, equations: Samples) -> Estimate:
        """Estimate: fit, compute scales and weights from the residuals, and fit again until nothing changes."""
        check_data(equations, spare=1)
        beta = weighted_values(equations)
        findings: tuple[Finding, ...] = ()
        for _ in range(MOST_ROUNDS):
            factor = self._weigh_rows(equations, beta).information.weight()
            step = factor.solve(minimum_norm=True) - beta
            beta = beta + step
            if np.linalg.norm(factor.R @ step) <= SETTLED:  # the rows are in units of the noise
                break
        else:  # no break
            message = f"the weights still changed after {MOST_ROUNDS} rounds"
            findings = (Finding(code="not-converged", severity="warning", where="estimate", message=message),)
        scales = _scales(equations, beta)
        joined = self._weigh_rows(equations, beta)
        inside = np.zeros(equations.robot.dof)
        outliers = 0
        for run in equations.experiments:
            u = np.abs(equations.residual(beta, run) / scales)  # NaN where a sample does not count
            inside += np.count_nonzero(u <= self.tuning, axis=0)
            outliers += int(np.count_nonzero(u > 2.0 * self.tuning))  # with less than half of the full weight
        slopes = np.maximum(inside / np.maximum(equations.counts, 1), 1e-3)  # mean of psi' of each joint
        root, undetermined = solution_root(equations.information.weight(slopes / scales**2))
        # the rows of `joined` are weighted already, so its residuals are those of one joint of weight one
        one = np.ones(1)
        covariance = score_covariance(joined, beta, root, one, joint_variances(joined, beta), one)
        covariance[undetermined, undetermined] = np.inf
        return Estimate.of(
            equations,
            values=beta,
            covariance=covariance,
            undetermined=undetermined,
            noise_std=scales,
            inflation=np.ones(equations.robot.dof),
            condition=factor.condition,
            method="Huber's robust least squares",
            findings=findings,
            extras={"share_of_outliers": outliers / int(equations.counts.sum())},
        )

    def _weigh_rows(self, equations: Samples, beta: Floats) -> Factors:
        """Reduce the equations of all joints together, each row weighted by its residual at ``beta`` (b + k,).

        The weighted rows of all joints count as equations of one joint; their scores are ``psi(u) x / s``.
        """
        scales = _scales(equations, beta)
        found: dict[tuple[int, int], tuple[RowTriangle, int]] = {}  # run and block -> its triangle, number of equations
        cuts = {id(run): cut_blocks(run, TIME_BLOCKS) for run in equations.experiments}
        for block in sample_blocks(equations):
            u = np.abs(block.effort - block.matrix @ beta) / scales
            # root of psi(u) / u, over s; zero for samples that do not count
            root = np.sqrt(self.tuning / np.maximum(u, self.tuning)) / scales * block.valid
            rows = np.concatenate([block.matrix, block.effort[..., None]], axis=2) * root[..., None]
            numbers = cuts[id(block.run)][block.rows]
            for number in np.unique(numbers).tolist():
                triangle, count = found.get((id(block.run), number), (RowTriangle(beta.size + 1), 0))
                triangle.update(rows[numbers == number].reshape(-1, beta.size + 1))
                found[id(block.run), number] = triangle, count + int(block.valid[numbers == number].sum())
        triangles, counts = zip(*(([triangle.R], [count]) for triangle, count in found.values()), strict=True)
        return factors_of(equations.robot, equations.base, triangles, np.array(counts), terms=equations.terms)


def _scales(equations: Samples, beta: Floats) -> Floats:
    """Compute the robust standard deviation (n,) of each joint's residuals about zero; it is never zero."""
    residuals = np.concatenate([equations.residual(beta, run) for run in equations.experiments])
    efforts = np.concatenate([np.where(run.valid, run.effort, 0.0) for run in equations.experiments])
    largest = max(float(np.abs(efforts).max(initial=0.0)), 1e-100)
    floor = LEAST_SCALE * np.maximum(np.sqrt(np.mean(efforts**2, axis=0)), LEAST_SCALE * largest)
    counted = equations.counts > 0
    # the 75 % point of the normal distribution turns a median absolute deviation into a standard deviation
    spread = np.nanmedian(np.abs(np.where(counted, residuals, 0.0)), axis=0) / norm.ppf(0.75)
    return np.where(counted, np.maximum(spread, floor), 1.0)
