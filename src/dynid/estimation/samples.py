"""The samples behind a problem, block by block, for estimators that need them again; and when there are too few."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError, EstimationError, IdentifiabilityError
from dynid.estimation.problem import Problem
from dynid.estimation.rows import feature_columns, stretches
from dynid.information.triangular import appended
from dynid.kernels import regressor
from dynid.processing.experiment import Experiment

__all__ = ["SampleBlock", "check_samples", "folded", "refuse_streamed", "sample_blocks"]

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
    """(m, n, b + k) torque per unit of each base parameter and feature."""

    @property
    def valid(self) -> NDArray[np.bool_]:
        """(m, n) whether the equation counts."""
        return self.run.valid[self.rows]

    @property
    def effort(self) -> Floats:
        """(m, n) measured torque, zero where it does not count [N m or N]."""
        return np.where(self.valid, self.run.effort[self.rows], 0.0)


def sample_blocks(problem: Problem, size: int = BLOCK) -> Iterator[SampleBlock]:
    """The equations of all experiments, a block after the other; no block spans a gap.

    Args:
        problem: The problem.
        size: Largest number of samples of a block.

    Raises:
        ArgumentError: The problem's equations are low-passed, so that they are no longer those of single samples.
    """
    if problem.band_hz is not None:
        raise ArgumentError(
            "this estimator works on single samples, and the problem's equations are low-passed",
            remedy="Build the problem without band_hz.",
        )
    refuse_streamed(problem)
    for run in problem.experiments:
        for rows, motion in stretches(run):
            extra = feature_columns(problem.robot, problem.features, motion)
            for start in range(0, len(motion.q), size):
                here = slice(start, start + size)
                states = (motion.q[here], motion.dq[here], motion.ddq[here])
                matrix = regressor(problem.robot, *states, columns=problem.base.columns)
                if extra:
                    matrix = np.concatenate([matrix, _dense(extra, here, matrix.shape[:2])], axis=2)
                yield SampleBlock(run, slice(rows.start + start, rows.start + start + len(matrix)), matrix)


def refuse_streamed(problem: Problem) -> None:
    """Refuse a problem whose samples are gone.

    Raises:
        ArgumentError: Its logs were reduced piece by piece.
    """
    if problem.streamed:
        raise ArgumentError(
            "this needs the samples again, and of a streamed log only factors were kept",
            remedy="Use an estimator of factors (ordinary, weighted, feasible, ridge), or read the log into memory.",
        )


def _dense(columns: list[dict[int, Floats]], here: slice, shape: tuple[int, ...]) -> Floats:
    """(m, n, k) feature columns with their zeros."""
    dense = np.zeros((*shape, len(columns)))
    for k, column in enumerate(columns):
        for joint, values in column.items():
            dense[:, joint, k] = values[here]
    return dense


def folded(R: Floats, rows: Floats) -> Floats:
    """The triangle (w, w) of a triangle and any number of rows (m, w) below it."""
    for start in range(0, len(rows), REFLECTED):
        R = appended(R, rows[start : start + REFLECTED])
    return R


def check_samples(problem: Problem) -> None:
    """Refuse data that cannot support any number.

    Raises:
        IdentifiabilityError: There are no more equations than unknowns, so that nothing is left to judge the noise by.
        EstimationError: Every measured torque is zero.
    """
    equations, unknowns = int(problem.equations.sum()), len(problem.names)
    if equations <= unknowns:
        raise IdentifiabilityError(
            f"{equations} equations for {unknowns} unknowns leave nothing to judge the noise by",
            remedy="Record more samples.",
        )
    factor = problem.information.weight()
    if not (np.any(factor.z) or factor.residual):
        raise EstimationError(
            "all measured torques are zero", remedy="Check that the log's effort channel is connected and mapped."
        )
