"""The check of a log before identification: units, signs, order of joints, clock, clipping, delays, and so on.

The check repairs nothing. Every finding states a fault, its amount, and a remedy; the user decides. Three groups of
checks follow one another:

1. signals and commands of the raw recording, without a model (`signals.check_signals`, `commands.check_commands`);
2. what processing (filters, derivatives) had to leave out;
3. the torques of the processed log against the robot's equations (`naming.diagnose`).

`check_recording` is the public function. Identification calls `check_and_process`, which returns the processed log as
well. A log larger than memory is read in pieces: `StreamCheck` is given each piece as it is processed. It checks the
beginning like a whole log, counts faults in all pieces, and checks the equations at the end with a few pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np

from dynid.decompositions import one_blas_thread
from dynid.diagnosis.commands import check_commands
from dynid.diagnosis.evidence import FEW
from dynid.diagnosis.naming import diagnose
from dynid.diagnosis.signals import check_signals
from dynid.errors import ArgumentError, DataError, IdentifiabilityError
from dynid.findings import Finding, QualityReport
from dynid.logs.joint_order import match_joints
from dynid.logs.recording import Recording
from dynid.processing.experiment import Dropped, Experiment
from dynid.processing.outliers import absurd_samples, longest_spike, saturated_samples
from dynid.processing.process import PreparedLog, Processing, process
from dynid.processing.timing import CLOCK_FAULTS, read_clock
from dynid.robot.model import Robot

Progress = Callable[[float, str], None]
STREAM_ROWS, KEPT = 20_000, 8
"""Number of the first rows of a stream that are checked like a whole log, and number of processed pieces that are kept
for the check of the equations (convention)."""


@one_blas_thread()
def check_recording(
    recording: Recording, robot: Robot | None = None, *, progress: Progress | None = None
) -> QualityReport:
    """Check a recording, channel by channel and against the robot's equations.

    Args:
        recording: The raw log.
        robot: The robot that was recorded; without it, only the checks that need no model are made.
        progress: Called with the finished share (0 to 1) and a short description of the current step.

    Example:
        >>> dynid.check_recording(log, robot).ok
        True
    """
    return check_and_process(recording, Processing(), robot, progress=progress)[0]


def check_and_process(
    recording: Recording, options: Processing, robot: Robot | None = None, *, progress: Progress | None = None
) -> tuple[QualityReport, PreparedLog | None]:
    """Check a recording and process it for identification.

    Arguments are those of `check_recording`, and the options by which the log will be processed, with a known delay
    (`dynid.diagnosis.refinement.resolve_delay`). The check itself uses default processing, except that torques are
    moved back by this delay. If the other options are the defaults too, the log is processed only once.

    Returns:
        The findings, and the filtered and differentiated log, from which an `Experiment` is made; None for isolated
        samples (rows that are no motion in time) and for a log that cannot be processed.
    """
    report = progress or (lambda share, note: None)
    report(0.0, "signals")
    recording = match_joints(recording, robot)  # columns in the robot's order
    if robot is not None and robot.dof != recording.q.shape[1]:
        raise ArgumentError(
            f"the recording has {recording.q.shape[1]} joints, robot '{robot.name}' {robot.dof}",
            remedy="Hold the joints that were not recorded (--hold JOINT), or map the missing ones.",
        )
    findings = [*recording.findings, *check_signals(recording, robot), *check_commands(recording)]
    prepared, run = None, None
    try:
        if recording.isolated:
            findings.append(Finding(
                "no-acceleration", "warning", "q",
                "rows are isolated samples, so accelerations are unknown and inertia cannot be identified",
                "Gravity and friction parameters can be identified; for inertia record without gaps.",
            ))  # fmt: skip
            run = process(recording)
        else:
            usual = replace(Processing(), effort_delay_s=options.effort_delay_s)
            prepared = PreparedLog.start(recording, usual, progress=lambda share, note: report(0.3 + 0.3 * share, note))
            run = prepared.experiment(filter_effort=False)
    except DataError as error:
        if not any(map(prevents_processing, findings)):
            findings.append(Finding("unusable", "error", "time", error.reason,
                                    error.remedy or "Record it again."))  # fmt: skip
        return QualityReport.of(recording.source, findings), None
    findings.extend(_report_rest(run))
    report(0.6, "equations")
    # the equations say nothing useful about a motion in wrong units
    if robot is not None and not any(f.code == "unit" and f.where != "effort" for f in findings):
        misfits = list(_check_equations(robot, recording, run))
        if any(finding.code == "unit" and finding.joint is None for finding in misfits):
            # a wrong unit of all torques explains those that were found joint by joint
            findings = [f for f in findings if not (f.code == "unit" and f.where == "effort")]
        findings.extend(misfits)
    report(1.0, "checked")
    quality = QualityReport.of(recording.source, findings)
    if prepared is None or prepared.requested == options:
        return quality, prepared
    # the caller wants other options than the check used; the delay is the same in both
    return quality, PreparedLog.start(recording, replace(options, effort_delay_s=prepared.options.effort_delay_s))


def prevents_processing(finding: Finding) -> bool:
    """Whether a finding is the reason why a log cannot be processed: a clock that runs back, an empty column."""
    empty = finding.code == "not-finite" and finding.where in ("q", "effort") and finding.evidence["share"] == 1.0
    return finding.severity == "error" and (finding.code in ("backward-time", "unusable") or empty)


def _report_rest(run: Experiment) -> Iterator[Finding]:
    """Report samples that processing left out because joints stand still, and a log in which no joint moves."""
    resting, joints = run.dropped.get(Dropped.AT_REST, 0), run.q.shape[1]
    if not run.valid.any() and resting:
        yield Finding("frozen", "error", "q", "no joint moves above its noise",
                      "Nothing can be identified from this log: record the robot while its joints move; see "
                      "dynid excite.")  # fmt: skip
    elif resting:
        yield Finding("rest", "note", "q", "joints stand still for a long time",
                      "These samples are left out: dry friction is undetermined at rest.",
                      evidence={"seconds, mean over joints": resting / run.rate_hz / joints})  # fmt: skip


def _check_equations(robot: Robot, recording: Recording, run: Experiment) -> Iterator[Finding]:
    """Compare the torques with the robot's equations."""
    if recording.effort is None:
        return
    try:
        found = diagnose(robot, [run])
        # without accelerations only gross errors can be told from inertia
        yield from (finding for finding in found if not recording.isolated or finding.severity == "error")
    except (DataError, IdentifiabilityError):
        yield Finding("untestable", "warning", "model",
                      "torques were not compared with the robot's equations: too few samples are left in which "
                      "joints move; wrong units, signs, orders and delays may be there",
                      "Record a longer, wider and faster motion of all joints at once.")  # fmt: skip


