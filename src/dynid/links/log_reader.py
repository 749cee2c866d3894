"""From logs to experiments by a recipe: read, check, split, process.

Logs are files or `Recording` objects. Every log is treated alike, whether the command line or Python asks. `LogReader`
is the way of every log for `identify_logs` and the run folders (identification, validation, load): it reads, checks by
the gate, and processes. `process_log`, `split_log` and `choose_processing` do the processing alone, of a `Recording`
and without the gate. Logs that validate a fit are processed slightly differently from logs that are fitted: see
`process_log`.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dynid.errors import ArgumentError, DataError, IdentifiabilityError
from dynid.files import size_mb
from dynid.findings import Finding, QualityReport
from dynid.gate.causes import NAMED
from dynid.gate.model_delay import check_common_delay, resolve_delay
from dynid.gate.quality import check_and_process, prevents_processing
from dynid.gate.stream_check import StreamCheck
from dynid.gate.within_log import check_together
from dynid.links.common.copies import SeenSamples
from dynid.links.hold_out import HoldOut, mask_training, split_recording
from dynid.links.log_part import cut_recording
from dynid.links.recipe import Recipe
from dynid.logs.channel_map import ChannelMap
from dynid.logs.joint_order import match_joints
from dynid.logs.reading import read_recording, read_stream
from dynid.logs.recording import Recording, torque_remedy
from dynid.processing.experiment import Experiment
from dynid.processing.filters import check_cutoff
from dynid.processing.process import HIGHEST_CUTOFF, Chain, Processing, process, share_cutoff
from dynid.processing.streaming import process_stream
from dynid.processing.uniform import Cleaning
from dynid.robot.model import Robot

Log = str | Path | Recording
"""A log file, the folder of a log, or a recording in memory."""
ChannelMapSource = ChannelMap | Mapping[str, Any] | str | Path
"""A channel map, its file, or the name of a built-in one."""
Progress = Callable[[float, str], None]
"""Called with the finished share (0 to 1) and a short description of the current step."""
Check = Callable[[Recording, Processing, Robot], tuple[QualityReport, Chain | None]]
"""A gate, called with a recording, its processing and the robot.

It returns its findings and a `Chain`: the processing steps of the recording with the choices they made (cutoff, delay),
from which ``chain.experiment()`` makes the experiment; None if it did not process the recording.
"""
Notice = Callable[[Finding], None]
"""Called with a finding that a person should see at once."""
ChooseCutoff = Callable[[Sequence[Chain]], tuple[float, str] | None]
"""Called with the chains of all logs that are fitted; returns one cutoff for all [Hz] and the reason for it, or None
where each log keeps the cutoff that its spectrum suggests. `share_cutoff` by default."""

LARGE_MB = 200.0
"""Size of a log from which on it is read piece by piece [MB], if nothing in the recipe needs it whole (convention: its
arrays would take about 1 to 3 GB)."""
HUGE_MB = 2000.0
"""Size of a log from which on it is read piece by piece [MB], whatever the recipe needs (convention: its arrays would
take about 10 GB)."""
AHEAD = 1
"""Number of pieces that are read and processed in another thread while the last one is reduced (convention: both take
about as long)."""
READ_SHARE, CHECK_SHARE = 0.3, 0.4
"""Shares of reading and of checking in the time that a log takes (convention, for progress bars only)."""


def log_finding(finding: Finding) -> None:
    """Give a finding to Python's logging, as a warning or as information."""
    logger = logging.getLogger("dynid")
    logger.log(logging.INFO if finding.severity == "note" else logging.WARNING, "%s", finding)


def process_log(
    recording: Recording, recipe: Recipe, robot: Robot | None = None, *, for_validation: bool = False
) -> Experiment:
    """Process a recording as a recipe says.

    Args:
        recording: The log.
        recipe: The recipe.
        robot: The robot, whose equations help to estimate a delay.
        for_validation: Whether the experiment validates a fit: standstill counts if the recipe says so, and the ends
            are kept when torques are compared in a band, as the comparison trims them itself.
    """
    options = _processing(recipe)
    return _process(recording, _validation_options(options, recipe) if for_validation else options, robot)[0]


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
    opened = _open_training(recording, recipe, rule, robot)
    return opened.experiment(), opened.held_out(recipe, rule)


