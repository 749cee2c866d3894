"""Write files atomically, so that a crash leaves the old or the new file; make folders; digest and size of files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from functools import lru_cache
from pathlib import Path

from dynid.errors import DataError, ExportError
from dynid.safe_files.small_files import open_regular

TEMPORARY = ".part"
"""Suffix of a temporary file that is being written."""


def write_atomically(path: str | os.PathLike[str], content: str | bytes, *, force: bool = False) -> Path:
    """Write a file atomically: whole, or not at all.

    Args:
        path: Destination; its folder must exist.
        content: Bytes, or text, which is written as UTF-8 with line ends as given. Surrogates, by which Python stands
            for bytes of file names that are no text, do not exist in UTF-8 and are written as escapes.
        force: Overwrite an existing file.

    Raises:
        ExportError: The file exists and ``force`` is False, or the system refuses (read-only folder, full disk).
    """
    target = Path(path)
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    try:
        if not force and os.path.lexists(target):
            raise FileExistsError
        _put(target, data, force=force)
    except FileExistsError:
        remedy = "Choose another name, or overwrite it (--force, force=True)."
        raise ExportError("the file exists already", path=target, remedy=remedy) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ExportError(
            f"the file cannot be written: {reason}",
            path=target,
            remedy="Check that the folder exists, is writable and has room.",
        ) from error
    return target


def _put(target: Path, data: bytes, *, force: bool) -> None:
    """Write a temporary file in the same folder, then give it the target's name in one step.

    Without ``force`` that step raises a FileExistsError where the name is taken (on file systems with hard links).
    """
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=TEMPORARY)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        if force or not _link(temporary, target):
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _link(temporary: str, target: Path) -> bool:
    """Move a file to a name that must be free, by a hard link; False on file systems without hard links.

    Unlike a rename, a link is refused by the system where the name is taken, even if another process took it just now.
    """
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except (AttributeError, OSError):
        return False
    os.unlink(temporary)
    return True


def sync_folder(path: Path) -> None:
    """Make sure that the names of new files in a folder are on the disk, on systems that can."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    """Permissions that new files of this process do not get; the system returns them only when others are set."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder and those above it; an existing folder stays as it is.

    Raises:
        ExportError: The system refuses to make it.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(
            f"the folder cannot be made: {error.strerror}", path=folder, remedy="Choose another folder (--out)."
        ) from error
    return folder


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of the bytes of a file; for a folder, of the names and digests of its files and folders.

    Raises:
        DataError: The file cannot be read.
    """
    place = Path(path).absolute()
    try:
        if place.is_dir():
            inside = [entry for entry in sorted(place.iterdir()) if entry.is_file() or entry.is_dir()]
            text = "\n".join(f"{entry.name} {file_digest(entry)}" for entry in inside)
            return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
        facts = place.stat()
        return _digest(place, facts.st_mtime_ns, facts.st_size)
    except OSError as error:
        reason = f"the file cannot be read: {error.strerror}"
        raise DataError(reason, path=place, remedy="Check the permissions.") from error


@lru_cache
def _digest(path: Path, changed_ns: int, size: int) -> str:
    """SHA-256 of a file's bytes; cached as long as time of change and size stay, so that a log is read only once."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def size_mb(path: str | os.PathLike[str]) -> float:
    """Size of a file, or of the files of a folder [MB]."""
    place = Path(path)
    files = [file for file in place.iterdir() if file.is_file()] if place.is_dir() else [place]
    return sum(file.stat().st_size for file in files) / 1e6
