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
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ArgumentError
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
_KINDS = {
    "offset": (("OFF",), False), "friction": (("FV", "FC"), False),
    "trend": (("OFF",), True), "warming": (("FV", "FC"), True),
}  # fmt: skip
"""Name -> shapes, and whether they change linearly within a run instead of from run to run."""
DIFFERENCES = tuple(_KINDS)
"""Names of what may differ between runs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunDifferences:
    """Runs without what is special about each of them."""

    runs: tuple[Experiment, ...]
    """The runs; what is special is taken off their torques."""
    findings: tuple[Finding, ...]
    """What differs, and how other runs are predicted."""


@dataclass(frozen=True, slots=True)
class _Column:
    """One nuisance parameter: it acts in one run, against the last one or by itself."""

    joint: int
    shape: str
    run: int
    is_trend: bool

    def along(self, run: Experiment, number: int, last: int) -> Floats:
        """(N,) torque per unit along a run."""
        sign = 1.0 if number == self.run else -1.0 if number == last and not self.is_trend else 0.0
        if not sign:
            return np.zeros(run.samples)
        torque = sign * _SHAPES[self.shape](run, self.joint)
        return torque * _elapsed(run, self.joint) if self.is_trend else torque


def _elapsed(run: Experiment, joint: int) -> Floats:
    """(N,) time over half of the duration of the run, zero on average over the samples that count."""
    half = max(0.5 * float(np.ptp(run.time)), 1e-300)
    counted = run.valid[:, joint]
    middle = float(run.time[counted].mean()) if counted.any() else float(run.time.mean())
    return np.asarray((run.time - middle) / half)


def check_differences(names: Sequence[str]) -> None:
    """Refuse names of differences that do not exist.

    Raises:
        ArgumentError: There is no such difference.
    """
    for name in names:
        if name not in DIFFERENCES:
            raise ArgumentError(f"per_run: there is no '{name}'", remedy=f"Known names: {', '.join(DIFFERENCES)}.")


def settle_runs(equations: Samples, names: Sequence[str]) -> RunDifferences | None:
    """Take what differs between runs off their torques.

    Args:
        equations: The equations of the runs.
        names: Members of `DIFFERENCES`.

    Returns:
        The runs without it; None where nothing is to be taken off.
    """
    dof, count = equations.robot.dof, len(equations.experiments)
    kinds = [(name, *_KINDS[name]) for name in names if count > 1 or _KINDS[name][1]]
    columns = tuple(
        _Column(joint, shape, run, is_trend)
        for _, shapes, is_trend in kinds
        for joint in range(dof)
        for shape in shapes
        for run in range(count if is_trend else count - 1)
    )
    if not columns:
        return None
    values = _solve(equations, columns)
    runs = tuple(
        replace(run, effort=run.effort - _torque(columns, values, run, number, count - 1))
        for number, run in enumerate(equations.experiments)
    )
    what = ", ".join(name for name, _, _ in kinds)
    message = f"each run has its own {what}; other runs, held-out ones too, are predicted with the mean"
    return RunDifferences(
        runs=runs, findings=(Finding(code="per-run", severity="note", where="runs", message=message),)
    )


def _solve(equations: Samples, columns: Sequence[_Column]) -> Floats:
    """(k,) the nuisance parameters, from a weighted fit of all parameters together."""
    last, parts = len(equations.experiments) - 1, list[Information]()
    for number, run in enumerate(equations.experiments):
        further = [{column.joint: column.along(run, number, last)} for column in columns]
        part = reduce_rows(
            equations.robot, equations.base, equations.terms, run, cut_blocks(run, 1), equations.band_hz, further
        )
        parts.append(part.renumber(next_segment(parts)))
    beta = weighted_values(replace(equations, information=merge_information(parts)))
    return np.asarray(beta[len(beta) - len(columns) :])


def _torque(columns: Sequence[_Column], values: Floats, run: Experiment, number: int, last: int) -> Floats:
    """(N, n) torque of the nuisance parameters along a run."""
    torque = np.zeros_like(run.effort)
    for column, value in zip(columns, values.tolist(), strict=True):
        torque[:, column.joint] += value * column.along(run, number, last)
    return torque
