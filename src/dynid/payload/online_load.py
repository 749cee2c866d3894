"""Identify a load on line, sample after sample, in square-root information form ([Atkeson1986] section 2.1).

Each sample gives six equations ``wrench = A phi + bias`` ([Atkeson1986] eq. 8), with the load's ten parameters phi.
They are rotated into the QR triangle of the present block of time; no inverse is propagated. `estimate` solves the
triangles of the few blocks that exist at any time, and the scatter between them gives its intervals (sandwich
estimator, `dynid.payload.load_solver`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.checks import as_number, as_row
from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimators.online.arriving_samples import OnlineTracker
from dynid.estimators.online.triangle import GrowingBlocks
from dynid.payload.load import CHANNELS, NAMES, Load, remark
from dynid.payload.load_solver import BlockEquations, solve_load_equations
from dynid.payload.sensing import Sensing
from dynid.payload.wrist import load_of


class OnlineLoad(OnlineTracker):
    """Estimates the load and the sensor's bias from all samples so far.

    Typical use, in the control loop::

        online = OnlineLoad(frame="tool0", noise_std=(0.1, 0.1, 0.1, 0.01, 0.01, 0.01))
        online.update(dynid.compiled.wrench_regressor(robot, "tool0", q, dq, ddq), wrench)
        online.estimate().mass
    """

    frame: str
    """Link in whose frame the load is described."""
    sensing: Sensing
    """Settings of the sensor: whether its bias is estimated."""

    def __init__(self, *, frame: str, noise_std: ArrayLike = 1.0, bias: bool = True, forgetting: float = 1.0) -> None:
        """Start without samples.

        Args:
            frame: Link in whose frame the load is described.
            noise_std: (6,) standard deviations of the channels; only their ratios matter [N, N m].
            bias: Whether a constant wrench of the sensor is estimated with the load.
            forgetting: Weight of a sample relative to the next one: 1 forgets nothing.
        """
        super().__init__([f"channel {name}" for name in CHANNELS])
        self.frame = frame
        self.sensing = Sensing(bias=bias)
        self._std = as_row("noise_std", noise_std, 6, same=True, above=0.0, each="one per channel")
        self._forgetting = as_number("forgetting", forgetting, above=0.0, most=1.0)
        self._weight = 0.0  # sum of the weights of all equations
        # equations of a sample: columns of the ten parameters, of the bias, and the wrench
        self._rows = np.hstack([np.zeros((6, 10)), np.eye(6, 6 if bias else 0), np.zeros((6, 1))])
        self._blocks = GrowingBlocks([self._rows.shape[1]])

    def update(self, matrix: ArrayLike, wrench: ArrayLike, *, valid: ArrayLike | None = None) -> None:
        """Add one sample, or m samples, the latest last.

        Args:
            matrix: (6, 10) or (m, 6, 10) equations of the motion, from `wrench_regressor` or `WrenchData.matrix`.
            wrench: (6,) or (m, 6) force [N] and moment [N m] on the load.
            valid: (6,) or (m, 6) whether each channel counts; all by default.

        Raises:
            ArgumentError: The arrays have other shapes.
            DataError: A number that counts is NaN or infinite; the sample and the channel are named, nothing changes.
        """
        columns = np.asarray(matrix, dtype=float)
        if columns.shape[-2:] != (len(CHANNELS), len(NAMES)):
            raise ArgumentError(f"the matrix has the shape {columns.shape}", remedy="Give (6, 10) numbers per sample.")
        new = self._take({**dict(zip(NAMES, np.moveaxis(columns, -1, 0), strict=True)), "wrench": wrench}, valid)
        for k, counts in enumerate(new.valid):
            self._rows[:, :10] = new.motion[:, k].T
            self._rows[:, -1] = new.tau[k]
            if self._forgetting < 1.0:
                self._blocks.scale(self._forgetting**0.5)  # equations have the roots of the weights
            self._blocks.append([self._rows * (counts / self._std)[:, None]], counts[:, None])
            self._weight = self._forgetting * self._weight + float(counts.sum())

    def estimate(self) -> Load:
        """Estimate the load from the samples so far, with its uncertainty; all is open while they tell nothing."""
        # the six channels, in units of their noise, are one group of equations with one common variance
        equations = BlockEquations(self._blocks.triangles, np.array([self._weight]), np.zeros(1, dtype=np.int64))
        method = "force and torque sensor, on line"
        try:
            solution = solve_load_equations(equations)
            found = replace(solution, noise_std=solution.noise_std[0] * self._std)
            return load_of(found, self.frame, self.sensing, method)
        except IdentifiabilityError as error:
            nothing = Load(frame=self.frame, vector=np.zeros(10), covariance=np.zeros((10, 10)), method=method,
                           undetermined=np.ones(10, dtype=bool), bias_stderr=np.full(6, np.inf))  # fmt: skip
            return nothing.with_findings(remark("load-uncertain", error.reason, error.remedy or ""))
