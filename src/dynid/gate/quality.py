"""The gate before identification: check that a log is what its user believes it is.

The gate repairs nothing. Every finding states the fault, its evidence in numbers, and a remedy; the gate proposes
explanations such as a flipped sign, and the user decides on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from dynid.decompositions import one_blas_thread
from dynid.errors import ArgumentError, DataError
from dynid.findings import Finding, QualityReport
from dynid.gate.causes import LIKELY, SURE
from dynid.gate.command_checks import check_commands
from dynid.gate.hypotheses import check_hypotheses
from dynid.gate.measured_samples import filtered_noise, move_back
from dynid.gate.model_checks import (
    check_changes,
    check_compensation,
    check_effort_limits,
    check_excitation,
    check_gravity_and_units,
    check_gravity_direction,
    check_limits,
    check_noise,
    check_torque_sizes,
)
from dynid.gate.model_delay import check_delay, measured_delay
from dynid.gate.quick_fit import Samples
from dynid.gate.signal_checks import (
    check_clock,
    check_lost_rows,
    check_repeated_samples,
    check_signals,
    check_velocities,
)
from dynid.gate.within_log import MeasuredLog, check_geometry, check_within, has_steady_cause
from dynid.gate.wrench_checks import check_drift
from dynid.logs.joint_order import match_joints
from dynid.logs.recording import Recording
from dynid.processing.delay import estimate_delay
from dynid.processing.experiment import Dropped, Experiment
from dynid.processing.process import Chain, Processing, process
from dynid.processing.rest import stands_still
from dynid.robot.model import Robot

Progress = Callable[[float, str], None]
WEIGHTLESS = 0.75
"""Share of the residual that torques without gravity may leave for a geometry not to be wrong, whatever axes and
lengths explain (convention): they take the place of the weight that is missing."""
EXPLAINED = 0.5
"""A delay that leaves less than this share of the residual explains most of it; convention."""


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

    The gate judges a log as processed by default, its torques moved back by the delay that the options give. Where all
    other options are the default ones, the log is processed once for both purposes.

    Args:
        recording: The raw log.
        options: How the log will be processed; see `dynid.gate.model_delay.resolve_delay` for an unknown delay.
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
    clock = [] if recording.isolated else check_clock(recording)  # the time of isolated rows only counts
    findings = [*recording.findings, *clock, *check_signals(recording), *check_velocities(recording)]
    findings.extend(check_commands(recording))
    findings.extend((*check_lost_rows(recording), *check_repeated_samples(recording)))
    if robot is not None:
        findings.extend((*check_limits(robot, recording), *check_effort_limits(robot, recording)))
    if recording.isolated:
        findings.append(_NO_ACCELERATION)
    by_default = replace(Processing(), effort_delay_s=options.effort_delay_s)
    try:
        if recording.isolated:
            chain, motion = None, process(recording)
        else:
            chain = Chain.start(recording, by_default, progress=lambda share, note: report(0.3 + 0.3 * share, note))
            motion = chain.experiment(filter_effort=True)
    except DataError as error:
        if not any(prevents_processing(finding) for finding in findings):
            findings.append(_unusable(error))
        return QualityReport.of(recording.source, findings), None
    findings.extend(_report_rest(recording, motion))
    if chain is not None and recording.effort is not None and options.rest is not None:  # elsewhere standstill counts
        findings.extend(_check_motion(chain, findings))
    if robot is not None:
        findings.extend(check_drift(robot, motion))
    if recording.effort is not None:
        report(0.6, "equations")
        news = list(_check_with_model(robot, chain, motion, findings))
        if any(map(_is_unit_of_all, news)):  # that torques are beyond limits follows from it
            findings = [finding for finding in findings if not _is_torque_unit(finding)]
        findings.extend(news)
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


_UNTESTED = Finding(
    code="untested",
    severity="warning",
    where="model",
    message="torques were not compared with the robot's equations: too few samples are left in which joints move, or "
    "their torques never change; wrong units, signs, orders and delays may be there",
    remedy="Record a longer, wider and faster motion of all joints at once; check the units of the channel map.",
)


def prevents_processing(finding: Finding) -> bool:
    """Whether a finding says why a log cannot be processed: its clock runs back, or a column holds no number."""
    empty = finding.code == "not-finite" and finding.where in ("q", "effort") and finding.evidence["share"] == 1.0
    return finding.severity == "error" and (finding.code in ("backward-time", "unusable") or empty)


def _unusable(error: DataError) -> Finding:
    return Finding(
        code="unusable", severity="error", where="time", message=error.reason, remedy=error.remedy or "See above."
    )


def _report_rest(recording: Recording, experiment: Experiment) -> Iterator[Finding]:
    """Report samples that processing left out because joints stand still."""
    resting = experiment.dropped.get(Dropped.AT_REST, 0)
    if resting:
        seconds = resting / experiment.rate_hz / recording.q.shape[1]
        yield Finding(
            code="rest",
            severity="note",
            where="q",
            message="joints stand still for a long time",
            evidence={"joint samples": resting, "seconds, mean over joints": seconds},
            remedy="These samples are left out, because dry friction is undetermined at rest.",
        )


def _check_motion(chain: Chain, known: list[Finding]) -> Iterator[Finding]:
    """Report a log in which no joint moves: its range is small, and not above its noise."""
    stretches = [stretch.q for stretch in chain.uniform.stretches]
    still = {f.joint for f in known if f.code == "frozen" and f.where == "q"}
    if len(still) == stretches[0].shape[1] and stands_still(stretches, chain.uniform.rate_hz):
        yield Finding(
            code="frozen",
            severity="error",
            where="q",
            message="no joint moves above its noise",
            remedy="Nothing can be identified from this log: record the robot while its joints move; see dynid excite.",
        )


def _check_with_model(
    robot: Robot | None, chain: Chain | None, motion: Experiment, known: list[Finding]
) -> Iterator[Finding]:
    """Check the torques; `motion` has them low-passed, the chain gives them as measured."""
    measured = None if chain is None else chain.experiment(filter_effort=False)
    if robot is None:
        yield from _delay_without_model(measured)
        return
    wrong = [f for f in known if f.code in ("unit", "time-unit")]
    if not all(map(_is_torque_unit, wrong)):
        return  # the equations say nothing useful about a motion in wrong units
    noise = None if measured is None else filtered_noise(measured, motion.smoothing)
    samples = Samples.of(robot, motion, noise=noise)
    if samples is None:
        yield _UNTESTED
        return
    if wrong:  # about torques in wrong units they tell the unit, if all have the same
        yield from filter(_is_unit_of_all, check_gravity_and_units(robot, samples))
        return
    yield from check_samples(robot, samples, measured)


def _is_torque_unit(finding: Finding) -> bool:
    """Whether a finding says that torques are in another unit."""
    return finding.code == "unit" and finding.where == "effort"


def _is_unit_of_all(finding: Finding) -> bool:
    """Whether a finding says that the torques of all joints are in another unit."""
    return _is_torque_unit(finding) and finding.joint is None


def check_samples(robot: Robot, samples: Samples, experiment: Experiment | None) -> Iterator[Finding]:
    """Check samples against the robot's equations; with an experiment, also the delay between torques and motion."""
    yield from check_noise(robot, samples)
    if not samples.trust.any():
        return
    units = list(check_gravity_and_units(robot, samples))
    yield from units
    if all(finding.severity == "note" for finding in units):
        causes = list(_find_causes(robot, samples, experiment))
        told = any(map(_is_shown_unit, causes)) or any(finding.code == "held-load" for finding in units)
        sizes = [] if told else list(check_torque_sizes(robot, samples))
        # a torque that is too small says nothing about gravity
        yield from (f for f in causes if not sizes or f.code not in ("gravity-compensated", "gravity-direction"))
        yield from sizes
    yield from check_excitation(robot, samples)


