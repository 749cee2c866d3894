"""Faults that a log shows in itself: loads that come and go, and the causes of `dynid.gate.causes`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dynid.findings import Finding
from dynid.gate.causes import LIKELY, SURE, best_cause, find_causes, name_causes, untestable
from dynid.gate.measured_samples import measured_samples
from dynid.gate.model_checks import check_changes
from dynid.gate.profiled_fit import ProfiledFit
from dynid.gate.quick_fit import Samples, body_columns, solve_singular
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

__all__ = ["check_within", "has_steady_cause"]

Floats = NDArray[np.float64]

FEWEST_ROWS = 300
"""Smallest number of samples for these checks (convention)."""
ROWS = 1800
"""Largest number of samples, each a local fit to its neighbours, that causes are judged by (derivation: a cubic over m
samples has 3 (3 m^2 - 7) / (4 m (m^2 - 4)) of their variance; with m = 2 k + 1 at every k-th sample, at least 8/9 of
what all samples tell about slow causes is left)."""
LOAD_BLOCKS = 20
"""Number of parts of a log in each of which a load is held or not (convention)."""
LOADED = 0.9
"""Ratio of the residuals, with a load that is held in some parts of the log and without it, below which loads may have
changed; set with tests/campaigns/faults_within.py, seed 0. Experiment (seeds 97000 to 99023): loads of 1 to 4 kg reach
at most 0.88 in simulated and real logs, clean logs with friction of other shapes at least 0.91."""
SURELY_LOADED = 0.8
"""The same ratio below which this is a warning (experiment: faults_within.py, seeds 50 to 61)."""
RESOLVED = 1e-6
"""Relative increase of a gain above which it is no rounding (convention)."""


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


def has_steady_cause(robot: Robot, samples: Samples) -> bool:
    """Whether what looks like a change at an instant has a cause that lasts: once its torque is taken away, none does.

    A wrong gain of a joint, for example, leaves more where the joint carries more.
    """
    fit = ProfiledFit.of(robot, samples)
    causes, amounts = find_causes(robot, samples, fit)
    best, _ = best_cause(samples, causes, amounts, SURE)
    if best is None:
        return False
    torque = (amounts.value[best] * causes[best].column).reshape(-1, len(fit.joints))
    effort = samples.effort.copy()
    effort[:, fit.joints] -= torque / np.where(fit.scale > 0.0, fit.scale, np.inf)
    return not list(check_changes(robot, replace(samples, effort=effort)))


def _have_another_cause(robot: Robot, samples: Samples, fit: ProfiledFit) -> bool:
    """Whether what looks like changing loads has another cause: once it is fitted as well, no load changes."""
    causes, amounts = find_causes(robot, samples, fit)
    best, _ = best_cause(samples, causes, amounts)
    return best is not None and not list(_changing_loads(robot, samples, fit.with_column(causes[best].column)))


def _changing_loads(robot: Robot, samples: Samples, fit: ProfiledFit) -> Iterator[Finding]:
    """Report a log in some parts of which another load is held on the last link."""
    count = samples.q.shape[0]
    part = np.arange(count) * LOAD_BLOCKS // count
    own = body_columns(robot, samples) * np.tile(fit.scale, count)[:, None]
    columns = [own * np.repeat(part == k, len(fit.joints))[:, None] for k in range(LOAD_BLOCKS)]
    free = fit.left(np.concatenate(columns, axis=1))
    gain = _gain_of_load(free.T @ free, free.T @ fit.residual)
    ratio = float(np.sqrt(max(1.0 - gain / max(float(fit.residual @ fit.residual), 1e-300), 0.0)))
    if ratio < LOADED:
        yield Finding(
            code="change",
            severity="warning" if ratio < SURELY_LOADED else "note",
            where="model",
            message=f"the load on {robot.bodies[-1].joint.child} changes during the log",
            evidence={"residual ratio": ratio},
            remedy="Was something taken up or put down? Identify parts with different loads separately (--time).",
        )


def _gain_of_load(products: Floats, along: Floats) -> float:
    """By how much one load, held in those parts where it explains most, reduces the sum of squared residuals.

    The parts are found from the best single stretch on, by adding or removing one part at a time.

    Args:
        products: (4 k, 4 k) cross products of the columns of the load in each of k parts.
        along: (4 k,) their products with the residual.
    """
    table, sides = products.reshape(LOAD_BLOCKS, 4, LOAD_BLOCKS, 4), along.reshape(LOAD_BLOCKS, 4)

    def gains(held: Floats) -> Floats:
        G, b = np.einsum("si,iajb,sj->sab", held, table, held, optimize=True), held @ sides
        return np.asarray(np.sum(b * solve_singular(G, b[:, :, None])[:, :, 0], axis=1))

    places, ends = np.arange(LOAD_BLOCKS), combinations(range(LOAD_BLOCKS + 1), 2)
    tried = np.array([(places >= a) & (places < b) for a, b in ends if b - a < LOAD_BLOCKS], dtype=float)
    best = 0.0
    while (found := gains(tried)).max() > best * (1.0 + RESOLVED):
        best = float(found.max())
        tried = np.abs(tried[int(found.argmax())] - np.eye(LOAD_BLOCKS))
    return best
