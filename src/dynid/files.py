"""Writing files so that nothing half-written stays: temporary file, fsync, rename."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from dynid.errors import ExportError

__all__ = ["write_atomically"]


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
            raise ExportError("the file exists already", path=target, remedy="Choose another name, or pass force=True.")
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
