"""`ObjectCache`: machine code kept on disk between processes, so that each robot is compiled once; for one user alone.

What is read here runs with the user's rights. So the folder must belong to the user and be closed to other writers; an
entry must be a regular file of the user; and its checksum is keyed with a secret that only the user can read. Entries
are written to a temporary file and moved into place: a process that dies while writing, two that write at once, or a
damaged disk leave at worst an entry that is not used. When the folder grows too large, the entries that were not used
for longest are removed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import os
import stat
import sys
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from scipy.constants import day

MOST_BYTES = 256 * 2**20
"""Size of the folder above which the oldest entries are removed [bytes]. Convention; a robot takes about 1 MB."""
KEPT_SHARE = 0.75
"""Share of `MOST_BYTES` that stays when entries are removed, so that this is not needed again at once. Convention."""
_MAGIC = b"dynid object 3\n"
"""Begin of every entry, in front of its seal and its content."""
_KEY = ".key"
"""Name of the file with the user's secret."""
_DIGEST_BYTES = hashlib.sha256().digest_size
"""Length of a SHA-256 digest and of the secret [bytes]: HMAC advises as many (RFC 2104)."""
_MAKING_KEY = threading.Lock()
if hasattr(os, "register_at_fork"):  # a fork that copies a locked lock would leave it locked in the copy for ever
    os.register_at_fork(
        before=_MAKING_KEY.acquire, after_in_parent=_MAKING_KEY.release, after_in_child=_MAKING_KEY.release
    )


