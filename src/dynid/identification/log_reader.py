"""From logs to experiments by a recipe: read, check, split, process.

Logs are files or `Recording` objects. `identify_logs` and the run folders (identification, validation, load) read every
log by a `LogReader`, from the command line and from Python. A log is read as a whole, or piece by piece; all logs of a
robot are low-passed at one cutoff.

The *gate* is the check of a log before it is used: a log with errors among the findings is refused.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from dynid.diagnosis.log_check import StreamCheck, check_and_process, prevents_processing
from dynid.diagnosis.naming import diagnose
from dynid.diagnosis.refinement import resolve_delay
from dynid.errors import ArgumentError, DataError, IdentifiabilityError
from dynid.findings import Finding, QualityReport
from dynid.identification.given_data import SeenSamples
from dynid.identification.log_part import cut_recording, mask_training, split_recording
from dynid.identification.recipe import Recipe
from dynid.logs.channel_map import ChannelMapSource as ChannelMapSource
from dynid.logs.joint_order import match_joints
from dynid.logs.reading import read_recording, read_stream
from dynid.logs.recording import Recording, torque_remedy
from dynid.processing.cutoff import HIGHEST_CUTOFF
from dynid.processing.experiment import Experiment
from dynid.processing.filters import check_band
from dynid.processing.process import PreparedLog, Processing, process, share_cutoff
from dynid.processing.streaming import process_stream
from dynid.processing.uniform import Cleaning
from dynid.robot.model import Robot
from dynid.safe_files import size_mb

Log = str | Path | Recording
"""A log file, the folder of a log, or a recording in memory."""
Progress = Callable[[float, str], None]
"""Called with the finished share (0 to 1) and a short description of the current step."""
Check = Callable[[Recording, Processing, Robot], tuple[QualityReport, PreparedLog | None]]
"""A gate, called with a recording, its processing and the robot.

It returns its findings and a `PreparedLog`: the processed recording with the choices that were made (cutoff, delay),
from which ``prepared.experiment()`` makes the experiment; None if it did not process the recording.
"""
Notice = Callable[[Finding], None]
"""Called with a finding that a person should see at once."""

LARGE_MB, HUGE_MB = 200.0, 2000.0
"""Sizes of a log above which it is read piece by piece [MB]: above the first if nothing in the recipe needs the whole
log in memory, above the second in any case (convention: the arrays would take 1 to 3 GB, and 10 GB)."""


def log_finding(finding: Finding) -> None:
    """Write a finding to the logger ``dynid``, as a warning or, if it is a note, as information."""
    logger = logging.getLogger("dynid")
    logger.log(logging.INFO if finding.severity == "note" else logging.WARNING, "%s", finding)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _OpenLog:
    """A log that was read, checked and put on one clock, before it is filtered: its cutoff can still be changed."""

    recording: Recording
    """The whole log."""
    part: Recording
    """What is processed: the whole log, or its training part."""
    options: Processing
    """The processing of the part."""
    prepared: PreparedLog | None
    """The processing steps up to the filter; None for isolated rows, which cannot be filtered."""
    delay_note: str
    """What was estimated about a delay of the torques; empty where nothing was."""
    findings: tuple[Finding, ...]
    """The gate's findings about this log alone."""

    def experiment(self) -> Experiment:
        """The processed part; it keeps keys of some stretches of the log, by which copies are recognised later."""
        run = process(self.part, self.options) if self.prepared is None else self.prepared.experiment()
        keys = self.part.kept_stretch_keys() if self.part.effort is not None else np.zeros(0)
        steps = (self.delay_note, *run.processing_steps) if self.delay_note else run.processing_steps
        return replace(run, processing_steps=steps, stretch_keys=tuple(keys.tolist()))


