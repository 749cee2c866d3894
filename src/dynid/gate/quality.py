"""The gate before identification: is this log what its user believes it is?

Nothing is repaired here. Every finding says what was seen, how sure it is in numbers, and what to do; explanations
such as a flipped sign are proposed with their evidence and left to the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dynid.errors import ArgumentError, DataError
from dynid.findings import Finding, QualityReport
from dynid.gate.hypotheses import check_hypotheses
from dynid.gate.model_checks import (
    check_changes,
    check_compensation,
    check_delay,
    check_excitation,
    check_gravity_and_units,
    check_gravity_direction,
    check_limits,
    check_noise,
)
from dynid.gate.quick_fit import Samples
from dynid.gate.signal_checks import check_clock, check_signals, check_velocities
from dynid.gate.torque_noise import filtered_noise
from dynid.gate.wrench_checks import check_drift
from dynid.logs.recording import Recording
from dynid.processing.delay import estimate_delay
from dynid.processing.experiment import Experiment
from dynid.processing.process import process
from dynid.robot.model import Robot

__all__ = ["Finding", "QualityReport", "check_recording", "check_samples"]


def check_recording(
    recording: Recording, robot: Robot | None = None, *, progress: Callable[[float, str], None] | None = None
) -> QualityReport:
    """Examine a recording, channel by channel and against the robot's equations.

    Args:
        recording: The raw log.
        robot: The robot that was recorded; without it only checks that need no model are made.
        progress: Told the share that is done, 0 to 1, and what comes next.
    """
    tell = progress or (lambda share, note: None)
    tell(0.0, "signals")
    if robot is not None and robot.dof != recording.q.shape[1]:
        raise ArgumentError(
            f"the recording has {recording.q.shape[1]} joints, robot '{robot.name}' {robot.dof}",
            remedy="Lock the joints that were not recorded, or map the missing ones.",
        )
    findings = [*_salvaged(recording), *check_clock(recording), *check_signals(recording), *check_velocities(recording)]
    if recording.isolated:
        findings.append(_NO_ACCELERATION)
    if robot is not None:
        findings.extend(check_limits(robot, recording))
    try:
        experiment = process(recording, filter_effort=True, progress=lambda share, note: tell(0.3 + 0.3 * share, note))
    except DataError as error:
        if error.reason not in {finding.message for finding in findings}:
            findings.append(_unusable(error))
        return QualityReport.of(recording.source, findings)
    findings.extend(_processed(recording, experiment))
    if robot is not None:
        findings.extend(check_drift(robot, experiment))
    if recording.effort is not None:
        tell(0.6, "equations")
        findings.extend(_against_model(robot, recording, experiment, findings))
    tell(1.0, "checked")
    return QualityReport.of(recording.source, findings)


_NO_ACCELERATION = Finding(
    code="no-acceleration",
    severity="warning",
    where="q",
    message="rows are isolated samples, so accelerations are unknown: inertia not identifiable from these rows",
    remedy="Gravity and friction parameters can be identified; for inertia record without gaps.",
)


def _salvaged(recording: Recording) -> Iterator[Finding]:
    """What the reader had to give up."""
    for note in recording.notes:
        if "salvaged: " in note:
            yield Finding(
                code="salvaged",
                severity="warning",
                where="file",
                message=note.replace("salvaged: ", "").rstrip("."),
                remedy="The rest was read; copy or export the file again if more of it is needed.",
            )


def _unusable(error: DataError) -> Finding:
    return Finding(
        code="unusable", severity="error", where="time", message=error.reason, remedy=error.remedy or "See above."
    )


def _processed(recording: Recording, experiment: Experiment) -> Iterator[Finding]:
    """What processing had to leave out."""
    resting = experiment.dropped.get("at rest", 0)
    if resting:
        seconds = resting / experiment.rate_hz / recording.q.shape[1]
        yield Finding(
            code="rest",
            severity="note",
            where="q",
            message="joints stand still for long",
            evidence={"joint samples": resting, "seconds, mean over joints": seconds},
            remedy="Left out: at rest dry friction is undetermined.",
        )


def _against_model(
    robot: Robot | None, recording: Recording, experiment: Experiment, known: list[Finding]
) -> Iterator[Finding]:
    if robot is None:
        yield from _delay_without_model(recording, experiment)
        return
    if any(f.code in ("unit", "time-unit") for f in known):
        return  # nothing the equations say would be to the point
    measured = None if recording.isolated else _unfiltered(recording, experiment)
    noise = None if measured is None else filtered_noise(measured, experiment.smoothing)
    samples = Samples.of(robot, experiment, noise=noise)
    if samples is not None:
        yield from check_samples(robot, samples, measured)


def _unfiltered(recording: Recording, experiment: Experiment) -> Experiment:
    """The same motion with torques as measured."""
    smoothing = experiment.smoothing
    return process(recording, cutoff_hz=None if smoothing is None else smoothing.cutoff_hz)


def check_samples(robot: Robot, samples: Samples, experiment: Experiment | None) -> Iterator[Finding]:
    """Samples against the robot's equations; with the experiment also the time between torques and motion."""
    yield from check_noise(robot, samples)
    if not samples.trust.any():
        return
    yield from list(check_gravity_and_units(robot, samples)) or _late_or_wrong(robot, samples, experiment)
    yield from check_excitation(robot, samples)


def _late_or_wrong(robot: Robot, samples: Samples, experiment: Experiment | None) -> Iterator[Finding]:
    """Torques out of step with the motion, and what else would explain the log better."""
    late = [] if experiment is None else list(check_delay(robot, experiment))
    causes: list[Finding] = []
    if not _explained(late):
        causes = list(check_hypotheses(robot, samples))
        if all(cause.severity != "error" for cause in causes):
            checks = (check_gravity_direction, check_compensation, check_changes)
            found = [finding for check in checks for finding in check(robot, samples)]
            causes = [*found, *(cause for cause in causes if not found or cause.code != "unexplained")]
    yield from _not_misled(late, [cause for cause in causes if cause.severity == "error"])
    yield from causes


def _not_misled(late: list[Finding], wrong: list[Finding]) -> list[Finding]:
    """The delays that explain more than equations put right do: wrong ones mislead the clock."""
    if not wrong:
        return late
    known = [f.evidence for f in wrong if "free residual after" in f.evidence]
    left = min((float(e["free residual after"]) / float(e["free residual before"]) for e in known), default=1.0)
    return [f for f in late if f.severity != "note" and f.evidence["after"] < left * f.evidence["residual before"]]


def _explained(late: list[Finding]) -> bool:
    """Whether a delay alone removes most of what the equations leave unexplained."""
    return any(f.evidence["after"] < 0.5 * f.evidence["residual before"] for f in late)


def _delay_without_model(recording: Recording, experiment: Experiment) -> Iterator[Finding]:
    if recording.isolated:
        return
    try:
        delay = estimate_delay(_unfiltered(recording, experiment))
    except DataError:
        return
    if delay.clear and abs(delay.seconds) > 1.0 / experiment.rate_hz and np.isfinite(delay.stderr_s):
        yield Finding(
            code="unsynchronised",
            severity="note",
            where="effort",
            message=f"torques seem to be stamped {1e3 * delay.seconds:.4g} ms late; a model is needed to be sure",
            evidence={"delay [s]": delay.seconds, "standard error [s]": delay.stderr_s},
            remedy="Check again with the robot.",
        )
