"""Control loops for experiments without one: each gap-free stretch gets a control law and a commanded motion.

Estimators that simulate the robot in its control loop (`closed_loop.loop_estimator`) call `with_loop`, which splits a
processed log into stretches that can be simulated. `exclude_reversals` leaves out torques whose friction cannot be
simulated, and `check_commanded_motion` compares the commanded positions with the measured ones.

The memory of a law are the numbers that it keeps from one control instant to the next, such as integrals of errors.
Shapes: N samples, n joints, m numbers of a law's memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.ndimage import maximum_filter1d

from dynid.array_types import Floats
from dynid.control_loop.laws import ControlLaw
from dynid.control_loop.loop import Loop, ReferenceMotion, TimeFunction
from dynid.decompositions import lstsq
from dynid.errors import ArgumentError
from dynid.estimators.closed_loop.law_test import follow_law
from dynid.estimators.closed_loop.loop_runs import dry_joints
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

RATE_TOLERANCE = 0.02
"""Largest deviation of a control rate from a multiple of the log's rate, as a share of it (effect: clocks drift)."""
SETTLING_S = 1.0
"""Time after which a simulated loop no longer depends on its start from noisy measurements [s] (convention). The law's
memory is estimated from the first samples of a stretch, of this length; if no more than this remains, the stretch is
left out."""
REVERSAL_SHIFT = 0.25
"""Time by which a low-pass may shift a reversal [periods of its cutoff] (convention)."""
LEAST_KEPT_SHARE = 0.25
"""Share of a joint's samples that must stay when those near reversals are left out; otherwise the joint keeps all
(convention)."""
LARGEST_TRACKING_SHARE, LEAST_TRACKING_LIMIT = 0.8, 0.1
"""Largest root mean square of commanded minus measured positions of a control loop: a share of the standard deviation
of the positions, but at least the second number [rad or m], as a joint that holds still may sag (convention)."""


class SplinedMotion:
    """A commanded motion: the cubic spline through logged positions."""

    def __init__(self, parts: Iterable[tuple[Floats, Floats]]) -> None:
        """Join consecutive parts of a log; samples that are not finite or go back in time are left out.

        Args:
            parts: Consecutive times (K,) [s] and positions (K, n) [rad or m].
        """
        time, q = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        is_used = np.isfinite(time) & np.isfinite(q).all(axis=1)
        is_used &= np.append(True, time[1:] > np.maximum.accumulate(time)[:-1])
        self._time = time[is_used]
        self._q = q[is_used]

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
        # the gap-free part [begin, end) of the log in which the times start; a step above three periods is a gap
        edges = np.append(np.flatnonzero(np.diff(self._time) > 3.0 * period) + 1, [0, self._time.size])
        begin = edges[edges <= first].max()
        end = edges[edges > first].min()
        # index behind a gap that the times reach into, at the end or at the beginning; 0 if there is none
        gap = end if end <= last else begin if self._time[begin] > time[0] + slack else 0
        if gap:
            left, right = self._time[gap - 1 : gap + 1]
            raise ArgumentError(
                f"commanded positions are missing between {left:.4g} and {right:.4g} s, where the log goes on",
                remedy="Fill them in, or cut the log there.",
            )
        spline = CubicSpline(self._time[begin:end], self._q[begin:end])
        return spline(time), spline(time, 1), spline(time, 2)


