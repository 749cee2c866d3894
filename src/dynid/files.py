"""Files: write them whole or not at all (temporary file, fsync, rename), digest them, measure their size."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from functools import lru_cache
from pathlib import Path

from dynid.errors import DataError, ExportError

__all__ = ["file_digest", "make_folder", "size_mb", "write_atomically"]


def write_atomically(path: str | os.PathLike[str], content: str | bytes, *, force: bool = False) -> Path:
    """Write a whole file or nothing.

    Args:
        path: Destination; its folder must exist.
        content: Text (written as UTF-8, line ends as given, bytes of odd file names as escapes) or bytes.
        force: Overwrite an existing file.

    Raises:
        ExportError: The file exists and ``force`` is False, or the system refuses (read-only folder, full disk).
    """
    target = Path(path)
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    try:
        if not force and os.path.lexists(target):
            remedy = "Choose another name, or overwrite it (--force, force=True)."
            raise ExportError("the file exists already", path=target, remedy=remedy)
        _replace(target, data)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ExportError(
            f"the file cannot be written: {reason}",
            path=target,
            remedy="Check that the folder exists, is writable and has room.",
        ) from error
    return target


def _replace(target: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _umask() -> int:
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
            f"the folder cannot be made: {error.strerror}", path=folder, remedy="Choose another with --out."
        ) from error
    return folder


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of the bytes of a file; for a folder, of the names and digests of its files and folders.

    Raises:
        DataError: The file cannot be read.
    """
    place = Path(path)
    try:
        if place.is_dir():
            inside = [entry for entry in sorted(place.iterdir()) if entry.is_file() or entry.is_dir()]
            parts = [f"{entry.name} {file_digest(entry)}" for entry in inside]
            return hashlib.sha256("\n".join(parts).encode(errors="surrogateescape")).hexdigest()
        facts = place.stat()
        return _digest(place, facts.st_mtime_ns, facts.st_size)
    except OSError as error:
        raise DataError(
            f"the file cannot be read: {error.strerror}", path=place, remedy="Check the permissions."
        ) from error


@lru_cache
def _digest(path: Path, changed_ns: int, size: int) -> str:
    """Digest of a file that last changed at this time; cached, so that a large log is read only once."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def size_mb(path: str | os.PathLike[str]) -> float:
    """Size of a file, or of the files of a folder [MB]."""
    place = Path(path)
    files = [file for file in place.iterdir() if file.is_file()] if place.is_dir() else [place]
    return sum(file.stat().st_size for file in files) / 1e6
