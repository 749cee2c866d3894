"""Judge a saved result on logs that it has not seen: the work of ``dynid validate``.

The second half is for other verbs, too: `SavedRun` is the folder of an identification, which reads logs as the run did.
A "gate" in settings is the diagnosis of logs before they are used, which refuses faulty ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dynid.errors import ArgumentError, DataError
from dynid.export.result_file import SavedResult, read_result
from dynid.findings import Finding
from dynid.identification.given_data import SeenSamples, check_copies
from dynid.identification.identify import Identification
from dynid.identification.log_part import check_part
from dynid.identification.log_reader import LogReader
from dynid.identification.recipe import Recipe
from dynid.identification.validation import Validation, name_doubts, validate
from dynid.logs.channel_map import ChannelMapSource
from dynid.logs.reading import log_digest
from dynid.processing.experiment import Experiment
from dynid.report.page import Chapter, Page
from dynid.report.report import identification_page
from dynid.robot.model import Robot
from dynid.safe_files import file_digest
from dynid.workflows.actuator_run import ValidateServos, is_servo_run
from dynid.workflows.protocol import RunContext, Task, refuse_used
from dynid.workflows.run_folder import read_run


@dataclass(frozen=True, slots=True, eq=False)
class ValidationRun:
    """The verdict on a saved result, and the data that it was judged on."""

    verdict: Validation
    """Errors and verdict."""
    saved: SavedResult
    """The saved result."""
    fit: Identification
    """The identification in it."""
    runs: tuple[Experiment, ...]
    """The processed logs."""
    findings: tuple[Finding, ...]
    """Findings of the diagnosis of the logs, and causes of a failure."""

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 where the verdict failed, otherwise 0."""
        return 0 if self.verdict.passed else 1

    def to_json(self) -> dict[str, Any]:
        """Contents of ``validation.json``."""
        return self.verdict.to_json()


@dataclass(frozen=True, slots=True, eq=False)
class Validate(Task[ValidationRun]):
    """Compare the torques that a saved result predicts with those of logs that it has not seen."""

    verb = "validate"
    files = ("validation.json",)
    reads = ("result", "logs", "channel_map")

    result: str | Path
    """A folder that `Identify` wrote, or its ``result.json``."""
    logs: Sequence[str | Path]
    """Logs that the result was not identified from."""
    recipe: Recipe = field(default_factory=Recipe)
    """Settings of diagnosis, processing and comparison; its band is that of the result if None."""
    channel_map: ChannelMapSource | None = None
    """This and the following fields as for `dynid.workflows.Identify`."""
    rows: str | None = None
    time: str | None = None
    trim_s: float | None = None

    @classmethod
    def chosen(cls, given: Mapping[str, Any]) -> type[Task[Any]]:
        """Choose the task for a folder: servos are judged by their positions, without a recipe."""
        if not is_servo_run(given["result"]):
            return cls
        names = ("rows", "time", "trim_s", "limit_percent", "recipe_file", "settings")
        if odd := [name for name in names if given.get(name)]:
            raise ArgumentError(f"{odd[0]} has no effect on servos", remedy="Leave it out.")
        return ValidateServos

    def check(self) -> None:
        check_copies(self.logs)
        used = logs_of(read_result(self.result))
        for log in self.logs:
            refuse_used(log, log_digest(log), used)
        check_part(self.rows, self.time)

    def compute(self, context: RunContext) -> ValidationRun:
        saved = read_result(self.result)
        fit, data, given = saved.identification(), saved.content["data"], self.recipe
        recipe = replace(given, band_hz=fit.equations.band_hz) if given.band_hz is None else given
        fitted = [(facts["source"], facts.get("stretch_keys", ())) for facts in data]
        reader = LogReader(robot=fit.robot, recipe=recipe, channel_map=self.channel_map, rows=self.rows, time=self.time,
                           progress=context.progress, notice=context.notify, seen=SeenSamples(fitted))  # fmt: skip
        runs = reader.experiments(self.logs, for_validation=True, cutoff_hz=saved_cutoff(saved))
        for log, experiment in zip(self.logs, runs, strict=True):
            # a folder whose files a map names is known only once it is read
            refuse_used(log, experiment.sha256, logs_of(saved))
        verdict = judge(fit, runs, context, limit=recipe.limit_percent, band_hz=recipe.band_hz, trim_s=self.trim_s)
        if recipe.band_hz is not None and recipe.band_hz == fit.equations.band_hz:
            # a saved result holds no samples, so that the training error cannot be computed here
            verdict = replace(verdict, training_error=saved.training_error_in_band)
        context.findings.extend(verdict.causes)
        return ValidationRun(verdict, saved, fit, tuple(runs), tuple(context.findings))

    def page(self, result: ValidationRun, settings: Sequence[Chapter]) -> Page:
        data = result.saved.content["data"]
        return identification_page(result.fit, result.verdict, result.runs, settings, data, result.findings)


