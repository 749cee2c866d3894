"""A run folder: inputs with their digests, settings, versions, results and a log; enough to repeat the run.

A run is one transaction: all its files are written to a hidden folder, and take their places together when the run
finishes; an earlier run stays until then, and a run that was interrupted begins anew.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, Self

from msgspec import Meta, Struct

from dynid.errors import DataError, ExportError
from dynid.findings import Finding
from dynid.plain_data import pick
from dynid.report.page import Chapter, Page
from dynid.report.provenance import settings_chapter
from dynid.safe_files import file_digest, write_atomically
from dynid.safe_files.records import Digest, FileName, Text, as_record
from dynid.safe_files.small_files import read_json
from dynid.safe_files.transaction import (
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
from dynid.safe_text import one_line, visible_text

REPORTS = ("report.html", "report.md", "report.json")
"""Files of the report of a run: one report in three forms."""
WRITTEN = re.compile(
    r"(report|result|plan|load|fleet|drift|watch|validation|servos|isaac_actuators)\.json|report\.(html|md)|recipe\.toml"
    r"|(summary|load|plan|not_in_the_files)\.txt|trajectory\.(csv|yaml|script)|commands\.csv|servos\.(urdf|xml)"
    r"|[^/]+_(identified|with_load)\.(urdf|xml)"
)
"""Names of the files that runs write; a run removes no file of another name, whatever a record lists."""
LOG = "log.txt"
"""Name of the log of a run."""
LOG_ENCODING: dict[str, Any] = {"encoding": "utf-8", "errors": "backslashreplace"}
"""Arguments with which the log is opened: names of files may hold any bytes."""
_RUN_AGAIN = "Run the command again."
_GIVE_FOLDER = "Give a folder that dynid identify, load, excite or validate wrote with --out."


class InputFile(Struct, forbid_unknown_fields=True):
    """A file that a run read."""

    path: Text
    """Absolute path."""
    sha256: Digest
    """Digest of the content before the run."""


class RunRecord(Struct, kw_only=True, forbid_unknown_fields=True):
    """Content of ``run.json``."""

    schema: Literal[1]
    """Version of the form of the file."""
    verb: Annotated[str, Meta(pattern=r"\A[a-z_-]{1,40}\Z")]
    """Verb of the command, such as ``identify``."""
    command: Text
    """The command, for people."""
    arguments: list[Text] | None
    """Words of the command line that repeat the run; None where Python asked for it."""
    options: dict[str, Any]
    """Name -> value of all settings."""
    inputs: list[InputFile]
    """Files that the run read."""
    versions: dict[str, Text]
    """Versions of Python and of the libraries that shape the numbers."""
    finished: bool = False
    """Whether the run finished."""
    refused: bool = False
    """Whether the run ended with a report about refused logs."""
    result: FileName | None = None
    """File that holds the numbers; None unless the run finished."""
    exit_code: Annotated[int, Meta(ge=0, le=255)] | None = None
    """Exit code of the command; None unless the run finished."""
    seconds: Annotated[float, Meta(ge=0.0, le=1e12)] | None = None
    """Duration of the run [s]."""
    outputs: dict[FileName, Digest] = {}
    """Files that the run wrote, with their digests, without its log."""
    log: Digest | None = None
    """Digest of the log; None unless the run finished or was refused."""
    findings: list[dict[str, Text | None]] = []
    """All findings of the run."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A request to make a run folder: where it is to be, and the command that asks for it."""

    path: Path
    """The folder."""
    force: bool = False
    """Whether files in the folder are overwritten."""
    command: str = ""
    """The command, for people; empty where Python asks for the run."""
    arguments: Sequence[str] | None = None
    """Words of the command line that repeat the run; None where Python asks for it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Name -> value of options of the command that are no fields of the task, as JSON holds it."""
    inputs: Sequence[Path] = ()
    """Files that the command read and that are no fields of the task."""

    @classmethod
    def of(cls, out: RunRequest | str | Path) -> RunRequest:
        """Make a request from the path of a folder; a request is returned unchanged."""
        return out if isinstance(out, RunRequest) else cls(path=Path(out))


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """The folder of a run that has started; a context manager that leaves nothing behind where the run fails."""

    folder: Path
    """Folder of the run, as it was asked for; its files appear there when the run finishes."""
    transaction: Transaction
    """Moves all files from the hidden folder to their places at once."""
    facts: dict[str, Any]
    """Verb, command, options, inputs and versions, as ``run.json`` holds them; digests of inputs are those before
    anything was read."""
    earlier: frozenset[str] = frozenset()
    """Names of the files of an earlier run in the folder, which this run may replace."""
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
            self.transaction.release()
        else:
            self.transaction.discard()

    def note(self, text: str) -> None:
        """Add a line with the time to ``log.txt``; an error while writing it is ignored."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)  # links could lead elsewhere
        with suppress(OSError), open(os.open(self.path / LOG, flags, 0o666), "a", **LOG_ENCODING) as stream:
            stream.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {one_line(text)}\n")

    def write(self, name: str, content: str) -> None:
        """Write a file of the run, whole or not at all; texts for people hold no character that steers a terminal."""
        shown = visible_text(content) if name.endswith((".txt", ".md")) else content
        write_atomically(self.path / name, shown, force=True)

    def write_page(self, page: Page) -> None:
        """Write the report in all its forms."""
        for name in REPORTS:
            page.write(self.path / name, force=True)

    def settings(self) -> Chapter:
        """Make the chapter of the report that says how the run was made."""
        options = {name: _option_text(value) for name, value in self.facts["options"].items()}
        inputs = [(entry["path"], entry["sha256"]) for entry in self.facts["inputs"]]
        return settings_chapter(self.facts["command"], options, inputs, self.facts["versions"])

    def refuse(self) -> None:
        """End the run with its report about refused logs alone, which the next run may replace.

        Raises:
            ExportError: As `finish`.
        """
        self._publish({"refused": True})

    def finish(self, result: str, code: int, findings: Sequence[Finding] = ()) -> None:
        """Finish the run: its files take their places.

        Args:
            result: Name of the file that holds the numbers.
            code: Exit code of the command: 0, or 1 where the verdict failed.
            findings: All findings of the run.

        Raises:
            ExportError: The folder holds other files of these names, or cannot be written.
        """
        self.note(f"finished, exit code {code}")
        seconds = round(time.monotonic() - self.started, 3)
        keys = ("code", "severity", "where", "joint", "message", "remedy")
        listed = [pick(finding, *keys) for finding in findings]
        self._publish({"finished": True, "result": result, "exit_code": code, "seconds": seconds, "findings": listed})

    def _publish(self, end: Mapping[str, Any]) -> None:
        """Complete ``run.json`` with the end of the run and the digests of its files, and move all to their places."""
        files = {file.name: file for file in sorted(self.path.iterdir()) if file.is_file()}
        outputs = {name: file_digest(file) for name, file in files.items() if name not in (LOG, MANIFEST, LOCK)}
        if not self.force:
            _refuse_taken(self.folder, {*outputs, LOG} - self.earlier)
        log = file_digest(files[LOG]) if LOG in files else None
        facts = {**self.facts, "finished": False, **end, "outputs": outputs, "log": log}
        self.write(MANIFEST, json.dumps(facts, indent=1) + "\n")
        self.transaction.commit([*outputs, LOG, MANIFEST], self.earlier - {LOG, MANIFEST})


def open_run(
    request: RunRequest, verb: str, options: Mapping[str, Any], inputs: Sequence[Path], files: Sequence[str]
) -> RunFolder:
    """Start a run in a folder, before anything is computed.

    Args:
        request: The folder.
        verb: Verb of the command, such as ``identify``.
        options: Name -> value of every setting, as JSON holds it.
        inputs: Files that the run reads.
        files: Names of the files that the run will write.

    Raises:
        ExportError: A finished run or one of the files is there already, or another process writes the folder.
    """
    out = request.path
    names = {*files, *REPORTS, LOG, MANIFEST}
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
    """Find the files of an earlier run that a new one may replace: those that nobody has changed since.

    A stranger may have written the record. So a listed file goes only if it has the listed digest and a name of
    `WRITTEN`, and without ``force`` only the reports and the log.

    Raises:
        ExportError: The run is finished, and its replacement is not forced.
    """
    if not (out / MANIFEST).exists():
        return frozenset()
    try:
        earlier = read_run(out)
    except DataError:
        if force:
            return frozenset()
        raise
    if earlier["finished"] and not force:
        remedy = f"Add --force, or choose another folder; dynid rerun {out} repeats the run elsewhere."
        raise ExportError("the folder holds a finished run", path=out, remedy=remedy)
    listed = {**earlier.get("outputs", {}), LOG: earlier.get("log")}
    goes = {name: listed[name] for name in listed if name in (*REPORTS, LOG) or (force and WRITTEN.fullmatch(name))}
    return frozenset({*goes, MANIFEST}) - set(changed_files(out, goes))


def _refuse_taken(out: Path, names: set[str]) -> None:
    """Refuse to overwrite files of these names."""
    existing = sorted(name for name in names if os.path.lexists(out / name))
    if existing:
        raise ExportError(f"{existing[0]} exists already", path=out, remedy="Add --force, or choose another folder.")


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
        raise DataError("this is a file, not the folder of a run", path=folder, remedy=_GIVE_FOLDER)
    path = folder / MANIFEST
    recover(folder)  # a commit that a killed process began is completed
    if not os.path.lexists(path):
        if (stage_of(folder) / MANIFEST).exists():
            remedy = "Give its command again."
            raise DataError("the run was interrupted, or is not finished yet", path=folder, remedy=remedy)
        raise DataError("no run is here", path=path, remedy=_GIVE_FOLDER)
    facts = read_json(path, remedy=_RUN_AGAIN, odd_names=True)
    as_record(facts, RunRecord, path=path, remedy=_RUN_AGAIN)
    if facts.get("finished") and not {"result", "exit_code"} <= facts.keys():
        raise DataError("a finished run states its result and its exit code", path=path, remedy=_RUN_AGAIN)
    return {"finished": False, **facts}


def versions() -> dict[str, str]:
    """Collect the versions of Python and of the libraries that shape the numbers, by name."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for name in ("dynid", "numpy", "scipy", "llvmlite", "clarabel"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _option_text(value: Any) -> str:
    """Write the value of an option for the report."""
    if isinstance(value, list):
        return ", ".join(_option_text(item) for item in value)
    return "" if value is None else str(value)
