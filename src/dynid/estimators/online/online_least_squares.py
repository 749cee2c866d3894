"""Recursive least squares on line, with forgetting: the torques of all joints with equal weights, sample by sample.

The rows ``[Y, tau]`` of each sample, with the regressor Y (n, b) of the base parameters, are rotated into the triangle
of a QR decomposition (square-root information form; `dynid.estimators.online.triangle`). Older samples are forgotten by
shrinking the triangle. `OnlineLeastSquares` is public and is called from a control loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Ints
from dynid.checks import as_number
from dynid.compiled import kernel
from dynid.data_reduction.factor import Factor
from dynid.estimators.estimate import Estimate
from dynid.estimators.linear.least_squares import nothing_known
from dynid.estimators.online.arriving_samples import OnlineEstimator
from dynid.estimators.online.triangle import RowTriangle
from dynid.estimators.score_covariance import solution_root
from dynid.identifiability.base_set import BaseParameters
from dynid.robot.model import Robot


class OnlineLeastSquares(OnlineEstimator):
    """Least squares sample by sample, in bounded memory; without forgetting the same as `dynid.OLS` on the whole log.

    Typical use, in the control loop::

        tracker = dynid.estimators.OnlineLeastSquares(robot, forgetting=0.999)
        tracker.update(q, dq, ddq, tau)
        tracker.estimate().interval()
    """

    counts: Ints
    """(n,) number of valid torques of each joint so far."""
    equations: float
    """Sum of the weights of all equations so far: their number, if nothing is forgotten."""

    def __init__(
        self,
        robot: Robot,
        base: BaseParameters | None = None,
        *,
        forgetting: float = 1.0,
    ) -> None:
        """Start without samples.

        Args:
            robot: Geometry and terms; friction is estimated if the robot has such terms (`Robot.with_terms`).
            base: The base parameters to estimate; those of every motion by default.
            forgetting: Weight of a sample relative to the next one: 1 forgets nothing, 0.999 half in 700 samples.

        Raises:
            ArgumentError: A number makes no sense, or the base parameters are not those of the robot.
        """
        super().__init__(robot, base)
        self.equations = 0.0
        self._keep = as_number("forgetting", forgetting, above=0.0, most=1.0)
        self._triangle = RowTriangle(self.kept.rank + 1)
        self._squared_triangle = RowTriangle(self.kept.rank + 1)  # with squared weights, for the covariance
        self._regress: Callable[..., Any] = kernel(robot, "regressor", columns=self.kept.columns).single
        # reused from sample to sample, so that an update allocates no memory
        self._matrix = np.empty((robot.dof, self.kept.rank))
        self._rows = np.empty((robot.dof, self.kept.rank + 1))
        self.counts = np.zeros(robot.dof, dtype=np.int64)

    def update(
        self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike, *, valid: ArrayLike | None = None
    ) -> None:
        """Add one sample, arrays (n,), or several, arrays (m, n), the latest last.

        Args:
            q: Joint positions [rad or m].
            dq: Joint velocities.
            ddq: Joint accelerations.
            tau: Joint torques [N m or N].
            valid: Whether each torque counts; all by default.

        Raises:
            ArgumentError: The arrays do not fit the robot.
            DataError: A number that counts is NaN or infinite; the sample and the joint are named, nothing changes.
        """
        new = self._take({"q": q, "dq": dq, "ddq": ddq, "tau": tau}, valid)
        keep = self._keep**0.5  # triangles hold roots of the weights
        rows = self._rows
        for k, torque in enumerate(new.tau):
            self._regress(*new.motion[:, k], self._matrix)
            np.multiply(self._matrix, new.valid[k, :, None], out=rows[:, :-1])
            rows[:, -1] = torque
            if keep < 1.0:
                self._squared_triangle.scale(self._keep)
                self._squared_triangle.update(rows)
                self._triangle.scale(keep)
            self._triangle.update(rows)
            count = new.valid[k]
            self.equations = self._keep * self.equations + float(count.sum())
            self.counts = self.counts + count

    @property
    def names(self) -> tuple[str, ...]:
        """(b,) names of the base parameters."""
        return self.kept.names

    @property
    def units(self) -> tuple[str, ...]:
        """(b,) their units."""
        return self.kept.units

    @property
    def factor(self) -> Factor:
        """The equations so far, older ones with smaller weights."""
        return self._triangle.factor(self.kept.columns, round(self.equations))

    def _solve(self) -> Estimate:
        """Estimate; the noise is assumed to be white.

        So intervals are too narrow if torques are filtered or the model lacks a term.
        """
        factor = self.factor
        method = "recursive least squares"
        spare = self.equations - self.kept.rank
        if not spare > 0.0 or not (np.any(factor.z) or factor.residual):
            return nothing_known(self, method)
        variance = factor.residual / spare
        root, undetermined = solution_root(factor)
        # covariance A^-1 B A^-1 of weighted least squares: A = sum w x x', B = sum w^2 x x' over rows x of weight w
        squared = factor if self._keep == 1.0 else self._squared_triangle.factor(self.kept.columns, 0)
        half = root @ (root.T @ squared.R.T)
        covariance = variance * half @ half.T
        covariance[undetermined, undetermined] = np.inf
        return Estimate.of(
            self,
            values=factor.solve(minimum_norm=True),
            covariance=covariance,
            undetermined=undetermined,
            noise_std=np.full(self.robot.dof, np.sqrt(variance)),
            inflation=np.ones(self.robot.dof),
            condition=factor.condition,
            method=method,
        )
