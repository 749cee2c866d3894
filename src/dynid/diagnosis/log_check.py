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

from dynid.array_types import Bools
from dynid.compiled import wrench_regressor
from dynid.decompositions import one_blas_thread
from dynid.diagnosis.commands import check_commands
from dynid.diagnosis.evidence import FEW, Evidence
from dynid.diagnosis.naming import diagnose
from dynid.diagnosis.signals import FEWEST, check_signals
from dynid.diagnosis.verdicts import LEVEL, Fit, Tried, judge_suspects
from dynid.errors import ArgumentError, DataError, IdentifiabilityError
from dynid.findings import Finding, QualityReport
from dynid.logs.joint_order import match_joints
from dynid.logs.recording import Recording, all_finite
from dynid.processing.experiment import Dropped, Experiment
from dynid.processing.outliers import absurd_samples, longest_spike, saturated_samples
from dynid.processing.process import Chain, Processing, process
from dynid.processing.timing import CLOCK_FAULTS, read_clock
from dynid.robot.model import Robot

Progress = Callable[[float, str], None]
DRIFT = 0.02
"""Smallest drift of a force sensor that is reported, as a share of the range of its channel (effect)."""
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
) -> tuple[QualityReport, Chain | None]:
    """Check a recording and process it for identification.

    The check uses default processing, except that torques are moved back by the delay in the options. If the other
    options are the defaults too, the log is processed only once.

    Args:
        recording: The raw log.
        options: How the log will be processed; `dynid.diagnosis.refinement.resolve_delay` replaces an unknown delay.
        robot: The robot that was recorded; without it, only the checks that need no model are made.
        progress: Called with the finished share (0 to 1) and a short description of the current step.

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
    chain, run = None, None
    try:
        if recording.isolated:
            findings.append(_NO_ACCELERATION)
            run = process(recording)
        else:
            usual = replace(Processing(), effort_delay_s=options.effort_delay_s)
            chain = Chain.start(recording, usual, progress=lambda share, note: report(0.3 + 0.3 * share, note))
            run = chain.experiment(filter_effort=False)
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
    if chain is None or chain.requested == options:
        return quality, chain
    # the caller wants other options than the check used; the delay is the same in both
    return quality, Chain.start(recording, replace(options, effort_delay_s=chain.options.effort_delay_s))


_NO_ACCELERATION = Finding(
    "no-acceleration", "warning", "q",
    "rows are isolated samples, so accelerations are unknown and inertia cannot be identified",
    "Gravity and friction parameters can be identified; for inertia record without gaps.")  # fmt: skip


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
    """Compare torques, and a force sensor, with the robot's equations."""
    yield from check_wrench_drift(robot, run)
    if recording.effort is None:
        return
    try:
        found = diagnose(robot, [run], level=LEVEL)
        # without accelerations only gross errors can be told from inertia
        yield from (finding for finding in found if not recording.isolated or finding.severity == "error")
    except (DataError, IdentifiabilityError):
        yield Finding("untestable", "warning", "model",
                      "torques were not compared with the robot's equations: too few samples are left in which "
                      "joints move; wrong units, signs, orders and delays may be there",
                      "Record a longer, wider and faster motion of all joints at once.")  # fmt: skip


