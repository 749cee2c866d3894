"""Change several files of a folder together, or not at all: `begin`, `Transaction`, `recover`.

Commands write their run folders in this way, and `dynid.export` its C packages.

1. `begin` makes a hidden folder ``.NAME.dynid``, the *stage*, next to the folder NAME, and locks it. The system ends
   the lock with its process, so that a lock tells a process that still writes from one that died.
2. The caller writes the new files to the stage. The folder NAME does not change meanwhile.
3. `Transaction.commit` writes the list of these files to ``commit.json`` in the stage, moves the files to the folder
   NAME and removes the stage.

If a process dies before ``commit.json`` exists, nothing has changed; if it dies later, the next call of `recover`
finishes its moves. The folder's *manifest* ``run.json`` lists the digests of the others; `check_listed` compares them.
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
from dynid.safe_files.atomic_files import TEMPORARY, file_digest, make_folder, sync_folder, write_atomically
from dynid.safe_files.records import Digest, FileName, as_record
from dynid.safe_files.small_files import read_json

MANIFEST = "run.json"
"""File of a folder that lists the digests of the others under ``outputs``; it is moved last."""
LOCK = "lock"
"""Locked file in a stage; it also marks the folder as one that dynid made."""
COMMIT = "commit.json"
"""File of a stage with the list of files to move. Once it exists, the files will be moved, if need be by another
process."""
ATTEMPTS = 100
"""Number of attempts to make and lock a stage while other processes make and remove theirs (convention)."""
_REMEDY = "Remove the hidden folder."
_held: set[Path] = set()
"""Stages that this process has locked. The system grants a process a lock on a file that it has locked already, so this
set keeps the threads of one process apart."""
_holding = threading.Lock()
"""Guards `_held`."""
if hasattr(os, "register_at_fork"):  # a fork that copies a locked lock would leave it locked in the copy for ever
    os.register_at_fork(before=_holding.acquire, after_in_parent=_holding.release, after_in_child=_holding.release)


class _Plan(Struct, forbid_unknown_fields=True):
    """Content of ``commit.json``."""

    files: list[FileName]
    """Files to move, in this order."""
    obsolete: list[FileName]
    """Files of the folder to remove."""
    lock: Annotated[str, Meta(pattern=r"\A\d+ \d+\Z")] | None = None
    """`Transaction.identity` of the stage that the plan was written for."""


class Manifest(Struct):
    """The part of a manifest that files are checked against; it may have other fields."""

    outputs: dict[FileName, Digest]
    """Name of a file -> its digest."""
    finished: bool = False
    """Whether the run has ended with a result."""
    refused: bool = False
    """Whether the run has ended without a result, because the input was refused."""


@dataclass(frozen=True, kw_only=True)
class Transaction:
    """An open transaction; end it by `commit`, `discard` or `release`."""

    folder: Path
    """The folder to be changed, absolute."""
    stage: Path
    """The hidden folder that holds the new files."""
    handle: int
    """Descriptor of the locked file `LOCK`; closing it ends the lock."""

    @property
    def identity(self) -> str:
        """A text that identifies this stage; a copy of the stage has another one."""
        return _identity(self.stage)

    def clear(self) -> None:
        """Remove what an earlier process left in the stage."""
        _empty(self.stage)

    def commit(self, names: Sequence[str], obsolete: Iterable[str] = ()) -> None:
        """Move the new files to their places.

        Args:
            names: Names of files in the hidden folder, in the order in which they take their places.
            obsolete: Names of files of the folder that are removed.

        Raises:
            ExportError: The system refuses.
        """
        names = list(names)
        obsolete = list(obsolete)
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
        """Whether the files will be moved, by this process or by the next one that calls `recover`."""
        return (self.stage / COMMIT).exists()

    def discard(self) -> None:
        """Remove the hidden folder; the folder stays as it was."""
        with contextlib.suppress(OSError):
            _remove(self.stage)
        self.release()

    def release(self) -> None:
        """Unlock the stage and leave it to a later process; nothing happens if the transaction has ended."""
        with _holding:
            if self.stage in _held:
                _held.discard(self.stage)
                os.close(self.handle)


def begin(folder: str | os.PathLike[str]) -> Transaction:
    """Start to change a folder. What an interrupted process left in the stage is still there; see `clear`.

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
                with contextlib.suppress(FileNotFoundError):  # another process took it for abandoned and removed it
                    (stage / LOCK).touch(mode=0o600)
            handle = _take(stage)
            if handle is None:  # another process or thread has it
                break
            if handle >= 0:  # locked; -1: it was removed meanwhile, try again
                _sweep(stage)
                return Transaction(folder=target, stage=stage, handle=handle)
    remedy = "Wait until it has ended, or choose another folder."
    raise ExportError("another process of dynid is writing this folder", path=target, remedy=remedy)