@dataclass(frozen=True, slots=True)
class ObjectCache:
    """A folder of entries: name -> machine code, each behind a *seal*, a digest keyed with the user's secret."""

    folder: Path | None
    """Where the entries are; None keeps nothing."""

    @classmethod
    def default(cls) -> ObjectCache:
        """The user's cache: ``DYNID_CACHE_DIR`` if set, else the platform's place; none if ``DYNID_CACHE`` is 0."""
        if os.environ.get("DYNID_CACHE") == "0":
            return cls(None)
        chosen = os.environ.get("DYNID_CACHE_DIR")
        return cls(Path(chosen) if chosen else _platform_folder())

    def read(self, name: str) -> bytes | None:
        """The entry of that name; None if it is missing, damaged or not the user's own. A damaged one is removed."""
        key = self._key()
        if key is None:
            return None
        path = self._path(name)
        try:
            data = _read_own(path)
        except OSError:
            return None
        header = len(_MAGIC) + _DIGEST_BYTES
        seal = data[len(_MAGIC) : header]
        if data.startswith(_MAGIC) and hmac.compare_digest(_seal(key, name, data[header:]), seal):
            return data[header:]
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def write(self, name: str, content: bytes) -> None:
        """Keep an entry. A folder that cannot be written only means that nothing is kept."""
        key = self._key()
        if key is None:
            return
        with contextlib.suppress(OSError):
            _write_own(self._path(name), _MAGIC + _seal(key, name, content) + content)
            if hashlib.sha256(name.encode()).digest()[0] < 4:  # one entry in 64 looks at the size of the whole folder
                self.shrink()

    def shrink(self) -> None:
        """Remove the entries that were not used for longest where the folder is too large, and old temporary files."""
        if self.folder is None:
            return
        entries = []
        for entry in os.scandir(self.folder):
            with contextlib.suppress(OSError):  # another process removes entries as well
                found = entry.stat(follow_symlinks=False)
                if entry.name.startswith(".writing-") and time.time() - found.st_mtime > day:
                    os.unlink(entry.path)
                elif entry.name.endswith(".o"):
                    entries.append((found.st_mtime, found.st_size, entry.path))
        size = sum(entry[1] for entry in entries)
        if size <= MOST_BYTES:
            return
        for _, bytes_, path in sorted(entries):
            with contextlib.suppress(OSError):
                os.unlink(path)
            size -= bytes_
            if size <= KEPT_SHARE * MOST_BYTES:
                return

    def _key(self) -> bytes | None:
        """The user's secret; None where the folder must not be used."""
        return None if self.folder is None else _user_key(self.folder)

    def _path(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{name}.o"


@functools.cache
def _user_key(folder: Path) -> bytes | None:
    """The secret of a folder's entries, made at the first use; None where the folder cannot be used or trusted.

    A folder that is not trusted gives a warning.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder == _platform_folder():
            folder.chmod(0o700)  # older versions left it open to readers
        fault = _fault(folder)
        if fault:
            _warn_unused(folder, fault)
            return None
        path = folder / _KEY
        with _MAKING_KEY:  # for threads; of two processes that make a key at once, the later one's is kept
            if not path.exists():
                _write_own(path, os.urandom(_DIGEST_BYTES))
            key = _read_own(path)
    except (FileExistsError, PermissionError) as error:
        _warn_unused(folder, f"cannot be used ({error})")
        return None
    except OSError:
        return None
    return key if len(key) == _DIGEST_BYTES else None


def _warn_unused(folder: Path, fault: str) -> None:
    """Warn that nothing is kept in a folder."""
    warnings.warn(
        f"compiled kernels are not kept between processes: {folder} {fault}; "
        f"set DYNID_CACHE_DIR to a folder of your own with mode 700",
        RuntimeWarning,
        stacklevel=4,
    )


def _fault(folder: Path) -> str | None:
    """Why machine code from this folder must not be run; None where it may."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        return "is a link"
    if not hasattr(os, "geteuid"):
        return None
    if found.st_uid != os.geteuid():
        return "belongs to another user"
    return "can be written by others" if found.st_mode & 0o022 else None


def _read_own(path: Path) -> bytes:
    """The bytes of a regular file with one name that belongs to the user.

    Raises:
        OSError: There is none, or the file is another's, a link, a pipe or a device.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        is_own = not hasattr(os, "geteuid") or (found.st_uid == os.geteuid() and found.st_nlink <= 1)
        if not (stat.S_ISREG(found.st_mode) and is_own and found.st_size <= MOST_BYTES):
            raise PermissionError(f"{path} is not used: it is no regular file of this user")
        if time.time() - found.st_mtime > day:
            with contextlib.suppress(OSError):
                os.utime(path)
        return file.read()


def _write_own(path: Path, data: bytes) -> None:
    """Write a file of mode 600 atomically; without fsync, because an entry that a crash damages is not used."""
    import tempfile  # slow to load, and most processes write nothing

    handle, temporary = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _seal(key: bytes, name: str, content: bytes) -> bytes:
    """Keyed digest of name and content, so that an entry moved to another name is refused like a damaged one."""
    return hmac.digest(key, name.encode() + b"\0" + content, "sha256")


@functools.cache
def source_digest(source: Path) -> str:
    """SHA-256 of a Python file, or of all Python files below a folder.

    As part of an entry's name it makes sure that code printed by older sources is not used.
    """
    digest = hashlib.sha256()
    for path in [source] if source.is_file() else sorted(source.rglob("*.py")):
        digest.update(path.relative_to(source).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _platform_folder() -> Path | None:
    """Where the platform keeps caches, or None where the user has no home."""
    variable = {"win32": "LOCALAPPDATA", "darwin": ""}.get(sys.platform, "XDG_CACHE_HOME")
    chosen = os.environ.get(variable) if variable else None
    if chosen:
        return Path(chosen) / "dynid"
    inside = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")
    try:
        return Path.home() / inside / "dynid"
    except RuntimeError:
        _warn_homeless()
        return None


@functools.cache
def _warn_homeless() -> None:
    warnings.warn(
        "no home folder: compiled kernels are not kept between processes; set DYNID_CACHE_DIR to keep them",
        RuntimeWarning,
        stacklevel=2,
    )
