"""Recursive least squares on line, with forgetting: the torques of all joints together, sample after sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Ints
from dynid.checks import as_number, as_row
from dynid.estimation.estimate import Estimate, convert_estimate
from dynid.estimation.linear.least_squares import sandwich
from dynid.estimation.online.arriving_samples import check_samples
from dynid.estimation.online.triangle import RowTriangle
from dynid.information import Factor
from dynid.kernels import kernel
from dynid.parameters.base import base_parameters, choose_base
from dynid.parameters.base_set import BaseParameters
from dynid.robot.model import Robot


class OnlineLeastSquares:
    """Least squares sample by sample, in bounded memory; without forgetting the same as `dynid.OLS` on the whole log.

    Typical use, in the control loop::

        tracker = dynid.estimation.OnlineLeastSquares(robot, forgetting=0.999)
        tracker.update(q, dq, ddq, tau)
        tracker.estimate().interval()
    """

    __slots__ = (
        "_keep", "_matrix", "_regress", "_rows", "_scale", "_spread", "_triangle", "_wanted",
        "base", "counts", "equations", "robot", "samples",
    )  # fmt: skip

    robot: Robot
    """Geometry and terms."""
    base: BaseParameters
    """The base parameters in whose columns the equations stand."""
    samples: int
    """Number of samples so far."""
    counts: Ints
    """(n,) torques of each joint that counted."""
    equations: float
    """Number of equations so far, less what was forgotten."""

    def __init__(
        self,
        robot: Robot,
        base: BaseParameters | None = None,
        *,
        forgetting: float = 1.0,
        torque_std: ArrayLike = 1.0,
    ) -> None:
        """Start, knowing nothing.

        Args:
            robot: Geometry and terms; friction is estimated if the robot has such terms (`Robot.with_terms`).
            base: The base parameters to estimate; those of every motion by default.
            forgetting: Weight of a sample relative to the next one: 1 forgets nothing, 0.999 half in 700 samples.
            torque_std: Standard deviations of the torques, one number or (n,): how the joints compare.

        Raises:
            ArgumentError: A number makes no sense, or the base parameters are not those of the robot.
        """
        self.robot, self.samples, self.equations = robot, 0, 0.0
        self._wanted = choose_base(robot, base, every_motion=True)
        self.base = self._wanted if self._wanted.mixing is None else base_parameters(robot)
        self._keep = as_number("forgetting", forgetting, above=0.0, most=1.0)
        self._scale = 1.0 / as_row("torque_std", torque_std, robot.dof, same=True, above=0.0)[:, None]
        self._triangle, self._spread = RowTriangle(self.base.rank + 1), RowTriangle(self.base.rank + 1)
        self._regress: Callable[..., Any] = kernel(robot, "regressor", columns=self.base.columns).single
        self._matrix, self._rows = np.empty((robot.dof, self.base.rank)), np.empty((robot.dof, self.base.rank + 1))
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
        new = check_samples(self.robot, self.samples, {"q": q, "dq": dq, "ddq": ddq}, tau, valid)
        keep, rows = self._keep**0.5, self._rows
        for k, torque in enumerate(new.tau):
            self._regress(*new.motion[:, k], self._matrix)
            scale = self._scale if valid is None else self._scale * new.valid[k, :, None]
            np.multiply(self._matrix, scale, out=rows[:, :-1])
            np.multiply(torque, scale[:, 0], out=rows[:, -1])
            if keep < 1.0:  # the same with squared forgetting, for the covariance
                self._spread.scale(self._keep)
                self._spread.update(rows)
                self._triangle.scale(keep)
            self._triangle.update(rows)
            count = new.valid[k]
            self.equations = self._keep * self.equations + float(count.sum())
            self.counts = self.counts + count
        self.samples += len(new.tau)

    @property
    def names(self) -> tuple[str, ...]:
        """(b,) names of the base parameters."""
        return self.base.names

    @property
    def units(self) -> tuple[str, ...]:
        """(b,) their units."""
        return self.base.units

    @property
    def factor(self) -> Factor:
        """The equations so far, weighted and forgotten."""
        return self._triangle.factor(self.base.columns, round(self.equations))

    def estimate(self) -> Estimate:
        """What the samples so far say; infinite standard deviations where they do not determine a parameter.

        The noise is taken to be white: where torques are filtered or the model lacks a term, intervals are too narrow.
        """
        factor, b = self.factor, self.base.rank
        spare = self.equations - b
        variance = factor.residual / spare if spare > 0.0 else np.inf
        spread = factor if self._keep == 1.0 else self._spread.factor(self.base.columns, 0)
        covariance, undetermined = sandwich(factor, spread)
        if not np.isfinite(variance) or not (np.any(factor.z) or factor.residual):
            covariance, undetermined, variance = np.diag(np.full(b, np.inf)), np.ones(b, dtype=bool), 1.0
        found = Estimate.of(
            self,
            values=factor.solve(minimum_norm=True) if self.samples else np.zeros(b),
            covariance=covariance * variance,
            undetermined=undetermined,
            noise_std=np.sqrt(variance) / self._scale[:, 0],
            inflation=np.ones(self.robot.dof),
            condition=factor.condition,
            method="recursive least squares",
        )
        return convert_estimate(found, self.base, self._wanted)
