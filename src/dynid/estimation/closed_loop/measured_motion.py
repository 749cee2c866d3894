"""The measured motion in the place of the commanded one, and beside it.

A commanded motion of which positions were logged, between its samples.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.estimation.closed_loop.loop_runs import require_loop
from dynid.estimation.closed_loop.loop_stability import dry_joints
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

MOVED = 0.25
"""Periods of its cutoff by which a low-pass may move a reversal. Convention."""
LEFT = 0.25
"""Share of a joint's samples that must be left; otherwise the joint keeps all. Convention."""
LOST = 0.8
"""Root mean square of commanded minus measured positions, over the spread of these, that no control loop has ..."""
NEAR = 0.1
"""... if it is more than this [rad or m]: a joint that holds still may sag. Both are conventions."""


def exclude_reversals(run: Experiment, robot: Robot) -> Experiment:
    """The experiment without torques of joints with dry friction near their reversals.

    A low-pass rounds reversals and moves them; a simulation that follows the rounded motion turns friction at another
    time than the robot did, and stands still where that stuck.
    """
    from scipy.ndimage import maximum_filter1d

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
    loop = require_loop(run)
    place = np.round((run.time - loop.start_s) * loop.reference.rate_hz).astype(np.int64)
    apart = np.sqrt(np.mean((loop.reference.q[place] - run.q) ** 2, axis=0))
    shares = apart / np.maximum(LOST * run.q.std(axis=0), NEAR)
    worst = int(shares.argmax())
    if shares[worst] > 1.0:
        unit = "m" if robot.moving_joints[worst].kind == "prismatic" else "rad"
        raise ArgumentError(
            f"the commanded positions of '{robot.joint_names[worst]}' are {apart[worst]:.3g} {unit} from the measured "
            f"ones of '{run.source}' (root mean square), which move by {run.q[:, worst].std():.3g}",
            remedy="Check their column, unit, sign and zero, and that they are of this log.",
        )


LOCAL = 32
"""Samples on either side beyond which a spline does not depend on what follows, to rounding. Derivation: the influence
of a sample decays by 2 - sqrt(3) per sample, 1e-18 after 32."""


class SplinedMotion:
    """The cubic spline through positions that come piece by piece; times are asked for in order."""

    def __init__(self, parts: Iterable[tuple[Floats, Floats]]) -> None:
        """Nothing is read yet.

        Args:
            parts: Consecutive times (K,) [s] and positions (K, n) [rad or m].
        """
        self._parts = iter(parts)
        self._time, self._q = np.zeros(0), np.zeros((0, 0))

    def __call__(self, time: Floats) -> tuple[Floats, Floats, Floats]:
        """(N, n) positions, velocities and accelerations at times (N,).

        Raises:
            ArgumentError: The positions do not cover them.
        """
        from scipy.interpolate import CubicSpline

        while self._time.size < 2 or self._time[-1] < time[-1] + self._reach:
            part = next(self._parts, None)
            if part is None:
                break
            self._take(*part)
        slack = 0.01 * self._reach / LOCAL
        if self._time.size < 2 or self._time[0] > time[0] + slack or self._time[-1] < time[-1] - slack:
            raise ArgumentError(
                "the commanded positions do not cover the log", remedy="Give them for every sample of the log."
            )
        self._drop(int(np.searchsorted(self._time, time[0] - self._reach)))
        gaps = np.flatnonzero(np.diff(self._time) > 3.0 * self._reach / LOCAL) + 1
        first = int(gaps[gaps <= np.searchsorted(self._time, time[0] + slack)].max(initial=0))
        last = int(gaps[self._time[gaps] > time[-1]].min(initial=self._time.size))
        hole = gaps[(gaps > first) & (gaps < last)]
        if hole.size:
            start, end = self._time[hole[0] - 1 : hole[0] + 1]
            raise ArgumentError(
                f"commanded positions are missing between {start:.4g} and {end:.4g} s, where the log goes on",
                remedy="Fill them in, or cut the log there.",
            )
        spline = CubicSpline(self._time[first:last], self._q[first:last])
        return spline(time), spline(time, 1), spline(time, 2)

    def _take(self, time: Floats, q: Floats) -> None:
        """Add samples that are numbers and later than all before."""
        known = np.isfinite(time) & np.isfinite(q).all(axis=1)
        time, q = time[known], q[known]
        before = np.maximum.accumulate(np.append(self._time[-1:] if self._time.size else -np.inf, time))[:-1]
        later = time > before
        self._time = np.concatenate([self._time, time[later]])
        self._q = np.concatenate([self._q, q[later]]) if self._q.size else q[later]

    @property
    def _reach(self) -> float:
        """LOCAL sampling periods [s]."""
        return LOCAL * float(np.median(np.diff(self._time[: 2 * LOCAL]))) if self._time.size > 1 else 0.0

    def _drop(self, count: int) -> None:
        """Forget the first samples, but for a few."""
        self._time, self._q = self._time[max(0, count - 1) :], self._q[max(0, count - 1) :]
