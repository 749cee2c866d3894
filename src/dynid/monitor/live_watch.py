"""A watch while the robot runs: one sample after the other, in bounded memory, with the statistics of whole logs.

Only the spread of the model is not computed for every sample: its median over the calibration stands for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_sample
from dynid.errors import ArgumentError, DataError
from dynid.links.identify import Identification
from dynid.monitor.alarm_tails import CLEAR_S
from dynid.monitor.alarms import SAME_S, Alarm
from dynid.monitor.bands import BREAK_AGES, HOLDS_S, STILL, STILL_S, TURNING, Band
from dynid.monitor.calibration import Calibration, Kind
from dynid.monitor.jumps import MOST_UNREST, SLOW_S, UNREST, UNREST_S, WINDOW_S
from dynid.monitor.live_lines import is_clock_set
from dynid.monitor.observer import MomentumObserver, as_model
from dynid.monitor.watched_signals import CATCH_UP, find_stale

WHOLE = 0.75
"""Part of the period of a watch after which its samples are judged together (convention: between a half and one)."""
GAP = 4.0
"""Periods without a sample after which a watch begins anew (convention)."""


class _Rows:
    """The last rows (n,) of a signal, side by side in memory."""

    def __init__(self, most: int, n: int) -> None:
        self._table, self._most, self.count = np.zeros((2 * most, n)), most, 0

    def append(self, row: Floats) -> None:
        """Add a row; the oldest one goes where there are as many as may be."""
        place = self.count % self._most
        self._table[place] = self._table[place + self._most] = row  # so that the last ones never wrap round
        self.count += 1

    def last(self, most: int) -> Floats:
        """(m, n) up to so many of the last rows, the newest one last; no copy."""
        end = (self.count - 1) % self._most + self._most + 1
        return self._table[end - min(most, self.count, self._most) : end]


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
            calibration: What a clean robot does; samples must come at its rate.
            per_hour: Rate of false alarms of the whole arm [1/h].
        """
        self.calibration, self.levels = calibration, calibration.levels(per_hour)
        self.sight = calibration.sight(per_hour)
        self._bands = Band.side_by_side(calibration.band, calibration.news)
        self._observer = MomentumObserver(as_model(fit), gain=calibration.gain)
        self._rate = calibration.whitening.rate_hz
        self._window = max(1, round(WINDOW_S * self._rate))
        self._keep = float(np.exp(-calibration.gain / self._rate))
        self._slow = float(np.exp(-1.0 / (SLOW_S * self._rate)))
        whitening = calibration.whitening
        self._longest = whitening.windows[-1]
        self._shapes = np.zeros((len(whitening.windows), self._longest, len(calibration.joint_names)))
        for place, window in enumerate(whitening.windows):
            for j in range(len(calibration.joint_names)):
                self._shapes[place, self._longest - window :, j] = whitening.shape(j, window)
        self._squared_shapes = np.square(self._shapes)
        self._given = whitening.given
        order = calibration.whitening.order
        self._taps = np.zeros((order + 1, len(calibration.joint_names)))
        for j, model in enumerate(calibration.whitening.noise):
            self._taps[order + 1 - model.taps.size :, j] = model.taps[::-1] / np.sqrt(model.variance)
        self._holds = [1 + max(1, round(hold * self._rate)) for hold in HOLDS_S]
        self._still = max(1, round(STILL_S * self._rate))
        self._calm = float(np.exp(-1.0 / (UNREST_S * self._rate)))
        self.judged_s = 0.0
        """Time for which alarms were possible [s]; restarts do not change it."""
        self.restart()

    @property
    def sentence(self) -> str:
        """What is watched, as one sentence."""
        names = self.calibration.joint_names
        return (
            f"watching {len(names)} joints ({', '.join(names)}) at up to {self._rate:.4g} Hz; "
            f"levels from {self.calibration.seconds:.0f} s of clean motion; {self.sight.sentence}"
        )

    @property
    def is_judging(self) -> bool:
        """Whether alarms are possible: the first samples after a gap tell nothing yet."""
        return self._age > self.calibration.whitening.settling

    def restart(self) -> None:
        """Forget the samples so far, as after a gap."""
        n = len(self.calibration.joint_names)
        self._observer.restart()
        self._time: float | None = None
        self._cleared: dict[tuple[int, Kind], float] = {}
        self._began, self._touched = -np.inf, np.full(n, -np.inf)
        self._external = np.zeros(n)
        self._average: Floats | None = None
        self._averages: deque[Floats] = deque(maxlen=self._window)
        self._recent = _Rows(len(self._taps), n)
        self._news, self._roots = _Rows(self._longest, n), _Rows(self._longest, n)
        self._unrest = np.ones(n)
        self._unrests: deque[Floats] = deque([np.ones(n)] * self._longest, maxlen=self._longest)
        self._speeds = _Rows(max(self._holds), n)
        self._motion = _Rows(3 + max(BREAK_AGES), 3 * n)  # velocities, measured and expected torques
        self._opened = _Rows(self._longest + 1, n)
        self._opened.append(np.zeros(n))
        self._near = np.zeros(n, dtype=np.int64)
        self._stale, self._age = 0, 0
        self._torque_sum, self._elapsed = np.zeros(n), 0.0
        self._moved_s, self._offset, self._late_offset = np.zeros((3, n))
        self.external, self.limit = np.zeros(n), np.full(n, np.inf)
        self.jump, self.level, self.step_size = np.zeros((3, n))
        self.turning = np.zeros(n, dtype=bool)

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
        q, dq, torque = (
            as_sample(name, values, len(self.external)) for name, values in (("q", q), ("dq", dq), ("torque", torque))
        )
        if not isinstance(time_s, int | float | np.number):
            raise ArgumentError(f"time_s is {time_s!r}", remedy="Give the time of the sample in seconds.")
        if self._time is not None and (is_clock_set(self._time, time_s) or time_s - self._time > GAP / self._rate):
            self.restart()
        if not np.isfinite(time_s) or (self._time is not None and not time_s > self._time):
            remedy = "Leave the sample out, or call restart where the clock was set back."
            raise DataError(f"the time {time_s} s does not follow {self._time} s", remedy=remedy)
        period = 1.0 / self._rate if self._time is None else time_s - self._time
        before, begins = self._external, self._time is None
        after = self._observer.step(q, dq, torque, period)
        self._time, self._external = float(time_s), after
        if begins:
            return []
        keep = float(np.exp(-self.calibration.gain * period))
        self._torque_sum = self._torque_sum + period * (after - keep * before) / (1.0 - keep)
        self._elapsed += period
        if self._elapsed < WHOLE / self._rate:  # the robot is quicker than the watch
            return []
        self.judged_s += self._elapsed if self.is_judging else 0.0
        raw, self._torque_sum, self._elapsed = self._torque_sum / self._elapsed, np.zeros(after.size), 0.0
        return self._judge(raw, np.array(dq, dtype=float), np.array(torque, dtype=float))

    def _judge(self, raw: Floats, dq: Floats, torque: Floats) -> list[Alarm]:
        known = self.calibration
        n = raw.size
        turned = self._motion.count > 0 and dq * self._motion.last(1)[0, :n] < 0.0
        self._speeds.append(np.where(turned, 0.0, np.abs(dq)))
        self._motion.append(np.concatenate([dq, torque, torque - self._observer.state[n : 2 * n]]))
        slowest = [self._speeds.last(hold).min(axis=0) for hold in self._holds]
        self._near = np.where(np.abs(dq) < STILL * known.band.high_speed, self._near + 1, 0)
        is_still = self._near >= self._still
        self.turning = slowest[-1] < TURNING * known.band.high_speed
        self._opened.append(np.where(is_still, known.band.most_open, 0.0))
        open_friction = np.where(is_still, known.band.dry_friction, 0.0)
        variance, news = self._variances(slowest)
        variance = known.typical_spread + variance + np.square(open_friction)
        std = np.sqrt(variance + self._learn_offset(raw, variance, np.where(is_still, 0.0, 1.0 / self._rate)))
        self.external, self.limit = self._external - self._late_offset, self.levels.band * known.level_scale * std
        self.level = np.abs(self.external) / (known.level_scale * std)
        self._recent.append(raw - self._before(raw))
        self.jump = np.zeros(raw.size)
        self._age += 1
        if self._recent.count >= len(self._taps):
            self._take_news(np.sqrt(news))
            if self.is_judging:
                self._project()
        return self._alarms()

    def _learn_offset(self, raw: Floats, variance: Floats, period_s: Floats) -> Floats:
        """(n,) variance that is left to the offset; see `dynid.monitor.bands.RunOffsets.learn_along`."""
        offsets = self.calibration.offsets
        std = np.sqrt(variance + offsets.doubt(self._moved_s))
        self._moved_s = self._moved_s + period_s
        self._offset = offsets.learn(self._offset, raw, std, self._moved_s, period_s)
        self._late_offset = self._keep * self._late_offset + (1.0 - self._keep) * self._offset  # as the observer is
        return offsets.doubt(self._moved_s)

    def _variances(self, slowest: Sequence[Floats]) -> Floats:
        """(2, n) variance of the noise now, and of what is new in it."""
        motion = self._last_motion(3 + max(BREAK_AGES))
        if len(motion[0]) < 3 + max(BREAK_AGES):  # the beginning has no differences yet
            known = self.calibration
            return np.array([band.variance(*motion, self._rate)[-1] for band in (known.band, known.news)])
        return self._bands.last_variance(*motion, slowest)

    def _last_motion(self, most: int) -> tuple[Floats, Floats, Floats]:
        """(m, n) velocities, measured and expected torques of up to so many of the last samples."""
        n, rows = len(self._near), self._motion.last(most)
        return rows[:, :n], rows[:, n : 2 * n], rows[:, 2 * n :]

    def _take_news(self, news: Floats) -> None:
        """Add what is new in the last residual; see `dynid.monitor.jumps.take_news`."""
        white = np.einsum("kj,kj->j", self._taps, self._recent.last(len(self._taps)))
        weight = 0.0 if self._is_stale() else 1.0 / np.square(news)
        root = np.sqrt(weight / (1.0 - UNREST + UNREST * self._unrests[0]))
        self._news.append(white * root)
        self._roots.append(root)
        square = np.minimum(np.square(white) * weight, MOST_UNREST) if np.any(weight) else np.ones(white.size)
        self._unrest = self._calm * self._unrest + (1.0 - self._calm) * square
        self._unrests.append(self._unrest)

    def _is_stale(self) -> bool:
        """Whether the last samples were lost; see `dynid.monitor.watched_signals.find_stale`."""
        dq, torque, _ = self._last_motion(3)
        # the first samples of all are not judged: there are always more than three here
        is_lost = bool(find_stale(torque, dq)[2]) if len(torque) == 3 else False
        self._stale = CATCH_UP + 1 if is_lost else max(self._stale - 1, 0)
        return self._stale > 0

    def _before(self, raw: Floats) -> Floats:
        """What the raw torque was on average before the window; see `dynid.monitor.jumps.sudden_part`."""
        self._average = raw.copy() if self._average is None else self._slow * self._average + (1.0 - self._slow) * raw
        if not self._averages:
            self._averages.extend([raw.copy()] * self._window)
        before = self._averages[0]
        self._averages.append(self._average)
        return before

    def _project(self) -> None:
        """The largest projection; see `dynid.monitor.jumps.project_steps`."""
        new, roots = self._news.last(self._longest), self._roots.last(self._longest)
        squares = np.einsum("kj,wkj->wj", np.square(roots), self._squared_shapes)
        sharp = np.sqrt(np.maximum(squares, 1e-300))
        both = np.stack([new, new @ self._given]) * roots
        projected = np.einsum("hkj,wkj->hwj", both, self._shapes) / sharp
        alone = self._opened.last(self._longest + 1).max(axis=0) * sharp
        excused = np.stack([alone, alone @ np.abs(self._given)])
        scale = np.where(self.turning, self.calibration.scale[1], self.calibration.scale[0])
        beyond = (np.abs(projected) - excused).reshape(scale.shape) / scale
        self.jump = np.maximum(beyond.max(axis=0), 0.0)
        age = beyond[: len(sharp)].argmax(axis=0)[None]  # by itself: a push seldom reaches one joint alone
        self.step_size = np.take_along_axis(projected[0] / sharp, age, axis=0)[0]

    def _alarms(self) -> list[Alarm]:
        """The alarm that begins now, if there is one: what begins on several joints within `CLEAR_S` is one push."""
        assert self._time is not None
        if not self.is_judging:
            return []
        onsets = []
        excess: tuple[tuple[Kind, Floats], ...] = (
            ("contact", self.jump / np.where(self.turning, self.levels.turn, self.levels.jump)),
            ("disturbance", self.level / self.levels.band),
        )
        for name, over in excess:
            for j in np.flatnonzero(over > 1.0).tolist():
                is_new = self._time - self._cleared.get((j, name), -np.inf) > CLEAR_S
                is_same = name == "disturbance" and 0.0 < self._time - self._touched[j] <= SAME_S
                if is_new and name == "contact":
                    self._touched[j] = self._time
                if is_new and not is_same:
                    onsets.append((name != "contact", -float(over[j]), j))
                self._cleared[j, name] = self._time
        if not onsets or self._time - self._began <= CLEAR_S:
            return []
        self._began = self._time
        is_slow, size, j = min(onsets)
        names = self.calibration.joint_names
        reached = tuple(names[i] for i in sorted({one[2] for one in onsets}))
        kind: Kind = "disturbance" if is_slow else "contact"
        torque = float(self.external[j] if is_slow else self.step_size[j])
        return [Alarm(self._time, names[j], kind, torque, -size, reached)]
