"""A run on disk: inputs with their digests, settings, versions, results and a log; enough to make it again.

``run.json`` is written when the run starts and again, with ``finished``, as the last file of all. Experiments that were
read and processed are kept in ``cache`` until then, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid.cli.common import make_folder
from dynid.errors import DataError, ExportError
from dynid.files import write_atomically

if TYPE_CHECKING:
    from dynid.processing.experiment import Experiment
    from dynid.report.page import Page
    from dynid.report.provenance import Settings

__all__ = ["RunFolder", "claim_folder", "open_run", "read_run", "sha256", "versions"]

SCHEMA = 1
NOT_SETTINGS = ("out", "force", "as_json")
REPORTS = ("report.html", "report.md", "report.json")


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """An open run."""

    path: Path
    facts: dict[str, Any]
    """What ``run.json`` says."""
    overwrite: bool
    """Whether files may stand there already: forced, or of the same run that was interrupted."""
    resumed: bool = False
    """Whether it goes on with the same run that was interrupted."""
    started: float = field(default_factory=time.monotonic)

    def note(self, text: str) -> None:
        """Add a line to ``log.txt``; a log that cannot be written stops nothing."""
        with (
            suppress(OSError),
            (self.path / "log.txt").open("a", encoding="utf-8", errors="backslashreplace") as stream,
        ):
            stream.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")

    def note_failure(self) -> None:
        """Add to the log why the run did not finish, where it ends in an error."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, SystemExit):
            self.note(f"stopped: {type(error).__name__} {error}".rstrip())

    def write(self, name: str, content: str) -> None:
        """Write a file of the run, whole or not at all."""
        write_atomically(self.path / name, content, force=self.overwrite)

    def write_page(self, page: Page) -> None:
        """Write the report in all its forms."""
        for name in REPORTS:
            page.write(self.path / name, force=self.overwrite)

    def settings(self) -> Settings:
        """The section of the report that says how it was made."""
        from dynid.report.provenance import Settings

        options = {name: _words(value) for name, value in self.facts["options"].items()}
        inputs = [(entry["path"], entry["sha256"]) for entry in self.facts["inputs"]]
        return Settings(self.facts["command"], options, inputs, self.facts["versions"])

    def experiment(self, key: Sequence[str], make: Callable[[], Experiment]) -> Experiment:
        """An experiment from the cache, or made and put there.

        Args:
            key: Everything it depends on.
            make: Reads and processes the log.
        """
        from dynid.cli.experiment_file import load_experiment, save_experiment

        digest = hashlib.sha256(json.dumps([*key, self.facts["versions"]["dynid"]]).encode()).hexdigest()[:32]
        file = self.path / "cache" / f"{digest}.npz"
        with suppress(DataError):
            run = load_experiment(file)
            self.note(f"taken from the cache: {run.source}")
            return run
        run = make()
        self.note(f"read and processed: {run.source}, {run.samples} samples")
        with suppress(ExportError):  # only to save time later
            make_folder(file.parent)
            save_experiment(run, file)
        return run

    def finish(self, result: str, code: int) -> None:
        """Declare the run finished: ``result`` names the file with its numbers."""
        self.note(f"finished, exit code {code}")
        shutil.rmtree(self.path / "cache", ignore_errors=True)
        outputs = {file.name: sha256(file) for file in sorted(self.path.iterdir()) if file.is_file()}
        for name in ("run.json", "log.txt"):
            outputs.pop(name, None)
        seconds = round(time.monotonic() - self.started, 3)
        done = {"finished": True, "result": result, "exit_code": code, "seconds": seconds, "outputs": outputs}
        write_atomically(self.path / "run.json", json.dumps({**self.facts, **done}, indent=1) + "\n", force=True)


def open_run(out: Path, files: Sequence[str], *, force: bool) -> RunFolder:
    """Start a run of the present command in a folder, before anything is computed.

    Args:
        out: The folder.
        files: Names that the run will write.
        force: Overwrite what stands there.

    Raises:
        ExportError: A finished run or one of the files stands there.
    """
    facts = _facts(click.get_current_context())
    resumed = False
    if (out / "run.json").exists() and not force:
        there = read_run(out)
        if there.get("finished"):
            remedy = f"Add --force, or choose another folder; dynid rerun {out} makes it again elsewhere."
            raise ExportError("the folder holds a finished run", path=out, remedy=remedy)
        resumed = all(there.get(name) == facts[name] for name in ("verb", "options", "inputs", "versions"))
    taken = [name for name in (*files, *REPORTS) if (out / name).exists()]
    if taken and not (force or resumed):
        raise ExportError(f"{taken[0]} is there already", path=out, remedy="Add --force, or choose another folder.")
    make_folder(out)
    write_atomically(out / "run.json", json.dumps({**facts, "finished": False}, indent=1) + "\n", force=True)
    run = RunFolder(path=out, facts=facts, overwrite=force or resumed, resumed=resumed)
    run.note(f"{'resumed' if resumed else 'started'}: {facts['command']}")
    click.get_current_context().call_on_close(run.note_failure)
    if resumed and (out / "cache").exists():
        click.echo(f"going on with the interrupted run in {out}", err=True)
    return run


