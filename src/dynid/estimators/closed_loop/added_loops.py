"""Experiments brought into a control loop, by a law and a commanded motion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.ndimage import maximum_filter1d

from dynid.arrays import Floats
from dynid.control_loop.laws import ControlLaw
from dynid.control_loop.loop import Loop, ReferenceMotion, TimeFunction
from dynid.decompositions import lstsq
from dynid.errors import ArgumentError
from dynid.estimators.closed_loop.law_test import follow_law
from dynid.estimators.closed_loop.loop_runs import dry_joints
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

RATE_TOLERANCE = 0.02
"""Largest deviation of a control rate from a multiple of a log's rate, as a share of it: clocks are that inexact."""
SETTLING_S = 1.0
"""Time after which a loop has forgotten that it started from noisy measurements [s]: the law's memory is estimated from
as much, and stretches that are shorter afterwards are left out. Convention."""
MOVED = 0.25
"""Periods of its cutoff by which a low-pass may move a reversal. Convention."""
LEFT = 0.25
"""Share of a joint's samples that must be left; otherwise the joint keeps all. Convention."""
LOST, NEAR = 0.8, 0.1
"""Root mean square of commanded minus measured positions, over the spread of these, that no control loop has, if it is
more than the second number [rad or m]: a joint that holds still may sag. Conventions."""


class SplinedMotion:
    """The cubic spline through positions of which a log tells, as a motion."""

    def __init__(self, parts: Iterable[tuple[Floats, Floats]]) -> None:
        """Join the parts.

        Args:
            parts: Consecutive times (K,) [s] and positions (K, n) [rad or m].
        """
        time, q = (np.concatenate(each) for each in zip(*parts, strict=True))
        known = np.isfinite(time) & np.isfinite(q).all(axis=1)
        known &= np.append(True, time[1:] > np.maximum.accumulate(time)[:-1])
        self._time, self._q = time[known], q[known]

    def __call__(self, time: Floats) -> tuple[Floats, Floats, Floats]:
        """(N, n) positions, velocities and accelerations at times (N,).

        Raises:
            ArgumentError: The positions do not cover them, or have a gap.
        """
        period = float(np.median(np.diff(self._time))) if self._time.size > 1 else 0.0
        slack = 0.01 * period
        first, last = np.searchsorted(self._time, [time[0] + slack, time[-1] - slack])
        if self._time.size < 2 or self._time[0] > time[0] + slack or self._time[-1] < time[-1] - slack:
            raise ArgumentError(
                "the commanded positions do not cover the log", remedy="Give them for every sample of the log."
            )
        gaps = np.append(np.flatnonzero(np.diff(self._time) > 3.0 * period) + 1, [0, self._time.size])
        begin, end = gaps[gaps <= first].max(), gaps[gaps > first].min()
        if end <= last:
            left, right = self._time[end - 1 : end + 1]
            raise ArgumentError(
                f"commanded positions are missing between {left:.4g} and {right:.4g} s, where the log goes on",
                remedy="Fill them in, or cut the log there.",
            )
        spline = CubicSpline(self._time[begin:end], self._q[begin:end])
        return spline(time), spline(time, 1), spline(time, 2)


def with_loop(
    run: Experiment, motion: TimeFunction | None = None, *, law: ControlLaw, rate_hz: float
) -> list[Experiment]:
    """The gap-free stretches of an experiment, each with the loop that made it.

    A stretch is simulated from its beginning: from its measured state, and with the memory of the law that explains the
    first torques. Its beginning is simulated but not kept: by then the loop has forgotten that it started from noisy
    measurements.

    Args:
        run: The processed log.
        motion: The commanded motion: times (N,) in order -> (q, dq, ddq); the measured motion by default.
        law: The control law.
        rate_hz: Rate of the law [Hz].

    Raises:
        ArgumentError: The motion is not one of the log's joints, or the rate is no multiple of the log's.
    """
    motion = SplinedMotion([(run.time, run.q)]) if motion is None else motion
    ratio = rate_hz / run.rate_hz
    if ratio < 1.0 - RATE_TOLERANCE or abs(ratio - round(ratio)) > RATE_TOLERANCE * ratio:
        near = max(1, int(np.ceil(ratio))) * run.rate_hz
        raise ArgumentError(
            f"a control rate of {rate_hz:g} Hz is no multiple of the log's {run.rate_hz:.6g} Hz",
            remedy=f"Give a whole multiple, such as {near:.6g} Hz, or resample the log.",
        )
    rate = run.rate_hz * round(ratio)
    edges = [0, *(np.flatnonzero(np.diff(run.segment)) + 1).tolist(), run.samples]
    filter_s = 0.0 if run.derivation is None else run.derivation.smoothing.settling_s
    found = []
    for start, stop in pairwise(edges):
        part = run.rows(slice(start, stop))
        # the simulation is low-passed as the log was, and its low-pass needs time to settle as well
        kept = slice(int(np.ceil(max(SETTLING_S, filter_s) * run.rate_hz - 1e-6)), None)
        if part.rows(kept).samples <= SETTLING_S * run.rate_hz:
            continue
        reference = _reference(motion, part, rate, filter_s)
        memory = _starting_memory(part, law, reference)
        loop = Loop(law=law, reference=reference, q0=part.q[0], dq0=part.dq[0], memory0=memory, start_s=part.time[0])
        found.append(replace(part.rows(kept), loop=loop))
    return found