def choose_processing(recording: Recording, recipe: Recipe, robot: Robot | None = None) -> Processing:
    """Choose the cutoff and the delay of a recording, where the recipe leaves them open.

    Any share of the torques may be missing: only `process_log` and `split_log` refuse a log for that.
    """
    return _process(recording, _processing(recipe).allowing_missing(_missing_share(recording)), robot)[1]


def _processing(recipe: Recipe) -> Processing:
    """The recipe's processing of logs that are fitted."""
    return Processing(
        cutoff_hz=recipe.cutoff_hz,
        band_hz=recipe.band_hz,
        dead_band=recipe.dead_band,
        effort_delay_s=recipe.delay_s,
        cleaning=Cleaning(max_gap_s=recipe.max_gap_s),
    )


def _validation_options(options: Processing, recipe: Recipe) -> Processing:
    """The same processing for logs that validate a fit."""
    trim: float | Literal["auto"] = "auto" if recipe.band_hz is None else 0.0
    return replace(options, rest=None if recipe.judge_rest else options.rest, trim_s=trim)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _OpenLog:
    """A log that is ready to become an experiment; its cutoff can still be changed where it has a chain."""

    recording: Recording
    """The whole log."""
    part: Recording
    """What is processed: the whole log, or its training part."""
    options: Processing
    chain: Chain | None
    """None for isolated rows, which no filter can treat."""
    delay_note: str
    findings: tuple[Finding, ...] = ()
    """What the gate found in it by itself."""

    def experiment(self) -> Experiment:
        """The processed part, which knows the log again by some of its stretches."""
        run = process(self.part, self.options) if self.chain is None else self.chain.experiment()
        keys = self.part.kept_stretch_keys() if self.part.effort is not None else np.zeros(0)
        return replace(_with_note(run, self.delay_note), stretch_keys=tuple(keys.tolist()))

    def with_cutoff(self, hz: float, reason: str) -> _OpenLog:
        """The same log with another cutoff [Hz]."""
        return self if self.chain is None else replace(self, chain=self.chain.with_cutoff(hz, reason))

    def held_out(self, recipe: Recipe, rule: HoldOut) -> Experiment:
        """The held-out part, processed with the choices of the training part."""
        chosen = self.options if self.chain is None else self.chain.options
        options = _validation_options(_processing(recipe).with_choices_of(chosen), recipe)
        held_out, _ = _process(split_recording(self.recording, rule)[1], options, None)
        return mask_training(held_out, self.recording, rule)


def _open_training(recording: Recording, recipe: Recipe, rule: HoldOut, robot: Robot | None) -> _OpenLog:
    """Open the training part of a log."""
    part, _ = split_recording(recording, rule)
    # split_recording may blank the held-out torques of the training part: they do not count as missing data there
    blanked = max(0.0, _missing_share(part) - _missing_share(recording))
    options, delay_note = resolve_delay(part, _processing(recipe).allowing_missing(blanked), robot)
    chain = None if part.isolated else Chain.start(part, options)
    return _OpenLog(recording=recording, part=part, options=options, chain=chain, delay_note=delay_note)


def _process(recording: Recording, options: Processing, robot: Robot | None) -> tuple[Experiment, Processing]:
    """The experiment, and the processing with the chosen cutoff and delay."""
    if recording.isolated:  # rows are single poses, not a time series: no delay, no filter
        return process(recording, options), options
    options, delay_note = resolve_delay(recording, options, robot)
    chain = Chain.start(recording, options)
    return _with_note(chain.experiment(), delay_note), chain.options


def _rate(recording: Recording) -> float:
    """Sampling rate of a log [Hz]; infinite for a single row, which is refused later."""
    steps = np.diff(recording.time)
    return 1.0 / max(float(np.median(steps)), 1e-300) if steps.size else np.inf


def common_cutoff(runs: Sequence[Experiment]) -> float | None:
    """The cutoff that all experiments were low-passed at [Hz]; None where they have none, or several."""
    found = {None if run.derivation is None else run.derivation.smoothing.cutoff_hz for run in runs}
    return found.pop() if len(found) == 1 else None


