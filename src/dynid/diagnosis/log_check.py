"""The check before identification: is a log what its user believes it is?

It repairs nothing. Every finding states the fault, its amount with its interval, and a remedy; the user decides.

Logs larger than memory are checked in the one pass that processes them: the first piece like a whole log, without its
equations. Of the others faults are counted, and some pieces are kept, spread over the log, by which the equations are
judged at the end.
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
"""Drift of a force sensor over the range of its channel that is told (effect)."""
STREAM_ROWS, KEPT = 20_000, 8
"""Rows of a stream that are checked like a whole log, and pieces by which its equations are judged (convention)."""


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

    The log is judged as processed by default, its torques moved back by the delay that the options give. Where all
    other options are the default ones, the log is processed once for both purposes.

    Args:
        recording: The raw log.
        options: How the log will be processed; `dynid.diagnosis.refinement.resolve_delay` replaces an unknown delay.
        robot: The robot that was recorded; without it, only the checks that need no model are made.
        progress: Called with the finished share (0 to 1) and a short description of the current step.

    Returns:
        The findings, and the processed log; None for isolated rows and for a log that cannot be processed.
    """
    report = progress or (lambda share, note: None)
    report(0.0, "signals")
    recording = match_joints(recording, robot)
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
            findings.append(Finding(code="unusable", severity="error", where="time", message=error.reason,
                                    remedy=error.remedy or "Record it again."))  # fmt: skip
        return QualityReport.of(recording.source, findings), None
    findings.extend(_report_rest(run))
    report(0.6, "equations")
    # the equations say nothing useful about a motion in wrong units
    if robot is not None and not any(f.code == "unit" and f.where != "effort" for f in findings):
        told = list(_check_equations(robot, recording, run))
        if any(finding.code == "unit" and finding.joint is None for finding in told):  # it explains that of each joint
            findings = [f for f in findings if not (f.code == "unit" and f.where == "effort")]
        findings.extend(told)
    report(1.0, "checked")
    quality = QualityReport.of(recording.source, findings)
    if chain is None or chain.requested == options:
        return quality, chain
    return quality, Chain.start(recording, replace(options, effort_delay_s=chain.options.effort_delay_s))


_NO_ACCELERATION = Finding(
    code="no-acceleration",
    severity="warning",
    where="q",
    message="rows are isolated samples, so accelerations are unknown and inertia cannot be identified",
    remedy="Gravity and friction parameters can be identified; for inertia record without gaps.",
)


def prevents_processing(finding: Finding) -> bool:
    """Whether a finding says why a log cannot be processed: its clock runs back, or a column holds no number."""
    empty = finding.code == "not-finite" and finding.where in ("q", "effort") and finding.evidence["share"] == 1.0
    return finding.severity == "error" and (finding.code in ("backward-time", "unusable") or empty)


def _report_rest(run: Experiment) -> Iterator[Finding]:
    """Report samples that processing left out because joints stand still, and a log in which none moves."""
    resting, joints = run.dropped.get(Dropped.AT_REST, 0), run.q.shape[1]
    if not run.valid.any() and resting:
        yield Finding(code="frozen", severity="error", where="q", message="no joint moves above its noise",
                      remedy="Nothing can be identified from this log: record the robot while its joints move; see "
                      "dynid excite.")  # fmt: skip
    elif resting:
        yield Finding(code="rest", severity="note", where="q", message="joints stand still for a long time",
                      evidence={"seconds, mean over joints": resting / run.rate_hz / joints},
                      remedy="These samples are left out: dry friction is undetermined at rest.")  # fmt: skip


def _check_equations(robot: Robot, recording: Recording, run: Experiment) -> Iterator[Finding]:
    """What the equations of the robot say of the torques, and of a force sensor."""
    yield from check_wrench_drift(robot, run)
    if recording.effort is None:
        return
    try:
        found = diagnose(robot, [run], level=LEVEL)
        # without accelerations only gross errors can be told from inertia
        yield from (finding for finding in found if not recording.isolated or finding.severity == "error")
    except (DataError, IdentifiabilityError):
        yield Finding(code="untestable", severity="warning", where="model",
                      message="torques were not compared with the robot's equations: too few samples are left in which "
                      "joints move; wrong units, signs, orders and delays may be there",
                      remedy="Record a longer, wider and faster motion of all joints at once.")  # fmt: skip


def check_wrench_drift(robot: Robot, run: Experiment) -> Iterator[Finding]:
    """Report channels of a force sensor whose zero drifts.

    Whatever the sensor's pose, a channel is a linear combination of the sixty entries of the wrench regressor of the
    last link, so that neither the sensor nor the load need be known.
    """
    rows = np.flatnonzero(np.isfinite(run.wrench).all(axis=1)) if run.wrench is not None else np.zeros(0, dtype=int)
    if run.wrench is None or rows.size < FEWEST:
        return
    rows = rows[:: max(1, rows.size // 3000)]
    motion = [np.ascontiguousarray(x[rows]) for x in (run.q, run.dq, run.ddq)]
    load = wrench_regressor(robot, robot.moving_joints[-1].child, *motion).reshape(rows.size, -1)
    line = np.linspace(-0.5, 0.5, rows.size)[:, None]
    blocks = np.arange(rows.size) * 20 // rows.size
    columns, same = np.column_stack([load, np.ones(rows.size)]), np.zeros(rows.size, dtype=int)
    for k, name in enumerate(("fx", "fy", "fz", "mx", "my", "mz")):
        channel = run.wrench[rows, k]
        if not np.ptp(channel) > 0.0:
            continue
        span, fit = float(np.ptp(channel)), Fit.of(Evidence.of_rows(columns, channel, same, blocks))
        for found in judge_suspects(fit, [Tried(line)], level=LEVEL / 6.0):
            drift = float(found.value[0])
            if abs(drift) < DRIFT * span:
                continue
            yield Finding(code="drift", severity="warning", where="wrench", joint=name,
                          message=f"the zero of the sensor drifts by {drift:.3g} +- {found.half_width[0]:.2g} during "
                          "the log", evidence={"drift [N or N m]": drift, "range": span},
                          remedy="Let the sensor warm up and zero it again, or cut the log and estimate a bias for "
                          "each part.")  # fmt: skip


class StreamCheck:
    """The check of a stream: pass it to `process_stream`; when the stream is exhausted, call `report`."""

    def __init__(self, robot: Robot | None = None) -> None:
        """Check against a robot, or without a model."""
        self._robot = robot
        self._beginning: Recording | None = None
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._rows = self._pieces = 0
        self._last_s = np.zeros(0)
        self._kept: list[Experiment] = []
        self._every = 1

    def observe_raw(self, piece: Recording, period_s: float, suspect: bool) -> None:
        """Check the next raw piece; `suspect` means that cleaning found spikes or clipped torques in it."""
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
        time = np.append(self._last_s, piece.time)
        try:
            faults = dict(read_clock(time, period_s=period_s).faults) if time.size > 1 else {}
        except DataError:
            faults = {"backward-time": int(np.count_nonzero(np.diff(time) <= 0.0))}
        self._last_s = time[-1:]
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
