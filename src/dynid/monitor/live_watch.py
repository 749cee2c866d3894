"""A watch while the robot runs: one sample after the other, in bounded memory, with the statistics of whole logs.

Only the spread of the model is not computed for every sample: its median over the calibration stands for it.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.links.identify import Identification
from dynid.monitor.alarms import CLEAR_S, Alarm, Kind
from dynid.monitor.calibration import Calibration
from dynid.monitor.jumps import SLOW_S, WINDOW_S
from dynid.monitor.observer import MomentumObserver, as_model
from dynid.monitor.watched_signals import WatchedStretch

__all__ = ["LiveWatch"]

Floats = NDArray[np.float64]
GAP = 4.0
"""Periods without a sample after which a watch begins anew (convention)."""


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
        self._observer = MomentumObserver(as_model(fit), gain=calibration.gain)
        self._rate = calibration.whitening.rate_hz
        self._window = max(1, round(WINDOW_S * self._rate))
        self._keep = float(np.exp(-calibration.gain / self._rate))
        self._slow = float(np.exp(-1.0 / (SLOW_S * self._rate)))
        self._shapes = {
            w: np.array([calibration.whitening.shape(j, w) for j in range(len(calibration.joint_names))])
            for w in calibration.whitening.windows
        }
        order = calibration.whitening.order
        self._taps = np.zeros((order + 1, len(calibration.joint_names)))
        for j, model in enumerate(calibration.whitening.noise):
            self._taps[: model.taps.size, j] = model.taps / np.sqrt(model.variance)
        self._cleared: dict[tuple[int, Kind], float] = {}
        self.restart()

    def restart(self) -> None:
        """Forget the samples so far, as after a gap."""
        n = len(self.calibration.joint_names)
        self._observer.restart()
        self._time: float | None = None
        self._external = np.zeros(n)
        self._average: Floats | None = None
        self._averages: deque[Floats] = deque(maxlen=self._window)
        self._recent: deque[Floats] = deque(maxlen=len(self._taps))
        self._white: deque[Floats] = deque(maxlen=max(self._shapes))
        self._weights: deque[Floats] = deque(maxlen=max(self._shapes))
        self.external, self.limit = np.zeros(n), np.full(n, np.inf)
        self.jump, self.level = np.zeros(n), np.zeros(n)

    def step(self, time_s: float, q: ArrayLike, dq: ArrayLike, torque: ArrayLike) -> list[Alarm]:
        """Take one sample; returns the alarms that begin with it.

        Args:
            time_s: Its time [s].
            q: (n,) joint positions [rad or m].
            dq: (n,) joint velocities.
            torque: (n,) measured torques [N m or N].

        Raises:
            DataError: The time does not grow, or a number is not finite.
        """
        if not np.isfinite(time_s) or (self._time is not None and not time_s > self._time):
            raise DataError(f"the time {time_s} s does not follow {self._time} s", remedy="Leave the sample out.")
        if self._time is not None and time_s - self._time > GAP / self._rate:
            self.restart()
        period = 1.0 / self._rate if self._time is None else time_s - self._time
        before, begins = self._external, self._time is None
        after = self._observer.step(q, dq, torque, period)
        self._time, self._external = float(time_s), after
        if begins:
            return []
        keep = float(np.exp(-self.calibration.gain * period))
        raw = (after - keep * before) / (1.0 - keep)
        return self._judge(raw, np.asarray(dq, dtype=float), np.asarray(torque, dtype=float))

    def _judge(self, raw: Floats, dq: Floats, torque: Floats) -> list[Alarm]:
        assert self._time is not None
        known = self.calibration
        one = WatchedStretch(
            time=np.array([self._time]), rate_hz=self._rate, raw=raw[None], dq=dq[None], torque=torque[None],
            spread=known.typical_spread[None], friction=np.zeros((1, raw.size)),
        )  # fmt: skip
        std, news = np.sqrt(one.spread + known.band.noise(one))[0], known.news.noise(one)[0]
        self.external, self.limit = self._external, self.levels[1] * std
        self.level = np.abs(self.external) / std
        self._recent.append((raw - self._before(raw)) / std)
        self.jump = np.zeros(raw.size)
        if len(self._recent) == len(self._taps):
            white = sum(taps * past for taps, past in zip(self._taps, reversed(self._recent), strict=True))
            self._white.append(white / news)
            self._weights.append(1.0 / news)
            self._project()
        return self._alarms()

    def _before(self, raw: Floats) -> Floats:
        """What the raw torque was on average before the window; see `dynid.monitor.jumps.sudden_part`."""
        self._average = raw.copy() if self._average is None else self._slow * self._average + (1.0 - self._slow) * raw
        if not self._averages:
            self._averages.extend([raw.copy()] * self._window)
        before = self._averages[0]
        self._averages.append(self._average)
        return before

    def _project(self) -> None:
        white, weights = np.array(self._white), np.array(self._weights)
        for window, shapes in self._shapes.items():
            if len(white) >= window:
                projected = np.einsum("wj,jw->j", white[-window:], shapes)
                size = np.einsum("wj,jw->j", weights[-window:], np.square(shapes))
                self.jump = np.maximum(self.jump, np.abs(projected) / np.sqrt(size))

    def _alarms(self) -> list[Alarm]:
        assert self._time is not None
        found = []
        kinds: tuple[tuple[Kind, Floats, float], ...] = (
            ("contact", self.jump, self.levels[0]),
            ("disturbance", self.level, self.levels[1]),
        )
        for kind, statistic, level in kinds:
            for j in np.flatnonzero(statistic > level).tolist():
                last = self._cleared.get((j, kind), -np.inf)
                sudden = self._cleared.get((j, "contact"), -np.inf)
                self._cleared[j, kind] = self._time
                is_same = self._time - last <= CLEAR_S or (kind == "disturbance" and self._time - sudden <= CLEAR_S)
                if not is_same:
                    name, torque = self.calibration.joint_names[j], float(self.external[j])
                    found.append(Alarm(self._time, name, kind, torque, float(statistic[j] / level)))
        return found