class StreamCheck:
    """The check of a log that is read in pieces: pass it to `process_stream`, then call `report`."""

    def __init__(self, robot: Robot | None = None) -> None:
        self._robot = robot
        self._beginning: Recording | None = None
        self._counts: Counter[tuple[str, str, str]] = Counter()  # samples by code, channel and joint
        self._rows = self._pieces = 0  # numbers of raw rows and of processed pieces so far
        self._last_s = np.zeros(0)  # last time stamp of the piece before
        self._kept: list[Experiment] = []
        self._every = 1  # of so many processed pieces, one is kept

    def observe_raw(self, piece: Recording, period_s: float) -> None:
        """Count the faults of the next raw piece of a log with this sampling period [s]."""
        if self._beginning is None:
            self._beginning = piece.rows(slice(STREAM_ROWS))
        self._rows += piece.time.size
        time = np.append(self._last_s, piece.time)  # from the last stamp of the piece before on
        self._last_s = time[-1:]
        try:
            faults = dict(read_clock(time, period_s=period_s).faults)
        except DataError:
            faults = {"backward-time": int(np.count_nonzero(np.diff(time) <= 0.0))}
        self._counts.update({(fault, "time", ""): count for fault, count in faults.items()})
        for channel in ("q", "dq", "effort"):
            values = getattr(piece, channel)
            if values is None:
                continue
            spikes = absurd_samples(values, longest_spike(piece.time))
            found = {"not-finite": ~np.isfinite(values), "spikes": spikes}
            if channel == "effort":
                found["saturated"] = saturated_samples(np.where(spikes, np.nan, values))
            for code, samples in found.items():  # (N, n) whether a sample has the fault
                for joint, count in zip(piece.joint_names, samples.sum(axis=0).tolist(), strict=True):
                    self._counts[code, channel, joint] += count

    def observe_processed(self, experiment: Experiment) -> None:
        """Keep one of every few processed pieces, spread over the log whatever its length."""
        if self._pieces % self._every == 0:
            self._kept.append(experiment)
        self._pieces += 1
        if len(self._kept) > 2 * KEPT:  # keep every other one from now on
            self._kept, self._every = self._kept[::2], 2 * self._every

    def report(self) -> QualityReport:
        """All findings of the stream."""
        if self._beginning is None:
            raise DataError("no piece of the log was checked", remedy="Exhaust the stream before you call report.")
        first, counts = check_recording(self._beginning), +self._counts  # the counts above zero
        # counts in the whole log replace the findings of its beginning; its clock and joints at rest mean little
        findings = [f for f in first.findings if f.where != "time" and f.code not in ("frozen", "rest")]
        findings = [f for f in findings if (f.code, f.where, f.joint or "") not in counts]
        for (code, channel, joint), count in counts.items():
            share = count / self._rows
            findings.append(Finding(
                code, "error" if share > FEW else "note" if code == "stamp-order" else "warning", channel,
                f"{CLOCK_FAULTS.get(code, code) if channel == 'time' else code}: {count}",
                "Handled: such samples are dropped or sorted, or the log is cut there.", joint=joint or None,
                evidence={"count": count, "share": share},
            ))  # fmt: skip
        if self._robot is not None and self._kept and not any(f.code == "unit" for f in findings):
            with suppress(DataError, IdentifiabilityError):  # too little motion, which the identification will report
                findings += diagnose(self._robot, self._kept[:: max(1, len(self._kept) // KEPT)])
        return QualityReport.of(first.source, findings)
