"""Averaging of repeated periods: what repeats is signal; the scatter between periods measures the noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import DataError
from dynid.processing.experiment import Experiment


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeriodAverage:
    """The average of several periods, and the scatter of single periods about it."""

    experiment: Experiment
    """The average period."""
    periods: int
    """Number of periods that were averaged."""
    position_std: Floats
    """(n,) standard deviation of a single filtered position sample between periods [rad or m]."""
    effort_std: Floats
    """(n,) standard deviation of a single filtered torque sample between periods [N m or N]; divide it by sqrt(periods)
    for the average."""


def average_periods(experiment: Experiment, period_s: float) -> PeriodAverage:
    """Fold an experiment of a periodic motion onto one period.

    Args:
        experiment: At least two gap-free periods, sampled so that a period is a whole number of samples.
        period_s: Period [s].

    Raises:
        DataError: Fewer than two periods, or a period that is no whole number of samples.

    Example:
        >>> type(dynid.processing.average_periods(run, 2.0)).__name__
        'PeriodAverage'
    """
    samples = round(period_s * experiment.rate_hz)
    if samples < 4 or abs(samples - period_s * experiment.rate_hz) > 0.02:
        raise DataError(
            f"a period of {period_s:g} s is no whole number of samples at {experiment.rate_hz:g} Hz",
            remedy="Record or resample at a rate that is a multiple of 1 / period.",
        )
    pieces = np.split(np.arange(experiment.samples), np.flatnonzero(np.diff(experiment.segment)) + 1)
    longest = max(pieces, key=len)
    count = longest.size // samples
    if count < 2:
        raise DataError(f"the longest gap-free stretch holds {count} full periods", remedy="Record two or more.")
    rows = longest[: count * samples]

    def fold(x: NDArray[Any]) -> NDArray[Any]:
        return x[rows].reshape(count, samples, -1)

    valid = fold(experiment.valid)
    effort = np.where(valid, fold(experiment.effort), np.nan)
    present = valid.sum(axis=0)
    mean_effort = np.nansum(effort, axis=0) / np.maximum(present, 1)
    spread = np.nansum((effort - mean_effort) ** 2, axis=0)
    q = fold(experiment.q)
    averaged = replace(
        experiment,
        time=experiment.time[rows[:samples]],
        q=q.mean(axis=0),
        dq=fold(experiment.dq).mean(axis=0),
        ddq=fold(experiment.ddq).mean(axis=0),
        effort=np.where(present > 0, mean_effort, np.nan),
        valid=present > 0,
        segment=np.zeros(samples, dtype=np.int64),
        wrench=None if experiment.wrench is None else fold(experiment.wrench).mean(axis=0),
        processing_steps=(*experiment.processing_steps, f"{count} periods of {period_s:g} s averaged"),
    )
    freedom = np.maximum((present - 1).clip(min=0).sum(axis=0), 1)
    return PeriodAverage(
        experiment=averaged,
        periods=int(count),
        position_std=np.sqrt(q.var(axis=0, ddof=1).mean(axis=0)),
        effort_std=np.sqrt(spread.sum(axis=0) / freedom),
    )
