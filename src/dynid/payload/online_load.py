"""Identify a load on line, sample after sample, in square-root information form ([Atkeson1986] section 2.1).

Each sample gives six equations ``wrench = A phi + bias`` ([Atkeson1986] eq. 8), with the load's ten parameters phi.
They are rotated into the QR triangle of the present block of time; no inverse is propagated. `load` solves the
triangles of the few blocks that exist at any time, and the scatter between them gives its intervals (sandwich
estimator, `dynid.payload.load_solver`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.checks import as_number, as_row
from dynid.errors import DataError
from dynid.estimators.online.triangle import GrowingBlocks
from dynid.payload.load import Load
from dynid.payload.load_solver import BlockEquations, solve_load_equations
from dynid.payload.sensing import Sensing
from dynid.payload.wrist import load_of


class OnlineLoad:
    """Estimates the load and the sensor's bias from all samples so far.

    Typical use, in the control loop::

        online = OnlineLoad(frame="tool0", noise_std=(0.1, 0.1, 0.1, 0.01, 0.01, 0.01))
        online.update(dynid.compiled.wrench_regressor(robot, "tool0", q, dq, ddq), wrench)
        online.load().mass
    """

    __slots__ = ("_blocks", "_forgetting", "_rows", "_std", "_weight", "frame", "samples", "sensing")

    def __init__(self, *, frame: str, noise_std: ArrayLike = 1.0, bias: bool = True, forgetting: float = 1.0) -> None:
        """Start without samples.

        Args:
            frame: Link in whose frame the load is described.
            noise_std: (6,) standard deviations of the channels; only their ratios matter [N, N m].
            bias: Whether a constant wrench of the sensor is estimated with the load.
            forgetting: Weight of a sample relative to the next one: 1 forgets nothing.
        """
        self.frame = frame
        self.sensing = Sensing(bias=bias)
        self.samples = 0
        self._std = as_row("noise_std", noise_std, 6, same=True, above=0.0, each="one per channel")
        self._forgetting = as_number("forgetting", forgetting, above=0.0, most=1.0)
        self._weight = 0.0  # sum of the weights of all samples
        # equations of a sample: columns of the ten parameters, of the bias, and the wrench
        self._rows = np.hstack([np.zeros((6, 10)), np.eye(6, 6 if bias else 0), np.zeros((6, 1))])
        self._blocks = GrowingBlocks([self._rows.shape[1]])

    def update(self, matrix: Floats, wrench: Floats) -> None:
        """Add one sample.

        Args:
            matrix: (6, 10) equations of the motion, from `wrench_regressor` or a row of `WrenchData.matrix`.
            wrench: (6,) force [N] and moment [N m] on the load.
        """
        self._rows[:, :10] = matrix
        self._rows[:, -1] = wrench
        if self._forgetting < 1.0:
            self._blocks.scale(self._forgetting**0.5)  # equations have the roots of the weights
        rows_used = np.ones((6, 1), dtype=bool)  # all six, of the one group of equations
        self._blocks.append([self._rows / self._std[:, None]], rows_used)
        self.samples += 1
        self._weight = self._forgetting * self._weight + 1.0

    def load(self) -> Load:
        """Estimate the load from the samples so far, with its uncertainty.

        Raises:
            DataError: There is no sample yet, or one was not finite.
            IdentifiabilityError: The samples determine neither the mass nor any moment of inertia.
        """
        triangles = self._blocks.triangles
        if self.samples == 0 or not all(np.isfinite(R).all() for (R,) in triangles):
            raise DataError("there is no sample yet" if self.samples == 0 else "a sample was not finite")
        # the six channels, in units of their noise, are one group of equations with one common variance
        equations = BlockEquations(triangles, np.array([6.0 * self._weight]), np.zeros(1, dtype=np.int64))
        solution = solve_load_equations(equations)
        found = replace(solution, noise_std=solution.noise_std[0] * self._std)
        return load_of(found, self.frame, self.sensing, "force and torque sensor, on line")
