"""From logs to experiments by a recipe: read, check, split, process.

Logs are files or `Recording` objects. Every log is treated alike, whether the command line or Python asks; only what is
judged differs from what is fitted: see `process_log`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dynid.errors import ArgumentError, DataError, IdentifiabilityError
from dynid.files import file_digest, size_mb
from dynid.findings import Finding, QualityReport
from dynid.gate.model_delay import resolve_delay
from dynid.gate.quality import check_and_process
from dynid.gate.stream_check import StreamCheck
from dynid.links.hold_out import mask_training, split_recording
from dynid.links.recipe import Recipe
from dynid.logs.channel_map import ChannelMap
from dynid.logs.reading import log_digest, read_recording, read_stream
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.processing.process import Chain, Processing, process
from dynid.processing.streaming import process_stream
from dynid.processing.uniform import Cleaning
from dynid.robot.model import Robot

__all__ = [
    "Log",
    "LogReader",
    "Map",
    "Notice",
    "Progress",
    "choose_processing",
    "is_large",
    "log_finding",
    "process_log",
    "check_copies",
    "split_log",
]

Log = str | Path | Recording
"""A log file, the folder of a log, or a recording in memory."""
Map = ChannelMap | Mapping[str, Any] | str | Path
"""A channel map, its file, or the name of a built-in one."""
Progress = Callable[[float, str], None]
"""Called with the finished share (0 to 1) and a short description of the current step."""
Cache = Callable[[Sequence[str], Callable[[], Experiment]], Experiment]
"""Called with everything an experiment depends on and a function that makes it; returns the experiment."""

Check = Callable[[Recording, Processing, Robot], tuple[QualityReport, Chain | None]]
"""A gate, called with a recording, its processing and the robot."""
Notice = Callable[[Finding], None]
"""Called with a finding that a person should see at once."""

LARGE_MB = 2000.0
"""Size of a log from which on it is read piece by piece [MB] (convention: its arrays would take about 10 GB)."""
OVERLAP_S = 5.0
"""Time that is filtered twice at the borders of pieces [s] (convention: longer than the memory of every filter)."""
READ_SHARE, CHECK_SHARE = 0.3, 0.4
"""Shares of reading and of checking in the time that a log takes (convention, for progress bars only)."""


def log_finding(finding: Finding) -> None:
    """Give a finding to Python's logging, as a warning or as information."""
    logger = logging.getLogger("dynid")
    logger.log(logging.INFO if finding.severity == "note" else logging.WARNING, "%s", finding)


def process_log(
    recording: Recording, recipe: Recipe, robot: Robot | None = None, *, judged: bool = False
) -> Experiment:
    """Process a recording as a recipe says.

    Args:
        recording: The log.
        recipe: The recipe.
        robot: The robot, whose equations help to estimate a delay.
        judged: Whether the experiment judges a fit: standstill counts if the recipe says so, and the ends are kept
            when torques are compared in a band, as the comparison trims them itself.
    """
    options = _processing(recipe)
    return _process(recording, _judging(options, recipe) if judged else options, robot)[0]


def split_log(recording: Recording, recipe: Recipe, robot: Robot | None = None) -> tuple[Experiment, Experiment]:
    """Process the training part and the held-out part of a recording; cutoff and delay come from the training part.

    Args:
        recording: The log.
        recipe: A recipe with a hold-out.
        robot: The robot, whose equations help to estimate a delay.

    Raises:
        ArgumentError: The recipe holds nothing out.
    """
    rule = recipe.hold_out_rule
    if rule is None:
        raise ArgumentError("the recipe holds nothing out", remedy='Give it a hold_out, such as "30%".')
    training, held = split_recording(recording, rule)
    removed = max(0.0, _missing_share(training) - _missing_share(recording))
    options = _processing(recipe)
    fitted, chosen = _process(training, options.allowing_missing(removed), robot)
    judged, _ = _process(held, _judging(options.with_choices_of(chosen), recipe), robot)
    return fitted, mask_training(judged, recording, rule)


def choose_processing(recording: Recording, recipe: Recipe, robot: Robot | None = None) -> Processing:
    """Choose the cutoff and the delay of a recording, where the recipe leaves them open."""
    return _process(recording, _processing(recipe).allowing_missing(_missing_share(recording)), robot)[1]


def _processing(recipe: Recipe) -> Processing:
    """The recipe's processing of data that are fitted."""
    return Processing(
        cutoff_hz=recipe.cutoff_hz,
        band_hz=recipe.band_hz,
        dead_band=recipe.dead_band,
        effort_delay_s=recipe.delay_s,
        cleaning=Cleaning(max_gap_s=recipe.max_gap_s),
    )


def _judging(options: Processing, recipe: Recipe) -> Processing:
    """The same processing for data that judge a fit."""
    trim: float | Literal["auto"] = "auto" if recipe.band_hz is None else 0.0
    return replace(options, rest=None if recipe.judge_rest else options.rest, trim_s=trim)


