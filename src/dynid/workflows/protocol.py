"""The protocol of a run: check arguments, compute, write files, write a report.

A verb of the command line, such as ``dynid identify``, is a `Task`; `run` takes all of them through the same steps.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from dynid.errors import ArgumentError, DataError
from dynid.findings import Finding
from dynid.identification.log_reader import Notice, Progress, log_finding
from dynid.plain_data import json_values
from dynid.report.page import Chapter, Page
from dynid.settings import TomlSettings
from dynid.workflows.run_folder import RunFolder, RunRequest, open_run


class RunResult(Protocol):
    """The result of a task."""

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0, or 1 where the verdict failed."""

    def to_json(self) -> dict[str, Any]:
        """All results as values that JSON can hold."""


Result = TypeVar("Result", bound=RunResult)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The surroundings of a run: progress goes out, and findings are kept and passed on."""

    progress: Progress | None = None
    """Called with the finished share (0 to 1) and a short description of the current step."""
    notice: Notice = log_finding
    """Called with every finding that a person should see at once."""
    findings: list[Finding] = field(default_factory=list)
    """All findings so far."""

    def advance(self, share: float, note: str) -> None:
        """Report progress; without a listener nothing happens."""
        if self.progress is not None:
            self.progress(share, note)

    def notify(self, finding: Finding) -> None:
        """Keep a finding, and pass it to whoever asked for the run."""
        self.findings.append(finding)
        self.notice(finding)


class Task(ABC, Generic[Result]):
    """One verb. Subclasses are dataclasses, whose fields are the arguments of the verb.

    `run` calls `check`, `compute`, `write` and `page`, or `refusal` where a log is refused. A field ``recipe`` holds
    the settings, which are written beside the result.
    """

    verb: ClassVar[str]
    """Name of the verb on the command line."""
    files: ClassVar[tuple[str, ...]]
    """Names of the files that the run writes beside report and recipe; the first one holds the numbers."""
    reads: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that hold files; the record of the run lists these files with their digests."""

    @classmethod
    def chosen(cls, given: Mapping[str, Any]) -> type[Task[Any]]:
        """Choose the task for the parameters of a command: this one, unless a subclass knows another one for them."""
        return cls

    def check(self) -> None:
        """Refuse arguments that exclude each other, before a folder is made."""

    @abstractmethod
    def compute(self, context: RunContext) -> Result:
        """Read the logs and find the result."""

    def refusal(self, error: DataError, findings: Sequence[Finding], settings: Sequence[Chapter]) -> Page | None:
        """Make the page that says why a log was refused; None where the error is no refusal by the diagnosis.

        Args:
            error: The error that ended `compute`.
            findings: All findings up to it.
            settings: The chapters about the settings, which end the page.
        """
        return None

    def write(self, folder: RunFolder, result: Result) -> Result:
        """Write further files; returns the result, to which paths or errors of the files may be added."""
        return result

    @abstractmethod
    def page(self, result: Result, settings: Sequence[Chapter]) -> Page | None:
        """Make the report, which ends with the chapters about the settings; None for a run without report."""


def refuse_used(log: str | Path, digest: str, used: Mapping[str, str]) -> None:
    """Refuse a log that a result was identified from.

    Args:
        log: The log.
        digest: Its digest.
        used: Digest -> name of the logs that the result was identified from.
    """
    if digest in used:
        reason = f"{log} was used for the identification, as {used[digest]}"
        raise ArgumentError(reason, remedy="Give a log that it has not seen.")


def run(
    task: Task[Result],
    out: RunRequest | str | Path | None = None,
    *,
    progress: Progress | None = None,
    notice: Notice = log_finding,
) -> Result:
    """Run a task, as its command does, and write its run folder.

    Args:
        task: The verb with its arguments, such as `dynid.workflows.Identify`.
        out: Folder for results, settings and a report; None writes nothing.
        progress: Called with the finished share (0 to 1) and a short description of the current step.
        notice: Called with every finding that a person should see at once.

    Raises:
        ArgumentError: Settings exclude each other, or a log is given twice.
        DataError: A log is refused, or cannot be used.
        ExportError: The folder holds other results.

    Example:
        >>> recipe = dynid.Recipe(friction="plain", estimator="wls")
        >>> found = dynid.workflows.run(dynid.workflows.Identify(robot, log, recipe, held_out=[log2]))
        >>> found.validation is not None
        True
    """
    task.check()
    context = RunContext(progress=progress, notice=notice)
    if out is None:
        return task.compute(context)
    request = RunRequest.of(out)
    recipe = getattr(task, "recipe", None)
    given = {name: getattr(task, name) for name in getattr(task, "__dataclass_fields__", {})}
    stated = {
        name: _state(value, name in task.reads) for name, value in given.items() if name not in ("robot", "recipe")
    }
    inputs = [path for name in task.reads for path in _files(given[name])]
    settings: dict[str, Any] = {}
    if isinstance(recipe, TomlSettings):
        settings = recipe.to_dict()
        inputs += recipe.input_files()
    options = {**request.options, **stated, **settings}
    files = [*task.files, "recipe.toml"]
    with open_run(request, task.verb, options, [*request.inputs, *inputs], files) as folder:
        try:
            result = task.compute(context)
        except DataError as error:
            if page := task.refusal(error, context.findings, [folder.settings()]):
                folder.write_page(page)
                folder.refuse()
                message = f"all findings and the commands to run next are in {folder.folder / 'report.html'}"
                notice(Finding(code="refused", severity="note", where="folder", message=message))
            raise
        result = task.write(folder, result)
        if not (folder.path / task.files[0]).exists():
            folder.write(task.files[0], json.dumps(result.to_json(), indent=1) + "\n")
        if isinstance(recipe, TomlSettings):
            folder.write("recipe.toml", recipe.to_toml())
        if page := task.page(result, [folder.settings()]):
            folder.write_page(page)
        folder.finish(task.files[0], result.exit_code, context.findings)
    return result


def _files(value: Any) -> list[Path]:
    """List the files and folders among the values of a field, as absolute paths."""
    items = value if isinstance(value, list | tuple) else [value]
    return [Path(item).absolute() for item in items if isinstance(item, str | Path) and os.path.exists(item)]


def _state(value: Any, is_file: bool) -> Any:
    """Convert a field to the form in which ``run.json`` holds it.

    Paths become text, absolute where they exist; so does text in a field of files (``is_file``). Numbers, text and None
    stay; of other values only the name of the type is kept.
    """
    if isinstance(value, list | tuple):
        return [_state(item, is_file) for item in value]
    if (is_file or isinstance(value, Path)) and (files := _files(value)):
        return str(files[0])
    if isinstance(value, Path):
        return str(value)
    return json_values(value) if value is None or isinstance(value, str | int | float) else type(value).__name__
