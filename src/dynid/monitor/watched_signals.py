"""The signals of a watch along an experiment: torques from outside in each period, and all that their size depends on.

A watch compares the torque from outside (external torque of the momentum observer) with its usual size, sample by
sample. `watched_stretches` makes its input from an identification and an experiment. A period is the time between two
successive samples. A watch runs at the rate of the slowest log of its calibration, at most at `FASTEST_HZ`; of a
quicker log it takes every second sample, or every third, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.compiled import kernel
from dynid.errors import DataError
from dynid.estimators.rows import RobotTorques, stretches
from dynid.identification.identify import Identification
from dynid.monitor.jumps import sudden_part
from dynid.monitor.observer import as_model, expected_torque, friction_torque, momentum_differences
from dynid.processing.experiment import Experiment
from dynid.terms.motors import Offset

FASTEST_HZ = 1000.0
"""Highest rate at which a watch runs [Hz] (convention: a push rises in a millisecond or more)."""
RATE_TOLERANCE = 0.05
"""Largest relative difference between two rates that count as one (convention: clocks that were read from stamps)."""
LARGEST_BEND = 1e-9
"""Second difference of the torques over their size, up to which a sample lies on a line with the two before and was
interpolated (derivation: rounding)."""
MOVING_SPEED = 0.02
"""Speed of a joint above which repeated torques are lost samples, and no rest [rad/s or m/s] (convention)."""
CATCH_UP_SAMPLES = 3
"""Samples after lost ones in which the log catches up (convention)."""
FEWEST_PERIODS = 16
"""Fewest periods of a stretch that is watched (convention: enough for the noise model)."""


@dataclass(frozen=True, slots=True, eq=False)
class WatchedStretch:
    """One gap-free stretch, period by period."""

    time: Floats
    """(N,) end of each period [s]."""
    rate_hz: float
    """Periods per second."""
    raw: Floats
    """(N, n) raw torque from outside: mean over each period, by the change of the momentum [N m or N]."""
    dq: Floats
    """(N, n) velocities at the end of each period [rad/s or m/s]."""
    torque: Floats
    """(N, n) measured torques at the end of each period [N m or N]."""
    spread: Floats
    """(N, n) variance of the model's torque by the uncertainty of its parameters [(N m)^2 or N^2]."""
    spread_without_offsets: Floats
    """(N, n) the same without the uncertainty of the offsets of joints [(N m)^2 or N^2]."""
    friction: Floats
    """(N, n) friction of the model: the part of its terms that changes sign with the velocity [N m or N]."""
    expected: Floats
    """(N, n) torque that the model expects without accelerations: gravity, velocity forces and friction, at the end of
    each period [N m or N]."""
    stale: NDArray[np.bool_]
    """(N,) whether a period holds samples that the log repeats or interpolates, or comes shortly after such samples."""
    run: int = 0
    """Number of the run (log) that the stretch is a part of."""

    @property
    def sudden(self) -> Floats:
        """(N, n) raw torque less its average before the window of a jump [N m or N]; see `sudden_part`."""
        return sudden_part(self.raw, self.rate_hz)

    def cut(self, rows: slice) -> WatchedStretch:
        """Make a stretch of some of the periods."""
        names = [field.name for field in fields(self) if field.name not in ("rate_hz", "run")]
        return replace(self, **{name: getattr(self, name)[rows] for name in names})


def common_rate(runs: Sequence[Experiment]) -> float:
    """Compute the rate at which experiments are watched together [Hz]: that of the slowest, at most `FASTEST_HZ`.

    Quicker logs count with a whole part of their rate.
    """
    return min(run.rate_hz / math.ceil(run.rate_hz / FASTEST_HZ / (1.0 + RATE_TOLERANCE)) for run in runs)


def watched_stretches(
    fit: Identification, run: Experiment, rate_hz: float, number: int = 0, *, spread_of: Identification | None = None
) -> Iterator[WatchedStretch]:
    """Iterate over the stretches of an experiment in which every joint has a torque; columns as its joints.

    Args:
        fit: The identified model.
        run: The experiment.
        rate_hz: Rate of the watch [Hz].
        number: Number of the run.
        spread_of: Identification whose uncertainty counts; that of the model if None.

    Raises:
        DataError: The rate of the experiment is no multiple of that of the watch.
    """
    run = _thin_out(run.matched(fit.robot), rate_hz)
    # friction is the part that changes its sign with the velocity: no offset and no spring
    forth, back = (friction_torque(as_model(fit), replace(run, dq=sign * run.dq)) for sign in (1.0, -1.0))
    friction = 0.5 * (forth - back)
    expected = expected_torque(as_model(fit), run)
    stale = find_stale(run.effort, run.dq)
    for rows, raw in momentum_differences(fit, run):
        for start, stop in true_runs(np.isfinite(run.effort[rows]).all(axis=1)):
            if stop - start <= FEWEST_PERIODS:
                continue
            # a period lies between two samples, and its signals are those of the second one
            ends = slice(rows.start + start + 1, rows.start + stop)
            spread = parameter_spread(spread_of or fit, run.rows(slice(ends.start - 1, ends.stop)))[:, 1:]
            yield WatchedStretch(
                time=run.time[ends],
                rate_hz=run.rate_hz,
                raw=raw[start : stop - 1],
                dq=run.dq[ends],
                torque=run.effort[ends],
                spread=spread[0],
                spread_without_offsets=spread[1],
                friction=friction[ends],
                expected=expected[ends],
                stale=stale[ends],
                run=number,
            )