def claim_folder(out: Path, *, force: bool, what: str = "") -> None:
    """Make the folder of a verb that regenerates its own files.

    A folder that the user names and that has anything else in it, of the same verb about another thing too, is not
    touched.

    Raises:
        ExportError: The folder holds files that this verb did not write.
    """
    ctx = click.get_current_context()
    verb, mark = f"{ctx.info_name} {what}".strip(), out / ".dynid"
    ours = ctx.get_parameter_source("out") is click.core.ParameterSource.DEFAULT
    theirs = out.is_dir() and any(out.iterdir()) and not (mark.is_file() and mark.read_text() == f"{verb}\n")
    if theirs and not (force or ours):
        remedy = "Choose an empty or new one, or add --force."
        raise ExportError(f"the folder holds what dynid {verb} did not write", path=out, remedy=remedy)
    make_folder(out)
    write_atomically(mark, f"{verb}\n", force=True)


def read_run(folder: Path) -> dict[str, Any]:
    """What ``run.json`` of a folder says.

    Raises:
        DataError: There is none, or it is something else.
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
        raise DataError(f"not the record of a run: {error}", path=path, remedy="Run the verb again.") from error


def _facts(ctx: click.Context) -> dict[str, Any]:
    command = ctx.command
    chosen = {p.name: ctx.params[p.name] for p in command.params if p.name in ctx.params and p.name not in NOT_SETTINGS}
    given = [(p, chosen[p.name]) for p in command.params if p.name in chosen]
    inputs = dict.fromkeys(path for _, value in given for path in _paths(value))
    return {
        "schema": SCHEMA,
        "verb": ctx.info_name,
        "command": shlex.join(["dynid", str(ctx.info_name), *_arguments(given, str), *_place(ctx)]),
        "arguments": _arguments(given, _absolute),
        "options": {str(name): _plain(value) for name, value in chosen.items()},
        "inputs": [{"path": str(path), "sha256": sha256(path)} for path in inputs],
        "versions": versions(),
    }


def _arguments(given: Sequence[tuple[click.Parameter, Any]], text: Callable[[Any], str]) -> list[str]:
    """The words of the command line that lead to these values; options first, so that many logs can follow."""
    words: list[str] = []
    for parameter, value in sorted(given, key=lambda pair: isinstance(pair[0], click.Argument)):
        values = value if isinstance(value, tuple) else () if value is None else (value,)
        if isinstance(parameter, click.Argument):
            words += [text(item) for item in values]
        elif isinstance(value, bool):
            words += [parameter.opts[0]] if value else list(parameter.secondary_opts[:1])
        else:
            words += [word for item in values for word in (parameter.opts[0], text(item))]
    return words


def _place(ctx: click.Context) -> list[str]:
    """The words that name the folder: no setting, but without them the command is not whole."""
    return ["--out", str(ctx.params["out"])] if ctx.params.get("out") is not None else []


def _paths(value: Any) -> list[Path]:
    """The files and folders among a parameter's values."""
    values = value if isinstance(value, tuple) else (value,)
    return [Path(item).absolute() for item in values if isinstance(item, str | Path) and Path(item).exists()]


def _absolute(value: Any) -> str:
    return str(Path(value).absolute()) if isinstance(value, str | Path) and Path(value).exists() else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return _absolute(value) if isinstance(value, str | Path) else value


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_words(item) for item in value)
    return "" if value is None else str(value)


def sha256(path: Path) -> str:
    """Digest of a file's bytes; of a folder's files, by name."""
    try:
        if path.is_dir():
            parts = [f"{file.name} {sha256(file)}" for file in sorted(path.iterdir()) if file.is_file()]
            return hashlib.sha256("\n".join(parts).encode(errors="surrogateescape")).hexdigest()
        facts = path.stat()
        return _file_digest(path, facts.st_mtime_ns, facts.st_size)
    except OSError as error:
        raise DataError(f"it cannot be read: {error.strerror}", path=path, remedy="Check the permissions.") from error


@lru_cache
def _file_digest(path: Path, changed_ns: int, size: int) -> str:
    """Digest of a file as it is at that time: large logs are read for it once."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """Of everything that shapes the numbers."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for name in ("dynid", "numpy", "scipy", "llvmlite", "clarabel"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
