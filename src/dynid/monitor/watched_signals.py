"""What is watched along an experiment: the torque from outside in each period, and all that its size depends on.

A watch runs at the rate of the slowest log of its calibration, at most at `FASTEST` samples a second; of a quicker log
it takes every second sample, or every third, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import DataError
from dynid.estimation.rows import RobotTorques, stretches
from dynid.identification.identify import Identification
from dynid.kernels import kernel
from dynid.monitor.jumps import sudden_part
from dynid.monitor.observer import as_model, expected_torque, friction_torque, momentum_differences
from dynid.processing.experiment import Experiment
from dynid.terms.motors import Offset

FASTEST = 1000.0
"""Highest rate at which a watch runs [Hz] (convention: a push rises in a millisecond or more)."""
RATE_TOLERANCE = 0.05
"""Largest relative difference between two rates that count as one (convention: clocks that were read from stamps)."""
STRAIGHT = 1e-9
"""Bend of the torques over their size below which they were not measured anew (derivation: rounding)."""
MOVING = 0.02
"""Speed of a joint above which repeated torques are lost samples, and no rest [rad/s or m/s] (convention)."""
CATCH_UP = 3
"""Samples after lost ones in which the log catches up (convention)."""
FEWEST = 16
"""Fewest periods of a stretch that is watched (convention: enough for the memory of the noise)."""


@dataclass(frozen=True, slots=True, eq=False)
class WatchedStretch:
    """One gap-free stretch, period by period."""

    time: Floats
    """(N,) end of each period [s]."""
    rate_hz: float
    """Periods per second."""
    raw: Floats
    """(N, n) mean torque from outside in each period [N m or N]."""
    dq: Floats
    """(N, n) velocities at the end of each period [rad/s or m/s]."""
    torque: Floats
    """(N, n) measured torques at the end of each period [N m or N]."""
    spread: Floats
    """(N, n) variance of the model's torque by the uncertainty of its parameters [(N m)^2 or N^2]."""
    spread_beside: Floats
    """(N, n) the same without the uncertainty of the offsets [(N m)^2 or N^2]."""
    friction: Floats
    """(N, n) friction of the model [N m or N]."""
    expected: Floats
    """(N, n) torque that the model expects without accelerations: gravity, velocity forces and friction, at the end of
    each period [N m or N]."""
    stale: NDArray[np.bool_]
    """(N,) whether a period holds samples that the log repeats or leaves out, or follows one shortly after."""

    @property
    def sudden(self) -> Floats:
        """(N, n) the raw torque less what it was on average before the window of a jump [N m or N]."""
        return sudden_part(self.raw, self.rate_hz)

    def cut(self, rows: slice) -> WatchedStretch:
        """Some periods of the stretch."""
        names = [field.name for field in fields(self) if field.name != "rate_hz"]
        return replace(self, **{name: getattr(self, name)[rows] for name in names})


def common_rate(runs: Sequence[Experiment]) -> float:
    """Rate at which experiments are watched together [Hz]: that of the slowest one, at most `FASTEST`."""
    return min(run.rate_hz / math.ceil(run.rate_hz / FASTEST / (1.0 + RATE_TOLERANCE)) for run in runs)


def watched_stretches(
    fit: Identification, run: Experiment, rate_hz: float, *, spread_of: Identification | None = None
) -> Iterator[WatchedStretch]:
    """Iterate over the stretches of an experiment in which every joint has a torque; columns as the robot's joints.

    Args:
        fit: The model.
        run: The experiment.
        rate_hz: Rate of the watch [Hz].
        spread_of: Identification whose uncertainty counts; that of the model if None.

    Raises:
        DataError: The rate of the experiment is no multiple of that of the watch.
    """
    run = _thin_out(run.matched(fit.robot), rate_hz)
    # what changes its sign with the motion: no offset and no spring
    forth, back = (friction_torque(as_model(fit), replace(run, dq=sign * run.dq)) for sign in (1.0, -1.0))
    friction = 0.5 * (forth - back)
    expected = expected_torque(as_model(fit), run)
    stale = find_stale(run.effort, run.dq)
    for rows, raw in momentum_differences(fit, run):
        for start, stop in true_runs(np.isfinite(run.effort[rows]).all(axis=1)):
            if stop - start <= FEWEST:
                continue
            ends = slice(rows.start + start + 1, rows.start + stop)
            spread = parameter_spread(spread_of or fit, run.rows(slice(ends.start - 1, ends.stop)))[:, 1:]
            yield WatchedStretch(
                time=run.time[ends],
                rate_hz=run.rate_hz,
                raw=raw[start : stop - 1],
                dq=run.dq[ends],
                torque=run.effort[ends],
                spread=spread[0],
                spread_beside=spread[1],
                friction=friction[ends],
                expected=expected[ends],
                stale=stale[ends],
            )


