"""Files: write them whole or not at all (temporary file, fsync, rename), digest them, measure their size."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from threading import Thread

from dynid.errors import DataError, ExportError, UnreachableLogError
from dynid.files.small_files import open_regular

TEMPORARY = ".part"
"""Suffix of a file that is not yet whole."""
LONG = 10_000_000
"""Size of a file from which on its digest is made in a thread of its own [bytes] (convention: it takes 50 ms)."""


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
    """Write a temporary file, and give it its name: atomically, and only if the name is free where force is False."""
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
    """Give a file a name that must be free; False on file systems where a file has one name only."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except (AttributeError, OSError):
        return False
    os.unlink(temporary)
    return True


def sync_folder(path: Path) -> None:
    """Bring the names in a folder to the disk, on systems that can."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


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
            f"the folder cannot be made: {error.strerror}", path=folder, remedy="Choose another folder (--out)."
        ) from error
    return folder


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of the bytes of a file; for a folder, of the names and digests of its files and folders.

    Raises:
        DataError: The file cannot be read.
    """
    return begin_digest(path)()


def begin_digest(path: str | os.PathLike[str]) -> Callable[[], str]:
    """Start the `file_digest` of a file as it is now, and return a function that waits for it.

    A long file is read in another thread, beside what the caller does.

    Raises:
        DataError: The file cannot be read; also where its digest is asked for, and if it has changed since.
    """
    place = Path(path).absolute()
    with _readable(place):
        if place.is_dir():
            inside = [entry for entry in sorted(place.iterdir()) if entry.is_file() or entry.is_dir()]
            parts = [(entry.name, begin_digest(entry)) for entry in inside]
            return lambda: _digest_of_text("\n".join(f"{name} {digest()}" for name, digest in parts))
        facts = place.stat()
        begun = _begun(place, facts.st_mtime_ns, facts.st_size)

    def wait() -> str:
        with _readable(place):
            digest = begun.result()
        with contextlib.suppress(OSError):  # a file that was moved was read all the same
            now = place.stat()
            if (now.st_mtime_ns, now.st_size) != (facts.st_mtime_ns, facts.st_size):
                remedy = "Run the command again when nothing writes to it."
                raise UnreachableLogError("the file changed while it was read", path=place, remedy=remedy)
        return digest

    return wait


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Report that a file cannot be read, and try it anew next time."""
    try:
        yield
    except OSError as error:
        _begun.cache_clear()
        raise DataError(
            f"the file cannot be read: {error.strerror}", path=path, remedy="Check the permissions."
        ) from error


def _digest_of_text(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


@lru_cache
def _begun(path: Path, changed_ns: int, size: int) -> _Digest:
    """The digest of a file that last changed at this time; cached, so that a large log is read only once."""
    digest = _Digest(open_regular(path))
    (digest.run if size < LONG else digest.start)()
    return digest


class _Digest(Thread):
    """Reads an open file for its digest; a command that fails meanwhile does not wait for it."""

    def __init__(self, stream: BufferedReader) -> None:
        super().__init__(name="dynid file_digest", daemon=True)
        self._stream = stream
        self._digest = ""
        self._error: OSError | None = None

    def run(self) -> None:
        try:
            with self._stream as stream:
                self._digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            self._error = error

    def result(self) -> str:
        """The digest, when it is known."""
        if self.is_alive():
            self.join()
        if self._error is not None:
            raise self._error
        return self._digest


def size_mb(path: str | os.PathLike[str]) -> float:
    """Size of a file, or of the files of a folder [MB]."""
    place = Path(path)
    files = [file for file in place.iterdir() if file.is_file()] if place.is_dir() else [place]
    return sum(file.stat().st_size for file in files) / 1e6
