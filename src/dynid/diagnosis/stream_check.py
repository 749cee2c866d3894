"""The check of logs larger than memory, in the one pass that processes them.

The first piece is checked like a whole log, without its equations. Of the others faults are counted, and some pieces
are kept, spread over the log, by which the equations are judged at the end.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import numpy as np

from dynid.arrays import Bools
from dynid.diagnosis.log_check import check_recording
from dynid.diagnosis.naming import diagnose
from dynid.diagnosis.signals import FEW
from dynid.errors import DataError, IdentifiabilityError
from dynid.findings import Finding, QualityReport
from dynid.logs.recording import Recording, all_finite
from dynid.processing.experiment import Experiment
from dynid.processing.outliers import absurd_samples, longest_spike, saturated_samples
from dynid.processing.timing import CLOCK_FAULTS, read_clock
from dynid.robot.model import Robot

FIRST_ROWS = 20_000
"""Rows of the first piece that are checked like a whole log (convention)."""
KEPT = 8
"""Pieces by which the equations are judged (convention): beyond twice as many, every second one is dropped."""


class StreamCheck:
    """The check of a stream: pass it to `process_stream`; when the stream is exhausted, call `report`."""

    def __init__(self, robot: Robot | None = None) -> None:
        """Check against a robot, or without a model."""
        self._robot = robot
        self._beginning: Recording | None = None
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._rows = self._pieces = 0
        self._last_s: float | None = None
        self._kept: list[Experiment] = []
        self._every = 1

    def observe_raw(self, piece: Recording, period_s: float, suspect: bool) -> None:
        """Check the next raw piece; `suspect` means that cleaning found spikes or clipped torques in it."""
        if self._beginning is None:
            self._beginning = piece.rows(slice(FIRST_ROWS))
        self._rows += piece.time.size
        self._observe_clock(piece, period_s)
        for channel in ("q", "dq", "effort"):
            values = getattr(piece, channel)
            if values is None:
                continue
            if not all_finite(values):
                self._count("not-finite", channel, ~np.isfinite(values), piece)
            if suspect:
                spikes = absurd_samples(values, longest_spike(piece.time))
                self._count("spikes", channel, spikes, piece)
                if channel == "effort":
                    self._count("saturated", channel, saturated_samples(np.where(spikes, np.nan, values)), piece)

    def observe_processed(self, experiment: Experiment, cutoff_hz: float | None) -> None:
        """Keep the next processed piece, or one of several."""
        if self._pieces % self._every == 0:
            self._kept.append(experiment)
        self._pieces += 1
        if len(self._kept) > 2 * KEPT:
            self._kept, self._every = self._kept[::2], 2 * self._every

    def report(self) -> QualityReport:
        """All findings of the stream."""
        if self._beginning is None:
            raise DataError("no piece of the log was checked", remedy="Exhaust the stream before you call report.")
        first = check_recording(self._beginning)
        findings = [f for f in first.findings if (f.code, f.where, f.joint or "") not in self._counts]
        findings = [f for f in findings if f.where != "time" and f.code not in ("frozen", "rest")]
        findings += [self._finding(*key, count) for key, count in self._counts.items()]
        if self._robot is not None and self._kept and not any(f.code == "unit" for f in findings):
            with suppress(DataError, IdentifiabilityError):  # no piece has enough motion, which the estimate will say
                findings += diagnose(self._robot, self._kept[:: max(1, len(self._kept) // KEPT)])
        return QualityReport.of(first.source, findings)

    def _observe_clock(self, piece: Recording, period_s: float) -> None:
        try:
            faults = dict(read_clock(piece.time, period_s=period_s).faults) if piece.time.size > 1 else {}
        except DataError:
            faults = {"backward-time": int(np.count_nonzero(np.diff(piece.time) <= 0.0))}
        if self._last_s is not None and not 0.0 < piece.time[0] - self._last_s <= 3.0 * period_s:
            faults["gap"] = faults.get("gap", 0) + 1
        self._last_s = float(piece.time[-1])
        for fault, count in faults.items():
            self._counts[fault, "time", ""] += count

    def _count(self, code: str, channel: str, found: Bools, piece: Recording) -> None:
        for joint in np.flatnonzero(found.any(axis=0)).tolist():
            self._counts[code, channel, piece.joint_names[joint]] += int(np.count_nonzero(found[:, joint]))

    def _finding(self, code: str, channel: str, joint: str, count: int) -> Finding:
        share = count / max(self._rows, 1)
        return Finding(
            code=code,
            severity="error" if share > FEW else "note" if code == "stamp-order" else "warning",
            where=channel,
            joint=joint or None,
            message=f"{CLOCK_FAULTS.get(code, code) if channel == 'time' else code}: {count}",
            evidence={"count": count, "share": share},
            remedy="Handled: such samples are dropped or sorted, or the log is cut there.",
        )
