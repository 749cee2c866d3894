"""Identify a robot from logs and judge the result on held-out data: what ``dynid identify`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dynid.diagnosis.log_check import check_and_process
from dynid.errors import ArgumentError, DataError
from dynid.estimators.online.online_links import excitation_table
from dynid.export.result_file import result_json, write_result
from dynid.export.robot_files import RobotFile, describe_files, write_robot_files
from dynid.findings import Finding, QualityReport
from dynid.identifiability.base import Method, base_parameters
from dynid.identification.estimators import make_estimator
from dynid.identification.given_data import check_copies
from dynid.identification.identify import Identification, identify_logs, prepare_robot
from dynid.identification.log_part import check_part
from dynid.identification.log_reader import Check, Log, LogReader, refuse_in_pieces
from dynid.identification.recipe import Recipe
from dynid.identification.significance import PruningCost, read_share
from dynid.identification.validation import Validation, validate
from dynid.logs.channel_map import ChannelMapSource
from dynid.logs.recording import Recording
from dynid.parallel.engine_names import read_engine
from dynid.processing.experiment import Experiment
from dynid.processing.process import PreparedLog, Processing
from dynid.report.page import Chapter, Page
from dynid.report.parameter_sections import significance_chapter
from dynid.report.report import identification_page, refusal_page
from dynid.robot.model import Robot
from dynid.workflows.protocol import RunContext, Task
from dynid.workflows.run_folder import RunFolder
from dynid.workflows.validation_run import judge


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IdentificationRun:
    """An identification, its validation, and the files written about it."""

    fit: Identification
    """The identified robot."""
    validation: Validation | None
    """The verdict on held-out data; None where nothing was held out."""
    held_out: tuple[Experiment, ...]
    """The held-out data."""
    cost: PruningCost | None = None
    """Errors and operations of a model of the significant parameters alone; None where it was not asked for."""
    files: tuple[RobotFile, ...] = ()
    """The robot files of the folder, each with its own error on the held-out data."""
    findings: tuple[Finding, ...] = ()
    """Findings of the diagnosis of the logs before the fit, and about the recipe."""
    note: str = ""
    """One line for each robot file: its error beside that of the whole model, and the terms it cannot hold."""

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 where the verdict failed, otherwise 0."""
        return 0 if self.validation is None or self.validation.passed else 1

    def to_json(self) -> dict[str, Any]:
        """Contents of ``result.json``, without its checksum."""
        return result_json(self.fit, self.validation, self.cost, [file.to_json() for file in self.files])


