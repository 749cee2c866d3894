"""Robust estimation: samples that do not fit count less, by iteratively re-weighted least squares.

Each joint's residuals are measured against their own robust scale s (median absolute deviation). With ``u = e / s`` a
sample gets the weight ``psi(u) / u`` of an influence function psi that is bounded (Huber) or returns to zero (Cauchy).
The covariance is that of M-estimators (Huber 1981, section 7.6): ``s^2 E[psi^2] / E[psi']^2`` in place of the variance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.estimation.equations import Factors, Samples, cut_blocks
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.intervals.score_covariance import solution_root, unknown_kinds
from dynid.estimation.intervals.score_sums import ScoreSums
from dynid.estimation.linear.least_squares import refined_weights
from dynid.estimation.noise import block_inflation, check_data
from dynid.estimation.samples import sample_blocks
from dynid.findings import Finding
from dynid.information import Factor
from dynid.information.triangular import factor_from_preconditioned, make_preconditioner

GAUSSIAN_MAD = 1.482602218505602
"""Standard deviation of normal noise over its median absolute deviation."""
CONVERGED = 1e-3
"""Largest change of the parameters between two rounds, in their standard deviations, that is none."""
RESIDUAL_BLOCKS = 10
"""Blocks of time of an experiment, by which correlation of residuals is judged."""
STRIDE = 1 << 32
"""Between the numbers of two experiments' blocks."""
EXACT = 1e-8
"""Residuals below this part of a joint's torque are rounding, not noise."""
_Blocks = dict[int, tuple[Floats, Floats, float]]
"""Block of time -> ``W^T W`` (b, b), ``W^T psi`` (b,) and the number of samples."""


@dataclass(frozen=True, slots=True)
class _Robust(Estimator, ABC):
    """Iteratively re-weighted least squares with an influence function."""

    needs: ClassVar[tuple[type[Factors], ...]] = (Samples,)
    accepts_band: ClassVar[bool] = False

    tuning: float
    """Where a residual stops to count in full, in standard deviations."""
    rounds: int = 100
    """After how many rounds to stop, converged or not."""

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        if not (np.isfinite(self.tuning) and self.tuning > 0.0) or self.rounds < 1:
            raise ArgumentError(f"tuning must be positive and rounds at least one, not {self}")

    @abstractmethod
    def weight(self, u: Floats) -> Floats:
        """``psi(u) / u`` of residuals in standard deviations."""

    @abstractmethod
    def slope(self, u: Floats) -> Floats:
        """``psi'(u)``."""

    def _start(self, equations: Samples) -> Floats:
        """(b,) where the iteration begins."""
        return equations.information.weight(refined_weights(equations)).solve(minimum_norm=True)

    def estimate(self, equations: Samples) -> Estimate:
        """Estimate with weights of samples and scales of joints in balance."""
        check_data(equations, spare=1)
        beta, findings = self._start(equations), tuple[Finding, ...]()
        for _ in range(self.rounds):
            factor = self._reweighted(equations, beta, _scales(equations, beta))
            step = factor.solve(minimum_norm=True) - beta
            beta = beta + step
            if np.linalg.norm(factor.R @ step) <= CONVERGED:
                break
        else:
            message = f"the weights still changed after {self.rounds} rounds"
            findings = (Finding(code="not-settled", severity="warning", where="estimate", message=message),)
        return self._estimate(equations, beta, factor, findings)

    def _reweighted(self, equations: Samples, beta: Floats, scales: Floats) -> Factor:
        """All equations with the weights that residuals at ``beta`` deserve, as one triangle."""
        plain = equations.information.weight(1.0 / scales**2)
        triangle = np.zeros((beta.size + 1, beta.size + 1))
        triangle[:-1, :-1], triangle[:-1, -1] = plain.R, plain.z
        triangle[-1, -1] = np.sqrt(plain.residual)
        R0 = make_preconditioner(triangle, 1)  # nearly orthonormal columns: cross products then lose no digits
        inverse = solve_triangular(R0, np.eye(len(R0)))
        C = np.zeros_like(R0)
        for block in sample_blocks(equations):
            residual = block.effort - block.matrix @ beta
            root = np.sqrt(self.weight(residual / scales)) / scales * block.valid
            rows = np.concatenate([block.matrix, block.effort[..., None]], axis=2) * root[..., None]
            Z = rows.reshape(-1, len(R0)) @ inverse
            C += Z.T @ Z
        R = factor_from_preconditioned(C, R0)
        return Factor(
            columns=plain.columns,
            R=R[:-1, :-1].copy(),
            z=R[:-1, -1].copy(),
            residual=float(R[-1, -1] ** 2),
            samples=plain.samples,
            resolution=plain.resolution,
        )

    def _estimate(self, equations: Samples, beta: Floats, factor: Factor, findings: tuple[Finding, ...]) -> Estimate:
        scales = _scales(equations, beta)
        slopes, squares, light = self._moments(equations, beta, scales)
        total = int(equations.counts.sum())
        squares = squares / (1.0 - beta.size / total)
        blocks = self._blocks(equations, beta, scales)
        inflation = block_inflation([[b[:2] for b in found.values()] for found in blocks], squares, beta.size)
        # A^-1 B A^-1 with A = sum E[psi'] x x^T / s^2 and B = sum E[psi^2] x x^T / s^2
        root, undetermined = solution_root(equations.information.weight(slopes / scales**2))
        covariance = _score_covariance(equations, root, blocks, (slopes, squares * inflation, scales))
        covariance[undetermined, undetermined] = np.inf
        return Estimate.of(
            equations,
            values=beta,
            covariance=covariance,
            undetermined=undetermined,
            noise_std=scales,
            inflation=inflation,
            condition=factor.condition,
            method=f"{type(self).__name__}'s robust least squares",
            findings=findings,
            extras={"share_of_outliers": light / total},
        )

    def _moments(self, equations: Samples, beta: Floats, scales: Floats) -> tuple[Floats, Floats, int]:
        """(n,) E[psi'] and E[psi^2], how many samples count half or less."""
        n = equations.robot.dof
        slopes, squares, light = np.zeros(n), np.zeros(n), 0
        for run in equations.experiments:
            u = np.nan_to_num(equations.residual(beta, run) / scales)
            psi = u * self.weight(u)
            slopes += (self.slope(u) * run.valid).sum(axis=0)
            squares += (psi**2).sum(axis=0)
            light += int(np.sum(run.valid & (self.weight(u) < 0.5)))
        counts = np.maximum(equations.counts, 1)
        return np.maximum(slopes / counts, 1e-3), np.maximum(squares / counts, 1e-12), light

    def _blocks(self, equations: Samples, beta: Floats, scales: Floats) -> list[_Blocks]:
        """For each joint the blocks of time by number: scores of least squares with psi in place of the residuals."""
        blocks: list[_Blocks] = [{} for _ in range(equations.robot.dof)]
        cuts = {id(run): cut_blocks(run, RESIDUAL_BLOCKS) for run in equations.experiments}
        first = dict(zip(cuts, range(0, len(cuts) * STRIDE, STRIDE), strict=True))
        for block in sample_blocks(equations):
            u = (block.effort - block.matrix @ beta) / scales
            psi = u * self.weight(u) * block.valid
            numbers = first[id(block.run)] + cuts[id(block.run)][block.rows]
            for number in np.unique(numbers).tolist():
                mine = numbers == number
                for joint, found in enumerate(blocks):
                    W = block.matrix[mine, joint] * block.valid[mine, joint, None]
                    product, score, count = found.get(number, (0.0, 0.0, 0.0))
                    found[number] = (product + W.T @ W, score + W.T @ psi[mine, joint], count + len(W))
        return blocks