def with_loop(
    run: Experiment, motion: TimeFunction | None = None, *, law: ControlLaw, rate_hz: float
) -> list[Experiment]:
    """Split an experiment into gap-free stretches, each with the loop to simulate.

    The simulation of a stretch starts from its measured state, with the memory of the law that explains the first
    torques. The beginning of the stretch is simulated but not compared, because it depends on the noise of that start.

    Args:
        run: The processed log.
        motion: The commanded motion: times (N,) in order -> (q, dq, ddq); the measured motion by default.
        law: The control law.
        rate_hz: Rate of the law [Hz].

    Raises:
        ArgumentError: The motion does not have the log's joints, or the rate is no multiple of the log's.
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
    stretches = []
    for start, stop in pairwise(edges):
        part = run.rows(slice(start, stop))
        # the simulation is low-passed as the log was, and its low-pass needs time to settle as well
        kept = slice(int(np.ceil(max(SETTLING_S, filter_s) * run.rate_hz - 1e-6)), None)
        if part.rows(kept).samples <= SETTLING_S * run.rate_hz:
            continue
        reference = _reference(motion, part, rate, filter_s)
        memory = _starting_memory(part, law, reference)
        loop = Loop(law=law, reference=reference, q0=part.q[0], dq0=part.dq[0], memory0=memory, start_s=part.time[0])
        stretches.append(replace(part.rows(kept), loop=loop))
    return stretches


def _reference(motion: TimeFunction, part: Experiment, rate_hz: float, beyond_s: float) -> ReferenceMotion:
    """The commanded motion of a stretch at the control instants, and for some time beyond it [s] where it is known.

    The low-pass of the log needs samples beyond the end of a stretch, too.

    Raises:
        ArgumentError: It is no motion of the log's joints, or does not cover them.
    """
    for more_s in (beyond_s, 0.0):  # a motion that ends with the log raises for the longer time
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
    """(m,) memory with which the law best explains the torques at the start of a stretch; None for a law without."""
    m = law.memory_size(part.q.shape[1])
    if not m:
        return None
    factor = round(reference.rate_hz / part.rate_hz)  # control instants per sample
    beginning = part.rows(slice(0, 2 + round(SETTLING_S * part.rate_hz)))
    ticks = factor * np.arange(beginning.samples)
    wanted = reference.samples[: ticks[-1] + 1]
    # (1 + m, N, n): follow_law adds m further starts, each with one number of the memory set to one; torques are linear
    # in the memory
    torques = follow_law(law, beginning.q, beginning.dq, ticks, wanted, np.zeros(m), 1.0 / reference.rate_hz)
    residual = np.where(beginning.valid, np.nan_to_num(beginning.effort) - torques[0], 0.0)
    response = ((torques[1:] - torques[0]) * beginning.valid).reshape(m, -1).T
    sizes = np.linalg.norm(response, axis=0)
    is_used = sizes > 0.0  # a number of the memory that changes no torque stays zero
    sizes = np.where(is_used, sizes, 1.0)
    return np.where(is_used, lstsq(response / sizes, residual.reshape(-1), rcond=1e-6) / sizes, 0.0)


def exclude_reversals(run: Experiment, robot: Robot) -> Experiment:
    """Leave out the torques of joints with dry friction near their reversals.

    A low-pass rounds and shifts reversals: a simulation that follows the low-passed motion changes the sign of friction
    at another time than the robot did.
    """
    reverses = np.zeros(run.q.shape, dtype=np.uint8)
    reverses[1:] = np.diff(np.sign(run.dq), axis=0) != 0
    cutoff = None if run.derivation is None else run.derivation.smoothing.cutoff_hz
    reach = 0 if cutoff is None else int(np.ceil(REVERSAL_SHIFT / cutoff * run.rate_hz))
    near = maximum_filter1d(reverses, 2 * reach + 1, axis=0).astype(bool)
    valid = run.valid & ~(near & dry_joints(robot))
    enough = valid.sum(axis=0) >= LEAST_KEPT_SHARE * run.valid.sum(axis=0)
    return replace(run, valid=np.where(enough, valid, run.valid))


def check_commanded_motion(run: Experiment, robot: Robot) -> None:
    """Check that the commanded positions are near enough to the measured ones to be of this log.

    Raises:
        ArgumentError: The positions of a joint are too far from the measured ones; the joint is named.
    """
    assert run.loop is not None
    ticks = np.round((run.time - run.loop.start_s) * run.loop.reference.rate_hz).astype(np.int64)
    tracking = np.sqrt(np.mean((run.loop.reference.q[ticks] - run.q) ** 2, axis=0))  # (n,) root mean square errors
    over_limit = tracking / np.maximum(LARGEST_TRACKING_SHARE * run.q.std(axis=0), LEAST_TRACKING_LIMIT)
    worst = int(over_limit.argmax())
    if over_limit[worst] > 1.0:
        unit = "m" if robot.moving_joints[worst].kind == "prismatic" else "rad"
        raise ArgumentError(
            f"the commanded positions of '{robot.joint_names[worst]}' are {tracking[worst]:.3g} {unit} from the "
            f"measured ones of '{run.source}' (root mean square), which move by {run.q[:, worst].std():.3g}",
            remedy="Check their column, unit, sign and zero, and that they are of this log.",
        )
