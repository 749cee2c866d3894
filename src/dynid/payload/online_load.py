"""A load identified on line, sample after sample, in square-root information form ([Atkeson1986] section 2.1).

The rows of every sample ([Atkeson1986] eq. 8) are rotated into the triangle of the present block of time; no inverse is
propagated. The few blocks that there are at any time give the load and, by the sandwich over them, its intervals.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_number, as_row
from dynid.errors import DataError
from dynid.estimation.online.triangle import GrowingBlocks
from dynid.payload.load import Load
from dynid.payload.load_solver import BlockEquations, solve_load_equations
from dynid.payload.sensing import Sensing
from dynid.payload.wrist import load_of


class OnlineLoad:
    """The load and the sensor's bias, from all samples so far.

    Typical use, in the control loop::

        online = OnlineLoad(frame="tool0", noise_std=(0.1, 0.1, 0.1, 0.01, 0.01, 0.01))
        online.update(dynid.kernels.wrench_regressor(robot, "tool0", q, dq, ddq), wrench)
        online.load().mass
    """

    __slots__ = ("_blocks", "_forgetting", "_rows", "_std", "_weight", "frame", "samples", "sensing")

    def __init__(self, *, frame: str, noise_std: ArrayLike = 1.0, bias: bool = True, forgetting: float = 1.0) -> None:
        """Start without any knowledge of the load.

        Args:
            frame: Link in whose frame the load is described.
            noise_std: (6,) standard deviations of the channels relative to one another [N, N m].
            bias: Estimate a constant wrench of the sensor with the load.
            forgetting: Weight of a sample relative to the next one: 1 forgets nothing.
        """
        self.frame, self.sensing, self.samples = frame, Sensing(bias=bias), 0
        self._std = as_row("noise_std", noise_std, 6, same=True, above=0.0, each="one per channel")
        self._forgetting, self._weight = as_number("forgetting", forgetting, above=0.0, most=1.0), 0.0
        self._rows = np.hstack([np.zeros((6, 10)), np.eye(6, 6 * bias), np.zeros((6, 1))])
        self._blocks = GrowingBlocks([self._rows.shape[1]])

    def update(self, matrix: Floats, wrench: Floats) -> None:
        """Add one sample, in place.

        Args:
            matrix: (6, 10) equations of the motion, from `wrench_regressor` or a row of `WrenchData.matrix`.
            wrench: (6,) force [N] and moment [N m] on the load.
        """
        self._rows[:, :10], self._rows[:, -1] = matrix, wrench
        if self._forgetting < 1.0:
            self._blocks.scale(self._forgetting**0.5)
        self._blocks.append([self._rows / self._std[:, None]], np.ones((6, 1), dtype=bool))
        self.samples, self._weight = self.samples + 1, self._forgetting * self._weight + 1.0

    def load(self) -> Load:
        """The load according to the samples so far, with its uncertainty.

        Raises:
            DataError: There is no sample yet, or one was not finite.
            IdentifiabilityError: The samples determine neither the mass nor any moment of inertia.
        """
        triangles = self._blocks.triangles
        if self.samples == 0 or not all(np.isfinite(R).all() for (R,) in triangles):
            raise DataError("there is no sample yet" if self.samples == 0 else "a sample was not finite")
        equations = BlockEquations(triangles, np.array([6.0 * self._weight]), np.zeros(1, dtype=np.int64))
        solution = solve_load_equations(equations)
        found = replace(solution, noise_std=solution.noise_std[0] * self._std)
        return load_of(found, self.frame, self.sensing, "force and torque sensor, on line")
