"""Calibrate a live watch: from logs as the robot recorded them, or from the stream itself.

A live watch sees the robot's own velocities and torques. Those of an experiment are smoothed there and back and hence
calmer: levels that hold for them do not hold live.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dynid.arrays import Floats
from dynid.errors import DataError
from dynid.export.result_file import read_result
from dynid.findings import Finding
from dynid.links.identify import Identification
from dynid.links.log_reader import Log, LogReader, Notice, log_finding
from dynid.links.recipe import Recipe
from dynid.logs.channel_map import ChannelMapSource
from dynid.logs.recording import Recording
from dynid.monitor.calibration import Calibration, calibrate
from dynid.monitor.live_lines import SET_CLOCK_S, Sample
from dynid.processing.experiment import Experiment
from dynid.runs.validation_run import common_cutoff
from dynid.runs.watch_run import open_training

FEWEST_SAMPLES = 100
"""Fewest samples of a stream that calibrate a watch (convention; their length is judged, too)."""


def calibrate_live(
    folder: Path,
    fit: Identification,
    clean: Sequence[Log] = (),
    channel_map: ChannelMapSource | None = None,
    notice: Notice = log_finding,
) -> Calibration:
    """Calibrate a live watch from clean logs, or from those of the result, with the velocities and torques they hold.

    Args:
        folder: A folder that ``dynid identify`` wrote.
        fit: Its identification.
        clean: Logs in which nothing touched the robot; by default those of the folder, parts of which are left out in
            turn.
        channel_map: Channel map of the clean logs; those of the folder are read with that of the run.
        notice: Called with a warning where samples of logs hold no velocities, so that smoothed motion stands for them.
    """
    if clean:
        recipe = replace(Recipe(), gate=False, judge_rest=True, friction="plain")
        reader, logs = LogReader(robot=fit.robot, recipe=recipe, channel_map=channel_map), list(clean)
    else:
        reader, paths = open_training(folder, fit)
        logs = list(paths)
    seen = [_as_seen(recording) for recording in reader.recordings(logs)]
    as_recorded = [run for run in seen if run is not None]
    if len(as_recorded) < len(seen):
        notice(_warn_smooth())
    if not clean:
        training = reader.training_and_proof(logs)[0]
        return calibrate(fit, training=training, seen=as_recorded if len(as_recorded) == len(seen) else None)
    if len(as_recorded) == len(seen):
        return calibrate(fit, as_recorded)
    cutoff = common_cutoff(read_result(folder).content["data"])
    return calibrate(fit, reader.experiments(logs, for_validation=True, cutoff_hz=cutoff))


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


def _warn_smooth() -> Finding:
    return Finding(
        code="watch-smooth",
        severity="warning",
        where="calibration",
        message="the samples of the calibration hold no velocities beside the torques: the stated rate of false alarms "
        "holds only for a stream as smooth as a processed log, and a robot's own velocities are noisier",
        remedy="Calibrate from the stream itself, while nothing touches the robot: --learn 60.",
    )