def _thin_out(run: Experiment, rate_hz: float) -> Experiment:
    """Each so many samples of an experiment that one is left for each period of a watch: a mean has another noise."""
    every = max(1, round(run.rate_hz / rate_hz))
    if abs(run.rate_hz / every / rate_hz - 1.0) > RATE_TOLERANCE:
        raise DataError(
            f"the log has {run.rate_hz:.4g} samples a second, and the watch was calibrated at {rate_hz:.4g} Hz",
            path=run.source,
            remedy="Calibrate it with clean logs of the same rate (clean=, --clean), or of a whole part of it.",
        )
    return run if every == 1 else replace(run.rows(np.arange(0, run.samples, every)), rate_hz=run.rate_hz / every)


def find_stale(torque: Floats, dq: Floats) -> NDArray[np.bool_]:
    """(N,) whether the torques (N, n) of a moving arm lie on the line of the two samples before, or did shortly before.

    Lost samples are repeated, or filled by interpolation: then what happened meanwhile comes at once, as a push does.
    """
    bend = np.abs(np.diff(torque, n=2, axis=0))
    size = STRAIGHT * (np.abs(torque[2:]) + np.abs(torque[:-2]))
    straight = np.concatenate([np.zeros(min(2, len(torque)), dtype=bool), (bend <= size).all(axis=1)])
    rests = np.concatenate([np.zeros(min(1, len(torque)), dtype=bool), (np.diff(torque, axis=0) == 0.0).all(axis=1)])
    lost = (straight | rests) & (np.abs(dq) > MOVING).any(axis=1)
    found = lost.copy()
    for later in range(1, CATCH_UP + 1):
        found[later:] |= lost[:-later]
    return np.asarray(found)


def true_runs(known: Any) -> list[tuple[int, int]]:
    """First index of each run of True in (N,) truth values, and the one behind its last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], known.astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def parameter_spread(fit: Identification, run: Experiment) -> Floats:
    """(2, N, n) variance ``Y S Y^T`` of the torques by the covariance S of the estimate, and that beside the offsets.

    Open parameters count nothing.
    """
    fit = fit.in_columns
    n, rank = fit.robot.dof, fit.base.rank
    known, beside = ~fit.estimate.undetermined, ~_are_offsets(fit)
    S = np.where(np.outer(known, known) & np.isfinite(fit.estimate.covariance), fit.estimate.covariance, 0.0)
    variance = np.zeros((2, run.samples, n))
    for rows, motion in stretches(run, memory=any(term.has_memory for term in fit.terms)):
        Y = np.zeros((rows.stop - rows.start, n, len(known)))
        regress = kernel(fit.robot, "regressor", columns=fit.base.columns)
        Y[:, :, :rank] = regress(motion.q, motion.dq, motion.ddq)
        for place, term in enumerate(fit.terms, start=rank):
            for joint, column in term.column(RobotTorques(fit.robot), motion).items():
                Y[:, joint, place] = column
        for place, counted in enumerate((known, beside)):
            variance[place, rows] = np.sum((Y @ np.where(np.outer(counted, counted), S, 0.0)) * Y, axis=2)
    return np.maximum(variance, 0.0)  # rounding


def _are_offsets(fit: Identification) -> NDArray[np.bool_]:
    """(b + k,) which parameters of the estimate are offsets of joints."""
    own, first = fit.robot.terms, 10 * fit.robot.dof
    base = [c >= first and isinstance(own[c - first].term, Offset) for c in fit.base.columns]
    return np.array([*base, *(isinstance(term, Offset) for term in fit.terms)], dtype=bool)