def _with_note(experiment: Experiment, delay_note: str) -> Experiment:
    """The experiment with a note about the delay, if there is one, before its other processing steps."""
    steps = experiment.processing_steps
    return replace(experiment, processing_steps=(delay_note, *steps)) if delay_note else experiment


def _missing_share(recording: Recording) -> float:
    """Largest share of a joint's torques that are not finite."""
    if recording.effort is None or not recording.effort.size:
        return 0.0
    return float((~np.isfinite(recording.effort)).mean(axis=0).max())


@dataclass(frozen=True, kw_only=True)
class LogReader:
    """Reads logs, checks them by the gate and processes them, all by one recipe."""

    robot: Robot
    """The robot with its terms."""
    recipe: Recipe
    channel_map: ChannelMapSource | None = None
    needs_torques: bool = True
    """Whether a log without joint torques is refused."""
    check: Check = check_and_process
    """The gate: checks a recording and processes it on the way. Streamed logs are checked by `StreamCheck` instead."""
    progress: Progress | None = None
    notice: Notice = log_finding
    """Called with the gate's warnings about each log that is read, and with notes of `identify_logs`."""
    without_gate: str = "the setting gate=false of the recipe (--set gate=false, or Recipe(gate=False) in Python)"
    """How a person uses a log that the gate refuses."""
    told: set[tuple[str, str]] = field(default_factory=set, repr=False, compare=False)
    """Code and message of warnings that hold for all logs and were reported."""
    seen: SeenSamples = field(default_factory=SeenSamples, repr=False, compare=False)
    """The samples of the logs that were read: no log may hold a part of another."""

    def experiments(
        self, logs: Sequence[Log], *, for_validation: bool = False, cutoff_hz: float | None = None
    ) -> list[Experiment]:
        """Read and process logs, each by itself.

        Args:
            logs: The logs.
            for_validation: Whether they validate a fit; see `process_log`.
            cutoff_hz: The cutoff of the logs that were fitted [Hz], for logs that the recipe gives none; it is lowered
                for a log whose rate is too low. None leaves the choice to the spectrum of each log.
        """
        log_progress = _LogProgress(logs, self.progress)
        hz = cutoff_hz if self.recipe.cutoff_hz == "auto" else None
        return [self._read(log, log_progress, for_validation=for_validation, hz=hz) for log in logs]

    def training_and_proof(
        self, logs: Sequence[Log], held_out: Sequence[Log] = (), choose: ChooseCutoff | None = None
    ) -> tuple[list[Experiment], list[Experiment]]:
        """Read and process logs that are fitted, and what judges the fit: held-out parts of them, or other logs.

        Args:
            logs: The logs; without their held-out parts, where the recipe has a hold-out.
            held_out: Logs for the proof, where the recipe has no hold-out. They get the cutoff of the fitted ones.
            choose: Chooses one cutoff for all logs where the recipe leaves it open; `share_cutoff` by default.
        """
        log_progress, rule = _LogProgress(logs, self.progress), self.recipe.hold_out_rule
        opened = self._open_alike(logs, log_progress, choose)
        runs = [self._fitted(log, one) for log, one in zip(logs, opened, strict=True)]
        if rule is not None:
            return runs, [self._judged(log, one) for log, one in zip(logs, opened, strict=True)]
        return runs, self.experiments(held_out, for_validation=True, cutoff_hz=common_cutoff(runs))

    def _open_alike(
        self, logs: Sequence[Log], log_progress: _LogProgress, choose: ChooseCutoff | None
    ) -> list[_OpenLog]:
        """Read and check all logs, and give them a common cutoff where there is one."""
        opened = [self._open(log, log_progress) for log in logs]
        self._judge_together(logs, opened)
        chains = [one.chain for one in opened if one.chain is not None]
        if self.recipe.cutoff_hz != "auto" or len(chains) < len(logs):
            return opened
        choice = (choose or share_cutoff)(chains)
        return opened if choice is None else [one.with_cutoff(*choice) for one in opened]

    def _judge_together(self, logs: Sequence[Log], opened: Sequence[_OpenLog]) -> None:
        """Report what only all logs together show."""
        if not self.recipe.gate or len(logs) < 2:
            return
        runs = [None if one.chain is None else one.chain.experiment(filter_effort=False) for one in opened]
        periods = [1.0 / _rate(one.part) for one in opened]
        self._warn(None, list(check_common_delay([one.findings for one in opened], periods)))
        for place, finding in check_together(self.robot, runs, [one.findings for one in opened]):
            self._warn(None if place is None else logs[place], [finding])

    def _fitted(self, log: Log, opened: _OpenLog) -> Experiment:
        run = opened.experiment()
        self.refuse_empty(log, bool(run.valid.any()), run.dropped)
        return run

    def _judged(self, log: Log, opened: _OpenLog) -> Experiment:
        rule = self.recipe.hold_out_rule
        assert rule is not None
        run = opened.held_out(self.recipe, rule)
        self.refuse_empty(log, bool(run.valid.any()), run.dropped)
        return run

    def recordings(self, logs: Sequence[Log]) -> list[Recording]:
        """Read logs as they were recorded: the part that the recipe names, with the robot's joints; unchecked."""
        log_progress, recordings = _LogProgress(logs, self.progress), []
        for log in logs:
            with locate_errors(log):
                recordings.append(self._recording(log, log_progress))
        return recordings

    def streams(
        self, logs: Sequence[Log], choose: ChooseCutoff | None = None
    ) -> list[Callable[[], Iterator[Experiment]]]:
        """For every log a function that reads it piece by piece, as often as needed; the gate checks it once.

        Args:
            logs: The logs.
            choose: Chooses one cutoff for all logs from their first pieces, where the recipe leaves it open;
                `share_cutoff` by default.
        """
        log_progress = _LogProgress(logs, self.progress)
        streams = [_Stream(self, log, log_progress) for log in logs]
        if self.recipe.cutoff_hz == "auto" and (choice := (choose or share_cutoff)([s.first_chain() for s in streams])):
            for stream in streams:
                stream.set_cutoff(choice[0])
        return list(streams)

    def cutoff_of_beginnings(self, logs: Sequence[Log], choose: ChooseCutoff | None = None) -> float | None:
        """One cutoff for logs [Hz], chosen from their first pieces."""
        log_progress = _LogProgress(logs, self.progress)
        choice = (choose or share_cutoff)([_Stream(self, log, log_progress).first_chain() for log in logs])
        return None if choice is None else choice[0]

    def _read(self, log: Log, log_progress: _LogProgress, for_validation: bool, hz: float | None = None) -> Experiment:
        """Read, check and process one log; with the cutoff of others [Hz], where it is given and the rate permits."""
        run = self._open(log, log_progress, for_validation=for_validation, hz=hz).experiment()
        self.refuse_empty(log, bool(run.valid.any()), run.dropped)
        return run

    def _open(
        self, log: Log, log_progress: _LogProgress, *, for_validation: bool = False, hz: float | None = None
    ) -> _OpenLog:
        """Read and check one log.

        This does not call `_process`: the gate makes the chain on its way, and without one (gate off, isolated rows)
        it is made here. A step that is added to `_process` belongs here and in `_Stream` too. The options only shape
        the returned chain; findings do not depend on them, except for the delay.
        """
        rule = None if for_validation else self.recipe.hold_out_rule
        with locate_errors(log):
            recording = self._recording(log, log_progress)
            if rule is not None:
                # only the findings are wanted here, not the chain: the gate judges with default processing anyway (see
                # check_and_process), and default options spare it a second chain
                options = Processing(effort_delay_s=self.recipe.delay_s)
                options = resolve_delay(recording, options, self.robot)[0]
                found, _ = self._run_gate(log, recording, options, log_progress)
                training = _open_training(recording, self.recipe, rule, self.robot)
                self.tell_delay(log, training.delay_note)
                return replace(training, findings=found)
            options = _processing(self.recipe)
            options = _validation_options(options, self.recipe) if for_validation else options
            if hz is not None:
                options = replace(options, cutoff_hz=min(hz, HIGHEST_CUTOFF * _rate(recording)))
            options, delay_note = resolve_delay(recording, options, self.robot)
            self.tell_delay(log, delay_note)
            found, chain = self._run_gate(log, recording, options, log_progress)
            if chain is None and not recording.isolated:
                chain = Chain.start(recording, options)
        whole = _OpenLog(recording=recording, part=recording, options=options, chain=chain, delay_note=delay_note)
        return replace(whole, findings=found)

    def _recording(self, log: Log, log_progress: _LogProgress) -> Recording:
        """Read a log."""
        recording = log if isinstance(log, Recording) else read_recording(
            log, self.robot, channel_map=self.channel_map,
            progress=lambda share, _: log_progress.report(log, READ_SHARE * share, "reading"),
        )  # fmt: skip
        recording = match_joints(recording, self.robot)
        recording = cut_recording(recording, rows=self.recipe.rows, time=self.recipe.time)
        self.require_torques(recording)
        self.seen.add(log, recording)
        if isinstance(self.recipe.cutoff_hz, int | float) and not recording.isolated:
            check_cutoff(self.recipe.cutoff_hz, _rate(recording))  # before the gate, which takes long
        log_progress.report(log, READ_SHARE, "checking" if self.recipe.gate else "processing")
        return recording

    def note(self, code: str, message: str) -> None:
        """Report a note about the recipe."""
        self.notice(Finding(code=code, severity="note", where="recipe", message=message))

    def tell_delay(self, log: Log, note: str) -> None:
        """Report what was done about an unknown delay of a log, if it was asked for."""
        if note:
            self.notice(Finding(code="estimated-delay", severity="note", where=f"{_name(log)}: effort", message=note))

    def require_torques(self, recording: Recording) -> None:
        """Refuse a log without joint torques where they are needed."""
        if self.needs_torques and recording.effort is None:
            raise DataError("no joint torques are mapped", remedy=torque_remedy(recording))

    def _run_gate(
        self, log: Log, recording: Recording, options: Processing, log_progress: _LogProgress
    ) -> tuple[tuple[Finding, ...], Chain | None]:
        """Check a log by the gate, which also processes it; no chain if the gate is off or did not process."""
        if not self.recipe.gate:
            self._warn(log, recording.findings)  # what the reader found; nothing is judged
            return (), None
        quality, chain = self.check(recording, options, self.robot)
        self.refuse_or_warn(log, quality.findings)
        log_progress.report(log, READ_SHARE + CHECK_SHARE, "processing")
        return tuple(quality.findings), chain

    def refuse_or_warn(self, log: Log, findings: Sequence[Finding]) -> None:
        """Refuse a log with errors among its findings; report its warnings."""
        wrong = [finding for finding in findings if finding.severity == "error"]
        if wrong:
            first, more = wrong[0], f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            where = first.where if first.joint is None else f"{first.where} of {first.joint}"
            remedy = f"{first.remedy} dynid check lists everything."
            if not any(prevents_processing(finding) for finding in wrong):
                remedy += f" The log is used all the same with {self.without_gate}."
            raise DataError(f"{first.message}{more}", path=_path(log), place=where, remedy=remedy)
        self._warn(log, findings)

    def _warn(self, log: Log | None, findings: Sequence[Finding]) -> None:
        """Report warnings about a log, or all of them, and notes that name a cause; of the channel map only once."""
        for finding in findings:
            is_told = finding.severity == "warning" or (finding.severity == "note" and finding.code in NAMED)
            if not is_told or (finding.code, finding.message) in self.told:
                continue
            if finding.code == "joint-order":
                self.told.add((finding.code, finding.message))
            self.notice(replace(finding, where=f"{'all logs' if log is None else _name(log)}: {finding.where}"))

    def refuse_empty(self, log: Log, has_samples: bool, dropped: Mapping[str, int]) -> None:
        """Refuse a log of which no sample can be used; `dropped` counts those left out, by reason."""
        if self.needs_torques and not has_samples:
            reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items()) or "no torque is finite"
            remedy = "Record the robot while all joints move; see dynid excite."
            raise IdentifiabilityError(f"no sample can be used ({reasons})", path=_path(log), remedy=remedy)


