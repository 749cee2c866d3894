"""Machine code kept on disk between processes.

Entries are written to a temporary file and moved into place, and carry a checksum: a process that dies while writing,
two that write at once, or a damaged disk leave at worst an entry that is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ObjectCache"]

_MAGIC = b"dynid object 1\n"


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
        return cls(Path(chosen) if chosen else _platform_folder() / "dynid")

    def read(self, name: str) -> bytes | None:
        """The entry of that name, or None if there is none that is whole; a damaged one is removed."""
        if self.folder is None:
            return None
        path = self._path(name)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        header = len(_MAGIC) + 32
        if data.startswith(_MAGIC) and hashlib.sha256(data[header:]).digest() == data[len(_MAGIC) : header]:
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
                    file.write(_MAGIC + hashlib.sha256(content).digest() + content)
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


def _platform_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
