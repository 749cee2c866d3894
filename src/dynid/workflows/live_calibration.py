"""Calibrate a watch: from logs as the robot recorded them, or from the stream itself; `calibrate_live` does it.

A live watch, and one of finished logs that have velocities, reads the velocities and torques that the robot sends.
Those of a processed experiment are low-pass filtered forwards and backwards and have less noise: levels of alarms that
hold for them do not hold live.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.diagnosis.signals import FEWEST
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
from dynid.workflows.validation_run import SavedRun, is_run, saved_cutoff
from dynid.workflows.watch_checks import check_log

SMOOTH = Finding(
    code="watch-calibration",
    severity="warning",
    where="calibration",
    message="the samples of the calibration hold no velocities beside the torques: the stated rate of false alarms "
    "holds only for a stream as smooth as a processed log, and a robot's own velocities are noisier",
    remedy="Calibrate from the stream itself, while nothing touches the robot: --learn 60.",
)
"""Warning where velocities of the logs are missing and derivatives of smoothed positions take their place."""


def calibrate_live(
    folder: Path,
    fit: Identification,
    clean: Sequence[Log] = (),
    channel_map: ChannelMapSource | None = None,
    notice: Notice = log_finding,
    *,
    smooth: bool = False,
) -> Calibration:
    """Calibrate a watch from clean logs, or from those of the result, with the velocities and torques in the logs.

    Args:
        folder: A folder that ``dynid identify`` wrote.
        fit: Its identification.
        clean: Logs in which nothing touched the robot; by default those of the folder, parts of which are left out in
            turn.
        channel_map: Channel map of the clean logs; those of the folder are read with that of the run.
        notice: Called with `SMOOTH` where logs have no velocities.
        smooth: Whether processed logs are watched, because the watched logs have no velocities.
    """
    reader, logs = (open_reader(folder, fit, channel_map), clean) if clean else _open_training(folder, fit)
    seen = None if smooth else recorded_runs(reader, logs)
    if seen is None and not smooth:
        notice(SMOOTH)
    if not clean:
        known = calibrate(fit, training=reader.training_and_proof(logs)[0], seen=seen)
    else:
        cutoff = saved_cutoff(read_result(folder))
        known = calibrate(fit, seen or reader.experiments(logs, for_validation=True, cutoff_hz=cutoff))
    return replace(known, is_smooth=seen is None)


def open_reader(folder: Path, fit: Identification, channel_map: ChannelMapSource | None, **options: Any) -> LogReader:
    """Make the reader of logs for a watch: gaps and delays as in those of the result; a robot at rest counts, too.

    Args:
        folder: Folder of the result.
        fit: Its identification.
        channel_map: Channel map of the logs.
        **options: Further fields of `LogReader`.
    """
    file = folder / "recipe.toml"
    past = Recipe.read(file) if file.exists() else Recipe()
    recipe = Recipe(gate=False, dead_band=0.0, friction="plain", max_gap_s=past.max_gap_s, delay_s=past.delay_s)
    return LogReader(robot=fit.robot, recipe=recipe, channel_map=channel_map, **options)


def _open_training(folder: Path, fit: Identification) -> tuple[LogReader, list[str]]:
    """Make the reader that reads the logs of a run folder as they were fitted, and list these logs.

    Raises:
        ArgumentError: The folder does not say which logs it was made from, or they or their map are gone or changed.
    """
    remedy = "Give clean logs for the calibration (clean=, --clean)."
    past = SavedRun.read(folder) if is_run(folder) else None
    if past is None or not (logs := past.options.get("logs")):
        raise ArgumentError("the result does not say where its logs are", path=folder, remedy=remedy)
    recipe = replace(past.recipe, gate=False)
    cutoff = saved_cutoff(past.saved)
    try:
        return past.reader(fit.robot, recipe if cutoff is None else replace(recipe, cutoff_hz=cutoff), logs), logs
    except DataError as error:
        raise ArgumentError(error.reason, path=error.path, remedy=remedy) from error


def recorded_runs(reader: LogReader, logs: Sequence[Log]) -> list[Experiment] | None:
    """Read logs with their own velocities and torques, unfiltered; None where a log lacks one of them."""
    found = [_as_recorded(recording) for recording in reader.recordings(logs)]
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
    recording = _live_recording(fit, samples)
    steps = np.diff(recording.time)
    steps = np.where(np.abs(steps) > SET_CLOCK_S, SET_CLOCK_S, steps)  # a gap where the clock was set
    run = _as_recorded(replace(recording, time=np.concatenate([[0.0], np.cumsum(steps)])))
    if run is None:
        raise DataError(f"{len(samples)} samples are too few to calibrate from", remedy="Learn from some seconds more.")
    return calibrate(fit, [run])


def check_samples(fit: Identification, samples: Sequence[Sample], cutoff_hz: float | None) -> list[Finding]:
    """Look for faults of a stream in its first samples, as `dynid.workflows.watch_checks.check_log` does in logs."""
    with suppress(DynidError):  # the clock was set, or the robot stands
        return list(check_log(fit, process(_live_recording(fit, samples), cutoff_hz=cutoff_hz or "auto")))
    return []


def _live_recording(fit: Identification, samples: Sequence[Sample]) -> Recording:
    """Make a recording of samples of a stream."""
    time, q, dq, torque = (np.array([sample[k] for sample in samples]) for k in range(4))
    return Recording(time=time, q=q, dq=dq, effort=torque, joint_names=fit.robot.joint_names, source="live")


def _as_recorded(recording: Recording) -> Experiment | None:
    """Make an experiment of a recording without any filter, as a live watch would have read it.

    Returns:
        The experiment; None where velocities or torques are missing or have a clock of their own, or samples are few.
    """
    if recording.dq is None or recording.effort is None or recording.effort_time is not None or recording.isolated:
        return None
    grows = np.concatenate([[True], recording.time[1:] > np.maximum.accumulate(recording.time)[:-1]])
    signals = (recording.time, recording.q, recording.dq, recording.effort)
    kept = np.isfinite(np.column_stack(signals)).all(axis=1) & grows
    if np.count_nonzero(kept) < FEWEST:
        return None
    time, q, dq, torque = (signal[kept] for signal in signals)
    steps = np.diff(time)
    period = float(np.median(steps))
    gaps = np.concatenate([[0], np.cumsum(np.abs(steps - period) > 0.5 * period)])
    return Experiment(
        time=time, q=q, dq=dq, ddq=np.zeros_like(q), effort=torque, valid=np.ones(q.shape, dtype=bool),
        segment=gaps.astype(np.int64), rate_hz=1.0 / period, joint_names=recording.joint_names,
        source=recording.source,
    )  # fmt: skip
