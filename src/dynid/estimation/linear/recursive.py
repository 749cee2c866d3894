"""Recursive estimation on line, in square-root information form with forgetting.

What is known is one triangle R with ``|R x - z|^2`` the weighted sum of all squared residuals so far; a new sample is
appended by orthogonal reflections ([GautierKhalil1992] section 2 recommends Bierman's form of this). No inverse is
propagated, so nothing has to be known at the start and rounding cannot destroy positive definiteness.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.arrays import Floats
from dynid.errors import ArgumentError, DataError
from dynid.estimation.equations import Factors, Samples
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.least_squares import least_squares_estimate, sandwich
from dynid.estimation.noise import check_data
from dynid.estimation.samples import sample_blocks
from dynid.findings import Finding
from dynid.information import Factor
from dynid.information.triangular import append_many_rows
from dynid.kernels import regressor
from dynid.parameters.base import choose_base
from dynid.parameters.base_set import BaseParameters, require_kept_columns
from dynid.robot.model import Robot

BATCH = 256
"""Samples appended at a time where many are there."""


@dataclass(frozen=True, slots=True)
class Recursive(Estimator):
    """Least squares sample after sample; without forgetting the same as all at once."""

    name: ClassVar[str] = "recursive"
    on_command_line: ClassVar[bool] = False
    title: ClassVar[str] = "recursive least squares"
    use: ClassVar[str] = "parameters change slowly, or are wanted on line"
    needs: ClassVar[tuple[type[Factors], ...]] = (Samples,)
    accepts_band: ClassVar[bool] = False

    forgetting: float = 1.0
    """Weight of a sample relative to the next one: 1 forgets nothing, 0.999 half in 700 samples."""
    torque_std: tuple[float, ...] | None = None
    """Standard deviation of each joint's torque [N m or N], where known; all alike by default."""

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        if not 0.0 < self.forgetting <= 1.0:
            raise ArgumentError(f"forgetting is {self.forgetting}", remedy="Give a number in (0, 1].")

    def begin(self, robot: Robot, base: BaseParameters | None = None) -> OnlineEstimate:
        """Start on line, knowing nothing.

        Args:
            robot: Geometry and terms.
            base: The base parameters to estimate; those of every motion by default.
        """
        chosen = require_kept_columns(choose_base(robot, base))
        nothing = np.zeros((chosen.rank + 1, chosen.rank + 1))
        return OnlineEstimate(
            robot=robot,
            base=chosen,
            forgetting=self.forgetting,
            weights=self._weights(robot),
            triangle=nothing,
            spread=nothing,
            samples=0,
            equations=0.0,
        )

    def estimate(self, equations: Samples) -> Estimate:
        """Estimate; where samples are forgotten, the parameters are those at the end of the last experiment."""
        check_data(equations, spare=1)
        weights = self._weights(equations.robot)
        factor = _fold(equations, weights, self.forgetting)
        estimate = least_squares_estimate(equations, weights, "recursive least squares")
        values = factor.solve(minimum_norm=True)
        if self.forgetting == 1.0:
            return replace(estimate, values=values)
        noise = weights**2 * estimate.noise_std**2 * estimate.inflation
        covariance, undetermined = sandwich(factor, _fold(equations, noise, self.forgetting**2))
        memory = 1.0 / (1.0 - self.forgetting)
        message = f"older samples are forgotten: {memory:.3g} samples count together"
        found = Finding(code="forgetting", severity="note", where="estimate", message=message)
        return replace(
            estimate,
            values=values,
            covariance=covariance,
            undetermined=undetermined,
            condition=factor.condition,
            findings=(*estimate.findings, found),
        )

    def _weights(self, robot: Robot) -> Floats:
        if self.torque_std is None:
            return np.ones(robot.dof)
        std = np.asarray(self.torque_std, dtype=float)
        if std.shape != (robot.dof,) or not (np.isfinite(std).all() and (std > 0.0).all()):
            raise ArgumentError(f"expected {robot.dof} positive standard deviations, not {self.torque_std}")
        return np.asarray(1.0 / std**2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnlineEstimate:
    """What the samples so far say. Immutable: `update` returns the next one."""

    robot: Robot
    base: BaseParameters
    forgetting: float
    weights: Floats
    """(n,) of each joint's squared residuals"""
    triangle: Floats
    """(b + 1, b + 1) of all equations, weighted and forgotten, with their torques"""
    spread: Floats
    """(b + 1, b + 1) the same with squared forgetting, for the covariance: weights are inverse variances"""
    samples: int
    """Number of samples seen."""
    equations: float
    """Number of equations seen, less what was forgotten."""

    def update(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike) -> OnlineEstimate:
        """The estimate with one more sample, arrays (n,), or with several, arrays (N, n), the latest last.

        Args:
            q: Joint positions [rad or m].
            dq: Joint velocities.
            ddq: Joint accelerations.
            tau: Joint torques [N m or N]; NaN where a joint's does not count.

        Raises:
            DataError: The motion is not finite, or a torque is infinite.
        """
        states = [np.atleast_2d(np.asarray(x, dtype=float)) for x in (q, dq, ddq, tau)]
        if any(x.shape != states[0].shape or x.shape[1] != self.robot.dof for x in states):
            raise ArgumentError(f"expected arrays of {self.robot.dof} joints, got {[x.shape for x in states]}")
        if not all(np.isfinite(x).all() for x in states[:3]) or np.isinf(states[3]).any():
            raise DataError("a sample with motion or torques that are not finite", remedy="Leave it out.")
        Y = regressor(self.robot, *states[:3], columns=self.base.columns)
        valid = ~np.isnan(states[3])
        effort = np.where(valid, states[3], 0.0)
        count, age = len(Y), np.arange(len(Y))[::-1]
        return replace(
            self,
            triangle=_absorbed(self.triangle, Y, effort, valid, self.weights, self.forgetting),
            spread=_absorbed(self.spread, Y, effort, valid, self.weights, self.forgetting**2),
            samples=self.samples + count,
            equations=self.forgetting**count * self.equations + float(self.forgetting**age @ valid.sum(axis=1)),
        )

    @property
    def factor(self) -> Factor:
        """The equations so far as a least-squares equations."""
        return _factor(self.triangle, self.base.columns, round(self.equations))

    @property
    def values(self) -> Floats:
        """(b,) base parameters; of the smallest norm where they are not determined yet."""
        return self.factor.solve(minimum_norm=True) if self.samples else np.zeros(self.base.rank)

    @property
    def noise_std(self) -> Floats:
        """(n,) standard deviation of the torques [N m or N], from the residual of all joints together."""
        spare = self.equations - self.base.rank
        scale = self.factor.residual / spare if spare > 0.0 else np.inf
        return np.asarray(np.sqrt(scale / self.weights))

    @property
    def stderr(self) -> Floats:
        """(b,) standard deviation of each value; infinite where undetermined."""
        spare = self.equations - self.base.rank
        if spare <= 0.0:
            return np.full(self.base.rank, np.inf)
        covariance, undetermined = sandwich(self.factor, _factor(self.spread, self.base.columns, 0))
        deviation = np.sqrt(np.where(undetermined, 0.0, np.diag(covariance)) * self.factor.residual / spare)
        return np.where(undetermined, np.inf, deviation)


def _absorbed(R: Floats, Y: Floats, effort: Floats, valid: NDArray[np.bool_], weights: Floats, keep: float) -> Floats:
    """The triangle R with samples (m, n, b) appended, all that is older by one sample multiplied by ``keep``."""
    age = np.arange(len(Y))[::-1]
    root = np.sqrt(keep ** age[:, None] * weights) * valid
    rows = np.concatenate([Y, effort[..., None]], axis=2) * root[..., None]
    return append_many_rows(np.sqrt(keep ** len(Y)) * R, rows.reshape(-1, R.shape[1]))


def _fold(equations: Samples, weights: Floats, keep: float) -> Factor:
    """All samples, one batch after the other."""
    R = np.zeros((len(equations.names) + 1,) * 2)
    for block in sample_blocks(equations, BATCH):
        R = _absorbed(R, block.matrix, block.effort, block.valid, weights, keep)
    return _factor(R, equations.information.columns, int(equations.counts.sum()))


def _factor(R: Floats, columns: tuple[int, ...], equations: int) -> Factor:
    z, residual = R[:-1, -1].copy(), float(R[-1, -1] ** 2)
    return Factor(columns=columns, R=R[:-1, :-1].copy(), z=z, residual=residual, samples=equations, resolution=1e-11)