class _Stream:
    """A log that is read piece by piece; the gate checks it during the first pass and objects after the last piece.

    An unknown delay is estimated from the first piece and holds for all, as the cutoff does (`process_stream`).
    """

    def __init__(self, reader: LogReader, log: Log, log_progress: _LogProgress) -> None:
        """The log, read as the reader does."""
        if reader.recipe.rows is not None or reader.recipe.time is not None:
            raise ArgumentError(
                "a log that is read piece by piece is used as a whole",
                remedy="Omit rows and time, or set stream=false.",
            )
        self._reader, self._log, self._log_progress = reader, log, log_progress
        self._is_checked = not reader.recipe.gate
        self._resolved: tuple[Processing, str] | None = None
        self._share_read = 0.0

    def __call__(self) -> Iterator[Experiment]:
        """Start the stream of processed pieces."""
        reader = self._reader
        check = None if self._is_checked else StreamCheck(reader.robot)
        has_samples, dropped = False, Counter[str]()
        with locate_errors(self._log):
            pieces = self._pieces()
            first = next(pieces)
            options, delay_note = self._resolve(first)
            for run in process_stream(itertools.chain([first], pieces), options, check=check, ahead=AHEAD):
                self._log_progress.report(self._log, self._share_read, "reading")
                has_samples = has_samples or bool(run.valid.any())
                dropped.update(run.dropped)
                yield _with_note(run, delay_note)
            if check is not None:
                reader.refuse_or_warn(self._log, check.report().findings)
                self._is_checked = True
        reader.refuse_empty(self._log, has_samples, dropped)

    def first_chain(self) -> Chain:
        """The first piece of the log, with the cutoff that its spectrum suggests."""
        with locate_errors(self._log):
            first = next(self._pieces())
            options, note = self._resolve(first)
            chain = Chain.start(first, options)
            self._resolved = chain.options, note
            return chain

    def set_cutoff(self, hz: float) -> None:
        """Set the cutoff of all pieces [Hz], after `first_chain`."""
        if self._resolved is not None:
            self._resolved = replace(self._resolved[0], cutoff_hz=hz), self._resolved[1]

    def _pieces(self) -> Iterator[Recording]:
        """The pieces of the log as they are read."""
        if isinstance(self._log, Recording):
            return iter([match_joints(self._log, self._reader.robot)])
        return read_stream(
            self._log, self._reader.robot, channel_map=self._reader.channel_map,
            progress=self._note_share,
        )  # fmt: skip

    def _note_share(self, share: float, _: str) -> None:
        """Note what is read, perhaps in another thread than the one to report it in."""
        self._share_read = share

    def _resolve(self, first: Recording) -> tuple[Processing, str]:
        """The processing of all pieces and a note about the delay, from the first piece, which must hold torques."""
        if self._resolved is None:
            self._reader.require_torques(first)
            self._resolved = resolve_delay(first, _processing(self._reader.recipe), self._reader.robot)
            self._reader.tell_delay(self._log, self._resolved[1])
        return self._resolved


