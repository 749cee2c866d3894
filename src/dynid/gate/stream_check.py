"""The quality gate for logs larger than memory: the checks of `check_recording` in the one pass that processes them.

The first piece is checked like a whole log. For the other pieces, faults are counted and some averaged samples are
kept. The robot's equations are checked at the end on these samples, which are spread over the whole log.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import DataError
from dynid.findings import Finding, QualityReport
from dynid.gate.measured_samples import noise_through
from dynid.gate.quality import check_recording, check_samples
from dynid.gate.quick_fit import Samples
from dynid.gate.signal_checks import MISSING, STILL
from dynid.logs.recording import Recording, all_finite
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Smoothing
from dynid.processing.outliers import absurd_samples, longest_spike, saturated_samples
from dynid.processing.process import process
from dynid.processing.timing import CLOCK_FAULTS, read_clock
from dynid.robot.model import Robot

PICKS = 48
"""Number of samples taken from a piece (convention)."""
MOST_PICKS = 3000
"""Largest number of samples kept; beyond it, every second one is dropped (convention)."""
FIRST_ROWS = 20_000
"""Number of rows of the first piece that are checked like a whole log (convention)."""
THIN = 64
"""Every THIN-th row is used for the range of a joint (convention)."""
SMALLEST_GAP = 3.0
"""Smallest step between two pieces that is a gap, in sampling periods (convention)."""
SHARE_OF_PERIOD = 0.125
"""Half of the time over which samples are averaged, in periods of the cutoff (convention: a quarter period in all)."""
FEWEST_PICKS = 60
"""Smallest number of samples for the robot's equations (convention)."""
_OF_ALL = ("frozen", "low-excitation", "rest", "unexplained", "change", "noise")
"""Codes of findings about the log as a whole, which its beginning cannot give."""


@dataclass(frozen=True, slots=True)
class _Filtering:
    """The filters between torques and samples: the low-pass, if any, and the mean over neighbours."""

    smoothing: Smoothing | None
    cutoff_hz: float | None
    rate_hz: float
    neighbours: int

    def gain(self, frequency_hz: Floats) -> Floats:
        """Gain at each frequency [Hz]."""
        half = np.pi * np.asarray(frequency_hz) / self.rate_hz
        turns, below = np.sin(self.neighbours * half), self.neighbours * np.sin(half)
        mean: Floats = np.divide(turns, below, out=np.ones_like(half), where=below != 0.0)
        return mean if self.smoothing is None else mean * self.smoothing.gain(frequency_hz)