def _thin_out(run: Experiment, rate_hz: float) -> Experiment:
    """Keep each k-th sample of an experiment, so that its rate is that of a watch.

    Means of k samples would have less noise than the watch was calibrated with.
    """
    every = max(1, round(run.rate_hz / rate_hz))
    if abs(run.rate_hz / every / rate_hz - 1.0) > RATE_TOLERANCE:
        raise DataError(
            f"the log has {run.rate_hz:.4g} samples a second, and the watch was calibrated at {rate_hz:.4g} Hz",
            path=run.source,
            remedy="Calibrate it with clean logs of the same rate (clean=, --clean), or of a whole part of it.",
        )
    return run if every == 1 else replace(run.rows(np.arange(0, run.samples, every)), rate_hz=run.rate_hz / every)


def find_stale(torque: Floats, dq: Floats) -> NDArray[np.bool_]:
    """Find the samples (N,) of a moving arm whose torques were not measured anew, and the few samples after them.

    Such torques repeat the sample before, or lie on the line through the two samples before: the log lost samples and
    repeats or interpolates others. What happened meanwhile then comes at once, as a push does.

    Args:
        torque: (N, n) measured torques [N m or N].
        dq: (N, n) velocities [rad/s or m/s].
    """
    bend = np.abs(np.diff(torque, n=2, axis=0))
    rounding = LARGEST_BEND * (np.abs(torque[2:]) + np.abs(torque[:-2]))
    # the first two samples have no line before them, and the first one nothing to repeat
    on_line = np.concatenate([np.zeros(min(2, len(torque)), dtype=bool), (bend <= rounding).all(axis=1)])
    repeated = np.concatenate([np.zeros(min(1, len(torque)), dtype=bool), (np.diff(torque, axis=0) == 0.0).all(axis=1)])
    lost = (on_line | repeated) & (np.abs(dq) > MOVING_SPEED).any(axis=1)
    stale = lost.copy()
    for later in range(1, CATCH_UP_SAMPLES + 1):
        stale[later:] |= lost[:-later]
    return np.asarray(stale)


def true_runs(known: Any) -> list[tuple[int, int]]:
    """List the runs of True among truth values (N,), each as its first index and the index behind its last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], known.astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def parameter_spread(fit: Identification, run: Experiment) -> Floats:
    """Compute variances (2, N, n) of the model's torques, ``Y S Y^T``, by the covariance S of its parameters.

    The first one counts all parameters, the second one all but the offsets of joints. Parameters that the data
    leave undetermined count as exact.
    """
    fit = fit.in_columns  # in base parameters that are columns of the regressor; then come the k terms
    n = fit.robot.dof
    rank = fit.base.rank
    known = ~fit.estimate.undetermined
    without_offsets = ~_are_offsets(fit)
    # (b + k, b + k)
    S = np.where(np.outer(known, known) & np.isfinite(fit.estimate.covariance), fit.estimate.covariance, 0.0)
    variance = np.zeros((2, run.samples, n))
    for rows, motion in stretches(run, memory=any(term.has_memory for term in fit.terms)):
        Y = np.zeros((rows.stop - rows.start, n, len(known)))
        regress = kernel(fit.robot, "regressor", columns=fit.base.columns)
        Y[:, :, :rank] = regress(motion.q, motion.dq, motion.ddq)
        for place, term in enumerate(fit.terms, start=rank):
            for joint, column in term.column(RobotTorques(fit.robot), motion).items():
                Y[:, joint, place] = column
        # diagonals of Y S Y^T: sums over the parameters of (Y S) * Y
        for place, counted in enumerate((known, without_offsets)):
            variance[place, rows] = np.sum((Y @ np.where(np.outer(counted, counted), S, 0.0)) * Y, axis=2)
    return np.maximum(variance, 0.0)  # rounding may leave a negative number


def _are_offsets(fit: Identification) -> NDArray[np.bool_]:
    """Find out which parameters of the estimate, b base parameters and k terms, are offsets of joints (b + k,)."""
    # columns of the robot's parameters: ten per link, then one per term
    robot_terms = fit.robot.terms
    first = 10 * fit.robot.dof
    base = [c >= first and isinstance(robot_terms[c - first].term, Offset) for c in fit.base.columns]
    return np.array([*base, *(isinstance(term, Offset) for term in fit.terms)], dtype=bool)