@dataclass(frozen=True, slots=True)
class Huber(_Robust):
    """Huber's estimator: minimises squares of small residuals and absolute values of large ones; the answer is unique.

    Use it where some samples are outliers.
    """

    name: ClassVar[str] = "huber"
    title: ClassVar[str] = "Huber's robust least squares"
    use: ClassVar[str] = "some samples are outliers"

    tuning: float = 1.345
    """95 % as efficient as least squares under normal noise."""

    def weight(self, u: Floats) -> Floats:
        return self.tuning / np.maximum(np.abs(u), self.tuning)

    def slope(self, u: Floats) -> Floats:
        return np.asarray(np.abs(u) <= self.tuning, dtype=float)


def _score_covariance(
    equations: Samples, root: Floats, blocks: list[_Blocks], moments: tuple[Floats, Floats, Floats]
) -> Floats:
    """(b, b) covariance from the scores of blocks; the moments are (n,) E[psi'], E[psi^2] and the scales."""
    slopes, squares, scales = moments
    numbers = sorted(blocks[0])
    counts = np.array([blocks[0][number][2] for number in numbers])
    sums = ScoreSums(root, counts, np.array(numbers, dtype=np.int64) // STRIDE)
    for place, number in enumerate(numbers):
        here = [found[number] for found in blocks]
        bread = sum(m / s**2 * b[0] for m, s, b in zip(slopes, scales, here, strict=True))
        filling = sum(m / s**2 * b[0] for m, s, b in zip(squares, scales, here, strict=True))
        score = sum(b[1] / s for s, b in zip(scales, here, strict=True))
        sums.add(place, root.T @ bread @ root, root.T @ filling @ root, root.T @ score)
    return sums.covariances(unknown_kinds(equations))[1]


def _scales(equations: Samples, beta: Floats) -> Floats:
    """(n,) robust standard deviation of each joint's residuals; never zero."""
    residuals = np.concatenate([equations.residual(beta, run) for run in equations.experiments])
    efforts = np.concatenate([np.where(run.valid, run.effort, 0.0) for run in equations.experiments])
    scales = np.ones(equations.robot.dof)
    largest = max(float(np.abs(efforts).max(initial=0.0)), 1e-100)
    for joint in range(equations.robot.dof):
        mine = residuals[~np.isnan(residuals[:, joint]), joint]
        if mine.size:
            floor = EXACT * max(float(np.sqrt(np.mean(efforts[:, joint] ** 2))), EXACT * largest)
            scales[joint] = max(GAUSSIAN_MAD * float(np.median(np.abs(mine))), floor)
    return scales
