"""Machine code and programs kept on disk between processes.

Entries are written to a temporary file and moved into place, and carry a checksum: a process that dies while writing,
two that write at once, or a damaged disk leave at worst an entry that is not used.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ObjectCache", "source_digest"]

_MAGIC = b"dynid object 2\n"


@dataclass(frozen=True, slots=True)
class ObjectCache:
    """A folder of checked byte strings."""

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
        """The entry of that name; None if it is missing or damaged, and a damaged one is removed.

        Entries of other users are not used, because their code would run with this user's rights.
        """
        if self.folder is None:
            return None
        path = self._path(name)
        try:
            with path.open("rb") as file:
                if hasattr(os, "geteuid") and os.fstat(file.fileno()).st_uid != os.geteuid():
                    return None
                data = file.read()
        except OSError:
            return None
        header = len(_MAGIC) + 32
        if data.startswith(_MAGIC) and _checksum(name, data[header:]) == data[len(_MAGIC) : header]:
            return data[header:]
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def write(self, name: str, content: bytes) -> None:
        """Keep an entry. A folder that cannot be written only means that nothing is kept."""
        if self.folder is None:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(prefix=".writing-", dir=self.folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(_MAGIC + _checksum(name, content) + content)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, self._path(name))
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise

    def _path(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{name}.o"


@functools.cache
def source_digest(source: Path) -> str:
    """SHA-256 of a Python file or of all below a folder: whoever changes code need not think of what it made before."""
    digest = hashlib.sha256()
    for path in [source] if source.is_file() else sorted(source.rglob("*.py")):
        digest.update(path.relative_to(source).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _checksum(name: str, content: bytes) -> bytes:
    """Digest of name and content: an entry under another name is as bad as a damaged one."""
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


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