def _find_causes(robot: Robot, samples: Samples, experiment: Experiment | None) -> Iterator[Finding]:
    """Report delayed torques and other hypotheses that explain the log better."""
    late = [] if experiment is None else list(check_delay(robot, experiment))
    causes: list[Finding] = []
    if not _is_explained(late):
        causes = list(check_hypotheses(robot, samples))
        if not any(cause.severity == "error" or _is_shown_unit(cause, "unit") for cause in causes):
            causes = _find_further_causes(robot, samples, experiment, late, causes)
    yield from _confirm_delays(late, [cause for cause in causes if cause.severity == "error"])
    yield from causes


def _find_further_causes(
    robot: Robot, samples: Samples, experiment: Experiment | None, late: list[Finding], known: list[Finding]
) -> list[Finding]:
    """What explains a log beside known causes that are not sure; only sure ones count after a delay is corrected."""
    delays = [f.evidence["delay [s]"] for f in late if f.code == "unsynchronised" and f.severity == "warning"]
    moved = experiment if experiment is None or not delays else move_back(experiment, float(delays[0]))
    measured = None if moved is None else MeasuredLog.of(robot, moved)
    changes = list(check_changes(robot, samples))
    changes = changes if changes and not has_steady_cause(robot, samples) else []
    other = [] if measured is None or changes else list(check_geometry(robot, measured))
    gains = [cause for cause in known if _is_shown_unit(cause, "wrong-gain")]
    weightless = any(cause.code == "gravity-compensated" and _share_left(cause) < WEIGHTLESS for cause in known)
    if other and not weightless and min(map(_share_left, gains), default=1.0) > other[0].evidence["residual ratio"]:
        return other  # with wrong equations, all other causes are guesses
    if gains:
        return gains
    checks = (check_gravity_direction, check_compensation)
    found = [finding for check in checks for finding in check(robot, samples)]
    found += changes
    if all(finding.severity == "note" for finding in found):
        found += check_within(robot, samples, measured, least=SURE if delays else LIKELY)
    return [*found, *(cause for cause in known if not found or cause.code != "unexplained")]


