"""A folder whose files change together, or not at all.

A transaction writes to the hidden folder ``.NAME.dynid`` beside the folder NAME, which stays as it was meanwhile.
`Transaction.commit` lists the files in ``commit.json``, moves them to their places and removes the hidden folder. A
process that dies before that list exists has changed nothing; one that dies after it has its moves finished by the next
call of `recover`. A lock, which ends with its process, tells a dead process from one that still writes.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from dynid.errors import DataError, ExportError
from dynid.files.atomic_files import TEMPORARY, file_digest, make_folder, sync_folder, write_atomically
from dynid.files.records import Digest, FileName, as_record
from dynid.files.small_files import read_json

MANIFEST = "run.json"
"""File of a folder that lists the digests of the others under ``outputs``; it takes its place last."""
LOCK = "lock"
"""Locked file of a hidden folder; it also marks the folder as ours."""
COMMIT = "commit.json"
"""List of the files that take their places: from here on the transaction will be finished by whoever comes."""
ATTEMPTS = 100
"""Attempts to make the hidden folder while others make and remove it (convention)."""
_REMEDY = "Remove the hidden folder."
_held: set[Path] = set()
"""Hidden folders that this process writes: locks of files do not part the threads of one process."""
_holding = threading.Lock()
if hasattr(os, "register_at_fork"):  # the copy of a process must not wait for a thread that it does not have
    os.register_at_fork(before=_holding.acquire, after_in_parent=_holding.release, after_in_child=_holding.release)


class _Plan(Struct, forbid_unknown_fields=True):
    """What the list of the files holds."""

    files: list[FileName]
    obsolete: list[FileName]
    lock: Annotated[str, Meta(pattern=r"\A\d+ \d+\Z")] | None = None


class Manifest(Struct):
    """What a manifest holds that files are checked against."""

    outputs: dict[FileName, Digest]
    finished: bool = False
    refused: bool = False


@dataclass(frozen=True, kw_only=True)
class Transaction:
    """An open transaction; end it by `commit`, `discard` or `release`."""

    folder: Path
    """The folder to be changed, absolute."""
    stage: Path
    """The hidden folder that holds the new files."""
    handle: int
    """Descriptor of the locked file."""

    @property
    def identity(self) -> str:
        """What tells this hidden folder from every copy of it."""
        return _identity(self.stage)

    def clear(self) -> None:
        """Remove what an earlier process left in the hidden folder."""
        _empty(self.stage)

    def commit(self, names: Sequence[str], obsolete: Iterable[str] = ()) -> None:
        """Let the new files take their places.

        Args:
            names: Names of files in the hidden folder, in the order in which they take their places.
            obsolete: Names of files of the folder that are removed.

        Raises:
            ExportError: The system refuses.
        """
        names, obsolete = list(names), list(obsolete)
        check_targets(self.folder, {*names, *obsolete})
        plan = {"files": names, "obsolete": sorted(set(obsolete) - set(names)), "lock": self.identity}
        sync_folder(self.stage)
        write_atomically(self.stage / COMMIT, json.dumps(plan), force=True)
        sync_folder(self.stage)
        with _system_errors(self.folder):
            _finish(self.folder, self.stage)
        self.release()

    @property
    def is_committed(self) -> bool:
        """Whether the files take their places, now or by the next process that looks."""
        return (self.stage / COMMIT).exists()

    def discard(self) -> None:
        """Remove the hidden folder; the folder stays as it was."""
        with contextlib.suppress(OSError):
            _remove(self.stage)
        self.release()

    def release(self) -> None:
        """Leave the hidden folder to a later process; nothing happens if the transaction has ended."""
        with _holding:
            if self.stage in _held:
                _held.discard(self.stage)
                os.close(self.handle)


def begin(folder: str | os.PathLike[str]) -> Transaction:
    """Start to change a folder; what an interrupted process left in the hidden folder is still there.

    Raises:
        ExportError: Another process writes the folder, or the hidden folder is not ours or cannot be made.
    """
    target = Path(folder).resolve()
    recover(target)
    stage = stage_of(target)
    make_folder(target.parent)
    with _system_errors(target):
        if target.exists() and not target.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "it is a file")
        for _ in range(ATTEMPTS):
            with contextlib.suppress(FileExistsError):
                stage.mkdir(mode=0o700)
                with contextlib.suppress(FileNotFoundError):  # another process took it for a dead one's
                    (stage / LOCK).touch(mode=0o600)
            handle = _take(stage)
            if handle is None:
                break
            if handle >= 0:
                _sweep(stage)
                return Transaction(folder=target, stage=stage, handle=handle)
    remedy = "Wait until it has ended, or choose another folder."
    raise ExportError("another process of dynid is writing this folder", path=target, remedy=remedy)


@contextlib.contextmanager
def changing(folder: str | os.PathLike[str]) -> Iterator[Transaction]:
    """A transaction with an empty hidden folder, to be committed; nothing changes where that fails."""
    transaction = begin(folder)
    try:
        transaction.clear()
        yield transaction
    except BaseException:
        (transaction.release if transaction.is_committed else transaction.discard)()
        raise


def check_targets(folder: Path, names: Iterable[str]) -> None:
    """Check that files can take their places, before the first one does: afterwards there is no way back.

    Raises:
        ExportError: The folder cannot be written, or a folder or a device is where a file should be.
    """
    if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
        remedy = "Choose another with --out, or make it writable."
        raise ExportError("the folder cannot be written: permission denied", path=folder, remedy=remedy)
    for name in sorted(names):
        with contextlib.suppress(OSError):
            if not stat.S_ISREG(mode := (folder / name).lstat().st_mode) and not stat.S_ISLNK(mode):
                remedy = "Remove it, or choose another folder with --out."
                raise ExportError("a file of the run would take its place, and it is no file", path=folder / name,
                                  remedy=remedy)  # fmt: skip


def recover(folder: str | os.PathLike[str]) -> None:
    """Finish the moves of a process that died among them; otherwise nothing happens.

    Raises:
        ExportError: The system refuses, or the hidden folder is not ours.
    """
    target = Path(folder).resolve()
    stage = stage_of(target)
    if not os.path.lexists(stage / COMMIT):
        return
    with _system_errors(target):
        handle = _take(stage)
        if handle is None or handle < 0:  # the process is alive and moves them itself
            return
        try:
            _finish(target, stage)
        finally:
            Transaction(folder=target, stage=stage, handle=handle).release()


def check_listed(file: Path) -> None:
    """Check that a file belongs to the finished run in its folder, and that all files there belong together.

    A file without a manifest beside it passes, and so does a missing one, for its reader to say so; other files of the
    run may have been removed.

    Raises:
        DataError: The manifest does not list the file or cannot be read, or a file was changed or is of another run.
    """
    recover(file.parent)
    manifest = file.parent / MANIFEST
    if not os.path.lexists(manifest) or not os.path.lexists(file):
        return
    remedy = f"Move {file.name} to a folder of its own, or run the command again."
    content = read_json(manifest, odd_names=True, remedy=remedy)
    facts = as_record(content, Manifest, path=manifest, remedy=remedy)
    if not (facts.finished or facts.refused):
        raise DataError("the run is not finished", path=manifest, place="finished", remedy=remedy)
    if file.name not in facts.outputs:
        raise DataError(f"the {MANIFEST} beside it does not list the file", path=file, remedy=remedy)
    for name in changed_files(file.parent, facts.outputs):
        remedy = f"Run the command again; if you changed the file yourself, remove {MANIFEST}."
        raise DataError(f"the file is not the one that {MANIFEST} lists", path=file.parent / name, remedy=remedy)


def changed_files(folder: Path, digests: Mapping[str, str]) -> list[str]:
    """Names of the files in a folder whose digests are not the listed ones; missing files are left out."""
    there = [(folder / name, digest) for name, digest in digests.items() if os.path.lexists(folder / name)]
    return [path.name for path, digest in there if not path.is_file() or file_digest(path) != digest]


def earlier_files(folder: Path, manifest: str) -> set[str]:
    """Names of the files that a manifest in a folder lists, without those that were changed since."""
    if not os.path.lexists(folder / manifest):
        return set()
    remedy = "Remove it, and the files beside it that dynid wrote."
    content = read_json(folder / manifest, odd_names=True, remedy=remedy)
    outputs = as_record(content, Manifest, path=folder / manifest, remedy=remedy).outputs
    return set(outputs) - set(changed_files(folder, outputs))


def stage_of(folder: Path) -> Path:
    """The hidden folder of a folder."""
    folder = folder.resolve()
    return folder.parent / f".{folder.name}.dynid"


def _take(stage: Path) -> int | None:
    """Lock a hidden folder.

    Returns:
        A descriptor; None if another one holds the lock; -1 if the folder has gone meanwhile.

    Raises:
        ExportError: The folder is not ours.
    """
    with _holding:
        if stage in _held:
            return None
        try:
            facts = stage.lstat()
            is_ours = stat.S_ISDIR(facts.st_mode) and getattr(os, "getuid", lambda: facts.st_uid)() == facts.st_uid
            handle = os.open(stage / LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)) if is_ours else -1
        except FileNotFoundError:
            if stage.is_dir() and any(stage.iterdir()):
                handle = -1
            else:  # its maker is about to mark it, or it has gone
                with contextlib.suppress(OSError):
                    stage.rmdir()
                return -1
        if handle < 0:
            raise ExportError(
                "this is no folder that dynid made for you, and its name is needed",
                path=stage,
                remedy="Remove it, or choose another folder for the run.",
            )
        if not _lock(handle):
            os.close(handle)
            return None
        try:
            is_current = os.path.samestat(os.fstat(handle), (stage / LOCK).stat())
        except FileNotFoundError:
            is_current = False
        if not is_current:
            os.close(handle)
            return -1
        _held.add(stage)
        return handle


def _lock(handle: int) -> bool:
    """Lock an open file; False if another process holds it. Systems without locks part no processes."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN)
    return True


