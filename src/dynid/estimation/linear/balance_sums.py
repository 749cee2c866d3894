"""Ordinary least squares on balances that come one after the other ([GautierKhalil1992] section 2).

The paper minimises ``|Y - W X|^2`` with all equations alike and recommends Bierman's square-root form for on-line
use: a triangle of [W, Y] into which each new equation is rotated. The intervals need more. An equation's error is a sum
of the joints' torque errors with known variance ratios ``s_ij``, its scatter; so for each joint there is a second
triangle, of rows times ``sqrt(s_ij)``. It gives, for any parameters, the sum ``sum_i s_ij e_i^2`` from which the torque
variances v_j follow, and with them the spread ``sum_ij v_j s_ij w_i w_i^T`` of the estimate. Nothing else is kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.estimation.estimate import Estimate
from dynid.estimation.linear.balance import Balance, torque_variances
from dynid.estimation.linear.column_resolution import resolve_columns
from dynid.estimation.linear.least_squares import sandwich
from dynid.estimation.noise import block_inflation
from dynid.information import Factor
from dynid.information.growing_blocks import GrowingBlocks
from dynid.information.triangular import append_many_rows

SPARE = 10
"""Number of equations beyond the determined parameters from which on residuals tell the noise (derivation: with ten,
the 97.5 % point of Student's distribution is 14 % above that of the normal one)."""
RESOLUTION = 1e-11
"""Relative size below which a direction of the scaled columns is rounding (convention: that of triangular factors)."""


class BalanceSums:
    """What balances so far say, in bounded memory."""

    __slots__ = ("_blocks", "_normal", "counts", "names", "units")

    names: tuple[str, ...]
    """(b,) the unknowns"""
    units: tuple[str, ...]
    """(b,)"""
    counts: NDArray[np.int64]
    """(n,) equations that each joint took part in"""

    def __init__(self, joints: int, names: tuple[str, ...], units: tuple[str, ...]) -> None:
        """Start without equations.

        Args:
            joints: Number of joints n.
            names: (b,) the unknowns.
            units: (b,) of the unknowns.
        """
        self.names, self.units = names, units
        self.counts = np.zeros(joints, dtype=np.int64)
        self._normal = np.zeros((joints, joints))
        self._blocks = GrowingBlocks([len(names) + 1] * (1 + joints))

    def append(self, balance: Balance) -> None:
        """Add equations."""
        rows = np.column_stack([balance.matrix, balance.target])
        weighted = [rows * root[:, None] for root in np.sqrt(balance.scatter.T)]
        self._blocks.append([rows, *weighted], np.ones((len(rows), 1 + len(weighted)), dtype=bool))
        self._normal = self._normal + balance.scatter.T @ balance.scatter
        self.counts = self.counts + np.count_nonzero(balance.scatter, axis=0)

    @property
    def equations(self) -> int:
        """Number of equations r."""
        return int(self._blocks.counts[:, 0].sum())

    @property
    def factor(self) -> Factor:
        """All equations, W and Y of [GautierKhalil1992] eq. (10), as a triangle."""
        R = self._total(0)
        return Factor(
            columns=tuple(range(len(self.names))),
            R=R[:-1, :-1].copy(),
            z=R[:-1, -1].copy(),
            residual=float(R[-1, -1] ** 2),
            samples=self.equations,
            resolution=RESOLUTION,
        )

    def estimate(self, method: str, errors: Floats | None = None) -> Estimate:
        """The estimate from all equations so far; what they do not determine has an infinite deviation.

        Args:
            method: Its name, as a noun phrase.
            errors: (b, b) triangle of the errors of W by the noise of the motion, where it is known.
        """
        factor = self.factor
        inverse, clear = _pseudo_inverse(factor, errors)
        beta = factor.solve(minimum_norm=True) if inverse is None else inverse @ factor.z
        totals = [self._total(1 + joint) for joint in range(len(self.counts))]
        squares = np.array([np.sum((R @ np.append(beta, -1.0)) ** 2) for R in totals])
        variances = torque_variances(self._normal, squares, factor)
        inflation = self._inflation(beta, variances)
        rows = np.concatenate([np.sqrt(v) * R[:, :-1] for v, R in zip(variances, totals, strict=True)])
        spread = append_many_rows(np.zeros_like(factor.R), rows) * np.sqrt(inflation)
        covariance, undetermined = sandwich(factor, _only_matrix(spread))
        if inverse is not None:
            half = inverse @ inverse.T @ spread.T
            covariance, undetermined = half @ half.T, ~clear
            covariance[undetermined, undetermined] = np.inf
        if factor.samples - factor.rank < SPARE or not (np.any(factor.z) or factor.residual):
            undetermined = np.ones_like(undetermined)
            covariance = np.diag(np.full(len(beta), np.inf))
        return Estimate.of(
            self,
            values=beta,
            covariance=covariance,
            undetermined=undetermined,
            noise_std=np.sqrt(variances),
            inflation=np.full(len(self.counts), inflation),
            condition=factor.condition,
            method=method,
            extras={"equations": float(factor.samples)},
        )

    def _total(self, group: int) -> Floats:
        """(b + 1, b + 1) triangle of all blocks."""
        rows = np.concatenate([block[group] for block in self._blocks.triangles])
        return append_many_rows(np.zeros((rows.shape[1],) * 2), rows)

    def _inflation(self, beta: Floats, variances: Floats) -> float:
        """The factor for errors that are correlated in time; see `block_inflation`."""
        blocks = []
        for first, *weighted in self._blocks.triangles:
            W = first[:, :-1]
            spread = np.sum([v * R[:, :-1].T @ R[:, :-1] for v, R in zip(variances, weighted, strict=True)], axis=0)
            blocks.append((spread, W.T @ (first[:, -1] - W @ beta)))
        return float(block_inflation([blocks], np.ones(1), beta.size)[0])


def _pseudo_inverse(factor: Factor, errors: Floats | None) -> tuple[Floats | None, NDArray[np.bool_]]:
    """The pseudo-inverse of R and what it determines, where errors of W are known; nothing otherwise."""
    if errors is None:
        return None, np.ones(len(factor.columns), dtype=bool)
    longest = float(np.linalg.norm(factor.R, axis=0).max(initial=0.0))
    inverse, clear, _ = resolve_columns(factor.R, RESOLUTION, longest, errors)
    return inverse, clear


def _only_matrix(R: Floats) -> Factor:
    return Factor(columns=tuple(range(len(R))), R=R, z=np.zeros(len(R)), residual=0.0, samples=0, resolution=RESOLUTION)
