"""Equations with features, or low-passed on both sides, reduced to one factor per joint and block with NumPy.

When both sides of ``tau = Y theta`` go through the same linear filter, theta stays the same while the noise above the
band goes ("parallel filtering", Gautier). A sample that does not count is set to zero on both sides before the filter,
so that it cannot act on its neighbours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.estimation.features import Feature, Motion
from dynid.information import Information
from dynid.information.joint_equations import equations
from dynid.information.parts import Part
from dynid.kernels import regressor
from dynid.parameters.base import BaseParameters
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Butterworth
from dynid.robot.model import Robot

__all__ = ["feature_columns", "feature_torque", "reduce_rows", "stretches"]

Floats = NDArray[np.float64]
OVERSAMPLING = 5.0
"""Rate of the kept equations over the band's upper end; the filter's slope ends well below half of it."""
AT_ONCE = 16
"""Columns that are filtered together: as many as the filter's machine code takes."""


def stretches(run: Experiment, *, memory: bool = True) -> Iterator[tuple[slice, Motion]]:
    """The gap-free stretches of an experiment, with the rows they take; all of it at once where nothing has memory."""
    edges: list[int] = (np.flatnonzero(np.diff(run.segment)) + 1).tolist() if memory else []
    for start, stop in zip([0, *edges], [*edges, run.samples], strict=True):
        rows = slice(start, stop)
        yield rows, Motion(run.q[rows], run.dq[rows], run.ddq[rows], run.rate_hz)


def feature_columns(robot: Robot, features: Sequence[Feature], motion: Motion) -> list[dict[int, Floats]]:
    """For each feature its columns on one stretch: joint index -> (N,)."""
    return [feature.column(robot, motion) for feature in features]


def feature_torque(robot: Robot, features: Sequence[Feature], values: Floats, run: Experiment) -> Floats:
    """(N, n) torque of features with parameters (k,) along an experiment [N m or N]."""
    torque = np.zeros(run.q.shape)
    for rows, motion in stretches(run, memory=any(feature.has_memory for feature in features)):
        for feature, value in zip(features, values, strict=True):
            for joint, column in feature.column(robot, motion).items():
                torque[rows, joint] += value * column
    return torque


def reduce_rows(
    robot: Robot,
    base: BaseParameters,
    features: Sequence[Feature],
    run: Experiment,
    blocks: NDArray[np.int64],
    band_hz: float | None,
) -> Information:
    """The information of base columns and features; column ``p + k`` stands for feature k, p parameters of the robot.

    Args:
        robot: Geometry and joint models.
        base: The base parameters.
        features: What else acts on the torques.
        run: The experiment.
        blocks: (N,) number of the block of time of each sample; a block never spans a gap.
        band_hz: Upper end of the band in which torques are to be explained [Hz]; None for all there is.
    """
    supports, acting = _supports(robot, base, features, run)
    matrices: dict[tuple[int, int], Floats] = {}
    counts: dict[tuple[int, int], int] = {}
    memory = band_hz is not None or any(feature.has_memory for feature in features)
    for rows, motion in stretches(run, memory=memory):
        Y = regressor(robot, motion.q, motion.dq, motion.ddq, columns=base.columns)
        extra = feature_columns(robot, features, motion)
        for joint in range(robot.dof):
            valid = run.valid[rows, joint]
            columns = [Y[:, joint, k] for k in supports[joint] if k < base.rank]
            columns += [extra[k][joint] for k in acting[joint]]
            columns.append(np.where(valid, run.effort[rows, joint], 0.0))
            kept = _kept(len(valid), run.rate_hz, band_hz)
            parts = [columns[k : k + AT_ONCE] for k in range(0, len(columns), AT_ONCE)]
            table = np.column_stack([_banded(part, valid, run.rate_hz, band_hz)[kept] for part in parts])
            for block in np.unique(blocks[rows]):
                mine = table[(blocks[rows][kept] == block) & valid[kept]]
                key = (int(block), joint)
                seen = [matrices[key]] if key in matrices else []
                matrices[key] = _triangle(np.vstack([*seen, mine]))
                counts[key] = counts.get(key, 0) + len(mine)
    numbers = sorted({block for block, _ in matrices})
    return Information(
        robot=robot.name,
        fingerprint=_fingerprint(robot, features, band_hz),
        columns=(*base.columns, *(len(base.layout) + k for k in range(len(features)))),
        supports=tuple(supports),
        kind="factor",
        parts=tuple(
            Part(
                block,
                0,
                0,
                tuple(matrices[block, joint] for joint in range(robot.dof)),
                tuple(counts[block, joint] for joint in range(robot.dof)),
            )
            for block in numbers
        ),
    )


def _supports(
    robot: Robot, base: BaseParameters, features: Sequence[Feature], run: Experiment
) -> tuple[list[tuple[int, ...]], list[list[int]]]:
    """For each joint the positions of its columns among base and features, and the features among them."""
    few = Motion(run.q[:2], run.dq[:2], run.ddq[:2], run.rate_hz)
    owners = [feature.column(robot, few).keys() for feature in features]
    acting = [[k for k, joints in enumerate(owners) if joint in joints] for joint in range(robot.dof)]
    rigid = equations(robot, base.columns).supports
    return [(*rigid[joint], *(base.rank + k for k in acting[joint])) for joint in range(robot.dof)], acting


def _kept(count: int, rate_hz: float, band_hz: float | None) -> slice:
    """Which of so many low-passed rows are enough."""
    if band_hz is None:
        return slice(None)
    if not band_hz > 0.0:
        raise ArgumentError(f"band_hz is {band_hz}", remedy="Give the upper end of the band [Hz], or None.")
    return slice(0, count, max(1, int(rate_hz / (OVERSAMPLING * band_hz))))


def _banded(columns: Sequence[Floats], valid: NDArray[np.bool_], rate_hz: float, band_hz: float | None) -> Floats:
    """(N, k) columns, zero where they do not count, low-passed."""
    table = np.empty((len(valid), len(columns)))
    for place, column in enumerate(columns):
        np.multiply(column, valid, out=table[:, place])
    if band_hz is None or band_hz >= 0.45 * rate_hz or len(table) < 4:
        return table
    return Butterworth().apply(table, rate_hz, band_hz)


def _triangle(rows: Floats) -> Floats:
    """(w, w) upper triangular R with ``R.T @ R == rows.T @ rows``."""
    width = rows.shape[1]
    R = np.zeros((width, width))
    R[: min(rows.shape)] = np.linalg.qr(rows, mode="r")
    return R


def _fingerprint(robot: Robot, features: Sequence[Feature], band_hz: float | None) -> str:
    """Of the equations: the robot's own, unless there are features or a band."""
    if not features and band_hz is None:
        return robot.fingerprint
    parts = (robot.fingerprint, [(type(f).__qualname__, f.name) for f in features], band_hz)
    return hashlib.sha256(repr(parts).encode()).hexdigest()
