"""Identify a robot from logs and prove the result, in a run folder or without one: what ``dynid identify`` does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from dynid.errors import ArgumentError, DataError
from dynid.export.result_file import write_result
from dynid.export.robot_files import RobotFile, describe_files, write_robot_files
from dynid.findings import Finding, QualityReport
from dynid.gate.quality import check_and_process
from dynid.links.common.copies import check_copies
from dynid.links.common.held_out_causes import explain_failure
from dynid.links.common.kept_faults import unmended
from dynid.links.estimators import make_estimator
from dynid.links.identify import Identification, identify_logs, prepare_robot
from dynid.links.log_reader import (
    ChannelMapSource,
    Check,
    Log,
    LogReader,
    Notice,
    Progress,
    log_finding,
)
from dynid.links.pruning import PruningCost
from dynid.links.recipe import Recipe
from dynid.links.validation import Validation, validate
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.processing.process import Chain, Processing
from dynid.report.identification_sections import WrittenFiles
from dynid.report.parameter_sections import SignificantParameters
from dynid.report.report import identification_page, refusal_page
from dynid.robot.model import Robot
from dynid.runs.run_folder import Origin, RunFolder, RunRequest, open_run
from dynid.stages import in_stage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IdentificationRun:
    """An identification with its proof and its folder."""

    fit: Identification
    """The identified robot."""
    validation: Validation | None
    """The verdict on held-out data; None where nothing was held out."""
    held_out: tuple[Experiment, ...]
    """The held-out data."""
    cost: PruningCost | None = None
    """What it costs to keep the significant parameters alone, where the recipe asks for them."""
    files: tuple[RobotFile, ...] = ()
    """The robot files of the folder, each with its own error on the held-out data."""
    findings: tuple[Finding, ...] = ()
    """What the gate and the recipe reported."""
    note: str = ""
    """One line for each robot file: its error beside the judged one, and the terms it cannot hold."""

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 where the verdict failed, otherwise 0."""
        return 0 if self.validation is None or self.validation.passed else 1


def run_identification(
    robot: Robot,
    logs: Log | Sequence[Log],
    recipe: Recipe | None = None,
    *,
    held_out: Sequence[Log] = (),
    channel_map: ChannelMapSource | None = None,
    out: RunRequest | str | Path | None = None,
    progress: Progress | None = None,
    notice: Notice = log_finding,
) -> IdentificationRun:
    """Identify a robot from logs by a recipe, judge the result on held-out data, and write a run folder.

    Args:
        robot: The robot; the recipe adds terms to it.
        logs: The logs to identify from.
        recipe: All settings; the defaults of `Recipe` if None.
        held_out: Logs for the proof; the recipe's hold-out takes parts of the first ones instead.
        channel_map: Channel map of log files, its file, or the name of a built-in one.
        out: Folder for the result, the identified models and a report; None writes nothing.
        progress: Called with the finished share (0 to 1) and a short description of the current step.
        notice: Called with every finding that a person should see at once.

    Raises:
        ArgumentError: Settings exclude each other, or a log is given twice.
        DataError: The gate refuses a log, or a log cannot be used.
        ExportError: The folder holds other results.

    Example:
        >>> recipe = dynid.Recipe(selection=None, estimator="wls")
        >>> found = dynid.runs.run_identification(robot, log, recipe, held_out=[log2])
        >>> found.validation is not None
        True
    """
    chosen = recipe or Recipe()
    given = [logs] if isinstance(logs, str | Path | Recording) else list(logs)
    _refuse_unclear(given, held_out, chosen)
    model = prepare_robot(robot, chosen, channel_map)
    estimator = make_estimator(chosen, model, given, channel_map)
    chosen.spring_terms(model)  # an unknown joint is refused before a folder is made
    options = {**chosen.to_dict(), "held_out": [str(log) for log in held_out if not isinstance(log, Recording)]}
    origin = Origin.of_call("run_identification", options, [*given, *held_out, channel_map, *chosen.input_files()])
    files = ["result.json", "summary.txt", "recipe.toml"]
    with nullcontext() if out is None else open_run(RunRequest.of(out), origin, files) as run:
        gathered: list[Finding] = []
        reader = LogReader(robot=model, recipe=chosen, channel_map=channel_map, progress=progress,
                           notice=gather_too(gathered, notice), check=_gather_checks(gathered))  # fmt: skip
        try:
            fit, proof = identify_logs(reader, given, estimator, held_out=held_out)
        except DataError as error:
            _write_refusal(run, model, error, gathered, notice)
            raise
        verdict = validate(fit, proof, limit=chosen.limit_percent, trim_s=chosen.trim_s) if proof else None
        if verdict is not None:
            verdict = replace(verdict, doubts=unmended([*gathered, *fit.estimate.findings], chosen.per_run))
            verdict = replace(verdict, causes=explain_failure(fit, verdict, proof))
        cost = _pruning_cost(fit, verdict, proof, chosen)
        found = tuple(finding for finding in gathered if finding.code not in ("continued", "refused"))
        result = IdentificationRun(fit=fit, validation=verdict, held_out=tuple(proof), cost=cost, findings=found)
        return result if run is None else _write(run, result, chosen)


