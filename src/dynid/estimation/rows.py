"""Terms along the stretches of an experiment: their columns, their torque, and the reduction with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.estimation.link_torques import RobotTorques
from dynid.information import Extension, Information, reduce_extended
from dynid.parameters.base import BaseParameters
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Butterworth
from dynid.robot.model import Robot
from dynid.terms.base import Motion, Term

__all__ = ["term_columns", "torque_of_terms", "reduce_rows", "stretches"]

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


def term_columns(robot: Robot, terms: Sequence[Term], motion: Motion) -> list[dict[int, Floats]]:
    """For each term its columns on one stretch: joint index -> (N,)."""
    return [term.column(RobotTorques(robot), motion) for term in terms]


def torque_of_terms(robot: Robot, terms: Sequence[Term], values: Floats, run: Experiment) -> Floats:
    """(N, n) torque of terms with parameters (k,) along an experiment [N m or N]."""
    torque = np.zeros(run.q.shape)
    for rows, motion in stretches(run, memory=any(term.has_memory for term in terms)):
        for term, value in zip(terms, values, strict=True):
            for joint, column in term.column(RobotTorques(robot), motion).items():
                torque[rows, joint] += value * column
    return torque


def reduce_rows(
    robot: Robot,
    base: BaseParameters,
    terms: Sequence[Term],
    run: Experiment,
    blocks: NDArray[np.int64],
    band_hz: float | None,
) -> Information:
    """The information of base columns and terms; column ``p + k`` stands for term k, p parameters of the robot.

    Args:
        robot: Geometry and terms.
        base: The base parameters.
        terms: What else acts on the torques.
        run: The experiment.
        blocks: (N,) number of the block of time of each sample.
        band_hz: Upper end of the band in which torques are to be explained [Hz]; None for no filter.
    """
    names = [(type(term).__qualname__, term.name) for term in terms]
    extension = Extension(
        key=repr((names, band_hz)),
        further=_further_columns(robot, terms, run),
        low_pass=None if band_hz is None else partial(_low_pass, rate_hz=run.rate_hz, band_hz=band_hz),
        step=1 if band_hz is None else _step(run.rate_hz, band_hz),
    )
    return reduce_extended(robot, run, extension, columns=base.columns, segments=blocks)


def _further_columns(robot: Robot, terms: Sequence[Term], run: Experiment) -> tuple[dict[int, Floats], ...]:
    """For each term its columns along the whole run: joint index -> (N,)."""
    whole: tuple[dict[int, Floats], ...] = tuple({} for _ in terms)
    for rows, motion in stretches(run, memory=any(term.has_memory for term in terms)):
        for place, columns in zip(whole, term_columns(robot, terms, motion), strict=True):
            for joint, column in columns.items():
                place.setdefault(joint, np.zeros(run.samples))[rows] = column
    return whole


def _step(rate_hz: float, band_hz: float) -> int:
    """Every how many-th low-passed row is enough."""
    if not band_hz > 0.0:
        raise ArgumentError(f"band_hz is {band_hz}", remedy="Give the upper end of the band [Hz], or None.")
    return max(1, int(rate_hz / (OVERSAMPLING * band_hz)))


def _low_pass(table: Floats, rate_hz: float, band_hz: float) -> Floats:
    """(N, k) low-passed columns of a gap-free stretch."""
    if band_hz >= 0.45 * rate_hz or len(table) < 4:
        return table
    parts = [table[:, k : k + AT_ONCE] for k in range(0, table.shape[1], AT_ONCE)]
    return np.column_stack([Butterworth().apply(part, rate_hz, band_hz) for part in parts])
