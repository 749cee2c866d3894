"""The equations of single samples, block by block, for estimators that need more than factors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.estimation.equations import Samples
from dynid.estimation.rows import stretches, term_columns
from dynid.kernels import regressor
from dynid.processing.experiment import Experiment

EQUATION_SAMPLES = 2048
"""Number of samples whose equations are in memory at a time (convention: some megabytes)."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleBlock:
    """The equations of consecutive samples: ``effort = matrix @ parameters``."""

    run: Experiment
    rows: slice
    """The samples of the run."""
    matrix: Floats
    """(m, n, b + k) torque per unit of each base parameter and term."""

    @property
    def valid(self) -> NDArray[np.bool_]:
        """(m, n) whether the equation counts."""
        return self.run.valid[self.rows]

    @property
    def effort(self) -> Floats:
        """(m, n) measured torque, zero where the equation does not count [N m or N]."""
        return np.where(self.valid, self.run.effort[self.rows], 0.0)


def sample_blocks(equations: Samples, size: int = EQUATION_SAMPLES) -> Iterator[SampleBlock]:
    """Iterate over the equations of all experiments in blocks of samples; no block spans a gap.

    Args:
        equations: The equations.
        size: Largest number of samples of a block.

    Raises:
        ArgumentError: The equations are low-passed, so that they are no longer those of single samples.
    """
    if equations.band_hz is not None:
        raise ArgumentError(
            "single samples are needed, and both sides of these equations are low-passed",
            remedy="Build the equations without band_hz.",
        )
    for run in equations.experiments:
        for rows, motion in stretches(run):
            extra = term_columns(equations.robot, equations.terms, motion)
            for start in range(0, len(motion.q), size):
                here = slice(start, start + size)
                states = (motion.q[here], motion.dq[here], motion.ddq[here])
                matrix = regressor(equations.robot, *states, columns=equations.base.columns)
                if extra:
                    matrix = np.concatenate([matrix, _dense(extra, here, matrix.shape[:2])], axis=2)
                yield SampleBlock(run, slice(rows.start + start, rows.start + start + len(matrix)), matrix)


def _dense(columns: list[dict[int, Floats]], here: slice, shape: tuple[int, ...]) -> Floats:
    """(m, n, k) columns of terms for all joints, zero where a term does not act."""
    dense = np.zeros((*shape, len(columns)))
    for k, column in enumerate(columns):
        for joint, values in column.items():
            dense[:, joint, k] = values[here]
    return dense