def _pruning_cost(
    fit: Identification, verdict: Validation | None, proof: Sequence[Experiment], recipe: Recipe
) -> PruningCost | None:
    """Judge the significant parameters alone on the same held-out data, and count the operations of their code."""
    if fit.significance is None:
        return None
    from dynid.export.c.code_cost import pruning_cost  # prints C code: slow to load

    if verdict is None:
        return pruning_cost(fit)
    pruned = validate(fit.significance, proof, limit=recipe.limit_percent, trim_s=recipe.trim_s)
    return pruning_cost(fit, verdict, pruned)


def gather_too(gathered: list[Finding], notice: Notice) -> Notice:
    """A notice that also keeps the findings."""

    def keep(finding: Finding) -> None:
        gathered.append(finding)
        notice(finding)

    return keep


def _gather_checks(gathered: list[Finding]) -> Check:
    """The gate, which also keeps the errors of a log: the message of a refusal names only the first of them."""

    def check(recording: Recording, options: Processing, robot: Robot) -> tuple[QualityReport, Chain | None]:
        report, chain = check_and_process(recording, options, robot)
        if not report.ok:
            gathered.extend(report.findings)
        return report, chain

    return check


def _write_refusal(
    run: RunFolder | None, robot: Robot, error: DataError, findings: Sequence[Finding], notice: Notice
) -> None:
    """Write a report that says why a log was refused, with everything that the gate found."""
    if run is None or all(finding.severity != "error" for finding in findings):
        return
    run.write_page(refusal_page(robot, error, findings, [run.settings()]))
    run.refuse()
    message = f"all findings and the commands to run next are in {run.folder / 'report.html'}"
    notice(Finding(code="refused", severity="note", where="folder", message=message))


def _refuse_unclear(logs: Sequence[Log], held_out: Sequence[Log], recipe: Recipe) -> None:
    """Refuse two kinds of proof, and a log that is given twice or is its own proof."""
    if held_out and recipe.hold_out is not None:
        raise ArgumentError(
            "--validate and --hold-out are mutually exclusive",
            remedy="Use one: separate logs, or parts of the logs.",
        )
    check_copies(held_out)
    check_copies(
        logs,
        held_out,
        why="which is identified from",
        remedy="Hold out another run, or a part of the run with --hold-out: what was fitted proves nothing.",
    )


@in_stage("report")
def _write(run: RunFolder, result: IdentificationRun, recipe: Recipe) -> IdentificationRun:
    """Write result, recipe, identified models, summary and report."""
    fit, verdict = result.fit, result.validation
    written = write_robot_files(fit, run.path, result.held_out, check=verdict, force=True)
    files = tuple(replace(file, path=run.folder / file.path.name) for file in written)
    entries = [file.to_json() for file in files]
    write_result(fit, run.path / "result.json", verdict, result.cost, files=entries, force=True)
    run.write("recipe.toml", recipe.to_toml())
    note = describe_files(files, run.folder)
    told = "\n".join(str(finding) for finding in result.findings)
    parts = [fit.summary(), told, str(result.cost or ""), verdict.summary() if verdict else "", note]
    run.write("summary.txt", "\n\n".join(part for part in parts if part) + "\n")
    run.note(note)
    extra = [] if result.cost is None else [SignificantParameters(fit, result.cost)]
    sections = [WrittenFiles(files), *extra, run.settings()]
    run.write_page(identification_page(fit, verdict, result.held_out, sections, findings=result.findings))
    causes = () if verdict is None else verdict.causes
    run.finish("result.json", result.exit_code, [*result.findings, *causes, *fit.estimate.findings])
    return replace(result, files=files, note=note)