def check_wrench_drift(robot: Robot, run: Experiment) -> Iterator[Finding]:
    """Report channels of a force sensor whose zero drifts.

    The regressor (6, 10) of a load's wrench in the last link's frame is linear in the load's ten inertial parameters.
    Turned into any sensor frame, a channel stays a linear combination of its 60 entries. These are the harmless
    columns, so that neither the sensor's pose nor the load need be known; a straight line in time is the suspect.
    """
    rows = np.flatnonzero(np.isfinite(run.wrench).all(axis=1)) if run.wrench is not None else np.zeros(0, dtype=int)
    if run.wrench is None or rows.size < FEWEST:
        return
    rows = rows[:: max(1, rows.size // 3000)]  # about 3000 samples suffice
    motion = [np.ascontiguousarray(x[rows]) for x in (run.q, run.dq, run.ddq)]
    load = wrench_regressor(robot, robot.moving_joints[-1].child, *motion).reshape(rows.size, -1)
    line = np.linspace(-0.5, 0.5, rows.size)[:, None]  # its amount is the drift during the whole log
    blocks = np.arange(rows.size) * 20 // rows.size  # 20 blocks of time, by whose scatter amounts are judged
    columns, same = np.column_stack([load, np.ones(rows.size)]), np.zeros(rows.size, dtype=int)
    for k, name in enumerate(("fx", "fy", "fz", "mx", "my", "mz")):
        channel = run.wrench[rows, k]
        if not np.ptp(channel) > 0.0:
            continue
        span, fit = float(np.ptp(channel)), Fit.of(Evidence.of_rows(columns, channel, same, blocks))
        for found in judge_suspects(fit, [Tried(line)], level=LEVEL / 6.0):  # six channels are tested
            drift = float(found.value[0])
            if abs(drift) < DRIFT * span:
                continue
            yield Finding("drift", "warning", "wrench",
                          f"the zero of the sensor drifts by {drift:.3g} +- {found.half_width[0]:.2g} during "
                          "the log", "Let the sensor warm up and zero it again, or cut the log and estimate a bias for "
                          "each part.", joint=name, evidence={"drift [N or N m]": drift, "range": span})  # fmt: skip


class StreamCheck:
    """The check of a log that is read in pieces: pass it to `process_stream`, then call `report`."""

    def __init__(self, robot: Robot | None = None) -> None:
        """Check against a robot, or without a model."""
        self._robot = robot
        self._beginning: Recording | None = None
        self._counts: Counter[tuple[str, str, str]] = Counter()  # samples by code, channel and joint
        self._rows = self._pieces = 0  # numbers of raw rows and of processed pieces so far
        self._last_s = np.zeros(0)  # last time stamp of the piece before
        self._kept: list[Experiment] = []
        self._every = 1  # of so many processed pieces, one is kept

    def observe_raw(self, piece: Recording, period_s: float, suspect: bool) -> None:
        """Count the faults of the next raw piece.

        Args:
            piece: The raw piece.
            period_s: Sampling period of the log [s].
            suspect: Whether processing found spikes or clipped torques in it; otherwise these are not searched again.
        """
        if self._beginning is None:
            self._beginning = piece.rows(slice(STREAM_ROWS))
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
        first = check_recording(self._beginning)
        # counts in the whole log replace the findings of its beginning; its clock and joints at rest mean little
        findings = [f for f in first.findings if (f.code, f.where, f.joint or "") not in self._counts]
        findings = [f for f in findings if f.where != "time" and f.code not in ("frozen", "rest")]
        findings += [self._finding(*key, count) for key, count in self._counts.items()]
        if self._robot is not None and self._kept and not any(f.code == "unit" for f in findings):
            with suppress(DataError, IdentifiabilityError):  # too little motion, which the identification will report
                findings += diagnose(self._robot, self._kept[:: max(1, len(self._kept) // KEPT)])
        return QualityReport.of(first.source, findings)

    def _observe_clock(self, piece: Recording, period_s: float) -> None:
        """Count faults of the time stamps, from the last stamp of the piece before on."""
        time = np.append(self._last_s, piece.time)
        try:
            faults = dict(read_clock(time, period_s=period_s).faults) if time.size > 1 else {}
        except DataError:
            faults = {"backward-time": int(np.count_nonzero(np.diff(time) <= 0.0))}
        self._last_s = time[-1:]
        for fault, count in faults.items():
            self._counts[fault, "time", ""] += count

    def _count(self, code: str, channel: str, found: Bools, piece: Recording) -> None:
        """Add the samples (N, n) in which a fault was found to the counts of their joints."""
        for joint in np.flatnonzero(found.any(axis=0)).tolist():
            self._counts[code, channel, piece.joint_names[joint]] += int(np.count_nonzero(found[:, joint]))

    def _finding(self, code: str, channel: str, joint: str, count: int) -> Finding:
        """The finding of a counted fault."""
        share = count / max(self._rows, 1)
        return Finding(code, "error" if share > FEW else "note" if code == "stamp-order" else "warning", channel,
                       f"{CLOCK_FAULTS.get(code, code) if channel == 'time' else code}: {count}",
                       "Handled: such samples are dropped or sorted, or the log is cut there.", joint=joint or None,
                       evidence={"count": count, "share": share})  # fmt: skip