def _reference(motion: TimeFunction, part: Experiment, rate_hz: float, beyond_s: float) -> ReferenceMotion:
    """The commanded motion of a stretch and, if known, some time beyond [s].

    Raises:
        ArgumentError: It is no motion of the log's joints, or does not cover them.
    """
    for more_s in (beyond_s, 0.0):  # a motion that ends with the log raises for the first
        instants = part.time[0] + np.arange(round((part.time[-1] + more_s - part.time[0]) * rate_hz) + 1) / rate_hz
        try:
            states = motion(instants)
            break
        except ArgumentError:
            if more_s == 0.0:
                raise
    shape = (instants.size, part.q.shape[1])
    if not isinstance(states, tuple) or len(states) != 3 or any(np.shape(x) != shape for x in states):
        raise ArgumentError(
            f"the commanded motion at {instants.size} instants is no (q, dq, ddq) of the log's {shape[1]} joints each",
            remedy=f"Return three arrays of shape (N, {shape[1]}) for N instants.",
        )
    return ReferenceMotion(q=states[0], dq=states[1], ddq=states[2], rate_hz=rate_hz)


def _starting_memory(part: Experiment, law: ControlLaw, reference: ReferenceMotion) -> Floats | None:
    """(m,) memory with which the law gives the torques measured at the beginning of a log; None for one without."""
    m = law.memory_size(part.q.shape[1])
    if not m:
        return None
    factor = round(reference.rate_hz / part.rate_hz)
    seen = part.rows(slice(0, 2 + round(SETTLING_S * part.rate_hz)))
    ticks = factor * np.arange(seen.samples)
    held = follow_law(
        law, seen.q, seen.dq, ticks, reference.samples[: ticks[-1] + 1], np.zeros(m), 1.0 / reference.rate_hz
    )
    rest = np.where(seen.valid, np.nan_to_num(seen.effort) - held[0], 0.0)
    response = ((held[1:] - held[0]) * seen.valid).reshape(m, -1).T
    sizes = np.maximum(np.linalg.norm(response, axis=0), 1e-300)
    return np.where(sizes > 1e-290, lstsq(response / sizes, rest.reshape(-1), rcond=1e-6) / sizes, 0.0)


def exclude_reversals(run: Experiment, robot: Robot) -> Experiment:
    """The experiment without torques of joints with dry friction near their reversals.

    A low-pass rounds reversals and moves them; a simulation that follows the rounded motion turns friction at another
    time than the robot did, and stands still where that stuck.
    """
    turned = np.zeros(run.q.shape, dtype=np.uint8)
    turned[1:] = np.diff(np.sign(run.dq), axis=0) != 0
    cutoff = None if run.derivation is None else run.derivation.smoothing.cutoff_hz
    reach = 0 if cutoff is None else int(np.ceil(MOVED / cutoff * run.rate_hz))
    near = maximum_filter1d(turned, 2 * reach + 1, axis=0).astype(bool)
    valid = run.valid & ~(near & dry_joints(robot))
    enough = valid.sum(axis=0) >= LEFT * run.valid.sum(axis=0)
    return replace(run, valid=np.where(enough, valid, run.valid))


def check_commanded_motion(run: Experiment, robot: Robot) -> None:
    """Check that the commanded motion can be that of the experiment.

    Raises:
        ArgumentError: The positions of a joint are too far from the measured ones; the joint is named.
    """
    assert run.loop is not None
    place = np.round((run.time - run.loop.start_s) * run.loop.reference.rate_hz).astype(np.int64)
    apart = np.sqrt(np.mean((run.loop.reference.q[place] - run.q) ** 2, axis=0))
    shares = apart / np.maximum(LOST * run.q.std(axis=0), NEAR)
    worst = int(shares.argmax())
    if shares[worst] > 1.0:
        unit = "m" if robot.moving_joints[worst].kind == "prismatic" else "rad"
        raise ArgumentError(
            f"the commanded positions of '{robot.joint_names[worst]}' are {apart[worst]:.3g} {unit} from the measured "
            f"ones of '{run.source}' (root mean square), which move by {run.q[:, worst].std():.3g}",
            remedy="Check their column, unit, sign and zero, and that they are of this log.",
        )