@dataclass(frozen=True, kw_only=True)
class LogReader:
    """Reads logs, checks them by the gate and processes them, all by one recipe."""

    robot: Robot
    """The robot with its terms."""
    recipe: Recipe
    """Its settings of gate, processing and hold-out are used."""
    channel_map: ChannelMapSource | None = None
    """Channel map of log files, or its file."""
    rows: str | None = None
    """Rows of every log that are used, such as "100:5000", counted from 0; None for all."""
    time: str | None = None
    """Time of every log that is used since its start [s], such as "2.5:30"; None for all."""
    needs_torques: bool = True
    """Whether a log without joint torques is refused."""
    check: Check = check_and_process
    """The gate: checks a recording and processes it on the way. Streamed logs are checked by `StreamCheck` instead."""
    progress: Progress | None = None
    """Called as logs are read and checked."""
    notice: Notice = log_finding
    """Called with the gate's warnings about each log that is read, and with notes of `identify_logs`."""
    without_gate: str = "the setting gate=false of the recipe (--set gate=false, or Recipe(gate=False) in Python)"
    """The words of a remedy for a refused log: how a person uses it without the gate."""
    told: set[tuple[str, str]] = field(default_factory=set, repr=False, compare=False)
    """Code and message of the warnings about all logs that were reported already, so that each is reported once."""
    seen: SeenSamples = field(default_factory=SeenSamples, repr=False, compare=False)
    """Keys of the samples of all logs that were read: a log that contains a part of another one is refused."""

    def experiments(
        self, logs: Sequence[Log], *, for_validation: bool = False, cutoff_hz: float | None = None
    ) -> list[Experiment]:
        """Read and process logs independently of each other.

        Args:
            logs: The logs.
            for_validation: Whether they validate a fit: samples at rest count if the recipe has a dead band, and the
                ends are kept when torques are compared in a band, as the comparison trims them itself.
            cutoff_hz: The cutoff of the logs that were fitted [Hz], for logs that the recipe gives none; it is lowered
                for a log whose rate is too low. None leaves the choice to the spectrum of each log.
        """
        hz = cutoff_hz if self.recipe.cutoff_hz == "auto" else None
        return [
            self._require_samples(log, self._open(log, done, for_validation=for_validation, hz=hz).experiment())
            for log, done in _shares(logs)
        ]

    def training_and_proof(
        self, logs: Sequence[Log], held_out: Sequence[Log] = ()
    ) -> tuple[list[Experiment], list[Experiment]]:
        """Read and process the logs of a fit, and held-out parts of them or other logs for its validation.

        Args:
            logs: The logs of the fit.
            held_out: Logs of the validation, where the recipe has no hold-out. They get the cutoff of the fitted ones.

        Returns:
            The experiments of the fit, without parts that are held out, and the experiments of the validation.
        """
        opened = [self._open(log, done) for log, done in _shares(logs)]
        self._judge_together(logs, opened)
        prepared_logs = [one.prepared for one in opened if one.prepared is not None]
        if self.recipe.cutoff_hz == "auto" and len(prepared_logs) == len(logs):
            hz, reason = share_cutoff(prepared_logs)
            opened = [
                replace(one, prepared=prepared.with_cutoff(hz, reason))
                for one, prepared in zip(opened, prepared_logs, strict=True)
            ]
        runs = [self._require_samples(log, one.experiment()) for log, one in zip(logs, opened, strict=True)]
        if self.recipe.hold_out_rule is not None:
            return runs, [
                self._require_samples(log, self._held_out(one)) for log, one in zip(logs, opened, strict=True)
            ]
        return runs, self.experiments(held_out, for_validation=True, cutoff_hz=common_cutoff(runs))

    def recordings(self, logs: Sequence[Log]) -> list[Recording]:
        """Read the chosen rows or time of logs, with columns in the order of the robot's joints; nothing is checked."""
        return [self._recording(log, done) for log, done in _shares(logs)]

    def stream(self, log: Log) -> Iterator[Experiment]:
        """Read and process a log piece by piece, with the delay and the cutoff of the first piece.

        The gate is asked after the last piece.

        Raises:
            DataError: The gate refuses the log.
        """
        with locate_errors(log):
            prepared, note = self._begin(log)
            options = prepared.options
            if self.recipe.cutoff_hz == "auto":
                options = replace(options, cutoff_hz=share_cutoff([prepared])[0])
            check = StreamCheck(self.robot) if self.recipe.gate else None
            has_samples = False
            dropped = Counter[str]()
            shares_read = [0.0]  # a reading thread appends to it; progress is reported from this thread
            pieces = self._pieces(log, lambda share, _: shares_read.append(share))
            for run in process_stream(pieces, options, check=check):
                self._report(shares_read[-1], f"reading {_name(log)}")
                has_samples = has_samples or bool(run.valid.any())
                dropped.update(run.dropped)
                yield replace(run, processing_steps=(note, *run.processing_steps)) if note else run
            if check is not None:
                self.refuse_or_warn(log, check.report().findings)
        self._refuse_empty(log, has_samples, dropped)

    def cutoff_of_beginnings(self, logs: Sequence[Log]) -> float:
        """One cutoff for logs [Hz], chosen from their first pieces."""
        return share_cutoff([self._begin(log)[0] for log in logs])[0]

    def note(self, message: str) -> None:
        """Report a note about how logs are read."""
        self.notice(Finding(code="large-logs", severity="note", where="logs", message=message))

    # --- whole logs ------------------------------------------------------------------------------------------------

    def _options(self, *, for_validation: bool = False) -> Processing:
        """The recipe's processing of logs that are fitted, or that validate a fit."""
        recipe = self.recipe
        options = Processing(
            cutoff_hz=recipe.cutoff_hz,
            band_hz=recipe.band_hz,
            dead_band=recipe.dead_band or 0.0,
            effort_delay_s=recipe.delay_s,
            cleaning=Cleaning(max_gap_s=recipe.max_gap_s),
        )
        if not for_validation:
            return options
        trim: float | Literal["auto"] = "auto" if recipe.band_hz is None else 0.0
        return replace(options, rest=options.rest if recipe.dead_band is None else None, trim_s=trim)

    def _recording(self, log: Log, done: float = 0.0) -> Recording:
        """Read the chosen rows of a log, with columns in the order of the robot's joints.

        Args:
            log: The log.
            done: Share of all logs that is done before this one, for the progress.
        """
        self._report(done, f"reading {_name(log)}")
        with locate_errors(log):
            recording = log if isinstance(log, Recording) else read_recording(
                log, self.robot, channel_map=self.channel_map
            )  # fmt: skip
            recording = match_joints(recording, self.robot)
            recording = cut_recording(recording, rows=self.rows, time=self.time)
            self._require_torques(recording)
            self.seen.add(log, recording)
            if isinstance(self.recipe.cutoff_hz, int | float) and not recording.isolated:
                check_band("cutoff_hz", self.recipe.cutoff_hz, _rate(recording))  # refused early: the gate takes long
        return recording

    def _open(self, log: Log, done: float, *, for_validation: bool = False, hz: float | None = None) -> _OpenLog:
        """Read and check one log; of a log that the recipe splits, the training part is prepared for processing.

        Args:
            log: The log.
            done: Share of all logs that is done before this one, for the progress.
            for_validation: As for `experiments`.
            hz: Cutoff [Hz], lowered where the log's rate is too low; that of the recipe by default.
        """
        recording = self._recording(log, done)
        rule = None if for_validation else self.recipe.hold_out_rule
        self._report(done, f"{'checking' if self.recipe.gate else 'processing'} {_name(log)}")
        with locate_errors(log):
            part = recording
            options = self._options(for_validation=for_validation)
            if hz is not None:
                options = replace(options, cutoff_hz=min(hz, HIGHEST_CUTOFF * _rate(recording)))
            if rule is not None:
                part, _ = split_recording(recording, rule)
                # the split replaces held-out torques of the training part by NaN, which are not missing data
                blanked = max(0.0, _missing_share(part) - _missing_share(recording))
                most = min(1.0, blanked + options.cleaning.most_missing)
                options = replace(options, cleaning=replace(options.cleaning, most_missing=most))
            options, note = resolve_delay(part, options, self.robot)
            if note:
                where = f"{_name(log)}: effort"
                self.notice(Finding(code="estimated-delay", severity="note", where=where, message=note))
            # The gate checks the whole log, also where a part is held out. Then its processing is not that of the
            # training part, which is processed again below, and the default processing is enough for the check.
            gate_options = options if rule is None else Processing(effort_delay_s=options.effort_delay_s)
            findings = tuple[Finding, ...]()
            prepared = None
            if self.recipe.gate:
                quality, prepared = self.check(recording, gate_options, self.robot)
                findings = tuple(quality.findings)
                self.refuse_or_warn(log, findings)
            else:
                self._warn(log, recording.findings)  # the file reader's findings alone
            if (prepared is None or rule is not None) and not part.isolated:
                prepared = PreparedLog.start(part, options)
        return _OpenLog(
            recording=recording, part=part, options=options, prepared=prepared, delay_note=note, findings=findings
        )

    def _held_out(self, opened: _OpenLog) -> Experiment:
        """The held-out part of a log, processed with the choices of the training part."""
        rule = self.recipe.hold_out_rule
        assert rule is not None
        training = opened.options if opened.prepared is None else opened.prepared.options
        options = self._options(for_validation=True)
        options = replace(options, cutoff_hz=training.cutoff_hz, effort_delay_s=training.effort_delay_s)
        run = process(split_recording(opened.recording, rule)[1], options)
        return mask_training(run, opened.recording, rule)

    # --- pieces ----------------------------------------------------------------------------------------------------

    def _pieces(self, log: Log, progress: Progress | None = None) -> Iterator[Recording]:
        """The raw pieces of a log; a recording in memory is one piece."""
        if isinstance(log, Recording):
            return iter([match_joints(log, self.robot)])
        return read_stream(log, self.robot, channel_map=self.channel_map, progress=progress)

    def _begin(self, log: Log) -> tuple[PreparedLog, str]:
        """Prepare the first piece of a log, which decides cutoff and delay; with a note about the delay, or ''."""
        with locate_errors(log):
            first = next(self._pieces(log))
            self._require_torques(first)
            options, note = resolve_delay(first, self._options(), self.robot)
            if note:
                where = f"{_name(log)}: effort"
                self.notice(Finding(code="estimated-delay", severity="note", where=where, message=note))
            return PreparedLog.start(first, options), note

    # --- progress, warnings and refusals ---------------------------------------------------------------------------

    def _report(self, share: float, step: str) -> None:
        if self.progress is not None:
            self.progress(share, step)

    def _judge_together(self, logs: Sequence[Log], opened: Sequence[_OpenLog]) -> None:
        """Warn of what only all logs together show; findings about single logs were reported already."""
        if not self.recipe.gate or len(logs) < 2:
            return
        runs = [one.prepared.experiment(filter_effort=False) for one in opened if one.prepared is not None]
        reported = {(finding.code, finding.joint) for one in opened for finding in one.findings}
        if len(runs) == len(logs) and all(run.valid.any() for run in runs):
            found = diagnose(self.robot, runs)
            self._warn(None, [finding for finding in found if (finding.code, finding.joint) not in reported])

    def refuse_or_warn(self, log: Log, findings: Sequence[Finding]) -> None:
        """Refuse a log with errors among its findings; report its warnings."""
        errors = [finding for finding in findings if finding.severity == "error"]
        if errors:
            first = errors[0]
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            where = first.where if first.joint is None else f"{first.where} of {first.joint}"
            remedy = f"{first.remedy} dynid check lists everything."
            if not any(prevents_processing(finding) for finding in errors):
                remedy += f" The log is used all the same with {self.without_gate}."
            raise DataError(f"{first.message}{more}", path=_path(log), place=where, remedy=remedy)
        self._warn(log, findings)

    def _warn(self, log: Log | None, findings: Sequence[Finding]) -> None:
        """Report warnings about a log, or about all logs (None); a warning of the channel map is reported once."""
        for finding in findings:
            if finding.severity != "warning" or (finding.code, finding.message) in self.told:
                continue
            if finding.code == "joint-order":
                self.told.add((finding.code, finding.message))
            self.notice(replace(finding, where=f"{'all logs' if log is None else _name(log)}: {finding.where}"))

    def _require_torques(self, recording: Recording) -> None:
        """Refuse a log without joint torques where they are needed."""
        if self.needs_torques and recording.effort is None:
            raise DataError("no joint torques are mapped", remedy=torque_remedy(recording))

    def _require_samples(self, log: Log, run: Experiment) -> Experiment:
        """The experiment of a log, which is refused where no sample can be used."""
        self._refuse_empty(log, bool(run.valid.any()), run.dropped)
        return run

    def _refuse_empty(self, log: Log, has_samples: bool, dropped: Mapping[str, int]) -> None:
        """Refuse a log of which no sample can be used; `dropped` counts those left out, by reason."""
        if self.needs_torques and not has_samples:
            reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items()) or "no torque is finite"
            remedy = "Record the robot while all joints move; see dynid excite."
            raise IdentifiabilityError(f"no sample can be used ({reasons})", path=_path(log), remedy=remedy)