def _is_shown_unit(finding: Finding, *codes: str) -> bool:
    """Whether a log shows a wrong unit or gain; a note of one that the motion hardly shows excludes no other cause."""
    return finding.code in (codes or ("unit", "wrong-gain")) and finding.severity != "note"


def _share_left(finding: Finding) -> float:
    """Share of the residual of the free fit that a hypothesis leaves."""
    return float(finding.evidence["free residual after"]) / float(finding.evidence["free residual before"])


def _confirm_delays(late: list[Finding], wrong: list[Finding]) -> list[Finding]:
    """Keep the delays that explain more than corrected equations do; wrong equations can look like a delay."""
    if not wrong:
        return late
    left = min((_share_left(f) for f in wrong if "free residual after" in f.evidence), default=1.0)
    return [f for f in late if f.severity != "note" and f.evidence["after"] < left * f.evidence["residual before"]]


def _is_explained(late: list[Finding]) -> bool:
    """Whether a delay alone removes most of the residual."""
    sure = [f.evidence for f in late if f.code == "unsynchronised"]
    return any(evidence["after"] < EXPLAINED * evidence["residual before"] for evidence in sure)


def _delay_without_model(measured: Experiment | None) -> Iterator[Finding]:
    if measured is None:
        return
    try:
        delay = estimate_delay(measured)
    except DataError:
        return
    if not (delay.clear and abs(delay.seconds) > 1.0 / measured.rate_hz and np.isfinite(delay.stderr_s)):
        yield measured_delay(delay)
        return
    yield Finding(
        code="unsynchronised",
        severity="note",
        where="effort",
        message=f"torques seem to be delayed by {1e3 * delay.seconds:.4g} ms; a model is needed to be sure",
        evidence={"delay [s]": delay.seconds, "standard error [s]": delay.stderr_s},
        remedy="Check again with the robot: friction under feedback looks like a delay.",
    )
