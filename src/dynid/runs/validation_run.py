"""Judge a saved result on logs that it has not seen: what ``dynid validate`` does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dynid.errors import ArgumentError, DataError, DynidError
from dynid.export.result_file import SavedResult, read_result
from dynid.files import file_digest
from dynid.findings import Finding
from dynid.identification.given_data import SeenSamples, check_copies
from dynid.identification.identify import Identification
from dynid.identification.log_part import check_part
from dynid.identification.log_reader import LogReader
from dynid.identification.recipe import Recipe
from dynid.identification.validation import ALIKE, Validation, explain_failure, name_doubts, validate
from dynid.logs.channel_map import ChannelMapSource
from dynid.logs.reading import log_digest
from dynid.processing.experiment import Experiment
from dynid.report.page import Chapter, Page
from dynid.report.report import identification_page
from dynid.robot.model import Robot
from dynid.runs.actuator_run import ValidateServos, is_servo_run
from dynid.runs.protocol import Desk, Task, refuse_used
from dynid.runs.run_folder import read_run


@dataclass(frozen=True, slots=True, eq=False)
class ValidationRun:
    """The verdict on a saved result, with what it was judged on."""

    verdict: Validation
    saved: SavedResult
    fit: Identification
    runs: tuple[Experiment, ...]
    findings: tuple[Finding, ...]
    """What the gate reported, and causes of a failure."""

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
    recipe: Recipe = field(default_factory=Recipe)
    """Settings of the gate, the processing and the comparison; its band is that of the result if None."""
    channel_map: ChannelMapSource | None = None
    rows: str | None = None
    """As for `dynid.runs.Identify`."""
    time: str | None = None
    trim_s: float | None = None

    @classmethod
    def chosen(cls, given: Mapping[str, Any]) -> type[Task[Any]]:
        """The task for a folder: servos are judged by their positions, without a recipe."""
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

    def compute(self, desk: Desk) -> ValidationRun:
        saved = read_result(self.result)
        fit, data, given = saved.identification(), saved.content["data"], self.recipe
        recipe = replace(given, band_hz=fit.equations.band_hz) if given.band_hz is None else given
        fitted = [(facts["source"], facts.get("stretch_keys", ())) for facts in data]
        reader = LogReader(robot=fit.robot, recipe=recipe, channel_map=self.channel_map, rows=self.rows, time=self.time,
                           progress=desk.progress, notice=desk.tell, seen=SeenSamples(fitted))  # fmt: skip
        runs = reader.experiments(self.logs, for_validation=True, cutoff_hz=common_cutoff(saved))
        for log, experiment in zip(self.logs, runs, strict=True):
            # a folder whose files a map names is known only once it is read
            refuse_used(log, experiment.sha256, logs_of(saved))
        verdict = judge(fit, runs, desk, limit=recipe.limit_percent, band_hz=recipe.band_hz, trim_s=self.trim_s)
        if recipe.band_hz is not None and recipe.band_hz == fit.equations.band_hz:  # a result holds no samples
            verdict = replace(verdict, training_error=saved.training_error_in_band)
        desk.findings.extend(verdict.causes)
        return ValidationRun(verdict, saved, fit, tuple(runs), tuple(desk.findings))

    def page(self, result: ValidationRun, settings: Sequence[Chapter]) -> Page:
        data = result.saved.content["data"]
        return identification_page(result.fit, result.verdict, result.runs, settings, data, result.findings)


def judge(fit: Identification, runs: Sequence[Experiment], desk: Desk, **options: Any) -> Validation:
    """A validation with the doubts and the causes that the findings so far give."""
    verdict = validate(fit, runs, **options)
    verdict = replace(verdict, doubts=name_doubts([*desk.findings, *fit.estimate.findings]))
    return replace(verdict, causes=explain_failure(fit, verdict, runs))


@dataclass(frozen=True, slots=True, eq=False)
class Contest:
    """Two results judged on identical samples."""

    names: tuple[str, str]
    checks: tuple[Validation, Validation] | None
    """None where the runs have no common proof."""
    reason: str = ""
    """Why they have none."""

    @property
    def sentence(self) -> str:
        """Which result predicts better."""
        if self.checks is None:
            return f"{self.names[0]} and {self.names[1]} are not judged on the same samples: {self.reason}"
        errors = [check.relative_error for check in self.checks]
        low, high = min(errors), max(errors)
        better = f"{self.names[errors.index(low)]} predicts better"
        words = "both predict equally well" if high <= ALIKE * low else better
        return f"{words} on the same held-out samples: {low:.2f} % against {high:.2f} %"


@dataclass(frozen=True, slots=True, eq=False)
class PastRun:
    """The folder of an identification: enough to read its logs as it did."""

    saved: SavedResult
    options: Mapping[str, Any]
    recipe: Recipe
    digests: Mapping[str, str]
    """Path -> digest of what the run read."""

    @classmethod
    def read(cls, folder: Path) -> PastRun:
        """Read the record, the result and the recipe of a folder."""
        facts = read_run(folder)
        digests = {entry["path"]: entry["sha256"] for entry in facts["inputs"]}
        return cls(read_result(folder), facts["options"], Recipe.read(folder / "recipe.toml"), digests)

    def reader(self, robot: Robot, recipe: Recipe, paths: Iterable[str]) -> LogReader:
        """What reads logs of the run as it did, but for the recipe.

        Raises:
            DataError: One of the paths, or the channel map, is gone or has changed.
        """
        channel_map, rows, time = (self.options.get(name) for name in ("channel_map", "rows", "time"))
        for path in filter(None, (*paths, channel_map)):
            if path in self.digests and (not Path(path).exists() or file_digest(path) != self.digests[path]):
                raise DataError("the file is gone, or has changed since the run", path=path)
        return LogReader(robot=robot, recipe=recipe, channel_map=channel_map, rows=rows, time=time)

    @property
    def judged(self) -> dict[str, str]:
        """Digest -> path of the logs that judged the result, wholly or by their held-out part."""
        names = self.options.get("held_out" if self.recipe.hold_out is None else "logs") or ()
        return {self.digests[name]: name for name in names if name in self.digests}

    def proof(self, other: PastRun) -> list[str]:
        """Logs that judged the result and that the other run has not seen, or of which both hold out the same part."""
        same = self.recipe.hold_out == other.recipe.hold_out and self.judged.keys() == other.judged.keys()
        seen = logs_of(other.saved)
        return [path for digest, path in self.judged.items() if same or digest not in seen]


def is_run(path: str | Path) -> bool:
    """Whether a path is the folder of an identification."""
    return all((Path(path) / name).exists() for name in ("run.json", "result.json", "recipe.toml"))


def judge_alike(first: Path, second: Path) -> Contest:
    """Judge the results of two run folders on the samples that either was judged on, processed once.

    The errors that the runs state cannot be compared where one leaves out samples that the other predicts, such as
    those within a dead band.
    """
    sides = PastRun.read(first), PastRun.read(second)
    names = (first.name, second.name) if first.name != second.name else (str(first), str(second))
    fits = [side.saved.identification() for side in sides]
    recipe, runs, used = _common_recipe(*sides), list[Experiment](), set[str]()
    try:
        for side, other in (sides, sides[::-1]):
            logs = [log for log in side.proof(other) if log not in used]
            used.update(logs)
            chosen = replace(recipe, hold_out=side.recipe.hold_out)
            reader = side.reader(fits[0].robot, chosen, logs)
            if logs and chosen.hold_out is not None:
                runs += reader.training_and_proof(logs)[1]
            elif logs:
                runs += reader.experiments(logs, for_validation=True)
    except DynidError as error:
        return Contest(names, None, str(error))
    if not runs:
        return Contest(names, None, "neither was judged on a log that the other has not seen")
    one, two = (validate(fit, runs, band_hz=recipe.band_hz) for fit in fits)
    return Contest(names, (one, two))


def _common_recipe(first: PastRun, second: PastRun) -> Recipe:
    """Settings under which no sample is left out that either run was judged on."""
    a, b = first.recipe, second.recipe
    cutoffs = [facts["cutoff_hz"] for side in (first, second) for facts in side.saved.content["data"]]
    known = [cutoff for cutoff in cutoffs if cutoff is not None]
    widths = [width for width in (a.dead_band, b.dead_band) if width is not None]
    all_move = len(widths) < 2 and 0.0 not in widths  # None leaves out standstill alone
    return replace(
        a,
        gate=False,
        cutoff_hz=max(known, default="auto"),
        band_hz=None if a.band_hz is None or b.band_hz is None else max(a.band_hz, b.band_hz),
        dead_band=None if all_move else min(widths),
    )


def logs_of(saved: SavedResult) -> dict[str, str]:
    """Digest -> name of every log that a result was identified from."""
    return {facts["sha256"]: facts["source"] for facts in saved.content["data"] if facts["sha256"]}


def common_cutoff(saved: SavedResult) -> float | None:
    """The cutoff of all logs that a result was identified from [Hz]; None where they have none, or several."""
    found = {facts.get("cutoff_hz") for facts in saved.content["data"]}
    return found.pop() if len(found) == 1 else None
