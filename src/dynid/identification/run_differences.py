"""Nuisance parameters of single runs: offsets and friction that differ from run to run, and their trends in time.

A sensor's zero, the temperature of the gears and what a person changed between two recordings act in one run only. A
model that is common to all runs would spread them over its parameters. Here they get nuisance parameters, which are
estimated together with the base parameters, and their torque is subtracted from each run before anything else is
fitted:

    offset      a constant torque per joint and run; zero on average over the runs
    friction    viscous and dry friction per joint and run; zero on average over the runs
    trend       an offset per joint that changes linearly with time within each run; zero on average over the run
    warming     viscous and dry friction that change linearly with time within each run; zero on average over the run

The robot keeps the mean over the runs. A difference between runs has therefore one parameter per run but the last: it
acts as +1 in its run and as -1 in the last one, which makes the sum over the runs zero. A trend has one parameter per
run and acts in this run only.

Other runs, held-out ones too, are predicted with the mean: nothing is subtracted from their torques, so the verdict
contains what differs between runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dynid.array_types import Floats
from dynid.data_reduction import Information
from dynid.estimators.equations import Samples, cut_blocks, merge_information, next_segment
from dynid.estimators.linear.least_squares import weighted_values
from dynid.estimators.rows import reduce_rows
from dynid.findings import Finding
from dynid.processing.experiment import Experiment

_SHAPES: dict[str, Callable[[Experiment, int], Floats]] = {
    "OFF": lambda run, joint: np.ones(run.samples),
    "FV": lambda run, joint: run.dq[:, joint],
    "FC": lambda run, joint: np.sign(run.dq[:, joint]),
}
"""Name of an offset, of viscous and of dry friction -> (N,) torque per unit of the parameter along a run, for one
joint."""


class _Difference(NamedTuple):
    """One thing that may be chosen for each run."""

    shapes: tuple[str, ...]
    """Keys of `_SHAPES`."""
    is_trend: bool
    """Whether it changes linearly within a run instead of from run to run."""


DIFFERENCES = {
    "offset": _Difference(("OFF",), is_trend=False),
    "friction": _Difference(("FV", "FC"), is_trend=False),
    "trend": _Difference(("OFF",), is_trend=True),
    "warming": _Difference(("FV", "FC"), is_trend=True),
}
"""Name -> what has nuisance parameters under this name; see the first lines of this file."""


class _Nuisance(NamedTuple):
    """One nuisance parameter."""

    joint: int
    """Index of the joint on which it acts."""
    shape: str
    """Key of `_SHAPES`."""
    run: int
    """Number of the run in which it acts as +1."""
    is_trend: bool
    """Whether it changes linearly with time and acts in no other run; otherwise it acts as -1 in the last run."""


def subtract_run_differences(
    equations: Samples, names: Sequence[str]
) -> tuple[tuple[Experiment, ...], tuple[Finding, ...]] | None:
    """Estimate what differs between runs and subtract it from their torques.

    Args:
        equations: The equations of the runs.
        names: Keys of `DIFFERENCES`.

    Returns:
        The runs with the remaining torques, and a finding that says what was subtracted; None if there is nothing to
        subtract: no names, or a single run that can differ from no other.
    """
    runs = equations.experiments
    last = len(runs) - 1
    nuisances = [
        _Nuisance(joint, shape, number, difference.is_trend)
        for difference in map(DIFFERENCES.__getitem__, names)
        for joint in range(equations.robot.dof)
        for shape in difference.shapes
        for number in range(len(runs) if difference.is_trend else last)
    ]
    if not nuisances:
        return None
    unit_torques = [[_unit_torque(one, run, number, last) for one in nuisances] for number, run in enumerate(runs)]
    values = _estimate_nuisances(equations, nuisances, unit_torques).tolist()
    remaining: list[Experiment] = []
    for run, torques in zip(runs, unit_torques, strict=True):
        effort = run.effort.copy()
        for nuisance, value, torque in zip(nuisances, values, torques, strict=True):
            effort[:, nuisance.joint] -= value * torque
        remaining.append(replace(run, effort=effort))
    what = ", ".join(name for name in names if last or DIFFERENCES[name].is_trend)
    message = f"each run has its own {what}; other runs, held-out ones too, are predicted with the mean"
    return tuple(remaining), (Finding(code="per-run", severity="note", where="runs", message=message),)


def _unit_torque(nuisance: _Nuisance, run: Experiment, number: int, last: int) -> Floats:
    """(N,) torque per unit of a nuisance parameter along run ``number``, where run ``last`` is the last."""
    joint = nuisance.joint
    if number == nuisance.run:
        sign = 1.0
    elif number == last and not nuisance.is_trend:
        sign = -1.0
    else:
        sign = 0.0
    torque = sign * _SHAPES[nuisance.shape](run, joint)
    if not nuisance.is_trend:
        return torque
    # time in units of half the run's duration, zero on average over the samples that count
    half_duration = max(0.5 * float(np.ptp(run.time)), 1e-300)
    counted = run.valid[:, joint]
    middle = float(run.time[counted].mean()) if counted.any() else float(run.time.mean())
    return np.asarray(torque * (run.time - middle) / half_duration)


def _estimate_nuisances(
    equations: Samples, nuisances: Sequence[_Nuisance], unit_torques: Sequence[Sequence[Floats]]
) -> Floats:
    """(k,) values of the nuisance parameters, from one weighted fit of all parameters to all runs.

    Args:
        equations: The equations of the runs.
        nuisances: The k nuisance parameters.
        unit_torques: For each run and nuisance parameter its torque (N,) per unit.
    """
    parts = list[Information]()
    for run, torques in zip(equations.experiments, unit_torques, strict=True):
        nuisance_rows = [{one.joint: torque} for one, torque in zip(nuisances, torques, strict=True)]
        part = reduce_rows(
            equations.robot, equations.base, equations.terms, run, cut_blocks(run, 1), equations.band_hz, nuisance_rows
        )
        # blocks of time are numbered from zero in each run, and the merged information needs different numbers
        parts.append(part.renumber(next_segment(parts)))
    beta = weighted_values(replace(equations, information=merge_information(parts)))
    return np.asarray(beta[len(beta) - len(nuisances) :])  # they stand behind all other parameters