def common_cutoff(runs: Sequence[Experiment]) -> float | None:
    """The cutoff that all experiments were low-passed at [Hz]; None where they have none, or several."""
    found = {None if run.derivation is None else run.derivation.smoothing.cutoff_hz for run in runs}
    return found.pop() if len(found) == 1 else None


def _shares(logs: Sequence[Log]) -> Iterator[tuple[Log, float]]:
    """Each log with the share of all logs that is done before it, from 0 to below 1."""
    return ((log, number / len(logs)) for number, log in enumerate(logs))


def _rate(recording: Recording) -> float:
    """Sampling rate of a log [Hz]; infinite for a single row, which is refused later."""
    steps = np.diff(recording.time)
    return 1.0 / max(float(np.nanmedian(steps)), 1e-300) if steps.size else np.inf


def _missing_share(recording: Recording) -> float:
    """Largest share of a joint's torques that are not finite."""
    if recording.effort is None or not recording.effort.size:
        return 0.0
    return float((~np.isfinite(recording.effort)).mean(axis=0).max())


def read_in_pieces(logs: Sequence[Log], *, needed_whole: bool) -> bool:
    """Whether logs are read piece by piece by default.

    Args:
        logs: The logs.
        needed_whole: Whether something was asked for that needs whole logs in memory.
    """
    limit = HUGE_MB if needed_whole else LARGE_MB
    return any(not isinstance(log, Recording) and size_mb(log) > limit for log in logs)


@contextmanager
def locate_errors(log: Log) -> Iterator[None]:
    """Add the path of the log to errors about its data, and a remedy where a folder was given."""
    try:
        yield
    except DataError as error:
        is_folder = not isinstance(log, Recording) and Path(log).is_dir()
        folder_remedy = "Give the log itself, or name the run's files under [files] in the map." if is_folder else None
        raise type(error)(
            error.reason, path=error.path or _path(log), place=error.place, remedy=error.remedy or folder_remedy
        ) from error


def _path(log: Log) -> str | None:
    """The path of a log; None for a recording that was made in memory."""
    return (log.source or None) if isinstance(log, Recording) else str(log)


def _name(log: Log) -> str:
    """The file name of a log, for messages."""
    return Path(_path(log) or "recording").name


def refuse_in_pieces(blockers: Sequence[str]) -> None:
    """Refuse settings, given by their names, that need whole logs in memory; nothing happens where there are none."""
    if blockers:
        raise ArgumentError(
            f"{blockers[0]} needs a whole log in memory, and this one is read piece by piece",
            remedy="Leave it out, or choose the engine memory where the memory is large enough.",
        )