def _finish(folder: Path, stage: Path) -> None:
    """Move the listed files to their places, as far as they are not there yet, and remove the hidden folder."""
    content = read_json(stage / COMMIT, error=ExportError, remedy=_REMEDY)
    plan = as_record(content, _Plan, path=stage / COMMIT, error=ExportError, remedy=_REMEDY)
    if plan.lock != _identity(stage):
        raise ExportError("no run of dynid wrote this list here", path=stage / COMMIT, remedy=_REMEDY)
    names, obsolete = plan.files, plan.obsolete
    make_folder(folder)
    for name in obsolete:
        with contextlib.suppress(FileNotFoundError):
            (folder / name).unlink()
    for name in names:
        if os.path.lexists(stage / name):
            _move(stage / name, folder / name)
    sync_folder(folder)
    _remove(stage)
    sync_folder(folder.parent)


def _identity(stage: Path) -> str:
    """What tells the lock of a hidden folder from every copy: nobody can plan it in a folder that he hands over."""
    facts = (stage / LOCK).stat()
    return f"{facts.st_ino} {facts.st_ctime_ns}"


def _sweep(stage: Path) -> None:
    """Remove the temporary files that a dead process left; ours alone writes here now."""
    for entry in stage.rglob(f"*{TEMPORARY}"):
        entry.unlink()


def _empty(stage: Path) -> None:
    """Remove everything but the lock."""
    for entry in stage.iterdir():
        if entry.name == LOCK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _remove(stage: Path) -> None:
    """Remove a hidden folder, its mark last."""
    _empty(stage)
    (stage / LOCK).unlink()
    stage.rmdir()


def _move(source: Path, target: Path) -> None:
    """Rename a file; where the target is on another file system, copy it whole."""
    try:
        os.replace(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        write_atomically(target, source.read_bytes(), force=True)
        source.unlink()


@contextlib.contextmanager
def _system_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        remedy = "Choose another with --out, or check that the folder above it is writable and has room."
        raise ExportError(f"the folder cannot be written: {reason}", path=folder, remedy=remedy) from error