@dataclass(frozen=True, slots=True, eq=False)
class Identify(Task[IdentificationRun]):
    """Identify a robot from logs by a recipe, and judge the result on held-out data."""

    verb = "identify"
    files = ("result.json", "summary.txt")
    reads = ("logs", "held_out", "channel_map")

    robot: Robot
    """The robot; the recipe adds terms to it."""
    logs: Log | Sequence[Log]
    """The logs to identify from."""
    recipe: Recipe = field(default_factory=Recipe)
    """All settings of processing, diagnosis and estimation."""
    held_out: Sequence[Log] = ()
    """Logs for the validation; a recipe with a hold-out takes parts of `logs` instead."""
    channel_map: ChannelMapSource | None = None
    """Channel map of log files, its file, or the name of a built-in one."""
    rows: str | None = None
    """Rows of every log that are used, such as "100:5000", counted from 0; None for all."""
    time: str | None = None
    """Time of every log that is used since its start [s], such as "2.5:30"; None for all."""
    significant: str | None = None
    """Share of a joint's largest torque, such as "1%", below which parameters are left out of a short model."""
    engine: str = "auto"
    """How logs are read, as for `dynid.identify`."""
    base: Method | None = None
    """Set of base parameters in which the result is stated, by its method; that of the equations if None."""
    trim_s: float | None = None
    """Time left out at both ends of every compared stretch [s]; None for the settling time of the filter."""

    @property
    def given(self) -> list[Log]:
        """The logs as a list."""
        return [self.logs] if isinstance(self.logs, str | Path | Recording) else list(self.logs)

    def check(self) -> None:
        if self.held_out and self.recipe.hold_out is not None:
            remedy = "Use one: separate logs, or parts of the logs."
            raise ArgumentError("--validate and --hold-out are mutually exclusive", remedy=remedy)
        check_copies(self.held_out)
        remedy = "Hold out another run, or a part of the run with --hold-out: what was fitted proves nothing."
        check_copies(self.given, self.held_out, why="which is identified from", remedy=remedy)
        check_part(self.rows, self.time)
        # the results are not used: each call raises an error where the settings do not fit
        if self.significant is not None:
            read_share(self.significant)
        if self.engine not in ("auto", "memory", "pieces"):
            read_engine(self.engine)
        if self.engine not in ("auto", "memory") and self.significant is not None:
            refuse_in_pieces(["significant"])
        model = prepare_robot(self.robot, self.recipe, self.channel_map)
        make_estimator(self.recipe, model, self.given, self.channel_map)
        self.recipe.spring_terms(model)

    def compute(self, context: RunContext) -> IdentificationRun:
        recipe = self.recipe
        model = prepare_robot(self.robot, recipe, self.channel_map)
        estimator = make_estimator(recipe, model, self.given, self.channel_map)
        reader = LogReader(robot=model, recipe=recipe, channel_map=self.channel_map, rows=self.rows, time=self.time,
                           progress=context.progress, notice=context.notify,
                           check=_gather_checks(context.findings))  # fmt: skip
        fit, held_out = identify_logs(reader, self.given, estimator, held_out=self.held_out, engine=self.engine)
        if self.significant is not None:
            fit = fit.with_significant(self.significant)
        if self.base is not None:
            fit = fit.in_set(base_parameters(fit.robot, self.base))
        verdict = judge(fit, held_out, context, limit=recipe.limit_percent, trim_s=self.trim_s) if held_out else None
        cost = self._pruning_cost(fit, verdict, held_out)
        found = tuple(context.findings)
        context.findings.extend([*(() if verdict is None else verdict.causes), *fit.estimate.findings])  # for run.json
        return IdentificationRun(fit=fit, validation=verdict, held_out=tuple(held_out), cost=cost, findings=found)

    def _pruning_cost(
        self, fit: Identification, verdict: Validation | None, held_out: Sequence[Experiment]
    ) -> PruningCost | None:
        """Judge the significant parameters alone on the same held-out data, and count the operations of their code.

        There is no cost, but None, where significant parameters were not asked for.
        """
        if fit.significance is None:
            return None
        from dynid.export.c.c_pruning import pruning_cost  # prints C code: slow to load

        limit, trim_s = self.recipe.limit_percent, self.trim_s
        pruned = validate(fit.significance, held_out, limit=limit, trim_s=trim_s) if held_out else None
        return pruning_cost(fit, verdict, pruned)

    def refusal(self, error: DataError, findings: Sequence[Finding], settings: Sequence[Chapter]) -> Page | None:
        is_refused = any(finding.severity == "error" for finding in findings)
        return refusal_page(self.robot, error, findings, settings) if is_refused else None

    def write(self, folder: RunFolder, result: IdentificationRun) -> IdentificationRun:
        fit = result.fit
        verdict = result.validation
        written = write_robot_files(fit, folder.path, result.held_out, check=verdict, force=True)
        # written into a folder that becomes the run folder when all is done
        files = tuple(replace(file, path=folder.folder / file.path.name) for file in written)
        entries = [file.to_json() for file in files]
        write_result(fit, folder.path / "result.json", verdict, result.cost, files=entries, force=True)
        note = describe_files(files, folder.folder)
        findings = "\n".join(str(finding) for finding in result.findings)
        parts = [fit.summary(), findings, str(result.cost or ""), verdict.summary() if verdict else "", note]
        if self.recipe.estimator == "link-by-link":
            parts.insert(1, f"Persistent excitation of each link:\n{excitation_table(fit.equations)}")
        folder.write("summary.txt", "\n\n".join(part for part in parts if part) + "\n")
        folder.note(note)
        return replace(result, files=files, note=note)

    def page(self, result: IdentificationRun, settings: Sequence[Chapter]) -> Page:
        extra = [] if result.cost is None else [significance_chapter(result.fit, result.cost)]
        return identification_page(result.fit, result.validation, result.held_out, [*extra, *settings],
                                   findings=result.findings, files=result.files)  # fmt: skip


def _gather_checks(gathered: list[Finding]) -> Check:
    """Make the diagnosis of a log before the fit, which also adds the findings of a faulty log to a list.

    The message of a refusal names only the first error; the list has all of them, for the report.
    """

    def check(recording: Recording, options: Processing, robot: Robot) -> tuple[QualityReport, PreparedLog | None]:
        report, prepared = check_and_process(recording, options, robot)
        if not report.ok:
            gathered.extend(report.findings)
        return report, prepared

    return check