@contextlib.contextmanager
def changing(folder: str | os.PathLike[str]) -> Iterator[Transaction]:
    """A transaction with an empty stage for a ``with`` block, which must call `commit`; an error discards it."""
    transaction = begin(folder)
    try:
        transaction.clear()
        yield transaction
    except BaseException:
        if transaction.is_committed:  # an error while files were moved: the next `recover` finishes the moves
            transaction.release()
        else:
            transaction.discard()
        raise


def check_targets(folder: Path, names: Iterable[str]) -> None:
    """Check that files can be moved into a folder. `commit` calls this first, because it cannot undo a move.

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
    """Finish the moves of a process that died while it moved files; otherwise nothing happens.

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
    """Check that a file belongs to the finished run in its folder, and that all files of the run are unchanged.

    A file in a folder without manifest passes, and so does a missing file, which its reader will report. Other files of
    the run may have been removed.

    Raises:
        DataError: The manifest does not list the file or cannot be read, or a file was changed or is of another run.
    """
    recover(file.parent)
    manifest = file.parent / MANIFEST
    if not os.path.lexists(manifest):
        return
    remedy = f"Move {file.name} to a folder of its own, or run the command again."
    content = read_json(manifest, odd_names=True, remedy=remedy)
    facts = as_record(content, Manifest, path=manifest, remedy=remedy)
    if facts.refused and file.name not in facts.outputs:
        remedy = "Its report.html says why; mend that, and give its command again."
        raise DataError("the run was refused and has no result", path=file.parent, remedy=remedy)
    if not os.path.lexists(file):
        return
    if not (facts.finished or facts.refused):
        raise DataError("the run is not finished", path=manifest, place="finished", remedy=remedy)
    if file.name not in facts.outputs:
        raise DataError(f"the {MANIFEST} beside it does not list the file", path=file, remedy=remedy)
    for name in changed_files(file.parent, facts.outputs):
        remedy = f"Run the command again; if you changed the file yourself, remove {MANIFEST}."
        raise DataError(f"the file is not the one that {MANIFEST} lists", path=file.parent / name, remedy=remedy)


def changed_files(folder: Path, digests: Mapping[str, str]) -> list[str]:
    """Names of the files in a folder whose digests are not the listed ones; missing files are left out."""
    present = [(folder / name, digest) for name, digest in digests.items() if os.path.lexists(folder / name)]
    return [path.name for path, digest in present if not path.is_file() or file_digest(path) != digest]


def earlier_files(folder: Path, manifest: str) -> set[str]:
    """Names of the files that a manifest in a folder lists, without those that were changed since."""
    if not os.path.lexists(folder / manifest):
        return set()
    remedy = "Remove it, and the files beside it that dynid wrote."
    content = read_json(folder / manifest, odd_names=True, remedy=remedy)
    outputs = as_record(content, Manifest, path=folder / manifest, remedy=remedy).outputs
    return set(outputs) - set(changed_files(folder, outputs))


def stage_of(folder: Path) -> Path:
    """Path of the stage of a folder."""
    folder = folder.resolve()
    return folder.parent / f".{folder.name}.dynid"


def _take(stage: Path) -> int | None:
    """Lock a stage, that is the file `LOCK` in it.

    Another process may make or remove the stage at any moment between two of these calls of the system.

    Returns:
        A descriptor; None if another process or thread holds the lock; -1 if the stage is gone, so that the caller may
        make it again.

    Raises:
        ExportError: The folder is not ours.
    """
    with _holding:
        if stage in _held:
            return None
        try:
            facts = stage.lstat()
            # a folder, no link, that belongs to this user
            is_ours = stat.S_ISDIR(facts.st_mode) and getattr(os, "getuid", lambda: facts.st_uid)() == facts.st_uid
            handle = os.open(stage / LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)) if is_ours else -1
        except FileNotFoundError:
            if stage.is_dir() and any(stage.iterdir()):  # a folder with files but no lock is none of dynid's
                handle = -1
            else:  # the process that made it has not written the lock yet, or the stage was removed
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
        try:  # the stage may have been removed, and made anew by another process, before we had the lock
            is_current = os.path.samestat(os.fstat(handle), (stage / LOCK).stat())
        except FileNotFoundError:
            is_current = False
        if not is_current:
            os.close(handle)
            return -1
        _held.add(stage)
        return handle


def _lock(handle: int) -> bool:
    """Lock an open file; False if another process holds the lock. On systems without locks every call succeeds."""
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
    """Move those of the listed files that are not moved yet to their places, and remove the stage."""
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
    """Inode and time of change of the file `LOCK`.

    `_finish` compares them with ``commit.json``, so that it never moves files as a list says that somebody prepared
    elsewhere and copied here.
    """
    facts = (stage / LOCK).stat()
    return f"{facts.st_ino} {facts.st_ctime_ns}"


def _sweep(stage: Path) -> None:
    """Remove the temporary files that a dead process left in a locked stage."""
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
    """Remove a stage, its lock last, so that it is marked as long as it exists."""
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
    """Convert errors of the system to an ExportError about a folder."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        remedy = "Choose another with --out, or check that the folder above it is writable and has room."
        raise ExportError(f"the folder cannot be written: {reason}", path=folder, remedy=remedy) from error
