"""What may differ from run to run and is no property of the robot: offsets, friction, and their trends in time.

A sensor's zero, the temperature of the gears and what a person changed between two recordings act in one run only. A
model that is common to all runs would spread them over its parameters. Here they get parameters of their own, which are
estimated together with the base parameters, and their torque is taken off each run before anything else is fitted:

    offset      a constant torque per joint and run; zero on average over the runs
    friction    viscous and dry friction per joint and run; zero on average over the runs
    trend       an offset per joint that changes linearly with time within each run; zero on average over the run
    warming     viscous and dry friction that change linearly with time within each run; zero on average over the run

The robot keeps the mean over the runs. Other runs are predicted with that mean, held-out ones too: nothing is taken off
their torques, so the verdict contains what differs between runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dynid.arrays import Floats
from dynid.estimation.equations import Samples, cut_blocks, merge_information, next_segment
from dynid.estimation.linear.least_squares import weighted_values
from dynid.estimation.rows import reduce_rows
from dynid.findings import Finding
from dynid.information import Information
from dynid.processing.experiment import Experiment

_SHAPES: dict[str, Callable[[Experiment, int], Floats]] = {
    "OFF": lambda run, joint: np.ones(run.samples),
    "FV": lambda run, joint: run.dq[:, joint],
    "FC": lambda run, joint: np.sign(run.dq[:, joint]),
}
"""Torque per unit of a parameter along a run, for one joint."""
DIFFERENCES = {
    "offset": (("OFF",), False), "friction": (("FV", "FC"), False),
    "trend": (("OFF",), True), "warming": (("FV", "FC"), True),
}  # fmt: skip
"""Name -> shapes, and whether they change linearly within a run instead of from run to run."""


class _Column(NamedTuple):
    """One nuisance parameter: it acts in one run, against the last one or by itself."""

    joint: int
    shape: str
    run: int
    is_trend: bool


def settle_runs(equations: Samples, names: Sequence[str]) -> tuple[tuple[Experiment, ...], tuple[Finding, ...]] | None:
    """Take what differs between runs off their torques.

    Args:
        equations: The equations of the runs.
        names: Keys of `DIFFERENCES`.

    Returns:
        The runs without it, and what differs; None where nothing is to be taken off.
    """
    runs = equations.experiments
    last, joints = len(runs) - 1, range(equations.robot.dof)
    columns = [
        _Column(joint, shape, number, is_trend)
        for shapes, is_trend in map(DIFFERENCES.__getitem__, names)
        for joint in joints
        for shape in shapes
        for number in range(len(runs) if is_trend else last)
    ]
    if not columns:
        return None
    tables = [[_along(column, run, number, last) for column in columns] for number, run in enumerate(runs)]
    values, settled = _solve(equations, columns, tables), []
    for run, table in zip(runs, tables, strict=True):
        effort = run.effort.copy()
        for column, value, torque in zip(columns, values.tolist(), table, strict=True):
            effort[:, column.joint] -= value * torque
        settled.append(replace(run, effort=effort))
    what = ", ".join(name for name in names if last or DIFFERENCES[name][1])
    message = f"each run has its own {what}; other runs, held-out ones too, are predicted with the mean"
    return tuple(settled), (Finding(code="per-run", severity="note", where="runs", message=message),)


def _along(column: _Column, run: Experiment, number: int, last: int) -> Floats:
    """(N,) torque per unit of a nuisance parameter along a run."""
    joint = column.joint
    sign = 1.0 if number == column.run else -1.0 if number == last and not column.is_trend else 0.0
    torque = sign * _SHAPES[column.shape](run, joint)
    if not column.is_trend:
        return torque
    # time over half of the duration of the run, zero on average over the samples that count
    half, counted = max(0.5 * float(np.ptp(run.time)), 1e-300), run.valid[:, joint]
    middle = float(run.time[counted].mean()) if counted.any() else float(run.time.mean())
    return np.asarray(torque * (run.time - middle) / half)


def _solve(equations: Samples, columns: Sequence[_Column], tables: Sequence[Sequence[Floats]]) -> Floats:
    """(k,) the nuisance parameters, from a weighted fit of all parameters together."""
    parts = list[Information]()
    for run, table in zip(equations.experiments, tables, strict=True):
        further = [{column.joint: torque} for column, torque in zip(columns, table, strict=True)]
        part = reduce_rows(
            equations.robot, equations.base, equations.terms, run, cut_blocks(run, 1), equations.band_hz, further
        )
        parts.append(part.renumber(next_segment(parts)))
    beta = weighted_values(replace(equations, information=merge_information(parts)))
    return np.asarray(beta[len(beta) - len(columns) :])
