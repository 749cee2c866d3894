"""A run folder: inputs with their digests, settings, versions, results and a log; enough to repeat the run.

A run is one transaction: all its files are written to a hidden folder, and take their places together when the run
finishes; an earlier run stays until then, and a run that was interrupted begins anew.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, Self

from msgspec import Meta, Struct

from dynid.errors import DataError, ExportError
from dynid.files import file_digest, write_atomically
from dynid.files.records import Digest, FileName, Text, as_record
from dynid.files.small_files import read_json
from dynid.files.transaction import (
    LOCK,
    MANIFEST,
    Transaction,
    begin,
    changed_files,
    changing,
    check_targets,
    recover,
    stage_of,
)
from dynid.findings import Finding
from dynid.plain_data import pick
from dynid.report.page import Chapter, Page
from dynid.report.provenance import settings_chapter
from dynid.safe_text import visible_text

REPORTS = ("report.html", "report.md", "report.json")
"""Files of the report of a run."""
LOG = "log.txt"
"""Name of the log of a run."""
LOG_TEXT: dict[str, Any] = {"encoding": "utf-8", "errors": "backslashreplace"}
"""Encoding of the log: names of files may hold any bytes."""
_REMEDY = "Run the command again."
_FOLDER = "Give a folder that dynid identify, load, excite or validate wrote with --out."


class Input(Struct, forbid_unknown_fields=True):
    """A file that a run read."""

    path: Text
    sha256: Digest


class RunRecord(Struct, kw_only=True, forbid_unknown_fields=True):
    """What ``run.json`` holds."""

    schema: Literal[1]
    verb: Annotated[str, Meta(pattern=r"\A[a-z_-]{1,40}\Z")]
    command: Text
    arguments: list[Text] | None
    """Words of the command line that repeat the run; None where Python asked for it."""
    options: dict[str, Any]
    inputs: list[Input]
    versions: dict[str, Text]
    finished: bool = False
    refused: bool = False
    result: FileName | None = None
    exit_code: Annotated[int, Meta(ge=0, le=255)] | None = None
    seconds: Annotated[float, Meta(ge=0.0, le=1e12)] | None = None
    outputs: dict[FileName, Digest] = {}
    findings: list[dict[str, Text | None]] = []


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A folder for a run that is yet to start, and how a person asked for it."""

    path: Path
    force: bool = False
    """Whether files in the folder are overwritten."""
    command: str = ""
    """The command, for people; empty where Python asks for the run."""
    arguments: Sequence[str] | None = None
    """Words of the command line that repeat the run; None where Python asks for it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Name -> value of what the command was given besides the fields of the task, as JSON holds it."""
    inputs: Sequence[Path] = ()
    """Files that the command read besides those of the task."""

    @classmethod
    def of(cls, out: RunRequest | str | Path) -> RunRequest:
        """Make a request from the path of a folder; a request is returned unchanged."""
        return out if isinstance(out, RunRequest) else cls(path=Path(out))


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """An open run; a context manager that leaves nothing behind where the run fails."""

    folder: Path
    """Folder of the run, as it was asked for; its files appear there when the run finishes."""
    transaction: Transaction
    facts: dict[str, Any]
    """How the run was asked for, as ``run.json`` holds it; its inputs as they were before anything was read."""
    earlier: frozenset[str] = frozenset()
    """Names of the files that an earlier run left in the folder."""
    force: bool = False
    """Whether other files of the folder are overwritten, too."""
    started: float = field(default_factory=time.monotonic)
    """Time of the start by the monotonic clock [s]."""

    @property
    def path(self) -> Path:
        """The hidden folder to which the files are written."""
        return self.transaction.stage

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.transaction.is_committed:
            self.note(f"stopped: {kind.__name__ if kind else ''} {error or ''}".rstrip())
            self.transaction.release()
        else:
            self.transaction.discard()

    def note(self, text: str) -> None:
        """Add a line to ``log.txt``; a log that cannot be written stops nothing."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        with suppress(OSError), open(os.open(self.path / LOG, flags, 0o666), "a", **LOG_TEXT) as stream:
            line = visible_text(text).replace("\n", "\\n")
            stream.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n")

    def write(self, name: str, content: str) -> None:
        """Write a file of the run, whole or not at all; texts for people hold no character that steers a terminal."""
        shown = visible_text(content) if name.endswith((".txt", ".md")) else content
        write_atomically(self.path / name, shown, force=True)

    def write_page(self, page: Page) -> None:
        """Write the report in all its forms."""
        for name in REPORTS:
            page.write(self.path / name, force=True)

    def settings(self) -> Chapter:
        """The chapter of the report that says how the run was made."""
        options = {name: _words(value) for name, value in self.facts["options"].items()}
        inputs = [(entry["path"], entry["sha256"]) for entry in self.facts["inputs"]]
        return settings_chapter(self.facts["command"], options, inputs, self.facts["versions"])

    def refuse(self) -> None:
        """Declare that the run ended with a report about refused logs, which the next run may replace.

        Raises:
            ExportError: As `finish`.
        """
        self._publish({"refused": True})

    def finish(self, result: str, code: int, findings: Sequence[Finding] = ()) -> None:
        """Declare the run finished: its files take their places.

        Args:
            result: Name of the file with its numbers.
            code: Exit code of the command: 0, or 1 where the verdict failed.
            findings: What a person should know about the run.

        Raises:
            ExportError: The folder holds other files of these names, or cannot be written.
        """
        self.note(f"finished, exit code {code}")
        seconds = round(time.monotonic() - self.started, 3)
        keys = ("code", "severity", "where", "joint", "message", "remedy")
        told = [pick(finding, *keys) for finding in findings]
        self._publish({"finished": True, "result": result, "exit_code": code, "seconds": seconds, "findings": told})

    def _publish(self, end: Mapping[str, Any]) -> None:
        files = {file.name: file for file in sorted(self.path.iterdir()) if file.is_file()}
        outputs = {name: file_digest(file) for name, file in files.items() if name not in (LOG, MANIFEST, LOCK)}
        if not self.force:
            _refuse_taken(self.folder, set(outputs) - self.earlier)
        facts = {**self.facts, "finished": False, **end, "outputs": outputs}
        self.write(MANIFEST, json.dumps(facts, indent=1) + "\n")
        self.transaction.commit([*outputs, LOG, MANIFEST], self.earlier - {LOG, MANIFEST})


def open_run(
    request: RunRequest, verb: str, options: Mapping[str, Any], inputs: Sequence[Path], files: Sequence[str]
) -> RunFolder:
    """Start a run in a folder, before anything is computed.

    Args:
        request: The folder.
        verb: What the run does.
        options: Name -> value of every setting, as JSON holds it.
        inputs: Files that the run reads.
        files: Names of the files that the run will write.

    Raises:
        ExportError: A finished run or one of the files is there already, or another process writes the folder.
    """
    out, names = request.path, {*files, *REPORTS, LOG, MANIFEST}
    check_targets(out, names)
    facts = {
        "schema": 1, "verb": verb, "command": request.command or f"Python: {verb}", "arguments": request.arguments,
        "options": options, "versions": versions(),
        "inputs": [{"path": str(path), "sha256": file_digest(path)} for path in dict.fromkeys(inputs)],
    }  # fmt: skip
    transaction = begin(out)
    try:
        earlier = _earlier_files(out, force=request.force)
        _refuse_own_input(out, inputs, names | earlier)
        if not request.force:
            _refuse_taken(out, names - earlier)
        transaction.clear()
        run = RunFolder(folder=out, transaction=transaction, facts=facts, earlier=earlier, force=request.force)
        run.write(MANIFEST, json.dumps({**facts, "finished": False}, indent=1) + "\n")
    except BaseException:
        transaction.discard()
        raise
    run.note(f"started: {facts['command']}")
    return run


def _earlier_files(out: Path, *, force: bool) -> frozenset[str]:
    """Names of the files of an earlier run that a new one may replace: those that nobody has changed since.

    Without ``force`` these are the report and the log of a refused run alone, whatever its record lists: a stranger may
    have written it. With ``force`` a listed file goes only if it has the listed digest, so that a stranger can name no
    file whose contents he does not know.

    Raises:
        ExportError: The run is finished, and its replacement is not forced.
    """
    if not (out / MANIFEST).exists():
        return frozenset()
    try:
        there = read_run(out)
    except DataError:
        if force:
            return frozenset()
        raise
    if there["finished"] and not force:
        remedy = f"Add --force, or choose another folder; dynid rerun {out} repeats the run elsewhere."
        raise ExportError("the folder holds a finished run", path=out, remedy=remedy)
    outputs = {name: digest for name, digest in there.get("outputs", {}).items() if force or name in REPORTS}
    return frozenset({*outputs, MANIFEST, LOG}) - set(changed_files(out, outputs))


def _refuse_taken(out: Path, names: set[str]) -> None:
    """Refuse to overwrite files that no earlier run wrote."""
    taken = sorted(name for name in names if os.path.lexists(out / name))
    if taken:
        raise ExportError(f"{taken[0]} exists already", path=out, remedy="Add --force, or choose another folder.")


def _refuse_own_input(out: Path, inputs: Sequence[Path], names: set[str] | frozenset[str]) -> None:
    """Refuse to replace the run that the command reads."""
    folder = out.resolve()
    replaced = {folder / name for name in names} | ({folder} if (folder / MANIFEST).exists() else set())
    if any(path.resolve() in replaced for path in inputs):
        remedy = "Choose another folder with --out."
        raise ExportError("the command reads the run in this folder, and would replace it", path=out, remedy=remedy)


def rewrite_page(folder: Path, page: Page) -> None:
    """Write the report of a finished run again, and its digests with it.

    Raises:
        DataError: The folder holds no run, or its files do not belong together.
        ExportError: The folder cannot be written.
    """
    facts = read_run(folder)
    with changing(folder) as transaction:
        for name in REPORTS:
            page.write(transaction.stage / name, force=True)
        digests = {name: file_digest(transaction.stage / name) for name in REPORTS}
        facts = {**facts, "outputs": {**facts["outputs"], **digests}}
        write_atomically(transaction.stage / MANIFEST, json.dumps(facts, indent=1) + "\n", force=True)
        transaction.commit([*REPORTS, MANIFEST])


def read_run(folder: str | Path) -> dict[str, Any]:
    """Read ``run.json`` of a folder.

    Raises:
        DataError: There is none, or it is something else.
    """
    folder = Path(folder)
    if folder.is_file():
        raise DataError("this is a file, not the folder of a run", path=folder, remedy=_FOLDER)
    path = folder / MANIFEST
    recover(folder)
    if not os.path.lexists(path):
        if (stage_of(folder) / MANIFEST).exists():
            remedy = "Give its command again."
            raise DataError("the run was interrupted, or is not finished yet", path=folder, remedy=remedy)
        raise DataError("no run is here", path=path, remedy=_FOLDER)
    facts = read_json(path, remedy=_REMEDY, odd_names=True)
    as_record(facts, RunRecord, path=path, remedy=_REMEDY)
    if facts.get("finished") and not {"result", "exit_code"} <= facts.keys():
        raise DataError("a finished run states its result and its exit code", path=path, remedy=_REMEDY)
    return {"finished": False, **facts}


def versions() -> dict[str, str]:
    """Versions of everything that shapes the numbers, by name."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for name in ("dynid", "numpy", "scipy", "llvmlite", "clarabel"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_words(item) for item in value)
    return "" if value is None else str(value)
