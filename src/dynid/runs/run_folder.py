"""A run folder: inputs with their digests, settings, versions, results and a log; enough to repeat the run.

``run.json`` is written when the run starts, and again with ``finished`` as the last file of all. Experiments that were
read and processed are kept in ``cache`` until then, so that an interrupted run continues where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dynid.errors import DataError, ExportError
from dynid.files import file_digest, make_folder, write_atomically
from dynid.findings import Finding
from dynid.processing.experiment import Experiment
from dynid.report.page import Page
from dynid.report.provenance import Settings
from dynid.runs.experiment_file import load_experiment, save_experiment

__all__ = ["REPORTS", "Origin", "RunFolder", "RunRequest", "claim_folder", "open_run", "read_run", "versions"]

SCHEMA = 1
"""Version of ``run.json``."""
REPORTS = ("report.html", "report.md", "report.json")
"""Files of the report of a run."""
KEY_DIGITS = 32
"""Hexadecimal digits of the name of a cached experiment (convention: 128 bits never meet by chance)."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """How a run was asked for: enough to show it to a person, and to repeat it."""

    verb: str
    """Command of the run: identify, load, validate or excite."""
    command: str
    """The command or the call, for people."""
    options: Mapping[str, Any]
    """Name -> value of every setting, as JSON holds it."""
    inputs: Sequence[Path]
    """Files that the run reads."""
    arguments: Sequence[str] | None = None
    """Words of the command line that repeat the run; None where Python asked for it."""

    @classmethod
    def of_call(cls, verb: str, options: Mapping[str, Any], inputs: Sequence[object]) -> Origin:
        """The origin of a run that Python asked for.

        Args:
            verb: What the run does.
            options: Its settings.
            inputs: What it was given; files among it are listed with their digests.
        """
        files = [Path(item).absolute() for item in inputs if isinstance(item, str | Path) and Path(item).exists()]
        return cls(verb=verb, command=f"Python: {verb}", options=dict(options), inputs=files)

    def facts(self) -> dict[str, Any]:
        """The origin as part of ``run.json``."""
        return {
            "schema": SCHEMA,
            "verb": self.verb,
            "command": self.command,
            "arguments": None if self.arguments is None else list(self.arguments),
            "options": dict(self.options),
            "inputs": [{"path": str(path), "sha256": file_digest(path)} for path in dict.fromkeys(self.inputs)],
            "versions": versions(),
        }


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A folder for a run that is yet to start."""

    path: Path
    force: bool = False
    """Whether files in the folder are overwritten."""
    origin: Origin | None = None
    """How the run was asked for; the run describes itself where this is None."""

    @classmethod
    def of(cls, out: RunRequest | str | Path) -> RunRequest:
        """Make a request from the path of a folder; a request is returned unchanged."""
        return out if isinstance(out, RunRequest) else cls(path=Path(out))


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """An open run; a context manager that notes in the log why a run did not finish."""

    path: Path
    facts: dict[str, Any]
    """Content of ``run.json``."""
    overwrite: bool
    """Whether files may exist already: forced, or left by the same run when it was interrupted."""
    is_resumed: bool = False
    """Whether the folder holds the same run, interrupted."""
    started: float = field(default_factory=time.monotonic)
    """Time of the start by the monotonic clock [s]."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.note(f"stopped: {type(error).__name__} {error}".rstrip())

    def report_continuation(self, notice: Callable[[Finding], None]) -> None:
        """Report that an interrupted run continues, if it left anything to continue from."""
        if self.is_resumed and (self.path / "cache").exists():
            message = f"the interrupted run in {self.path} continues"
            notice(Finding(code="continued", severity="note", where="folder", message=message))

    def note(self, text: str) -> None:
        """Add a line to ``log.txt``; a log that cannot be written stops nothing."""
        with (
            suppress(OSError),
            (self.path / "log.txt").open("a", encoding="utf-8", errors="backslashreplace") as stream,
        ):
            stream.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")

    def write(self, name: str, content: str) -> None:
        """Write a file of the run, whole or not at all."""
        write_atomically(self.path / name, content, force=self.overwrite)

    def write_page(self, page: Page) -> None:
        """Write the report in all its forms."""
        for name in REPORTS:
            page.write(self.path / name, force=self.overwrite)

    def settings(self) -> Settings:
        """The section of the report that says how the run was made."""
        options = {name: _words(value) for name, value in self.facts["options"].items()}
        inputs = [(entry["path"], entry["sha256"]) for entry in self.facts["inputs"]]
        return Settings(self.facts["command"], options, inputs, self.facts["versions"])

    def experiment(self, key: Sequence[str], make: Callable[[], Experiment]) -> Experiment:
        """An experiment from the cache, or made and put there.

        Args:
            key: Everything that the experiment depends on.
            make: Reads and processes the log.
        """
        words = json.dumps([*key, self.facts["versions"]["dynid"]])
        file = self.path / "cache" / f"{hashlib.sha256(words.encode()).hexdigest()[:KEY_DIGITS]}.npz"
        with suppress(DataError):
            run = load_experiment(file)
            self.note(f"taken from the cache: {run.source}")
            return run
        run = make()
        self.note(f"read and processed: {run.source}, {run.samples} samples")
        with suppress(ExportError):  # the cache only saves time later
            make_folder(file.parent)
            save_experiment(run, file)
        return run

    def refuse(self) -> None:
        """Declare that the run ended with a report about refused logs, which the next run may replace."""
        facts = {**self.facts, "finished": False, "refused": True}
        write_atomically(self.path / "run.json", json.dumps(facts, indent=1) + "\n", force=True)

    def finish(self, result: str, code: int) -> None:
        """Declare the run finished.

        Args:
            result: Name of the file with its numbers.
            code: Exit code of the command: 0, or 1 where the verdict failed.
        """
        self.note(f"finished, exit code {code}")
        shutil.rmtree(self.path / "cache", ignore_errors=True)
        outputs = {file.name: file_digest(file) for file in sorted(self.path.iterdir()) if file.is_file()}
        for name in ("run.json", "log.txt"):
            outputs.pop(name, None)
        seconds = round(time.monotonic() - self.started, 3)
        done = {"finished": True, "result": result, "exit_code": code, "seconds": seconds, "outputs": outputs}
        write_atomically(self.path / "run.json", json.dumps({**self.facts, **done}, indent=1) + "\n", force=True)


def open_run(request: RunRequest, origin: Origin, files: Sequence[str]) -> RunFolder:
    """Start a run in a folder, before anything is computed.

    Args:
        request: The folder.
        origin: How the run was asked for, where the request does not say.
        files: Names of the files that the run will write.

    Raises:
        ExportError: A finished run or one of the files is there already.
    """
    out, force = request.path, request.force
    facts = (request.origin or origin).facts()
    is_resumed, reports = False, tuple(REPORTS)
    if (out / "run.json").exists() and not force:
        there = read_run(out)
        if there.get("finished"):
            remedy = f"Add --force, or choose another folder; dynid rerun {out} repeats the run elsewhere."
            raise ExportError("the folder holds a finished run", path=out, remedy=remedy)
        is_resumed = all(there.get(name) == facts[name] for name in ("verb", "options", "inputs", "versions"))
        if there.get("refused"):  # only a report was written, which said why
            reports = ()
    taken = [name for name in (*files, *reports) if (out / name).exists()]
    if taken and not (force or is_resumed):
        raise ExportError(f"{taken[0]} exists already", path=out, remedy="Add --force, or choose another folder.")
    make_folder(out)
    state = {"finished": False} if reports else {"finished": False, "refused": True}  # an old report may be replaced
    write_atomically(out / "run.json", json.dumps({**facts, **state}, indent=1) + "\n", force=True)
    overwrite = force or is_resumed or not reports
    run = RunFolder(path=out, facts=facts, overwrite=overwrite, is_resumed=is_resumed)
    run.note(f"{'resumed' if is_resumed else 'started'}: {facts['command']}")
    return run


def claim_folder(out: Path, owner: str, *, force: bool) -> None:
    """Make the folder of a command that regenerates its own files; a folder with other content is not touched.

    Args:
        out: The folder.
        owner: The command, and the subject where it has one: ``reproduce lin1995``.
        force: Whether a folder with other content is used anyway.

    Raises:
        ExportError: The folder holds files that this command did not write.
    """
    mark = out / ".dynid"
    is_foreign = out.is_dir() and any(out.iterdir()) and not (mark.is_file() and mark.read_text() == f"{owner}\n")
    if is_foreign and not force:
        remedy = "Choose an empty or new one, or add --force."
        raise ExportError(f"the folder holds files that dynid {owner} did not write", path=out, remedy=remedy)
    make_folder(out)
    write_atomically(mark, f"{owner}\n", force=True)


def read_run(folder: Path) -> dict[str, Any]:
    """Read ``run.json`` of a folder.

    Raises:
        DataError: There is none, or it is something else.

    Example:
        >>> recipe = dynid.Recipe(selection=None, estimator="wls")
        >>> found = dynid.runs.run_identification(robot, log, recipe, out=folder / "run")
        >>> dynid.runs.read_run(folder / "run")["finished"]
        True
    """
    path = folder / "run.json"
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if facts["schema"] != SCHEMA:
            raise ValueError(f"version {facts['schema']}, this dynid reads {SCHEMA}")
        return {"finished": False, **facts}
    except OSError as error:
        remedy = "Give a folder that dynid identify, load, excite or validate wrote with --out."
        raise DataError(f"no run is here: {error.strerror}", path=path, remedy=remedy) from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DataError(f"not the record of a run: {error}", path=path, remedy="Run the command again.") from error


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
