"""A watch while the robot runs: the statistics of whole logs, over the last samples, every half window of a jump.

A watch raises an alarm where the torque from outside (external torque of the momentum observer) is larger than its
usual noise, suddenly or slowly. `LiveWatch.step` takes one sample at a time. A *row* is one period of the watch at the
rate of its calibration, and may hold several samples; after each ten milliseconds of rows the statistics are computed
anew. Only the spread of the model, the variance of its torques by the uncertainty of its parameters, is not computed
for every sample: its median over the calibration is used.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.checks import as_sample
from dynid.errors import ArgumentError, DataError
from dynid.identification.identify import Identification
from dynid.monitor.alarm_tails import CLEAR_S
from dynid.monitor.alarms import SAME_S, Alarm
from dynid.monitor.bands import Learnt
from dynid.monitor.calibration import Calibration, Kind, Statistics
from dynid.monitor.jumps import WINDOW_S
from dynid.monitor.live_lines import is_clock_set
from dynid.monitor.observer import GAIN, MomentumObserver, as_model
from dynid.monitor.watched_signals import WatchedStretch, find_stale

LEAST_PERIOD, GAP_PERIODS = 0.75, 4.0
"""Time after which the samples so far make up one period of the watch (convention: between a half and one), and time
without a sample after which the watch begins anew (convention), both over the period of the calibration [-]."""


class LiveWatch:
    """Alarms while the robot runs.

    Typical use, in the control loop::

        watch = dynid.monitor.LiveWatch(fit, calibration, per_hour=1.0)
        for alarm in watch.step(time_s, q, dq, torque):
            print(alarm)
    """

    def __init__(self, fit: Identification, calibration: Calibration, *, per_hour: float = 1.0) -> None:
        """Prepare a watch.

        Args:
            fit: The identified model.
            calibration: Calibration of the watch; samples must come at its rate.
            per_hour: Rate of false alarms of the whole arm [1/h].
        """
        self.calibration = calibration
        self.levels = calibration.levels(per_hour)
        self.sight = calibration.sight(per_hour)
        self._observer = MomentumObserver(as_model(fit))
        self._rate = calibration.rate_hz
        self._every = max(1, round(0.5 * WINDOW_S * self._rate))  # rows that are judged together
        # rows that are kept: averages hardly depend on older ones
        self._most = 2 * calibration.whitening.settling + self._every
        self.judged_s = 0.0
        """Total time for which alarms were possible [s], over all restarts."""
        self.restart()

    @property
    def sentence(self) -> str:
        """Joints, rate and smallest pushes of the watch, as one sentence."""
        names = self.calibration.joint_names
        return (
            f"watching {len(names)} joints ({', '.join(names)}) at up to {self._rate:.4g} Hz; "
            f"levels from {self.calibration.seconds:.0f} s of clean motion; {self.sight.sentence}"
        )

    @property
    def is_judging(self) -> bool:
        """Whether alarms are possible: the first samples after a gap only settle the averages."""
        return self._age > self.calibration.whitening.settling

    def restart(self) -> None:
        """Forget the samples so far, as after a gap."""
        n = len(self.calibration.joint_names)
        self._observer.restart()
        self._time: float | None = None  # of the last sample
        self._external = np.zeros(n)  # torque from outside by the observer at the last sample
        self._torque_sum = np.zeros(n)  # integral of the raw torque from outside since the last row
        self._elapsed = 0.0  # time since the last row
        self._rows: list[tuple[float, Floats, Floats, Floats, Floats]] = []  # time, raw torque, dq, torque, expected
        # the offset of this run in each row, learnt while joints move
        self._learnt = Learnt(np.zeros((0, n)), np.zeros((0, n)))
        self._age = 0  # rows since the restart
        self._new = 0  # rows that are not judged yet
        self._cleared: dict[tuple[int, Kind], float] = {}  # last time of excess of each joint and statistic
        self._began = -np.inf  # time of the last alarm
        self._touched = np.full(n, -np.inf)  # time of the last contact of each joint
        self.found: Statistics | None = None
        """The statistics over the last samples."""

    def step(self, time_s: float, q: ArrayLike, dq: ArrayLike, torque: ArrayLike) -> list[Alarm]:
        """Take one sample; returns the alarms that begin with it.

        Args:
            time_s: Its time [s].
            q: (n,) joint positions [rad or m].
            dq: (n,) joint velocities.
            torque: (n,) measured torques [N m or N].

        Raises:
            ArgumentError: There is not one number per joint, or the time is no number; nothing changes.
            DataError: The time goes back a little or stays, or a number is not finite; nothing changes.
        """
        given = (("q", q), ("dq", dq), ("torque", torque))
        q, dq, torque = (as_sample(name, values, len(self._external)) for name, values in given)
        if not isinstance(time_s, int | float | np.number):
            raise ArgumentError(f"time_s is {time_s!r}", remedy="Give the time of the sample in seconds.")
        longest = GAP_PERIODS / self._rate
        if self._time is not None and (is_clock_set(self._time, time_s) or time_s - self._time > longest):
            self.restart()
        if not np.isfinite(time_s) or (self._time is not None and not time_s > self._time):
            remedy = "Leave the sample out, or call restart where the clock was set back."
            raise DataError(f"the time {time_s} s does not follow {self._time} s", remedy=remedy)
        period = 1.0 / self._rate if self._time is None else time_s - self._time
        before = self._external
        is_first = self._time is None
        after = self._observer.step(q, dq, torque, period)
        self._time = float(time_s)
        self._external = after
        if is_first:
            return []
        # the observer's filter is r = keep r_before + (1 - keep) e: its raw torque e follows from r and r_before
        keep = float(np.exp(-GAIN * period))
        self._torque_sum = self._torque_sum + period * (after - keep * before) / (1.0 - keep)
        self._elapsed += period
        if self._elapsed < LEAST_PERIOD / self._rate:  # the robot is quicker than the watch
            return []
        self._age += 1
        self._new += 1
        self.judged_s += self._elapsed if self.is_judging else 0.0
        n = after.size
        raw = self._torque_sum / self._elapsed
        # the balance in the state is the torque less what the model expects without accelerations
        expected = torque - self._observer.state[n : 2 * n]
        self._rows.append((self._time, raw, np.array(dq, float), np.array(torque, float), expected))
        self._torque_sum = np.zeros(n)
        self._elapsed = 0.0
        return self._judge() if self.is_judging and self._new >= self._every else []

    def _judge(self) -> list[Alarm]:
        """Compute the statistics over the last rows, and return the alarms that begin in the new ones."""
        gone = max(0, len(self._rows) - self._most)
        self._rows = self._rows[gone:]
        self._learnt = Learnt(*(part[gone:] for part in self._learnt))
        time, raw, dq, torque, expected = (np.array(part) for part in zip(*self._rows, strict=True))
        spread = np.broadcast_to(self.calibration.typical_spread, raw.shape)
        self.found = self.calibration.statistics(
            WatchedStretch(time, self._rate, raw, dq, torque, spread, spread, expected, expected,
                           find_stale(torque, dq)), self._learnt,
        )  # fmt: skip
        self._learnt = self.found.learnt
        first = max(len(time) - self._new, self.calibration.whitening.settling)
        self._new = 0
        excess = self.found.excess(self.levels)
        return [alarm for k in range(first, len(time)) for alarm in self._alarms_in_row(self.found, k, excess)]

    def _alarms_in_row(self, found: Statistics, row: int, excess: dict[Kind, Floats]) -> list[Alarm]:
        """List the alarm that begins in a row, if there is one; onsets on several joints within `CLEAR_S` are one.

        Args:
            found: The statistics over the last rows.
            row: The row.
            excess: Kind of alarm -> (rows, n) its statistic over its level.
        """
        now = float(found.stretch.time[row])
        onsets = []  # contacts before disturbances, the largest excess first
        for kind, over in excess.items():
            for j in np.flatnonzero(over[row] > 1.0).tolist():
                is_new = now - self._cleared.get((j, kind), -np.inf) > CLEAR_S
                is_same_push = kind == "disturbance" and 0.0 < now - self._touched[j] <= SAME_S
                if is_new and kind == "contact":
                    self._touched[j] = now
                if is_new and not is_same_push:
                    onsets.append((kind != "contact", -float(over[row, j]), j))
                self._cleared[j, kind] = now
        if not onsets or now - self._began <= CLEAR_S:
            return []
        self._began = now
        is_slow, minus_excess, j = min(onsets)
        names = self.calibration.joint_names
        reached = tuple(names[i] for i in sorted({joint for _, _, joint in onsets}))
        torque = float((found.external if is_slow else found.step)[row, j])
        return [Alarm(now, names[j], "disturbance" if is_slow else "contact", torque, -minus_excess, reached)]