class _LogProgress:
    """Progress over several logs, each weighted by its size."""

    def __init__(self, logs: Sequence[Log], progress: Progress | None) -> None:
        """Measure the logs."""
        sizes = [1.0 if isinstance(log, Recording) else max(size_mb(log), 1e-6) for log in logs]
        starts = np.cumsum([0.0, *sizes])
        total = float(starts[-1]) if logs else 1.0
        self._spans = {  # log -> where its part of the progress starts, and its size; starts has one entry more
            id(log): (start / total, size / total) for log, start, size in zip(logs, starts, sizes, strict=False)
        }
        self._progress = progress

    def report(self, log: Log, share: float, step: str) -> None:
        """Report the finished share of one log as a share of all."""
        if self._progress is not None:
            start, size = self._spans[id(log)]
            self._progress(float(start + size * share), f"{step} {_name(log)}")


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
    """Let errors about data name the log."""
    try:
        yield
    except DataError as error:
        is_folder = not isinstance(log, Recording) and Path(log).is_dir()
        folder_remedy = "Give the log itself, or name the run's files under [files] in the map." if is_folder else None
        raise type(error)(
            error.reason, path=error.path or _path(log), place=error.place, remedy=error.remedy or folder_remedy
        ) from error


def _path(log: Log) -> str | None:
    return (log.source or None) if isinstance(log, Recording) else str(log)


def _name(log: Log) -> str:
    return Path(_path(log) or "recording").name


def refuse_in_pieces(wanted: Sequence[str]) -> None:
    """Refuse settings that need whole logs in memory."""
    if wanted:
        raise ArgumentError(
            f"{wanted[0]} needs a whole log in memory, and this one is read piece by piece",
            remedy="Leave it out, or set stream = false where the memory is large enough.",
        )