class StreamCheck:
    """The quality gate of a stream: pass it to `process_stream`; when the stream is exhausted, call `report`."""

    def __init__(self, robot: Robot | None = None) -> None:
        """Check against a robot, or without a model."""
        self._robot = robot
        self._first: Future[QualityReport] | None = None
        self._beginning: Recording | None = None
        self._filtering: _Filtering | None = None
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._rows = 0
        self._last_s: float | None = None
        self._low: Floats | None = None
        self._high: Floats | None = None
        self._names: tuple[str, ...] = ()
        self._picked: list[Floats] = []
        self._every = 1
        self._pieces = 0

    def observe_raw(self, piece: Recording, period_s: float, suspect: bool) -> None:
        """Check the next raw piece; `suspect` means that cleaning found spikes or clipped torques in it."""
        if self._first is None:
            beside = ThreadPoolExecutor(
                1, "dynid StreamCheck"
            )  # the check takes about a second, and the stream must not wait for it
            self._beginning = piece.rows(slice(FIRST_ROWS))
            self._first = beside.submit(check_recording, self._beginning, self._robot)
            beside.shutdown(wait=False)
            self._names = piece.joint_names
        self._rows += piece.time.size
        self._clock(piece, period_s)
        longest = longest_spike(piece.time)
        for channel, values in (("q", piece.q), ("dq", piece.dq), ("effort", piece.effort)):
            if values is None:
                continue
            if not all_finite(values):
                self._count("not-finite", channel, ~np.isfinite(values))
            if suspect:
                spikes = absurd_samples(values, longest)
                self._count("spikes", channel, spikes)
                if channel == "effort":
                    self._count("saturated", channel, saturated_samples(np.where(spikes, np.nan, values)))
        thin = piece.q[::THIN]
        low, high = np.nanmin(thin, axis=0), np.nanmax(thin, axis=0)
        self._low = low if self._low is None else np.fmin(low, self._low)
        self._high = high if self._high is None else np.fmax(high, self._high)

    def observe_processed(self, experiment: Experiment, cutoff_hz: float | None) -> None:
        """Take samples of the next processed piece, each the mean over a quarter of the shortest period in it."""
        self._pieces += 1
        if self._pieces % self._every:
            return
        half = 0 if cutoff_hz is None else int(SHARE_OF_PERIOD * experiment.rate_hz / cutoff_hz)
        self._filtering = _Filtering(experiment.smoothing, cutoff_hz, experiment.rate_hz, 2 * half + 1)
        if experiment.samples <= 2 * half:
            return
        middles = np.linspace(half, experiment.samples - 1 - half, PICKS).astype(int)
        rows = middles[:, None] + np.arange(-half, half + 1)
        whole = experiment.segment[rows[:, 0]] == experiment.segment[rows[:, -1]]
        rows = rows[whole & experiment.valid[rows].all(axis=(1, 2))]
        dq = experiment.dq[rows]
        parts = (experiment.q[rows], dq, experiment.ddq[rows], experiment.effort[rows], np.sign(dq))
        self._picked.extend(np.stack([part.mean(axis=1) for part in parts], axis=1))
        if len(self._picked) > MOST_PICKS:
            self._picked, self._every = self._picked[::2], 2 * self._every

    def report(self) -> QualityReport:
        """Return all findings of the stream."""
        if self._first is None:
            raise DataError("no piece of the log was checked", remedy="Exhaust the stream before you call report.")
        first = self._first.result()
        findings = [f for f in first.findings if (f.code, f.where, f.joint or "") not in self._counts]
        findings = [f for f in findings if f.code not in _OF_ALL and f.where != "time"]
        findings += [self._finding(*key, count) for key, count in self._counts.items()]
        findings += self._frozen()
        samples = self._samples()
        if self._robot is not None and samples is not None and not any(f.code == "unit" for f in findings):
            known = {(f.code, f.joint) for f in findings}
            news = check_samples(self._robot, samples, None)
            findings += [f for f in news if (f.code, f.joint) not in known]
        return QualityReport.of(first.source, findings)

    def _clock(self, piece: Recording, period_s: float) -> None:
        faults: dict[str, int] = {}
        try:
            faults |= read_clock(piece.time, period_s=period_s).faults if piece.time.size > 1 else {}
        except DataError:
            faults["backward-time"] = int(np.count_nonzero(np.diff(piece.time) <= 0.0))
        if self._last_s is not None and not 0.0 < piece.time[0] - self._last_s <= SMALLEST_GAP * period_s:
            faults["gap"] = faults.get("gap", 0) + 1
        self._last_s = float(piece.time[-1])
        for fault, count in faults.items():
            self._counts[fault, "time", ""] += count

    def _count(self, code: str, channel: str, found: NDArray[np.bool_]) -> None:
        for joint in np.flatnonzero(found.any(axis=0)).tolist():
            self._counts[code, channel, self._names[joint]] += int(np.count_nonzero(found[:, joint]))

    def _finding(self, code: str, channel: str, joint: str, count: int) -> Finding:
        share = count / max(self._rows, 1)
        return Finding(
            code=code,
            severity="error" if share > MISSING else "note" if code == "stamp-order" else "warning",
            where=channel,
            joint=joint or None,
            message=f"{CLOCK_FAULTS.get(code, code) if channel == 'time' else code}: {count}",
            evidence={"count": count, "share": share},
            remedy="Handled: such samples are dropped or sorted, or the log is cut there; look for "
            "the cause in the logger.",
        )

    def _frozen(self) -> list[Finding]:
        if self._low is None or self._high is None:
            return []
        return [
            Finding(
                code="frozen",
                severity="warning",
                where="q",
                joint=name,
                message="the joint does not move",
                evidence={"range [rad or m]": float(span)},
                remedy="Its own parameters cannot be identified from this log; move it.",
            )
            for name, span in zip(self._names, self._high - self._low, strict=True)
            if span <= STILL
        ]

    def _samples(self) -> Samples | None:
        if len(self._picked) < FEWEST_PICKS or self._robot is None:
            return None
        q, dq, ddq, effort, sign = np.ascontiguousarray(np.stack(self._picked).swapaxes(0, 1))
        used = np.ones(q.shape[1], dtype=bool)
        return Samples(
            q=q, dq=dq, ddq=ddq, effort=effort, sign=sign, used=used, gravity=self._robot.gravity, noise=self._noise()
        )

    def _noise(self) -> Floats:
        """(n,) or (1,) standard deviation of the noise in the samples; zero if the beginning is too short."""
        if self._beginning is None or self._filtering is None:
            return np.zeros(1)
        try:
            measured = process(self._beginning, cutoff_hz=None, rest=None)
        except DataError:
            return np.zeros(1)
        return noise_through(measured, self._filtering.cutoff_hz, self._filtering.gain)
