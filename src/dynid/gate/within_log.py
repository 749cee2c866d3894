"""Faults that a log shows in itself: loads that come and go, and the causes of `dynid.gate.causes`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.findings import Finding
from dynid.gate.causes import LIKELY, best_cause, find_causes, name_causes, untestable
from dynid.gate.measured_samples import measured_samples
from dynid.gate.profiled_fit import ProfiledFit, orthonormal
from dynid.gate.quick_fit import Samples, body_columns
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

__all__ = ["check_within"]

Floats = NDArray[np.float64]

FEWEST_ROWS = 300
"""Smallest number of samples for these checks (convention)."""
ROWS = 1800
"""Largest number of samples, each a local fit to its neighbours, that causes are judged by (derivation: a cubic over m
samples has 3 (3 m^2 - 7) / (4 m (m^2 - 4)) of their variance; with m = 2 k + 1 at every k-th sample, at least 8/9 of
what all samples tell about slow causes is left)."""
LOAD_BLOCKS = 10
"""Number of parts of a log in each of which the load may be another one (convention)."""
LOADED = 0.9
"""Ratio of the residuals, with a load of its own in each part and without, below which loads may have changed; set with
tests/campaigns/faults_within.py, seed 0."""
SURELY_LOADED = 0.8
"""The same ratio below which this is a warning (experiment: faults_within.py, seeds 50 to 61: loads 0.44 to 0.73 in 11
of 12, clean logs above 0.98; clean logs of another arm with friction of other shapes reached 0.89)."""


def check_within(
    robot: Robot, samples: Samples, experiment: Experiment | None, *, least: float = LIKELY
) -> Iterator[Finding]:
    """Report loads that change, or else the cause that explains best what is left, and what the log cannot show.

    Args:
        robot: The robot.
        samples: Samples with low-passed torques.
        experiment: The same log with its torques as measured, moved back where they are late; None judges changing
            loads alone.
        least: Standard errors from which on a cause is named.
    """
    if samples.q.shape[0] < FEWEST_ROWS:
        return
    fit = ProfiledFit.of(robot, samples)
    loads = list(_changing_loads(robot, samples, fit))
    if loads and not _have_another_cause(robot, samples, fit):
        yield from loads
        return
    measured = None if experiment is None else measured_samples(robot, experiment, ROWS)
    if measured is not None:
        causes, amounts = find_causes(robot, measured, ProfiledFit.of(robot, measured))
        yield from name_causes(robot, measured, causes, amounts, least)
        yield from untestable(robot, causes, amounts)


def _have_another_cause(robot: Robot, samples: Samples, fit: ProfiledFit) -> bool:
    """Whether what looks like changing loads has another cause: once it is fitted as well, no load changes."""
    causes, amounts = find_causes(robot, samples, fit)
    best, _ = best_cause(samples, causes, amounts)
    return best is not None and not list(_changing_loads(robot, samples, fit.with_column(causes[best].column)))


def _changing_loads(robot: Robot, samples: Samples, fit: ProfiledFit) -> Iterator[Finding]:
    """Report a log whose parts have other loads on the last link, compared with blocks that take turns."""
    own = body_columns(robot, samples)
    count = samples.q.shape[0]
    part = np.arange(count) * LOAD_BLOCKS // count
    turns = np.arange(count) * LOAD_BLOCKS * 4 // count % LOAD_BLOCKS
    left = []
    for label in (part, turns):
        columns = [own * np.repeat(label == k, len(fit.joints))[:, None] for k in range(LOAD_BLOCKS - 1)]
        extra = fit.left(np.concatenate(columns, axis=1) * np.tile(fit.scale, count)[:, None])
        Q, _ = orthonormal(extra)
        rest = fit.residual - Q @ (Q.T @ fit.residual)
        left.append(float(rest @ rest))
    ratio = float(np.sqrt(left[0] / max(left[1], 1e-300)))
    if ratio < LOADED:
        yield Finding(
            code="change",
            severity="warning" if ratio < SURELY_LOADED else "note",
            where="model",
            message=f"the load on {robot.bodies[-1].joint.child} changes during the log",
            evidence={"residual ratio": ratio},
            remedy="Was something taken up or put down? Identify parts with different loads separately (--time).",
        )
