"""The protocol of a run: check, read, compute, write, report. What differs between the verbs is their `Task`."""

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
from dynid.runs.run_folder import RunFolder, RunRequest, open_run
from dynid.settings import TomlSettings


class Outcome(Protocol):
    """What a task comes to."""

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0, or 1 where the verdict failed."""

    def to_json(self) -> dict[str, Any]:
        """All results as values that JSON can hold."""


Result = TypeVar("Result", bound=Outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What a task works with."""

    progress: Progress | None = None
    """Called with the finished share (0 to 1) and a short description of the current step."""
    notice: Notice = log_finding
    """Called with every finding that a person should see at once."""
    findings: list[Finding] = field(default_factory=list)
    """All findings so far."""

    def advance(self, share: float, note: str) -> None:
        """Report progress, where anybody listens."""
        if self.progress is not None:
            self.progress(share, note)

    def tell(self, finding: Finding) -> None:
        """Keep a finding, and pass it on."""
        self.findings.append(finding)
        self.notice(finding)


class Task(ABC, Generic[Result]):
    """One verb; its arguments are the fields of a dataclass.

    `run` calls `check`, `compute`, `write` and `page`, or `refusal` where a log is refused. A field ``recipe`` holds
    the settings that are written beside the result.
    """

    verb: ClassVar[str]
    files: ClassVar[tuple[str, ...]]
    """Names of the files that the run writes beside report and recipe; the first one holds the numbers."""
    reads: ClassVar[tuple[str, ...]] = ()
    """Fields whose files are listed with their digests."""

    @classmethod
    def chosen(cls, given: Mapping[str, Any]) -> type[Task[Any]]:
        """The task for the parameters of a command: usually this one."""
        return cls

    def check(self) -> None:
        """Refuse arguments that exclude each other, before a folder is made."""

    @abstractmethod
    def compute(self, desk: Desk) -> Result:
        """Read the logs and find the result."""

    def refusal(self, error: DataError, findings: Sequence[Finding], settings: Sequence[Chapter]) -> Page | None:
        """The page that says why a log was refused; None without one."""
        return None

    def write(self, folder: RunFolder, result: Result) -> Result:
        """Write further files."""
        return result

    @abstractmethod
    def page(self, result: Result, settings: Sequence[Chapter]) -> Page | None:
        """The report, which ends with the chapters about the settings; None without one."""


def refuse_used(log: str | Path, digest: str, used: Mapping[str, str]) -> None:
    """Refuse a log whose digest is among those (digest -> name) that a result was identified from."""
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
    """Do what a command does, and write its run folder.

    Args:
        task: The verb with its arguments, such as `dynid.runs.Identify`.
        out: Folder for results, settings and a report; None writes nothing.
        progress: Called with the finished share (0 to 1) and a short description of the current step.
        notice: Called with every finding that a person should see at once.

    Raises:
        ArgumentError: Settings exclude each other, or a log is given twice.
        DataError: A log is refused, or cannot be used.
        ExportError: The folder holds other results.

    Example:
        >>> recipe = dynid.Recipe(friction="plain", estimator="wls")
        >>> found = dynid.runs.run(dynid.runs.Identify(robot, log, recipe, held_out=[log2]))
        >>> found.validation is not None
        True
    """
    task.check()
    desk = Desk(progress=progress, notice=notice)
    if out is None:
        return task.compute(desk)
    request, recipe = RunRequest.of(out), getattr(task, "recipe", None)
    given = {name: getattr(task, name) for name in getattr(task, "__dataclass_fields__", {})}
    stated = {
        name: _state(value, name in task.reads) for name, value in given.items() if name not in ("robot", "recipe")
    }
    inputs = [path for name in task.reads for path in _files(given[name])]
    settings: dict[str, Any] = {}
    if isinstance(recipe, TomlSettings):
        settings, inputs = recipe.to_dict(), [*inputs, *recipe.input_files()]
    options, files = {**request.options, **stated, **settings}, [*task.files, "recipe.toml"]
    with open_run(request, task.verb, options, [*request.inputs, *inputs], files) as folder:
        try:
            result = task.compute(desk)
        except DataError as error:
            if page := task.refusal(error, desk.findings, [folder.settings()]):
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
        folder.finish(task.files[0], result.exit_code, desk.findings)
    return result


def _files(value: Any) -> list[Path]:
    """The files and folders among the values of a field."""
    items = value if isinstance(value, list | tuple) else [value]
    return [Path(item).absolute() for item in items if isinstance(item, str | Path) and os.path.exists(item)]


def _state(value: Any, is_file: bool) -> Any:
    """A field as a record of a run holds it: files as absolute paths, the type of what is no text and no number."""
    if isinstance(value, list | tuple):
        return [_state(item, is_file) for item in value]
    if (is_file or isinstance(value, Path)) and (files := _files(value)):
        return str(files[0])
    if isinstance(value, Path):
        return str(value)
    return json_values(value) if value is None or isinstance(value, str | int | float) else type(value).__name__
