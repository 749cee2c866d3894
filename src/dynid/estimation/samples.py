"""The samples behind equations, block by block, for estimators that need them again; and when there are too few."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError, EstimationError, IdentifiabilityError
from dynid.estimation.equations import Factors, Samples
from dynid.estimation.rows import stretches, term_columns
from dynid.information.triangular import append_rows
from dynid.kernels import regressor
from dynid.processing.experiment import Experiment

__all__ = ["SampleBlock", "check_samples", "folded", "sample_blocks"]

Floats = NDArray[np.float64]
BLOCK = 2048
"""Samples whose equations are in memory at a time."""
REFLECTED = 256
"""Rows that are reflected at a time: they stay in the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleBlock:
    """The equations of consecutive samples: ``effort = matrix @ parameters``."""

    run: Experiment
    rows: slice
    """Which samples of the run."""
    matrix: Floats
    """(m, n, b + k) torque per unit of each base parameter and term."""

    @property
    def valid(self) -> NDArray[np.bool_]:
        """(m, n) whether the equation counts."""
        return self.run.valid[self.rows]

    @property
    def effort(self) -> Floats:
        """(m, n) measured torque, zero where it does not count [N m or N]."""
        return np.where(self.valid, self.run.effort[self.rows], 0.0)


def sample_blocks(equations: Samples, size: int = BLOCK) -> Iterator[SampleBlock]:
    """The equations of all experiments, a block after the other; no block spans a gap.

    Args:
        equations: Of experiments in memory.
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
    """(m, n, k) term columns with their zeros."""
    dense = np.zeros((*shape, len(columns)))
    for k, column in enumerate(columns):
        for joint, values in column.items():
            dense[:, joint, k] = values[here]
    return dense


def folded(R: Floats, rows: Floats) -> Floats:
    """The triangle (w, w) of a triangle and any number of rows (m, w) below it."""
    for start in range(0, len(rows), REFLECTED):
        R = append_rows(R, rows[start : start + REFLECTED])
    return R


def check_samples(equations: Factors) -> None:
    """Refuse data that cannot support any number.

    Raises:
        IdentifiabilityError: There are no more equations than unknowns, so that nothing is left to judge the noise by.
        EstimationError: Every measured torque is zero.
    """
    count, unknowns = int(equations.counts.sum()), len(equations.names)
    if count <= unknowns:
        raise IdentifiabilityError(
            f"{count} equations for {unknowns} unknowns leave nothing to judge the noise by",
            remedy="Record more samples.",
        )
    factor = equations.information.weight()
    if not (np.any(factor.z) or factor.residual):
        raise EstimationError(
            "all measured torques are zero", remedy="Check that the log's effort channel is connected and mapped."
        )