def _process(recording: Recording, options: Processing, robot: Robot | None) -> tuple[Experiment, Processing]:
    """The experiment, and the processing with the chosen cutoff and delay."""
    if recording.isolated:
        return process(recording, options), options
    options, delay = resolve_delay(recording, options, robot)
    chain = Chain.start(recording, options)
    experiment = chain.experiment()
    return (replace(experiment, recipe=(delay, *experiment.recipe)) if delay else experiment), chain.options


def _missing_share(recording: Recording) -> float:
    """Largest share of a joint's torques that are not finite."""
    if recording.effort is None or not recording.effort.size:
        return 0.0
    return float(np.isnan(recording.effort).mean(axis=0).max())


def check_copies(logs: Sequence[Log], others: Sequence[Log] = (), *, why: str = "", remedy: str = "") -> None:
    """Refuse a log that is given twice: a copy adds no knowledge, but would make intervals smaller than they are.

    Args:
        logs: Logs that must differ from each other.
        others: Logs that must differ from the first ones.
        why: What the first logs are for, as the end of the sentence about a log of both kinds.
        remedy: What to do about a log of both kinds.

    Raises:
        ArgumentError: Two logs have the same content.
    """
    seen: dict[str, Log] = {}
    for log in (log for log in logs if not isinstance(log, Recording)):
        digest = log_digest(log)
        if (twin := seen.get(digest)) is not None:
            what = "is given twice" if str(twin) == str(log) else f"has the same content as {twin}"
            raise ArgumentError(f"{log} {what}", remedy="Give each log once: a copy adds no knowledge.")
        seen[digest] = log
    for log in (log for log in others if not isinstance(log, Recording)):
        if (twin := seen.get(log_digest(log))) is not None:
            raise ArgumentError(f"{log} has the same content as {twin}, {why}", remedy=remedy)


@dataclass(frozen=True, kw_only=True)
class LogReader:
    """Reads logs, passes them through the gate and processes them, all by one recipe."""

    robot: Robot
    """The robot with its terms."""
    recipe: Recipe
    channel_map: Map | None = None
    needs_torques: bool = True
    """Whether a log without joint torques is refused."""
    check: Check = check_and_process
    """The gate: checks a recording and processes it on the way."""
    cache: Cache | None = None
    """Where experiments of an interrupted run are kept."""
    progress: Progress | None = None
    notice: Notice = log_finding
    """Called with every warning of the gate."""

    def experiments(self, logs: Sequence[Log], *, judged: bool = False) -> list[Experiment]:
        """Read and process logs.

        Args:
            logs: The logs.
            judged: Whether they judge a fit; see `process_log`.
        """
        steps = _Steps(logs, self.progress)
        return [self._cached(log, str(judged), lambda log=log: self._read(log, steps, judged)) for log in logs]  # type: ignore[misc]

    def split(self, logs: Sequence[Log]) -> tuple[list[Experiment], list[Experiment]]:
        """Read and process logs with a hold-out: the training parts, and the held-out parts."""
        steps, fitted, judged = _Steps(logs, self.progress), [], []
        for log in logs:
            pair: list[Experiment] = []

            def part(number: int, log: Log = log, pair: list[Experiment] = pair) -> Experiment:
                if not pair:
                    pair.extend(self._read_parts(log, steps))
                return pair[number]

            rule = str(self.recipe.hold_out_rule)
            fitted.append(self._cached(log, f"{rule} training", lambda part=part: part(0)))  # type: ignore[misc]
            judged.append(self._cached(log, f"{rule} held out", lambda part=part: part(1)))  # type: ignore[misc]
        return fitted, judged

    def streams(self, logs: Sequence[Log]) -> list[Callable[[], Iterator[Experiment]]]:
        """For every log a function that reads it piece by piece, as often as needed; the gate checks it once."""
        return [_Stream(self, log) for log in logs]

    def _read(self, log: Log, steps: _Steps, judged: bool) -> Experiment:
        """Read, check and process one log."""
        options = _processing(self.recipe)
        options = _judging(options, self.recipe) if judged else options
        with locate_errors(log):
            recording = self._recording(log, steps)
            options, delay = resolve_delay(recording, options, self.robot)
            chain = self._pass(log, recording, options, steps)
            run = process(recording, options) if chain is None else chain.experiment()
        self._refuse_empty(log, run)
        return replace(run, recipe=(delay, *run.recipe)) if delay else run

    def _read_parts(self, log: Log, steps: _Steps) -> tuple[Experiment, Experiment]:
        """Read and check one log, and process its training part and its held-out part."""
        with locate_errors(log):
            recording = self._recording(log, steps)
            options = Processing(effort_delay_s=self.recipe.delay_s)
            self._pass(log, recording, resolve_delay(recording, options, self.robot)[0], steps)
            pair = split_log(recording, self.recipe, self.robot)
        for part in pair:
            self._refuse_empty(log, part)
        return pair

    def _recording(self, log: Log, steps: _Steps) -> Recording:
        """Read a log."""
        recording = log if isinstance(log, Recording) else read_recording(
            log, self.robot, channel_map=self.channel_map,
            progress=lambda share, _: steps.report(log, READ_SHARE * share, "reading"),
        )  # fmt: skip
        if self.needs_torques and recording.effort is None:
            remedy = "Name their columns under [effort] in the channel map, or those of currents under [current]."
            raise DataError("no joint torques are mapped", remedy=remedy)
        steps.report(log, READ_SHARE, "checking" if self.recipe.gate else "processing")
        return recording

    def _pass(self, log: Log, recording: Recording, options: Processing, steps: _Steps) -> Chain | None:
        """Pass a log through the gate, which processes it on the way; None where nothing is processed yet."""
        if not self.recipe.gate:
            return None
        quality, chain = self.check(recording, options, self.robot)
        self.pass_gate(log, quality.findings)
        steps.report(log, READ_SHARE + CHECK_SHARE, "processing")
        return chain

    def pass_gate(self, log: Log, findings: Sequence[Finding]) -> None:
        """Refuse a log with errors among its findings; report its warnings."""
        wrong = [finding for finding in findings if finding.severity == "error"]
        if wrong:
            first, more = wrong[0], f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            where = first.where if first.joint is None else f"{first.where} of {first.joint}"
            remedy = f"{first.remedy} dynid check lists everything; --set gate=false uses the log all the same."
            raise DataError(f"{first.message}{more}", path=_path(log), place=where, remedy=remedy)
        for finding in findings:
            if finding.severity == "warning":
                self.notice(replace(finding, where=f"{_name(log)}: {finding.where}"))

    def _refuse_empty(self, log: Log, run: Experiment) -> None:
        if self.needs_torques and not run.valid.any():
            dropped = ", ".join(f"{count} {reason}" for reason, count in run.dropped.items()) or "no torque is finite"
            remedy = "Record the robot while all joints move; see dynid excite."
            raise IdentifiabilityError(f"no sample can be used ({dropped})", path=_path(log), remedy=remedy)

    def _cached(self, log: Log, purpose: str, make: Callable[[], Experiment]) -> Experiment:
        """An experiment from the cache of an interrupted run, if there is one."""
        if self.cache is None or isinstance(log, Recording):
            return make()
        mapped = self.channel_map
        is_file = isinstance(mapped, str | Path) and Path(mapped).exists()
        digest = file_digest(Path(mapped)) if is_file else str(mapped)  # type: ignore[arg-type]
        settings = [digest, self.recipe.to_toml(), self.robot.fingerprint, purpose]
        return self.cache([file_digest(Path(log)), str(log), *settings], make)


