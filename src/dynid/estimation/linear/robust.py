"""Robust estimation: samples that do not fit count less, by iteratively re-weighted least squares.

Each joint's residuals are measured against their own robust scale s (median absolute deviation). With ``u = e / s`` a
sample gets the weight ``psi(u) / u`` of Huber's influence function, ``psi = max(-k, min(k, u))``. The covariance is
that of M-estimators (Huber 1981, section 7.6), ``A^-1 B A^-1`` with ``A = sum psi'(u) x x^T / s^2`` and B from the
scores ``psi(u) x / s`` of blocks of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.stats import norm

from dynid.arrays import Floats
from dynid.checks import check_number
from dynid.estimation.equations import TIME_BLOCKS, Factors, Samples, cut_blocks, factors_of, sample_blocks
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.least_squares import weighted_values
from dynid.estimation.noise import check_data, joint_variances
from dynid.estimation.online.triangle import RowTriangle
from dynid.estimation.score_covariance import score_covariance, solution_root
from dynid.findings import Finding

CONVERGED = 1e-3
"""Largest change of the parameters between two rounds, in their standard deviations, that is none."""
EXACT = 1e-8
"""Residuals below this part of a joint's torque are rounding, not noise."""
MOST_ROUNDS = 100
"""Rounds after which to stop, settled or not (convention)."""


@dataclass(frozen=True, slots=True)
class Huber(Estimator):
    """Huber's estimator: minimises squares of small residuals and absolute values of large ones; the answer is unique.

    Use it where some samples are outliers.
    """

    name: ClassVar[str] = "huber"
    title: ClassVar[str] = "Huber's robust least squares"
    use: ClassVar[str] = "some samples are outliers"
    reads_samples: ClassVar[bool] = True

    tuning: float = 1.345
    """Where a residual stops to count in full, in standard deviations; by default 95 % as efficient as least squares
    under normal noise."""

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        check_number("tuning", self.tuning, "a number above zero")

    def estimate(self, equations: Samples) -> Estimate:
        """Estimate with weights of samples and scales of joints in balance."""
        check_data(equations, spare=1)
        beta, findings = weighted_values(equations), tuple[Finding, ...]()
        for _ in range(MOST_ROUNDS):
            factor = self._weighted(equations, beta).information.weight()
            step = factor.solve(minimum_norm=True) - beta
            beta = beta + step
            if np.linalg.norm(factor.R @ step) <= CONVERGED:
                break
        else:
            message = f"the weights still changed after {MOST_ROUNDS} rounds"
            findings = (Finding(code="not-converged", severity="warning", where="estimate", message=message),)
        scales, joined = _scales(equations, beta), self._weighted(equations, beta)
        inside = np.zeros(equations.robot.dof)
        light = 0
        for run in equations.experiments:
            u = np.abs(equations.residual(beta, run) / scales)  # NaN where a sample does not count
            inside += np.count_nonzero(u <= self.tuning, axis=0)
            light += int(np.count_nonzero(u > 2.0 * self.tuning))
        slopes = np.maximum(inside / np.maximum(equations.counts, 1), 1e-3)  # E[psi']
        root, undetermined = solution_root(equations.information.weight(slopes / scales**2))
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
            extras={"share_of_outliers": light / int(equations.counts.sum())},
        )

    def _weighted(self, equations: Samples, beta: Floats) -> Factors:
        """The equations of all joints together, weighted as residuals at ``beta`` deserve."""
        scales, found = _scales(equations, beta), dict[tuple[int, int], tuple[RowTriangle, int]]()
        cuts = {id(run): cut_blocks(run, TIME_BLOCKS) for run in equations.experiments}
        for block in sample_blocks(equations):
            u = np.abs(block.effort - block.matrix @ beta) / scales
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
    """(n,) robust standard deviation of each joint's residuals about zero; never zero."""
    residuals = np.concatenate([equations.residual(beta, run) for run in equations.experiments])
    efforts = np.concatenate([np.where(run.valid, run.effort, 0.0) for run in equations.experiments])
    largest = max(float(np.abs(efforts).max(initial=0.0)), 1e-100)
    floor = EXACT * np.maximum(np.sqrt(np.mean(efforts**2, axis=0)), EXACT * largest)
    counted = equations.counts > 0
    spread = np.nanmedian(np.abs(np.where(counted, residuals, 0.0)), axis=0) / norm.ppf(0.75)
    return np.where(counted, np.maximum(spread, floor), 1.0)