def judge(fit: Identification, runs: Sequence[Experiment], context: RunContext, **options: Any) -> Validation:
    """Validate an identification, and add doubts about the verdict.

    Args:
        fit: The identification.
        runs: The held-out experiments.
        context: Its findings so far are the source of the doubts.
        **options: Arguments of `dynid.identification.validation.validate`.
    """
    verdict = validate(fit, runs, **options)
    return replace(verdict, doubts=name_doubts([*context.findings, *fit.estimate.findings]))


@dataclass(frozen=True, slots=True, eq=False)
class SavedRun:
    """The folder of an identification: enough to read its logs as it did."""

    saved: SavedResult
    """The result."""
    options: Mapping[str, Any]
    """Options of the command, as ``run.json`` holds them."""
    recipe: Recipe
    """Settings of the run."""
    digests: Mapping[str, str]
    """Path -> digest of every file that the run read."""

    @classmethod
    def read(cls, folder: Path) -> SavedRun:
        """Read the record, the result and the recipe of a folder."""
        facts = read_run(folder)
        digests = {entry["path"]: entry["sha256"] for entry in facts["inputs"]}
        return cls(read_result(folder), facts["options"], Recipe.read(folder / "recipe.toml"), digests)

    def reader(self, robot: Robot, recipe: Recipe, paths: Iterable[str]) -> LogReader:
        """Make a reader that reads logs as the run did, but with another recipe.

        Args:
            robot: The robot.
            recipe: The other recipe.
            paths: The logs.

        Raises:
            DataError: One of the logs, or the channel map, is gone or has changed since.
        """
        channel_map, rows, time = (self.options.get(name) for name in ("channel_map", "rows", "time"))
        for path in filter(None, (*paths, channel_map)):
            if path in self.digests and (not Path(path).exists() or file_digest(path) != self.digests[path]):
                raise DataError("the file is gone, or has changed since the run", path=path)
        return LogReader(robot=robot, recipe=recipe, channel_map=channel_map, rows=rows, time=time)

    @property
    def judged(self) -> dict[str, str]:
        """Digest -> path of the logs on which the result was validated, wholly or by their held-out part."""
        names = self.options.get("held_out" if self.recipe.hold_out is None else "logs") or ()
        return {self.digests[name]: name for name in names if name in self.digests}

    def fair_logs(self, other: SavedRun) -> list[str]:
        """List the logs on which this and another run can be compared.

        The result was validated on them, and the other run was not identified from them, or both hold out the same part
        of the same logs.
        """
        hold_out_alike = self.recipe.hold_out == other.recipe.hold_out and self.judged.keys() == other.judged.keys()
        fitted = logs_of(other.saved)
        return [path for digest, path in self.judged.items() if hold_out_alike or digest not in fitted]


def is_run(path: str | Path) -> bool:
    """Whether a path is the folder of an identification."""
    return all((Path(path) / name).exists() for name in ("run.json", "result.json", "recipe.toml"))


def logs_of(saved: SavedResult) -> dict[str, str]:
    """List the logs that a result was identified from: digest -> name."""
    return {facts["sha256"]: facts["source"] for facts in saved.content["data"] if facts["sha256"]}


def saved_cutoff(saved: SavedResult) -> float | None:
    """Find the cutoff of all logs that a result was identified from [Hz]; None where they have none, or several."""
    found = {facts.get("cutoff_hz") for facts in saved.content["data"]}
    return found.pop() if len(found) == 1 else None