class _Stream:
    """A log that is read piece by piece; the gate checks it during the first pass."""

    def __init__(self, reader: LogReader, log: Log) -> None:
        """The log, read as the reader does."""
        self._reader, self._log, self._is_checked = reader, log, not reader.recipe.gate

    def __call__(self) -> Iterator[Experiment]:
        """Start the stream of processed pieces."""
        reader = self._reader
        check = None if self._is_checked else StreamCheck(reader.robot)
        with locate_errors(self._log):
            pieces = iter([self._log]) if isinstance(self._log, Recording) else read_stream(
                self._log, reader.robot, channel_map=reader.channel_map, progress=reader.progress
            )  # fmt: skip
            yield from process_stream(pieces, _processing(reader.recipe), overlap_s=OVERLAP_S, check=check)
            if check is not None:
                reader.pass_gate(self._log, check.report().findings)
                self._is_checked = True


class _Steps:
    """Progress over several logs, each weighted by its size."""

    def __init__(self, logs: Sequence[Log], progress: Progress | None) -> None:
        """Measure the logs."""
        sizes = [1.0 if isinstance(log, Recording) else max(size_mb(log), 1e-6) for log in logs]
        starts = np.cumsum([0.0, *sizes])
        total = float(starts[-1]) if logs else 1.0
        self._parts = {id(log): (a / total, b / total) for log, a, b in zip(logs, starts, sizes, strict=False)}
        self._progress = progress

    def report(self, log: Log, share: float, step: str) -> None:
        """Report the finished share of one log as a share of all."""
        if self._progress is not None:
            start, part = self._parts[id(log)]
            self._progress(float(start + part * share), f"{step} {_name(log)}")


def is_large(log: Log) -> bool:
    """Whether a log is read piece by piece by default."""
    return not isinstance(log, Recording) and size_mb(log) > LARGE_MB


@contextmanager
def locate_errors(log: Log) -> Iterator[None]:
    """Let errors about data name the log."""
    try:
        yield
    except DataError as error:
        is_folder = not isinstance(log, Recording) and Path(log).is_dir()
        folder = "Give the log itself, or name the run's files under [files] in the map." if is_folder else None
        raise type(error)(
            error.reason, path=error.path or _path(log), place=error.place, remedy=error.remedy or folder
        ) from error


def _path(log: Log) -> str | None:
    return (log.source or None) if isinstance(log, Recording) else str(log)


def _name(log: Log) -> str:
    return Path(_path(log) or "recording").name
