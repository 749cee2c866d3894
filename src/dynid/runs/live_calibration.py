"""Calibrate a watch: from logs as the robot recorded them, or from the stream itself.

A watch sees the robot's own velocities and torques. Those of an experiment are smoothed there and back and hence
calmer: levels that hold for them do not hold live.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ArgumentError, DataError, DynidError
from dynid.export.result_file import read_result
from dynid.findings import Finding
from dynid.identification.identify import Identification
from dynid.identification.log_reader import Log, LogReader, Notice, log_finding
from dynid.identification.recipe import Recipe
from dynid.logs.channel_map import ChannelMapSource
from dynid.logs.recording import Recording
from dynid.monitor.calibration import Calibration, calibrate
from dynid.monitor.live_lines import SET_CLOCK_S, Sample
from dynid.processing.experiment import Experiment
from dynid.processing.process import process
from dynid.runs.validation_run import PastRun, common_cutoff, is_run
from dynid.runs.watch_checks import check_log

FEWEST_SAMPLES = 100
"""Fewest samples of a stream that calibrate a watch (convention; their length is judged, too)."""
SMOOTH = Finding(
    code="watch-calibration",
    severity="warning",
    where="calibration",
    message="the samples of the calibration hold no velocities beside the torques: the stated rate of false alarms "
    "holds only for a stream as smooth as a processed log, and a robot's own velocities are noisier",
    remedy="Calibrate from the stream itself, while nothing touches the robot: --learn 60.",
)
"""What is told where smoothed motion stands for velocities."""


def calibrate_live(
    folder: Path,
    fit: Identification,
    clean: Sequence[Log] = (),
    channel_map: ChannelMapSource | None = None,
    notice: Notice = log_finding,
    *,
    smooth: bool = False,
) -> Calibration:
    """Calibrate a watch from clean logs, or from those of the result, with the velocities and torques they hold.

    Args:
        folder: A folder that ``dynid identify`` wrote.
        fit: Its identification.
        clean: Logs in which nothing touched the robot; by default those of the folder, parts of which are left out in
            turn.
        channel_map: Channel map of the clean logs; those of the folder are read with that of the run.
        notice: Called with a warning where samples of logs hold no velocities, so that smoothed motion stands for them.
        smooth: Whether smoothed motion is watched, because the watched logs hold no velocities.
    """
    if clean:
        recipe = replace(Recipe(), gate=False, dead_band=0.0, friction="plain")
        reader, logs = LogReader(robot=fit.robot, recipe=recipe, channel_map=channel_map), list(clean)
    else:
        reader, paths = open_training(folder, fit)
        logs = list(paths)
    seen = None if smooth else recorded_runs(reader, logs)
    if seen is None and not smooth:
        notice(SMOOTH)
    if not clean:
        training = reader.training_and_proof(logs)[0]
        known = calibrate(fit, training=training, seen=seen)
    elif seen is not None:
        known = calibrate(fit, seen)
    else:
        cutoff = common_cutoff(read_result(folder))
        known = calibrate(fit, reader.experiments(logs, for_validation=True, cutoff_hz=cutoff))
    return replace(known, is_smooth=seen is None)


def recorded_runs(reader: LogReader, logs: Sequence[Log]) -> list[Experiment] | None:
    """Logs with the velocities and torques that they hold; None where one of them does not hold both in its samples."""
    found = [_as_seen(recording) for recording in reader.recordings(logs)]
    runs = [run for run in found if run is not None]
    return runs if len(runs) == len(found) else None


def calibrate_samples(fit: Identification, samples: Sequence[Sample]) -> Calibration:
    """Calibrate a live watch from samples of the stream itself, in which nothing touches the robot.

    Args:
        fit: The identified model.
        samples: At least some seconds of them, in the order of time.

    Raises:
        DataError: They are too few.
    """
    if len(samples) < FEWEST_SAMPLES:
        raise DataError(f"{len(samples)} samples are too few to calibrate from", remedy="Learn from some seconds more.")
    steps = np.diff([sample.time_s for sample in samples])
    steps = np.where(np.abs(steps) > SET_CLOCK_S, SET_CLOCK_S, steps)  # where the clock was set, there is a gap
    time = np.concatenate([[0.0], np.cumsum(steps)])
    q, dq, torque = (np.array([getattr(sample, name) for sample in samples]) for name in ("q", "dq", "torque"))
    return calibrate(fit, [_unsmoothed(time, q, dq, torque, fit.robot.joint_names, "live")])


def check_samples(fit: Identification, samples: Sequence[Sample], cutoff_hz: float | None) -> list[Finding]:
    """Look for faults of a stream in its first samples, as `dynid.runs.watch_checks.check_log` does in logs."""
    time, q, dq, torque = (np.array(part) for part in zip(*samples, strict=True))
    names = fit.robot.joint_names
    with suppress(DynidError):  # the clock was set, or the robot stands
        seen = Recording(time=time, q=q, dq=dq, effort=torque, joint_names=names, source="live")
        return list(check_log(fit, process(seen, cutoff_hz=cutoff_hz or "auto")))
    return []


def _as_seen(recording: Recording) -> Experiment | None:
    """A log as a live watch would have seen it; None where its samples do not hold all that a live one does."""
    if recording.dq is None or recording.effort is None or recording.effort_time is not None or recording.isolated:
        return None
    later = np.concatenate([[True], recording.time[1:] > np.maximum.accumulate(recording.time)[:-1]])
    signals = (recording.time, recording.q, recording.dq, recording.effort)
    kept = np.isfinite(np.column_stack(signals)).all(axis=1) & later
    if np.count_nonzero(kept) < FEWEST_SAMPLES:
        return None
    time, q, dq, torque = (signal[kept] for signal in signals)
    return _unsmoothed(time, q, dq, torque, recording.joint_names, recording.source)


def _unsmoothed(
    time: Floats, q: Floats, dq: Floats, torque: Floats, joint_names: tuple[str, ...], source: str
) -> Experiment:
    """Samples as an experiment, as they are."""
    steps = np.diff(time)
    period = float(np.median(steps))
    gaps = np.concatenate([[0], np.cumsum(np.abs(steps - period) > 0.5 * period)])
    return Experiment(
        time=time, q=q, dq=dq, ddq=np.zeros_like(q), effort=torque, valid=np.ones(q.shape, dtype=bool),
        segment=gaps.astype(np.int64), rate_hz=1.0 / period, joint_names=joint_names, source=source,
    )  # fmt: skip


def open_training(folder: Path, fit: Identification) -> tuple[LogReader, list[str]]:
    """The logs of a run folder, and what reads them as they were fitted; parts are left out in turn.

    Raises:
        ArgumentError: The folder does not say which logs it was made from, or they or their map are gone or changed.
    """
    remedy = "Give clean logs for the calibration (clean=, --clean)."
    if not is_run(folder):
        raise ArgumentError("the result does not say where its logs are", path=folder, remedy=remedy)
    past = PastRun.read(folder)
    logs, recipe = past.options.get("logs") or [], replace(past.recipe, gate=False)
    if not logs:
        raise ArgumentError("the logs of the result are not there", path=folder, remedy=remedy)
    cutoff = common_cutoff(past.saved)
    try:
        return past.reader(fit.robot, recipe if cutoff is None else replace(recipe, cutoff_hz=cutoff), logs), logs
    except DataError as error:
        raise ArgumentError(error.reason, path=error.path, remedy=remedy) from error
